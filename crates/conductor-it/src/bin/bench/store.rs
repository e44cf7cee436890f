//! What the store does in a second, in a file and on a server: appends, claims, replay; then whole runs on one database with
//! one, two and four servers.
//!
//! Appends are durable before they count, and are given as a ratio against raw durable writes to the same disk. Replay reads,
//! decodes and hash-verifies records of every kind. Medians of interleaved rounds.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use conductor_domain::Event;
use conductor_domain::effect::EffectKind;
use conductor_domain::id::{EffectId, RepoId, RunId};
use conductor_domain::input::Input;
use conductor_domain::time::Timestamp;
use conductor_engine::{chain, record};
use conductor_it::stage::{Executor, Play};
use conductor_it::{Program, Stage};
use conductor_port::ledger::{
    Batch, IssueClaim, LeaseWish, Leased, Ledger, NewEffect, Projection, Record, RunRow, StreamId,
};
use conductor_store::{Database, Settings};

use super::postgres::own_server::OwnServer;
use super::{ZERO_THINK, median, program};

/// How many write at once, and how many durable writes of the same disk an append of theirs may take; 1 writer was seen to
/// take 5.5 to 9.3, 16 to take 4.1 to 4.5.
const WRITERS: [(u64, f64); 3] = [(1, 20.0), (4, 15.0), (16, 10.0)];
const ROUNDS: u64 = 3;
/// Replay on SQLite is to be at least this fast.
const AIM: f64 = 100_000.0;
/// Four servers on one database carry at least this share of what one does, on two processors that all of them share; they
/// were seen to carry four fifths.
const LEAST_SHARE_OF_FOUR: f64 = 0.5;

/// Prints all figures; `size` is how many appends and claims a round has.
pub(crate) async fn figures(size: u64) -> Result<()> {
    let dir = tempfile::tempdir_in("/var/tmp")?;
    let server = OwnServer::start("-c max_connections=200");
    let usual = Settings::default();
    let file = Arc::new(Database::open(&dir.path().join("c.sqlite"), &usual).await?);
    let remote = Arc::new(Database::connect(&server.address("postgres"), &usual).await?);
    let both = [("SQLite", file), ("PostgreSQL", remote)];

    let raw = sync(dir.path())?;
    println!("disk: one durable write takes {:.0} µs", raw.as_secs_f64() * 1e6);
    let mut missed = Vec::new();
    for (name, store) in &both {
        missed.extend(append(name, store, size, raw).await?);
        claim(name, store, size).await?;
    }
    let events = size * 100;
    let mut is_fast = true;
    for (name, store) in &both {
        let rate = replay(name, store, events).await?;
        is_fast &= *name != "SQLite" || rate >= AIM;
        store.close().await;
    }
    let word = if is_fast { "met" } else { "missed" };
    println!("replay: the aim of {AIM:.0} events/s on SQLite is {word}");
    ensure!(missed.is_empty(), "bars that were missed: {}", missed.join(", "));
    Ok(())
}

/// Durable writes to the disk, each waited for.
fn sync(dir: &Path) -> Result<Duration> {
    let mut file = std::fs::File::create(dir.join("probe"))?;
    let begun = Instant::now();
    for _ in 0..100 {
        file.write_all(&[0; 4096])?;
        file.sync_data()?;
    }
    Ok(begun.elapsed() / 100)
}

/// Appends by one and by many; returns the bars that were missed.
async fn append(name: &str, store: &Arc<Database>, size: u64, raw: Duration) -> Result<Vec<String>> {
    let mut missed = Vec::new();
    for (writers, most) in WRITERS {
        let mut times = vec![];
        for round in 0..ROUNDS {
            let begun = Instant::now();
            let tasks: Vec<_> = (0..writers)
                .map(|writer| {
                    let store = Arc::clone(store);
                    tokio::spawn(async move {
                        let mut stream = Stream::new(&format!("w-{round}-{writers}-{writer}"));
                        for _ in 0..size / writers {
                            store.append(stream.next(3)).await?;
                        }
                        anyhow::Ok(())
                    })
                })
                .collect();
            for task in tasks {
                task.await??;
            }
            times.push(begun.elapsed() / u32::try_from(size)?);
        }
        let each = median(times).as_secs_f64();
        let ratio = each / raw.as_secs_f64();
        println!(
            "append, {name}: {:.0} batches/s of 3 records by {writers} writers, ratio {ratio:.2} to a durable write each",
            1.0 / each
        );
        if ratio > most {
            missed.push(format!("append, {name}, {writers} writers: at most {most}"));
        }
    }
    Ok(missed)
}

/// Four workers want every effect; each is granted once.
async fn claim(name: &str, store: &Arc<Database>, size: u64) -> Result<()> {
    const WORKERS: u64 = 4;
    let mut times = vec![];
    for round in 0..ROUNDS {
        let run = RunId::parse(format!("c-{round}")).context("a slug")?;
        let mut stream = Stream::new(run.as_str());
        let effects: Vec<EffectId> = (0..usize::try_from(size)?)
            .map(|ordinal| EffectId::derive(&run, 1, ordinal))
            .collect();
        let mut batch = stream.next(1);
        batch.effects = effects.iter().map(|id| asked(id, &run)).collect();
        store.append(batch).await?;
        let begun = Instant::now();
        let tasks: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let (store, effects) = (Arc::clone(store), effects.clone());
                tokio::spawn(async move {
                    let mut granted = 0;
                    for id in effects {
                        let wish = LeaseWish {
                            id,
                            worker: format!("w-{worker}"),
                            now: Timestamp(10),
                            until: Timestamp(20),
                            slot: None,
                        };
                        granted += u64::from(matches!(store.lease(wish).await?, Leased::Granted { .. }));
                    }
                    anyhow::Ok(granted)
                })
            })
            .collect();
        let mut granted = 0;
        for task in tasks {
            granted += task.await??;
        }
        ensure!(granted == size, "{granted} of {size} effects were granted");
        times.push(begun.elapsed());
    }
    let took = median(times).as_secs_f64();
    println!(
        "claim, {name}: {:.0} effects/s granted among {WORKERS} workers who want each ({:.0} wishes/s)",
        as_float(size) / took,
        as_float(size * WORKERS) / took
    );
    Ok(())
}

/// Reads a stream of records of every kind, decodes each and verifies its hash and its chain; returns events per second.
async fn replay(name: &str, store: &Database, events: u64) -> Result<f64> {
    let mut stream = Stream::new("long");
    let mut left = events;
    while left > 0 {
        let count = left.min(1_000);
        store.append(stream.next(count)).await?;
        left -= count;
    }
    let (mut read_times, mut times) = (vec![], vec![]);
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let records = store.read(&stream.id, 0, u32::MAX).await?;
        read_times.push(begun.elapsed());
        let mut before = chain::genesis(&stream.id);
        for record in &records {
            if record.class == record::FACT {
                record::decode::<record::Fact<Input>>(record)?;
            } else {
                record::decode::<Event>(record)?;
            }
            ensure!(
                record.payload_hash == record::payload_hash(&record.payload)
                    && record.hash == chain::link(&before, record),
                "record {} does not verify",
                record.seq
            );
            before.clone_from(&record.hash);
        }
        ensure!(
            records.len() as u64 == events,
            "{} of {events} were read",
            records.len()
        );
        times.push(begun.elapsed());
    }
    let (read, all) = (median(read_times), median(times));
    let rate = as_float(events) / all.as_secs_f64();
    println!(
        "replay, {name}: {rate:.0} events/s read, decoded and hash-verified ({:.1} µs each, {:.1} of them reading)",
        all.as_secs_f64() * 1e6 / as_float(events),
        read.as_secs_f64() * 1e6 / as_float(events)
    );
    Ok(rate)
}

fn as_float(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// A stream that grows by records of every kind, in turn, chained as the engine chains them.
struct Stream {
    id: StreamId,
    run: RunId,
    seq: u64,
    head: String,
    samples: Vec<(&'static str, String)>,
}

impl Stream {
    fn new(run: &str) -> Self {
        let run = RunId::parse(run).expect("runs are named by slugs here");
        let id = StreamId::Run(run.clone());
        let head = chain::genesis(&id);
        Self {
            id,
            run,
            seq: 0,
            head,
            samples: samples().expect("the engine's examples of records are there"),
        }
    }

    fn next(&mut self, count: u64) -> Batch {
        let expected_seq = self.seq;
        let records = (0..count).map(|_| self.record()).collect();
        Batch {
            stream: self.id.clone(),
            expected_seq,
            records,
            effects: Vec::new(),
            effect_changes: Vec::new(),
            settles: None,
            dedupe: None,
            projection: Projection::Run(Box::new(self.row())),
            writes: Vec::new(),
            frees_slot: false,
            issue: IssueClaim::Unchanged,
        }
    }

    fn record(&mut self) -> Record {
        self.seq += 1;
        let nth = usize::try_from(self.seq).unwrap_or_default() % self.samples.len();
        let (class, payload) = &self.samples[nth];
        let mut record = Record {
            stream: self.id.as_key(),
            seq: self.seq,
            event_id: record::event_id(&self.id, self.seq),
            schema_version: record::SCHEMA_VERSION,
            class: (*class).to_owned(),
            kind: "sample".to_owned(),
            payload: payload.clone(),
            payload_hash: record::payload_hash(payload),
            actor_type: "system".to_owned(),
            actor: "engine".to_owned(),
            cause: record::event_id(&self.id, 1),
            at: Timestamp(1_767_225_600_000_000),
            hash: String::new(),
        };
        record.hash = chain::link(&self.head, &record);
        self.head.clone_from(&record.hash);
        record
    }

    fn row(&self) -> RunRow {
        RunRow {
            run: self.run.clone(),
            project: "demo".to_owned(),
            repo: RepoId(7),
            repo_name: "octo/hello".to_owned(),
            issue: 1,
            title: "Say hello".to_owned(),
            phase: "executing".to_owned(),
            held: false,
            needs_human: false,
            terminal: false,
            cleaned_up: false,
            priority: 50,
            pull_request: None,
            deadline: None,
            state: format!(r#"{{"filler":"{}"}}"#, "x".repeat(2_000)),
            figures: String::new(),
            ended_at: None,
            seq: self.seq,
            head: self.head.clone(),
            created_at: Timestamp(1),
            updated_at: Timestamp(1),
        }
    }
}

/// One example of each kind of record of a run, as the engine keeps them for its own tests.
fn samples() -> Result<Vec<(&'static str, String)>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conductor-engine/testdata/record/v1");
    let mut samples = vec![];
    for entry in std::fs::read_dir(&dir).with_context(|| format!("reading {}", dir.display()))? {
        let path = entry?.path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let class = if name.starts_with("run-fact-") {
            record::FACT
        } else if name.starts_with("run-decision-") {
            record::DECISION
        } else {
            continue;
        };
        samples.push((class, std::fs::read_to_string(&path)?.trim_end().to_owned()));
    }
    samples.sort();
    ensure!(!samples.is_empty(), "no examples in {}", dir.display());
    Ok(samples)
}

fn asked(id: &EffectId, run: &RunId) -> NewEffect {
    NewEffect {
        id: id.clone(),
        run: run.clone(),
        repo: RepoId(7),
        kind: EffectKind::Invoke,
        payload: "{}".to_owned(),
        priority: 50,
        not_before: Timestamp(10),
    }
}

/// So many whole runs, each to a merged pull request, on one database with one, two and four servers.
pub(crate) async fn teams(count: usize) -> Result<()> {
    let server = OwnServer::start("-c max_connections=200");
    let mut times = Vec::new();
    for servers in [1_usize, 2, 4] {
        let name = format!("team_{servers}");
        let mut conn = super::postgres::raw(&server.address("postgres")).await;
        super::postgres::execute(&mut conn, &format!("CREATE DATABASE {name}")).await;
        let took = team(&server.address(&name), servers, count).await?;
        println!(
            "teams, PostgreSQL: {servers} servers carry {count} runs to merged pull requests in {:.1} s: {:.2} runs/s",
            took.as_secs_f64(),
            as_float(count as u64) / took.as_secs_f64()
        );
        times.push(took.as_secs_f64());
    }
    let took = one_alone(count).await?;
    println!(
        "teams, SQLite: 1 server carries {count} runs to merged pull requests in {:.1} s: {:.2} runs/s",
        took.as_secs_f64(),
        as_float(count as u64) / took.as_secs_f64()
    );
    let share = times[0] / times[2];
    println!("teams, PostgreSQL: 4 servers carry {share:.2} of what 1 server does");
    ensure!(
        share >= LEAST_SHARE_OF_FOUR,
        "a bar that was missed: at least {LEAST_SHARE_OF_FOUR} of it"
    );
    Ok(())
}

fn play(database_url: Option<&str>) -> Play {
    Play {
        executor: Executor::UnsafePlain,
        database_url: database_url.map(str::to_owned),
        ..Play::shell(ZERO_THINK)
    }
}

async fn team(address: &str, servers: usize, count: usize) -> Result<Duration> {
    let play = play(Some(address));
    let mut stage = Stage::set_without_server(&program()?, &play).await?;
    let storage = stage.shared_dir();
    stage.program.also("--storage", &storage);
    stage.program.start(None)?;
    stage.register(&play)?;
    let mut others: Vec<Program> = vec![];
    for n in 1..servers {
        let mut other = stage.beside(&format!("data-{n}"))?;
        other.start(None)?;
        others.push(other);
    }
    super::carry_all(&stage, &play, count).await.map(|(took, _)| took)
}

async fn one_alone(count: usize) -> Result<Duration> {
    let play = play(None);
    let stage = Stage::set(&program()?, &play).await?;
    super::carry_all(&stage, &play, count).await.map(|(took, _)| took)
}
