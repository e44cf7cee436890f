//! Writes the two papers of an invocation: the envelope (what came out) and the receipt (what was run with what).
//!
//! Their fields are the invocation contract's (INV-1, INV-1a, INV-5), the same for an agent, a model call and a user's
//! container. This module does not know whether the outcome was any good.

use std::collections::BTreeMap;

use conductor_domain::artifact::{Artifact, ArtifactKind};
use conductor_domain::digest::Digest;
use conductor_domain::fault::Fault;
use conductor_domain::id::EffectId;
use conductor_domain::invocation::{AgentFailure, Invocation, InvocationLimit, Outcome, Papers, Usage};
use conductor_domain::role::Role;
use conductor_domain::spec::{AgentBackend, Mode};
use conductor_domain::time::Timestamp;
use conductor_port::blobs::Blobs;
use serde::Serialize;
use serde_json::{Value, json};

use crate::record::canonical;
use crate::redact::{Redact, redact_tree};

/// How inputs are hashed: SHA-256 over canonical JSON.
const HASH_SCHEMA: &str = "jcs-sha256-v1";
/// The version of every agent role's contract.
const ROLE_VERSION: u32 = 1;

/// Everything that the papers are made from.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) effect: &'a EffectId,
    pub(super) invocation: &'a Invocation,
    pub(super) end: End<'a>,
    /// What the agent was told.
    pub(super) context: Option<&'a Artifact>,
    /// What was submitted.
    pub(super) artifact: Option<&'a Artifact>,
    pub(super) image_digest: &'a str,
    pub(super) usage: Usage,
    pub(super) at: Timestamp,
}

/// How an invocation came to its end.
#[derive(Debug, Clone, Copy)]
pub(super) enum End<'a> {
    /// By what was seen of its agent.
    Outcome(&'a Outcome),
    /// By a fault of its environment.
    Fault(&'a Fault),
}

/// Writes both papers and keeps them without secrets: how an agent failed is told in the agent's words (SEC-3).
pub(super) async fn write(
    blobs: &dyn Blobs,
    redactor: &dyn Redact,
    facts: &Facts<'_>,
) -> Result<Papers, Fault> {
    let written = |mut paper: Value| {
        redact_tree(redactor, &mut paper);
        canonical(&paper)
    };
    let (envelope, receipt) = (written(envelope(facts)), written(receipt(facts)?));
    // At once, so that one durable write keeps both.
    let (envelope, receipt) = tokio::try_join!(
        blobs.put(ArtifactKind::Envelope, envelope.as_bytes()),
        blobs.put(ArtifactKind::Receipt, receipt.as_bytes()),
    )?;
    Ok(Papers {
        context: facts.context.cloned(),
        envelope,
        receipt,
    })
}

/// One output, named by where it would stand and what it is.
#[derive(Debug, Serialize)]
struct Output {
    path: String,
    cid: Digest,
    size_bytes: u64,
    mime: &'static str,
}

fn envelope(facts: &Facts<'_>) -> Value {
    match error(facts.end) {
        Some((code, message)) => json!({
            "status": "error",
            "execution_id": facts.effect,
            "error": { "code": code, "message": message },
            "meta": { "env_fingerprint": env_fingerprint(facts) },
        }),
        None => json!({
            "status": "success",
            "execution_id": facts.effect,
            "outputs": outputs(facts),
            "index_path": index_path(facts),
            "meta": {
                "image_digest": facts.image_digest,
                "env_fingerprint": env_fingerprint(facts),
                "duration_ms": facts.usage.time,
            },
        }),
    }
}

fn receipt(facts: &Facts<'_>) -> Result<Value, Fault> {
    Ok(json!({
        "execution_id": facts.effect,
        "processor_ref": processor_ref(facts.invocation.role),
        "image_digest": facts.image_digest,
        "env_fingerprint": env_fingerprint(facts),
        "inputs_hash": Digest::of(canonical(&payload(facts)).as_bytes()),
        "hash_schema": HASH_SCHEMA,
        "outputs_index": { "path": index_path(facts), "outputs": outputs(facts) },
        "processor_info": format!("{}:{}", backend(facts.invocation), mode(facts.invocation)),
        "usage": { "tokens": facts.usage.tokens },
        "timestamp_utc": utc(facts.at)?,
        "duration_ms": facts.usage.time,
        "mode": mode(facts.invocation),
    }))
}

/// The payload that the invocation was made with (INV-1); its hash stands in the receipt.
fn payload(facts: &Facts<'_>) -> Value {
    let invocation = facts.invocation;
    json!({
        "execution_id": facts.effect,
        "write_prefix": write_prefix(facts),
        "schema": "v1",
        "mode": mode(invocation),
        "model": backend(invocation),
        "params": {
            "role": invocation.role,
            "purpose": invocation.purpose,
            "attempt": invocation.attempt,
            "start": invocation.start,
            "context": invocation.context.iter().map(|artifact| &artifact.digest).collect::<Vec<_>>(),
            "sources": invocation.sources,
            "executor": invocation.executor,
            "limits": invocation.limits,
        },
    })
}

fn processor_ref(role: Role) -> String {
    format!("agent/{}@{ROLE_VERSION}", role.to_string().to_lowercase())
}

fn write_prefix(facts: &Facts<'_>) -> String {
    format!("/artifacts/{}/", facts.effect)
}

fn index_path(facts: &Facts<'_>) -> String {
    format!("{}outputs.json", write_prefix(facts))
}

fn outputs(facts: &Facts<'_>) -> Vec<Output> {
    let output = |artifact: &Artifact| Output {
        path: format!("{}outputs/{}.md", write_prefix(facts), artifact.kind.as_str()),
        cid: artifact.digest.clone(),
        size_bytes: artifact.bytes,
        mime: "text/markdown",
    };
    facts.artifact.map(output).into_iter().collect()
}

/// What the environment was, as sorted `k=v;…`.
fn env_fingerprint(facts: &Facts<'_>) -> String {
    let pairs = BTreeMap::from([
        ("arch", std::env::consts::ARCH.to_owned()),
        ("engine", env!("CARGO_PKG_VERSION").to_owned()),
        ("executor", facts.invocation.executor.as_str().to_owned()),
        ("image", facts.image_digest.to_owned()),
        ("os", std::env::consts::OS.to_owned()),
    ]);
    let pairs: Vec<String> = pairs
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    pairs.join(";")
}

fn mode(invocation: &Invocation) -> &'static str {
    match invocation.agents.mode {
        Mode::Mock => "mock",
        Mode::Real => "real",
    }
}

fn backend(invocation: &Invocation) -> String {
    match &invocation.agents.backend {
        AgentBackend::Scripted { scenario } => format!("scripted/{scenario}"),
    }
}

/// The error canon's code and message (INV-7), where the outcome is one.
fn error(end: End<'_>) -> Option<(&'static str, String)> {
    let failed =
        |why: &dyn std::fmt::Display| ("ERR_PROCESSOR", format!("processor execution failed: {why}"));
    let outcome = match end {
        End::Outcome(outcome) => outcome,
        End::Fault(fault) => return Some(failed(&format!("its environment failed: {fault}"))),
    };
    match outcome {
        Outcome::Planned { .. }
        | Outcome::Reviewed { .. }
        | Outcome::Implemented
        | Outcome::Interpreted { .. }
        | Outcome::Asked { .. }
        | Outcome::NeedsApproval { .. } => None,
        Outcome::Failed {
            failure:
                failure @ AgentFailure::LimitExceeded {
                    limit: InvocationLimit::Time,
                },
        } => Some(("ERR_TIMEOUT", failure.to_string())),
        Outcome::Failed { failure } => Some(failed(failure)),
        Outcome::Violated { violation } => Some(failed(violation)),
        Outcome::ProviderLimited { account, .. } => Some(failed(&format!(
            "the provider refuses more work on account {account}"
        ))),
        Outcome::Stopped => Some(failed(&"it was told to stop")),
        Outcome::Interrupted => Some(failed(&"it was interrupted")),
    }
}

fn utc(at: Timestamp) -> Result<String, Fault> {
    jiff::Timestamp::from_microsecond(at.0)
        .map(|at| at.to_string())
        .map_err(|error| Fault::permanent(format!("cannot write the time {} in a receipt: {error}", at.0)))
}
