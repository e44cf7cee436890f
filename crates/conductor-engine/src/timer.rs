//! Tells runs that a time they waited for has come.
//!
//! The next deadline is a function of a run's state, so nothing here can be lost: what is due is due until the run has
//! moved on. This module does not know what a deadline leads to.

use conductor_domain::deadline::next_deadline;
use conductor_domain::fault::Fault;
use conductor_domain::id::RunId;
use conductor_domain::input::Input;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::dispatch::duration;
use crate::engine::Engine;
use crate::intake::{self, Arrival, NotTaken};
use crate::telemetry;

/// How many due runs are told in one go; the rest follows at the next tick.
const AT_ONCE: u32 = 100;

/// Looks for deadlines until shutdown.
pub(crate) async fn run(engine: &Engine, shutdown: &CancellationToken) {
    loop {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(duration(engine.options.tick)) => {}
        }
        if let Err(fault) = tell_due(engine)
            .instrument(tracing::debug_span!(telemetry::TIMER))
            .await
        {
            tracing::warn!(%fault, "could not tell runs of their deadlines; trying again");
        }
    }
}

async fn tell_due(engine: &Engine) -> Result<(), Fault> {
    for stream in engine.take_owed() {
        intake::follow_up(engine, stream).await;
    }
    for run in engine.ports.ledger.due(engine.ports.clock.now(), AT_ONCE).await? {
        tell(engine, &run).await?;
    }
    Ok(())
}

async fn tell(engine: &Engine, run: &RunId) -> Result<(), Fault> {
    let state = intake::standing(engine.ports.views.as_ref(), run).await?.run;
    let Some((at, deadline)) = state.as_ref().and_then(next_deadline) else {
        return Ok(());
    };
    if at > engine.ports.clock.now() {
        return Ok(());
    }
    let arrival = Arrival {
        run: run.clone(),
        input: Input::DeadlinePassed { deadline },
        dedupe: None,
        cause: String::new(),
        settles: None,
    };
    match intake::take_in(engine, arrival).await {
        Ok(_taken) => Ok(()),
        Err(NotTaken::Refused(refusal)) => {
            tracing::debug!(%run, ?deadline, %refusal, "the run has moved on");
            Ok(())
        }
        Err(NotTaken::LeaseLost) => Ok(()),
        Err(NotTaken::Fault(fault)) => Err(fault),
    }
}
