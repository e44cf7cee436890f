//! Remembers what keeps the engine from its work, and says so once when it begins and once when it is over.
//!
//! A full disk or a lock of another program makes every stage fail and try again. A person needs one line at each
//! change, and to see the state in between (`conductor doctor`); the repeats are for `debug`. This module does not know
//! what was attempted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use conductor_domain::fault::{Fault, FaultKind};
use conductor_domain::id::RunId;
use conductor_domain::time::Timestamp;
use conductor_port::clock::Clock;
use conductor_port::ledger::{
    AppendError, Batch, Candidates, EffectRow, LeaseWish, Leased, Ledger, Projections, Record, Renewal,
    Settlement, StreamId,
};

/// The part of the engine that cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// Nothing can be kept.
    Ledger,
    /// Effects cannot be looked for.
    Dispatch,
    /// Deadlines cannot be looked for.
    Timer,
    /// What runs wait for cannot be looked up.
    Look,
    /// Chains cannot be anchored.
    Anchor,
}

/// What keeps the engine from its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// Since when.
    pub since: Timestamp,
    /// What was said first.
    pub what: String,
}

/// Remembers trouble in one process.
#[derive(Debug)]
pub(crate) struct Troubles {
    clock: Arc<dyn Clock>,
    now: Mutex<Now>,
}

#[derive(Debug, Default)]
struct Now {
    trouble: Option<Trouble>,
    parts: BTreeSet<Part>,
    unreadable: BTreeMap<RunId, String>,
}

impl Troubles {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            now: Mutex::default(),
        }
    }

    /// Tells what keeps the engine from its work now.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        self.now().trouble.clone()
    }

    /// A part could not do its work.
    pub(crate) fn met(&self, part: Part, fault: &Fault) {
        let since = self.clock.now();
        let mut now = self.now();
        now.parts.insert(part);
        if now.trouble.is_some() {
            tracing::debug!(?part, %fault, "still cannot go on");
            return;
        }
        tracing::warn!(?part, %fault, "cannot go on; trying again until it works");
        let what = fault.what.clone();
        now.trouble = Some(Trouble { since, what });
    }

    /// A part did its work.
    pub(crate) fn over(&self, part: Part) {
        let at = self.clock.now();
        let mut now = self.now();
        if now.parts.remove(&part)
            && now.parts.is_empty()
            && let Some(Trouble { since, .. }) = now.trouble.take()
        {
            let seconds = at.0.saturating_sub(since.0) / 1_000_000;
            tracing::info!(seconds, "works again; what waited goes on");
        }
    }

    /// Takes note of what came of a part's work.
    pub(crate) fn note(&self, part: Part, done: Result<(), Fault>) {
        match done {
            Ok(()) => self.over(part),
            Err(fault) => self.met(part, &fault),
        }
    }

    /// Decides whether to go on with the other runs after a fault with one: what no repeat mends is said once and left
    /// alone, anything else concerns all of them.
    pub(crate) fn pass_over(&self, run: &RunId, fault: Fault) -> Result<(), Fault> {
        if fault.kind != FaultKind::Permanent {
            return Err(fault);
        }
        let what = fault.what.clone();
        if self.now().unreadable.insert(run.clone(), what) != Some(fault.what.clone()) {
            tracing::error!(%run, %fault, "a run is damaged and left alone; the others go on");
        }
        Ok(())
    }

    /// Counts the runs that are left alone.
    pub(crate) fn left_alone(&self) -> u32 {
        u32::try_from(self.now().unreadable.len()).unwrap_or(u32::MAX)
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A ledger that is watched: whether it keeps what it is given.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) troubles: Arc<Troubles>,
}

impl Watched {
    fn wrote<T>(&self, outcome: Result<T, Fault>) -> Result<T, Fault> {
        match &outcome {
            Ok(_) => self.troubles.over(Part::Ledger),
            Err(fault) => self.failed(fault),
        }
        outcome
    }

    /// A fault that no repeat mends comes from what was given, and says nothing about the next one.
    fn failed(&self, fault: &Fault) {
        match fault.kind {
            FaultKind::Transient { .. } => self.troubles.met(Part::Ledger, fault),
            FaultKind::Conflict | FaultKind::EnvironmentLost | FaultKind::Refused | FaultKind::Permanent => {}
        }
    }
}

#[async_trait]
impl Ledger for Watched {
    async fn append(&self, batch: Batch) -> Result<(), AppendError> {
        let outcome = self.ledger.append(batch).await;
        match &outcome {
            Ok(()) => self.troubles.over(Part::Ledger),
            Err(AppendError::Fault(fault)) => self.failed(fault),
            Err(
                AppendError::Moved { .. }
                | AppendError::Duplicate
                | AppendError::LeaseLost
                | AppendError::IssueTaken { .. },
            ) => {}
        }
        outcome
    }

    async fn read(&self, stream: &StreamId, after: u64, limit: u32) -> Result<Vec<Record>, Fault> {
        self.ledger.read(stream, after, limit).await
    }

    async fn dispatchable(&self, candidates: &Candidates) -> Result<Vec<EffectRow>, Fault> {
        self.ledger.dispatchable(candidates).await
    }

    async fn lease(&self, wish: LeaseWish) -> Result<Leased, Fault> {
        self.wrote(self.ledger.lease(wish).await)
    }

    async fn renew(&self, settlement: &Settlement, until: Timestamp) -> Result<Renewal, Fault> {
        self.wrote(self.ledger.renew(settlement, until).await)
    }

    async fn end_leases(&self, worker: &str) -> Result<u32, Fault> {
        self.wrote(self.ledger.end_leases(worker).await)
    }

    async fn due(&self, now: Timestamp, limit: u32) -> Result<Vec<RunId>, Fault> {
        self.ledger.due(now, limit).await
    }

    async fn replace_projections(&self, all: Projections) -> Result<(), Fault> {
        self.ledger.replace_projections(all).await
    }
}
