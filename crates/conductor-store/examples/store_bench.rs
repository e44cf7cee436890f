//! Measures the SQLite store: `cargo run --release -p conductor-store --example store_bench [directory]`.
//!
//! Appends are durable before they count; reading decodes each payload as JSON. Prints one line per figure, beside the
//! time that this disk takes to make one small write durable.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::cast_precision_loss,
    reason = "a program for people at a terminal"
)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use conductor_domain::id::{RepoId, RunId};
use conductor_domain::time::Timestamp;
use conductor_port::ledger::{AppendError, Batch, Ledger, Projection, Record, RunRow, StreamId};
use conductor_store::{Database, Settings};

const RECORDS_PER_BATCH: u64 = 3;
const APPENDS: u64 = 1_000;
const EVENTS: u64 = 120_000;
const PAGE: u32 = 1_000;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Outcome {
    let parent = std::env::args_os()
        .nth(1)
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let dir = tempfile::tempdir_in(parent)?;
    let each = sync(dir.path())?;
    println!(
        "disk: one small durable write takes {:.0} µs",
        each.as_secs_f64() * 1e6
    );

    let store = Arc::new(Database::open(&dir.path().join("c.sqlite"), &Settings::default()).await?);
    for writers in [1, 4, 16, 64] {
        let took = append(&store, writers).await?;
        let rate = APPENDS as f64 / took.as_secs_f64();
        println!("append: {rate:.0} batches/s of {RECORDS_PER_BATCH} records by {writers} writers");
    }
    fill(&store).await?;
    for round in 1..=3 {
        let before = cpu();
        let (events, took) = read(&store).await?;
        let rate = events as f64 / took.as_secs_f64();
        let each = cpu().saturating_sub(before).as_secs_f64() * 1e6 / events as f64;
        println!(
            "read: {rate:.0} events/s, JSON decoded, {each:.1} µs of CPU each, {events} events, round {round}"
        );
    }
    store.close().await;
    Ok(())
}

fn sync(dir: &Path) -> Outcome<Duration> {
    let mut file = std::fs::File::create(dir.join("probe"))?;
    let start = Instant::now();
    for _ in 0..100 {
        file.write_all(&[0; 4096])?;
        file.sync_data()?;
    }
    Ok(start.elapsed() / 100)
}

/// What the process has used so far, to tell a slow program from a busy machine; zero where it cannot be told.
fn cpu() -> Duration {
    const TICK: Duration = Duration::from_millis(10);
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<u32>().ok())
        .sum();
    TICK.saturating_mul(ticks)
}

async fn append(store: &Arc<Database>, writers: u64) -> Outcome<Duration> {
    let start = Instant::now();
    let tasks: Vec<_> = (0..writers)
        .map(|writer| {
            let store = Arc::clone(store);
            tokio::spawn(async move {
                let run = format!("w-{writers}-{writer}");
                for n in 0..APPENDS / writers {
                    store
                        .append(batch(&run, n * RECORDS_PER_BATCH, RECORDS_PER_BATCH))
                        .await?;
                }
                Ok::<(), AppendError>(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok(start.elapsed())
}

async fn fill(store: &Database) -> Outcome {
    let mut seq = 0;
    while seq < EVENTS {
        store.append(batch("long", seq, 1_000)).await?;
        seq += 1_000;
    }
    Ok(())
}

async fn read(store: &Database) -> Outcome<(u64, Duration)> {
    let stream = StreamId::Run(RunId::parse("long").expect("a slug"));
    let start = Instant::now();
    let mut seq = 0;
    loop {
        let page = store.read(&stream, seq, PAGE).await?;
        for record in &page {
            let payload: serde_json::Value = serde_json::from_str(&record.payload)?;
            assert!(payload.is_object());
            seq = record.seq;
        }
        if page.is_empty() {
            return Ok((seq, start.elapsed()));
        }
    }
}

fn batch(run: &str, expected_seq: u64, count: u64) -> Batch {
    let stream = StreamId::Run(RunId::parse(run).expect("runs are named by slugs here"));
    let records = (expected_seq + 1..=expected_seq + count)
        .map(|seq| record(&stream, seq))
        .collect();
    let row = RunRow {
        run: RunId::parse(run).expect("runs are named by slugs here"),
        project: "demo".to_owned(),
        repo: RepoId(7),
        repo_name: "octo/hello".to_owned(),
        issue: 1,
        title: "Say hello".to_owned(),
        phase: "executing".to_owned(),
        held: false,
        needs_human: false,
        terminal: false,
        priority: 50,
        pull_request: None,
        deadline: None,
        state: format!(r#"{{"filler":"{}"}}"#, "x".repeat(2_000)),
        seq: expected_seq + count,
        head: "0".repeat(64),
        created_at: Timestamp(1),
        updated_at: Timestamp(1),
    };
    Batch {
        stream,
        expected_seq,
        records,
        effects: Vec::new(),
        effect_changes: Vec::new(),
        settles: None,
        dedupe: None,
        projection: Projection::Run(Box::new(row)),
        writes: Vec::new(),
        frees_slot: false,
    }
}

/// A payload of the size that a tool's or an agent's report usually has.
fn record(stream: &StreamId, seq: u64) -> Record {
    Record {
        stream: stream.as_key(),
        seq,
        event_id: format!("{stream}#{seq}"),
        schema_version: 1,
        class: "decision".to_owned(),
        kind: "tests_finished".to_owned(),
        payload: format!(
            r#"{{"attempt":{seq},"commit":"{}","exit_code":0,"passed":true,"summary":"{}"}}"#,
            "a".repeat(40),
            "42 passed ".repeat(15)
        ),
        payload_hash: format!("sha256:{}", "b".repeat(64)),
        actor_type: "system".to_owned(),
        actor: "conductor".to_owned(),
        cause: format!("{stream}#1"),
        at: Timestamp(1_700_000_000_000_000),
        hash: format!("sha256:{}", "c".repeat(64)),
    }
}
