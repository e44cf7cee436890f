//! Tells runs that a time they waited for has come.
//!
//! The next deadline is a function of a run's state, so nothing here can be lost: what is due is due until the run has
//! moved on; one process has the duty, and a second one that believes it had is refused by the runs. This module does not know what a deadline leads to.

use conductor_domain::deadline::next_deadline;
use conductor_domain::fault::Fault;
use conductor_domain::id::RunId;
use conductor_domain::input::Input;
use conductor_domain::time::{Millis, Timestamp};
use conductor_port::duty::Duty;
use conductor_port::inbox::Seen;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::dispatch::duration;
use crate::duty::{Post, Turn};
use crate::engine::Engine;
use crate::intake::{self, Arrival, NotTaken};
use crate::trouble::Part;
use crate::{recover, telemetry};

/// How many due runs are told in one go; the rest follows at the next tick.
const AT_ONCE: u32 = 100;
/// How often whoever has the duty looks for what others owe: one of them may have died though the duty stayed here.
const BETWEEN_DEBTS: Millis = Millis::minutes(1);

/// Looks for deadlines until shutdown.
pub(crate) async fn run(engine: &Engine, shutdown: &CancellationToken) {
    let mut post = Post::of(Duty::Deadlines);
    let mut debts_at = Timestamp(i64::MIN);
    loop {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(duration(engine.options.tick)) => {}
        }
        let told = look(engine, &mut post, &mut debts_at)
            .instrument(tracing::debug_span!(telemetry::TIMER))
            .await;
        engine.troubles.note(Part::Timer, told);
    }
}

/// Sees to what this process owes, and, where it has the duty, to what the dead owed and to deadlines.
async fn look(engine: &Engine, post: &mut Post, debts_at: &mut Timestamp) -> Result<(), Fault> {
    for stream in engine.take_owed() {
        intake::follow_up(engine, stream).await;
    }
    match post.turn(engine).await? {
        Turn::Anothers => return Ok(()),
        Turn::Begins => *debts_at = Timestamp(i64::MIN),
        Turn::GoesOn => {}
    }
    let told = tell_due(engine).await;
    let now = engine.ports.clock.now();
    if now < *debts_at {
        return told;
    }
    // Before it is done: a debt that cannot be paid must not be all that is looked at.
    *debts_at = now.after(BETWEEN_DEBTS);
    let paid = recover::see_to_debts(engine).await;
    told.and(paid.map(|_debts| ()))
}

async fn tell_due(engine: &Engine) -> Result<(), Fault> {
    // Damaged runs stay due for ever; they must not take the others' places.
    let most = AT_ONCE.saturating_add(engine.troubles.left_alone());
    for run in engine.ports.ledger.due(engine.ports.clock.now(), most).await? {
        if let Err(fault) = tell(engine, &run).await {
            engine.troubles.pass_over(&run, fault)?;
        }
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
        seen: Seen::Anything,
    };
    match intake::take_in(engine, arrival).await {
        Ok(_taken) => Ok(()),
        Err(NotTaken::Refused(refusal)) => {
            tracing::debug!(%run, ?deadline, %refusal, "the run has moved on");
            Ok(())
        }
        Err(NotTaken::LeaseLost | NotTaken::Stale { .. } | NotTaken::IssueHasRun { .. }) => Ok(()),
        Err(NotTaken::Fault(fault)) => Err(fault),
    }
}
