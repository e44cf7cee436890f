//! Databases of every schema that was ever released open and read, with everything in them.
//!
//! `CONDUCTOR_WRITE_GOLDEN=1 cargo nextest run -p conductor-store golden` writes the one of the newest schema, and
//! only where there is none yet: a released one never changes.

use std::fs;
use std::path::{Path, PathBuf};

use conductor_domain::artifact::ArtifactKind;
use conductor_domain::digest::Digest;
use conductor_domain::effect::EffectKind;
use conductor_domain::id::{EffectId, RepoId};
use conductor_domain::time::Timestamp;
use conductor_port::blobs::{Blobs, ToolCall, ToolLog};
use conductor_port::lease::{Leases, ResourceKind, ResourceLease};
use conductor_port::ledger::{
    AppendError, Batch, EffectChange, ForgeWrite, LeaseWish, Leased, Ledger, NewEffect, Projection, Record,
    RunRow, StreamId,
};
use conductor_port::search::{RecordFilter, Search};
use conductor_port::views::Views;
use conductor_store::{Database, Settings};

use crate::given::{batch, open, row, run_id};

const RUN: &str = "golden-1";

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

#[tokio::test]
#[allow(clippy::disallowed_methods, reason = "the switch that writes the file")]
async fn every_released_database_opens_and_reads() {
    let newest = testdata().join(format!("v{}.sqlite", Database::SCHEMA_VERSION));
    if std::env::var_os("CONDUCTOR_WRITE_GOLDEN").is_some() && !newest.exists() {
        let store = open(&newest).await;
        fill(&store).await;
        store.close().await;
    }
    for version in 1..=Database::SCHEMA_VERSION {
        // Opening migrates, and the committed file must stay what it is.
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.sqlite");
        fs::copy(testdata().join(format!("v{version}.sqlite")), &path).unwrap();
        if version == Database::SCHEMA_VERSION {
            let reader = Database::open_read_only(&path, &Settings::default())
                .await
                .unwrap();
            check_what_was_kept(&reader).await;
        }
        let store = open(&path).await;
        check_what_was_kept(&store).await;
        check_that_it_goes_on(&store).await;
    }
}

fn effect(ordinal: usize, kind: EffectKind) -> NewEffect {
    NewEffect {
        id: id(ordinal),
        run: run_id(RUN),
        repo: RepoId(7),
        kind,
        payload: r#"{"golden":true}"#.to_owned(),
        priority: 50,
        not_before: Timestamp(10),
    }
}

fn id(ordinal: usize) -> EffectId {
    EffectId::derive(&run_id(RUN), 0, ordinal)
}

fn write() -> ForgeWrite {
    ForgeWrite {
        effect: id(2),
        run: run_id(RUN),
        kind: "post_comment".to_owned(),
        actor_type: "system".to_owned(),
        target: "octo/hello#1".to_owned(),
        payload_hash: "sha256:0".to_owned(),
        decision: "allow".to_owned(),
        reason: "default".to_owned(),
        result: "done".to_owned(),
        at: Timestamp(2),
    }
}

fn call() -> ToolCall {
    ToolCall {
        invocation: id(1),
        run: run_id(RUN),
        n: 1,
        tool: "bash".to_owned(),
        target: "true".to_owned(),
        payload_hash: "sha256:0".to_owned(),
        decision: "allow".to_owned(),
        reason: "default".to_owned(),
        result: "ok".to_owned(),
        at: Timestamp(3),
        hash: "hash-call".to_owned(),
    }
}

fn resource() -> ResourceLease {
    ResourceLease {
        kind: ResourceKind::Worktree,
        name: "runs/golden-1/work".to_owned(),
        run: run_id(RUN),
        taken_at: Timestamp(1),
        heartbeat: Timestamp(4),
    }
}

fn last_row() -> RunRow {
    RunRow {
        phase: "executing".to_owned(),
        held: true,
        pull_request: Some(5),
        deadline: Some(Timestamp(99)),
        ..row(RUN, 2)
    }
}

fn instance_record() -> Record {
    Record {
        stream: "instance".to_owned(),
        event_id: "instance#1".to_owned(),
        ..batch(RUN, 0, "{}").records.remove(0)
    }
}

async fn fill(store: &Database) {
    let kinds = [
        EffectKind::PrepareWorkspace,
        EffectKind::Invoke,
        EffectKind::PostComment,
    ];
    let effects = kinds
        .into_iter()
        .enumerate()
        .map(|(ordinal, kind)| effect(ordinal, kind))
        .collect();
    let first = Batch {
        effects,
        dedupe: Some("delivery-1".to_owned()),
        ..batch(RUN, 0, r#"{"n":1}"#)
    };
    Ledger::append(store, first).await.unwrap();
    let wish = |ordinal, slot| LeaseWish {
        id: id(ordinal),
        worker: "worker-1".to_owned(),
        now: Timestamp(10),
        until: Timestamp(20),
        slot,
    };
    store.lease(wish(0, Some((RepoId(7), 1)))).await.unwrap();
    store.lease(wish(1, None)).await.unwrap();
    let second = Batch {
        settles: Some(conductor_port::ledger::Settlement { id: id(0), token: 1 }),
        effect_changes: vec![EffectChange::Stop { id: id(1) }],
        writes: vec![write()],
        projection: Projection::Run(Box::new(last_row())),
        ..batch(RUN, 1, r#"{"n":2}"#)
    };
    Ledger::append(store, second).await.unwrap();
    let state = r#"{"projects":["golden"],"repos":{},"kill_switch":true,"suspensions":{}}"#.to_owned();
    let instance = Batch {
        stream: StreamId::Instance,
        records: vec![instance_record()],
        projection: Projection::Instance {
            state,
            seq: 1,
            head: "hash-1".to_owned(),
        },
        ..batch(RUN, 0, "{}")
    };
    Ledger::append(store, instance).await.unwrap();
    store.put(ArtifactKind::Plan, b"the plan").await.unwrap();
    ToolLog::append(store, None, &[call()]).await.unwrap();
    store.take(&resource()).await.unwrap();
}

async fn check_that_it_goes_on(store: &Database) {
    let again = Batch {
        dedupe: Some("delivery-1".to_owned()),
        ..batch(RUN, 2, "{}")
    };
    assert_eq!(Ledger::append(store, again).await, Err(AppendError::Duplicate));
    let other = NewEffect {
        id: EffectId::derive(&run_id("golden-2"), 0, 0),
        run: run_id("golden-2"),
        ..effect(0, EffectKind::PrepareWorkspace)
    };
    let wish = LeaseWish {
        id: other.id.clone(),
        worker: "worker-1".to_owned(),
        now: Timestamp(30),
        until: Timestamp(40),
        slot: Some((RepoId(7), 1)),
    };
    Ledger::append(
        store,
        Batch {
            effects: vec![other],
            ..batch("golden-2", 0, "{}")
        },
    )
    .await
    .unwrap();
    assert_eq!(store.lease(wish).await, Ok(Leased::NoSlot));
    Ledger::append(store, batch(RUN, 2, "{}")).await.unwrap();
}

async fn check_what_was_kept(store: &Database) {
    let records = Ledger::read(store, &StreamId::Run(run_id(RUN)), 0, 9)
        .await
        .unwrap();
    let expected = [batch(RUN, 0, r#"{"n":1}"#), batch(RUN, 1, r#"{"n":2}"#)];
    assert_eq!(records, expected.map(|mut batch| batch.records.remove(0)));
    assert_eq!(
        Ledger::read(store, &StreamId::Instance, 0, 9).await.unwrap(),
        [instance_record()]
    );
    assert_eq!(store.run(&run_id(RUN)).await.unwrap(), Some(last_row()));
    assert!(store.instance().await.unwrap().0.kill_switch);
    let effects = store.effects(&run_id(RUN)).await.unwrap();
    let states: Vec<_> = effects
        .iter()
        .map(|row| (row.kind, row.status.as_str(), row.attempts, row.stop))
        .collect();
    let expected = [
        (EffectKind::PrepareWorkspace, "done", 1, false),
        (EffectKind::Invoke, "leased", 1, true),
        (EffectKind::PostComment, "pending", 0, false),
    ];
    assert_eq!(states, expected);
    assert_eq!(store.writes(&run_id(RUN)).await.unwrap(), [write()]);
    assert_eq!(
        store.get(&Digest::of(b"the plan")).await.unwrap().as_deref(),
        Some(&b"the plan"[..])
    );
    assert_eq!(ToolLog::read(store, &id(1)).await.unwrap(), [call()]);
    assert_eq!(store.held(None).await.unwrap(), [resource()]);
    let of_run = RecordFilter {
        words: "alice START".to_owned(),
        project: Some("demo".to_owned()),
        limit: 9,
        ..RecordFilter::default()
    };
    let found = store.records(&of_run).await.unwrap();
    let found: Vec<Record> = found.into_iter().map(|found| found.record).rev().collect();
    assert_eq!(found, records, "also in what is older than the search");
}
