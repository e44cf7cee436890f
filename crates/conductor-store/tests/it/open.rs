//! What is opened and what is refused, each refusal by its name, with a hint, before anything was changed.

use std::fs;
use std::path::Path;

use conductor_port::FaultKind;
use conductor_port::ledger::{AppendError, Ledger};
use conductor_store::{Database, OpenError, Settings};

use crate::given::{altered, batch, count, execute, open, raw};

async fn refused(path: &Path) -> OpenError {
    Database::open(path, &Settings::default())
        .await
        .expect_err("this file is not to be opened")
}

async fn refused_for_reading(path: &Path) -> OpenError {
    Database::open_read_only(path, &Settings::default())
        .await
        .expect_err("this file is not to be opened")
}

#[tokio::test]
async fn a_database_from_a_newer_version_is_refused_with_a_hint() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.sqlite");
    let version_99 = "INSERT INTO schema_migrations VALUES (99, 'later', \
        'sha256:0000000000000000000000000000000000000000000000000000000000000000')";
    altered(&path, version_99).await;
    for error in [refused(&path).await, refused_for_reading(&path).await] {
        let known = Database::SCHEMA_VERSION;
        let said = format!("was written by a newer Conductor (schema 99, this one knows {known})");
        assert!(error.to_string().ends_with(&said), "{error}");
        assert_eq!(error.code(), "CDR0602");
        assert!(error.hint().contains("newer version"), "{}", error.hint());
    }
}

#[tokio::test]
async fn a_database_whose_set_up_text_differs_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.sqlite");
    let other_checksum = "UPDATE schema_migrations SET checksum = \
        'sha256:0000000000000000000000000000000000000000000000000000000000000000'";
    altered(&path, other_checksum).await;
    assert_eq!(refused(&path).await.code(), "CDR0604");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notes.txt");
    let notes = "dear diary\n".repeat(1_000);
    fs::write(&path, &notes).unwrap();
    for error in [refused(&path).await, refused_for_reading(&path).await] {
        assert_eq!(error.code(), "CDR0606", "{error:?}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), notes);
}

#[tokio::test]
async fn a_database_of_another_program_is_refused_and_left_alone() {
    for table in [
        "CREATE TABLE users (name TEXT)",
        "CREATE TABLE schema_migrations (version TEXT, dirty INTEGER)",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("other.sqlite");
        execute(&mut raw(&path).await, table).await;
        let before = fs::read(&path).unwrap();
        for error in [refused(&path).await, refused_for_reading(&path).await] {
            assert_eq!(error.code(), "CDR0605", "{error:?}");
        }
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}

#[tokio::test]
async fn a_damaged_database_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.sqlite");
    altered(&path, "VACUUM").await;
    let mut bytes = fs::read(&path).unwrap();
    bytes[4096..].fill(0xaa);
    fs::write(&path, &bytes).unwrap();
    for error in [refused(&path).await, refused_for_reading(&path).await] {
        assert_eq!(error.code(), "CDR0606", "{error:?}");
    }
}

#[tokio::test]
async fn a_truncated_database_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.sqlite");
    altered(&path, "VACUUM").await;
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..4096 + 100]).unwrap();
    for error in [refused(&path).await, refused_for_reading(&path).await] {
        assert_eq!(error.code(), "CDR0606", "{error:?}");
    }
}

#[tokio::test]
async fn a_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for error in [refused(dir.path()).await, refused_for_reading(dir.path()).await] {
        assert_eq!(error.code(), "CDR0608", "{error:?}");
    }
}

#[tokio::test]
async fn reading_makes_no_database() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.sqlite");
    assert_eq!(refused_for_reading(&path).await.code(), "CDR0601");
    assert!(!path.exists());
}

#[tokio::test]
async fn reading_migrates_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.sqlite");
    execute(
        &mut raw(&path).await,
        "PRAGMA journal_mode = WAL; CREATE TABLE t (x); DROP TABLE t",
    )
    .await;
    assert_eq!(refused_for_reading(&path).await.code(), "CDR0601");
}

/// What the command line reads without a server.
#[tokio::test]
async fn a_database_open_for_reading_is_read_and_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.sqlite");
    let store = open(&path).await;
    store.append(batch("r-1", 0, "{}")).await.unwrap();
    // Once beside the server, once after it.
    for _ in 0..2 {
        let reader = Database::open_read_only(&path, &Settings::default())
            .await
            .unwrap();
        assert_eq!(count(&reader, "r-1").await, 1);
        match reader.append(batch("r-1", 1, "{}")).await {
            Err(AppendError::Fault(fault)) => {
                assert_eq!(fault.kind, FaultKind::Permanent);
                assert!(
                    fault.what.ends_with("the database is open for reading only"),
                    "{}",
                    fault.what
                );
            }
            other => panic!("a write was answered with {other:?}"),
        }
        reader.close().await;
        store.close().await;
    }
}

#[tokio::test]
async fn what_was_kept_is_there_when_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.sqlite");
    for seq in 0..3 {
        let store = open(&path).await;
        store.append(batch("r-1", seq, "{}")).await.unwrap();
        store.close().await;
    }
    assert_eq!(count(&open(&path).await, "r-1").await, 3);
}

#[tokio::test]
async fn a_closed_store_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir.path().join("c.sqlite")).await;
    store.close().await;
    match store.append(batch("r-1", 0, "{}")).await {
        Err(AppendError::Fault(fault)) => {
            assert!(fault.what.ends_with("the store is closed"), "{}", fault.what);
        }
        other => panic!("a write was answered with {other:?}"),
    }
}
