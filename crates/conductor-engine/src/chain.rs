//! Chains records: each hash covers every other field of its record and the hash before it (SEC-8).
//!
//! The first hash of a stream is derived from the stream's name, so that no stream can be passed for another. The
//! same scheme chains the tool calls of one invocation. This module does not know what a record means.

use conductor_domain::digest::Digest;
use conductor_domain::id::EffectId;
use conductor_domain::time::Timestamp;
use conductor_port::blobs::ToolCall;
use conductor_port::ledger::{Record, StreamId};
use sha2::{Digest as _, Sha256};

/// The hash before the first record of a stream.
pub fn genesis(stream: &StreamId) -> String {
    Digest::of(format!("conductor stream {stream}").as_bytes()).into()
}

/// The hash before the first tool call of an invocation.
pub fn tool_genesis(invocation: &EffectId) -> String {
    Digest::of(format!("conductor tools {invocation}").as_bytes()).into()
}

/// Computes the hash of a record whose predecessor has the hash `before`; the record's own `hash` is not looked at.
pub fn link(before: &str, record: &Record) -> String {
    // Destructured so that a new field of Record cannot be left out of the hash.
    let Record {
        stream,
        seq,
        event_id,
        schema_version,
        class,
        kind,
        payload,
        payload_hash,
        actor_type,
        actor,
        cause,
        at,
        hash: _,
    } = record;
    let mut covered = Covered::after(before);
    covered.text(stream);
    covered.number(*seq);
    covered.text(event_id);
    covered.number(u64::from(*schema_version));
    for text in [class, kind, payload, payload_hash, actor_type, actor, cause] {
        covered.text(text);
    }
    covered.time(*at);
    covered.hash()
}

/// Computes the hash of a tool call whose predecessor has the hash `before`; its own `hash` is not looked at.
pub fn link_tool(before: &str, call: &ToolCall) -> String {
    let ToolCall {
        invocation,
        run,
        n,
        tool,
        target,
        payload_hash,
        decision,
        reason,
        result,
        at,
        hash: _,
    } = call;
    let mut covered = Covered::after(before);
    covered.text(invocation.as_str());
    covered.text(run.as_str());
    covered.number(*n);
    for text in [tool, target, payload_hash, decision, reason, result] {
        covered.text(text);
    }
    covered.time(*at);
    covered.hash()
}

/// Everything that one hash covers: each field behind its length, so that no text can move between two of them.
struct Covered(Sha256);

impl Covered {
    fn after(before: &str) -> Self {
        let mut covered = Self(Sha256::new());
        covered.text(before);
        covered
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.update(text.as_bytes());
    }

    fn number(&mut self, number: u64) {
        self.0.update(number.to_be_bytes());
    }

    fn time(&mut self, at: Timestamp) {
        self.0.update(at.0.to_be_bytes());
    }

    fn hash(self) -> String {
        format!("sha256:{}", hex::encode(self.0.finalize()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record {
            stream: "instance".into(),
            seq: 1,
            event_id: "instance#1".into(),
            schema_version: 1,
            class: "fact".into(),
            kind: "k".into(),
            payload: "{}".into(),
            payload_hash: "p".into(),
            actor_type: "system".into(),
            actor: "conductor".into(),
            cause: String::new(),
            at: Timestamp(7),
            hash: String::new(),
        }
    }

    /// SEC-8: a change in any field, and in what went before, changes the hash.
    #[test]
    fn the_hash_covers_every_field_and_the_hash_before() {
        let original = record();
        let before = genesis(&StreamId::Instance);
        let hash = link(&before, &original);
        let edits: [fn(&mut Record); 12] = [
            |r| r.stream.push('x'),
            |r| r.seq = 2,
            |r| r.event_id.push('x'),
            |r| r.schema_version = 2,
            |r| r.class.push('x'),
            |r| r.kind.push('x'),
            |r| r.payload.push('x'),
            |r| r.payload_hash.push('x'),
            |r| r.actor_type.push('x'),
            |r| r.actor.push('x'),
            |r| r.cause.push('x'),
            |r| r.at = Timestamp(8),
        ];
        for (n, edit) in edits.iter().enumerate() {
            let mut changed = original.clone();
            edit(&mut changed);
            assert_ne!(link(&before, &changed), hash, "edit {n}");
        }
        assert_ne!(link(&hash, &original), hash);
        // Text cannot move from one field to its neighbour unnoticed.
        let moved = Record {
            actor_type: "systemconduc".into(),
            actor: "tor".into(),
            ..original.clone()
        };
        assert_ne!(link(&before, &moved), hash);
        assert_eq!(
            link(
                &before,
                &Record {
                    hash: "anything".into(),
                    ..original
                }
            ),
            hash
        );
    }
}
