//! Makes the projections anew from the log, and puts them in the place of the old ones.
//!
//! Used while nothing else runs. This module does not know who reads projections.

use conductor_domain::Event;
use conductor_domain::evolve;
use conductor_domain::fault::Fault;
use conductor_domain::id::RunId;
use conductor_domain::instance::{Instance, InstanceEvent, evolve_instance};
use conductor_port::ledger::{Ledger, Projection, StreamId};
use conductor_port::views::Views;

use crate::commit::{instance_projection, run_row};
use crate::record::{self, DECISION};
use crate::replay::read_all;

/// Rebuilds all projections; returns how many streams there are.
pub async fn rebuild(ledger: &dyn Ledger, views: &dyn Views) -> Result<usize, Fault> {
    let mut rows = vec![];
    for head in views.heads().await? {
        rows.push(match &head.stream {
            StreamId::Instance => instance(ledger).await?,
            StreamId::Run(run) => of_run(ledger, run).await?,
        });
    }
    let streams = rows.len();
    ledger.replace_projections(rows).await?;
    Ok(streams)
}

async fn instance(ledger: &dyn Ledger) -> Result<Projection, Fault> {
    let mut instance = Instance::default();
    for record in read_all(ledger, &StreamId::Instance)
        .await?
        .iter()
        .filter(|record| record.class == DECISION)
    {
        instance = evolve_instance(instance, &record::decode::<InstanceEvent>(record)?);
    }
    instance_projection(&instance)
}

async fn of_run(ledger: &dyn Ledger, run: &RunId) -> Result<Projection, Fault> {
    let records = read_all(ledger, &StreamId::Run(run.clone())).await?;
    let mut state = None;
    for record in records.iter().filter(|record| record.class == DECISION) {
        state = evolve(state, &record::decode::<Event>(record)?);
    }
    let (Some(state), Some(first), Some(last)) = (state, records.first(), records.last()) else {
        return Err(Fault::permanent(format!(
            "the log of run {run} does not begin with its start"
        )));
    };
    Ok(Projection::Run(Box::new(run_row(
        &state,
        last.seq,
        last.hash.clone(),
        first.at,
        last.at,
    )?)))
}
