//! What readers see of the database. Each view is one statement, and so one point in time.
//!
//! It does not know who reads.

use async_trait::async_trait;
use conductor_domain::id::RunId;
use conductor_domain::instance::Instance;
use conductor_port::Fault;
use conductor_port::ledger::{EffectRow, ForgeWrite, RunRow, StreamId};
use conductor_port::views::{RunFilter, StreamHead, Views};

use super::conn::Arg::{Int, OptInt, OptText, Text};
use super::rows::{self, number};
use super::{Database, Page, fault::fault, sql};

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
        let kept = |given: Option<u64>| {
            given
                .map(number)
                .transpose()
                .map_err(|error| fault("list runs", &error))
        };
        let text = filter.text.as_deref().map(containing);
        let args = [
            OptText(filter.project.as_deref()),
            OptInt(kept(filter.repo.map(|repo| repo.0))?),
            OptText(filter.phase.as_deref()),
            Int(i64::from(filter.needs_human)),
            Int(i64::from(!filter.open)),
            OptInt(kept(filter.pull_request)?),
            OptInt(kept(filter.issue)?),
            OptText(filter.after.as_ref().map(RunId::as_str)),
            Int(i64::from(!filter.unfinished)),
            Int(i64::from(filter.limit)),
            OptText(text.as_deref()),
        ];
        let page = Page {
            sql: self.db.runs(),
            args: &args,
            after_at: 7,
            limit_at: 9,
            limit: filter.limit,
        };
        self.page_past_damage("list runs", page, rows::run).await
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
                .map_err(|error| Fault::permanent(format!("{attempted}: {error}")))?,
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

/// The pattern of whatever holds a text, without regard to the case of ASCII letters.
fn containing(text: &str) -> String {
    let mut pattern = String::from("%");
    for letter in text.to_ascii_lowercase().chars() {
        if matches!(letter, '%' | '_' | '!') {
            pattern.push('!');
        }
        pattern.push(letter);
    }
    pattern.push('%');
    pattern
}
