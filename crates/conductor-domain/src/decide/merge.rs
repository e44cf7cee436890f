//! What happens at the forge while a pull request waits: merged, closed, changes asked for, checks failed, base moved; and
//! the merge by Conductor itself, where a policy allows it.
//!
//! A notice is a hint to look; only what was read with our own token moves a run (RUN-10, S-52, S-53).
//! This module does not know webhooks.

use crate::decide::draft::Draft;
use crate::decide::{ending, speech};
use crate::effect::{Effect, EffectKind};
use crate::event::Event;
use crate::forge::{Notice, NoticeSubject, PullRequestSnapshot, PullRequestState};
use crate::hold::{Hold, HoldKind};
use crate::id::{CommitId, PullRequestNumber};
use crate::phase::{EndReason, Phase, SetUp};
use crate::run::Run;

/// How many readings may be asked for at once: one may have looked before the change, the next looks after it.
const READINGS: usize = 2;

pub(super) fn noticed(draft: &mut Draft<'_>, notice: &Notice) {
    draft.note(format!(
        "the forge announced {} ({})",
        notice.event, notice.delivery
    ));
    if draft.run().phase.is_terminal() {
        return;
    }
    match notice.subject {
        NoticeSubject::PullRequest { number } => look_at(draft, Some(number)),
        NoticeSubject::Base if draft.run().pull_request.is_none() => remember_base(draft),
        NoticeSubject::Base => look_at(draft, None),
        // An edit or a comment changes what is shown with the plan (S-50).
        NoticeSubject::Issue { number } => {
            let waits = matches!(draft.run().phase, Phase::AwaitingPlanApproval(_));
            if waits && number == draft.run().spec.issue && draft.run().work_in_flight().is_none() {
                draft.ask(Effect::ReadIssue { issue: number });
            }
        }
    }
}

/// Remembers that the base is said to have moved, while no pull request can be read to find out (BEY-3).
fn remember_base(draft: &mut Draft<'_>) {
    let is_fetched_later = draft.run().phase == Phase::Pending(SetUp::ReadingIssue);
    if !is_fetched_later && !draft.run().heard.base_announced {
        draft.record(Event::BaseAnnounced);
    }
}

/// Asks for a reading of the run's pull request, if it has one and it is the one that is meant.
pub(super) fn look_at(draft: &mut Draft<'_>, meant: Option<PullRequestNumber>) {
    let Some(number) = draft
        .run()
        .pull_request
        .as_ref()
        .map(|pull_request| pull_request.number)
    else {
        return;
    };
    let under_way = draft
        .run()
        .in_flight
        .values()
        .filter(|effect| effect.kind == EffectKind::ReadPullRequest)
        .count();
    if meant.is_none_or(|meant| meant == number) && under_way < READINGS {
        draft.ask(Effect::ReadPullRequest { number });
    }
}

/// Takes a reading of a pull request; it counts for the run's own alone: by number and head repository (S-53).
pub(super) fn read(draft: &mut Draft<'_>, seen: &PullRequestSnapshot) {
    let run = draft.run();
    let ours = run
        .pull_request
        .as_ref()
        .is_some_and(|pull_request| pull_request.number == seen.number);
    if !ours || seen.head_repo != Some(run.spec.repo.id) {
        draft.note("a pull request that is not the run's own was read");
        return;
    }
    match &seen.state {
        PullRequestState::Merged { by } => {
            let other_head = (pushed(run) != Some(&seen.head)).then(|| seen.head.clone());
            draft.record(Event::PullRequestMerged {
                by: by.clone(),
                other_head,
            });
            ending::complete(draft);
        }
        PullRequestState::Closed => {
            draft.record(Event::PullRequestClosed);
            ending::cancel(draft, EndReason::PullRequestClosed);
        }
        PullRequestState::Open => still_open(draft, seen),
    }
}

/// The commit that Conductor last put at the forge.
fn pushed(run: &Run) -> Option<&CommitId> {
    run.workspace.as_ref()?.pushed.as_ref()
}

fn still_open(draft: &mut Draft<'_>, seen: &PullRequestSnapshot) {
    let base = draft
        .run()
        .workspace
        .as_ref()
        .map(|workspace| workspace.base.clone());
    if let Some(base_head) = &seen.base_head
        && base.as_ref() != Some(base_head)
        && draft.run().heard.base_moved.as_ref() != Some(base_head)
    {
        draft.record(Event::BaseMoved {
            head: base_head.clone(),
        });
    }
    let Phase::AwaitingMerge(_) = draft.run().phase else {
        return;
    };
    let heard = draft.run().heard.clone();
    let Some(proposed) = pushed(draft.run()).cloned() else {
        return;
    };
    if draft.run().is_held() {
        // RUN-1a: only merge and close move a held run; the rest is read again when it is free. But what failed is free only
        // with another commit, and a review of this one would be lost then.
        let has_failed = draft.run().holds.get(HoldKind::Failure).is_some();
        if let Some(review) = &seen.review
            && has_failed
            && !heard.reviews.contains(&review.id)
            && review.commit.as_ref() == Some(&proposed)
        {
            draft.record(Event::ChangesRequested {
                review: review.clone(),
            });
        }
        return;
    }
    match &seen.review {
        Some(review) if !heard.reviews.contains(&review.id) && review.commit.as_ref() != Some(&proposed) => {
            draft.record(Event::ReviewSetAside {
                review: review.clone(),
            });
            draft.say(speech::review_set_aside(
                &review.by,
                review.commit.as_ref(),
                &proposed,
            ));
        }
        Some(review) if !heard.reviews.contains(&review.id) => {
            draft.record(Event::ChangesRequested {
                review: review.clone(),
            });
            draft.say(speech::changes_requested(&review.by));
            draft.stop(is_merge);
            draft.record(Event::ReworkBegan {
                feedback: vec![],
                demands: vec![review.feedback.clone()],
                barred: None,
            });
        }
        Some(_) | None if !seen.failed_checks.is_empty() && proposed == seen.head => {
            if heard.failed_checks.as_ref() != Some(&seen.head) {
                let names = seen.failed_checks.clone();
                let reason = format!("checks failed on the pull request: {}", names.join(", "));
                draft.record(Event::ChecksFailed {
                    head: seen.head.clone(),
                    names,
                    feedback: seen.checks_feedback.clone(),
                });
                draft.stop(is_merge);
                draft.hold(Hold::Failure { reason });
            }
        }
        Some(_) | None => {
            if heard.base_moved.is_some() && !draft.run().is_parked() {
                draft.stop(is_merge);
                draft.record(Event::RebaseBegan);
            } else {
                merge_if_allowed(draft, seen);
            }
        }
    }
}

fn is_merge(kind: EffectKind) -> bool {
    kind == EffectKind::MergePullRequest
}

/// Merges what was tested and reviewed, on the base that it was tested on, if a policy allows it and nobody objects
/// (RUN-14). Everything it rests on was just read; the performer reads it once more.
fn merge_if_allowed(draft: &mut Draft<'_>, seen: &PullRequestSnapshot) {
    let Some(reason) = draft.may_merge().map(str::to_owned) else {
        return;
    };
    let run = draft.run();
    let (Phase::AwaitingMerge(waiting), Some(workspace)) = (&run.phase, &run.workspace) else {
        return;
    };
    let head = workspace.head.clone();
    let is_proven = waiting.tests.has_passed() && waiting.tests.commit == head;
    let is_there = workspace.pushed.as_ref() == Some(&head) && seen.head == head;
    let is_on_its_base = seen.base_head.as_ref() == Some(&workspace.base);
    let is_unopposed =
        seen.review.is_none() && seen.failed_checks.is_empty() && seen.pending_checks.is_empty();
    let is_new = waiting.merging.is_none() && run.heard.merge_tried.as_ref() != Some(&head);
    if is_proven && is_there && is_on_its_base && is_unopposed && is_new {
        draft.say(speech::merging(&head, &reason));
        draft.record(Event::MergeBegan { head, reason });
    }
}

/// Hears what came of a merge; that it is merged is believed when it was read (S-52).
pub(super) fn ended(draft: &mut Draft<'_>, refused: Option<&str>) {
    let merging = match &draft.run().phase {
        Phase::AwaitingMerge(waiting) => waiting.merging.clone(),
        Phase::Pending(_)
        | Phase::Planning(_)
        | Phase::AwaitingPlanApproval(_)
        | Phase::Executing(_)
        | Phase::Proposing(_)
        | Phase::Completed
        | Phase::Cancelled { .. }
        | Phase::Failed { .. } => None,
    };
    match merging {
        Some(head) => {
            draft.record(Event::MergeEnded {
                head,
                refused: refused.map(str::to_owned),
            });
            if let Some(why) = refused {
                draft.say(speech::merge_refused(why));
            }
        }
        None => draft.note("a merge ended that the run had gone on from"),
    }
    look_at(draft, None);
}
