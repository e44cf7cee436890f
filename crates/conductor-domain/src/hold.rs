//! Why a run stands still: a set of holds beside its phase, each released only by its own cause (RUN-1a).
//!
//! This module does not know what the run would do next.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::{EffectId, OperatorName};
use crate::time::Timestamp;

/// One cause for standing still, with what a person needs to know about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "hold")]
pub enum Hold {
    /// An operator paused the run.
    Operator {
        /// Who.
        by: OperatorName,
    },
    /// An agent asked a human (BEY-4).
    Question {
        /// The invocation that asked; answers name it.
        id: EffectId,
        /// What it asked.
        text: String,
        /// When.
        asked_at: Timestamp,
    },
    /// The provider refuses more work for now (BEY-5).
    ProviderLimit {
        /// On which account.
        account: String,
        /// Until when.
        until: Timestamp,
    },
    /// Something failed more often than its limit allows.
    Failure {
        /// What a person reads.
        reason: String,
    },
    /// A rule was broken.
    Policy {
        /// What a person reads.
        reason: String,
    },
    /// All agent execution is switched off.
    KillSwitch,
}

/// The kind of a hold; a run has at most one of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldKind {
    /// See [`Hold::Operator`].
    Operator,
    /// See [`Hold::Question`].
    Question,
    /// See [`Hold::ProviderLimit`].
    ProviderLimit,
    /// See [`Hold::Failure`].
    Failure,
    /// See [`Hold::Policy`].
    Policy,
    /// See [`Hold::KillSwitch`].
    KillSwitch,
}

impl Hold {
    /// Its kind.
    pub fn kind(&self) -> HoldKind {
        match self {
            Self::Operator { .. } => HoldKind::Operator,
            Self::Question { .. } => HoldKind::Question,
            Self::ProviderLimit { .. } => HoldKind::ProviderLimit,
            Self::Failure { .. } => HoldKind::Failure,
            Self::Policy { .. } => HoldKind::Policy,
            Self::KillSwitch => HoldKind::KillSwitch,
        }
    }

    /// Tells whether only a person can release it.
    pub fn needs_human(&self) -> bool {
        match self {
            Self::Question { .. } | Self::Failure { .. } | Self::Policy { .. } => true,
            Self::Operator { .. } | Self::ProviderLimit { .. } | Self::KillSwitch => false,
        }
    }
}

impl std::fmt::Display for Hold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Operator { by } => write!(f, "paused by {by}"),
            Self::Question { text, .. } => write!(f, "a question waits for an answer: {text}"),
            Self::ProviderLimit { account, .. } => {
                write!(f, "the provider refuses more work on account {account}")
            }
            Self::Failure { reason } => write!(f, "failed: {reason}"),
            Self::Policy { reason } => write!(f, "policy: {reason}"),
            Self::KillSwitch => f.write_str("the kill switch is on"),
        }
    }
}

/// The holds of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Holds(BTreeMap<HoldKind, Hold>);

impl Holds {
    /// Tells whether nothing holds the run.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the hold of one kind.
    pub fn get(&self, kind: HoldKind) -> Option<&Hold> {
        self.0.get(&kind)
    }

    /// Goes through the holds in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = &Hold> {
        self.0.values()
    }

    /// Adds a hold; a newer one of the same kind replaces the older.
    pub(crate) fn place(&mut self, hold: Hold) {
        self.0.insert(hold.kind(), hold);
    }

    /// Removes the hold of one kind.
    pub(crate) fn release(&mut self, kind: HoldKind) {
        self.0.remove(&kind);
    }
}
