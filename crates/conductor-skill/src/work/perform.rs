//! Does what is to be done at one place, and says what the lock learns from it.
//!
//! This module does not know the other places.

use std::path::PathBuf;

use conductor_port::target::{Changed, TargetFault};

use super::Outcome;
use crate::lock::Put;
use crate::plan::{Action, BY_HAND, Item, Trouble};
use crate::targets::Open;

/// What the lock learns from one place.
pub(super) enum Remember {
    Nothing,
    Gone,
    Put(Put),
}

pub(super) struct Step {
    pub(super) outcome: Outcome,
    pub(super) put: Remember,
    pub(super) warnings: Vec<String>,
    pub(super) trouble: Option<Trouble>,
}

impl Step {
    fn quiet(outcome: Outcome, put: Remember) -> Self {
        Self {
            outcome,
            put,
            warnings: Vec::new(),
            trouble: None,
        }
    }
}

/// Does what is to be done at one place.
pub(super) async fn perform(
    item: &Item,
    open: Result<Open, TargetFault>,
    source: Option<PathBuf>,
    changed: Changed,
) -> Step {
    let failed = |fault| Step {
        trouble: Some(Trouble::of(&item.skill, &item.environment, &fault)),
        ..Step::quiet(Outcome::Failed, Remember::Nothing)
    };
    let open = match open {
        Ok(open) => open,
        // What was put there went with it.
        Err(TargetFault::Gone { .. }) if item.action == Action::Remove => {
            return Step::quiet(Outcome::Done, Remember::Gone);
        }
        Err(fault) => return failed(fault),
    };
    let put = |mode, digest| {
        Remember::Put(Put {
            environment: item.environment.clone(),
            path: item.placement.path(),
            mode,
            digest,
            identity: open.vitals.identity.clone(),
        })
    };
    match (item.action, &item.wanted) {
        (Action::Noop, Some(digest)) => Step::quiet(Outcome::Unchanged, put(item.mode, digest.clone())),
        // What somebody else put where we had something is theirs now.
        (Action::Noop, None) => Step::quiet(Outcome::Unchanged, Remember::Gone),
        (Action::Conflict, _) => Step {
            warnings: vec![format!(
                "{} in {} stays as it is: {}; {}",
                item.path,
                item.environment,
                item.reasons.join("; "),
                if item.reasons.iter().any(|reason| reason == BY_HAND) {
                    "--force gives it up"
                } else {
                    "move it away, or name another directory"
                }
            )],
            ..Step::quiet(Outcome::Skipped, Remember::Nothing)
        },
        (Action::Remove, _) => match open.adapter.uninstall(&item.placement, changed).await {
            Ok(_) => Step::quiet(Outcome::Done, Remember::Gone),
            Err(fault) => failed(fault),
        },
        (Action::Create | Action::Update, _) => {
            // Staging failed, and that is told already.
            let Some(source) = source else {
                return Step::quiet(Outcome::Failed, Remember::Nothing);
            };
            match open
                .adapter
                .install(&source, &item.placement, item.mode, changed)
                .await
            {
                Ok(installed) => Step {
                    warnings: installed.warnings,
                    ..Step::quiet(Outcome::Done, put(installed.mode, installed.digest))
                },
                Err(fault) => failed(fault),
            }
        }
    }
}
