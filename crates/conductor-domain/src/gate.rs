//! A question to a human about exact content: what is to be approved, and the digest that the answer must name.
//!
//! This module does not know who may answer.

use serde::{Deserialize, Serialize};

use crate::diff::Finding;
use crate::digest::Digest;
use crate::time::Timestamp;

/// What a human is asked to approve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateKind {
    /// The plan, before anything is changed.
    Plan,
    /// A change that needs a second look before it leaves.
    Diff,
}

impl std::fmt::Display for GateKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Plan => "plan",
            Self::Diff => "diff",
        })
    }
}

/// An open gate: the run goes on only with an answer that names `subject` (BEY-1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    /// What is asked.
    pub kind: GateKind,
    /// The digest over everything that is being approved.
    pub subject: Digest,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// Why it was opened, where that is not the normal way of things.
    pub findings: Vec<Finding>,
}
