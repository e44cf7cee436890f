//! Ledgers that are not what they should be: one in rough weather, and one that somebody tampered with.
//!
//! What they keep is kept by the ledger behind them. They do not know what is kept.

use std::sync::Arc;

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::id::RunId;
use conductor_domain::instance::Instance;
use conductor_domain::time::Timestamp;
use conductor_port::ledger::{
    AppendError, Batch, Candidates, EffectRow, ForgeWrite, LeaseWish, Leased, Ledger, Projections, Record,
    Renewal, RunRow, Settlement, StreamId,
};
use conductor_port::views::{RunFilter, StreamHead, Views};

use crate::world::World;

/// A ledger in rough weather.
#[derive(Debug)]
pub struct RoughLedger {
    world: Arc<World>,
    calm: Arc<dyn Ledger>,
}

impl RoughLedger {
    /// Puts a ledger into the weather of a world.
    pub fn new(world: Arc<World>, calm: Arc<dyn Ledger>) -> Self {
        Self { world, calm }
    }
}

#[async_trait]
impl Ledger for RoughLedger {
    async fn append(&self, batch: Batch) -> Result<(), AppendError> {
        let weather = self
            .world
            .weather(match &batch.stream {
                StreamId::Run(_) => "append to a run",
                StreamId::Instance => "append to the instance",
            })
            .await;
        weather.before()?;
        self.calm.append(batch).await?;
        Ok(weather.after(())?)
    }

    async fn read(&self, stream: &StreamId, after: u64, limit: u32) -> Result<Vec<Record>, Fault> {
        self.calm.read(stream, after, limit).await
    }

    async fn dispatchable(&self, candidates: &Candidates) -> Result<Vec<EffectRow>, Fault> {
        self.world.weather("look for effects").await.before()?;
        self.calm.dispatchable(candidates).await
    }

    async fn lease(&self, wish: LeaseWish) -> Result<Leased, Fault> {
        let weather = self.world.weather("lease").await;
        weather.before()?;
        let leased = self.calm.lease(wish).await?;
        weather.after(leased)
    }

    async fn end_leases(&self, worker: &str) -> Result<u32, Fault> {
        self.calm.end_leases(worker).await
    }

    async fn renew(&self, settlement: &Settlement, until: Timestamp) -> Result<Renewal, Fault> {
        let weather = self.world.weather("renew").await;
        weather.before()?;
        let renewal = self.calm.renew(settlement, until).await?;
        weather.after(renewal)
    }

    async fn due(&self, now: Timestamp, limit: u32) -> Result<Vec<RunId>, Fault> {
        self.world.weather("look for deadlines").await.before()?;
        self.calm.due(now, limit).await
    }

    async fn replace_projections(&self, all: Projections) -> Result<(), Fault> {
        self.calm.replace_projections(all).await
    }
}

/// Changes what is read of a stream, as someone with access to the database could.
pub type Tampering = Box<dyn Fn(&StreamId, &mut Vec<Record>) + Send + Sync>;

/// A ledger that somebody tampered with; for reading only.
pub struct TamperedLedger<L> {
    honest: Arc<L>,
    tampering: Tampering,
    care: Care,
}

/// How far a tamperer goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Care {
    /// The records only.
    Hasty,
    /// The records, and what readers see of where they end.
    Thorough,
}

impl<L> std::fmt::Debug for TamperedLedger<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TamperedLedger")
    }
}

impl<L: Ledger + Views> TamperedLedger<L> {
    /// Tampers with a ledger, and makes the projections fit.
    pub fn new(
        honest: Arc<L>,
        tampering: impl Fn(&StreamId, &mut Vec<Record>) + Send + Sync + 'static,
    ) -> Self {
        Self {
            honest,
            tampering: Box::new(tampering),
            care: Care::Thorough,
        }
    }

    /// Leaves the projections as they were.
    #[must_use]
    pub fn hastily(self) -> Self {
        Self {
            care: Care::Hasty,
            ..self
        }
    }

    async fn tampered(&self, stream: &StreamId) -> Result<Vec<Record>, Fault> {
        let mut records = self.honest.read(stream, 0, u32::MAX).await?;
        (self.tampering)(stream, &mut records);
        Ok(records)
    }
}

fn read_only() -> Fault {
    Fault::permanent("a tampered ledger is for reading only")
}

#[async_trait]
impl<L: Ledger + Views> Ledger for TamperedLedger<L> {
    async fn append(&self, _batch: Batch) -> Result<(), AppendError> {
        Err(read_only().into())
    }

    async fn read(&self, stream: &StreamId, after: u64, limit: u32) -> Result<Vec<Record>, Fault> {
        let records = self
            .tampered(stream)
            .await?
            .into_iter()
            .filter(|record| record.seq > after);
        Ok(records.take(limit as usize).collect())
    }

    async fn dispatchable(&self, _candidates: &Candidates) -> Result<Vec<EffectRow>, Fault> {
        Err(read_only())
    }

    async fn lease(&self, _wish: LeaseWish) -> Result<Leased, Fault> {
        Err(read_only())
    }

    async fn renew(&self, _settlement: &Settlement, _until: Timestamp) -> Result<Renewal, Fault> {
        Err(read_only())
    }

    async fn end_leases(&self, _worker: &str) -> Result<u32, Fault> {
        Err(read_only())
    }

    async fn due(&self, _now: Timestamp, _limit: u32) -> Result<Vec<RunId>, Fault> {
        Err(read_only())
    }

    async fn replace_projections(&self, _all: Projections) -> Result<(), Fault> {
        Err(read_only())
    }
}

#[async_trait]
impl<L: Ledger + Views> Views for TamperedLedger<L> {
    async fn run(&self, run: &RunId) -> Result<Option<RunRow>, Fault> {
        self.honest.run(run).await
    }

    /// To a thorough tamperer: a run whose records are gone is gone from the projections, too.
    async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, Fault> {
        if self.care == Care::Hasty {
            return self.honest.runs(filter).await;
        }
        let mut rows = vec![];
        for mut row in self.honest.runs(filter).await? {
            if let Some(last) = self.tampered(&StreamId::Run(row.run.clone())).await?.last() {
                row.seq = last.seq;
                rows.push(row);
            }
        }
        Ok(rows)
    }

    async fn count(&self, filter: &RunFilter) -> Result<u32, Fault> {
        let rows = self.runs(filter).await?;
        Ok(u32::try_from(rows.len()).unwrap_or(u32::MAX))
    }

    async fn instance(&self) -> Result<(Instance, StreamHead), Fault> {
        let (instance, mut head) = self.honest.instance().await?;
        if self.care == Care::Hasty {
            return Ok((instance, head));
        }
        let last = self.tampered(&StreamId::Instance).await?.pop();
        head.seq = last.as_ref().map_or(0, |last| last.seq);
        head.hash = last.map(|last| last.hash).unwrap_or_default();
        Ok((instance, head))
    }

    async fn effects(&self, run: &RunId) -> Result<Vec<EffectRow>, Fault> {
        self.honest.effects(run).await
    }

    async fn writes(&self, run: &RunId) -> Result<Vec<ForgeWrite>, Fault> {
        self.honest.writes(run).await
    }

    async fn heads(&self) -> Result<Vec<StreamHead>, Fault> {
        let mut heads = vec![];
        for head in self.honest.heads().await? {
            if let Some(last) = self.tampered(&head.stream).await?.last() {
                heads.push(StreamHead {
                    stream: head.stream,
                    seq: last.seq,
                    hash: last.hash.clone(),
                });
            }
        }
        Ok(heads)
    }
}
