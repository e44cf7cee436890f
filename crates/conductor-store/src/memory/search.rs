//! Finds records in memory, by looking at each.
//!
//! It does not know what a record means.

use async_trait::async_trait;
use conductor_port::Fault;
use conductor_port::ledger::{Record, StreamId};
use conductor_port::search::{Found, RecordFilter, Search};

use super::{Memory, State};
use crate::words::{self, Home};

#[async_trait]
impl Search for Memory {
    async fn records(&self, filter: &RecordFilter) -> Result<Vec<Found>, Fault> {
        let state = self.state();
        let asked = words::asked(filter);
        let fits = |found: &Found| {
            let Found { place, record } = found;
            filter.before.is_none_or(|before| *place < before)
                && filter.from.is_none_or(|from| record.at >= from)
                && filter.until.is_none_or(|until| record.at < until)
                && !filter.hidden.contains(&record.kind.as_str())
                && asked.fits(&words::of(record, state.home(record).as_ref()))
        };
        let newest_first = state.places.iter().enumerate().rev();
        let kept = newest_first.filter_map(|(index, (stream, seq))| {
            Some(Found {
                place: index as u64 + 1,
                record: state.record(stream, *seq)?.clone(),
            })
        });
        Ok(kept.filter(fits).take(filter.limit as usize).collect())
    }
}

impl State {
    fn home(&self, record: &Record) -> Option<Home> {
        match StreamId::from_key(&record.stream)? {
            StreamId::Run(run) => self.runs.get(&run).map(Home::of),
            StreamId::Instance => None,
        }
    }

    fn record(&self, stream: &StreamId, seq: u64) -> Option<&Record> {
        let index = usize::try_from(seq).ok()?.checked_sub(1)?;
        self.streams.get(stream)?.get(index)
    }

    /// Numbers the records anew, the oldest first.
    pub(super) fn place_anew(&mut self) {
        let mut all: Vec<&Record> = self.streams.values().flatten().collect();
        all.sort_by(|a, b| (a.at, &a.stream, a.seq).cmp(&(b.at, &b.stream, b.seq)));
        let places = all.into_iter();
        let places = places.filter_map(|record| Some((StreamId::from_key(&record.stream)?, record.seq)));
        self.places = places.collect();
    }
}
