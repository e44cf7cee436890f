//! Records the heads of the run chains in the instance stream, so that a later loss can be named (OWN-5a, SEC-8).
//!
//! Every thousand events and every minute by the one process that has the duty, and at shutdown; each anchor names the heads that moved since they were
//! anchored last, so that the newest mention of each run is its anchor and old runs cost nothing. This module does
//! not know how a chain is verified.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use conductor_domain::digest::Digest;
use conductor_domain::fault::Fault;
use conductor_domain::id::RunId;
use conductor_domain::instance::{ChainHead, InstanceEvent, InstanceInput};
use conductor_domain::time::Millis;
use conductor_port::duty::Duty;
use conductor_port::inbox::SubmitError;
use conductor_port::ledger::{Ledger, StreamId};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::dispatch::duration;
use crate::duty::{Post, Turn};
use crate::engine::{Engine, Options};
use crate::trouble::Part;
use crate::{intake, record, telemetry};

/// How many records are read in one go.
pub(crate) const PAGE: u32 = 1000;

/// Anchors until shutdown; the last anchor is made by the engine itself.
pub(crate) async fn run(engine: &Engine, shutdown: &CancellationToken) {
    let mut post = Post::of(Duty::Anchors);
    let Options {
        anchor_every, lease, ..
    } = &engine.options;
    let pause = Millis(anchor_every.0.min(lease.0 / 3));
    let mut due = engine.ports.clock.now().after(*anchor_every);
    loop {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => return,
            () = engine.anchor_due.notified() => due = engine.ports.clock.now(),
            () = tokio::time::sleep(duration(pause)) => {}
        }
        match post.turn(engine).await {
            Ok(Turn::Begins | Turn::GoesOn) if due <= engine.ports.clock.now() => {
                anchor_or_complain(engine).await;
                due = engine.ports.clock.now().after(*anchor_every);
            }
            Ok(Turn::Begins | Turn::GoesOn | Turn::Anothers) => {}
            Err(fault) => tracing::warn!(%fault, "could not learn who anchors the chains; trying again"),
        }
    }
}

/// Anchors the chains; a fault is said, and the next time comes.
pub(crate) async fn anchor_or_complain(engine: &Engine) {
    let done = anchor(engine)
        .instrument(tracing::debug_span!(telemetry::ANCHOR))
        .await;
    let done = done.map_err(|error| match error {
        SubmitError::Fault(fault) => fault,
        SubmitError::Refused(_)
        | SubmitError::InstanceRefused(_)
        | SubmitError::Stale { .. }
        | SubmitError::IssueHasRun { .. } => {
            Fault::permanent(format!("the instance refused an anchor: {error}"))
        }
    });
    engine.troubles.note(Part::Anchor, done);
}

async fn anchor(engine: &Engine) -> Result<(), SubmitError> {
    let unanchored = engine.unanchored.load(Ordering::Relaxed);
    let mut anchored = engine.anchored();
    anchored.read_on(engine.ports.ledger.as_ref()).await?;
    engine.remember_anchored(anchored.clone());
    let mut moved = BTreeMap::new();
    for head in engine.ports.views.heads().await? {
        let StreamId::Run(run) = head.stream else { continue };
        let hash = match Digest::parse(head.hash) {
            Ok(hash) => hash,
            Err(error) => {
                let what = format!("the chain of run {run} does not end in a hash: {error}");
                engine.troubles.pass_over(&run, Fault::permanent(what))?;
                continue;
            }
        };
        let head = ChainHead { seq: head.seq, hash };
        if anchored.heads.get(&run) != Some(&head) {
            moved.insert(run, head);
        }
    }
    if !moved.is_empty() {
        intake::submit_to_instance(engine, InstanceInput::HeadsCollected { heads: moved }, "").await?;
    }
    engine.unanchored.fetch_sub(unanchored, Ordering::Relaxed);
    Ok(())
}

/// The newest anchor of every run, as far as the instance stream was read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Anchored {
    read: u64,
    heads: BTreeMap<RunId, ChainHead>,
}

impl Anchored {
    async fn read_on(&mut self, ledger: &dyn Ledger) -> Result<(), Fault> {
        loop {
            let page = ledger.read(&StreamId::Instance, self.read, PAGE).await?;
            let Some(last) = page.last() else { return Ok(()) };
            self.read = last.seq;
            for record in page.iter().filter(|record| record.kind == "heads_anchored") {
                match record::decode(record) {
                    Ok(InstanceEvent::HeadsAnchored { heads }) => self.heads.extend(heads),
                    Ok(_misnamed) => {
                        tracing::error!(record = %record.event_id, "a record calls itself an anchor and is none");
                    }
                    // The heads it named are anchored anew; to stop here would end all anchoring for ever.
                    Err(fault) => tracing::error!(%fault, "passing over an anchor that cannot be read"),
                }
            }
        }
    }
}
