//! What a disk and other processes do to a database: locks, no room, damage. Nothing acknowledged is lost.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use conductor_domain::artifact::ArtifactKind;
use conductor_domain::effect::EffectKind;
use conductor_domain::id::{EffectId, RepoId};
use conductor_domain::time::Timestamp;
use conductor_port::blobs::Blobs;
use conductor_port::ledger::{AppendError, Batch, Candidates, Ledger, NewEffect, StreamId};
use conductor_port::views::{RunFilter, Views as _};
use conductor_port::{Fault, FaultKind};
use conductor_store::{Database, Settings};

use crate::given::{batch, count, execute, open, raw, run_id};

fn fault(outcome: Result<(), AppendError>) -> Fault {
    match outcome {
        Err(AppendError::Fault(fault)) => fault,
        other => panic!("a fault is due, not {other:?}"),
    }
}

fn hasty() -> Settings {
    Settings {
        busy_timeout: Duration::from_millis(50),
        ..Settings::default()
    }
}

#[tokio::test]
async fn a_locked_database_is_a_passing_fault_and_can_be_read_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.sqlite");
    let store = Database::open(&path, &hasty()).await.unwrap();
    store.append(batch("r-1", 0, "{}")).await.unwrap();

    let mut other = raw(&path).await;
    execute(&mut other, "BEGIN IMMEDIATE").await;
    let locked = fault(store.append(batch("r-1", 1, "{}")).await);
    assert_eq!(locked.kind, FaultKind::Transient { retry_after: None });
    assert!(
        locked
            .what
            .starts_with("append to stream run/r-1 after 1: the database is locked"),
        "{}",
        locked.what
    );
    assert_eq!(count(&store, "r-1").await, 1);
    execute(&mut other, "ROLLBACK").await;

    store.append(batch("r-1", 1, "{}")).await.unwrap();
    assert_eq!(count(&store, "r-1").await, 2);
}

#[tokio::test]
async fn a_database_that_is_locked_while_it_is_set_up_is_refused_with_a_hint() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.sqlite");
    let mut other = raw(&path).await;
    execute(&mut other, "PRAGMA journal_mode = WAL; BEGIN IMMEDIATE").await;
    let error = Database::open(&path, &hasty())
        .await
        .expect_err("another process sets it up");
    assert_eq!(error.code(), "CDR0607", "{error:?}");
    assert!(error.hint().contains("stop the other"), "{}", error.hint());
}

#[tokio::test]
async fn a_full_disk_is_a_passing_fault_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.sqlite");
    let small = Settings {
        size_limit: Some(400 * 1024),
        ..Settings::default()
    };
    let store = Database::open(&path, &small).await.unwrap();
    let payload = "x".repeat(20_000);
    let mut kept = 0;
    let full = loop {
        match store.append(batch("r-1", kept, &payload)).await {
            Ok(()) => kept += 1,
            outcome => break fault(outcome),
        }
    };
    assert_eq!(full.kind, FaultKind::Transient { retry_after: None });
    assert!(
        full.what.contains("no room is left for the database"),
        "{}",
        full.what
    );
    assert!(kept > 3);
    assert_eq!(count(&store, "r-1").await as u64, kept);
    store.close().await;

    let roomy = open(&path).await;
    assert_eq!(count(&roomy, "r-1").await as u64, kept);
    roomy.append(batch("r-1", kept, &payload)).await.unwrap();
}

/// Changes share commits. One that finds no room undoes them all, so what was said to the others is not true any more:
/// each must be judged again, alone.
#[tokio::test]
async fn a_change_that_finds_no_room_takes_no_other_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.sqlite");
    let small = Settings {
        size_limit: Some(600 * 1024),
        ..Settings::default()
    };
    let store = Arc::new(Database::open(&path, &small).await.unwrap());
    // While another process holds the lock, the changes queue up and then share one transaction.
    let mut other = raw(&path).await;
    execute(&mut other, "BEGIN IMMEDIATE").await;
    let key = Some("delivery-1".to_owned());
    let queued = [
        Batch {
            dedupe: key.clone(),
            ..batch("r-1", 0, "{}")
        },
        Batch {
            dedupe: key,
            ..batch("r-2", 0, "{}")
        },
        batch("r-3", 0, &"x".repeat(1_000_000)),
        batch("r-4", 0, "{}"),
    ];
    let tasks = queued.map(|batch| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { Ledger::append(&*store, batch).await })
    });
    tokio::task::yield_now().await;
    execute(&mut other, "ROLLBACK").await;

    let [first, second, huge, last] = tasks;
    assert_eq!(first.await.unwrap(), Ok(()));
    assert_eq!(second.await.unwrap(), Err(AppendError::Duplicate));
    assert_eq!(
        fault(huge.await.unwrap()).kind,
        FaultKind::Transient { retry_after: None }
    );
    assert_eq!(last.await.unwrap(), Ok(()));
    for (run, kept) in [("r-1", 1), ("r-2", 0), ("r-3", 0), ("r-4", 1)] {
        assert_eq!(count(&store, run).await, kept, "{run}");
    }
}

#[tokio::test]
async fn damage_is_a_lasting_fault() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.sqlite");
    let store = open(&path).await;
    // So many that what stands in the second half of the file is theirs, and not the schema, without which none opens.
    for seq in 0..100 {
        store.append(batch("r-1", seq, &"x".repeat(3_000))).await.unwrap();
    }
    store.close().await;
    let mut bytes = fs::read(&path).unwrap();
    let half = bytes.len() / 2;
    bytes[half..].fill(0xaa);
    fs::write(&path, &bytes).unwrap();

    let store = open(&path).await;
    let fault = store
        .read(&StreamId::Run(run_id("r-1")), 0, 100)
        .await
        .expect_err("half of the file is gone");
    assert_eq!(fault.kind, FaultKind::Permanent);
    assert!(
        fault
            .what
            .starts_with("read stream run/r-1 after 0: the database is damaged"),
        "{}",
        fault.what
    );
}

/// OWN-4a.
#[tokio::test]
async fn changed_bytes_are_not_given_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.sqlite");
    let store = open(&path).await;
    let plan = store.put(ArtifactKind::Plan, b"change one line").await.unwrap();
    execute(
        &mut raw(&path).await,
        "UPDATE blobs SET bytes = CAST('change every line' AS BLOB)",
    )
    .await;
    let fault = store
        .get(&plan.digest)
        .await
        .expect_err("these are not the bytes");
    assert_eq!(fault.kind, FaultKind::Permanent);
    assert!(fault.what.contains("the database is damaged"), "{}", fault.what);
}

/// A value that no version of ours wrote is reported, not guessed at.
#[tokio::test]
async fn a_row_that_cannot_be_read_is_a_lasting_fault() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.sqlite");
    let store = open(&path).await;
    store.append(batch("r-1", 0, "{}")).await.unwrap();
    execute(&mut raw(&path).await, "UPDATE records SET schema_version = -1").await;
    let fault = store
        .read(&StreamId::Run(run_id("r-1")), 0, 100)
        .await
        .expect_err("no version is negative");
    assert_eq!(fault.kind, FaultKind::Permanent);
}

/// A damaged row hides itself alone: lists go on behind it, also where a whole page is damaged.
#[tokio::test]
async fn damaged_rows_do_not_end_a_list() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.sqlite");
    let store = open(&path).await;
    for n in 1..=9 {
        let run = format!("r-{n}");
        let effect = NewEffect {
            id: EffectId::derive(&run_id(&run), 1, 0),
            run: run_id(&run),
            repo: RepoId(7),
            kind: EffectKind::ReadIssue,
            payload: "{}".to_owned(),
            priority: 50,
            not_before: Timestamp(0),
        };
        let batch = Batch {
            effects: vec![effect],
            ..batch(&run, 0, "{}")
        };
        store.append(batch).await.unwrap();
    }
    let damage = "UPDATE effects SET kind = 'x' WHERE run IN ('r-2', 'r-4', 'r-5', 'r-6'); \
                  UPDATE runs SET run = 'NOT A NAME' || run WHERE run IN ('r-2', 'r-4', 'r-5', 'r-6')";
    execute(&mut raw(&path).await, damage).await;

    let mut candidates = Candidates {
        now: Timestamp(10),
        after: None,
        limit: 2,
    };
    let mut effects = vec![];
    loop {
        let page = store.dispatchable(&candidates).await.unwrap();
        candidates.after = page.last().map(|row| row.id.clone());
        effects.extend(page.iter().map(|row| row.run.to_string()));
        if page.len() < 2 {
            break;
        }
    }
    assert_eq!(effects, ["r-1", "r-3", "r-7", "r-8", "r-9"]);

    let mut filter = RunFilter {
        limit: 2,
        ..RunFilter::default()
    };
    let mut runs = vec![];
    loop {
        let page = store.runs(&filter).await.unwrap();
        filter.after = page.last().map(|row| row.run.clone());
        runs.extend(page.iter().map(|row| row.run.to_string()));
        if page.len() < 2 {
            break;
        }
    }
    assert_eq!(runs, ["r-9", "r-8", "r-7", "r-3", "r-1"]);
}
