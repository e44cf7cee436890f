//! What readers see of the memory store.
//!
//! It does not know who reads.

use async_trait::async_trait;
use conductor_domain::id::RunId;
use conductor_domain::instance::Instance;
use conductor_domain::time::Timestamp;
use conductor_port::ledger::{EffectRow, ForgeWrite, Record, RunRow, StreamId};
use conductor_port::tally::{Span, Tally, Took};
use conductor_port::views::{RunFilter, StreamHead, Views};
use conductor_port::{Fault, known};

use super::{Kept, Memory};

#[async_trait]
impl Views for Memory {
    async fn run(&self, run: &RunId) -> Result<Option<RunRow>, Fault> {
        Ok(self.state().runs.get(run).cloned())
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, Fault> {
        let state = self.state();
        let place = |row: &RunRow| (row.created_at, row.run.clone());
        let after = match &filter.after {
            Some(run) => match state.runs.get(run) {
                Some(row) => Some(place(row)),
                None => return Ok(Vec::new()),
            },
            None => None,
        };
        let text = filter.text.as_ref().map(|text| text.to_ascii_lowercase());
        let named = |row: &RunRow| {
            format!("{} {} {} #{}", row.title, row.repo_name, row.run, row.issue).to_ascii_lowercase()
        };
        let is_wanted = |row: &&RunRow| {
            filter
                .project
                .as_ref()
                .is_none_or(|project| row.project == *project)
                && filter.repo.is_none_or(|repo| row.repo == repo)
                && filter.phase.as_ref().is_none_or(|phase| row.phase == *phase)
                && (!filter.needs_human || row.needs_human)
                && (!filter.needs_nobody || !row.needs_human)
                && (!filter.open || !row.terminal)
                && (!filter.unfinished || !row.cleaned_up)
                && filter
                    .pull_request
                    .is_none_or(|number| row.pull_request == Some(number))
                && filter.issue.is_none_or(|number| row.issue == number)
                && text.as_ref().is_none_or(|text| named(row).contains(text))
                && after.as_ref().is_none_or(|after| place(row) < *after)
        };
        let mut rows: Vec<RunRow> = state.runs.values().filter(is_wanted).cloned().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(place(row)));
        rows.truncate(filter.limit as usize);
        Ok(rows)
    }

    async fn count(&self, filter: &RunFilter) -> Result<u32, Fault> {
        let rows = self.runs(filter).await?;
        Ok(u32::try_from(rows.len()).unwrap_or(u32::MAX))
    }

    async fn instance(&self) -> Result<(Instance, StreamHead), Fault> {
        let state = self.state();
        let (instance, seq, hash) = match &state.instance {
            Some((json, seq, head)) => {
                let instance = serde_json::from_str(json)
                    .map_err(|error| Fault::permanent(format!("{}: {error}", known::INSTANCE_UNREADABLE)))?;
                (instance, *seq, head.clone())
            }
            None => (Instance::default(), 0, String::new()),
        };
        let stream = StreamId::Instance;
        Ok((instance, StreamHead { stream, seq, hash }))
    }

    async fn effects(&self, run: &RunId) -> Result<Vec<EffectRow>, Fault> {
        let state = self.state();
        let mut kept: Vec<&Kept> = state
            .effects
            .values()
            .filter(|kept| kept.asked.run == *run)
            .collect();
        kept.sort_by_key(|kept| kept.place);
        Ok(kept.into_iter().map(Kept::row).collect())
    }

    async fn writes(&self, run: &RunId) -> Result<Vec<ForgeWrite>, Fault> {
        let state = self.state();
        let mut kept: Vec<_> = state
            .writes
            .values()
            .filter(|(_, write)| write.run == *run)
            .collect();
        kept.sort_by_key(|(place, _)| *place);
        Ok(kept.into_iter().map(|(_, write)| write.clone()).collect())
    }

    async fn heads(&self) -> Result<Vec<StreamHead>, Fault> {
        let state = self.state();
        let kept = state.streams.iter().filter(|(_, records)| !records.is_empty());
        Ok(kept
            .map(|(stream, records)| head(stream.clone(), records.last()))
            .collect())
    }
}

#[async_trait]
impl Tally for Memory {
    async fn took(&self, span: &Span) -> Result<Vec<Took>, Fault> {
        let state = self.state();
        let is_within = |at: Timestamp| span.from <= at && at < span.until;
        let is_wanted = |row: &&RunRow| {
            (is_within(row.created_at) || row.ended_at.is_some_and(is_within))
                && span
                    .project
                    .as_ref()
                    .is_none_or(|project| row.project == *project)
                && span.repo.is_none_or(|repo| row.repo == repo)
        };
        let wanted = state.runs.values().filter(is_wanted);
        let took = wanted.map(|row| Took {
            started_at: row.created_at,
            phase: row.phase.clone(),
            figures: serde_json::from_str(&row.figures).ok(),
        });
        Ok(took.collect())
    }
}

fn head(stream: StreamId, last: Option<&Record>) -> StreamHead {
    StreamHead {
        stream,
        seq: last.map_or(0, |record| record.seq),
        hash: last.map_or_else(String::new, |record| record.hash.clone()),
    }
}
