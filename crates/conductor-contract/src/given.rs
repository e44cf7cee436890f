//! Small batches to start from; a case changes the fields that it is about.
//!
//! It does not know what any case examines.

use conductor_domain::effect::EffectKind;
use conductor_domain::id::{EffectId, RepoId, RunId};
use conductor_domain::time::Timestamp;
use conductor_port::Fault;
use conductor_port::ledger::{
    AppendError, Batch, Candidates, EffectRow, IssueClaim, LeaseWish, Leased, NewEffect, Projection, Record,
    RunRow, Settlement, StreamId,
};

use crate::Subject;

/// The repository of every run unless a case says otherwise.
pub(crate) const REPO: RepoId = RepoId(7);

pub(crate) fn run_id(run: &str) -> RunId {
    RunId::parse(run).expect("cases name runs by slugs")
}

pub(crate) fn stream(run: &str) -> StreamId {
    StreamId::Run(run_id(run))
}

/// The first effect that a run asks for after `seq`.
pub(crate) fn effect_id(run: &str, seq: u64) -> EffectId {
    EffectId::derive(&run_id(run), seq, 0)
}

pub(crate) fn record(stream: &StreamId, seq: u64) -> Record {
    let key = stream.as_key();
    Record {
        event_id: format!("{key}#{seq}"),
        seq,
        schema_version: 1,
        class: if seq % 2 == 1 { "fact" } else { "decision" }.to_owned(),
        kind: "run_started".to_owned(),
        payload: format!(r#"{{"n":{seq}}}"#),
        payload_hash: format!("sha256:{seq}"),
        actor_type: "operator".to_owned(),
        actor: "alice".to_owned(),
        cause: String::new(),
        at: time(seq),
        hash: format!("hash-{key}-{seq}"),
        stream: key,
    }
}

/// The time at which the record `seq` of any stream was made.
pub(crate) fn time(seq: u64) -> Timestamp {
    Timestamp(i64::try_from(seq).expect("cases use small numbers") * 1_000)
}

pub(crate) fn row(run: &str, seq: u64) -> RunRow {
    RunRow {
        run: run_id(run),
        project: "demo".to_owned(),
        repo: REPO,
        repo_name: "octo/hello".to_owned(),
        issue: 1,
        title: "Say hello".to_owned(),
        phase: "pending".to_owned(),
        held: false,
        needs_human: false,
        terminal: false,
        cleaned_up: false,
        priority: 50,
        pull_request: None,
        deadline: None,
        state: "{}".to_owned(),
        figures: String::new(),
        ended_at: None,
        seq,
        head: format!("hash-run/{run}-{seq}"),
        created_at: time(1),
        updated_at: time(seq),
    }
}

/// A batch of `count` records after `expected`, and nothing else.
pub(crate) fn batch(run: &str, expected: u64, count: u64) -> Batch {
    let stream = stream(run);
    Batch {
        expected_seq: expected,
        records: (expected + 1..=expected + count)
            .map(|seq| record(&stream, seq))
            .collect(),
        stream,
        effects: Vec::new(),
        effect_changes: Vec::new(),
        settles: None,
        dedupe: None,
        projection: Projection::Run(Box::new(row(run, expected + count))),
        writes: Vec::new(),
        frees_slot: false,
        issue: IssueClaim::Unchanged,
    }
}

pub(crate) fn instance_batch(expected: u64, count: u64, state: &str) -> Batch {
    Batch {
        stream: StreamId::Instance,
        records: (expected + 1..=expected + count)
            .map(|seq| record(&StreamId::Instance, seq))
            .collect(),
        projection: Projection::Instance {
            state: state.to_owned(),
            seq: expected + count,
            head: format!("hash-instance-{}", expected + count),
        },
        ..batch("unused", expected, 0)
    }
}

/// The effect that a run asks for after `seq`, due at once.
pub(crate) fn effect(run: &str, seq: u64, kind: EffectKind) -> NewEffect {
    NewEffect {
        id: effect_id(run, seq),
        run: run_id(run),
        repo: REPO,
        kind,
        payload: format!(r#"{{"of":"{run}"}}"#),
        priority: 50,
        not_before: Timestamp(0),
    }
}

/// A run with one record and one effect that may be dispatched.
pub(crate) async fn asked(subject: &Subject, run: &str, kind: EffectKind) -> EffectId {
    let effect = effect(run, 0, kind);
    let id = effect.id.clone();
    kept(
        subject,
        Batch {
            effects: vec![effect],
            ..batch(run, 0, 1)
        },
    )
    .await;
    id
}

pub(crate) async fn kept(subject: &Subject, batch: Batch) {
    subject.ledger.append(batch).await.expect("the batch is kept");
}

pub(crate) fn wish(id: &EffectId, now: i64, until: i64) -> LeaseWish {
    LeaseWish {
        id: id.clone(),
        worker: "worker-1".to_owned(),
        now: Timestamp(now),
        until: Timestamp(until),
        slot: None,
    }
}

/// Leases an effect that must be free; returns the proof.
pub(crate) async fn leased(subject: &Subject, wish: LeaseWish) -> Settlement {
    let id = wish.id.clone();
    match subject.ledger.lease(wish).await.expect("the ledger answers") {
        Leased::Granted { token, .. } => Settlement { id, token },
        other @ (Leased::Gone | Leased::NoSlot) => panic!("{id} is free, yet the answer is {other:?}"),
    }
}

/// The first candidates at a time.
pub(crate) fn first(now: i64, limit: u32) -> Candidates {
    Candidates {
        now: Timestamp(now),
        after: None,
        limit,
    }
}

pub(crate) async fn dispatchable(subject: &Subject, now: i64) -> Vec<EffectId> {
    let rows = subject
        .ledger
        .dispatchable(&first(now, 100))
        .await
        .expect("the ledger answers");
    rows.into_iter().map(|row| row.id).collect()
}

pub(crate) async fn effect_row(subject: &Subject, id: &EffectId) -> EffectRow {
    let rows = subject.views.effects(&id.run()).await.expect("the views answer");
    rows.into_iter()
        .find(|row| row.id == *id)
        .expect("the effect is kept")
}

/// Asserts that an append failed by a fault that no repeat will mend.
pub(crate) fn assert_permanent(outcome: Result<(), AppendError>) {
    match outcome {
        Err(AppendError::Fault(fault)) => assert_eq!(fault, Fault::permanent(fault.what.clone())),
        other => panic!("a permanent fault is due, not {other:?}"),
    }
}
