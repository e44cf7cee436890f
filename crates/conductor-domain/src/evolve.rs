//! Folds an event into a run: total, cannot fail, asks nothing.
//!
//! An event that does not fit where the run stands changes nothing; `decide` never makes one, and the laws in
//! `invariant` would say so. This module does not know why anything happened.

use crate::artifact::Artifact;
use crate::board::OwnFields;
use crate::diff::Weighed;
use crate::effect::EffectKind;
use crate::event::Event;
use crate::gate::{CallGate, GateKind};
use crate::hold::Holds;
use crate::phase::{
    ApprovedPlan, AwaitingMerge, Executing, ExecutingStep, Phase, PlanGate, Planning, PlanningStep,
    Proposing, ProposingStep, SetUp, Workspace,
};
use crate::plan::Verdict;
use crate::run::{Counters, Heard, InFlight, Run};
use crate::spec::RunSpec;
use crate::testing::TestRun;
use crate::throttle::Throttle;

/// Folds an event into a run; there is none before `RunStarted`.
pub fn evolve(run: Option<Run>, event: &Event) -> Option<Run> {
    match (run, event) {
        (None, Event::RunStarted { spec }) => Some(born(spec)),
        (None, _) => None,
        (Some(mut run), event) => {
            apply(&mut run, event);
            Some(run)
        }
    }
}

fn born(spec: &RunSpec) -> Run {
    Run {
        spec: spec.clone(),
        priority: spec.priority,
        phase: Phase::Pending(SetUp::ReadingIssue),
        holds: Holds::default(),
        issue: None,
        workspace: None,
        pull_request: None,
        in_flight: std::collections::BTreeMap::default(),
        counters: Counters::default(),
        throttle: Throttle::default(),
        heard: Heard::default(),
        reminded_at: None,
        cleaned_up: false,
        clean_up_failed: None,
        call: None,
        calls_asked: 0,
        approved_calls: vec![],
        reliefs: vec![],
        check_notes: vec![],
        fields_wanted: OwnFields::default(),
    }
}

fn apply(run: &mut Run, event: &Event) {
    match event {
        Event::IssueSnapshotted { issue } => {
            run.issue = Some(issue.clone());
            if run.phase == Phase::Pending(SetUp::ReadingIssue) {
                run.phase = Phase::Pending(SetUp::PreparingWorkspace);
            }
        }
        Event::WorkspacePrepared { base } => {
            run.workspace = Some(Workspace {
                base: base.clone(),
                head: base.clone(),
                pushed: None,
            });
        }
        Event::PlanningBegan { feedback } => {
            start_counting(run);
            run.phase = Phase::Planning(Planning {
                revisions: 0,
                asked: run.phase.asked_of_the_plan(),
                feedback: feedback.clone(),
                step: PlanningStep::Drafting,
            });
        }
        Event::PlanDrafted { plan } => {
            run.counters.agent_failures = 0;
            run.approved_calls.clear();
            planning(run, |planning| {
                planning.step = PlanningStep::Reviewing { plan: plan.clone() }
            });
        }
        Event::PlanSentBack { plan, feedback } => planning(run, |planning| {
            planning.revisions += 1;
            planning.feedback.extend(plan.clone());
            planning.feedback.push(feedback.clone());
            planning.step = PlanningStep::Drafting;
        }),
        Event::PlanProposed {
            gate,
            plan,
            review,
            issue,
        } => {
            run.phase = Phase::AwaitingPlanApproval(PlanGate {
                gate: gate.clone(),
                plan: plan.clone(),
                review: review.clone(),
                issue: issue.clone(),
                asked: run.phase.asked_of_the_plan(),
            });
        }
        Event::GateReopened { gate, issue } => {
            run.issue = Some(issue.clone());
            if let Phase::AwaitingPlanApproval(waiting) = &mut run.phase {
                waiting.gate = gate.clone();
                waiting.issue = issue.clone();
            }
        }
        Event::ExecutionBegan { by } => {
            if let Phase::AwaitingPlanApproval(waiting) = &run.phase {
                let approved = ApprovedPlan {
                    plan: waiting.plan.clone(),
                    issue: waiting.issue.clone(),
                    by: by.clone(),
                    demands: vec![],
                };
                start_counting(run);
                run.phase = Phase::Executing(Executing::at(ExecutingStep::Implementing, approved, 0));
            }
        }
        Event::ReworkBegan {
            feedback,
            demands,
            barred,
        } => {
            if let Some((mut approved, _)) = run.phase.carried() {
                approved.demands.extend(demands.iter().cloned());
                start_counting(run);
                run.phase = Phase::Executing(Executing {
                    feedback: feedback.clone(),
                    barred: barred.clone(),
                    ..Executing::at(ExecutingStep::Implementing, approved, 0)
                });
            }
        }
        Event::ImplementationFinished => {
            run.counters.agent_failures = 0;
            run.approved_calls.clear();
            executing(run, |executing| executing.step = ExecutingStep::Committing);
        }
        Event::WorkCommitted { commit, .. } => {
            if let Some(workspace) = &mut run.workspace {
                workspace.head = commit.clone();
            }
            executing(run, |executing| executing.barred = None);
        }
        Event::RebaseBegan => {
            if let Some((approved, retries)) = run.phase.carried() {
                run.phase = Phase::Executing(Executing::at(ExecutingStep::Rebasing, approved, retries));
            }
        }
        Event::WorkRebased { base, head, .. } => {
            run.heard.base_moved = None;
            run.heard.base_announced = false;
            if let Some(workspace) = &mut run.workspace {
                workspace.base = base.clone();
                workspace.head = head.clone();
            }
        }
        Event::TestingBegan { then, .. } => {
            executing(run, |executing| {
                executing.step = ExecutingStep::Testing { then: *then }
            });
        }
        Event::TestsRan { tests, .. } => interpreting(run, tests),
        Event::RedFirstBegan { tests } => {
            executing(run, |executing| {
                executing.step = ExecutingStep::CheckingRedFirst { tests: tests.clone() }
            });
        }
        Event::RedFirstChecked { .. } => {
            if let Phase::Executing(Executing {
                step: ExecutingStep::CheckingRedFirst { tests },
                ..
            }) = &run.phase
            {
                let tests = tests.clone();
                interpreting(run, &tests);
            }
        }
        Event::ImplementationReviewBegan { tests } => {
            executing(run, |executing| {
                executing.step = ExecutingStep::Reviewing { tests: tests.clone() }
            });
        }
        Event::PlanReviewed { review } => {
            run.counters.agent_failures = 0;
            run.approved_calls.clear();
            planning(run, |planning| {
                if let (PlanningStep::Reviewing { plan }, Verdict::Approve) = (&planning.step, review.verdict)
                {
                    planning.step = PlanningStep::Confirming {
                        plan: plan.clone(),
                        review: review.clone(),
                    };
                }
            });
        }
        Event::TestsInterpreted { .. } | Event::ImplementationReviewed { .. } => {
            run.counters.agent_failures = 0;
            run.approved_calls.clear();
        }
        Event::AttemptFailed { retries, feedback } => {
            run.check_notes.clear();
            executing(run, |executing| {
                executing.retries = *retries;
                executing.feedback.clone_from(feedback);
                executing.step = ExecutingStep::Implementing;
            });
        }
        Event::ProposalBegan { tests } => {
            if let Some((approved, retries)) = run.phase.carried() {
                run.phase = Phase::Proposing(Proposing {
                    approved,
                    tests: tests.clone(),
                    retries,
                    weighed: None,
                    step: ProposingStep::Inspecting,
                });
            }
        }
        Event::DiffInspected { inspection } => proposing(run, |proposing| {
            let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
            proposing.weighed = Some(Weighed {
                class: inspection.class,
                files: count(inspection.files.len()),
                findings: count(inspection.findings.len()),
                retries: proposing.retries,
            });
        }),
        Event::DiffGateOpened { gate, inspection } => proposing(run, |proposing| {
            proposing.step = ProposingStep::AwaitingApproval {
                gate: gate.clone(),
                inspection: Box::new(inspection.clone()),
            };
        }),
        Event::DiffCleared => proposing(run, |proposing| proposing.step = ProposingStep::Pushing),
        Event::Pushed { commit } => {
            if let Some(workspace) = &mut run.workspace {
                workspace.pushed = Some(commit.clone());
            }
            let next = match &mut run.pull_request {
                Some(pull_request) => {
                    pull_request.head = commit.clone();
                    ProposingStep::PublishingCheck
                }
                None => ProposingStep::OpeningPullRequest,
            };
            proposing(run, |proposing| proposing.step = next);
        }
        Event::PullRequestOpened { pull_request } => {
            run.pull_request = Some(pull_request.clone());
            proposing(run, |proposing| proposing.step = ProposingStep::PublishingCheck);
        }
        Event::MergeAwaited => {
            run.heard.base_announced = false;
            if let (Phase::Proposing(proposing), Some(pull_request)) = (&run.phase, &run.pull_request) {
                run.phase = Phase::AwaitingMerge(AwaitingMerge {
                    approved: proposing.approved.clone(),
                    tests: proposing.tests.clone(),
                    pull_request: pull_request.clone(),
                    weighed: proposing.weighed,
                    merging: None,
                    feedback: vec![],
                });
            }
        }
        Event::MergeBegan { head, .. } => awaiting_merge(run, |waiting| {
            waiting.merging = Some(head.clone());
        }),
        Event::MergeEnded { head, .. } => {
            run.heard.merge_tried = Some(head.clone());
            awaiting_merge(run, |waiting| waiting.merging = None);
        }
        Event::ChangesRequested { review } => {
            run.heard.reviews.insert(review.id);
            awaiting_merge(run, |waiting| waiting.feedback.push(review.feedback.clone()));
        }
        Event::ReviewSetAside { review } => {
            run.heard.reviews.insert(review.id);
        }
        Event::ChecksFailed { head, feedback, .. } => {
            run.heard.failed_checks = Some(head.clone());
            awaiting_merge(run, |waiting| waiting.feedback.extend(feedback.clone()));
        }
        Event::BaseMoved { head } => run.heard.base_moved = Some(head.clone()),
        Event::BaseAnnounced => run.heard.base_announced = true,
        Event::RunCompleted => end(run, Phase::Completed),
        Event::RunCancelled { reason } => end(
            run,
            Phase::Cancelled {
                reason: reason.clone(),
            },
        ),
        Event::RunFailed { reason } => end(
            run,
            Phase::Failed {
                reason: reason.clone(),
            },
        ),
        Event::CleanedUp { .. } => run.cleaned_up = true,
        Event::CleanUpFailed { reason } => run.clean_up_failed = Some(reason.clone()),
        Event::PullRequestMerged { other_head, .. } => run.heard.merged_other.clone_from(other_head),
        Event::HoldPlaced { hold } => run.holds.place(hold.clone()),
        Event::HoldReleased { kind } => run.holds.release(*kind),
        Event::QuestionAnswered { answer, .. } => answered(run, answer),
        Event::PhaseRetried { .. } => {
            start_counting(run);
            run.clean_up_failed = None;
        }
        Event::Reprioritized { priority } => run.priority = *priority,
        Event::ReliefGranted { relief } => run.reliefs.push(relief.clone()),
        Event::ReliefRevoked { number, by } => {
            for relief in run.reliefs.iter_mut().filter(|relief| relief.number == *number) {
                relief.revoked_by = Some(by.clone());
            }
        }
        Event::InvocationEnded { purpose, counts, .. } => {
            if *counts {
                *run.counters.invocations.entry(*purpose).or_default() += 1;
            }
        }
        Event::AgentFailed { failures, .. } => run.counters.agent_failures = *failures,
        Event::Interrupted { interruptions, .. } => run.counters.interruptions = *interruptions,
        Event::EffectRequested {
            effect,
            kind,
            must_be_heard,
            digest: _,
        } => {
            if *kind == EffectKind::UpdateFields {
                run.fields_wanted = OwnFields::default();
            }
            run.in_flight.insert(
                effect.clone(),
                InFlight {
                    kind: *kind,
                    stopping: false,
                    must_be_heard: *must_be_heard,
                    overdue: None,
                },
            );
        }
        Event::EffectRetryScheduled {
            effect,
            reason,
            overdue,
            ..
        } => {
            if let Some(in_flight) = run.in_flight.get_mut(effect) {
                in_flight.overdue = overdue.then(|| reason.clone());
            }
        }
        Event::EffectSettled { effect } => {
            if run
                .in_flight
                .remove(effect)
                .is_some_and(|settled| settled.kind.is_work())
            {
                run.counters.interruptions = 0;
            }
        }
        Event::EffectStopRequested { effect } => {
            if let Some(in_flight) = run.in_flight.get_mut(effect) {
                in_flight.stopping = true;
            }
        }
        Event::EnvironmentRecreated { .. } => run.counters.environment_recreated = true,
        Event::MessageSent { at } => run.throttle.charge(*at),
        Event::MessageDeferred { message } => run.throttle.deferred.push((**message).clone()),
        Event::MessagesFlushed { .. } => run.throttle.deferred.clear(),
        Event::CheckNoted { note } => {
            run.check_notes.retain(|earlier| earlier.role != note.role);
            run.check_notes.push(note.clone());
        }
        Event::FieldsWanted { fields, role: _ } => run.fields_wanted.renew(fields),
        Event::Reminded { at } => run.reminded_at = Some(*at),
        Event::CallGateOpened { gate, wish } => {
            run.calls_asked = run.calls_asked.saturating_add(1);
            run.call = Some(Box::new(CallGate {
                gate: gate.clone(),
                wish: wish.clone(),
            }));
        }
        Event::GateApproved { kind, .. } => {
            if *kind == GateKind::Call {
                run.approved_calls.extend(run.call.take().map(|call| call.wish));
            }
        }
        Event::GateRevised { kind, feedback, .. } => match kind {
            GateKind::Plan => answered(run, feedback),
            // What is asked of a change comes with the rework.
            GateKind::Diff => {}
            GateKind::Call => {
                run.call = None;
                answered(run, feedback);
            }
        },
        Event::RunStarted { .. }
        | Event::GateRejected { .. }
        | Event::PullRequestClosed
        | Event::PullRequestSeen { .. }
        | Event::CommentDenied { .. }
        | Event::EgressDenied { .. }
        | Event::Noted { .. } => {}
    }
}

/// Keeps what a human said for every agent whose work it is about.
fn answered(run: &mut Run, words: &Artifact) {
    match &mut run.phase {
        Phase::Planning(planning) => planning.asked.push(words.clone()),
        Phase::AwaitingPlanApproval(waiting) => waiting.asked.push(words.clone()),
        Phase::Executing(executing) => executing.approved.demands.push(words.clone()),
        Phase::Pending(_)
        | Phase::Proposing(_)
        | Phase::AwaitingMerge(_)
        | Phase::Completed
        | Phase::Cancelled { .. }
        | Phase::Failed { .. } => {}
    }
}

/// Starts the counters of a phase anew; the numbers of the invocations go on.
fn start_counting(run: &mut Run) {
    run.call = None;
    run.approved_calls.clear();
    // What was noted about earlier work says nothing about what comes.
    run.check_notes.clear();
    let invocations = std::mem::take(&mut run.counters.invocations);
    run.counters = Counters {
        invocations,
        ..Counters::default()
    };
}

/// Takes every hold away: an ended run waits for nothing.
fn end(run: &mut Run, phase: Phase) {
    run.phase = phase;
    run.call = None;
    run.approved_calls.clear();
    run.holds = Holds::default();
}

fn planning(run: &mut Run, change: impl FnOnce(&mut Planning)) {
    if let Phase::Planning(planning) = &mut run.phase {
        change(planning);
    }
}

fn executing(run: &mut Run, change: impl FnOnce(&mut Executing)) {
    if let Phase::Executing(executing) = &mut run.phase {
        change(executing);
    }
}

fn proposing(run: &mut Run, change: impl FnOnce(&mut Proposing)) {
    if let Phase::Proposing(proposing) = &mut run.phase {
        change(proposing);
    }
}

fn awaiting_merge(run: &mut Run, change: impl FnOnce(&mut AwaitingMerge)) {
    if let Phase::AwaitingMerge(waiting) = &mut run.phase {
        change(waiting);
    }
}

fn interpreting(run: &mut Run, tests: &TestRun) {
    executing(run, |executing| {
        executing.step = ExecutingStep::Interpreting { tests: tests.clone() }
    });
}
