//! A ledger in rough weather: calls take time, fail before they did anything, or fail although they did it.
//!
//! What it keeps is kept by the ledger behind it. It does not know what is kept.

use std::sync::Arc;

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::id::RunId;
use conductor_domain::time::Timestamp;
use conductor_port::ledger::{
    AppendError, Batch, EffectRow, LeaseWish, Leased, Ledger, Projection, Record, Renewal, Settlement,
    StreamId,
};

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
        let weather = self.world.weather("append").await;
        weather.before()?;
        self.calm.append(batch).await?;
        Ok(weather.after(())?)
    }

    async fn read(&self, stream: &StreamId, after: u64, limit: u32) -> Result<Vec<Record>, Fault> {
        self.calm.read(stream, after, limit).await
    }

    async fn dispatchable(&self, now: Timestamp, limit: u32) -> Result<Vec<EffectRow>, Fault> {
        self.world.weather("look for effects").await.before()?;
        self.calm.dispatchable(now, limit).await
    }

    async fn lease(&self, wish: LeaseWish) -> Result<Leased, Fault> {
        let weather = self.world.weather("lease").await;
        weather.before()?;
        let leased = self.calm.lease(wish).await?;
        weather.after(leased)
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

    async fn replace_projections(&self, rows: Vec<Projection>) -> Result<(), Fault> {
        self.calm.replace_projections(rows).await
    }
}
