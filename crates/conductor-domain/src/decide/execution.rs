//! How a plan is carried out: commit, test, interpret, review, and start over until it holds or the limit is reached.
//!
//! Only exit codes that Conductor saw itself decide (RUN-8). This module does not know how tests are run.

use crate::artifact::Artifact;
use crate::decide::draft::Draft;
use crate::decide::speech;
use crate::event::Event;
use crate::hold::Hold;
use crate::id::CommitId;
use crate::phase::{AfterTests, Executing, ExecutingStep, Phase};
use crate::plan::{Review, TestReport, Verdict};
use crate::refusal::Refusal;
use crate::run::Run;
use crate::spec::RedFirst;
use crate::testing::{Ending, RedFirstOutcome, TestRun};

pub(super) fn committed(
    draft: &mut Draft<'_>,
    commit: &CommitId,
    tree: &CommitId,
    change: Option<&Artifact>,
) {
    draft.record(Event::WorkCommitted {
        commit: commit.clone(),
        tree: tree.clone(),
        change: change.cloned(),
    });
    draft.record(Event::TestingBegan {
        commit: commit.clone(),
        then: AfterTests::Review,
    });
}

/// Judges what is there when the Implementer changed nothing more: nothing at all is a failed attempt, work of an
/// earlier attempt is tested as it stands, because what failed may have been the environment. A change that may not leave is
/// not tried again: who takes all of it out has nothing.
pub(super) fn nothing_committed(draft: &mut Draft<'_>) {
    draft.note("the Implementer changed nothing");
    let is_barred = executing(draft.run()).is_some_and(|executing| executing.barred.is_some());
    let work = draft
        .run()
        .workspace
        .clone()
        .filter(|workspace| workspace.head != workspace.base && !is_barred);
    if let Some(workspace) = work {
        draft.record(Event::TestingBegan {
            commit: workspace.head,
            then: AfterTests::Review,
        });
        return;
    }
    let feedback = executing(draft.run())
        .map(|executing| executing.feedback.clone())
        .unwrap_or_default();
    attempt_failed(draft, feedback, "the Implementer changed nothing");
}

pub(super) fn tests_ran(draft: &mut Draft<'_>, tests: &TestRun) -> Result<(), Refusal> {
    let Some(ExecutingStep::Testing { then }) =
        executing(draft.run()).map(|executing| executing.step.clone())
    else {
        draft.note("a test run of an earlier step ended");
        return Ok(());
    };
    let head = draft.run().workspace.as_ref().map(|workspace| &workspace.head);
    if head != Some(&tests.commit) || tests.command != draft.run().spec.test_command {
        return Err(Refusal::ReportDoesNotFit { effect: "run_tests" });
    }
    if tests.ending == Ending::Lost && !draft.run().counters.environment_recreated {
        draft.record(Event::EnvironmentRecreated {
            reason: tests.describe(),
        });
        return Ok(());
    }
    draft.record(Event::TestsRan {
        tests: tests.clone(),
        then,
    });
    match &tests.ending {
        // RUN-12: what ran out of time is for a human, like what could not be run.
        Ending::Lost | Ending::NotRun { .. } | Ending::TimedOut => {
            draft.hold(Hold::Failure {
                reason: tests.describe(),
            });
            return Ok(());
        }
        Ending::Exited { .. } | Ending::Signalled { .. } | Ending::LimitExceeded { .. } => {}
    }
    if tests.has_passed() {
        match (then, draft.run().spec.limits.red_first) {
            (AfterTests::Propose, _) => draft.record(Event::ProposalBegan { tests: tests.clone() }),
            (AfterTests::Review, RedFirst::Off) => {}
            (AfterTests::Review, RedFirst::Record | RedFirst::Require) => {
                draft.record(Event::RedFirstBegan { tests: tests.clone() });
            }
        }
    }
    Ok(())
}

pub(super) fn red_first_checked(draft: &mut Draft<'_>, outcome: &RedFirstOutcome) {
    let feedback = executing(draft.run())
        .map(|executing| executing.feedback.clone())
        .unwrap_or_default();
    draft.record(Event::RedFirstChecked {
        outcome: outcome.clone(),
    });
    if draft.run().spec.limits.red_first == RedFirst::Require && *outcome == RedFirstOutcome::PassedOnBase {
        attempt_failed(
            draft,
            feedback,
            "the new tests pass on the base too, so they prove nothing",
        );
    }
}

/// Takes the Tester's words; what they claim changes nothing, a contradiction is recorded.
pub(super) fn interpreted(draft: &mut Draft<'_>, report: Option<&TestReport>) {
    let Some(ExecutingStep::Interpreting { tests }) =
        executing(draft.run()).map(|executing| executing.step.clone())
    else {
        return;
    };
    let contradicts = report.is_some_and(|report| report.contradicts(&tests));
    draft.record(Event::TestsInterpreted {
        report: report.cloned(),
        contradicts,
    });
    if tests.has_passed() {
        draft.say(speech::tested(&tests, report));
        draft.record(Event::ImplementationReviewBegan { tests });
    } else {
        let feedback = [tests.output.clone()]
            .into_iter()
            .chain(report.map(|report| report.artifact.clone()))
            .collect();
        attempt_failed(draft, feedback, &tests.describe());
    }
}

pub(super) fn reviewed(draft: &mut Draft<'_>, review: &Review) {
    let Some(ExecutingStep::Reviewing { tests }) =
        executing(draft.run()).map(|executing| executing.step.clone())
    else {
        return;
    };
    draft.record(Event::ImplementationReviewed {
        review: review.clone(),
    });
    match review.verdict {
        Verdict::Approve => {
            draft.say(speech::reviewed(review));
            let heard = &draft.run().heard;
            // A hint is enough: what moves the work looks for itself, and leaves it where it is if nothing moved.
            if heard.base_moved.is_some() || heard.base_announced {
                draft.record(Event::RebaseBegan);
            } else {
                draft.record(Event::ProposalBegan { tests });
            }
        }
        Verdict::Reject => {
            attempt_failed(
                draft,
                vec![review.artifact.clone()],
                "the reviewer rejected the implementation",
            );
        }
    }
}

/// Tests the moved work anew; its review stays good, because only the base changed (BEY-3).
///
/// Work of which nothing is left is for a human: to propose it would empty the pull request, and put Conductor's check on
/// somebody else's commit.
pub(super) fn rebased(draft: &mut Draft<'_>, base: &CommitId, head: &CommitId, change: Option<&Artifact>) {
    draft.record(Event::WorkRebased {
        base: base.clone(),
        head: head.clone(),
        change: change.cloned(),
    });
    if head == base {
        draft.hold(Hold::Failure {
            reason: "the base branch holds all of this change already".to_owned(),
        });
        return;
    }
    draft.record(Event::TestingBegan {
        commit: head.clone(),
        then: AfterTests::Propose,
    });
}

pub(super) fn rebase_conflicted(draft: &mut Draft<'_>, feedback: &Artifact) {
    attempt_failed(
        draft,
        vec![feedback.clone()],
        "the work conflicts with the base branch",
    );
}

/// Lets the Implementer start over, up to the limit. The first failure is told, middle ones are on the page (RUN-12).
fn attempt_failed(draft: &mut Draft<'_>, feedback: Vec<Artifact>, why: &str) {
    let Some(retries) = executing(draft.run()).map(|executing| executing.retries) else {
        return;
    };
    // Kept before the hold, so that a retry answers to the newest failure.
    draft.record(Event::AttemptFailed {
        retries: retries + 1,
        feedback,
    });
    if retries >= draft.run().spec.limits.implementation_retries {
        draft.hold(Hold::Failure {
            reason: format!("attempt {} failed: {why}", retries + 1),
        });
    } else if retries == 0 {
        draft.say(speech::first_failure(why));
    }
}

fn executing(run: &Run) -> Option<&Executing> {
    match &run.phase {
        Phase::Executing(executing) => Some(executing),
        Phase::Pending(_)
        | Phase::Planning(_)
        | Phase::AwaitingPlanApproval(_)
        | Phase::Proposing(_)
        | Phase::AwaitingMerge(_)
        | Phase::Completed
        | Phase::Cancelled { .. }
        | Phase::Failed { .. } => None,
    }
}
