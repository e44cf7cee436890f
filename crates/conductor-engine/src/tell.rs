//! Tells somebody outside what a person should know of: a run waits, failed or is done, the kill switch was turned.
//!
//! The records themselves are the outbox: how far each stream was told is marked after the listener took the notice, so
//! that a crash tells it again rather than never, under the same id. A listener that is down keeps its notices waiting and
//! nothing else; no run ever waits for it. A notice that it refuses for good counts as taken, because no other could follow.
//! One process has the duty. This module does not know who listens.

use std::collections::BTreeMap;
use std::sync::Arc;

use conductor_domain::event::Event;
use conductor_domain::fault::{Fault, FaultKind};
use conductor_domain::instance::InstanceEvent;
use conductor_domain::time::{Millis, Timestamp};
use conductor_port::duty::Duty;
use conductor_port::herald::{Herald, Marks, Notice, NoticeKind, NoticedRun};
use conductor_port::ledger::{Record, StreamId};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::dispatch::duration;
use crate::duty::{Post, Turn};
use crate::engine::Engine;
use crate::intake::{self, Pages, Which};
use crate::{perform, record};

/// How many records are read in one go.
const PAGE: u32 = 200;
/// The pause after the first failure; it doubles up to the longest.
const SHORTEST: Millis = Millis(1_000);
const LONGEST: Millis = Millis(300_000);
/// What marks begin with; before a stream's own stands since when anything is told.
const MARKS: &str = "told/";
const SINCE: &str = "told/since";

/// Whom the engine tells, and where it remembers how far.
#[derive(Debug, Clone)]
pub struct Telling {
    /// Tells.
    pub herald: Arc<dyn Herald>,
    /// Remembers.
    pub marks: Arc<dyn Marks>,
}

/// How far everything was told.
#[derive(Debug, Default)]
struct Told {
    since: Timestamp,
    streams: BTreeMap<StreamId, u64>,
    /// Streams that may hold something new, and from when on to try.
    due: BTreeMap<StreamId, Timestamp>,
    failures: u32,
}

/// Tells until shutdown; does nothing where nobody listens.
pub(crate) async fn run(engine: &Engine, shutdown: &CancellationToken) {
    let Some(telling) = &engine.options.telling else {
        return;
    };
    let mut post = Post::of(Duty::Notices);
    let mut committed = engine.committed();
    let mut told = Told::default();
    let mut has_missed = true;
    let mut tick = tokio::time::interval(duration(engine.options.tick));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            heard = committed.recv() => match heard {
                Ok(committed) => {
                    told.due.entry(committed.stream).or_default();
                    // What comes at once is looked at in one go.
                    continue;
                }
                Err(RecvError::Lagged(_)) => { has_missed = true; }
                Err(RecvError::Closed) => return,
            },
            _ = tick.tick() => {}
        }
        let turn = match post.turn(engine).await {
            Ok(turn) => turn,
            Err(fault) => {
                tracing::warn!(%fault, "cannot look whose turn it is to tell");
                continue;
            }
        };
        match turn {
            Turn::Anothers => {
                // Whoever has the duty tells; should it become ours, everything is looked at anew.
                told.due.clear();
                has_missed = true;
                continue;
            }
            Turn::Begins => has_missed = true,
            Turn::GoesOn => {}
        }
        if has_missed {
            match look_at_all(engine, telling, &mut told).await {
                Ok(()) => has_missed = false,
                Err(fault) => tracing::warn!(%fault, "cannot look for what is to be told"),
            }
        }
        let now = engine.ports.clock.now();
        let due: Vec<StreamId> = told
            .due
            .iter()
            .filter(|(_, at)| **at <= now)
            .map(|(stream, _)| stream.clone())
            .collect();
        for stream in due {
            match tell_of(engine, telling, &mut told, &stream).await {
                Ok(()) => {
                    told.failures = 0;
                    told.due.remove(&stream);
                }
                Err(fault) => {
                    let pause = Millis(
                        SHORTEST
                            .0
                            .saturating_mul(1 << told.failures.min(16))
                            .min(LONGEST.0),
                    );
                    told.failures = told.failures.saturating_add(1);
                    told.due
                        .insert(stream.clone(), engine.ports.clock.now().after(pause));
                    tracing::warn!(%fault, %stream, "a notice was not taken; it is told again");
                    // The listener is the same for all: the others wait with it.
                    let until = engine.ports.clock.now().after(pause);
                    told.due.values_mut().for_each(|at| *at = (*at).max(until));
                    break;
                }
            }
        }
    }
}

/// Reads how far everything was told, and looks at every stream that went on since.
async fn look_at_all(engine: &Engine, telling: &Telling, told: &mut Told) -> Result<(), Fault> {
    let marks: BTreeMap<String, String> = telling.marks.marks(MARKS).await?.into_iter().collect();
    let since = marks.get(SINCE).and_then(|since| since.parse().ok());
    told.since = if let Some(since) = since {
        Timestamp(since)
    } else {
        // From the first time that somebody listens; what was before is old.
        let now = engine.ports.clock.now();
        telling.marks.mark(SINCE, &now.0.to_string()).await?;
        now
    };
    let seq = |stream: &StreamId| marks.get(&name(stream)).and_then(|seq| seq.parse::<u64>().ok());
    told.streams.clear();
    let mut pages = Pages::of(Which::All);
    while let Some(rows) = pages.next(engine.ports.views.as_ref()).await? {
        for row in rows.into_iter().filter(|row| row.updated_at >= told.since) {
            let stream = StreamId::Run(row.run);
            let known = seq(&stream).unwrap_or(0);
            if known < row.seq {
                told.streams.insert(stream.clone(), known);
                told.due.entry(stream).or_default();
            }
        }
    }
    told.streams
        .insert(StreamId::Instance, seq(&StreamId::Instance).unwrap_or(0));
    told.due.entry(StreamId::Instance).or_default();
    Ok(())
}

fn name(stream: &StreamId) -> String {
    format!("{MARKS}{}", stream.as_key())
}

/// Tells what is new in one stream, in order.
async fn tell_of(
    engine: &Engine,
    telling: &Telling,
    told: &mut Told,
    stream: &StreamId,
) -> Result<(), Fault> {
    let mut after = told.streams.get(stream).copied().unwrap_or(0);
    let mut last_told = None;
    loop {
        let records = engine.ports.ledger.read(stream, after, PAGE).await?;
        let Some(last) = records.last().map(|record| record.seq) else {
            return Ok(());
        };
        for record in &records {
            if record.at >= told.since
                && let Some(kind) = worth_telling(record)
                // A gate that opens may place a hold, too; that is one thing to a person.
                && last_told != Some((kind, record.at))
            {
                let notice = Notice {
                    delivery: record.event_id.clone(),
                    event: kind,
                    at: record.at,
                    run: noticed(engine, stream).await?,
                };
                match perform::tell(telling.herald.as_ref(), &notice).await {
                    Ok(()) => {}
                    Err(fault) if fault.kind == FaultKind::Permanent => {
                        let delivery = &notice.delivery;
                        tracing::warn!(%fault, %stream, %delivery, "a notice was refused for good");
                    }
                    Err(fault) => return Err(fault),
                }
                last_told = Some((kind, record.at));
                telling.marks.mark(&name(stream), &record.seq.to_string()).await?;
            } else if record.kind == "cleaned_up" {
                // Nothing follows; whoever starts next need not look.
                telling.marks.mark(&name(stream), &record.seq.to_string()).await?;
            }
            after = record.seq;
            told.streams.insert(stream.clone(), after);
        }
        after = last;
    }
}

/// Says what a record means to somebody outside; most mean nothing.
fn worth_telling(record: &Record) -> Option<NoticeKind> {
    if record.class != "decision" {
        return None;
    }
    match record.kind.as_str() {
        "plan_proposed" | "gate_reopened" | "diff_gate_opened" | "call_gate_opened" | "clean_up_failed" => {
            Some(NoticeKind::NeedsHuman)
        }
        "hold_placed" => match record::decode(record) {
            Ok(Event::HoldPlaced { hold }) if hold.needs_human() => Some(NoticeKind::NeedsHuman),
            Ok(_) | Err(_) => None,
        },
        "run_failed" => Some(NoticeKind::Failed),
        "run_completed" => Some(NoticeKind::Completed),
        "kill_switch_turned" => match record::decode(record) {
            Ok(InstanceEvent::KillSwitchTurned { on: true, .. }) => Some(NoticeKind::KillSwitchOn),
            Ok(InstanceEvent::KillSwitchTurned { on: false, .. }) => Some(NoticeKind::KillSwitchOff),
            Ok(_) | Err(_) => None,
        },
        _ => None,
    }
}

async fn noticed(engine: &Engine, stream: &StreamId) -> Result<Option<NoticedRun>, Fault> {
    let StreamId::Run(id) = stream else {
        return Ok(None);
    };
    let Some(run) = intake::standing(engine.ports.views.as_ref(), id).await?.run else {
        return Ok(None);
    };
    Ok(Some(NoticedRun {
        id: id.clone(),
        project: run.spec.project.to_string(),
        repo: run.spec.repo.to_string(),
        issue: run.spec.issue.0,
        page: run.spec.page,
    }))
}
