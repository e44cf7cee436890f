//! Tells whether an effect may be dispatched now.
//!
//! It does not know the run that asked for it.

use crate::effect::EffectKind;
use crate::id::RepoId;
use crate::instance::Instance;
use crate::time::Timestamp;

/// Whether an effect may be dispatched now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// Go.
    Admitted {
        /// The repository's slot that must be taken in the same transaction, with how many there are.
        slot: Option<(RepoId, u32)>,
    },
    /// Not now.
    Waits {
        /// Until when, where that is known.
        until: Option<Timestamp>,
        /// Why.
        why: &'static str,
    },
}

/// Decides whether an effect may be dispatched now.
pub fn admit(
    kind: EffectKind,
    repo: RepoId,
    account: Option<&str>,
    instance: &Instance,
    now: Timestamp,
) -> Admission {
    if instance.kill_switch && kind.executes_foreign_code() {
        return Admission::Waits {
            until: None,
            why: "the kill switch is on",
        };
    }
    if let Some(until) = account
        .and_then(|account| instance.suspensions.get(account))
        .filter(|until| **until > now)
        && kind == EffectKind::Invoke
    {
        return Admission::Waits {
            until: Some(*until),
            why: "the provider refuses more work for now",
        };
    }
    let slot = (kind == EffectKind::PrepareWorkspace).then(|| {
        (
            repo,
            instance
                .repos
                .get(&repo)
                .map_or(1, |registration| registration.slots),
        )
    });
    Admission::Admitted { slot }
}
