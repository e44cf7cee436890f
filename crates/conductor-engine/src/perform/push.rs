//! Pushes one commit to the run's branch (S-12).
//!
//! This module does not know what the commit holds: it was inspected before.

use conductor_domain::fault::Fault;
use conductor_domain::id::CommitId;
use conductor_domain::input::Report;
use conductor_port::workspace::PushOrder;

use super::Performance;

/// Pushes a commit. If repeated: a branch that stands at the commit already is a success.
pub(super) async fn push(
    performance: &Performance<'_>,
    branch: &str,
    commit: &CommitId,
    expected: Option<&CommitId>,
) -> Result<Report, Fault> {
    performance.take_branch(branch).await?;
    let token = performance.ports().forge.git_token(performance.repo()).await?;
    let order = PushOrder {
        run: performance.run().clone(),
        branch: branch.to_owned(),
        commit: Some(commit.clone()),
        expected: expected.cloned(),
    };
    performance
        .ports()
        .workspace
        .push(&order, performance.repo(), token.as_ref())
        .await?;
    Ok(Report::Pushed {
        commit: commit.clone(),
    })
}
