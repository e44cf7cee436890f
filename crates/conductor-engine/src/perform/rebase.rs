//! Moves the run's commits onto the newest commit of the base branch (BEY-3).
//!
//! This module does not know whether the result still works: tests run again after it.

use conductor_domain::artifact::ArtifactKind;
use conductor_domain::fault::Fault;
use conductor_domain::id::CommitId;
use conductor_domain::input::Report;
use conductor_port::workspace::{RebaseOrder, Rebased};

use super::Performance;

/// Rebases. If repeated: what came of it is found by its effect.
pub(super) async fn rebase(
    performance: &Performance<'_>,
    branch: &str,
    base: &CommitId,
    head: &CommitId,
) -> Result<Report, Fault> {
    performance.take_worktree().await?;
    let token = performance.ports().forge.git_token(performance.repo()).await?;
    let order = RebaseOrder {
        effect: performance.effect().clone(),
        run: performance.run().clone(),
        branch: branch.to_owned(),
        base: base.clone(),
        head: head.clone(),
    };
    let workspace = &performance.ports().workspace;
    match workspace
        .rebase(&order, performance.repo(), token.as_ref())
        .await?
    {
        Rebased::Clean { base, head } => Ok(Report::Rebased {
            change: Some(performance.keep_change_from(&base, &head).await?),
            base,
            head,
        }),
        Rebased::Conflicted { paths } => {
            let feedback = performance.keep(ArtifactKind::Feedback, &words(&paths)).await?;
            Ok(Report::RebaseConflicted { feedback })
        }
    }
}

fn words(paths: &[String]) -> String {
    let mut text =
        String::from("The base branch has moved on, and the work does not fit it in these places:\n\n");
    for path in paths {
        text.push_str("- ");
        text.push_str(path);
        text.push('\n');
    }
    text
}
