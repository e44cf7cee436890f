//! Small values to start from, and a way past the store into its file.

use std::path::Path;

use conductor_domain::id::RunId;
use conductor_domain::time::Timestamp;
use conductor_port::ledger::{Batch, IssueClaim, Ledger, Projection, Record, RunRow, StreamId};
use conductor_store::{Database, Settings};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions};

pub(crate) fn run_id(run: &str) -> RunId {
    RunId::parse(run).unwrap()
}

pub(crate) fn batch(run: &str, expected_seq: u64, payload: &str) -> Batch {
    let stream = StreamId::Run(run_id(run));
    let seq = expected_seq + 1;
    let record = Record {
        stream: stream.as_key(),
        seq,
        event_id: format!("{run}#{seq}"),
        schema_version: 1,
        class: "fact".to_owned(),
        kind: "start".to_owned(),
        payload: payload.to_owned(),
        payload_hash: "sha256:0".to_owned(),
        actor_type: "operator".to_owned(),
        actor: "alice".to_owned(),
        cause: String::new(),
        at: Timestamp(i64::try_from(seq).unwrap()),
        hash: format!("hash-{seq}"),
    };
    Batch {
        stream,
        expected_seq,
        records: vec![record],
        effects: Vec::new(),
        effect_changes: Vec::new(),
        settles: None,
        dedupe: None,
        projection: Projection::Run(Box::new(row(run, seq))),
        writes: Vec::new(),
        frees_slot: false,
        issue: IssueClaim::Unchanged,
    }
}

pub(crate) fn row(run: &str, seq: u64) -> RunRow {
    RunRow {
        run: run_id(run),
        project: "demo".to_owned(),
        repo: conductor_domain::id::RepoId(7),
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
        head: format!("hash-{seq}"),
        created_at: Timestamp(1),
        updated_at: Timestamp(i64::try_from(seq).unwrap()),
    }
}

pub(crate) async fn open(path: &Path) -> Database {
    Database::open(path, &Settings::default()).await.unwrap()
}

pub(crate) async fn count(store: &Database, run: &str) -> usize {
    Ledger::read(store, &StreamId::Run(run_id(run)), 0, u32::MAX)
        .await
        .unwrap()
        .len()
}

/// A connection past the store.
pub(crate) async fn raw(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .connect()
        .await
        .unwrap()
}

pub(crate) async fn execute(conn: &mut SqliteConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(conn)
        .await
        .unwrap();
}

/// A database with one record of run `r-1`, changed past the store.
pub(crate) async fn altered(path: &Path, sql: &str) {
    let store = open(path).await;
    Ledger::append(&store, batch("r-1", 0, "{}")).await.unwrap();
    store.close().await;
    let mut conn = raw(path).await;
    execute(&mut conn, sql).await;
    sqlx::Connection::close(conn).await.unwrap();
}
