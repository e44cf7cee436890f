//! Who may perform an effect: one at a time, for a time, proven by a token that only grows.
//!
//! It does not know slots.

use conductor_domain::effect::EffectKind;
use conductor_domain::time::Timestamp;
use conductor_port::ledger::{
    AppendError, Batch, EffectChange, EffectStatus, LeaseWish, Leased, NewEffect, Projection, Renewal,
    RunRow, Settlement,
};
use tokio::task::JoinSet;

use crate::Subject;
use crate::given::{
    asked, batch, dispatchable, effect, effect_id, effect_row, first, kept, leased, row, wish,
};

pub(crate) async fn of_two_workers_one_gets_the_effect(subject: &Subject) {
    let id = asked(subject, "r-1", EffectKind::Invoke).await;
    assert_eq!(
        subject.ledger.lease(wish(&id, 10, 20)).await,
        Ok(Leased::Granted { token: 1, attempt: 1 })
    );
    let other = LeaseWish {
        worker: "worker-2".to_owned(),
        ..wish(&id, 10, 20)
    };
    assert_eq!(subject.ledger.lease(other).await, Ok(Leased::Gone));
    let row = effect_row(subject, &id).await;
    assert_eq!((row.status, row.attempts), (EffectStatus::Leased, 1));
    assert_eq!(dispatchable(subject, 10).await, []);
}

pub(crate) async fn of_many_workers_one_gets_the_effect(subject: &Subject) {
    let id = asked(subject, "r-1", EffectKind::Invoke).await;
    let mut workers = JoinSet::new();
    for worker in 0..16 {
        let ledger = subject.ledger.clone();
        let wish = LeaseWish {
            worker: format!("worker-{worker}"),
            ..wish(&id, 10, 20)
        };
        workers.spawn(async move { ledger.lease(wish).await.expect("the ledger answers") });
    }
    let outcomes = workers.join_all().await;
    assert_eq!(
        outcomes
            .iter()
            .filter(|outcome| matches!(outcome, Leased::Granted { .. }))
            .count(),
        1
    );
    assert_eq!(
        outcomes
            .iter()
            .filter(|outcome| **outcome == Leased::Gone)
            .count(),
        15
    );
}

/// DEP-3: what the living hold under other names stays theirs.
pub(crate) async fn who_starts_again_ends_the_leases_of_its_name_only(subject: &Subject) {
    let mine = asked(subject, "r-1", EffectKind::Invoke).await;
    let theirs = asked(subject, "r-2", EffectKind::Invoke).await;
    let token = leased(subject, wish(&mine, 10, 1000)).await;
    let other = LeaseWish {
        worker: "worker-2".to_owned(),
        ..wish(&theirs, 10, 1000)
    };
    let living = leased(subject, other).await;
    assert_eq!(dispatchable(subject, 11).await, []);
    assert_eq!(subject.ledger.end_leases("worker-1").await, Ok(1));
    assert_eq!(dispatchable(subject, 11).await, std::slice::from_ref(&mine));
    assert_eq!(
        subject.ledger.renew(&living, Timestamp(2000)).await,
        Ok(Renewal::Holds)
    );
    assert_eq!(
        subject.ledger.lease(wish(&mine, 11, 20)).await,
        Ok(Leased::Granted {
            token: token.token + 1,
            attempt: 2
        })
    );
}

pub(crate) async fn a_lease_that_has_not_ended_is_nobody_elses(subject: &Subject) {
    let id = asked(subject, "r-1", EffectKind::Invoke).await;
    leased(subject, wish(&id, 10, 20)).await;
    assert_eq!(dispatchable(subject, 20).await, []);
    assert_eq!(subject.ledger.lease(wish(&id, 20, 30)).await, Ok(Leased::Gone));
    assert_eq!(dispatchable(subject, 21).await, [id]);
}

pub(crate) async fn an_ended_lease_is_taken_over_with_a_greater_token(subject: &Subject) {
    let id = asked(subject, "r-1", EffectKind::Invoke).await;
    let mut last = 0;
    for turn in 0..5 {
        let now = i64::from(turn) * 100;
        match subject
            .ledger
            .lease(wish(&id, now, now + 50))
            .await
            .expect("the ledger answers")
        {
            Leased::Granted { token, attempt } => {
                assert!(token > last, "{token} after {last}");
                assert_eq!(attempt, turn + 1);
                last = token;
            }
            other @ (Leased::Gone | Leased::NoSlot) => {
                panic!("the lease has ended, yet the answer is {other:?}")
            }
        }
    }
}

pub(crate) async fn tokens_grow_over_retries(subject: &Subject) {
    let id = asked(subject, "r-1", EffectKind::Invoke).await;
    let first = leased(subject, wish(&id, 10, 20)).await;
    let again = vec![EffectChange::Retry {
        id: id.clone(),
        not_before: Timestamp(0),
    }];
    kept(
        subject,
        Batch {
            settles: Some(first.clone()),
            effect_changes: again,
            ..batch("r-1", 1, 1)
        },
    )
    .await;
    let second = leased(subject, wish(&id, 30, 40)).await;
    assert!(second.token > first.token);
    assert_eq!(effect_row(subject, &id).await.attempts, 2);
}

/// RUN-4.
pub(crate) async fn a_stale_token_settles_nothing(subject: &Subject) {
    let id = asked(subject, "r-1", EffectKind::Invoke).await;
    let first = leased(subject, wish(&id, 10, 20)).await;
    let second = leased(subject, wish(&id, 21, 30)).await;
    let report = |by: &Settlement| Batch {
        settles: Some(by.clone()),
        ..batch("r-1", 1, 1)
    };
    assert_eq!(
        subject.ledger.append(report(&first)).await,
        Err(AppendError::LeaseLost)
    );
    assert_eq!(effect_row(subject, &id).await.status, EffectStatus::Leased);
    kept(subject, report(&second)).await;
    assert_eq!(effect_row(subject, &id).await.status, EffectStatus::Done);
}

/// Who lost its lease must not be sent to decide again.
pub(crate) async fn a_lost_lease_outranks_a_moved_stream(subject: &Subject) {
    let id = asked(subject, "r-1", EffectKind::Invoke).await;
    let lost = leased(subject, wish(&id, 10, 20)).await;
    leased(subject, wish(&id, 21, 30)).await;
    kept(subject, batch("r-1", 1, 1)).await;
    let report = Batch {
        settles: Some(lost),
        ..batch("r-1", 1, 1)
    };
    assert_eq!(subject.ledger.append(report).await, Err(AppendError::LeaseLost));
}

pub(crate) async fn a_settled_effect_is_settled_once(subject: &Subject) {
    let id = asked(subject, "r-1", EffectKind::Invoke).await;
    let mine = leased(subject, wish(&id, 10, 20)).await;
    kept(
        subject,
        Batch {
            settles: Some(mine.clone()),
            ..batch("r-1", 1, 1)
        },
    )
    .await;
    let twice = Batch {
        settles: Some(mine.clone()),
        ..batch("r-1", 2, 1)
    };
    assert_eq!(subject.ledger.append(twice).await, Err(AppendError::LeaseLost));
    assert_eq!(dispatchable(subject, 1_000).await, []);
    assert_eq!(
        subject.ledger.lease(wish(&id, 1_000, 2_000)).await,
        Ok(Leased::Gone)
    );
    assert_eq!(
        subject.ledger.renew(&mine, Timestamp(90)).await,
        Ok(Renewal::Lost)
    );
}

pub(crate) async fn a_renewal_extends_the_lease(subject: &Subject) {
    let id = asked(subject, "r-1", EffectKind::Invoke).await;
    let mine = leased(subject, wish(&id, 10, 20)).await;
    for until in [40, 60] {
        assert_eq!(
            subject.ledger.renew(&mine, Timestamp(until)).await,
            Ok(Renewal::Holds)
        );
        assert_eq!(
            subject.ledger.lease(wish(&id, until, 100)).await,
            Ok(Leased::Gone)
        );
    }
    assert_eq!(dispatchable(subject, 61).await, [id]);
}

pub(crate) async fn a_renewal_after_the_loss_says_so(subject: &Subject) {
    let id = asked(subject, "r-1", EffectKind::Invoke).await;
    let first = leased(subject, wish(&id, 10, 20)).await;
    let second = leased(subject, wish(&id, 21, 30)).await;
    assert_eq!(
        subject.ledger.renew(&first, Timestamp(99)).await,
        Ok(Renewal::Lost)
    );
    assert_eq!(
        dispatchable(subject, 31).await,
        [id],
        "a lost renewal extends nothing"
    );
    assert_eq!(
        subject.ledger.renew(&second, Timestamp(40)).await,
        Ok(Renewal::Holds)
    );
}

pub(crate) async fn a_late_renewal_of_a_lease_nobody_took_holds(subject: &Subject) {
    let id = asked(subject, "r-1", EffectKind::Invoke).await;
    let mine = leased(subject, wish(&id, 10, 20)).await;
    assert_eq!(dispatchable(subject, 25).await, [id]);
    assert_eq!(
        subject.ledger.renew(&mine, Timestamp(40)).await,
        Ok(Renewal::Holds)
    );
    assert_eq!(dispatchable(subject, 25).await, []);
}

/// RUN-11: a hold that was kept between listing and leasing wins.
pub(crate) async fn an_effect_that_became_held_is_not_leased(subject: &Subject) {
    let id = asked(subject, "r-1", EffectKind::Invoke).await;
    assert_eq!(dispatchable(subject, 10).await, std::slice::from_ref(&id));
    let held = Projection::Run(Box::new(RunRow {
        held: true,
        ..row("r-1", 2)
    }));
    kept(
        subject,
        Batch {
            projection: held,
            ..batch("r-1", 1, 1)
        },
    )
    .await;
    assert_eq!(subject.ledger.lease(wish(&id, 10, 20)).await, Ok(Leased::Gone));
    assert_eq!(effect_row(subject, &id).await.status, EffectStatus::Pending);
}

pub(crate) async fn an_effect_that_is_not_due_is_not_leased(subject: &Subject) {
    let later = NewEffect {
        not_before: Timestamp(100),
        ..effect("r-1", 0, EffectKind::Invoke)
    };
    let id = later.id.clone();
    kept(
        subject,
        Batch {
            effects: vec![later],
            ..batch("r-1", 0, 1)
        },
    )
    .await;
    assert_eq!(subject.ledger.lease(wish(&id, 99, 200)).await, Ok(Leased::Gone));
    leased(subject, wish(&id, 100, 200)).await;
}

/// RUN-12a: whoever crashed while it was told to stop, or while the run was held, still has to be reported.
pub(crate) async fn an_ended_lease_is_listed_though_stopped_or_held(subject: &Subject) {
    let id = asked(subject, "r-1", EffectKind::Invoke).await;
    leased(subject, wish(&id, 10, 20)).await;
    let held = Projection::Run(Box::new(RunRow {
        held: true,
        ..row("r-1", 2)
    }));
    let stop = vec![EffectChange::Stop { id: id.clone() }];
    kept(
        subject,
        Batch {
            projection: held,
            effect_changes: stop,
            ..batch("r-1", 1, 1)
        },
    )
    .await;
    let listed = subject
        .ledger
        .dispatchable(&first(21, 9))
        .await
        .expect("the ledger answers");
    assert_eq!(listed, [effect_row(subject, &id).await]);
    assert!(listed[0].stop);
    leased(subject, wish(&id, 21, 30)).await;
}

pub(crate) async fn an_unknown_effect_is_gone(subject: &Subject) {
    let id = effect_id("r-1", 1);
    assert_eq!(subject.ledger.lease(wish(&id, 10, 20)).await, Ok(Leased::Gone));
    assert_eq!(
        subject
            .ledger
            .renew(&Settlement { id, token: 1 }, Timestamp(9))
            .await,
        Ok(Renewal::Lost)
    );
}
