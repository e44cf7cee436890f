//! Verifies every chain and what it covers, and names what was changed, removed, reordered or cut off (SEC-8).
//!
//! A chain proves its own inside (here); that its end is still there is proved by anchors and readers (`ends`); what
//! stands beside the records is compared with what they say of it (`beside`). What came after the last anchor of a run
//! is reported as unanchored. This module reads; it does not know who tampered.

mod problem;
mod ends;
mod beside;

use std::collections::{BTreeMap, BTreeSet};

use conductor_domain::digest::Digest;
use conductor_domain::fault::{Fault, FaultKind};
use conductor_domain::id::RunId;
use conductor_domain::instance::ChainHead;
use conductor_port::blobs::{Blobs, ToolLog};
use conductor_port::ledger::{EffectRow, ForgeWrite, Ledger, Record, StreamId};
use conductor_port::views::Views;
use serde::Serialize;

use crate::replay::read_all;
use crate::{chain, record};
use ends::Seen;

pub use problem::Problem;

/// How often a run is read again because it moved on meanwhile; a server may be at work.
const LOOKS: u32 = 5;

/// What an audit found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct AuditReport {
    /// How many streams were read.
    pub streams: u64,
    /// How many records were read.
    pub records: u64,
    /// What is wrong; empty when nothing is.
    pub problems: Vec<Problem>,
    /// What no anchor covers yet: whose loss could not be named.
    pub unanchored: Vec<Unanchored>,
}

impl AuditReport {
    /// Tells whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }
}

/// The end of a run's chain that no anchor covers yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unanchored {
    /// The run.
    pub run: RunId,
    /// The last place that an anchor covers; 0 when none does.
    pub after: u64,
    /// The last place there is.
    pub last: u64,
}

/// Everything that is kept, as an audit reads it.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "each field is documented at its trait")]
pub struct Kept<'a> {
    pub views: &'a dyn Views,
    pub ledger: &'a dyn Ledger,
    pub tool_log: &'a dyn ToolLog,
    pub blobs: &'a dyn Blobs,
}

/// Verifies all chains against each other and the anchors, and everything else against the chains.
pub async fn verify(kept: Kept<'_>) -> Result<AuditReport, Fault> {
    let Kept { views, ledger, .. } = kept;
    let mut audit = AuditReport::default();
    // Read before the records, so that a server at work only makes the stream longer than what is seen of it.
    let seen = seen(views).await?;
    let instance = audit.verify_stream(ledger, &StreamId::Instance).await?;
    let mut anchors = ends::anchors(&instance);
    let shown = ends::shown(views).await?;

    let heads = views.heads().await?.into_iter();
    let runs: BTreeSet<RunId> = heads.filter_map(|head| run_of(head.stream)).collect();
    let mut said = vec![];
    let mut referred: BTreeMap<Digest, RunId> = BTreeMap::new();
    for run in &runs {
        let Some(read) = audit.read_run(kept, run).await? else {
            continue;
        };
        audit.streams += 1;
        audit.records += read.records.len() as u64;
        let before = audit.problems.len();
        audit.verify_chain(&StreamId::Run(run.clone()), &read.records);
        let anchors = anchors.remove(run).unwrap_or_default();
        audit.verify_end(run, &read.records, &anchors, shown.get(run).copied());
        // Of a chain that does not hold nobody can tell what it covered.
        if audit.problems.len() == before {
            audit.verify_effects(&read.records, &read.effects);
            audit.verify_writes(&read.records, &read.effects, &read.writes);
        }
        audit.verify_tool_logs(&read.records, kept.tool_log).await?;
        said.extend(ends::said_of_instance(&read.records));
        let references = beside::references(&read.records).into_iter();
        referred.extend(references.map(|digest| (digest, run.clone())));
    }
    let gone: BTreeSet<&RunId> = anchors.keys().chain(shown.keys()).collect();
    let gone = gone.into_iter().filter(|run| !runs.contains(run));
    audit
        .problems
        .extend(gone.map(|run| Problem::RunRemoved { run: run.clone() }));
    audit.verify_bytes(kept.blobs, &referred).await?;
    // A server at work may have gone on while the runs were read.
    let instance = read_all(ledger, &StreamId::Instance).await.unwrap_or(instance);
    let are_runs = !runs.is_empty() || !shown.is_empty();
    audit.verify_instance_end(&instance, &said, are_runs, &seen);
    Ok(audit)
}

/// Verifies the instance's stream alone, against what readers see of it; without it nothing else can be trusted.
pub async fn verify_instance(views: &dyn Views, ledger: &dyn Ledger) -> Result<Vec<Problem>, Fault> {
    let mut audit = AuditReport::default();
    let seen = seen(views).await?;
    let instance = audit.verify_stream(ledger, &StreamId::Instance).await?;
    let none: &[ChainHead] = &[];
    audit.verify_instance_end(&instance, none, false, &seen);
    Ok(audit.problems)
}

async fn seen(views: &dyn Views) -> Result<Seen, Fault> {
    let (instance, head) = views.instance().await?;
    Ok(Seen { instance, head })
}

fn run_of(stream: StreamId) -> Option<RunId> {
    match stream {
        StreamId::Run(run) => Some(run),
        StreamId::Instance => None,
    }
}

/// A run at one moment.
struct ReadRun {
    records: Vec<Record>,
    effects: Vec<EffectRow>,
    writes: Vec<ForgeWrite>,
}

impl AuditReport {
    /// Reads a stream and verifies its chain; one that cannot be read is a finding and reads as empty.
    async fn verify_stream(&mut self, ledger: &dyn Ledger, stream: &StreamId) -> Result<Vec<Record>, Fault> {
        let read = read_all(ledger, stream).await;
        let records = self.readable(stream, read)?.unwrap_or_default();
        self.streams += 1;
        self.records += records.len() as u64;
        self.verify_chain(stream, &records);
        Ok(records)
    }

    /// Reads a run with all that belongs to it, again if it moved on meanwhile.
    async fn read_run(&mut self, kept: Kept<'_>, run: &RunId) -> Result<Option<ReadRun>, Fault> {
        let stream = StreamId::Run(run.clone());
        let mut looks = 1;
        loop {
            let before = kept.views.run(run).await?.map(|row| row.seq);
            let read = read_at_once(kept, &stream, run).await;
            let Some(read) = self.readable(&stream, read)? else {
                return Ok(None);
            };
            let after = kept.views.run(run).await?.map(|row| row.seq);
            if before == after || looks == LOOKS {
                return Ok(Some(read));
            }
            looks += 1;
        }
    }

    /// Makes a finding of what no repeat would make readable.
    fn readable<T>(&mut self, stream: &StreamId, read: Result<T, Fault>) -> Result<Option<T>, Fault> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(fault) if fault.kind == FaultKind::Permanent => {
                self.problems.push(Problem::Unreadable {
                    stream: stream.as_key(),
                    why: fault.what,
                });
                Ok(None)
            }
            Err(fault) => Err(fault),
        }
    }

    fn verify_chain(&mut self, stream: &StreamId, records: &[Record]) {
        let key = stream.as_key();
        let mut before = chain::genesis(stream);
        let mut expected = 1;
        for record in records {
            if record.seq > expected {
                self.problems.push(Problem::Removed {
                    stream: key.clone(),
                    from: expected,
                    to: record.seq - 1,
                });
                // What stood before this one is not known, so only its own place and payload can be checked.
                self.verify_record(stream, &key, record, None);
            } else {
                self.verify_record(stream, &key, record, Some(&before));
            }
            expected = record.seq + 1;
            before.clone_from(&record.hash);
        }
    }

    fn verify_record(&mut self, stream: &StreamId, key: &str, record: &Record, before: Option<&str>) {
        let is_changed = record.stream != key
            || record.payload_hash != record::payload_hash(&record.payload)
            || before.is_some_and(|before| chain::link(before, record) != record.hash);
        if record.event_id != record::event_id(stream, record.seq) {
            self.problems.push(Problem::Reordered {
                stream: key.to_owned(),
                seq: record.seq,
                event_id: record.event_id.clone(),
            });
        } else if is_changed {
            self.problems.push(Problem::Changed {
                stream: key.to_owned(),
                seq: record.seq,
            });
        }
    }
}

async fn read_at_once(kept: Kept<'_>, stream: &StreamId, run: &RunId) -> Result<ReadRun, Fault> {
    Ok(ReadRun {
        records: read_all(kept.ledger, stream).await?,
        effects: kept.views.effects(run).await?,
        writes: kept.views.writes(run).await?,
    })
}
