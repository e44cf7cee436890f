//! What an audit and a replay found.
//!
//! This module does not know how they look.

use conductor_domain::id::RunId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an audit of every stream found (SEC-8).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditView {
    /// Whether nothing was found.
    pub holds: bool,
    /// How many streams were looked at.
    pub streams: u64,
    /// How many records were looked at.
    pub records: u64,
    /// What was found.
    pub findings: Vec<FindingView>,
    /// How many records stand after the last recorded heads; their loss could not be told.
    pub unanchored: u64,
}

/// One thing that an audit found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FindingView {
    /// In which stream.
    pub stream: String,
    /// Where in it, where that is known.
    pub seq: Option<u64>,
    /// `changed`, `removed`, `reordered`, `truncated`, `run_removed` and so on.
    pub kind: String,
    /// In words.
    pub what: String,
}

/// What a replay found (RUN-2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayView {
    /// The run.
    #[schemars(with = "String")]
    pub run: RunId,
    /// Whether every decision was the same again.
    pub same: bool,
    /// How many decisions were recomputed.
    pub decisions: u64,
    /// How many events they made.
    pub events: u64,
    /// Where it differs.
    pub differences: Vec<ReplayDifference>,
}

/// A decision that came out differently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayDifference {
    /// At which record.
    pub seq: u64,
    /// How.
    pub what: String,
}
