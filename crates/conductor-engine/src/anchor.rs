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
    let anchored = anchored(engine.ports.ledger.as_ref()).await?;
    let mut moved = BTreeMap::new();
    for head in engine.ports.views.heads().await? {
        let StreamId::Run(run) = head.stream else { continue };
        let hash = Digest::parse(head.hash).map_err(|error| {
            Fault::permanent(format!("the chain of run {run} does not end in a hash: {error}"))
        })?;
        let head = ChainHead { seq: head.seq, hash };
        if anchored.get(&run) != Some(&head) {
            moved.insert(run, head);
        }
    }
    if !moved.is_empty() {
        intake::submit_to_instance(engine, InstanceInput::HeadsCollected { heads: moved }).await?;
    }
    engine.unanchored.fetch_sub(unanchored, Ordering::Relaxed);
    Ok(())
}

/// Reads the newest anchor of every run.
pub(crate) async fn anchored(ledger: &dyn Ledger) -> Result<BTreeMap<RunId, ChainHead>, Fault> {
    let mut anchored = BTreeMap::new();
    let mut after = 0;
    loop {
        let page = ledger.read(&StreamId::Instance, after, PAGE).await?;
        let Some(last) = page.last() else {
            return Ok(anchored);
        };
        after = last.seq;
        for record in page.iter().filter(|record| record.kind == "heads_anchored") {
            if let InstanceEvent::HeadsAnchored { heads } = record::decode(record)? {
                anchored.extend(heads);
            }
        }
    }
}
