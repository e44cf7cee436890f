//! Turns what came of an effect into the next input, and submits it under the effect's lease.
//!
//! With this the circle closes: performing an effect produces the next input. A report that comes too late is
//! dropped; whoever holds the effect now reports for it. This module does not know what a report leads to.

use std::collections::BTreeSet;

use conductor_domain::fault::{Fault, FaultKind};
use conductor_domain::id::{EffectId, RunId};
use conductor_domain::input::{Input, Report};
use conductor_domain::instance::InstanceInput;
use conductor_domain::invocation::Outcome;
use conductor_domain::time::Millis;
use conductor_port::inbox::{Seen, SubmitError};
use conductor_port::ledger::EffectStatus;
use tracing::Instrument as _;

use crate::crash::crash_point;
use crate::dispatch::{Job, duration};
use crate::engine::Engine;
use crate::intake::{self, Arrival, NotTaken};
use crate::perform::Failed;
use crate::telemetry;

/// How long a report waits before it is tried again when the ledger did not take it.
const PAUSE: Millis = Millis(200);
/// The longest wait before a repeat that the world may announce. Our own limit on writes gives slots up to a day ahead, and
/// who came sooner would come in vain.
const LONGEST_WAIT: Millis = Millis::hours(24);

/// What came of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reported {
    /// It was taken, or it never will be.
    Settled,
    /// Another process holds the effect.
    TooLate,
}

/// Reports what came of an effect; tries until it is taken, refused, or the caller drops it with the lease.
pub(crate) async fn report(engine: &Engine, job: &Job, result: Result<Report, Failed>) -> Reported {
    let mut input = input(job, result);
    let mut may_be_kept = false;
    crash_point!("report.before");
    let reported = loop {
        match submit(engine, job, &input).await {
            Ok(()) => break Reported::Settled,
            Err(NotTaken::LeaseLost) => {
                tracing::warn!(effect = %job.request.id, "a report came too late and is dropped");
                break Reported::TooLate;
            }
            Err(NotTaken::Refused(_)) if may_be_kept && is_settled(engine, job).await => {
                tracing::debug!(effect = %job.request.id, "a report was kept, and the answer to it lost");
                break Reported::Settled;
            }
            Err(refused @ (NotTaken::Refused(_) | NotTaken::Stale { .. } | NotTaken::IssueHasRun { .. })) => {
                tracing::error!(effect = %job.request.id, %refused, "a report was refused; the effect is set aside");
                engine.set_aside(&job.request.id);
                break Reported::Settled;
            }
            Err(NotTaken::Fault(fault)) => {
                let Some(next) = next_try(job, &input, fault) else {
                    engine.set_aside(&job.request.id);
                    break Reported::Settled;
                };
                input = next;
                may_be_kept = true;
                tokio::time::sleep(duration(PAUSE)).await;
            }
        }
    };
    crash_point!("report.after");
    reported
}

/// Tells whether the effect's report is in the ledger.
async fn is_settled(engine: &Engine, job: &Job) -> bool {
    let effects = engine.ports.views.effects(&job.request.run).await;
    effects.is_ok_and(|rows| {
        rows.iter()
            .any(|row| row.id == job.request.id && row.status == EffectStatus::Done)
    })
}

async fn submit(engine: &Engine, job: &Job, input: &Input) -> Result<(), NotTaken> {
    let span = tracing::debug_span!(telemetry::REPORT, effect = %job.request.id);
    async {
        suspend_account(engine, input).await?;
        let arrival = Arrival {
            run: job.request.run.clone(),
            input: input.clone(),
            dedupe: None,
            cause: job.request.id.to_string(),
            settles: Some(job.settlement.clone()),
            seen: Seen::Anything,
        };
        intake::take_in(engine, arrival).await.map(|_taken| ())
    }
    .instrument(span)
    .await
}

/// Returns what to submit after a fault of the ledger: the same again later, or, if it can never be kept, that.
fn next_try(job: &Job, input: &Input, fault: Fault) -> Option<Input> {
    match (fault.kind, input) {
        (FaultKind::Transient { .. } | FaultKind::Conflict | FaultKind::EnvironmentLost, _) => {
            tracing::debug!(effect = %job.request.id, %fault, "could not report; trying again");
            Some(input.clone())
        }
        (FaultKind::Refused | FaultKind::Permanent, Input::Performed { .. }) => {
            tracing::error!(effect = %job.request.id, %fault, "a report cannot be kept; the effect counts as faulted");
            Some(faulted(job, Failed::from(fault)))
        }
        (FaultKind::Refused | FaultKind::Permanent, _faulted) => {
            tracing::error!(effect = %job.request.id, %fault, "not even the fault can be kept; the effect is set aside");
            None
        }
    }
}

fn input(job: &Job, result: Result<Report, Failed>) -> Input {
    match result {
        Ok(report) => Input::Performed {
            effect: job.request.id.clone(),
            report: Box::new(report),
        },
        Err(failed) => {
            let fault = &failed.fault;
            tracing::warn!(effect = %job.request.id, %fault, kind = ?fault.kind, "an effect met a fault");
            faulted(job, failed)
        }
    }
}

/// Bounds what the world may ask us to wait: it is told by others, and a run must not sleep for years on their word.
fn bounded(fault: Fault) -> Fault {
    match fault.kind {
        FaultKind::Transient {
            retry_after: Some(length),
        } => Fault::transient_for(length.min(LONGEST_WAIT), fault.what),
        FaultKind::Transient { retry_after: None }
        | FaultKind::Conflict
        | FaultKind::EnvironmentLost
        | FaultKind::Refused
        | FaultKind::Permanent => fault,
    }
}

fn faulted(job: &Job, Failed { fault, remains }: Failed) -> Input {
    Input::Faulted {
        effect: job.request.id.clone(),
        attempt: job.attempt,
        fault: bounded(fault),
        remains,
    }
}

/// Tells the instance first when a provider refuses work, so that other runs wait too (BEY-5).
///
/// The other way round, a crash in between would leave the others to find out one by one.
async fn suspend_account(engine: &Engine, input: &Input) -> Result<(), Fault> {
    let Input::Performed { report, .. } = input else {
        return Ok(());
    };
    let Report::Invoked { report } = report.as_ref() else {
        return Ok(());
    };
    let Outcome::ProviderLimited { account, until } = &report.outcome else {
        return Ok(());
    };
    let limited = InstanceInput::ProviderLimited {
        account: account.clone(),
        until: *until,
    };
    match intake::submit_to_instance(engine, limited, "").await {
        Ok(_accepted) => Ok(()),
        Err(SubmitError::Fault(fault)) => Err(fault),
        Err(
            refused @ (SubmitError::Refused(_)
            | SubmitError::InstanceRefused(_)
            | SubmitError::Stale { .. }
            | SubmitError::IssueHasRun { .. }),
        ) => Err(Fault::permanent(format!(
            "the instance refused to suspend account {account}: {refused}"
        ))),
    }
}

/// Reports effects that were told to stop while nobody performed them: the ledger ended them, so nobody else will.
///
/// Compares instead of remembering, so that a crash before the report is put right by calling it again.
pub(crate) async fn settle_what_never_began(engine: &Engine, run: &RunId) -> Result<u32, Fault> {
    // The order matters: an effect that is done now and awaited later was ended without a report.
    let done: BTreeSet<EffectId> = engine
        .ports
        .views
        .effects(run)
        .await?
        .into_iter()
        .filter(|row| row.stop && row.status == EffectStatus::Done)
        .map(|row| row.id)
        .collect();
    let Some(state) = intake::standing(engine.ports.views.as_ref(), run).await?.run else {
        return Ok(0);
    };
    let mut settled = 0;
    for effect in state.in_flight.keys().filter(|effect| done.contains(*effect)) {
        let arrival = Arrival {
            run: run.clone(),
            input: Input::Performed {
                effect: effect.clone(),
                report: Box::new(Report::Stopped),
            },
            dedupe: Some(format!("stopped/{effect}")),
            cause: effect.to_string(),
            settles: None,
            seen: Seen::Anything,
        };
        match intake::take_in(engine, arrival).await {
            Ok(_taken) => settled += 1,
            Err(NotTaken::Refused(refusal)) => {
                tracing::debug!(%effect, %refusal, "somebody else reported the stop");
            }
            Err(NotTaken::LeaseLost | NotTaken::Stale { .. } | NotTaken::IssueHasRun { .. }) => {}
            Err(NotTaken::Fault(fault)) => return Err(fault),
        }
    }
    Ok(settled)
}
