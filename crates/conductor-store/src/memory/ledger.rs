//! The ledger in memory: every check of a batch first, then every change.
//!
//! It does not know what a record means.

use std::collections::BTreeMap;

use async_trait::async_trait;
use conductor_domain::id::{EffectId, RunId};
use conductor_domain::time::Timestamp;
use conductor_port::Fault;
use conductor_port::ledger::{
    AppendError, Batch, EffectChange, EffectRow, LeaseWish, Leased, Ledger, Projection, Record, Renewal,
    Settlement, StreamId,
};

use super::{Kept, Memory, State};
use crate::shape;

#[async_trait]
impl Ledger for Memory {
    async fn append(&self, batch: Batch) -> Result<(), AppendError> {
        shape::check(&batch)?;
        let mut state = self.state();
        let changed = state.judge(&batch)?;
        state.keep(batch, changed);
        Ok(())
    }

    async fn read(&self, stream: &StreamId, after: u64, limit: u32) -> Result<Vec<Record>, Fault> {
        let state = self.state();
        let records = state.streams.get(stream).map_or(&[][..], Vec::as_slice);
        Ok(records
            .iter()
            .filter(|record| record.seq > after)
            .take(limit as usize)
            .cloned()
            .collect())
    }

    async fn dispatchable(&self, now: Timestamp, limit: u32) -> Result<Vec<EffectRow>, Fault> {
        let state = self.state();
        let mut ready: Vec<&Kept> = state
            .effects
            .values()
            .filter(|kept| state.is_ready(kept, now))
            .collect();
        ready.sort_by(|a, b| {
            b.priority.cmp(&a.priority).then_with(|| {
                (a.row.created_at, &a.row.run, a.place).cmp(&(b.row.created_at, &b.row.run, b.place))
            })
        });
        Ok(ready
            .into_iter()
            .take(limit as usize)
            .map(|kept| kept.row.clone())
            .collect())
    }

    async fn lease(&self, wish: LeaseWish) -> Result<Leased, Fault> {
        let mut state = self.state();
        let Some(kept) = state
            .effects
            .get(&wish.id)
            .filter(|kept| state.is_ready(kept, wish.now))
        else {
            return Ok(Leased::Gone);
        };
        let run = kept.row.run.clone();
        if let Some((repo, limit)) = wish.slot {
            match state.slots.get(&run) {
                Some(held) if *held != repo => {
                    return Err(Fault::permanent(format!(
                        "lease effect {}: run {run} holds a slot of repository {held}, not of {repo}",
                        wish.id
                    )));
                }
                Some(_) => {}
                None if state.slots.values().filter(|held| **held == repo).count() >= limit as usize => {
                    return Ok(Leased::NoSlot);
                }
                None => {
                    state.slots.insert(run, repo);
                }
            }
        }
        let Some(kept) = state.effects.get_mut(&wish.id) else {
            return Ok(Leased::Gone);
        };
        kept.row.attempts += 1;
        "leased".clone_into(&mut kept.row.status);
        kept.lease_until = Some(wish.until);
        Ok(Leased::Granted {
            token: u64::from(kept.row.attempts),
            attempt: kept.row.attempts,
        })
    }

    async fn renew(&self, settlement: &Settlement, until: Timestamp) -> Result<Renewal, Fault> {
        let mut state = self.state();
        let Some(kept) = state
            .effects
            .get_mut(&settlement.id)
            .filter(|kept| kept.is_leased_by(settlement))
        else {
            return Ok(Renewal::Lost);
        };
        kept.lease_until = Some(until);
        Ok(if kept.row.stop {
            Renewal::Stop
        } else {
            Renewal::Holds
        })
    }

    async fn due(&self, now: Timestamp, limit: u32) -> Result<Vec<RunId>, Fault> {
        let state = self.state();
        let mut due: Vec<(Timestamp, &RunId)> = state
            .runs
            .values()
            .filter_map(|row| {
                row.deadline
                    .filter(|deadline| *deadline <= now)
                    .map(|deadline| (deadline, &row.run))
            })
            .collect();
        due.sort();
        Ok(due
            .into_iter()
            .take(limit as usize)
            .map(|(_, run)| run.clone())
            .collect())
    }

    async fn replace_projections(&self, rows: Vec<Projection>) -> Result<(), Fault> {
        let mut state = self.state();
        state.runs.clear();
        state.instance = None;
        for row in rows {
            state.project(row);
        }
        Ok(())
    }
}

impl Kept {
    /// The number of leases is the fencing token: it only grows, and by one with each lease.
    fn is_leased_by(&self, settlement: &Settlement) -> bool {
        self.row.status == "leased" && u64::from(self.row.attempts) == settlement.token
    }

    fn end_lease(&mut self, status: &str) {
        status.clone_into(&mut self.row.status);
        self.lease_until = None;
    }
}

impl State {
    fn is_ready(&self, kept: &Kept, now: Timestamp) -> bool {
        let is_held = || kept.row.kind.is_work() && self.runs.get(&kept.row.run).is_some_and(|run| run.held);
        match kept.row.status.as_str() {
            "pending" => !kept.row.stop && kept.not_before <= now && !is_held(),
            "leased" => kept.lease_until.is_some_and(|until| until < now),
            _ => false,
        }
    }

    /// Refuses the batch, or returns the effects that it changes as they will be.
    fn judge(&self, batch: &Batch) -> Result<BTreeMap<EffectId, Kept>, AppendError> {
        if batch.dedupe.as_ref().is_some_and(|key| self.seen.contains(key)) {
            return Err(AppendError::Duplicate);
        }
        let mut changed = BTreeMap::new();
        if let Some(settlement) = &batch.settles {
            let kept = self
                .effects
                .get(&settlement.id)
                .filter(|kept| kept.is_leased_by(settlement));
            let mut kept = kept.cloned().ok_or(AppendError::LeaseLost)?;
            kept.end_lease("done");
            changed.insert(settlement.id.clone(), kept);
        }
        let actual = self
            .streams
            .get(&batch.stream)
            .map_or(0, |records| records.len() as u64);
        if actual != batch.expected_seq {
            return Err(AppendError::Moved { actual });
        }
        for change in &batch.effect_changes {
            self.change(batch, change, &mut changed)?;
        }
        let fresh_events = batch
            .records
            .iter()
            .filter(|record| self.event_ids.contains(&record.event_id));
        if let Some(twice) = fresh_events.map(|record| &record.event_id).next() {
            return Err(Fault::permanent(format!(
                "append to {}: event {twice} is there already",
                batch.stream
            ))
            .into());
        }
        if let Some(twice) = batch
            .effects
            .iter()
            .find(|effect| self.effects.contains_key(&effect.id))
        {
            return Err(Fault::permanent(format!(
                "append to {}: effect {} is there already",
                batch.stream, twice.id
            ))
            .into());
        }
        Ok(changed)
    }

    fn change(
        &self,
        batch: &Batch,
        change: &EffectChange,
        changed: &mut BTreeMap<EffectId, Kept>,
    ) -> Result<(), AppendError> {
        let find = |changed: &BTreeMap<EffectId, Kept>, id: &EffectId| {
            changed
                .get(id)
                .or_else(|| self.effects.get(id))
                .cloned()
                .ok_or_else(|| {
                    Fault::permanent(format!(
                        "append to {}: there is no effect {id} to change",
                        batch.stream
                    ))
                })
        };
        match change {
            EffectChange::Retry { id, not_before } => {
                let mut kept = find(changed, id)?;
                let is_settled = batch
                    .settles
                    .as_ref()
                    .is_some_and(|settlement| settlement.id == *id);
                match kept.row.status.as_str() {
                    "leased" => return Err(AppendError::LeaseLost),
                    "done" if !is_settled => {
                        let why = format!(
                            "append to {}: effect {id} is done and cannot be repeated",
                            batch.stream
                        );
                        return Err(Fault::permanent(why).into());
                    }
                    _ => kept.end_lease("pending"),
                }
                kept.row.stop = false;
                kept.not_before = *not_before;
                changed.insert(id.clone(), kept);
            }
            EffectChange::Stop { id } => {
                let mut kept = find(changed, id)?;
                match kept.row.status.as_str() {
                    "pending" => kept.end_lease("done"),
                    "leased" => {}
                    _ => return Ok(()),
                }
                kept.row.stop = true;
                changed.insert(id.clone(), kept);
            }
            EffectChange::Reprioritize { priority } => {
                for (id, kept) in &self.effects {
                    let mut kept = changed.get(id).unwrap_or(kept).clone();
                    if batch.stream == StreamId::Run(kept.row.run.clone()) && kept.row.status == "pending" {
                        kept.priority = *priority;
                        changed.insert(id.clone(), kept);
                    }
                }
            }
        }
        Ok(())
    }

    fn keep(&mut self, batch: Batch, changed: BTreeMap<EffectId, Kept>) {
        let seq = batch.expected_seq;
        self.seen.extend(batch.dedupe.clone());
        self.effects.extend(changed);
        for (ordinal, effect) in batch.effects.iter().enumerate() {
            let row = EffectRow {
                id: effect.id.clone(),
                run: effect.run.clone(),
                repo: effect.repo,
                kind: effect.kind,
                payload: effect.payload.clone(),
                status: "pending".to_owned(),
                attempts: 0,
                stop: false,
                created_at: shape::asked_at(&batch, effect.not_before),
            };
            let (priority, not_before) = (effect.priority, effect.not_before);
            let kept = Kept {
                row,
                place: (seq, ordinal),
                priority,
                not_before,
                lease_until: None,
            };
            self.effects.insert(effect.id.clone(), kept);
        }
        for (ordinal, write) in batch.writes.into_iter().enumerate() {
            let place = self
                .writes
                .get(&write.effect)
                .map_or((seq, ordinal), |(place, _)| *place);
            self.writes.insert(write.effect.clone(), (place, write));
        }
        if let (true, StreamId::Run(run)) = (batch.frees_slot, &batch.stream) {
            self.slots.remove(run);
        }
        self.event_ids
            .extend(batch.records.iter().map(|record| record.event_id.clone()));
        self.streams
            .entry(batch.stream)
            .or_default()
            .extend(batch.records);
        self.project(batch.projection);
    }

    fn project(&mut self, projection: Projection) {
        match projection {
            Projection::Instance { state } => self.instance = Some(state),
            Projection::Run(row) => {
                self.runs.insert(row.run.clone(), *row);
            }
        }
    }
}
