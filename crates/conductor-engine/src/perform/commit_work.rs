//! Commits what the Implementer left in the working directory.
//!
//! This module does not know what was changed.

use conductor_domain::fault::Fault;
use conductor_domain::id::CommitId;
use conductor_domain::input::Report;
use conductor_port::workspace::{CommitOrder, Committed};

use super::Performance;

/// Commits the working directory, and keeps what the run changes in all for people to look at. If repeated: the commit
/// that this effect made is found and returned.
pub(super) async fn commit(
    performance: &Performance<'_>,
    branch: &str,
    parent: &CommitId,
    onto: Option<&CommitId>,
    message: &str,
) -> Result<Report, Fault> {
    performance.take_worktree().await?;
    let order = CommitOrder {
        effect: performance.effect().clone(),
        run: performance.run().clone(),
        branch: branch.to_owned(),
        parent: parent.clone(),
        onto: onto.cloned(),
        message: performance.redact(message),
        // The time of the effect, not of this attempt: a repeat makes the same commit.
        at: performance.job.created_at,
    };
    Ok(match performance.ports().workspace.commit(&order).await? {
        Committed::Commit { commit, tree } => Report::WorkCommitted {
            change: Some(performance.keep_change(&commit).await?),
            commit,
            tree,
        },
        Committed::Nothing => Report::NothingToCommit,
    })
}
