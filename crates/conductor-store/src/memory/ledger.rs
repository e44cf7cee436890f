//! The ledger in memory: streams, and the leases of effects.
//!
//! What a batch does to it stands in `batch.rs`. It does not know what a record means.

use std::cmp::Reverse;

use async_trait::async_trait;
use conductor_domain::id::RunId;
use conductor_domain::time::Timestamp;
use conductor_port::Fault;
use conductor_port::ledger::{
    AppendError, Batch, Candidates, EffectRow, EffectStatus, LeaseWish, Leased, Ledger, Projections, Record,
    Renewal, Settlement, StreamId,
};

use super::{Kept, Memory, Place, State};
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
        let wanted = records.iter().filter(|record| record.seq > after);
        Ok(wanted.take(limit as usize).cloned().collect())
    }

    async fn dispatchable(&self, candidates: &Candidates) -> Result<Vec<EffectRow>, Fault> {
        let state = self.state();
        let after = match &candidates.after {
            Some(id) => match state.effects.get(id) {
                Some(kept) => Some(kept.queue_place()),
                None => return Ok(Vec::new()),
            },
            None => None,
        };
        let is_wanted = |kept: &&Kept| {
            state.is_ready(kept, candidates.now) && after.is_none_or(|after| kept.queue_place() > after)
        };
        let mut ready: Vec<&Kept> = state.effects.values().filter(is_wanted).collect();
        ready.sort_by_key(|kept| kept.queue_place());
        let first = ready.into_iter().take(candidates.limit as usize);
        Ok(first.map(Kept::row).collect())
    }

    async fn lease(&self, wish: LeaseWish) -> Result<Leased, Fault> {
        let mut state = self.state();
        let ready = state
            .effects
            .get(&wish.id)
            .filter(|kept| state.is_ready(kept, wish.now));
        let Some(mut kept) = ready.cloned() else {
            return Ok(Leased::Gone);
        };
        if !state.take_slot(&kept, &wish)? {
            return Ok(Leased::NoSlot);
        }
        kept.attempts += 1;
        kept.status = EffectStatus::Leased;
        kept.worker.clone_from(&wish.worker);
        kept.lease_until = Some(wish.until);
        let attempt = kept.attempts;
        state.effects.insert(wish.id, kept);
        Ok(Leased::Granted {
            token: u64::from(attempt),
            attempt,
        })
    }

    async fn renew(&self, settlement: &Settlement, until: Timestamp) -> Result<Renewal, Fault> {
        let mut state = self.state();
        match state.effects.get_mut(&settlement.id) {
            Some(kept) if kept.is_leased_by(settlement) => {
                kept.lease_until = Some(until);
                Ok(if kept.stop { Renewal::Stop } else { Renewal::Holds })
            }
            Some(_) | None => Ok(Renewal::Lost),
        }
    }

    async fn end_leases(&self, worker: &str) -> Result<u32, Fault> {
        let mut ended = 0;
        for kept in self
            .state()
            .effects
            .values_mut()
            .filter(|kept| kept.status == EffectStatus::Leased && kept.worker == worker)
        {
            kept.lease_until = Some(Timestamp(i64::MIN));
            ended += 1;
        }
        Ok(ended)
    }

    async fn due(&self, now: Timestamp, limit: u32) -> Result<Vec<RunId>, Fault> {
        let state = self.state();
        let deadlines = state
            .runs
            .values()
            .filter_map(|row| Some((row.deadline?, &row.run)));
        let mut due: Vec<(Timestamp, &RunId)> = deadlines.filter(|(deadline, _)| *deadline <= now).collect();
        due.sort();
        Ok(due
            .into_iter()
            .take(limit as usize)
            .map(|(_, run)| run.clone())
            .collect())
    }

    async fn replace_projections(&self, all: Projections) -> Result<(), Fault> {
        let mut state = self.state();
        state.runs.clear();
        state.instance = None;
        state.writes.clear();
        for row in all.rows {
            state.project(row);
        }
        for writes in all.writes {
            state.keep_writes(writes);
        }
        state.place_anew();
        Ok(())
    }
}

impl Kept {
    /// What effects are listed by.
    fn queue_place(&self) -> (Reverse<u8>, Timestamp, &RunId, Place) {
        let asked = &self.asked;
        (Reverse(asked.priority), self.created_at, &asked.run, self.place)
    }

    pub(super) fn is_leased_by(&self, settlement: &Settlement) -> bool {
        self.status == EffectStatus::Leased && u64::from(self.attempts) == settlement.token
    }
}

impl State {
    fn is_ready(&self, kept: &Kept, now: Timestamp) -> bool {
        let is_held = || self.runs.get(&kept.asked.run).is_some_and(|run| run.held);
        match kept.status {
            EffectStatus::Pending => {
                kept.asked.not_before <= now && (kept.stop || !(kept.asked.kind.is_work() && is_held()))
            }
            EffectStatus::Leased => kept.lease_until.is_some_and(|until| until < now),
            EffectStatus::Done => false,
        }
    }

    /// Tells whether the run has the slot that is wished for, now or from before; also when none is.
    fn take_slot(&mut self, kept: &Kept, wish: &LeaseWish) -> Result<bool, Fault> {
        let Some((repo, limit)) = wish.slot else {
            return Ok(true);
        };
        let run = &kept.asked.run;
        match self.slots.get(run) {
            Some(held) if *held == repo => Ok(true),
            Some(held) => Err(Fault::permanent(format!(
                "lease effect {}: run {run} holds a slot of repository {held}, not of {repo}",
                wish.id
            ))),
            None if self.slots.values().filter(|held| **held == repo).count() >= limit as usize => Ok(false),
            None => {
                self.slots.insert(run.clone(), repo);
                Ok(true)
            }
        }
    }
}
