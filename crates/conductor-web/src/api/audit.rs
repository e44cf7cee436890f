//! What an audit and a replay found.
//!
//! This module does not know how they look.

use conductor_domain::id::RunId;
use conductor_domain::time::Timestamp;
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
    /// Whether every decision that could be recomputed was the same again.
    pub same: bool,
    /// How many decisions were recomputed.
    pub decisions: u64,
    /// How many events they made.
    pub events: u64,
    /// How many decisions were made by another version of the rules; only that version can recompute them.
    #[serde(default)]
    pub other_rules: u64,
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

/// Records that were found, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordList {
    /// The records.
    pub records: Vec<RecordView>,
    /// Where older ones begin; absent when there are none.
    pub next: Option<u64>,
}

/// A record, whole: who did what from where, what was decided, and its link in the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordView {
    /// Where it stands among the records of all streams; a rebuild may number them anew.
    pub place: u64,
    /// Its stream: `instance`, or `run/` and the run's id.
    pub stream: String,
    /// The run; absent for what concerns more than one.
    #[schemars(with = "Option<String>")]
    pub run: Option<RunId>,
    /// Its place in its stream.
    pub seq: u64,
    /// Its name, unique over all streams.
    pub event_id: String,
    /// The version of its form.
    pub schema_version: u32,
    /// `fact` or `decision`.
    pub class: String,
    /// The name of the input or event.
    pub kind: String,
    /// When.
    #[schemars(with = "i64")]
    pub at: Timestamp,
    /// `agent`, `operator` or `system`.
    pub actor_type: String,
    /// Who.
    pub actor: String,
    /// Of a fact, where it came from: an address, an effect, a delivery; of a decision, the fact that caused it.
    pub cause: String,
    /// The payload; `payload_hash` is over its canonical form (RFC 8785).
    pub payload: serde_json::Value,
    /// SHA-256 over the payload.
    pub payload_hash: String,
    /// Its link in the chain.
    pub hash: String,
}
