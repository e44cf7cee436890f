//! An operator's override: lifts one policy's denial for one action, within a scope, for a while, with a justification.
//!
//! This module does not know who may grant one, nor where it is recorded.

use conductor_domain::id::RunId;
use conductor_domain::time::Timestamp;

use super::{Action, Request, Ruling, Target, Verdict};
use crate::secret;

/// A granted override.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relief {
    policy: String,
    action: Action,
    target: Target,
    run: RunId,
    granted_by: String,
    justification: String,
    until: Timestamp,
}

/// Why an override is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRelief {
    /// Nobody could judge it later.
    #[error("an override needs a justification of at least 10 characters")]
    NoJustification,
    /// It would be kept and shown.
    #[error("the justification holds a secret")]
    SecretInJustification,
}

impl Relief {
    /// Grants an override of what `verdict` said about `request`, in one run, until a time.
    pub fn grant(
        verdict: &Verdict,
        request: &Request,
        run: RunId,
        granted_by: impl Into<String>,
        justification: impl Into<String>,
        until: Timestamp,
    ) -> Result<Self, InvalidRelief> {
        let justification = justification.into();
        if justification.trim().chars().count() < 10 {
            return Err(InvalidRelief::NoJustification);
        }
        if !secret::scan(justification.as_bytes()).is_empty() {
            return Err(InvalidRelief::SecretInJustification);
        }
        Ok(Self {
            policy: verdict.policy.clone(),
            action: request.action,
            target: request.target.clone(),
            run,
            granted_by: granted_by.into(),
            justification,
            until,
        })
    }

    /// Returns the run that it is for.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// Tells whether it is in force for exactly this.
    pub(super) fn covers(&self, verdict: &Verdict, request: &Request, now: Timestamp) -> bool {
        now < self.until
            && self.policy == verdict.policy
            && self.action == request.action
            && self.target == request.target
    }

    pub(super) fn verdict(&self) -> Verdict {
        Verdict {
            ruling: Ruling::Allow,
            reason: format!("override by {}: {}", self.granted_by, self.justification),
            policy: self.policy.clone(),
        }
    }
}
