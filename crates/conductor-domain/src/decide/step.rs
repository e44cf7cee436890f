//! What the run's own work needs next, as a function of where it stands; nothing else asks for work.
//!
//! This module does not know how the run got here.

use crate::artifact::Artifact;
use crate::decide::speech;
use crate::effect::Effect;
use crate::invocation::{Invocation, Purpose, Source};
use crate::phase::{
    Executing, ExecutingStep, Phase, Planning, PlanningStep, Proposing, ProposingStep, SetUp, Workspace,
};
use crate::run::Run;
use crate::skill::listing_of;

/// Returns the effect that moves the run on from where it stands; none where it waits for people.
pub(super) fn next_effect(run: &Run) -> Option<Effect> {
    match &run.phase {
        Phase::Pending(SetUp::ReadingIssue) => Some(Effect::ReadIssue {
            issue: run.spec.issue,
        }),
        Phase::Pending(SetUp::PreparingWorkspace) => Some(Effect::PrepareWorkspace {
            branch: run.spec.branch(),
        }),
        Phase::Planning(planning) => plan(run, planning),
        Phase::Executing(executing) => execute(run, executing, run.workspace.as_ref()?),
        Phase::Proposing(proposing) => propose(run, proposing, run.workspace.as_ref()?),
        Phase::AwaitingMerge(waiting) => {
            let head = waiting.merging.clone()?;
            Some(Effect::MergePullRequest {
                number: waiting.pull_request.number,
                head,
                base: run.workspace.as_ref()?.base.clone(),
            })
        }
        Phase::AwaitingPlanApproval(_)
        | Phase::Completed
        | Phase::Cancelled { .. }
        | Phase::Failed { .. } => None,
    }
}

fn plan(run: &Run, planning: &Planning) -> Option<Effect> {
    let issue = run.issue.iter().map(|issue| issue.artifact.clone());
    let context = issue.chain(planning.feedback.iter().chain(&planning.asked).cloned());
    match &planning.step {
        PlanningStep::Confirming { .. } => Some(Effect::ReadIssue {
            issue: run.spec.issue,
        }),
        PlanningStep::Drafting => {
            let commit = run.workspace.as_ref()?.head.clone();
            let sources = vec![Source::Files { commit }, Source::PastPullRequests];
            invoke(run, Purpose::Plan, context.collect(), sources)
        }
        // What is to be judged comes last, after the drafts that were sent back and why.
        PlanningStep::Reviewing { plan } => {
            let context = context.chain([plan.artifact.clone()]);
            invoke(run, Purpose::ReviewPlan, context.collect(), vec![])
        }
    }
}

fn execute(run: &Run, executing: &Executing, workspace: &Workspace) -> Option<Effect> {
    let plan = &executing.approved.plan.artifact;
    let asked = [&executing.approved.issue.artifact, plan]
        .into_iter()
        .chain(&executing.approved.demands)
        .chain(&executing.feedback)
        .cloned();
    match &executing.step {
        ExecutingStep::Implementing => {
            // Later attempts go on from the work of earlier ones.
            let earlier = (workspace.head != workspace.base).then(|| change(workspace));
            let barred = executing.barred.as_ref().map(|barred| Source::Barred {
                reason: barred.reason.clone(),
            });
            let sources = earlier.into_iter().chain(barred).collect();
            invoke(run, Purpose::Implement, asked.collect(), sources)
        }
        ExecutingStep::Committing => Some(Effect::CommitWork {
            branch: run.spec.branch(),
            parent: workspace.head.clone(),
            onto: executing.barred.as_ref().map(|barred| barred.onto.clone()),
            message: speech::commit_message(run, &executing.approved),
        }),
        ExecutingStep::Rebasing => Some(Effect::Rebase {
            branch: run.spec.branch(),
            base: workspace.base.clone(),
            head: workspace.head.clone(),
        }),
        ExecutingStep::Testing { .. } => Some(Effect::RunTests {
            commit: workspace.head.clone(),
            command: run.spec.test_command.clone(),
            time: run.spec.limits.test_time,
            executor: run.spec.executor,
        }),
        ExecutingStep::CheckingRedFirst { .. } => Some(Effect::CheckRedFirst {
            base: workspace.base.clone(),
            head: workspace.head.clone(),
            command: run.spec.test_command.clone(),
        }),
        ExecutingStep::Interpreting { tests } => {
            let context = vec![plan.clone(), tests.output.clone()];
            invoke(run, Purpose::InterpretTests, context, vec![change(workspace)])
        }
        ExecutingStep::Reviewing { tests } => {
            let context = asked.chain([tests.output.clone()]);
            let sources = vec![change(workspace)];
            invoke(run, Purpose::ReviewImplementation, context.collect(), sources)
        }
    }
}

/// All that the run has changed, as it stands in the commit that is tested, reviewed and pushed.
fn change(workspace: &Workspace) -> Source {
    Source::Diff {
        from: workspace.base.clone(),
        to: workspace.head.clone(),
    }
}

fn propose(run: &Run, proposing: &Proposing, workspace: &Workspace) -> Option<Effect> {
    match &proposing.step {
        ProposingStep::Inspecting => Some(Effect::InspectDiff {
            base: workspace.base.clone(),
            head: workspace.head.clone(),
        }),
        ProposingStep::AwaitingApproval { .. } => None,
        ProposingStep::Pushing => Some(Effect::Push {
            branch: run.spec.branch(),
            commit: workspace.head.clone(),
            expected: workspace.pushed.clone(),
        }),
        ProposingStep::OpeningPullRequest => Some(Effect::OpenPullRequest {
            branch: run.spec.branch(),
            title: speech::pull_request_title(&proposing.approved),
            message: Box::new(speech::pull_request(run, proposing)),
        }),
        ProposingStep::PublishingCheck => Some(Effect::PublishCheck {
            head: workspace.head.clone(),
            title: "Planned, approved, implemented, tested, reviewed".to_owned(),
            summary: speech::check_summary(run, proposing),
            notes: run.check_notes.clone(),
        }),
    }
}

fn invoke(run: &Run, purpose: Purpose, mut context: Vec<Artifact>, sources: Vec<Source>) -> Option<Effect> {
    context.extend(run.approved_calls.iter().map(|wish| wish.text.clone()));
    let chances = run
        .counters
        .invocations
        .get(&purpose)
        .copied()
        .unwrap_or_default();
    let role = purpose.role();
    let skills = listing_of(&run.spec.skills, role).map(|_told| Source::Skills);
    Some(Effect::Invoke {
        invocation: Box::new(Invocation {
            role,
            purpose,
            attempt: chances + 1,
            start: run.workspace.as_ref()?.head.clone(),
            context,
            sources: skills.into_iter().chain(sources).collect(),
            agents: run.spec.agents.clone(),
            executor: run.spec.executor,
            limits: run.spec.limits.invocation.clone(),
            approved: run.approved_calls.iter().map(|wish| wish.call.clone()).collect(),
        }),
    })
}
