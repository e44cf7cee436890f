//! Holds a duty for this process while it can, and says whether it has it now (DEP-3).
//!
//! Asked before every turn; the ledger is asked only when the answer may have changed. This module does not know what is
//! done on duty.

use conductor_domain::fault::Fault;
use conductor_domain::time::{Millis, Timestamp};
use conductor_port::duty::{Duty, DutyWish, Holder};

use crate::engine::Engine;

/// A duty that this process would have.
#[derive(Debug)]
pub(crate) struct Post {
    duty: Duty,
    /// Until when it is ours.
    until: Option<Timestamp>,
    /// When to ask again.
    ask_at: Timestamp,
}

/// Whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Another process has the duty.
    Anothers,
    /// It is ours since now; whoever had it may have died and left something undone.
    Begins,
    /// It is ours as before.
    GoesOn,
}

impl Post {
    /// Applies for a duty.
    pub(crate) fn of(duty: Duty) -> Self {
        Self {
            duty,
            until: None,
            ask_at: Timestamp(i64::MIN),
        }
    }

    /// Tells whose turn it is now.
    pub(crate) async fn turn(&mut self, engine: &Engine) -> Result<Turn, Fault> {
        let now = engine.ports.clock.now();
        let was_ours = self.until.is_some_and(|until| now < until);
        if now < self.ask_at {
            return Ok(if was_ours { Turn::GoesOn } else { Turn::Anothers });
        }
        let lease = engine.options.lease;
        let wish = DutyWish {
            duty: self.duty,
            worker: engine.options.worker.clone(),
            now,
            until: now.after(lease),
        };
        let holder = engine.ports.duties.hold(&wish).await?;
        self.ask_at = now.after(Millis(lease.0 / 3));
        match holder {
            Holder::Us => {
                self.until = Some(wish.until);
                if was_ours {
                    return Ok(Turn::GoesOn);
                }
                tracing::info!(duty = self.duty.as_str(), worker = %wish.worker, "this process has the duty now");
                Ok(Turn::Begins)
            }
            Holder::Another => {
                self.until = None;
                Ok(Turn::Anothers)
            }
        }
    }
}

/// Lays all duties down at the end of this process; a fault leaves them until their time is over.
pub(crate) async fn lay_down_all(engine: &Engine) {
    for duty in [Duty::Deadlines, Duty::Anchors, Duty::Notices] {
        let laid = engine.ports.duties.lay_down(duty, &engine.options.worker).await;
        if let Err(fault) = laid {
            tracing::info!(%fault, duty = duty.as_str(), "could not lay a duty down; another takes it over in time");
        }
    }
}
