//! How a run begins: it is asked for, its issue is read, its workspace is made, planning begins (RUN-5).
//!
//! This module does not know projects and registrations: the door has resolved them into the spec.

use crate::decide::draft::Draft;
use crate::decide::{Context, Decision, ending, speech};
use crate::event::Event;
use crate::evolve::evolve;
use crate::forge::IssueSnapshot;
use crate::id::CommitId;
use crate::phase::{EndReason, Phase, SetUp};
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

pub(super) fn issue_read(draft: &mut Draft<'_>, issue: &IssueSnapshot) {
    match &draft.run().phase {
        Phase::Pending(SetUp::ReadingIssue) if !issue.open => {
            ending::fail(
                draft,
                EndReason::SetUpImpossible {
                    why: format!("issue {} is closed", issue.number),
                },
            );
        }
        Phase::Pending(SetUp::ReadingIssue) => draft.record(Event::IssueSnapshotted { issue: issue.clone() }),
        Phase::AwaitingPlanApproval(waiting) if waiting.issue.artifact.digest != issue.artifact.digest => {
            let gate =
                super::proposal::plan_gate(draft, &waiting.plan.clone(), &waiting.review.clone(), issue);
            draft.record(Event::GateReopened {
                gate,
                issue: issue.clone(),
            });
            draft.say(speech::plan_asks_again());
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

pub(super) fn workspace_prepared(draft: &mut Draft<'_>, base: &CommitId) {
    draft.record(Event::WorkspacePrepared { base: base.clone() });
    draft.record(Event::PlanningBegan { feedback: vec![] });
    draft.say(speech::run_started(draft.run(), base));
}
