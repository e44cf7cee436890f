//! An operator's override: lifts one policy's no to one call of a tool, in one run, for a while, with a justification (SEC-1).
//!
//! It is of the run's own records: who, why, until when. This module does not know what a policy says, nor which of them
//! nobody may lift.

use serde::{Deserialize, Serialize};

use crate::id::OperatorName;
use crate::refusal::Refusal;
use crate::role::Role;
use crate::time::{Millis, Timestamp};

/// How long an override can last; whoever needs more writes a policy.
pub const LONGEST_RELIEF: Millis = Millis::hours(24);
/// The fewest and the most characters of a justification.
const JUSTIFICATION: std::ops::RangeInclusive<usize> = 10..=1000;

/// The exact call that an override is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReliefScope {
    /// The policy that says no, or asks; no other one is lifted.
    pub policy: String,
    /// Whose calls.
    pub role: Role,
    /// The tool.
    pub tool: String,
    /// What it acts on, as in `conductor policy check`: `worktree:src/a.rs`, `own-issue` and so on.
    pub target: String,
}

impl std::fmt::Display for ReliefScope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let role = self.role.to_string().to_lowercase();
        write!(f, "{} for {role} {} {}", self.policy, self.tool, self.target)
    }
}

/// A granted override.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relief {
    /// Its number within the run, from 1.
    pub number: u32,
    /// What it is for.
    pub scope: ReliefScope,
    /// Who granted it.
    pub by: OperatorName,
    /// Why.
    pub justification: String,
    /// When it ends by itself.
    pub until: Timestamp,
    /// Who took it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_by: Option<OperatorName>,
}

impl Relief {
    /// Tells whether it counts at a time.
    pub fn is_in_force(&self, now: Timestamp) -> bool {
        self.revoked_by.is_none() && now < self.until
    }
}

/// Checks what anybody could check about a wish for an override.
pub(crate) fn check(justification: &str, until: Timestamp, now: Timestamp) -> Result<(), Refusal> {
    let characters = justification.trim().chars().count();
    if characters < *JUSTIFICATION.start() {
        return Err(Refusal::JustificationUnfit {
            why: "has fewer than 10 characters",
        });
    }
    if characters > *JUSTIFICATION.end() {
        return Err(Refusal::JustificationUnfit {
            why: "has more than 1000 characters",
        });
    }
    if until <= now || until > now.after(LONGEST_RELIEF) {
        return Err(Refusal::ReliefEndUnfit);
    }
    Ok(())
}
