//! Verifies every chain and names what was changed, removed, reordered or cut off (SEC-8).
//!
//! A chain proves its own inside; that its end is still there is proved by the newest anchor in the instance stream.
//! What came after that anchor is reported as unanchored. This module reads; it does not know who tampered.

use std::collections::BTreeMap;

use conductor_domain::digest::Digest;
use conductor_domain::event::Event;
use conductor_domain::fault::Fault;
use conductor_domain::id::{EffectId, RunId};
use conductor_domain::instance::{ChainHead, InstanceEvent};
use conductor_domain::invocation::ToolLogHead;
use conductor_port::blobs::{ToolCall, ToolLog};
use conductor_port::ledger::{Ledger, Record, StreamId};
use conductor_port::views::Views;
use serde::Serialize;

use crate::replay::read_all;
use crate::{chain, record};

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

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "problem")]
pub enum Problem {
    /// The record is not what was written, or the one before it was rewritten.
    Changed {
        /// Where.
        stream: String,
        /// At which place.
        seq: u64,
    },
    /// Records are gone.
    Removed {
        /// Where.
        stream: String,
        /// From this place.
        from: u64,
        /// To this place.
        to: u64,
    },
    /// The record belongs at another place.
    Reordered {
        /// Where.
        stream: String,
        /// The place where it stands.
        seq: u64,
        /// What it calls itself.
        event_id: String,
    },
    /// The end is gone.
    Truncated {
        /// Where.
        stream: String,
        /// The last place there is.
        last: u64,
        /// The last place that there was, as far as is known.
        known: u64,
    },
    /// A whole run is gone.
    RunRemoved {
        /// Which.
        run: RunId,
    },
    /// The tool log of an invocation is not the one that the run's chain anchors (TOOL-4).
    ToolLogChanged {
        /// The invocation.
        invocation: EffectId,
    },
    /// The chain holds together, but it is not the one that was anchored.
    Rewritten {
        /// Where.
        stream: String,
        /// At the latest from this place.
        seq: u64,
    },
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Changed { stream, seq } => write!(f, "{stream}: record {seq} was changed"),
            Self::Removed { stream, from, to } if from == to => {
                write!(f, "{stream}: record {from} was removed")
            }
            Self::Removed { stream, from, to } => write!(f, "{stream}: records {from} to {to} were removed"),
            Self::Reordered {
                stream,
                seq,
                event_id,
            } => {
                write!(f, "{stream}: record {seq} was reordered; it is {event_id}")
            }
            Self::Truncated { stream, last, known } => {
                write!(
                    f,
                    "{stream}: truncated after record {last}; there were at least {known}"
                )
            }
            Self::ToolLogChanged { invocation } => {
                write!(f, "the tool log of {invocation} is not the one that was anchored")
            }
            Self::RunRemoved { run } => write!(f, "run {run} was removed"),
            Self::Rewritten { stream, seq } => {
                write!(
                    f,
                    "{stream}: rewritten; record {seq} is not the one that was anchored"
                )
            }
        }
    }
}

/// Verifies all chains against each other and the anchors.
pub async fn verify(views: &dyn Views, ledger: &dyn Ledger) -> Result<AuditReport, Fault> {
    let mut audit = AuditReport::default();
    let instance = read_all(ledger, &StreamId::Instance).await?;
    audit.verify_chain(&StreamId::Instance, &instance);
    let mut anchors = anchors(&instance);
    let shown = shown(views).await?;

    let mut runs: Vec<RunId> = views
        .heads()
        .await?
        .into_iter()
        .filter_map(|head| run_of(head.stream))
        .collect();
    runs.sort();
    for run in &runs {
        let stream = StreamId::Run(run.clone());
        let records = read_all(ledger, &stream).await?;
        audit.verify_chain(&stream, &records);
        audit.verify_end(
            run,
            &records,
            anchors.remove(run).unwrap_or_default(),
            shown.get(run).copied(),
        );
    }
    let gone = anchors
        .keys()
        .chain(shown.keys())
        .filter(|run| !runs.contains(run));
    let gone: std::collections::BTreeSet<&RunId> = gone.collect();
    audit.problems.extend(
        gone.into_iter()
            .map(|run| Problem::RunRemoved { run: run.clone() }),
    );
    Ok(audit)
}

/// Verifies the tool logs of all invocations against the heads that the runs' chains anchor (TOOL-4).
pub async fn verify_tool_logs(
    views: &dyn Views,
    ledger: &dyn Ledger,
    tool_log: &dyn ToolLog,
) -> Result<Vec<Problem>, Fault> {
    let mut problems = vec![];
    for run in views
        .heads()
        .await?
        .into_iter()
        .filter_map(|head| run_of(head.stream))
    {
        let records = read_all(ledger, &StreamId::Run(run)).await?;
        for record in records.iter().filter(|record| record.kind == "invocation_ended") {
            let Ok(Event::InvocationEnded { effect, tools, .. }) = record::decode(record) else {
                continue;
            };
            if !holds(&effect, &tools, &tool_log.read(&effect).await?) {
                problems.push(Problem::ToolLogChanged { invocation: effect });
            }
        }
    }
    Ok(problems)
}

/// Tells whether a log is a whole chain that ends where it was anchored.
fn holds(invocation: &EffectId, anchored: &ToolLogHead, calls: &[ToolCall]) -> bool {
    let mut before = chain::tool_genesis(invocation);
    for (place, call) in (1..).zip(calls) {
        if call.n != place || chain::link_tool(&before, call) != call.hash {
            return false;
        }
        before.clone_from(&call.hash);
    }
    let is_empty = calls.is_empty() && anchored.calls == 0;
    calls.len() as u64 == anchored.calls && (is_empty || before == anchored.head.as_str())
}

fn run_of(stream: StreamId) -> Option<RunId> {
    match stream {
        StreamId::Run(run) => Some(run),
        StreamId::Instance => None,
    }
}

/// Reads every anchor of every run; one that cannot be read was named as changed already.
fn anchors(instance: &[Record]) -> BTreeMap<RunId, Vec<ChainHead>> {
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

/// Reads how long each run's stream is as readers see it; a hint that outlives an unanchored loss.
async fn shown(views: &dyn Views) -> Result<BTreeMap<RunId, u64>, Fault> {
    let mut filter = conductor_port::views::RunFilter {
        limit: 500,
        ..Default::default()
    };
    let mut shown = BTreeMap::new();
    loop {
        let page = views.runs(&filter).await?;
        let Some(last) = page.last() else { return Ok(shown) };
        filter.after = Some(last.run.clone());
        shown.extend(page.into_iter().map(|row| (row.run, row.seq)));
    }
}

impl AuditReport {
    fn verify_chain(&mut self, stream: &StreamId, records: &[Record]) {
        self.streams += 1;
        self.records += records.len() as u64;
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
                self.verify_record(stream, record, None);
            } else {
                self.verify_record(stream, record, Some(&before));
            }
            expected = record.seq + 1;
            before.clone_from(&record.hash);
        }
    }

    fn verify_record(&mut self, stream: &StreamId, record: &Record, before: Option<&str>) {
        let key = stream.as_key();
        let is_changed = record.stream != key
            || record.payload_hash != record::payload_hash(&record.payload)
            || before.is_some_and(|before| chain::link(before, record) != record.hash);
        if record.event_id != record::event_id(stream, record.seq) {
            let event_id = record.event_id.clone();
            self.problems.push(Problem::Reordered {
                stream: key,
                seq: record.seq,
                event_id,
            });
        } else if is_changed {
            self.problems.push(Problem::Changed {
                stream: key,
                seq: record.seq,
            });
        }
    }

    fn verify_end(&mut self, run: &RunId, records: &[Record], anchors: Vec<ChainHead>, shown: Option<u64>) {
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
        let rewritten = anchors.iter().find(|anchor| {
            let record = records.iter().find(|record| record.seq == anchor.seq);
            record.is_some_and(|record| Digest::parse(record.hash.clone()).as_ref() != Ok(&anchor.hash))
        });
        if let Some(anchor) = rewritten {
            self.problems.push(Problem::Rewritten {
                stream,
                seq: anchor.seq,
            });
        }
        if last > anchored {
            self.unanchored.push(Unanchored {
                run: run.clone(),
                after: anchored,
                last,
            });
        }
    }
}
