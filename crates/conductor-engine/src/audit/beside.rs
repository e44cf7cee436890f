//! Verifies what stands beside a run's records and is covered by them: effects, forge writes, tool logs, bytes.
//!
//! An effect's digest, a tool log's head and a content address stand in the chain; a forge write follows from facts
//! and effects, so it is told anew and compared. This module does not know how any of them is used.

use std::collections::{BTreeMap, BTreeSet};

use conductor_domain::EffectRequest;
use conductor_domain::artifact::Artifact;
use conductor_domain::digest::Digest;
use conductor_domain::event::Event;
use conductor_domain::fault::{Fault, FaultKind};
use conductor_domain::id::{EffectId, RunId};
use conductor_domain::invocation::ToolLogHead;
use conductor_port::blobs::{Blobs, ToolCall, ToolLog};
use conductor_port::ledger::{EffectRow, ForgeWrite, Record};
use serde::Deserialize as _;
use serde_json::Value;

use super::{AuditReport, Problem};
use crate::commit::writes;
use crate::{chain, record};

/// How many kept bytes are looked at in one go; each may be large.
const BYTES_PAGE: u32 = 16;

impl AuditReport {
    /// Verifies a run's effects against the digests in its chain, and finds those that it never asked for.
    pub(super) fn verify_effects(&mut self, records: &[Record], rows: &[EffectRow]) {
        let mut kept: BTreeMap<&EffectId, &EffectRow> = rows.iter().map(|row| (&row.id, row)).collect();
        for record in records.iter().filter(|record| record.kind == "effect_requested") {
            let Ok(Event::EffectRequested { effect, digest, .. }) = record::decode(record) else {
                continue;
            };
            let request = kept
                .remove(&effect)
                .and_then(|row| serde_json::from_str::<EffectRequest>(&row.payload).ok());
            if request.is_none_or(|request| request.id != effect || request.digest() != digest) {
                self.problems.push(Problem::EffectChanged { effect });
            }
        }
        let unasked = kept.into_keys().cloned();
        self.problems
            .extend(unasked.map(|effect| Problem::EffectChanged { effect }));
    }

    /// Verifies that the forge writes are what the records tell. Where the records themselves do not hold, nothing can
    /// be said of the writes.
    pub(super) fn verify_writes(&mut self, records: &[Record], effects: &[EffectRow], shown: &[ForgeWrite]) {
        let Ok(told) = writes::retell(records, effects) else {
            return;
        };
        let told = told.into_iter().flat_map(|after| after.writes);
        let mut told: BTreeMap<EffectId, ForgeWrite> =
            told.map(|write| (write.effect.clone(), write)).collect();
        let mut other: BTreeSet<EffectId> = BTreeSet::new();
        for write in shown {
            if told.remove(&write.effect).as_ref() != Some(write) {
                other.insert(write.effect.clone());
            }
        }
        other.extend(told.into_keys());
        self.problems
            .extend(other.into_iter().map(|effect| Problem::WriteChanged { effect }));
    }

    /// Verifies the tool logs of a run's invocations against the heads in its chain (TOOL-4).
    pub(super) async fn verify_tool_logs(
        &mut self,
        records: &[Record],
        tool_log: &dyn ToolLog,
    ) -> Result<(), Fault> {
        for (effect, anchors) in anchors(records) {
            let is_same = match tool_log.read(&effect).await {
                Ok(calls) => holds(&effect, &anchors, &calls),
                Err(fault) => is_damage(&fault).map_or(Err(fault), |()| Ok(false))?,
            };
            if !is_same {
                self.problems.push(Problem::ToolLogChanged { invocation: effect });
            }
        }
        Ok(())
    }

    /// Verifies every kept byte against its address, and that what runs refer to is kept.
    pub(super) async fn verify_bytes(
        &mut self,
        blobs: &dyn Blobs,
        referred: &BTreeMap<Digest, RunId>,
    ) -> Result<(), Fault> {
        let mut after = String::new();
        let mut missing = referred.clone();
        loop {
            let page = blobs.list(&after, BYTES_PAGE).await?;
            let Some(last) = page.last() else { break };
            after.clone_from(&last.address);
            for kept in page {
                let digest = Digest::of(&kept.bytes);
                if digest.as_str() != kept.address {
                    self.problems.push(Problem::BytesChanged {
                        address: kept.address.clone(),
                    });
                }
                if let Ok(address) = Digest::parse(kept.address) {
                    missing.remove(&address);
                }
            }
        }
        self.problems
            .extend(missing.into_iter().map(|(address, run)| Problem::BytesRemoved {
                run,
                address: address.to_string(),
            }));
        Ok(())
    }
}

fn is_damage(fault: &Fault) -> Option<()> {
    (fault.kind == FaultKind::Permanent).then_some(())
}

/// Lists the bytes that a run's records refer to.
pub(super) fn references(records: &[Record]) -> BTreeSet<Digest> {
    let mut found = BTreeSet::new();
    for record in records
        .iter()
        .filter(|record| record.payload.contains("\"digest\""))
    {
        if let Ok(payload) = serde_json::from_str(&record.payload) {
            collect(&payload, &mut found);
        }
    }
    found
}

fn collect(value: &Value, found: &mut BTreeSet<Digest>) {
    match value {
        Value::Object(fields) => {
            if let Ok(artifact) = Artifact::deserialize(value) {
                found.insert(artifact.digest);
            }
            fields.values().for_each(|field| collect(field, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Where the log of one invocation was anchored; after a fault it goes on with the next try.
#[derive(Debug, Default)]
struct Anchors {
    heads: Vec<ToolLogHead>,
    /// Whether no try follows the last one.
    is_over: bool,
}

fn anchors(records: &[Record]) -> BTreeMap<EffectId, Anchors> {
    let mut found: BTreeMap<EffectId, Anchors> = BTreeMap::new();
    for record in records.iter().filter(|record| record.kind == "invocation_ended") {
        if let Ok(Event::InvocationEnded { effect, tools, .. }) = record::decode(record) {
            found.entry(effect).or_default().heads.push(tools);
        }
    }
    for record in records.iter().filter(|record| record.kind == "effect_settled") {
        if let Ok(Event::EffectSettled { effect }) = record::decode(record)
            && let Some(anchors) = found.get_mut(&effect)
        {
            anchors.is_over = true;
        }
    }
    found
}

/// Tells whether a log is a whole chain that passes every anchor, and ends at the last one when it is over.
fn holds(invocation: &EffectId, anchors: &Anchors, calls: &[ToolCall]) -> bool {
    let mut before = chain::tool_genesis(invocation);
    for (place, call) in (1..).zip(calls) {
        if call.n != place || chain::link_tool(&before, call) != call.hash {
            return false;
        }
        before.clone_from(&call.hash);
    }
    let passes = |anchor: &ToolLogHead| match anchor.calls.checked_sub(1) {
        None => true,
        Some(last) => usize::try_from(last)
            .ok()
            .and_then(|last| calls.get(last))
            .is_some_and(|call| call.hash == anchor.head.as_str()),
    };
    let ends = anchors
        .heads
        .last()
        .is_none_or(|last| last.calls == calls.len() as u64);
    anchors.heads.iter().all(passes) && (ends || !anchors.is_over)
}
