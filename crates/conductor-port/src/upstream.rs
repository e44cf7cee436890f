//! Repositories that are only read: what a name stands for there, and the files of a commit.
//!
//! Skills come from such repositories. This port does not know which of their files matter.

use std::path::Path;

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::id::CommitId;

/// Reads repositories of others.
#[async_trait]
pub trait Upstream: Send + Sync + std::fmt::Debug {
    /// Finds the commit that a branch, a tag or a full id names now; without a name, the default branch.
    async fn resolve(&self, url: &str, reference: Option<&str>) -> Result<CommitId, Fault>;

    /// Writes the files of a commit into an empty directory. Asks the server only for a commit that was not seen yet.
    async fn export(&self, url: &str, commit: &CommitId, directory: &Path) -> Result<(), Fault>;
}
