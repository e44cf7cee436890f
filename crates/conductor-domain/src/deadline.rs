//! What a run waits for by the clock; a function of its state, so that it can never be lost or left behind.
//!
//! This module does not know what time it is.

use serde::{Deserialize, Serialize};

use crate::hold::{Hold, HoldKind};
use crate::run::Run;
use crate::time::Timestamp;

/// What a run waits for by the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deadline {
    /// The provider takes work again (BEY-5).
    ProviderReset,
    /// A human has left a gate or a question for long (BEY-4).
    Reminder,
    /// Messages that waited may be sent (GH-4).
    Flush,
    /// The pull request is looked at without a webhook. Only early logs hold it: by now looking is no input, so that a
    /// run that waits for weeks does not grow (see `decide::look`).
    Poll,
}

/// Returns what the run waits for next, and until when.
pub fn next_deadline(run: &Run) -> Option<(Timestamp, Deadline)> {
    if run.cleaned_up {
        return None;
    }
    let provider = match run.holds.get(HoldKind::ProviderLimit) {
        Some(Hold::ProviderLimit { until, .. }) => Some((*until, Deadline::ProviderReset)),
        _other => None,
    };
    let asked_at = match run.holds.get(HoldKind::Question) {
        Some(Hold::Question { asked_at, .. }) => Some(*asked_at),
        _other => run.gate().map(|gate| gate.opened_at),
    };
    let reminder = asked_at.filter(|_| !run.phase.is_terminal()).map(|asked_at| {
        let since = run.reminded_at.filter(|at| *at > asked_at).unwrap_or(asked_at);
        (since.after(run.spec.limits.reminder), Deadline::Reminder)
    });
    let flush = (!run.throttle.deferred.is_empty()).then(|| (run.throttle.opens_at(), Deadline::Flush));
    [provider, reminder, flush].into_iter().flatten().min()
}
