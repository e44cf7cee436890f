//! Makes the projections anew from the log, and puts them in the place of the old ones.
//!
//! What cannot be told anew, because its records are damaged, stays as it is and is named; the others do not wait for
//! it. Used while nothing else runs. This module does not know who reads projections.

use conductor_domain::Event;
use conductor_domain::fault::{Fault, FaultKind};
use conductor_domain::figures;
use conductor_domain::id::RunId;
use conductor_domain::instance::{Instance, InstanceEvent, evolve_instance};
use conductor_port::ledger::{Ledger, Projection, Projections, Record, StreamId, WritesAfter};
use conductor_port::views::Views;

use crate::commit::{instance_projection, run_row, writes};
use crate::record::{self, DECISION};
use crate::replay::read_all;

/// What was made anew.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rebuilt {
    /// How many streams were told anew.
    pub streams: usize,
    /// Runs that stay as they were, each with the reason.
    pub damaged: Vec<(RunId, String)>,
}

/// Rebuilds all projections: runs, instance, forge writes.
pub async fn rebuild(ledger: &dyn Ledger, views: &dyn Views) -> Result<Rebuilt, Fault> {
    let mut rebuilt = Rebuilt::default();
    let mut all = Projections::default();
    for head in views.heads().await? {
        match &head.stream {
            StreamId::Instance => all.rows.push(instance(ledger).await?),
            StreamId::Run(run) => match of_run(ledger, views, run).await {
                Ok((row, writes)) => {
                    all.rows.push(row);
                    all.writes.extend(writes);
                }
                Err(fault) if fault.kind == FaultKind::Permanent => {
                    as_it_was(views, run, &mut all).await?;
                    rebuilt.damaged.push((run.clone(), fault.what));
                    continue;
                }
                Err(fault) => return Err(fault),
            },
        }
        rebuilt.streams += 1;
    }
    ledger.replace_projections(all).await?;
    Ok(rebuilt)
}

async fn instance(ledger: &dyn Ledger) -> Result<Projection, Fault> {
    let records = read_all(ledger, &StreamId::Instance).await?;
    let mut instance = Instance::default();
    for record in records.iter().filter(|record| record.class == DECISION) {
        instance = evolve_instance(instance, &record::decode::<InstanceEvent>(record)?);
    }
    let (seq, head) = records
        .last()
        .map_or_else(Default::default, |last| (last.seq, last.hash.clone()));
    instance_projection(&instance, seq, head)
}

async fn of_run(
    ledger: &dyn Ledger,
    views: &dyn Views,
    run: &RunId,
) -> Result<(Projection, Vec<WritesAfter>), Fault> {
    let records = read_all(ledger, &StreamId::Run(run.clone())).await?;
    let writes = writes::retell(&records, &views.effects(run).await?)?;
    Ok((row(run, &records)?, writes))
}

fn row(run: &RunId, records: &[Record]) -> Result<Projection, Fault> {
    let (mut state, mut took) = (None, None);
    for record in records.iter().filter(|record| record.class == DECISION) {
        let event = record::decode::<Event>(record)?;
        (state, took) = figures::fold(state, took, [&event], record.at);
    }
    let (Some(state), Some(first), Some(last)) = (state, records.first(), records.last()) else {
        return Err(Fault::permanent(format!(
            "the log of run {run} does not begin with its start"
        )));
    };
    let (seq, head) = (last.seq, last.hash.clone());
    let row = run_row(&state, seq, head, first.at, last.at, took.as_ref())?;
    Ok(Projection::Run(Box::new(row)))
}

/// Keeps what is shown of a run, so that it does not vanish with its damage.
async fn as_it_was(views: &dyn Views, run: &RunId, all: &mut Projections) -> Result<(), Fault> {
    let row = views.run(run).await?;
    all.rows.extend(row.map(|row| Projection::Run(Box::new(row))));
    // In the order in which they are listed; their first places are lost, and nothing else is shown of a damaged run.
    let writes = views.writes(run).await.unwrap_or_default();
    all.writes
        .extend((0..).zip(writes).map(|(seq, write)| WritesAfter {
            seq,
            writes: vec![write],
        }));
    Ok(())
}
