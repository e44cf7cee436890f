//! The laws of a run, as predicates with names: the same ones hold in property tests, in the simulator, and are
//! counted in production.
//!
//! This module does not know how a law could be broken.

use crate::effect::EffectKind;
use crate::gate::{CallGate, call_subject};
use crate::hold::HoldKind;
use crate::phase::Phase;
use crate::plan::plan_subject;
use crate::run::Run;

/// A law that a run breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BrokenLaw {
    /// LAW-1.
    #[error("LAW-1: at most one effect of the run's own work is under way")]
    OneWorkAtATime,
    /// LAW-2.
    #[error("LAW-2: a run that waits for nobody has work under way")]
    NeverStuck,
    /// LAW-3.
    #[error("LAW-3: an ended run is held by nothing, and gives everything back")]
    EndsClean,
    /// LAW-4.
    #[error("LAW-4: a gate is bound to exactly what it shows")]
    GatesAreBound,
    /// LAW-5.
    #[error("LAW-5: a run past its set-up has an issue and a workspace")]
    HasGround,
    /// LAW-6.
    #[error("LAW-6: a run that awaits its merge has pushed what was tested")]
    ProposesWhatWasTested,
    /// LAW-7.
    #[error("LAW-7: nothing is under way for a run that was cleaned up but words to people")]
    NothingAfterCleanUp,
}

type Law = (BrokenLaw, fn(&Run) -> bool);

/// Returns the first law that the run breaks.
pub fn broken_law(run: &Run) -> Option<BrokenLaw> {
    let laws: [Law; 7] = [
        (BrokenLaw::OneWorkAtATime, one_work_at_a_time),
        (BrokenLaw::NeverStuck, never_stuck),
        (BrokenLaw::EndsClean, ends_clean),
        (BrokenLaw::GatesAreBound, gates_are_bound),
        (BrokenLaw::HasGround, has_ground),
        (BrokenLaw::ProposesWhatWasTested, proposes_what_was_tested),
        (BrokenLaw::NothingAfterCleanUp, nothing_after_clean_up),
    ];
    laws.into_iter()
        .find(|(_, holds)| !holds(run))
        .map(|(law, _)| law)
}

fn one_work_at_a_time(run: &Run) -> bool {
    run.in_flight
        .values()
        .filter(|effect| effect.kind.is_work())
        .count()
        <= 1
}

fn never_stuck(run: &Run) -> bool {
    let waits_for_people = run.gate().is_some() || matches!(run.phase, Phase::AwaitingMerge(_));
    run.phase.is_terminal() || run.is_parked() || waits_for_people || run.work_in_flight().is_some()
}

fn ends_clean(run: &Run) -> bool {
    if !run.phase.is_terminal() {
        return !run.cleaned_up;
    }
    let is_cleaning = run
        .in_flight
        .values()
        .any(|effect| effect.kind == EffectKind::CleanUp);
    run.holds.is_empty()
        && (run.cleaned_up || is_cleaning || run.clean_up_failed.is_some() || run.work_in_flight().is_some())
}

fn gates_are_bound(run: &Run) -> bool {
    let is_bound = |call: &CallGate| {
        let (policy, asked_at) = (&run.spec.policy, call.gate.opened_at);
        call.gate.subject == call_subject(&call.wish, policy, asked_at, run.calls_asked)
            && run.holds.get(HoldKind::Policy).is_some()
    };
    if !run.call.as_deref().is_none_or(is_bound) {
        return false;
    }
    match &run.phase {
        Phase::AwaitingPlanApproval(waiting) => {
            waiting.gate.subject
                == plan_subject(
                    &waiting.plan.artifact,
                    &waiting.review.artifact,
                    &waiting.issue.artifact,
                    &run.spec.policy,
                    waiting.gate.opened_at,
                )
        }
        Phase::Pending(_)
        | Phase::Planning(_)
        | Phase::Executing(_)
        | Phase::Proposing(_)
        | Phase::AwaitingMerge(_)
        | Phase::Completed
        | Phase::Cancelled { .. }
        | Phase::Failed { .. } => true,
    }
}

fn has_ground(run: &Run) -> bool {
    match run.phase {
        Phase::Planning(_)
        | Phase::AwaitingPlanApproval(_)
        | Phase::Executing(_)
        | Phase::Proposing(_)
        | Phase::AwaitingMerge(_) => run.issue.is_some() && run.workspace.is_some(),
        Phase::Pending(_) | Phase::Completed | Phase::Cancelled { .. } | Phase::Failed { .. } => true,
    }
}

fn proposes_what_was_tested(run: &Run) -> bool {
    match &run.phase {
        Phase::AwaitingMerge(waiting) => run.workspace.as_ref().is_some_and(|workspace| {
            waiting.tests.has_passed()
                && waiting.tests.commit == workspace.head
                && workspace.pushed.as_ref() == Some(&workspace.head)
        }),
        Phase::Proposing(proposing) => run.workspace.as_ref().is_some_and(|workspace| {
            proposing.tests.has_passed() && proposing.tests.commit == workspace.head
        }),
        Phase::Pending(_)
        | Phase::Planning(_)
        | Phase::AwaitingPlanApproval(_)
        | Phase::Executing(_)
        | Phase::Completed
        | Phase::Cancelled { .. }
        | Phase::Failed { .. } => true,
    }
}

fn nothing_after_clean_up(run: &Run) -> bool {
    !run.cleaned_up
        || run.in_flight.values().all(|effect| match effect.kind {
            EffectKind::PostComment
            | EffectKind::UpdateFields
            | EffectKind::ReadPullRequest
            | EffectKind::ClosePullRequest => true,
            EffectKind::ReadIssue
            | EffectKind::PrepareWorkspace
            | EffectKind::Invoke
            | EffectKind::CommitWork
            | EffectKind::RunTests
            | EffectKind::CheckRedFirst
            | EffectKind::Rebase
            | EffectKind::InspectDiff
            | EffectKind::Push
            | EffectKind::OpenPullRequest
            | EffectKind::PublishCheck
            | EffectKind::MergePullRequest
            | EffectKind::CleanUp => false,
        })
}
