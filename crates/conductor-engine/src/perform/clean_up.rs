//! Gives back everything that a run holds, and saves what is unfinished first (ENV-3, BEY-8).
//!
//! This module does not know how the run ended.

use conductor_domain::effect::{Effect, EffectKind};
use conductor_domain::fault::{Fault, FaultKind};
use conductor_domain::id::CommitId;
use conductor_domain::input::Report;
use conductor_domain::message::marker;
use conductor_port::lease::ResourceKind;
use conductor_port::workspace::PushOrder;

use super::{Performance, foreign};

/// Cleans up: processes, then what was said twice, then the branch, then directories. Each lease is given back as soon as what
/// it stands for is gone, so that a record outlives that, and a step that fails keeps nothing of the steps before it from
/// other runs. If repeated: each step finds its work done.
pub(super) async fn clean_up(
    performance: &Performance<'_>,
    delete: Option<(&str, &CommitId)>,
) -> Result<Report, Fault> {
    end_processes(performance).await?;
    give_back(performance, |kind| match kind {
        ResourceKind::ProcessGroup | ResourceKind::Container | ResourceKind::Port => true,
        ResourceKind::Branch | ResourceKind::Worktree => false,
    })
    .await?;
    remove_repeats(performance).await?;
    let branch_left = match delete {
        Some((branch, pushed)) => delete_branch(performance, branch, pushed).await?,
        None => None,
    };
    give_back(performance, |kind| kind == ResourceKind::Branch).await?;
    let saved = performance
        .ports()
        .workspace
        .clean_up(performance.run(), performance.repo())
        .await?;
    give_back(performance, |kind| kind == ResourceKind::Worktree).await?;
    Ok(Report::CleanedUp { saved, branch_left })
}

/// Gives back what the run holds of some kinds.
async fn give_back(performance: &Performance<'_>, is_gone: fn(ResourceKind) -> bool) -> Result<(), Fault> {
    let leases = performance.ports().leases.as_ref();
    for lease in leases.held(Some(performance.run())).await? {
        if is_gone(lease.kind) {
            leases
                .give_back(performance.run(), lease.kind, &lease.name)
                .await?;
        }
    }
    Ok(())
}

/// Takes the branch away from the forge. Returns its name where it stays: because it is not as Conductor pushed it, or
/// because it cannot be deleted at all, which must not keep the run's directory for ever.
async fn delete_branch(
    performance: &Performance<'_>,
    branch: &str,
    pushed: &CommitId,
) -> Result<Option<String>, Fault> {
    let order = PushOrder {
        run: performance.run().clone(),
        branch: branch.to_owned(),
        commit: None,
        expected: Some(pushed.clone()),
    };
    match push(performance, &order).await {
        Ok(()) => Ok(None),
        Err(fault) => match fault.kind {
            FaultKind::Transient { .. } | FaultKind::EnvironmentLost => Err(fault),
            FaultKind::Conflict | FaultKind::Refused | FaultKind::Permanent => {
                tracing::warn!(%fault, branch, "a branch stays at the forge");
                Ok(Some(branch.to_owned()))
            }
        },
    }
}

async fn push(performance: &Performance<'_>, order: &PushOrder) -> Result<(), Fault> {
    let token = performance.ports().forge.git_token(performance.repo()).await?;
    let workspace = performance.ports().workspace.as_ref();
    workspace.push(order, performance.repo(), token.as_ref()).await
}

async fn end_processes(performance: &Performance<'_>) -> Result<(), Fault> {
    for row in performance.ports().views.effects(performance.run()).await? {
        if !row.kind.executes_foreign_code() {
            continue;
        }
        if let Some(foreign) = foreign(&row.parse()?.effect) {
            performance.executor(foreign.executor())?.reap(&row.id).await?;
        }
    }
    Ok(())
}

/// Takes back what was said twice by processes that had lost their lease, however late they said it (RUN-4).
async fn remove_repeats(performance: &Performance<'_>) -> Result<(), Fault> {
    for row in performance.ports().views.effects(performance.run()).await? {
        if row.kind != EffectKind::PostComment || row.attempts < 2 {
            continue;
        }
        let Effect::PostComment { target, .. } = row.parse()?.effect else {
            continue;
        };
        let forge = performance.ports().forge.as_ref();
        match forge
            .remove_repeats(performance.repo(), target, &marker(&row.id))
            .await
        {
            Ok(removed) => performance.engine.count_repeats(&row.id, removed),
            Err(fault) if matches!(fault.kind, FaultKind::Transient { .. }) => return Err(fault),
            // The issue may be gone for good; that must not keep the run from its end.
            Err(fault) => tracing::warn!(%fault, effect = %row.id, "could not look for repeated comments"),
        }
    }
    Ok(())
}
