//! What an invocation came to; judged by what Conductor saw, never by what the agent said.
//!
//! This module does not know how agents are run.

use crate::board::OwnFields;
use crate::decide::draft::Draft;
use crate::decide::{execution, report, speech};
use crate::effect::{Effect, EffectKind};
use crate::egress::EgressDenial;
use crate::event::Event;
use crate::gate::{Gate, GateKind, call_subject};
use crate::hold::Hold;
use crate::id::EffectId;
use crate::invocation::{
    AgentFailure, CallWish, InvocationLimit, InvocationReport, Outcome, Purpose, Remains,
};
use crate::message::{CheckNote, CommentPlace, CommentRequest};
use crate::phase::{ExecutingStep, Phase, PlanningStep};
use crate::plan::{Review, Verdict};
use crate::refusal::Refusal;
use crate::role::{Role, Speaker};
use crate::run::Run;

/// How many messages of a run may wait for the throttle before its agents must keep their remarks to themselves.
const MOST_WAITING: usize = 20;

/// Anchors the invocation's tool log and papers in the run's chain, whatever it came to (TOOL-4).
///
/// One that was told to stop does not count as a chance: what it came to is discarded.
pub(super) fn anchor(draft: &mut Draft<'_>, effect: &EffectId, report: &InvocationReport, stopping: bool) {
    let had_its_chance = match report.outcome {
        Outcome::Stopped | Outcome::Interrupted | Outcome::ProviderLimited { .. } => false,
        Outcome::Planned { .. }
        | Outcome::Reviewed { .. }
        | Outcome::Implemented
        | Outcome::Interpreted { .. }
        | Outcome::Asked { .. }
        | Outcome::NeedsApproval { .. }
        | Outcome::Failed { .. }
        | Outcome::Violated { .. } => true,
    };
    if let Some(purpose) = report.purpose.or_else(|| purpose_at(draft.run())) {
        draft.record(Event::InvocationEnded {
            effect: effect.clone(),
            purpose,
            counts: had_its_chance && !stopping && !draft.run().phase.is_terminal(),
            tools: report.tools.clone(),
            papers: report.papers.clone(),
        });
    } else {
        draft.note(format!(
            "invocation {effect} ended with {} tool calls, head {}",
            report.tools.calls, report.tools.head
        ));
    }
}

/// Anchors what is left of an invocation that met a fault; that was no chance of its agent.
pub(super) fn anchor_remains(draft: &mut Draft<'_>, effect: &EffectId, remains: &Remains) {
    draft.record(Event::InvocationEnded {
        effect: effect.clone(),
        purpose: remains.purpose,
        counts: false,
        tools: remains.tools.clone(),
        papers: remains.papers.clone(),
    });
}

/// What the agent at work is there for.
fn purpose_at(run: &Run) -> Option<Purpose> {
    match &run.phase {
        Phase::Planning(planning) => match planning.step {
            PlanningStep::Drafting => Some(Purpose::Plan),
            PlanningStep::Reviewing { .. } => Some(Purpose::ReviewPlan),
            PlanningStep::Confirming { .. } => None,
        },
        Phase::Executing(executing) => match executing.step {
            ExecutingStep::Implementing => Some(Purpose::Implement),
            ExecutingStep::Interpreting { .. } => Some(Purpose::InterpretTests),
            ExecutingStep::Reviewing { .. } => Some(Purpose::ReviewImplementation),
            ExecutingStep::Committing
            | ExecutingStep::Rebasing
            | ExecutingStep::Testing { .. }
            | ExecutingStep::CheckingRedFirst { .. } => None,
        },
        Phase::Pending(_)
        | Phase::AwaitingPlanApproval(_)
        | Phase::Proposing(_)
        | Phase::AwaitingMerge(_)
        | Phase::Completed
        | Phase::Cancelled { .. }
        | Phase::Failed { .. } => None,
    }
}

pub(super) fn ended(draft: &mut Draft<'_>, effect: &EffectId, report: &InvocationReport, interruptions: u32) {
    let Some(purpose) = purpose_at(draft.run()) else {
        // The phase was started over while this one was being stopped.
        draft.note("an invocation of an earlier step ended");
        return;
    };
    match (&report.outcome, purpose) {
        (Outcome::Planned { plan }, Purpose::Plan) => draft.record(Event::PlanDrafted { plan: plan.clone() }),
        (Outcome::Reviewed { review }, Purpose::ReviewPlan) => plan_reviewed(draft, review),
        (Outcome::Implemented, Purpose::Implement) => draft.record(Event::ImplementationFinished),
        (Outcome::Interpreted { report }, Purpose::InterpretTests) => {
            execution::interpreted(draft, Some(report));
        }
        (Outcome::Reviewed { review }, Purpose::ReviewImplementation) => execution::reviewed(draft, review),
        (Outcome::Asked { question }, _) => draft.hold(Hold::Question {
            id: effect.clone(),
            text: question.clone(),
            asked_at: draft.now(),
        }),
        (Outcome::NeedsApproval { wish }, _) => ask_about_call(draft, wish),
        (Outcome::Failed { failure }, _) => failed(draft, purpose, failure),
        (Outcome::Violated { violation }, _) => draft.hold(Hold::Policy {
            reason: violation.clone(),
        }),
        (Outcome::ProviderLimited { account, until }, _) => {
            draft.hold(Hold::ProviderLimit {
                account: account.clone(),
                until: *until,
            });
        }
        (Outcome::Stopped, _) => draft.note("the agent was stopped"),
        (Outcome::Interrupted, _) => {
            report::interrupted(draft, effect, report.saved.as_deref(), interruptions);
        }
        (
            Outcome::Planned { .. }
            | Outcome::Reviewed { .. }
            | Outcome::Implemented
            | Outcome::Interpreted { .. },
            Purpose::Plan
            | Purpose::ReviewPlan
            | Purpose::Implement
            | Purpose::InterpretTests
            | Purpose::ReviewImplementation,
        ) => failed(
            draft,
            purpose,
            &AgentFailure::InvalidResult {
                reason: "not what was asked for".to_owned(),
            },
        ),
    }
}

/// Asks a human about exactly this call; a fresh invocation may make it once it is approved (TOOL-4b, BEY-1).
fn ask_about_call(draft: &mut Draft<'_>, wish: &CallWish) {
    let number = draft.run().calls_asked.saturating_add(1);
    let gate = Gate {
        kind: GateKind::Call,
        subject: call_subject(wish, &draft.run().spec.policy, draft.now(), number),
        opened_at: draft.now(),
        findings: vec![],
    };
    draft.say(speech::call_asks(&gate, wish));
    draft.record(Event::CallGateOpened {
        gate,
        wish: wish.clone(),
    });
    draft.record(Event::HoldPlaced {
        hold: Hold::Policy {
            reason: format!("a call of {} waits for approval: {}", wish.tool, wish.reason),
        },
    });
}

fn plan_reviewed(draft: &mut Draft<'_>, review: &Review) {
    let Phase::Planning(planning) = &draft.run().phase else {
        return;
    };
    let revisions = planning.revisions;
    let rejected = match &planning.step {
        PlanningStep::Reviewing { plan } => Some(plan.artifact.clone()),
        PlanningStep::Drafting | PlanningStep::Confirming { .. } => None,
    };
    draft.record(Event::PlanReviewed {
        review: review.clone(),
    });
    match review.verdict {
        // The issue is read again before a human is asked; that reading opens the gate (S-50).
        Verdict::Approve => {}
        Verdict::Reject => {
            draft.record(Event::PlanSentBack {
                plan: rejected,
                feedback: review.artifact.clone(),
            });
            if revisions >= draft.run().spec.limits.plan_revisions {
                let reason = format!("the reviewer rejected the plan {} times", revisions + 1);
                draft.hold(Hold::Failure { reason });
            }
        }
    }
}

/// Asks an agent that failed again, up to the limit; running out of time is for a human at once (RUN-12).
fn failed(draft: &mut Draft<'_>, purpose: Purpose, failure: &AgentFailure) {
    let failures = draft.run().counters.agent_failures + 1;
    let reason = format!("the {} {failure}", purpose.role());
    draft.record(Event::AgentFailed {
        purpose,
        failures,
        reason: reason.clone(),
    });
    let timed_out = *failure
        == AgentFailure::LimitExceeded {
            limit: InvocationLimit::Time,
        };
    let may_retry = failures <= draft.run().spec.limits.agent_retries && !timed_out;
    if may_retry {
        if failures == 1 {
            draft.say(speech::first_failure(&reason));
        }
    } else if purpose == Purpose::InterpretTests {
        // The Tester only comments on what Conductor saw itself; the run goes on without its words.
        execution::interpreted(draft, None);
    } else {
        draft.hold(Hold::Failure { reason });
    }
}

/// Checks that an agent that asks for something is at work.
fn check_running(draft: &Draft<'_>, invocation: &EffectId) -> Result<(), Refusal> {
    let running = draft.run().in_flight.get(invocation);
    if !running.is_some_and(|effect| effect.kind == EffectKind::Invoke && !effect.stopping)
        || draft.run().phase.is_terminal()
    {
        return Err(Refusal::InvocationIsOver);
    }
    Ok(())
}

/// Lets a running agent keep Conductor's own fields on the board; wishes that come while a change is under way are set
/// together after it (TOOL-3, TOOL-4a).
pub(super) fn fields(
    draft: &mut Draft<'_>,
    invocation: &EffectId,
    role: Role,
    fields: &OwnFields,
) -> Result<(), Refusal> {
    check_running(draft, invocation)?;
    if draft.run().spec.board.is_none() {
        draft.record(Event::CommentDenied {
            invocation: invocation.clone(),
            reason: "no board is registered for this repository; say it in a comment".to_owned(),
        });
        return Ok(());
    }
    draft.record(Event::FieldsWanted {
        role,
        fields: fields.clone(),
    });
    tell_board(draft);
    Ok(())
}

/// Asks for the fields that are wanted to be set, one change at a time.
pub(super) fn tell_board(draft: &mut Draft<'_>) {
    let run = draft.run();
    let is_telling = run
        .in_flight
        .values()
        .any(|effect| effect.kind == EffectKind::UpdateFields);
    if let Some(board) = run.spec.board
        && !run.fields_wanted.is_empty()
        && !run.phase.is_terminal()
        && !is_telling
    {
        draft.ask(Effect::UpdateFields {
            board,
            issue: run.spec.issue,
            fields: run.fields_wanted.clone(),
        });
    }
}

/// Lets a running agent say something at the forge, within the throttle (TOOL-4a).
pub(super) fn comment(
    draft: &mut Draft<'_>,
    invocation: &EffectId,
    comment: &CommentRequest,
) -> Result<(), Refusal> {
    check_running(draft, invocation)?;
    let deny = |draft: &mut Draft<'_>, reason: String| {
        draft.record(Event::CommentDenied {
            invocation: invocation.clone(),
            reason,
        });
    };
    let waiting = &draft.run().throttle.deferred;
    let is_waiting = waiting
        .iter()
        .any(|message| message.speaker == Speaker::Agent(comment.role) && message.kept() == [&comment.text]);
    match (&comment.place, draft.run().pull_request.clone()) {
        (CommentPlace::Check, _) => draft.record(Event::CheckNoted {
            note: CheckNote {
                role: comment.role,
                text: comment.text.clone(),
            },
        }),
        (CommentPlace::Issue | CommentPlace::PullRequest | CommentPlace::Line { .. }, _) if is_waiting => {
            deny(draft, "the same words wait to be said already".to_owned());
        }
        (CommentPlace::Issue | CommentPlace::PullRequest | CommentPlace::Line { .. }, _)
            if waiting.len() >= MOST_WAITING =>
        {
            deny(
                draft,
                format!("{MOST_WAITING} messages wait to be said; put what matters into your result"),
            );
        }
        (CommentPlace::Issue, _) => draft.say(speech::remark(comment)),
        (CommentPlace::PullRequest | CommentPlace::Line { .. }, Some(pull_request)) => {
            draft.say(speech::pull_request_remark(comment, &pull_request));
        }
        (CommentPlace::PullRequest | CommentPlace::Line { .. }, None) => deny(
            draft,
            "the run has no pull request yet; comment on the issue, or put it into your result".to_owned(),
        ),
    }
    Ok(())
}

/// Keeps what code in a sandbox wanted from the network; whether it may next time is for an operator (BEY-6).
pub(super) fn denied_egress(
    draft: &mut Draft<'_>,
    effect: &EffectId,
    denial: &EgressDenial,
) -> Result<(), Refusal> {
    let owner = draft.run().in_flight.get(effect);
    if !owner.is_some_and(|effect| effect.kind.executes_foreign_code()) {
        return Err(Refusal::InvocationIsOver);
    }
    draft.record(Event::EgressDenied {
        effect: effect.clone(),
        denial: denial.clone(),
    });
    Ok(())
}
