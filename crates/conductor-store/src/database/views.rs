//! What readers see of the database. Each view is one statement, and so one point in time.
//!
//! It does not know who reads.

use async_trait::async_trait;
use conductor_domain::id::RunId;
use conductor_domain::instance::Instance;
use conductor_port::ledger::{EffectRow, ForgeWrite, RunRow, StreamId};
use conductor_port::views::{RunFilter, StreamHead, Views};
use conductor_port::{Fault, known};

use super::conn::Arg::Text;
use super::runs::Wanted;
use super::{Database, Statement, fault::fault, rows, sql};

#[async_trait]
impl Views for Database {
    async fn run(&self, run: &RunId) -> Result<Option<RunRow>, Fault> {
        let attempted = format!("read run {run}");
        Ok(self
            .look(&attempted, sql::RUN, &[Text(run.as_str())], rows::run)
            .await?
            .pop())
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, Fault> {
        let attempted = "list runs";
        let wanted = Wanted::of(filter, &self.db).map_err(|error| fault(attempted, &error))?;
        let range = (filter.after.as_ref().map(RunId::as_str), filter.limit);
        self.page_past_damage(attempted, &wanted, range, rows::run).await
    }

    async fn count(&self, filter: &RunFilter) -> Result<u32, Fault> {
        let attempted = "count runs";
        let wanted = Wanted::of(filter, &self.db).map_err(|error| fault(attempted, &error))?;
        let Statement { sql, args } = wanted.count();
        let counted = self.look(attempted, sql, &args, |row| row.count(0)).await?;
        Ok(counted.into_iter().next().unwrap_or_default())
    }

    async fn instance(&self) -> Result<(Instance, StreamHead), Fault> {
        let attempted = "read the instance's state";
        let row = self
            .look(attempted, sql::INSTANCE, &[], rows::instance)
            .await?
            .pop();
        let (state, seq, hash) = row.unwrap_or_default();
        let instance = match state.as_str() {
            "" => Instance::default(),
            json => serde_json::from_str(json)
                .map_err(|error| Fault::permanent(format!("{}: {error}", known::INSTANCE_UNREADABLE)))?,
        };
        Ok((
            instance,
            StreamHead {
                stream: StreamId::Instance,
                seq,
                hash,
            },
        ))
    }

    async fn effects(&self, run: &RunId) -> Result<Vec<EffectRow>, Fault> {
        let attempted = format!("list the effects of run {run}");
        self.look(
            &attempted,
            sql::EFFECTS_OF_RUN,
            &[Text(run.as_str())],
            rows::effect,
        )
        .await
    }

    async fn writes(&self, run: &RunId) -> Result<Vec<ForgeWrite>, Fault> {
        let attempted = format!("list the forge writes of run {run}");
        self.look(&attempted, sql::WRITES_OF_RUN, &[Text(run.as_str())], rows::write)
            .await
    }

    async fn heads(&self) -> Result<Vec<StreamHead>, Fault> {
        self.look_past_damage("list the ends of all streams", sql::HEADS, &[], rows::head)
            .await
    }
}
