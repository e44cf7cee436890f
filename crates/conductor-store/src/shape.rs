//! Decides whether a batch hangs together: its records follow each other and everything belongs to its stream.
//!
//! A batch that does not is a bug of the caller, and is refused before anything is touched. This module does not know
//! what is kept already.

use std::collections::BTreeSet;

use conductor_domain::time::Timestamp;
use conductor_port::Fault;
use conductor_port::ledger::{Batch, EffectChange, IssueClaim, Projection, StreamId};

/// Checks a batch by itself.
pub(crate) fn check(batch: &Batch) -> Result<(), Fault> {
    let key = batch.stream.as_key();
    let refuse = |why: String| Err(Fault::permanent(format!("keep a batch of stream {key}: {why}")));

    for (seq, record) in (batch.expected_seq + 1..).zip(&batch.records) {
        if record.stream != key {
            return refuse(format!(
                "record {} belongs to stream {}",
                record.seq, record.stream
            ));
        }
        if record.seq != seq {
            return refuse(format!("record {} stands where {seq} is due", record.seq));
        }
    }
    let mut ids = BTreeSet::new();
    let events = batch.records.iter().map(|record| record.event_id.as_str());
    if let Some(twice) = events
        .chain(batch.effects.iter().map(|effect| effect.id.as_str()))
        .find(|id| !ids.insert(*id))
    {
        return refuse(format!("{twice} stands in it twice"));
    }
    match (&batch.stream, &batch.projection) {
        (StreamId::Instance, Projection::Instance { .. }) => {}
        (StreamId::Run(run), Projection::Run(row)) if row.run == *run => {}
        (StreamId::Run(_), Projection::Run(row)) => {
            return refuse(format!("its projection is of run {}", row.run));
        }
        (StreamId::Instance, Projection::Run(_)) | (StreamId::Run(_), Projection::Instance { .. }) => {
            return refuse("its projection is of another kind of stream".to_owned());
        }
    }
    let moves_queue = |change: &EffectChange| matches!(change, EffectChange::Reprioritize { .. });
    if batch.stream == StreamId::Instance
        && (batch.frees_slot
            || batch.issue != IssueClaim::Unchanged
            || batch.effect_changes.iter().any(moves_queue))
    {
        return refuse("only a run has a slot, an issue and a place in the queue".to_owned());
    }
    Ok(())
}

/// The time at which the batch's effects were asked for.
pub(crate) fn asked_at(batch: &Batch, not_before: Timestamp) -> Timestamp {
    batch.records.first().map_or(not_before, |record| record.at)
}
