//! Records of what a run holds on this machine, written before it is used (ENV-2).
//!
//! This port does not know how a resource is given back.

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::id::RunId;
use conductor_domain::time::Timestamp;
use serde::{Deserialize, Serialize};

/// What a run can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceKind {
    /// A working directory.
    Worktree,
    /// A TCP port on loopback.
    Port,
    /// The processes of one effect.
    ProcessGroup,
    /// A branch at the forge.
    Branch,
    /// The containers of one effect.
    Container,
}

impl ResourceKind {
    /// The name in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Worktree => "worktree",
            Self::Port => "port",
            Self::ProcessGroup => "process_group",
            Self::Branch => "branch",
            Self::Container => "container",
        }
    }
}

/// One thing that a run holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLease {
    /// What kind of thing.
    pub kind: ResourceKind,
    /// Its name; unique with its kind while it is held.
    pub name: String,
    /// The run.
    pub run: RunId,
    /// When it was taken.
    pub taken_at: Timestamp,
    /// When it was last known to be in use.
    pub heartbeat: Timestamp,
}

/// What came of a wish for a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// The run has it, now or from before.
    Yes,
    /// Another run has it.
    No,
}

/// Keeps lease records.
#[async_trait]
pub trait Leases: Send + Sync + std::fmt::Debug {
    /// Takes a resource. If repeated by the same run: the heartbeat is renewed.
    async fn take(&self, lease: &ResourceLease) -> Result<Taken, Fault>;

    /// Gives a resource back. If repeated: nothing changes.
    async fn give_back(&self, run: &RunId, kind: ResourceKind, name: &str) -> Result<(), Fault>;

    /// Lists what is held, by one run or by all.
    async fn held(&self, run: Option<&RunId>) -> Result<Vec<ResourceLease>, Fault>;
}
