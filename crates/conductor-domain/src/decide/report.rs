//! What came of an effect: the report is matched with what was asked, then handed to its chapter.
//!
//! This module does not know what a chapter makes of it.

use crate::decide::draft::Draft;
use crate::decide::{agent, ending, execution, merge, proposal, start};
use crate::effect::EffectKind;
use crate::event::Event;
use crate::hold::Hold;
use crate::id::EffectId;
use crate::input::Report;
use crate::phase::EndReason;
use crate::refusal::Refusal;

pub(super) fn performed(draft: &mut Draft<'_>, effect: &EffectId, report: &Report) -> Result<(), Refusal> {
    let asked = draft
        .run()
        .in_flight
        .get(effect)
        .ok_or(Refusal::UnknownEffect)?
        .clone();
    if !answers(asked.kind, report) {
        return Err(Refusal::ReportDoesNotFit {
            effect: asked.kind.as_str(),
        });
    }
    let interruptions = draft.run().counters.interruptions;
    draft.record(Event::EffectSettled {
        effect: effect.clone(),
    });
    if let Report::Invoked { report } = report {
        agent::anchor(draft, effect, report, asked.stopping);
    }
    if draft.run().phase.is_terminal() {
        ending::heard_late(draft, report);
        ending::clean_up_if_idle(draft);
        return Ok(());
    }
    if asked.stopping && !heard_though_stopping(draft, report) {
        draft.note(format!(
            "what {} came to was discarded, because it was told to stop",
            asked.kind
        ));
        draft.proceed();
        return Ok(());
    }
    match report {
        Report::IssueRead { issue } => start::issue_read(draft, issue),
        Report::IssueUnavailable { problem } => start::issue_unavailable(draft, *problem),
        Report::WorkspacePrepared { base } => start::workspace_prepared(draft, base),
        Report::WorkspaceImpossible { why } => {
            ending::fail(draft, EndReason::SetUpImpossible { why: why.clone() });
        }
        Report::Invoked { report } => agent::ended(draft, effect, report, interruptions),
        Report::WorkCommitted { commit, tree, change } => {
            execution::committed(draft, commit, tree, change.as_ref());
        }
        Report::NothingToCommit => execution::nothing_committed(draft),
        Report::TestsRan { tests } => execution::tests_ran(draft, tests)?,
        Report::RedFirstChecked { outcome } => execution::red_first_checked(draft, outcome),
        Report::Rebased { base, head, change } => {
            execution::rebased(draft, base, head, change.as_ref());
        }
        Report::RebaseConflicted { feedback } => execution::rebase_conflicted(draft, feedback),
        Report::DiffInspected { inspection } => proposal::inspected(draft, inspection),
        Report::Pushed { commit } => proposal::pushed(draft, commit)?,
        Report::PullRequestOpened { number, url } => proposal::opened(draft, *number, url),
        Report::CheckPublished => proposal::check_published(draft),
        Report::PullRequestMerged => merge::ended(draft, None),
        Report::MergeRefused { why } => merge::ended(draft, Some(why)),
        Report::PullRequestRead { pull_request } => merge::read(draft, pull_request),
        Report::PullRequestClosed | Report::CommentPosted { .. } => {}
        Report::FieldsUpdated => agent::tell_board(draft),
        Report::CleanedUp { .. } => {
            return Err(Refusal::ReportDoesNotFit {
                effect: asked.kind.as_str(),
            });
        }
        Report::Stopped => draft.note(format!("{} stopped before it came to anything", asked.kind)),
        Report::Interrupted { saved } => interrupted(draft, effect, saved.as_deref(), interruptions),
    }
    draft.proceed();
    Ok(())
}

/// Hears of an effect that was told to stop and finished all the same; what it changed for good must be known.
///
/// Returns whether the report counts as if nobody had said stop.
fn heard_though_stopping(draft: &mut Draft<'_>, report: &Report) -> bool {
    match report {
        Report::WorkCommitted { commit, tree, change } => {
            draft.record(Event::WorkCommitted {
                commit: commit.clone(),
                tree: tree.clone(),
                change: change.clone(),
            });
            false
        }
        Report::Rebased { base, head, change } => {
            draft.record(Event::WorkRebased {
                base: base.clone(),
                head: head.clone(),
                change: change.clone(),
            });
            false
        }
        Report::WorkspacePrepared { .. }
        | Report::WorkspaceImpossible { .. }
        | Report::PullRequestMerged
        | Report::MergeRefused { .. } => true,
        Report::IssueRead { .. }
        | Report::IssueUnavailable { .. }
        | Report::Invoked { .. }
        | Report::NothingToCommit
        | Report::TestsRan { .. }
        | Report::RedFirstChecked { .. }
        | Report::RebaseConflicted { .. }
        | Report::DiffInspected { .. }
        | Report::Pushed { .. }
        | Report::PullRequestOpened { .. }
        | Report::CheckPublished
        | Report::PullRequestRead { .. }
        | Report::PullRequestClosed
        | Report::CommentPosted { .. }
        | Report::FieldsUpdated
        | Report::CleanedUp { .. }
        | Report::Stopped
        | Report::Interrupted { .. } => false,
    }
}

/// Starts an interrupted effect over, up to the limit; that is not an agent's retry (RUN-12a).
pub(super) fn interrupted(draft: &mut Draft<'_>, effect: &EffectId, saved: Option<&str>, before: u32) {
    let interruptions = before + 1;
    draft.record(Event::Interrupted {
        effect: effect.clone(),
        interruptions,
        saved: saved.map(str::to_owned),
    });
    if interruptions > draft.run().spec.limits.interruptions {
        let reason = format!("interrupted {interruptions} times at the same step");
        draft.hold(Hold::Failure { reason });
    }
}

/// Tells whether a report can be an answer to an effect of this kind.
fn answers(kind: EffectKind, report: &Report) -> bool {
    match report {
        Report::IssueRead { .. } | Report::IssueUnavailable { .. } => kind == EffectKind::ReadIssue,
        Report::WorkspacePrepared { .. } | Report::WorkspaceImpossible { .. } => {
            kind == EffectKind::PrepareWorkspace
        }
        Report::Invoked { .. } => kind == EffectKind::Invoke,
        Report::WorkCommitted { .. } | Report::NothingToCommit => kind == EffectKind::CommitWork,
        Report::TestsRan { .. } => kind == EffectKind::RunTests,
        Report::RedFirstChecked { .. } => kind == EffectKind::CheckRedFirst,
        Report::Rebased { .. } | Report::RebaseConflicted { .. } => kind == EffectKind::Rebase,
        Report::DiffInspected { .. } => kind == EffectKind::InspectDiff,
        Report::Pushed { .. } => kind == EffectKind::Push,
        Report::PullRequestOpened { .. } => kind == EffectKind::OpenPullRequest,
        Report::CheckPublished => kind == EffectKind::PublishCheck,
        Report::PullRequestMerged | Report::MergeRefused { .. } => kind == EffectKind::MergePullRequest,
        Report::PullRequestRead { .. } => kind == EffectKind::ReadPullRequest,
        Report::PullRequestClosed => kind == EffectKind::ClosePullRequest,
        Report::CommentPosted { .. } => kind == EffectKind::PostComment,
        Report::FieldsUpdated => kind == EffectKind::UpdateFields,
        Report::CleanedUp { .. } => kind == EffectKind::CleanUp,
        Report::Stopped | Report::Interrupted { .. } => kind.is_work(),
    }
}
