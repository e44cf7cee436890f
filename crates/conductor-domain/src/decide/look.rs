//! What is worth a look at the forge without a hint, and whether a look brought news.
//!
//! Looking is no input: a run that waits for weeks would grow by every look. Only news is, and it comes as a hint like
//! any other, so that the transition still rests on a reading of its own (GH-2, S-52). What counts as news is whatever
//! the rules would record, and nothing else. This module does not know how often anybody looks.

use crate::decide::draft::Draft;
use crate::decide::{Context, merge, start};
use crate::effect::EffectKind;
use crate::forge::{IssueProblem, IssueSnapshot, NoticeSubject, PullRequestSnapshot};
use crate::phase::Phase;
use crate::run::Run;

/// What a look brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sight {
    /// The issue as it stands.
    Issue(IssueSnapshot),
    /// The issue cannot be read.
    NoIssue(IssueProblem),
    /// The pull request as it stands.
    PullRequest(PullRequestSnapshot),
}

/// Returns what the run waits for at the forge; none while a reading of it is under way.
pub fn worth_a_look(run: &Run) -> Option<NoticeSubject> {
    if run.phase.is_terminal() {
        return None;
    }
    if let Phase::AwaitingPlanApproval(_) = run.phase {
        return run.work_in_flight().is_none().then_some(NoticeSubject::Issue {
            number: run.spec.issue,
        });
    }
    // Also outside the merge gate: a merge or a close counts wherever the run stands.
    let is_being_read = run
        .in_flight
        .values()
        .any(|effect| effect.kind == EffectKind::ReadPullRequest);
    run.pull_request
        .as_ref()
        .filter(|_| !is_being_read)
        .map(|pull_request| NoticeSubject::PullRequest {
            number: pull_request.number,
        })
}

/// Tells whether the run would record anything if this were its reading.
pub fn is_news(run: &Run, sight: &Sight, at: &Context) -> bool {
    let mut draft = Draft::new(run.clone(), at);
    match sight {
        Sight::Issue(issue) => start::issue_read(&mut draft, issue),
        Sight::NoIssue(problem) => start::issue_unavailable(&mut draft, *problem),
        Sight::PullRequest(seen) => merge::read(&mut draft, seen),
    }
    draft.has_news()
}
