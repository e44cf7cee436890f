//! Gives back everything that a run holds, and saves what is unfinished first (ENV-3, BEY-8).
//!
//! This module does not know how the run ended.

use conductor_domain::EffectRequest;
use conductor_domain::effect::Effect;
use conductor_domain::fault::Fault;
use conductor_domain::input::Report;
use conductor_domain::spec::ExecutorName;

use super::Performance;

/// Cleans up: processes, then the branch, then directories, then the lease records, so that a record outlives what it
/// stands for. If repeated: each step finds its work done.
pub(super) async fn clean_up(
    performance: &Performance<'_>,
    delete_branch: Option<&str>,
) -> Result<Report, Fault> {
    end_processes(performance).await?;
    if let Some(branch) = delete_branch {
        performance
            .ports()
            .forge
            .delete_branch(performance.repo(), branch)
            .await?;
    }
    let saved = performance
        .ports()
        .workspace
        .clean_up(performance.run(), performance.repo())
        .await?;
    for lease in performance.ports().leases.held(Some(performance.run())).await? {
        performance
            .ports()
            .leases
            .give_back(performance.run(), lease.kind, &lease.name)
            .await?;
    }
    Ok(Report::CleanedUp { saved })
}

async fn end_processes(performance: &Performance<'_>) -> Result<(), Fault> {
    for row in performance.ports().views.effects(performance.run()).await? {
        if !row.kind.executes_foreign_code() {
            continue;
        }
        let request: EffectRequest = serde_json::from_str(&row.payload)
            .map_err(|error| Fault::permanent(format!("cannot read effect {}: {error}", row.id)))?;
        if let Some(executor) = executor(&request.effect) {
            performance.executor(executor)?.reap(&row.id).await?;
        }
    }
    Ok(())
}

fn executor(effect: &Effect) -> Option<ExecutorName> {
    match effect {
        Effect::Invoke { invocation } => Some(invocation.executor),
        Effect::RunTests { executor, .. } => Some(*executor),
        Effect::ReadIssue { .. }
        | Effect::PrepareWorkspace { .. }
        | Effect::CommitWork { .. }
        | Effect::CheckRedFirst { .. }
        | Effect::Rebase { .. }
        | Effect::InspectDiff { .. }
        | Effect::Push { .. }
        | Effect::OpenPullRequest { .. }
        | Effect::PublishCheck { .. }
        | Effect::ReadPullRequest { .. }
        | Effect::ClosePullRequest { .. }
        | Effect::PostComment { .. }
        | Effect::CleanUp { .. } => None,
    }
}
