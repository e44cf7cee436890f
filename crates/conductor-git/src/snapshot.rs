//! Turns an agent-writable working directory into a tree id and a pack of new objects (S-7).
//!
//! This is the one place where a git process reads what an agent wrote, so it stands behind [`Snapshotter`]: what
//! it returns is hostile input for `import`, whoever made it. The `steps` are the same everywhere; they are taken in a
//! [`room::Room`]. [`SandboxSnapshotter`] takes them in a sandbox, which is how Conductor works; [`ProcessSnapshotter`]
//! in plain processes, for the demo and tests without one. Before either, the agent's processes have ended.
//!
//! Ignored files are not part of a snapshot: they are what the repository calls reproducible.
//! This module does not know what becomes of the tree.

use std::path::PathBuf;

use conductor_domain::id::RunId;
use tokio::io::AsyncRead;

use crate::error::Error;
use crate::object::ObjectId;

mod room;
mod steps;
mod nested;
mod process;
mod sandboxed;

pub use process::ProcessSnapshotter;
pub use sandboxed::SandboxSnapshotter;

/// Makes snapshots of working directories.
///
/// Threading: calls for different directories may overlap; for one directory they may not. If repeated: reads
/// the directory again; nothing is left behind by an earlier call.
#[async_trait::async_trait]
pub trait Snapshotter: std::fmt::Debug + Send + Sync {
    /// Reads the directory whole; a file or directory that cannot be read is an error, never left out.
    async fn snapshot(&self, request: &Request) -> Result<Snapshot, Error>;
}

/// What a snapshot is made from.
#[derive(Debug, Clone)]
pub struct Request {
    /// Whose directory it is.
    pub run: RunId,
    /// The agent-writable directory; read only.
    pub workdir: PathBuf,
    /// Object directories of the base and of the run; read only.
    pub objects: Vec<PathBuf>,
    /// The tree that the directory was filled from.
    pub parent: ObjectId,
    /// What the snapshot is for.
    pub purpose: Purpose,
}

/// What a snapshot is for; the two differ only below the directory of a submodule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To be proposed: a submodule stays the link that it is.
    Commit,
    /// To be kept: files inside a submodule's directory are kept as files.
    Save,
}

/// What a snapshot claims; nothing of it is believed before `import` has checked it.
pub struct Snapshot {
    /// The claimed id of the tree.
    pub tree: String,
    /// The claimed pack of all objects that the given object directories lack.
    pub pack: Box<dyn AsyncRead + Send + Unpin>,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot")
            .field("tree", &self.tree)
            .finish_non_exhaustive()
    }
}
