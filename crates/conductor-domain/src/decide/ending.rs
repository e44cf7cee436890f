//! How a run ends: people are told, what is under way is stopped or compensated, everything is given back (RUN-11).
//!
//! This module does not know how anything is cleaned up.

use crate::decide::draft::Draft;
use crate::decide::speech;
use crate::effect::{CommentTarget, Effect, EffectKind};
use crate::event::Event;
use crate::id::PullRequestNumber;
use crate::input::Report;
use crate::phase::{EndReason, Phase};

pub(super) fn complete(draft: &mut Draft<'_>) {
    end(draft, Event::RunCompleted);
}

pub(super) fn cancel(draft: &mut Draft<'_>, reason: EndReason) {
    end(draft, Event::RunCancelled { reason });
}

pub(super) fn fail(draft: &mut Draft<'_>, reason: EndReason) {
    end(draft, Event::RunFailed { reason });
}

fn end(draft: &mut Draft<'_>, event: Event) {
    draft.record(event);
    draft.stop(EffectKind::is_work);
    close_pull_request(draft);
    draft.flush(Some(speech::ended(draft.run())));
    clean_up_if_idle(draft);
}

/// Closes the pull request of a run that was called off or given up, and says so there (RUN-11).
fn close_pull_request(draft: &mut Draft<'_>) {
    let is_called_off = match &draft.run().phase {
        Phase::Cancelled { reason } | Phase::Failed { reason } => *reason != EndReason::PullRequestClosed,
        Phase::Pending(_)
        | Phase::Planning(_)
        | Phase::AwaitingPlanApproval(_)
        | Phase::Executing(_)
        | Phase::Proposing(_)
        | Phase::AwaitingMerge(_)
        | Phase::Completed => false,
    };
    if let Some(number) = draft
        .run()
        .pull_request
        .as_ref()
        .map(|pull_request| pull_request.number)
        && is_called_off
    {
        close(draft, number);
    }
}

fn close(draft: &mut Draft<'_>, number: PullRequestNumber) {
    let message = Box::new(speech::ended(draft.run()));
    draft.ask(Effect::PostComment {
        target: CommentTarget::PullRequest(number),
        message,
    });
    draft.ask(Effect::ClosePullRequest { number });
}

/// Gives everything back as soon as nothing of the run's own work is under way any more.
pub(super) fn clean_up_if_idle(draft: &mut Draft<'_>) {
    let run = draft.run();
    let is_cleaning = run.cleaned_up
        || run.clean_up_failed.is_some()
        || run
            .in_flight
            .values()
            .any(|effect| effect.kind == EffectKind::CleanUp);
    if !run.phase.is_terminal() || is_cleaning || run.work_in_flight().is_some() {
        return;
    }
    let pushed = run.workspace.as_ref().and_then(|it| it.pushed.clone());
    let pushed = pushed.filter(|_| run.pull_request.is_none());
    let delete_branch = pushed.as_ref().map(|_| run.spec.branch());
    draft.ask(Effect::CleanUp {
        delete_branch,
        pushed,
    });
}

/// Hears of an effect after the end; what it did in the world is undone where it can be.
pub(super) fn heard_late(draft: &mut Draft<'_>, report: &Report) {
    match report {
        Report::CleanedUp { saved, branch_left } => {
            if let Some(branch) = branch_left {
                draft.note(format!(
                    "{branch} stays at the forge: somebody else pushed to it, or it may not be deleted"
                ));
            }
            draft.record(Event::CleanedUp { saved: saved.clone() });
        }
        Report::PullRequestOpened { number, .. } => {
            draft.note(format!(
                "pull request {number} came after the end and is closed again"
            ));
            close(draft, *number);
        }
        Report::Pushed { commit } => {
            draft.record(Event::Pushed {
                commit: commit.clone(),
            });
        }
        Report::PullRequestMerged => {
            draft.note("the forge took the merge; the run was over already");
        }
        Report::WorkCommitted { commit, .. } => {
            draft.note(format!("commit {commit} came after the end and is kept"));
        }
        Report::IssueRead { .. }
        | Report::IssueUnavailable { .. }
        | Report::WorkspacePrepared { .. }
        | Report::WorkspaceImpossible { .. }
        | Report::Invoked { .. }
        | Report::NothingToCommit
        | Report::TestsRan { .. }
        | Report::RedFirstChecked { .. }
        | Report::Rebased { .. }
        | Report::RebaseConflicted { .. }
        | Report::DiffInspected { .. }
        | Report::CheckPublished
        | Report::MergeRefused { .. }
        | Report::PullRequestRead { .. }
        | Report::PullRequestClosed
        | Report::CommentPosted { .. }
        | Report::FieldsUpdated
        | Report::Stopped
        | Report::Interrupted { .. } => {}
    }
}
