//! Leases the ports that are a run's own, before anything may listen on them (ENV-1, ENV-2).
//!
//! A port is one run's in the whole ledger, until its clean-up. This module does not know who listens.

use std::collections::BTreeMap;

use conductor_domain::fault::Fault;
use conductor_domain::id::RunId;
use conductor_port::lease::{ResourceKind, ResourceLease, Taken};

use super::Performance;
use crate::engine::PortRange;

/// Leases as many ports as a run gets. If repeated: those that it has count.
pub(super) async fn take(performance: &Performance<'_>) -> Result<(), Fault> {
    let PortRange { first, last, per_run } = performance.engine.options.ports;
    let leases = &performance.ports().leases;
    let held = leases.held(None).await?.into_iter();
    let held: BTreeMap<String, RunId> = held
        .filter(|lease| lease.kind == ResourceKind::Port)
        .map(|lease| (lease.name, lease.run))
        .collect();
    let own = held.values().filter(|run| *run == performance.run()).count();
    let mut missing = usize::from(per_run).saturating_sub(own);
    for port in first..=last {
        let name = port.to_string();
        if missing == 0 {
            break;
        }
        if held.contains_key(&name) {
            continue;
        }
        let now = performance.ports().clock.now();
        let lease = ResourceLease {
            kind: ResourceKind::Port,
            name,
            run: performance.run().clone(),
            taken_at: now,
            heartbeat: now,
        };
        match leases.take(&lease).await? {
            Taken::Yes => missing -= 1,
            // Another run was faster.
            Taken::No => {}
        }
    }
    if missing > 0 {
        return Err(Fault::transient(format!(
            "no port from {first} to {last} is free for run {}; name a wider range with --ports",
            performance.run()
        )));
    }
    Ok(())
}
