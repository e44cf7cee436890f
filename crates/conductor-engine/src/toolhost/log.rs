//! Writes the tool log of one invocation: hash-chained, in order, by one writer (TOOL-4).
//!
//! Calls are kept in groups at most 50 ms after they were made; those that must be durable before they act wait for
//! their group. This module does not know what a call did.

use std::sync::Arc;
use std::time::Duration;

use conductor_domain::digest::Digest;
use conductor_domain::fault::Fault;
use conductor_domain::id::{EffectId, RunId};
use conductor_domain::invocation::ToolLogHead;
use conductor_port::blobs::{CallPage, ToolCall, ToolLog};
use conductor_port::clock::Clock;
use conductor_port::ledger::Settlement;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::chain;
use crate::engine::Engine;

/// How long a call may wait for others to be kept with it.
const GROUP: Duration = Duration::from_millis(40);
/// How many calls may wait to be kept.
const QUEUE: usize = 256;

/// How much of a reason or a result is kept.
const MAX_WORDS: usize = 4096;
/// Stands where the rest was cut off.
const CUT: &str = "… [cut]";

/// One call, before it has its place in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) tool: &'static str,
    pub(crate) target: String,
    pub(crate) payload_hash: String,
    pub(crate) decision: &'static str,
    pub(crate) reason: String,
    pub(crate) result: String,
}

impl Entry {
    /// The address of exactly this call: the tool and all its arguments.
    pub(crate) fn call(&self) -> Digest {
        Digest::of(format!("{}\n{}", self.tool, self.payload_hash).as_bytes())
    }
}

/// How far a call can reach by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Nothing but the sandbox's files.
    Inside,
    /// What the sandbox's outlet leads to.
    Outside,
}

/// Takes calls in; when it is dropped, the writer keeps the rest and ends.
#[derive(Debug)]
pub(crate) struct Log(mpsc::Sender<Wish>);

#[derive(Debug)]
struct Wish {
    entry: Entry,
    /// Answered with the call's number when it is durable.
    durable: Option<oneshot::Sender<u64>>,
}

impl Log {
    /// Notes that a call acts from now on: if nobody hears how it ended, because its invocation ended first, it stands in
    /// the log all the same. One that may leave the sandbox stands there before it acts, whatever becomes of this process.
    pub(crate) async fn begin(&self, entry: Entry, reach: Reach) -> Result<Begun<'_>, Fault> {
        match reach {
            Reach::Inside => {}
            Reach::Outside => {
                let result = "begun".to_owned();
                let entry = entry.clone();
                self.add_durably(Entry { result, ..entry }).await?;
            }
        }
        Ok(Begun {
            log: self,
            entry: Some(entry),
        })
    }

    /// Adds a call; it is durable soon.
    pub(crate) async fn add(&self, entry: Entry) -> Result<(), Fault> {
        self.0
            .send(Wish { entry, durable: None })
            .await
            .map_err(|_gone| writer_is_gone())
    }

    /// Adds a call and waits until it is durable; returns its number.
    pub(crate) async fn add_durably(&self, entry: Entry) -> Result<u64, Fault> {
        let (durable, kept) = oneshot::channel();
        self.0
            .send(Wish {
                entry,
                durable: Some(durable),
            })
            .await
            .map_err(|_gone| writer_is_gone())?;
        kept.await.map_err(|_gone| writer_is_gone())
    }
}

/// A call that acts right now.
#[derive(Debug)]
pub(crate) struct Begun<'a> {
    log: &'a Log,
    entry: Option<Entry>,
}

impl Begun<'_> {
    /// Hands the call back; whoever takes it logs it.
    pub(crate) fn ended(mut self) -> Entry {
        self.entry.take().expect("it is there until it is dropped")
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        let Some(entry) = self.entry.take() else { return };
        let cut_off = Wish {
            entry: Entry {
                result: "begun, and cut off before it ended".to_owned(),
                ..entry
            },
            durable: None,
        };
        if self.log.0.try_send(cut_off).is_err() {
            tracing::error!("a call of a tool was cut off and could not be logged");
        }
    }
}

fn writer_is_gone() -> Fault {
    Fault::transient("cannot log a tool call: the log could not be written")
}

/// Keeps the calls; whoever opened the log runs it beside the agent.
#[derive(Debug)]
pub(crate) struct LogWriter {
    keeper: Arc<dyn ToolLog>,
    clock: Arc<dyn Clock>,
    invocation: EffectId,
    run: RunId,
    lease: Option<Settlement>,
    wishes: mpsc::Receiver<Wish>,
    n: u64,
    head: String,
}

/// Opens the log of an invocation, after what an earlier try of it left there; it is written for as long as the lease holds.
pub(crate) async fn open(
    keeper: Arc<dyn ToolLog>,
    clock: Arc<dyn Clock>,
    invocation: &EffectId,
    run: &RunId,
    lease: Option<Settlement>,
) -> Result<(Log, LogWriter), Fault> {
    let (n, head) = match last(keeper.as_ref(), invocation).await? {
        Some(call) => (call.n, call.hash),
        None => (0, chain::tool_genesis(invocation)),
    };
    let (wish, wishes) = mpsc::channel(QUEUE);
    let writer = LogWriter {
        keeper,
        clock,
        invocation: invocation.clone(),
        run: run.clone(),
        lease,
        wishes,
        n,
        head,
    };
    Ok((Log(wish), writer))
}

/// Reads length and head of a log as it is kept; what recovery anchors after a crash.
pub(crate) async fn head_of(engine: &Engine, invocation: &EffectId) -> Result<ToolLogHead, Fault> {
    match last(engine.ports.tool_log.as_ref(), invocation).await? {
        Some(call) => head(call.n, &call.hash),
        None => head(0, ""),
    }
}

/// Reads the last call alone: a log may be longer than anybody wants to hold.
async fn last(keeper: &dyn ToolLog, invocation: &EffectId) -> Result<Option<ToolCall>, Fault> {
    let newest = CallPage {
        before: None,
        stopped: false,
        limit: 1,
    };
    Ok(keeper.page(invocation, &newest).await?.pop())
}

fn head(calls: u64, hash: &str) -> Result<ToolLogHead, Fault> {
    if calls == 0 {
        return Ok(ToolLogHead {
            calls: 0,
            head: Digest::of(b""),
        });
    }
    let head = Digest::parse(hash)
        .map_err(|error| Fault::permanent(format!("the tool log does not end in a hash: {error}")))?;
    Ok(ToolLogHead { calls, head })
}

impl LogWriter {
    /// Keeps calls until the log is dropped; returns where the log ends.
    pub(crate) async fn write(mut self) -> Result<ToolLogHead, Fault> {
        while let Some(first) = self.wishes.recv().await {
            let group = self.gather(first).await;
            self.keep(group).await?;
        }
        head(self.n, &self.head)
    }

    /// Waits a little for more calls to keep at once, unless someone waits for one of them.
    #[allow(
        clippy::disallowed_methods,
        reason = "measures a wait; no decision depends on it"
    )]
    async fn gather(&mut self, first: Wish) -> Vec<Wish> {
        let until = Instant::now() + GROUP;
        let mut group = vec![first];
        while group.last().is_some_and(|wish| wish.durable.is_none()) && group.len() < QUEUE {
            match timeout_at(until, self.wishes.recv()).await {
                Ok(Some(wish)) => group.push(wish),
                Ok(None) | Err(_) => break,
            }
        }
        group
    }

    async fn keep(&mut self, group: Vec<Wish>) -> Result<(), Fault> {
        let at = self.clock.now();
        let mut calls = Vec::with_capacity(group.len());
        let mut waiting = vec![];
        for Wish { entry, durable } in group {
            self.n += 1;
            let mut call = ToolCall {
                invocation: self.invocation.clone(),
                run: self.run.clone(),
                n: self.n,
                tool: entry.tool.to_owned(),
                target: entry.target,
                payload_hash: entry.payload_hash,
                decision: entry.decision.to_owned(),
                reason: cut(entry.reason),
                result: cut(entry.result),
                at,
                hash: String::new(),
            };
            call.hash = chain::link_tool(&self.head, &call);
            self.head.clone_from(&call.hash);
            calls.push(call);
            waiting.extend(durable.map(|durable| (durable, self.n)));
        }
        self.keeper.append(self.lease.as_ref(), &calls).await?;
        for (durable, n) in waiting {
            // Whoever waited may have been dropped meanwhile.
            let _listener = durable.send(n);
        }
        Ok(())
    }
}

/// Keeps the beginning of what is too long for the log, and says so.
fn cut(mut words: String) -> String {
    if words.len() > MAX_WORDS {
        words.truncate(words.floor_char_boundary(MAX_WORDS - CUT.len()));
        words.push_str(CUT);
    }
    words
}
