//! Records the heads of the run chains in the instance stream, so that a later loss can be named (OWN-5a, SEC-8).
//!
//! Every thousand events, every minute, and at shutdown; each anchor names the heads that moved since they were
//! anchored last, so that the newest mention of each run is its anchor and old runs cost nothing. This module does
//! not know how a chain is verified.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use conductor_domain::digest::Digest;
use conductor_domain::fault::Fault;
use conductor_domain::id::RunId;
use conductor_domain::instance::{ChainHead, InstanceEvent, InstanceInput};
use conductor_port::inbox::SubmitError;
use conductor_port::ledger::{Ledger, StreamId};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::dispatch::duration;
use crate::engine::Engine;
use crate::{intake, record, telemetry};

/// How many records are read in one go.
pub(crate) const PAGE: u32 = 1000;

/// Anchors until shutdown; the last anchor is made by the engine itself.
pub(crate) async fn run(engine: &Engine, shutdown: &CancellationToken) {
    loop {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => return,
            () = engine.anchor_due.notified() => {}
            () = tokio::time::sleep(duration(engine.options.anchor_every)) => {}
        }
        anchor_or_complain(engine).await;
    }
}

/// Anchors the chains; a fault is logged, and the next time comes.
pub(crate) async fn anchor_or_complain(engine: &Engine) {
    if let Err(error) = anchor(engine)
        .instrument(tracing::debug_span!(telemetry::ANCHOR))
        .await
    {
        tracing::warn!(%error, "could not anchor the chains; trying again later");
    }
}

async fn anchor(engine: &Engine) -> Result<(), SubmitError> {
    let unanchored = engine.unanchored.load(Ordering::Relaxed);
    let mut anchored = engine.anchored();
    anchored.read_on(engine.ports.ledger.as_ref()).await?;
    engine.remember_anchored(anchored.clone());
    let mut moved = BTreeMap::new();
    for head in engine.ports.views.heads().await? {
        let StreamId::Run(run) = head.stream else { continue };
        let hash = Digest::parse(head.hash).map_err(|error| {
            Fault::permanent(format!("the chain of run {run} does not end in a hash: {error}"))
        })?;
        let head = ChainHead { seq: head.seq, hash };
        if anchored.heads.get(&run) != Some(&head) {
            moved.insert(run, head);
        }
    }
    if !moved.is_empty() {
        intake::submit_to_instance(engine, InstanceInput::HeadsCollected { heads: moved }).await?;
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
                if let InstanceEvent::HeadsAnchored { heads } = record::decode(record)? {
                    self.heads.extend(heads);
                }
            }
        }
    }
}
