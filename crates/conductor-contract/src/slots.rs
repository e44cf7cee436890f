//! How many runs work on a repository at once (RUN-5, RUN-13).
//!
//! It does not know how many there should be.

use conductor_domain::effect::EffectKind;
use conductor_domain::id::{EffectId, RepoId};
use conductor_port::ledger::{Batch, EffectStatus, LeaseWish, Leased};
use conductor_port::{Fault, FaultKind};
use tokio::task::JoinSet;

use crate::Subject;
use crate::given::{REPO, asked, batch, effect, effect_id, effect_row, kept, leased, wish};

fn with_slot(id: &EffectId, limit: u32) -> LeaseWish {
    LeaseWish {
        slot: Some((REPO, limit)),
        ..wish(id, 10, 20)
    }
}

async fn answer(subject: &Subject, wish: LeaseWish) -> Leased {
    subject.ledger.lease(wish).await.expect("the ledger answers")
}

/// RUN-13.
pub(crate) async fn slots_hold_under_concurrency(subject: &Subject) {
    let mut wishes = JoinSet::new();
    for run in 0..12 {
        let id = asked(subject, &format!("r-{run}"), EffectKind::PrepareWorkspace).await;
        let ledger = subject.ledger.clone();
        wishes.spawn(async move { ledger.lease(with_slot(&id, 3)).await.expect("the ledger answers") });
    }
    let outcomes = wishes.join_all().await;
    assert_eq!(
        outcomes
            .iter()
            .filter(|outcome| matches!(outcome, Leased::Granted { .. }))
            .count(),
        3
    );
    assert_eq!(
        outcomes
            .iter()
            .filter(|outcome| **outcome == Leased::NoSlot)
            .count(),
        9
    );
}

pub(crate) async fn a_run_keeps_its_slot_from_effect_to_effect(subject: &Subject) {
    let first = asked(subject, "r-1", EffectKind::PrepareWorkspace).await;
    let mine = leased(subject, with_slot(&first, 1)).await;
    let next = effect("r-1", 1, EffectKind::PrepareWorkspace);
    kept(
        subject,
        Batch {
            settles: Some(mine),
            effects: vec![next],
            ..batch("r-1", 1, 1)
        },
    )
    .await;
    let other = asked(subject, "r-2", EffectKind::PrepareWorkspace).await;
    assert_eq!(answer(subject, with_slot(&other, 1)).await, Leased::NoSlot);
    leased(subject, with_slot(&effect_id("r-1", 1), 1)).await;
}

pub(crate) async fn a_freed_slot_is_taken_by_the_next(subject: &Subject) {
    for run in ["r-1", "r-2", "r-3"] {
        let id = asked(subject, run, EffectKind::PrepareWorkspace).await;
        let expected = if run == "r-3" {
            Leased::NoSlot
        } else {
            Leased::Granted { token: 1, attempt: 1 }
        };
        assert_eq!(answer(subject, with_slot(&id, 2)).await, expected);
    }
    kept(
        subject,
        Batch {
            frees_slot: true,
            ..batch("r-1", 1, 1)
        },
    )
    .await;
    leased(subject, with_slot(&effect_id("r-3", 0), 2)).await;
    // Nothing happens when there is no slot to give back.
    kept(
        subject,
        Batch {
            frees_slot: true,
            ..batch("r-1", 2, 1)
        },
    )
    .await;
    let late = asked(subject, "r-4", EffectKind::PrepareWorkspace).await;
    assert_eq!(answer(subject, with_slot(&late, 2)).await, Leased::NoSlot);
}

pub(crate) async fn a_lowered_limit_counts_the_slots_that_are_taken(subject: &Subject) {
    for run in ["r-1", "r-2", "r-3"] {
        let id = asked(subject, run, EffectKind::PrepareWorkspace).await;
        leased(subject, with_slot(&id, 3)).await;
    }
    kept(
        subject,
        Batch {
            frees_slot: true,
            ..batch("r-1", 1, 1)
        },
    )
    .await;
    let late = asked(subject, "r-4", EffectKind::PrepareWorkspace).await;
    assert_eq!(answer(subject, with_slot(&late, 2)).await, Leased::NoSlot);
    kept(
        subject,
        Batch {
            frees_slot: true,
            ..batch("r-2", 1, 1)
        },
    )
    .await;
    leased(subject, with_slot(&late, 2)).await;
}

pub(crate) async fn slots_of_repositories_are_apart(subject: &Subject) {
    let here = asked(subject, "r-1", EffectKind::PrepareWorkspace).await;
    let there = asked(subject, "r-2", EffectKind::PrepareWorkspace).await;
    leased(subject, with_slot(&here, 1)).await;
    leased(
        subject,
        LeaseWish {
            slot: Some((RepoId(8), 1)),
            ..wish(&there, 10, 20)
        },
    )
    .await;
}

pub(crate) async fn an_effect_without_a_slot_stays_pending(subject: &Subject) {
    let here = asked(subject, "r-1", EffectKind::PrepareWorkspace).await;
    let there = asked(subject, "r-2", EffectKind::PrepareWorkspace).await;
    leased(subject, with_slot(&here, 1)).await;
    assert_eq!(answer(subject, with_slot(&there, 1)).await, Leased::NoSlot);
    let row = effect_row(subject, &there).await;
    assert_eq!((row.status, row.attempts), (EffectStatus::Pending, 0));
}

/// One run, one repository.
pub(crate) async fn a_slot_of_another_repository_is_refused(subject: &Subject) {
    let first = asked(subject, "r-1", EffectKind::PrepareWorkspace).await;
    let mine = leased(subject, with_slot(&first, 1)).await;
    let next = effect("r-1", 1, EffectKind::PrepareWorkspace);
    kept(
        subject,
        Batch {
            settles: Some(mine),
            effects: vec![next],
            ..batch("r-1", 1, 1)
        },
    )
    .await;
    let elsewhere = LeaseWish {
        slot: Some((RepoId(8), 1)),
        ..wish(&effect_id("r-1", 1), 30, 40)
    };
    let outcome = subject.ledger.lease(elsewhere).await;
    assert!(
        matches!(
            outcome,
            Err(Fault {
                kind: FaultKind::Permanent,
                ..
            })
        ),
        "{outcome:?}"
    );
}
