//! What the world answers when it does not do as asked; classified by the adapter, acted on by `decide` alone.
//!
//! This module does not know which adapter failed.

use serde::{Deserialize, Serialize};

use crate::time::Millis;

/// A classified failure of the world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{what}")]
pub struct Fault {
    /// What a repeat can be expected to bring.
    pub kind: FaultKind,
    /// What was attempted and what went wrong, with all causes, free of secrets.
    pub what: String,
}

/// What a repeat can be expected to bring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FaultKind {
    /// A later repeat may succeed.
    Transient {
        /// When the world itself said how long to wait.
        retry_after: Option<Millis>,
    },
    /// Someone else changed what this was based on; look again before a repeat.
    Conflict,
    /// What the work was done in is gone, and what was done there with it; it can be begun anew in another (RUN-12).
    EnvironmentLost,
    /// What was given was looked at and is not taken; something else in its place may be.
    Refused,
    /// No repeat will ever succeed.
    Permanent,
}

impl Fault {
    /// Makes a fault that a later repeat may not meet.
    pub fn transient(what: impl Into<String>) -> Self {
        Self {
            kind: FaultKind::Transient { retry_after: None },
            what: what.into(),
        }
    }

    /// Makes a transient fault whose end the world announced.
    pub fn transient_for(length: Millis, what: impl Into<String>) -> Self {
        Self {
            kind: FaultKind::Transient {
                retry_after: Some(length),
            },
            what: what.into(),
        }
    }

    /// Makes a fault caused by a concurrent change.
    pub fn conflict(what: impl Into<String>) -> Self {
        Self {
            kind: FaultKind::Conflict,
            what: what.into(),
        }
    }

    /// Makes a fault of work whose environment is gone.
    pub fn environment_lost(what: impl Into<String>) -> Self {
        Self {
            kind: FaultKind::EnvironmentLost,
            what: what.into(),
        }
    }

    /// Makes a fault of something that is not taken as it is.
    pub fn refused(what: impl Into<String>) -> Self {
        Self {
            kind: FaultKind::Refused,
            what: what.into(),
        }
    }

    /// Makes a fault that no repeat will mend.
    pub fn permanent(what: impl Into<String>) -> Self {
        Self {
            kind: FaultKind::Permanent,
            what: what.into(),
        }
    }
}
