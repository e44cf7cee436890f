//! What becomes of effects before and after they are leased: their order, their time, holds, stops and retries.
//!
//! It does not know slots.

use conductor_domain::effect::EffectKind;
use conductor_domain::id::EffectId;
use conductor_domain::time::Timestamp;
use conductor_port::ledger::{
    AppendError, Batch, EffectChange, EffectStatus, NewEffect, Projection, Renewal, RunRow,
};

use crate::Subject;
use crate::given::{
    asked, assert_permanent, batch, dispatchable, effect, effect_id, effect_row, first, kept, leased, row,
    run_id, wish,
};

fn stop(id: &EffectId) -> Vec<EffectChange> {
    vec![EffectChange::Stop { id: id.clone() }]
}

fn retry(id: &EffectId, not_before: i64) -> Vec<EffectChange> {
    vec![EffectChange::Retry {
        id: id.clone(),
        not_before: Timestamp(not_before),
    }]
}

/// RUN-11.
pub(crate) async fn effects_are_listed_by_priority_then_age(subject: &Subject) {
    let with = |run: &str, priority| NewEffect {
        priority,
        ..effect(run, 0, EffectKind::Invoke)
    };
    let mut older = Batch {
        effects: vec![with("r-old", 50)],
        ..batch("r-old", 0, 1)
    };
    older.records[0].at = Timestamp(1);
    kept(
        subject,
        Batch {
            effects: vec![with("r-a", 50)],
            ..batch("r-a", 0, 1)
        },
    )
    .await;
    kept(
        subject,
        Batch {
            effects: vec![with("r-low", 1)],
            ..batch("r-low", 0, 1)
        },
    )
    .await;
    kept(subject, older).await;
    kept(
        subject,
        Batch {
            effects: vec![with("r-high", 255)],
            ..batch("r-high", 0, 1)
        },
    )
    .await;
    let expected = ["r-high", "r-old", "r-a", "r-low"].map(|run| effect_id(run, 0));
    assert_eq!(dispatchable(subject, 10).await, expected);
}

pub(crate) async fn an_effect_waits_for_its_time(subject: &Subject) {
    let later = NewEffect {
        not_before: Timestamp(100),
        ..effect("r-1", 0, EffectKind::Invoke)
    };
    kept(
        subject,
        Batch {
            effects: vec![later],
            ..batch("r-1", 0, 1)
        },
    )
    .await;
    assert_eq!(dispatchable(subject, 99).await, []);
    assert_eq!(dispatchable(subject, 100).await, [effect_id("r-1", 0)]);
}

/// The row of run `r-1`, held or not.
fn held(held: bool, seq: u64) -> Projection {
    Projection::Run(Box::new(RunRow {
        held,
        ..row("r-1", seq)
    }))
}

/// RUN-1a.
pub(crate) async fn a_hold_stops_work_and_nothing_else(subject: &Subject) {
    let mut all = Vec::new();
    for (ordinal, kind) in EffectKind::ALL.into_iter().enumerate() {
        let id = EffectId::derive(&run_id("r-1"), 0, ordinal);
        all.push(NewEffect {
            id,
            ..effect("r-1", 0, kind)
        });
    }
    kept(
        subject,
        Batch {
            effects: all.clone(),
            projection: held(true, 1),
            ..batch("r-1", 0, 1)
        },
    )
    .await;
    asked(subject, "r-2", EffectKind::Invoke).await;

    let listed = subject
        .ledger
        .dispatchable(&first(10_000, 100))
        .await
        .expect("the ledger answers");
    let of_held: Vec<EffectKind> = listed
        .iter()
        .filter(|row| row.run == run_id("r-1"))
        .map(|row| row.kind)
        .collect();
    assert_eq!(
        of_held,
        EffectKind::ALL
            .into_iter()
            .filter(|kind| !kind.is_work())
            .collect::<Vec<_>>()
    );
    assert_eq!(listed.len(), of_held.len() + 1, "another run is not held");

    kept(
        subject,
        Batch {
            projection: held(false, 2),
            ..batch("r-1", 1, 1)
        },
    )
    .await;
    assert_eq!(dispatchable(subject, 10_000).await.len(), all.len() + 1);
}

/// RUN-11.
pub(crate) async fn a_stopped_pending_effect_is_done_at_once(subject: &Subject) {
    let id = asked(subject, "r-1", EffectKind::Invoke).await;
    kept(
        subject,
        Batch {
            effect_changes: stop(&id),
            ..batch("r-1", 1, 1)
        },
    )
    .await;
    let row = effect_row(subject, &id).await;
    assert_eq!(
        (row.status, row.stop, row.attempts),
        (EffectStatus::Done, true, 0)
    );
    assert_eq!(dispatchable(subject, 10).await, []);
}

/// RUN-4, RUN-11: a try that met a fault may have had its way; it is found out at once, whatever holds the run.
pub(crate) async fn a_stopped_effect_that_was_tried_is_dispatched_at_once(subject: &Subject) {
    let id = asked(subject, "r-1", EffectKind::OpenPullRequest).await;
    let mine = leased(subject, wish(&id, 10, 20)).await;
    let retry = EffectChange::Retry {
        id: id.clone(),
        not_before: Timestamp(1_000_000),
    };
    kept(
        subject,
        Batch {
            settles: Some(mine),
            effect_changes: vec![retry],
            projection: held(true, 1),
            ..batch("r-1", 1, 1)
        },
    )
    .await;
    assert_eq!(dispatchable(subject, 30).await, []);
    kept(
        subject,
        Batch {
            effect_changes: stop(&id),
            projection: held(true, 2),
            ..batch("r-1", 2, 1)
        },
    )
    .await;
    let row = effect_row(subject, &id).await;
    assert_eq!(
        (row.status, row.stop, row.attempts),
        (EffectStatus::Pending, true, 1)
    );
    assert_eq!(dispatchable(subject, 30).await, std::slice::from_ref(&id));
    let again = leased(subject, wish(&id, 30, 40)).await;
    assert_eq!(
        subject.ledger.renew(&again, Timestamp(50)).await,
        Ok(Renewal::Stop)
    );
    // It was told for good: who meets a fault then waits like others, and still is only to find out.
    let retry = EffectChange::Retry {
        id: id.clone(),
        not_before: Timestamp(2_000_000),
    };
    kept(
        subject,
        Batch {
            settles: Some(again),
            effect_changes: vec![retry],
            projection: held(true, 3),
            ..batch("r-1", 3, 1)
        },
    )
    .await;
    let row = effect_row(subject, &id).await;
    assert_eq!(
        (row.status, row.stop, row.attempts),
        (EffectStatus::Pending, true, 2)
    );
    assert_eq!(dispatchable(subject, 1_999_999).await, []);
    assert_eq!(dispatchable(subject, 2_000_000).await, [id]);
}

/// RUN-11.
pub(crate) async fn a_stopped_leased_effect_hears_it_at_renewal(subject: &Subject) {
    let id = asked(subject, "r-1", EffectKind::Invoke).await;
    let mine = leased(subject, wish(&id, 10, 20)).await;
    kept(
        subject,
        Batch {
            effect_changes: stop(&id),
            ..batch("r-1", 1, 1)
        },
    )
    .await;
    let row = effect_row(subject, &id).await;
    assert_eq!((row.status, row.stop), (EffectStatus::Leased, true));
    assert_eq!(
        subject.ledger.renew(&mine, Timestamp(30)).await,
        Ok(Renewal::Stop)
    );
    // The stop does not take the lease away: the report still counts.
    kept(
        subject,
        Batch {
            settles: Some(mine),
            ..batch("r-1", 2, 1)
        },
    )
    .await;
    assert_eq!(effect_row(subject, &id).await.status, EffectStatus::Done);
}

pub(crate) async fn a_stop_of_a_done_effect_changes_nothing(subject: &Subject) {
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
    let before = effect_row(subject, &id).await;
    kept(
        subject,
        Batch {
            effect_changes: stop(&id),
            ..batch("r-1", 2, 1)
        },
    )
    .await;
    assert_eq!(effect_row(subject, &id).await, before);
}

/// RUN-12.
pub(crate) async fn a_retry_puts_the_effect_back_until_its_time(subject: &Subject) {
    let id = asked(subject, "r-1", EffectKind::Invoke).await;
    let mine = leased(subject, wish(&id, 10, 20)).await;
    let again = Batch {
        settles: Some(mine.clone()),
        effect_changes: retry(&id, 500),
        ..batch("r-1", 1, 1)
    };
    kept(subject, again).await;
    let row = effect_row(subject, &id).await;
    assert_eq!((row.status, row.attempts), (EffectStatus::Pending, 1));
    assert_eq!(dispatchable(subject, 499).await, []);
    assert_eq!(dispatchable(subject, 500).await, [id]);
    assert_eq!(
        subject.ledger.renew(&mine, Timestamp(900)).await,
        Ok(Renewal::Lost)
    );
}

pub(crate) async fn a_retry_of_a_pending_effect_moves_its_time(subject: &Subject) {
    let id = asked(subject, "r-1", EffectKind::Invoke).await;
    kept(
        subject,
        Batch {
            effect_changes: retry(&id, 500),
            ..batch("r-1", 1, 1)
        },
    )
    .await;
    assert_eq!(dispatchable(subject, 499).await, []);
    assert_eq!(dispatchable(subject, 500).await, [id]);
}

pub(crate) async fn a_retry_without_the_lease_is_refused(subject: &Subject) {
    let id = asked(subject, "r-1", EffectKind::Invoke).await;
    let mine = leased(subject, wish(&id, 10, 20)).await;
    let before = effect_row(subject, &id).await;
    let bare = Batch {
        effect_changes: retry(&id, 0),
        ..batch("r-1", 1, 1)
    };
    assert_eq!(subject.ledger.append(bare).await, Err(AppendError::LeaseLost));
    assert_eq!(effect_row(subject, &id).await, before);
    assert_eq!(
        subject.ledger.renew(&mine, Timestamp(30)).await,
        Ok(Renewal::Holds)
    );
}

/// RUN-4.
pub(crate) async fn a_done_effect_is_never_repeated(subject: &Subject) {
    let id = asked(subject, "r-1", EffectKind::PostComment).await;
    let mine = leased(subject, wish(&id, 10, 20)).await;
    kept(
        subject,
        Batch {
            settles: Some(mine),
            ..batch("r-1", 1, 1)
        },
    )
    .await;
    let again = Batch {
        effect_changes: retry(&id, 0),
        ..batch("r-1", 2, 1)
    };
    assert_permanent(subject.ledger.append(again).await);
    assert_eq!(dispatchable(subject, 1_000).await, []);
}

pub(crate) async fn a_change_of_an_unknown_effect_is_refused(subject: &Subject) {
    kept(subject, batch("r-1", 0, 1)).await;
    let unknown = effect_id("r-1", 9);
    for changes in [stop(&unknown), retry(&unknown, 0)] {
        assert_permanent(
            subject
                .ledger
                .append(Batch {
                    effect_changes: changes,
                    ..batch("r-1", 1, 1)
                })
                .await,
        );
    }
}

/// RUN-11.
pub(crate) async fn reprioritizing_moves_pending_effects_of_the_run_only(subject: &Subject) {
    asked(subject, "r-1", EffectKind::Invoke).await;
    asked(subject, "r-2", EffectKind::Invoke).await;
    let expected = |runs: [&str; 2]| runs.map(|run| effect_id(run, 0));
    assert_eq!(dispatchable(subject, 10).await, expected(["r-1", "r-2"]));
    let first = vec![EffectChange::Reprioritize { priority: 200 }];
    kept(
        subject,
        Batch {
            effect_changes: first,
            ..batch("r-2", 1, 1)
        },
    )
    .await;
    assert_eq!(dispatchable(subject, 10).await, expected(["r-2", "r-1"]));
}

pub(crate) async fn listing_is_cut_by_limit(subject: &Subject) {
    for run in ["r-1", "r-2", "r-3"] {
        asked(subject, run, EffectKind::Invoke).await;
    }
    let first = subject
        .ledger
        .dispatchable(&first(10, 2))
        .await
        .expect("the ledger answers");
    assert_eq!(
        first.iter().map(|row| row.id.clone()).collect::<Vec<_>>(),
        [effect_id("r-1", 0), effect_id("r-2", 0)]
    );
}

/// More than any single answer may hold: pages join without a gap, in the order of the queue, over done ones too.
pub(crate) async fn pages_of_candidates_join_without_gap_or_repeat(subject: &Subject) {
    const RUNS: usize = 13;
    const EACH: usize = 100;
    for n in 0..RUNS {
        let run = format!("r-{n}");
        let priority = if n % 3 == 0 { 90 } else { 50 };
        let effects = (0..EACH).map(|ordinal| NewEffect {
            id: EffectId::derive(&run_id(&run), 0, ordinal),
            priority,
            ..effect(&run, 0, EffectKind::PostComment)
        });
        let effects = effects.collect();
        kept(
            subject,
            Batch {
                effects,
                ..batch(&run, 0, 1)
            },
        )
        .await;
    }
    let all = RUNS * EACH;
    let whole = subject
        .ledger
        .dispatchable(&first(10_000, 9_999))
        .await
        .expect("the ledger answers");
    assert_eq!(whole.len(), all);
    let mut joined = Vec::new();
    let mut candidates = first(10_000, 128);
    loop {
        let page = subject
            .ledger
            .dispatchable(&candidates)
            .await
            .expect("the ledger answers");
        let Some(last) = page.last() else { break };
        candidates.after = Some(last.id.clone());
        // Somebody takes the last of the page before the next one is asked for.
        leased(subject, crate::given::wish(&last.id, 10_000, 99_000)).await;
        joined.extend(page);
    }
    assert_eq!(joined, whole);
}
