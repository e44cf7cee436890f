//! The ledger port on the database.
//!
//! It does not know what a record means.

use async_trait::async_trait;
use conductor_domain::id::{EffectId, RunId};
use conductor_domain::time::Timestamp;
use conductor_port::Fault;
use conductor_port::ledger::{
    AppendError, Batch, Candidates, EffectRow, LeaseWish, Leased, Ledger, Projections, Record, Renewal,
    Settlement, StreamId,
};
use sqlx::SqlSafeStr as _;

use super::append::Append;
use super::conn::Arg::{Int, OptText, Text};
use super::dispatch::{EndLeases, Lease, Renew, ReplaceProjections};
use super::rows::{self, number};
use super::{Database, Paged, Statement, fault::fault, sql};
use crate::shape;

/// Enough to make the way to the database cheap, little enough to be held twice in memory.
const RECORDS_PER_PAGE: u32 = 1_000;

#[async_trait]
impl Ledger for Database {
    async fn append(&self, batch: Batch) -> Result<(), AppendError> {
        shape::check(&batch)?;
        let voice = self.voice.clone();
        self.writer.write(Append { batch, voice }).await
    }

    /// Pages are apart in time, and may be: what was read of a stream never changes.
    async fn read(&self, stream: &StreamId, after: u64, limit: u32) -> Result<Vec<Record>, Fault> {
        let attempted = format!("read stream {stream} after {after}");
        let key = stream.as_key();
        let (mut records, mut after, mut left) = (Vec::<Record>::new(), after, limit);
        loop {
            let size = left.min(RECORDS_PER_PAGE);
            let after_kept = number(after).map_err(|error| fault(&attempted, &error))?;
            let args = [Text(&key), Int(after_kept), Int(i64::from(size))];
            let page = self
                .look(&attempted, self.db.page_of_records(), &args, rows::records)
                .await?
                .pop();
            let page = page.unwrap_or_default();
            let is_last = page.len() < size as usize;
            left -= size;
            records.extend(page);
            after = records.last().map_or(after, |record| record.seq);
            if is_last || left == 0 {
                return Ok(records);
            }
        }
    }

    async fn dispatchable(&self, candidates: &Candidates) -> Result<Vec<EffectRow>, Fault> {
        let range = (candidates.after.as_ref().map(EffectId::as_str), candidates.limit);
        self.page_past_damage("list dispatchable effects", candidates, range, rows::effect)
            .await
    }

    async fn lease(&self, wish: LeaseWish) -> Result<Leased, Fault> {
        self.writer.write(Lease(wish)).await
    }

    async fn renew(&self, settlement: &Settlement, until: Timestamp) -> Result<Renewal, Fault> {
        self.writer
            .write(Renew {
                settlement: settlement.clone(),
                until,
            })
            .await
    }

    async fn end_leases(&self, worker: &str) -> Result<u32, Fault> {
        self.writer.write(EndLeases(worker.to_owned())).await
    }

    async fn due(&self, now: Timestamp, limit: u32) -> Result<Vec<RunId>, Fault> {
        let args = [Int(now.0), Int(i64::from(limit))];
        self.look_past_damage(
            "list runs whose deadline is over",
            sql::DUE,
            &args,
            rows::only_run_id,
        )
        .await
    }

    async fn replace_projections(&self, all: Projections) -> Result<(), Fault> {
        self.writer.write(ReplaceProjections(all)).await
    }
}

impl Paged for Candidates {
    fn page<'a>(&'a self, after: Option<&'a str>, limit: u32) -> Statement<'a> {
        Statement {
            sql: sql::DISPATCHABLE.into_sql_str(),
            args: vec![Int(self.now.0), Int(i64::from(limit)), OptText(after)],
        }
    }
}
