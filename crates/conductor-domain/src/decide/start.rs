//! How a run begins: it is asked for, its issue is read, its workspace is made, planning begins (RUN-5).
//!
//! This module does not know projects and registrations: the door has resolved them into the spec.

use crate::decide::draft::Draft;
use crate::decide::{Context, Decision, ending, proposal, speech};
use crate::event::Event;
use crate::evolve::evolve;
use crate::forge::{IssueProblem, IssueSnapshot};
use crate::hold::{Hold, HoldKind};
use crate::id::CommitId;
use crate::phase::{EndReason, Phase, Planning, PlanningStep, SetUp};
use crate::refusal::Refusal;
use crate::run::Run;
use crate::spec::RunSpec;

pub(super) fn start(run: Option<&Run>, spec: &RunSpec, at: &Context) -> Result<Decision, Refusal> {
    if run.is_some() {
        return Err(Refusal::RunExists);
    }
    if spec.test_command.first().is_none_or(String::is_empty) {
        return Err(Refusal::NoTestCommand);
    }
    let birth = Event::RunStarted {
        spec: Box::new(spec.clone()),
    };
    let run = evolve(None, &birth).expect("RunStarted makes a run");
    let mut draft = Draft::born(run, birth, at);
    draft.proceed();
    Ok(draft.finish())
}

/// Takes a reading of the issue; the second opens the plan's gate, later ones ask again where anything changed (S-50).
pub(super) fn issue_read(draft: &mut Draft<'_>, issue: &IssueSnapshot) {
    match draft.run().phase.clone() {
        Phase::Pending(SetUp::ReadingIssue) if !issue.open => {
            ending::fail(
                draft,
                EndReason::SetUpImpossible {
                    why: format!("issue {} is closed", issue.number),
                },
            );
        }
        Phase::Pending(SetUp::ReadingIssue) => draft.record(Event::IssueSnapshotted { issue: issue.clone() }),
        Phase::Planning(Planning {
            step: PlanningStep::Confirming { plan, review },
            ..
        }) => {
            let changed = draft.run().issue.as_ref() != Some(issue);
            if changed {
                draft.record(Event::IssueSnapshotted { issue: issue.clone() });
            }
            proposal::propose_plan(draft, &plan, &review);
            if changed && issue.open {
                draft.say(speech::issue_changed_since_planning());
            }
            hold_if_closed(draft, issue);
        }
        Phase::AwaitingPlanApproval(waiting)
            if waiting.issue.artifact.digest != issue.artifact.digest || waiting.issue.open != issue.open =>
        {
            let gate = proposal::plan_gate(draft, &waiting.plan, &waiting.review, issue);
            draft.record(Event::GateReopened {
                gate,
                issue: issue.clone(),
            });
            if issue.open {
                draft.say(speech::plan_asks_again());
            }
            hold_if_closed(draft, issue);
        }
        Phase::Pending(SetUp::PreparingWorkspace)
        | Phase::Planning(_)
        | Phase::AwaitingPlanApproval(_)
        | Phase::Executing(_)
        | Phase::Proposing(_)
        | Phase::AwaitingMerge(_)
        | Phase::Completed
        | Phase::Cancelled { .. }
        | Phase::Failed { .. } => draft.note("the issue was read again; what was approved stays as it was"),
    }
}

/// Holds a run whose issue was closed while its plan waited.
///
/// Closing an issue is not among what ends a run (RUN-1, RUN-10), and it may be a slip; but nobody should approve the
/// plan without noticing. A person reopens it, calls the run off, or says `retry` to go on all the same: the gate has
/// seen the issue closed, so that the next look does not hold the run again.
fn hold_if_closed(draft: &mut Draft<'_>, issue: &IssueSnapshot) {
    if !issue.open {
        draft.hold(Hold::Failure {
            reason: format!("issue {} was closed while its plan waited", issue.number),
        });
    }
}

/// Hears that the issue cannot be read any more: without it nothing can begin, and nothing be approved (RUN-1).
pub(super) fn issue_unavailable(draft: &mut Draft<'_>, problem: IssueProblem) {
    match &draft.run().phase {
        Phase::Pending(_) => ending::fail(
            draft,
            EndReason::SetUpImpossible {
                why: problem.to_string(),
            },
        ),
        // As with a closed issue a person decides; `retry` looks again.
        Phase::Planning(_) | Phase::AwaitingPlanApproval(_) => {
            let hold = Hold::Failure {
                reason: format!("the plan waits, but {problem}"),
            };
            if draft.run().holds.get(HoldKind::Failure) == Some(&hold) {
                draft.note(format!("the issue could not be read again: {problem}"));
            } else {
                draft.hold(hold);
            }
        }
        Phase::Executing(_)
        | Phase::Proposing(_)
        | Phase::AwaitingMerge(_)
        | Phase::Completed
        | Phase::Cancelled { .. }
        | Phase::Failed { .. } => draft.note(format!("the issue could not be read again: {problem}")),
    }
}

pub(super) fn workspace_prepared(draft: &mut Draft<'_>, base: &CommitId) {
    draft.record(Event::WorkspacePrepared { base: base.clone() });
    draft.record(Event::PlanningBegan { feedback: vec![] });
    draft.say(speech::run_started(draft.run(), base));
}
