//! What a batch does to the memory store: every check first, then every change, so that nothing is half done.
//!
//! It does not know what a record means.

use std::collections::BTreeMap;

use conductor_domain::id::EffectId;
use conductor_domain::time::Timestamp;
use conductor_port::Fault;
use conductor_port::ledger::{
    AppendError, Batch, EffectChange, EffectStatus, IssueClaim, Projection, StreamId, WritesAfter,
};

use super::{Kept, State};
use crate::shape;

/// Effects as they will be.
type Changed = BTreeMap<EffectId, Kept>;

impl State {
    /// Refuses the batch, or returns the effects that it changes as they will be.
    pub(super) fn judge(&self, batch: &Batch) -> Result<Changed, AppendError> {
        if batch.dedupe.as_ref().is_some_and(|key| self.seen.contains(key)) {
            return Err(AppendError::Duplicate);
        }
        let mut changed = self.settled(batch)?;
        let records = self.streams.get(&batch.stream);
        let actual = records.map_or(0, |records| records.len() as u64);
        if actual != batch.expected_seq {
            return Err(AppendError::Moved { actual });
        }
        if let IssueClaim::Taken { repo, number } = batch.issue
            && let Some(run) = self.open_issues.get(&(repo, number))
        {
            return Err(AppendError::IssueTaken { run: run.clone() });
        }
        for change in &batch.effect_changes {
            self.change(batch, change, &mut changed)?;
        }
        for record in &batch.records {
            if self.event_ids.contains(&record.event_id) {
                return Err(refused(batch, &format!("{} is there already", record.event_id)));
            }
        }
        for effect in &batch.effects {
            if self.effects.contains_key(&effect.id) {
                return Err(refused(batch, &format!("{} is there already", effect.id)));
            }
        }
        Ok(changed)
    }

    fn settled(&self, batch: &Batch) -> Result<Changed, AppendError> {
        let Some(settlement) = &batch.settles else {
            return Ok(Changed::new());
        };
        match self.effects.get(&settlement.id) {
            Some(kept) if kept.is_leased_by(settlement) => {
                let done = Kept {
                    status: EffectStatus::Done,
                    lease_until: None,
                    ..kept.clone()
                };
                Ok(Changed::from([(settlement.id.clone(), done)]))
            }
            Some(_) | None => Err(AppendError::LeaseLost),
        }
    }

    fn change(&self, batch: &Batch, change: &EffectChange, changed: &mut Changed) -> Result<(), AppendError> {
        match change {
            EffectChange::Retry { id, not_before } => {
                let mut kept = self.find(batch, id, changed)?;
                let is_settled = batch
                    .settles
                    .as_ref()
                    .is_some_and(|settlement| settlement.id == *id);
                match kept.status {
                    EffectStatus::Leased => return Err(AppendError::LeaseLost),
                    EffectStatus::Done if !is_settled => {
                        return Err(refused(
                            batch,
                            &format!("effect {id} is done and cannot be repeated"),
                        ));
                    }
                    EffectStatus::Pending | EffectStatus::Done => kept.status = EffectStatus::Pending,
                }
                kept.asked.not_before = *not_before;
                changed.insert(id.clone(), kept);
            }
            EffectChange::Stop { id } => {
                let mut kept = self.find(batch, id, changed)?;
                match kept.status {
                    EffectStatus::Pending if kept.attempts == 0 => kept.status = EffectStatus::Done,
                    EffectStatus::Pending | EffectStatus::Leased => {}
                    EffectStatus::Done => return Ok(()),
                }
                kept.stop = true;
                kept.asked.not_before = Timestamp(0);
                changed.insert(id.clone(), kept);
            }
            EffectChange::Reprioritize { priority } => {
                for (id, kept) in &self.effects {
                    let mut kept = changed.get(id).unwrap_or(kept).clone();
                    let is_of_run = batch.stream == StreamId::Run(kept.asked.run.clone());
                    if is_of_run && kept.status == EffectStatus::Pending {
                        kept.asked.priority = *priority;
                        changed.insert(id.clone(), kept);
                    }
                }
            }
        }
        Ok(())
    }

    /// Earlier changes of the same batch count.
    fn find(&self, batch: &Batch, id: &EffectId, changed: &Changed) -> Result<Kept, AppendError> {
        let kept = changed.get(id).or_else(|| self.effects.get(id)).cloned();
        kept.ok_or_else(|| refused(batch, &format!("there is no effect {id} to change")))
    }

    /// Makes the changes of a batch that was judged. Cannot fail.
    pub(super) fn keep(&mut self, batch: Batch, changed: Changed) {
        let seq = batch.expected_seq;
        self.seen.extend(batch.dedupe.clone());
        self.effects.extend(changed);
        for (ordinal, asked) in batch.effects.iter().enumerate() {
            let kept = Kept {
                asked: asked.clone(),
                created_at: shape::asked_at(&batch, asked.not_before),
                place: (seq, ordinal),
                status: EffectStatus::Pending,
                attempts: 0,
                stop: false,
                worker: String::new(),
                lease_until: None,
            };
            self.effects.insert(asked.id.clone(), kept);
        }
        self.keep_writes(WritesAfter {
            seq,
            writes: batch.writes,
        });
        match (batch.issue, &batch.stream) {
            (IssueClaim::Taken { repo, number }, StreamId::Run(run)) => {
                self.open_issues.insert((repo, number), run.clone());
            }
            (IssueClaim::GivenBack, StreamId::Run(run)) => {
                self.open_issues.retain(|_, holder| holder != run);
            }
            (IssueClaim::Unchanged, _) | (_, StreamId::Instance) => {}
        }
        if let (true, StreamId::Run(run)) = (batch.frees_slot, &batch.stream) {
            self.slots.remove(run);
        }
        let event_ids = batch.records.iter().map(|record| record.event_id.clone());
        self.event_ids.extend(event_ids);
        let places = batch
            .records
            .iter()
            .map(|record| (batch.stream.clone(), record.seq));
        self.places.extend(places);
        self.streams
            .entry(batch.stream)
            .or_default()
            .extend(batch.records);
        self.project(batch.projection);
    }

    pub(super) fn keep_writes(&mut self, WritesAfter { seq, writes }: WritesAfter) {
        for (ordinal, write) in writes.into_iter().enumerate() {
            let place = self
                .writes
                .get(&write.effect)
                .map_or((seq, ordinal), |(place, _)| *place);
            self.writes.insert(write.effect.clone(), (place, write));
        }
    }

    pub(super) fn project(&mut self, projection: Projection) {
        match projection {
            Projection::Instance { state, seq, head } => self.instance = Some((state, seq, head)),
            Projection::Run(row) => {
                self.runs.insert(row.run.clone(), *row);
            }
        }
    }
}

fn refused(batch: &Batch, why: &str) -> AppendError {
    let attempted = format!("append to stream {} after {}", batch.stream, batch.expected_seq);
    Fault::permanent(format!("{attempted}: {why}")).into()
}
