//! Makes the run's repository, branch and working directory.
//!
//! This module does not know how a repository is laid out.

use conductor_domain::fault::Fault;
use conductor_domain::input::Report;
use conductor_port::workspace::Prepared;

use super::{Performance, own_ports};

/// Makes the workspace. If repeated: what stands whole is kept, and the base stays the one first chosen.
pub(super) async fn prepare(performance: &Performance<'_>, branch: &str) -> Result<Report, Fault> {
    tokio::try_join!(performance.take_worktree(), performance.take_branch(branch))?;
    own_ports::take(performance).await?;
    let token = performance.ports().forge.git_token(performance.repo()).await?;
    let workspace = &performance.ports().workspace;
    match workspace
        .prepare(performance.run(), performance.repo(), branch, token.as_ref())
        .await?
    {
        Prepared::Ready { base } => Ok(Report::WorkspacePrepared { base }),
        Prepared::Impossible { why } => Ok(Report::WorkspaceImpossible { why }),
    }
}
