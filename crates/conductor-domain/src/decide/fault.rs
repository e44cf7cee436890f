//! What follows when the world does not do as asked: wait and repeat, make the environment anew, or ask a human.
//!
//! Adapters classify, this decides, and every repeat is an event (ARCHITECTURE invariant 5). It does not know the adapters.

use crate::decide::draft::Draft;
use crate::decide::{agent, ending, merge};
use crate::effect::EffectKind;
use crate::event::Event;
use crate::fault::{Fault, FaultKind};
use crate::hold::Hold;
use crate::id::EffectId;
use crate::invocation::Remains;
use crate::phase::Phase;
use crate::refusal::Refusal;
use crate::run::InFlight;
use crate::time::Millis;

/// The longest pause between two tries that we choose ourselves.
const LONGEST_PAUSE: Millis = Millis::seconds(60);
/// The longest pause between two tries of what is overdue.
const LONGEST_LONG_PAUSE: Millis = Millis::hours(24);
/// How often an overdue clean-up is tried with long pauses, before a person has to ask for it: some four days.
const LONG_TRIES: u32 = 8;

pub(super) fn faulted(
    draft: &mut Draft<'_>,
    effect: &EffectId,
    attempt: u32,
    fault: &Fault,
    remains: Option<&Remains>,
) -> Result<(), Refusal> {
    let asked = draft
        .run()
        .in_flight
        .get(effect)
        .ok_or(Refusal::UnknownEffect)?
        .clone();
    if let Some(remains) = remains {
        agent::anchor_remains(draft, effect, remains);
    }
    let is_over = draft.run().phase.is_terminal();
    if asked.kind.is_stoppable() && (asked.stopping || is_over) {
        settle(draft, effect, format!("{} was stopped: {fault}", asked.kind));
        go_on(draft);
        return Ok(());
    }
    let tries = draft.run().spec.limits.effect_retries;
    let may_repeat = match fault.kind {
        FaultKind::Transient { .. } => true,
        // RUN-12: an environment is made anew once, whatever a repeat might bring.
        FaultKind::EnvironmentLost => !asked.kind.executes_foreign_code(),
        FaultKind::Conflict => asked.kind != EffectKind::Push,
        FaultKind::Refused | FaultKind::Permanent => false,
    };
    let soon = may_repeat && attempt <= tries;
    if soon || (asked.is_owed() && is_worth_long_pauses(&asked, attempt, tries, fault, is_over)) {
        let wait = if soon {
            pause(effect, attempt, fault)
        } else {
            long_pause(attempt.saturating_sub(tries))
        };
        let at = draft.now().after(wait);
        draft.record(Event::EffectRetryScheduled {
            effect: effect.clone(),
            attempt,
            at,
            reason: fault.to_string(),
            overdue: !soon,
        });
        return Ok(());
    }
    settle(draft, effect, format!("{} failed: {fault}", asked.kind));
    match asked.kind {
        // A reading of the pull request is asked for again by whoever finds news there.
        EffectKind::PostComment | EffectKind::ClosePullRequest | EffectKind::ReadPullRequest => {}
        // What a board says is a courtesy; the run does not stand still for it.
        EffectKind::UpdateFields => agent::tell_board(draft),
        EffectKind::MergePullRequest => {
            if !is_over {
                merge::ended(draft, Some(&fault.to_string()));
            }
        }
        EffectKind::CleanUp => draft.record(Event::CleanUpFailed {
            reason: fault.to_string(),
        }),
        // Another look at the issue; what was shown with the plan stays what is approved.
        EffectKind::ReadIssue if !matches!(draft.run().phase, Phase::Pending(_) | Phase::Planning(_)) => {}
        // Another environment may do; a commit is made in none.
        EffectKind::Invoke | EffectKind::RunTests
            if !is_over && !draft.run().counters.environment_recreated =>
        {
            draft.record(Event::EnvironmentRecreated {
                reason: fault.to_string(),
            });
        }
        // The same commit would be refused for ever; a retry lets the Implementer make another (RUN-12, SEC-4).
        EffectKind::Push if fault.kind == FaultKind::Refused => {
            if !is_over {
                draft.hold(Hold::Policy {
                    reason: format!("the forge does not take the change: {fault}"),
                });
            }
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

/// Tells whether something that is owed is tried again with long pauses, or left to a person.
///
/// What people must hear waits as long as the run does (RUN-12, GH-5); once the run is over, a forge that will never
/// take it is believed. A clean-up that never works stops growing the log and asks for a person.
fn is_worth_long_pauses(asked: &InFlight, attempt: u32, tries: u32, fault: &Fault, is_over: bool) -> bool {
    let is_permanent = matches!(fault.kind, FaultKind::Refused | FaultKind::Permanent);
    if asked.kind == EffectKind::CleanUp {
        !is_permanent && attempt <= tries.saturating_add(LONG_TRIES)
    } else {
        !(is_permanent && is_over)
    }
}

/// Doubles from an hour up to a day.
fn long_pause(beyond: u32) -> Millis {
    let doubled = Millis::hours(1).0 << beyond.saturating_sub(1).min(10);
    Millis(doubled.min(LONGEST_LONG_PAUSE.0))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// RUN-12: what is owed is tried again ever more rarely, but once a day at least.
    #[test]
    fn a_long_pause_doubles_from_an_hour_up_to_a_day() {
        let pauses = [0, 1, 2, 3, 5, 6, 40].map(long_pause);
        assert_eq!(pauses, [1, 1, 2, 4, 16, 24, 24].map(Millis::hours));
    }
}
