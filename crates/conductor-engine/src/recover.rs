//! Puts right at start what an earlier process left half done.
//!
//! Everything here compares what is with what should be, so that it can itself be interrupted and repeated. Of
//! effects that were under way only the leases under this process's own name are ended, because the living have others;
//! whoever leases them next finds them interrupted. This module does not know how an interrupted effect is taken up.

use std::collections::BTreeMap;

use conductor_domain::fault::Fault;
use conductor_domain::id::EffectId;
use conductor_port::lease::{ResourceKind, ResourceLease};
use conductor_port::ledger::{EffectStatus, RunRow};
use tracing::Instrument as _;

use crate::engine::Engine;
use crate::intake::{Pages, Which};
use crate::perform::process_group_name;
use crate::{intake, report, telemetry};

/// What was put right.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Leases of dead processes that were ended before their time.
    pub leases: u32,
    /// Runs that had not heard of the kill switch.
    pub switched: u32,
    /// Effects that had been told to stop before anyone began them.
    pub stopped: u32,
    /// Processes of effects that are over.
    pub reaped: u32,
}

/// Puts right what an earlier process left half done.
pub(crate) async fn recover(engine: &Engine) -> Result<Recovered, Fault> {
    let recovered = async {
        let leases = if engine.options.owns_name {
            engine.ports.ledger.end_leases(&engine.options.worker).await?
        } else {
            0
        };
        let Debts { switched, stopped } = see_to_debts(engine).await?;
        let reaped = reap_leftovers(engine).await?;
        Ok::<_, Fault>(Recovered {
            leases,
            switched,
            stopped,
            reaped,
        })
    }
    .instrument(tracing::info_span!(telemetry::RECOVER))
    .await?;
    engine.wake.notify_one();
    Ok(recovered)
}

/// What processes that died owed to runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Debts {
    /// Runs that had not heard of the kill switch.
    switched: u32,
    /// Effects that had been told to stop before anyone began them.
    stopped: u32,
}

/// Does what follows commits and was not done, by whichever process made them. If repeated: nothing is owed.
pub(crate) async fn see_to_debts(engine: &Engine) -> Result<Debts, Fault> {
    let switched = intake::reconcile_kill_switch(engine).await?;
    let mut stopped = 0;
    // A run that has ended still waits for what it told to stop, before it cleans up.
    let mut pages = Pages::of(Which::Unfinished);
    while let Some(page) = pages.next(engine.ports.views.as_ref()).await? {
        for row in page {
            match settle(engine, &row).await {
                Ok(settled) => stopped += settled,
                Err(fault) => engine.troubles.pass_over(&row.run, fault)?,
            }
        }
    }
    Ok(Debts { switched, stopped })
}

async fn settle(engine: &Engine, row: &RunRow) -> Result<u32, Fault> {
    let state = row.parse()?;
    if !state.in_flight.values().any(|effect| effect.stopping) {
        return Ok(0);
    }
    report::settle_what_never_began(engine, &row.run).await
}

/// Ends processes that this worker began for effects which nobody holds any more.
async fn reap_leftovers(engine: &Engine) -> Result<u32, Fault> {
    let mut reaped = 0;
    for lease in engine.ports.leases.held(None).await? {
        let Some(effect) = leftover(engine, &lease).await? else {
            continue;
        };
        for executor in engine.ports.executors.iter() {
            executor.reap(&effect).await?;
        }
        engine
            .ports
            .leases
            .give_back(&lease.run, lease.kind, &lease.name)
            .await?;
        reaped += 1;
    }
    Ok(reaped)
}

async fn leftover(engine: &Engine, lease: &ResourceLease) -> Result<Option<EffectId>, Fault> {
    match lease.kind {
        ResourceKind::ProcessGroup | ResourceKind::Container => {}
        ResourceKind::Worktree | ResourceKind::Port | ResourceKind::Branch => return Ok(None),
    }
    let rows = engine.ports.views.effects(&lease.run).await?;
    let by_name: BTreeMap<String, _> = rows
        .into_iter()
        .map(|row| (process_group_name(&engine.options.worker, &row.id), row))
        .collect();
    Ok(by_name
        .get(&lease.name)
        .filter(|row| row.status != EffectStatus::Leased)
        .map(|row| row.id.clone()))
}
