//! What readers may look at: runs, effects, forge writes, streams. Reading changes nothing.
//!
//! This port does not know who reads.

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::id::{RepoId, RunId};
use conductor_domain::instance::Instance;

use crate::ledger::{EffectRow, ForgeWrite, RunRow, StreamId};

/// Which runs to list; newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "conditions that readers ask for, each on its own"
)]
pub struct RunFilter {
    /// Only of this project.
    pub project: Option<String>,
    /// Only of this repository.
    pub repo: Option<RepoId>,
    /// Only in this phase.
    pub phase: Option<String>,
    /// Only those that a person must act on.
    pub needs_human: bool,
    /// Only those that go on without a person; with `needs_human`, none.
    pub needs_nobody: bool,
    /// Only those that have not ended.
    pub open: bool,
    /// Only those that still hold something: the open ones, and those that were not cleaned up after.
    pub unfinished: bool,
    /// Only with this pull request.
    pub pull_request: Option<u64>,
    /// Only for this issue.
    pub issue: Option<u64>,
    /// Only those that have this text in their title, repository, id or `#issue`; ASCII letters match in either case.
    pub text: Option<String>,
    /// Only runs listed after this one.
    pub after: Option<RunId>,
    /// At most so many.
    pub limit: u32,
}

/// The end of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamHead {
    /// The stream.
    pub stream: StreamId,
    /// Its last sequence number.
    pub seq: u64,
    /// Its last hash.
    pub hash: String,
}

/// Looks at what is kept. Sees every batch that was kept before the call.
#[async_trait]
pub trait Views: Send + Sync + std::fmt::Debug {
    /// Reads one run.
    async fn run(&self, run: &RunId) -> Result<Option<RunRow>, Fault>;

    /// Lists runs, `limit` of them unless there are no more; rows that cannot be read are left out and do not count.
    async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, Fault>;

    /// Counts runs, up to `limit`; those that cannot be read, too. Reads none of them.
    async fn count(&self, filter: &RunFilter) -> Result<u32, Fault>;

    /// Reads the instance, and the end of its stream as it was when the instance was last told; the records themselves
    /// may be fewer where some were lost.
    async fn instance(&self) -> Result<(Instance, StreamHead), Fault>;

    /// Lists all effects of a run, in the order they were asked for, done ones included.
    async fn effects(&self, run: &RunId) -> Result<Vec<EffectRow>, Fault>;

    /// Lists the writes of a run at the forge, oldest first.
    async fn writes(&self, run: &RunId) -> Result<Vec<ForgeWrite>, Fault>;

    /// Lists the ends of all streams, by the records themselves and not by a projection.
    async fn heads(&self) -> Result<Vec<StreamHead>, Fault>;
}
