//! Verifies that every stream still has its end: by the anchors, by what runs say of the instance, by what readers saw.
//!
//! A chain proves its own inside only. This module does not know how a chain is made.

use std::collections::BTreeMap;

use conductor_domain::fault::Fault;
use conductor_domain::id::RunId;
use conductor_domain::input::Input;
use conductor_domain::instance::{ChainHead, Instance, InstanceEvent, evolve_instance};
use conductor_port::ledger::{Record, StreamId};
use conductor_port::views::{RunFilter, StreamHead, Views};

use super::{AuditReport, Problem, Unanchored};
use crate::record::{self, DECISION, FACT, Fact};

/// How many runs are looked at in one go.
const PAGE: u32 = 500;

/// What readers saw of the instance when its records were read.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) instance: Instance,
    pub(super) head: StreamHead,
}

/// Reads every anchor of every run; one that cannot be read was named as changed already.
pub(super) fn anchors(instance: &[Record]) -> BTreeMap<RunId, Vec<ChainHead>> {
    let mut anchors: BTreeMap<RunId, Vec<ChainHead>> = BTreeMap::new();
    for record in instance.iter().filter(|record| record.kind == "heads_anchored") {
        let Ok(InstanceEvent::HeadsAnchored { heads }) = record::decode(record) else {
            continue;
        };
        for (run, head) in heads {
            anchors.entry(run).or_default().push(head);
        }
    }
    anchors
}

/// Reads what the facts of a run say of the instance's chain; one that cannot be read was named as changed already.
pub(super) fn said_of_instance(records: &[Record]) -> Vec<ChainHead> {
    let facts = records.iter().filter(|record| record.class == FACT);
    facts
        .filter_map(|record| record::decode::<Fact<Input>>(record).ok()?.instance)
        .collect()
}

/// Reads how long each run's stream is as readers see it; a hint that outlives an unanchored loss.
pub(super) async fn shown(views: &dyn Views) -> Result<BTreeMap<RunId, u64>, Fault> {
    let mut filter = RunFilter {
        limit: PAGE,
        ..RunFilter::default()
    };
    let mut shown = BTreeMap::new();
    loop {
        let page = views.runs(&filter).await?;
        let Some(last) = page.last() else { return Ok(shown) };
        filter.after = Some(last.run.clone());
        shown.extend(page.into_iter().map(|row| (row.run, row.seq)));
    }
}

/// Folds the instance's stream up to a place.
fn told(instance: &[Record], last: u64) -> Instance {
    instance
        .iter()
        .filter(|record| record.class == DECISION && record.seq <= last)
        .filter_map(|record| record::decode::<InstanceEvent>(record).ok())
        .fold(Instance::default(), |instance, event| {
            evolve_instance(instance, &event)
        })
}

impl AuditReport {
    /// Verifies that a run's stream reaches as far as its anchors and its readers know.
    pub(super) fn verify_end(
        &mut self,
        run: &RunId,
        records: &[Record],
        anchors: &[ChainHead],
        shown: Option<u64>,
    ) {
        let stream = StreamId::Run(run.clone()).as_key();
        let last = records.last().map_or(0, |record| record.seq);
        let anchored = anchors.iter().map(|anchor| anchor.seq).max().unwrap_or(0);
        let known = anchored.max(shown.unwrap_or(0));
        if known > last {
            self.problems.push(Problem::Truncated {
                stream: stream.clone(),
                last,
                known,
            });
        }
        if let Some(seq) = first_other(records, anchors) {
            self.problems.push(Problem::Rewritten { stream, seq });
        }
        if last > anchored {
            self.unanchored.push(Unanchored {
                run: run.clone(),
                after: anchored,
                last,
            });
        }
    }

    /// Verifies that the instance's stream reaches as far as the runs' facts and its readers know.
    pub(super) fn verify_instance_end(
        &mut self,
        instance: &[Record],
        said: &[ChainHead],
        are_runs: bool,
        seen: &Seen,
    ) {
        let stream = StreamId::Instance.as_key();
        let last = instance.last().map_or(0, |record| record.seq);
        let said_last = said.iter().map(|head| head.seq).max().unwrap_or(0);
        let known = said_last.max(seen.head.seq);
        let at_seen = instance.iter().find(|record| record.seq == seen.head.seq);
        if last == 0 && (are_runs || known > 0) {
            let to = known.max(1);
            self.problems.push(Problem::Removed { stream, from: 1, to });
        } else if known > last {
            // What the readers saw and what runs said both outlive records that were cut off (SEC-8).
            self.problems.push(Problem::Truncated { stream, last, known });
        } else if let Some(seq) = first_other(instance, said) {
            self.problems.push(Problem::Rewritten { stream, seq });
        } else if at_seen.is_some_and(|record| record.hash != seen.head.hash) {
            let seq = seen.head.seq;
            self.problems.push(Problem::Rewritten { stream, seq });
        } else if told(instance, seen.head.seq) != seen.instance {
            // Readers saw more than is told: what they saw was told by records that are gone.
            let known = last + 1;
            self.problems.push(Problem::Truncated { stream, last, known });
        }
    }
}

/// Finds the first known end whose record is there and is another one.
fn first_other(records: &[Record], known: &[ChainHead]) -> Option<u64> {
    let by_seq: BTreeMap<u64, &str> = records
        .iter()
        .map(|record| (record.seq, record.hash.as_str()))
        .collect();
    let is_other = |head: &&ChainHead| {
        by_seq
            .get(&head.seq)
            .is_some_and(|hash| *hash != head.hash.as_str())
    };
    known.iter().find(is_other).map(|head| head.seq)
}
