//! What a run's agents did: the calls of their tools, and what their work changes.
//!
//! This module does not know how any of it is put together.

use conductor_domain::digest::Digest;
use conductor_domain::id::EffectId;
use conductor_domain::role::Role;
use conductor_domain::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One call of a tool, as it is kept (TOOL-4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallView {
    /// The invocation of an agent that made it.
    #[schemars(with = "String")]
    pub invocation: EffectId,
    /// In which role.
    #[schemars(with = "Option<String>")]
    pub role: Option<Role>,
    /// Its place among the calls of the invocation, from 1.
    pub n: u64,
    /// When.
    #[schemars(with = "i64")]
    pub at: Timestamp,
    /// The tool.
    pub tool: String,
    /// What it was aimed at.
    pub target: String,
    /// `allow`, `require_approval` or `deny`.
    pub decision: String,
    /// The policy that decided.
    pub policy: String,
    /// Why.
    pub reason: String,
    /// `ok`, or what went wrong.
    pub result: String,
    /// SHA-256 over the arguments.
    pub payload_hash: String,
}

/// Calls of a run, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallList {
    /// The calls.
    pub calls: Vec<CallView>,
    /// Give this as `after` for older ones.
    pub next: Option<String>,
}

/// What a run's newest commit changes in all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeView {
    /// The commit that the work stands on.
    pub base: String,
    /// The newest commit.
    pub head: String,
    /// The whole text, as an artifact.
    #[schemars(with = "String")]
    pub digest: Digest,
    /// How long that is.
    pub bytes: u64,
    /// Whether it was cut when it was kept.
    pub truncated: bool,
    /// The files.
    pub files: Vec<ChangedFile>,
}

/// What became of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedFile {
    /// In words: `added file src/a.rs`.
    pub says: String,
    /// Its path.
    pub path: String,
    /// How many lines were added.
    pub added: usize,
    /// How many were removed.
    pub removed: usize,
    /// The lines, with their signs; absent where another file was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}
