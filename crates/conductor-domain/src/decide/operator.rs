//! What an operator does to a run: decide at a gate, answer, pause, resume, cancel, retry, give up, move, lift a policy
//! for a call (RUN-7, RUN-11, SEC-1).
//!
//! This module does not know who may act: roles are checked at the door.

use crate::artifact::Artifact;
use crate::decide::draft::Draft;
use crate::decide::{ending, proposal, speech};
use crate::digest::Digest;
use crate::effect::{Effect, EffectKind};
use crate::event::Event;
use crate::gate::GateKind;
use crate::hold::{Hold, HoldKind};
use crate::id::{EffectId, OperatorName};
use crate::input::Action;
use crate::phase::{Barred, EndReason, Executing, ExecutingStep, Phase, PlanningStep};
use crate::refusal::Refusal;
use crate::relief::{self, Relief};
use crate::run::Run;

pub(super) fn operate(draft: &mut Draft<'_>, by: &OperatorName, action: &Action) -> Result<(), Refusal> {
    let phase = draft.run().phase.name();
    if *action == Action::Retry && draft.run().clean_up_failed.is_some() {
        draft.record(Event::PhaseRetried { by: by.clone() });
        ending::clean_up_if_idle(draft);
        return Ok(());
    }
    if phase.is_terminal() {
        return Err(Refusal::RunIsOver { phase });
    }
    match action {
        Action::Approve {
            gate,
            subject,
            comment,
        } => approve(draft, by, *gate, subject, comment.as_deref()),
        Action::Revise {
            gate,
            subject,
            feedback,
        } => revise(draft, by, *gate, subject, feedback),
        Action::Reject {
            gate,
            subject,
            comment,
        } => reject(draft, by, *gate, subject, comment.as_deref()),
        Action::Answer { question, answer } => answer_question(draft, by, question, answer),
        Action::Pause => pause(draft, by),
        Action::Resume => resume(draft, by),
        Action::Cancel { comment } => {
            draft.say(speech::operator_did(by, "cancelled the run", comment.as_deref()));
            ending::cancel(
                draft,
                EndReason::Operator {
                    by: by.clone(),
                    comment: comment.clone(),
                },
            );
            Ok(())
        }
        Action::Retry => retry(draft, by),
        Action::Fail { comment } => {
            if !draft.run().is_held() {
                return Err(Refusal::NotHeld);
            }
            ending::fail(
                draft,
                EndReason::Operator {
                    by: by.clone(),
                    comment: comment.clone(),
                },
            );
            Ok(())
        }
        Action::Reprioritize { priority } => {
            draft.record(Event::Reprioritized { priority: *priority });
            Ok(())
        }
        Action::GrantRelief {
            scope,
            justification,
            until,
        } => {
            relief::check(justification, *until, draft.now())?;
            let number = u32::try_from(draft.run().reliefs.len() + 1).unwrap_or(u32::MAX);
            let relief = Relief {
                number,
                scope: scope.clone(),
                by: by.clone(),
                justification: justification.trim().to_owned(),
                until: *until,
                revoked_by: None,
            };
            draft.record(Event::ReliefGranted { relief });
            Ok(())
        }
        Action::RevokeRelief { number } => {
            let now = draft.now();
            let is_it = |relief: &Relief| relief.number == *number && relief.is_in_force(now);
            if !draft.run().reliefs.iter().any(is_it) {
                return Err(Refusal::NoSuchRelief);
            }
            draft.record(Event::ReliefRevoked {
                number: *number,
                by: by.clone(),
            });
            Ok(())
        }
    }
}

/// Checks that a gate of this kind is open and that the answer is about what it shows now (BEY-1).
fn check_gate(
    draft: &Draft<'_>,
    kind: GateKind,
    seen: &Digest,
    attempted: &'static str,
) -> Result<(), Refusal> {
    let run = draft.run();
    let gate = run.gate().filter(|gate| gate.kind == kind);
    let gate = gate.ok_or(Refusal::WrongPhase {
        phase: run.phase.name(),
        attempted,
    })?;
    if gate.subject != *seen {
        return Err(Refusal::ApprovalIsStale {
            gate: kind,
            seen: seen.clone(),
            current: gate.subject.clone(),
        });
    }
    Ok(())
}

/// Refuses to move a run that stands still; a question about a call is itself why it does.
fn check_may_move(draft: &Draft<'_>, kind: GateKind) -> Result<(), Refusal> {
    if kind != GateKind::Call && draft.run().is_held() {
        Err(Refusal::RunIsPaused {
            holds: draft.run().hold_kinds(),
        })
    } else {
        Ok(())
    }
}

fn approve(
    draft: &mut Draft<'_>,
    by: &OperatorName,
    kind: GateKind,
    subject: &Digest,
    comment: Option<&str>,
) -> Result<(), Refusal> {
    check_gate(draft, kind, subject, "an approval")?;
    check_may_move(draft, kind)?;
    if !draft.run().shows_all_it_asks() {
        return Err(Refusal::NotShownWhole);
    }
    draft.record(Event::GateApproved {
        kind,
        subject: subject.clone(),
        by: by.clone(),
        comment: comment.map(str::to_owned),
    });
    draft.say(speech::operator_did(by, &format!("approved the {kind}"), comment));
    // A second look at the issue comes too late now; it must not keep the work waiting for a slow forge.
    draft.stop(|kind| kind == EffectKind::ReadIssue);
    match kind {
        GateKind::Plan => draft.record(Event::ExecutionBegan { by: by.clone() }),
        GateKind::Diff => draft.record(Event::DiffCleared),
        GateKind::Call => draft.record(Event::HoldReleased {
            kind: HoldKind::Policy,
        }),
    }
    draft.proceed();
    Ok(())
}

fn revise(
    draft: &mut Draft<'_>,
    by: &OperatorName,
    kind: GateKind,
    subject: &Digest,
    feedback: &Artifact,
) -> Result<(), Refusal> {
    check_gate(draft, kind, subject, "a revision")?;
    check_may_move(draft, kind)?;
    if feedback.bytes == 0 {
        return Err(Refusal::CommentRequired);
    }
    draft.record(Event::GateRevised {
        kind,
        subject: subject.clone(),
        by: by.clone(),
        feedback: feedback.clone(),
    });
    draft.say(speech::operator_revised(by, kind, feedback));
    // The Planner remembers nothing: it gets the plan that it is to revise, too (OWN-2).
    let sent_back = match &draft.run().phase {
        Phase::AwaitingPlanApproval(waiting) => Some(waiting.plan.artifact.clone()),
        Phase::Pending(_)
        | Phase::Planning(_)
        | Phase::Executing(_)
        | Phase::Proposing(_)
        | Phase::AwaitingMerge(_)
        | Phase::Completed
        | Phase::Cancelled { .. }
        | Phase::Failed { .. } => None,
    };
    match kind {
        GateKind::Plan => draft.record(Event::PlanningBegan {
            feedback: sent_back.into_iter().collect(),
        }),
        GateKind::Diff => {
            let found = draft
                .run()
                .gate()
                .map(|gate| proposal::places(gate.findings.iter()));
            let barred = barred(
                draft.run(),
                &format!("it was sent back: {}", found.unwrap_or_default()),
            );
            draft.record(Event::ReworkBegan {
                feedback: vec![],
                demands: vec![feedback.clone()],
                barred,
            });
        }
        GateKind::Call => draft.record(Event::HoldReleased {
            kind: HoldKind::Policy,
        }),
    }
    draft.proceed();
    Ok(())
}

fn reject(
    draft: &mut Draft<'_>,
    by: &OperatorName,
    kind: GateKind,
    subject: &Digest,
    comment: Option<&str>,
) -> Result<(), Refusal> {
    check_gate(draft, kind, subject, "a rejection")?;
    draft.record(Event::GateRejected {
        kind,
        subject: subject.clone(),
        by: by.clone(),
        comment: comment.map(str::to_owned),
    });
    draft.say(speech::operator_did(by, &format!("rejected the {kind}"), comment));
    let reason = match kind {
        GateKind::Plan => EndReason::PlanRejected { by: by.clone() },
        GateKind::Diff => EndReason::DiffRejected { by: by.clone() },
        GateKind::Call => EndReason::CallRejected { by: by.clone() },
    };
    ending::cancel(draft, reason);
    Ok(())
}

fn answer_question(
    draft: &mut Draft<'_>,
    by: &OperatorName,
    question: &EffectId,
    answer: &Artifact,
) -> Result<(), Refusal> {
    match draft.run().holds.get(HoldKind::Question) {
        Some(Hold::Question { id, .. }) if id == question => {}
        Some(_) | None => return Err(Refusal::NoSuchQuestion),
    }
    if answer.bytes == 0 {
        return Err(Refusal::CommentRequired);
    }
    draft.record(Event::QuestionAnswered {
        question: question.clone(),
        by: by.clone(),
        answer: answer.clone(),
    });
    draft.record(Event::HoldReleased {
        kind: HoldKind::Question,
    });
    draft.say(speech::operator_answered(by, answer));
    draft.proceed();
    Ok(())
}

fn pause(draft: &mut Draft<'_>, by: &OperatorName) -> Result<(), Refusal> {
    if draft.run().holds.get(HoldKind::Operator).is_some() {
        return Err(Refusal::AlreadyPaused);
    }
    draft.record(Event::HoldPlaced {
        hold: Hold::Operator { by: by.clone() },
    });
    draft.say(speech::operator_did(by, "paused the run", None));
    Ok(())
}

fn resume(draft: &mut Draft<'_>, by: &OperatorName) -> Result<(), Refusal> {
    if draft.run().holds.get(HoldKind::Operator).is_none() {
        return Err(Refusal::NotHeld);
    }
    draft.record(Event::HoldReleased {
        kind: HoldKind::Operator,
    });
    draft.say(speech::operator_did(by, "resumed the run", None));
    draft.proceed();
    Ok(())
}

/// The change as it stands, which is not to leave: the next commit takes the place of all that the run has made.
fn barred(run: &Run, reason: &str) -> Option<Barred> {
    let workspace = run.workspace.as_ref()?;
    Some(Barred {
        reason: reason.to_owned(),
        onto: workspace.base.clone(),
    })
}

/// Starts the current phase over with fresh counters; releases what only failure or a broken rule held.
fn retry(draft: &mut Draft<'_>, by: &OperatorName) -> Result<(), Refusal> {
    let run = draft.run();
    let phase = run.phase.name();
    let broke_a_rule = run.holds.get(HoldKind::Policy).is_some();
    let has_failed = run.holds.get(HoldKind::Failure).is_some();
    if run
        .work_in_flight()
        .is_some_and(|(_, effect)| !effect.kind.is_stoppable())
    {
        return Err(Refusal::WrongPhase {
            phase,
            attempted: "a retry while a write at the forge is under way",
        });
    }
    let again = match &run.phase {
        Phase::Pending(_) => None,
        // The plan is written and reviewed; only the issue has to be read.
        Phase::Planning(planning) if matches!(planning.step, PlanningStep::Confirming { .. }) => None,
        // A gate has nothing to start over; only what held it is released.
        Phase::AwaitingPlanApproval(_) | Phase::Proposing(_) if run.phase.gate().is_some() && has_failed => {
            None
        }
        Phase::Planning(planning) => Some(Event::PlanningBegan {
            feedback: planning.feedback.clone(),
        }),
        Phase::Executing(executing) => Some(Event::ReworkBegan {
            feedback: why_again(executing),
            demands: vec![],
            barred: executing.barred.clone(),
        }),
        Phase::Proposing(proposing) if run.phase.gate().is_none() && !broke_a_rule => {
            Some(Event::ProposalBegan {
                tests: proposing.tests.clone(),
            })
        }
        Phase::Proposing(_) if run.phase.gate().is_none() => Some(Event::ReworkBegan {
            feedback: vec![],
            demands: vec![],
            barred: match run.holds.get(HoldKind::Policy) {
                Some(Hold::Policy { reason }) => barred(run, reason),
                Some(_) | None => None,
            },
        }),
        Phase::AwaitingMerge(waiting) if has_failed => Some(Event::ReworkBegan {
            feedback: vec![],
            demands: waiting.feedback.clone(),
            barred: None,
        }),
        Phase::AwaitingPlanApproval(_)
        | Phase::Proposing(_)
        | Phase::AwaitingMerge(_)
        | Phase::Completed
        | Phase::Cancelled { .. }
        | Phase::Failed { .. } => {
            return Err(Refusal::WrongPhase {
                phase,
                attempted: "a retry",
            });
        }
    };
    draft.record(Event::PhaseRetried { by: by.clone() });
    for (held, kind) in [(has_failed, HoldKind::Failure), (broke_a_rule, HoldKind::Policy)] {
        if held {
            draft.record(Event::HoldReleased { kind });
        }
    }
    draft.say(speech::operator_did(by, "asked for another try", None));
    if matches!(draft.run().phase, Phase::AwaitingPlanApproval(_)) {
        look_at_issue(draft);
        return Ok(());
    }
    draft.stop(EffectKind::is_work);
    if let Some(event) = again {
        draft.record(event);
    }
    draft.proceed();
    Ok(())
}

/// What the next attempt is told about the one that stopped here; of tests that nobody interpreted, what they printed.
fn why_again(executing: &Executing) -> Vec<Artifact> {
    let uninterpreted = match &executing.step {
        ExecutingStep::Interpreting { tests } if !tests.has_passed() => Some(tests.output.clone()),
        ExecutingStep::Implementing
        | ExecutingStep::Committing
        | ExecutingStep::Rebasing
        | ExecutingStep::Testing { .. }
        | ExecutingStep::CheckingRedFirst { .. }
        | ExecutingStep::Interpreting { .. }
        | ExecutingStep::Reviewing { .. } => None,
    };
    executing.feedback.iter().cloned().chain(uninterpreted).collect()
}

/// Asks for what the issue became while the run was held and nothing was read, unless that is asked for already (S-50).
fn look_at_issue(draft: &mut Draft<'_>) {
    if draft.run().work_in_flight().is_none() {
        let issue = draft.run().spec.issue;
        draft.ask(Effect::ReadIssue { issue });
    }
}
