//! What follows when the world does not do as asked: wait and repeat, make the environment anew, or ask a human.
//!
//! Adapters classify, this decides, and every repeat is an event (DESIGN invariant 5). It does not know the adapters.

use crate::decide::draft::Draft;
use crate::decide::ending;
use crate::effect::EffectKind;
use crate::event::Event;
use crate::fault::{Fault, FaultKind};
use crate::hold::Hold;
use crate::id::EffectId;
use crate::refusal::Refusal;
use crate::time::Millis;

/// The longest pause between two tries that we choose ourselves.
const LONGEST_PAUSE: Millis = Millis::seconds(60);

pub(super) fn faulted(
    draft: &mut Draft<'_>,
    effect: &EffectId,
    attempt: u32,
    fault: &Fault,
) -> Result<(), Refusal> {
    let asked = draft
        .run()
        .in_flight
        .get(effect)
        .ok_or(Refusal::UnknownEffect)?
        .clone();
    let is_over = draft.run().phase.is_terminal();
    if asked.kind.is_stoppable() && (asked.stopping || is_over) {
        settle(draft, effect, format!("{} was stopped: {fault}", asked.kind));
        go_on(draft);
        return Ok(());
    }
    let may_repeat = match fault.kind {
        FaultKind::Transient { .. } => true,
        FaultKind::Conflict => asked.kind != EffectKind::Push,
        FaultKind::Permanent => false,
    };
    let attempts_left = attempt <= draft.run().spec.limits.effect_retries;
    // What a run holds must be given back however long that takes; nobody waits for it.
    if asked.kind == EffectKind::CleanUp || (may_repeat && attempts_left) {
        let at = draft.now().after(pause(effect, attempt, fault));
        draft.record(Event::EffectRetryScheduled {
            effect: effect.clone(),
            attempt,
            at,
            reason: fault.to_string(),
        });
        return Ok(());
    }
    settle(draft, effect, format!("{} failed: {fault}", asked.kind));
    match asked.kind {
        EffectKind::PostComment | EffectKind::ClosePullRequest | EffectKind::CleanUp => {}
        // A second look at the issue; what was shown with the plan stays what is approved.
        EffectKind::ReadIssue if draft.run().issue.is_some() => {}
        EffectKind::ReadPullRequest => draft.record(Event::PullRequestSeen { at: draft.now() }),
        EffectKind::Invoke | EffectKind::RunTests | EffectKind::CommitWork
            if !is_over && !draft.run().counters.environment_recreated =>
        {
            draft.record(Event::EnvironmentRecreated {
                reason: fault.to_string(),
            });
        }
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
        | EffectKind::PublishCheck => {
            if !is_over {
                draft.hold(Hold::Failure {
                    reason: format!("{}: {fault}", asked.kind),
                });
            }
        }
    }
    go_on(draft);
    Ok(())
}

fn settle(draft: &mut Draft<'_>, effect: &EffectId, what: String) {
    draft.record(Event::EffectSettled {
        effect: effect.clone(),
    });
    draft.note(what);
}

fn go_on(draft: &mut Draft<'_>) {
    if draft.run().phase.is_terminal() {
        ending::clean_up_if_idle(draft);
    } else {
        draft.proceed();
    }
}

/// Doubles from one second up to a minute, spread a little by the effect's name; the world's own word goes first.
fn pause(effect: &EffectId, attempt: u32, fault: &Fault) -> Millis {
    if let FaultKind::Transient {
        retry_after: Some(length),
    } = fault.kind
    {
        return length;
    }
    let doubled = Millis::seconds(1).0 << attempt.saturating_sub(1).min(10);
    let spread: u64 = effect.as_str().bytes().map(u64::from).sum::<u64>() % 250;
    Millis(doubled.min(LONGEST_PAUSE.0) + spread)
}
