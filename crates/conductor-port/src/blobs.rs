//! Bytes by content address, and the log of tool calls.
//!
//! This port does not know what the bytes mean.

use async_trait::async_trait;
use conductor_domain::artifact::{Artifact, ArtifactKind};
use conductor_domain::digest::Digest;
use conductor_domain::fault::Fault;
use conductor_domain::id::{EffectId, RunId};
use conductor_domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::ledger::Settlement;

/// The most bytes kept of one artifact; the rest is cut and marked.
pub const MAX_BLOB: usize = 4 * 1024 * 1024;

/// Bytes as they lie there, under the address that they are kept by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptBytes {
    /// The address; of damaged bytes it is another one than theirs.
    pub address: String,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// Keeps bytes by content address. If repeated: nothing changes.
#[async_trait]
pub trait Blobs: Send + Sync + std::fmt::Debug {
    /// Keeps bytes, cut at [`MAX_BLOB`] with a visible mark.
    async fn put(&self, kind: ArtifactKind, bytes: &[u8]) -> Result<Artifact, Fault>;

    /// Reads bytes back and checks them against their address.
    async fn get(&self, digest: &Digest) -> Result<Option<Vec<u8>>, Fault>;

    /// Lists what is kept under addresses after `after`, in their order, at most `limit`; nothing is checked, so that
    /// an audit can name what is damaged.
    async fn list(&self, after: &str, limit: u32) -> Result<Vec<KeptBytes>, Fault>;
}

/// One call of a tool, as it is kept (TOOL-4). `hash` covers every other field and the hash before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The invocation.
    pub invocation: EffectId,
    /// The run.
    pub run: RunId,
    /// The place in the invocation's log, from 1.
    pub n: u64,
    /// The tool's name.
    pub tool: String,
    /// What it was aimed at, for people.
    pub target: String,
    /// SHA-256 over the arguments.
    pub payload_hash: String,
    /// `allow` or `deny`.
    pub decision: String,
    /// Why.
    pub reason: String,
    /// `ok`, or what went wrong.
    pub result: String,
    /// When.
    pub at: Timestamp,
    /// The chain.
    pub hash: String,
}

/// Which calls of an invocation to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallPage {
    /// Only calls with a lower number.
    pub before: Option<u64>,
    /// Only calls that were not plainly allowed.
    pub stopped: bool,
    /// At most so many.
    pub limit: u32,
}

/// Keeps the calls of tools. One writer per invocation: whoever holds its lease.
#[async_trait]
pub trait ToolLog: Send + Sync + std::fmt::Debug {
    /// Keeps calls, in order, durably before it returns, or none of them if the lease of their invocation is lost: whoever
    /// has it now may have read where the log ends. Without a lease, nobody else writes there. If repeated: a call with the
    /// same `(invocation, n)` is left as it is.
    async fn append(&self, lease: Option<&Settlement>, calls: &[ToolCall]) -> Result<(), Fault>;

    /// Reads the calls of one invocation, in order.
    async fn read(&self, invocation: &EffectId) -> Result<Vec<ToolCall>, Fault>;

    /// Reads a part of the calls of one invocation, newest first.
    async fn page(&self, invocation: &EffectId, part: &CallPage) -> Result<Vec<ToolCall>, Fault>;
}
