//! A server under strain: restarted in the middle of commits, without connections, without room, refusing what it takes
//! at other times; and processes that come late. Nothing is lost or done twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use conductor_domain::digest::Digest;
use conductor_domain::effect::EffectKind;
use conductor_domain::id::{EffectId, RepoId};
use conductor_domain::time::Timestamp;
use conductor_port::ledger::{
    AppendError, Batch, LeaseWish, Leased, Ledger, NewEffect, Renewal, Settlement, StreamId,
};
use conductor_port::{Fault, FaultKind};
use conductor_store::{Database, Settings};

use crate::given::{batch, count, run_id};
use crate::postgres::own_server::{OwnServer, Stop};
use crate::postgres::{bare_database, column, database, execute, raw};

async fn connect(address: &str, settings: &Settings) -> Arc<Database> {
    Arc::new(Database::connect(address, settings).await.unwrap())
}

fn hasty() -> Settings {
    Settings {
        busy_timeout: Duration::from_millis(600),
        ..Settings::default()
    }
}

fn fault(outcome: Result<(), AppendError>) -> Fault {
    match outcome {
        Err(AppendError::Fault(fault)) => fault,
        other => panic!("a fault is due, not {other:?}"),
    }
}

/// Appends to a stream again and again as the engine does: whatever is answered, the stream's own end decides.
async fn append_on_and_on(store: Arc<Database>, run: &str, acknowledged: Arc<AtomicU64>, until: u64) {
    let mut seq = 0;
    while seq < until {
        match store.append(batch(run, seq, "{}")).await {
            Ok(()) => {
                seq += 1;
                acknowledged.fetch_max(seq, Ordering::SeqCst);
            }
            // A commit whose answer was lost is found like this.
            Err(AppendError::Moved { actual }) => seq = actual,
            Err(AppendError::Fault(fault)) => {
                assert!(matches!(fault.kind, FaultKind::Transient { .. }), "{fault:?}");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            other => panic!("an append was answered with {other:?}"),
        }
    }
}

/// DEP-1, RUN-4: the server is stopped and started in the middle of commits, politely and as by a power cut. What was
/// acknowledged is there, no place is left out, none is taken twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_restarted_in_the_middle_of_commits_loses_nothing() {
    const EACH: u64 = 400;
    // Durable as in earnest: the point is what survives.
    let server = OwnServer::start("-c max_connections=40");
    let address = server.address("postgres");
    let (one, two) = (
        connect(&address, &hasty()).await,
        connect(&address, &hasty()).await,
    );
    let kept = [Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0))];
    let work = [
        tokio::spawn(append_on_and_on(one.clone(), "r-1", kept[0].clone(), EACH)),
        tokio::spawn(append_on_and_on(two.clone(), "r-1", kept[1].clone(), EACH)),
    ];
    let mut restarts = 0;
    for (n, how) in [Stop::Immediate, Stop::Fast, Stop::Immediate, Stop::Fast]
        .into_iter()
        .enumerate()
    {
        let so_far = (n as u64 + 1) * 60;
        while kept.iter().map(|kept| kept.load(Ordering::SeqCst)).max().unwrap() < so_far {
            tokio::task::yield_now().await;
        }
        let before = kept.iter().map(|kept| kept.load(Ordering::SeqCst)).max().unwrap();
        tokio::task::block_in_place(|| {
            server.stop(how);
            server.start_again();
        });
        let mut eye = raw(&address).await;
        let there = column(&mut eye, "SELECT CAST(COUNT(*) AS TEXT) FROM records").await;
        assert!(
            there[0].parse::<u64>().unwrap() >= before,
            "{before} were acknowledged, {there:?} are there"
        );
        restarts += 1;
    }
    for done in work {
        done.await.unwrap();
    }
    assert_eq!(restarts, 4);
    let stream = StreamId::Run(run_id("r-1"));
    let seqs: Vec<u64> = one
        .read(&stream, 0, u32::MAX)
        .await
        .unwrap()
        .iter()
        .map(|r| r.seq)
        .collect();
    assert_eq!(seqs, (1..=EACH).collect::<Vec<_>>());
}

/// A server that is away, and one that takes no connection, are passing faults with names of their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_away_or_full_is_named() {
    let server = OwnServer::start("-c fsync=off -c max_connections=14 -c superuser_reserved_connections=0");
    let address = server.address("postgres");
    let store = connect(&address, &hasty()).await;
    store.append(batch("r-1", 0, "{}")).await.unwrap();
    server.stop(Stop::Fast);
    let away = fault(store.append(batch("r-1", 1, "{}")).await);
    assert_eq!(away.kind, FaultKind::Transient { retry_after: None });
    assert!(
        away.what.contains("the database server cannot be reached"),
        "{}",
        away.what
    );
    let refused = Database::connect(&address, &hasty())
        .await
        .expect_err("it is away");
    assert_eq!(refused.code(), "CDR0610", "{refused:?}");
    server.start_again();

    // Somebody else takes every connection that there is.
    let mut hogs = Vec::new();
    loop {
        let options: sqlx::postgres::PgConnectOptions = address.parse().unwrap();
        match sqlx::ConnectOptions::connect(&options).await {
            Ok(hog) => hogs.push(hog),
            Err(_full) => break,
        }
    }
    let full = fault(store.append(batch("r-1", 1, "{}")).await);
    assert_eq!(full.kind, FaultKind::Transient { retry_after: None });
    assert!(
        full.what.contains("no connection to the database is free"),
        "{}",
        full.what
    );
    let refused = Database::connect(&address, &hasty())
        .await
        .expect_err("it is full");
    assert_eq!(refused.code(), "CDR0617", "{refused:?}");
    assert!(refused.hint().contains("max_connections"), "{}", refused.hint());
    drop(hogs);
    append_on_and_on(store.clone(), "r-1", Arc::default(), 2).await;
    assert_eq!(count(&store, "r-1").await, 2);
}

/// Our own connections are all in use for longer than is waited for: a passing fault, and nothing was begun.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_all_in_use_are_a_passing_fault() {
    let address = database().await;
    let few = Settings {
        readers: 1,
        ..hasty()
    };
    let store = connect(&address, &few).await;
    store.append(batch("r-1", 0, "{}")).await.unwrap();
    let mut other = raw(&address).await;
    execute(&mut other, "BEGIN; LOCK TABLE records IN ACCESS EXCLUSIVE MODE").await;
    let stream = StreamId::Run(run_id("r-1"));
    // One waits for the lock with the only connection, the others for the connection; the first times out and makes room
    // for one of them, and the last has waited for too long by then.
    let outcomes = tokio::join!(
        store.read(&stream, 0, 10),
        store.read(&stream, 0, 10),
        store.read(&stream, 0, 10),
    );
    let faults: Vec<Fault> = [outcomes.0, outcomes.1, outcomes.2]
        .into_iter()
        .map(|outcome| outcome.expect_err("nobody gets past the lock"))
        .collect();
    for fault in &faults {
        assert!(matches!(fault.kind, FaultKind::Transient { .. }), "{fault:?}");
    }
    assert!(
        faults
            .iter()
            .any(|fault| fault.what.contains("no connection to the database is free")),
        "{faults:?}"
    );
    execute(&mut other, "ROLLBACK").await;
    assert_eq!(count(&store, "r-1").await, 1);
}

/// Serialization failures, deadlocks, no room, no memory, ended statements, a copy that takes no writes: each, when a
/// record is written and only when it is committed, is a passing fault; repeated, all is kept once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_server_refuses_now_and_then_is_kept_in_the_end() {
    for (state, words) in [
        ("40001", "locked by another process, or too busy"),
        ("40P01", "locked by another process, or too busy"),
        ("57014", "locked by another process, or too busy"),
        ("53200", "locked by another process, or too busy"),
        ("53100", "no room is left for the database"),
        ("53300", "no connection to the database is free"),
        ("25006", "takes no writes"),
        ("57P01", "cannot be reached"),
    ] {
        for when in ["", "DEFERRABLE INITIALLY DEFERRED"] {
            let address = database().await;
            let mut other = raw(&address).await;
            // A sequence is not undone with its transaction, so two of three are refused and the third is kept.
            execute(
                &mut other,
                &format!(
                    "CREATE SEQUENCE strikes; CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
                     $$ BEGIN IF nextval('strikes') % 3 <> 0 THEN RAISE SQLSTATE '{state}'; END IF; RETURN NULL; END $$; \
                     CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON records {when} \
                     FOR EACH ROW EXECUTE FUNCTION refuse()"
                ),
            )
            .await;
            let store = connect(&address, &Settings::default()).await;
            let first = fault(store.append(batch("r-1", 0, "{}")).await);
            assert_eq!(
                first.kind,
                FaultKind::Transient { retry_after: None },
                "{state} {when}"
            );
            assert!(first.what.contains(words), "{state} {when}: {}", first.what);
            assert_eq!(count(&store, "r-1").await, 0, "{state} {when}");
            append_on_and_on(store.clone(), "r-1", Arc::default(), 3).await;
            assert_eq!(count(&store, "r-1").await, 3, "{state} {when}");
            let strikes = column(&mut other, "SELECT CAST(last_value AS TEXT) FROM strikes").await;
            assert_eq!(strikes, ["9"], "{state} {when}");
            store.close().await;
        }
    }
}

fn asked() -> Batch {
    let effect = NewEffect {
        id: effect(),
        run: run_id("r-1"),
        repo: RepoId(7),
        kind: EffectKind::Invoke,
        payload: "{}".to_owned(),
        priority: 50,
        not_before: Timestamp(10),
    };
    Batch {
        effects: vec![effect],
        ..batch("r-1", 0, "{}")
    }
}

fn effect() -> EffectId {
    EffectId::derive(&run_id("r-1"), 0, 0)
}

async fn lease(store: &Database, worker: &str, now: i64) -> Settlement {
    let wish = LeaseWish {
        id: effect(),
        worker: worker.to_owned(),
        now: Timestamp(now),
        until: Timestamp(now + 10),
        slot: None,
    };
    match store.lease(wish).await.unwrap() {
        Leased::Granted { token, .. } => Settlement { id: effect(), token },
        other @ (Leased::Gone | Leased::NoSlot) => panic!("{worker} is to have it, not {other:?}"),
    }
}

/// DEP-3, OWN-1, RUN-4: a process that was frozen past its lease comes back while another has the effect: it can neither
/// report nor renew with its old token, not even at the same moment as the other, and what the other reports is kept once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_frozen_past_its_lease_cannot_commit_with_its_old_token() {
    let address = database().await;
    let (frozen, other) = (
        connect(&address, &Settings::default()).await,
        connect(&address, &Settings::default()).await,
    );
    frozen.append(asked()).await.unwrap();
    let old = lease(&frozen, "frozen", 10).await;
    let new = lease(&other, "other", 21).await;
    assert!(new.token > old.token, "{new:?} {old:?}");
    let report = |settlement: &Settlement, words: &str| Batch {
        settles: Some(settlement.clone()),
        ..batch("r-1", 1, words)
    };

    assert_eq!(frozen.renew(&old, Timestamp(99)).await, Ok(Renewal::Lost));
    assert_eq!(
        frozen.append(report(&old, "\"old\"")).await,
        Err(AppendError::LeaseLost)
    );
    assert_eq!(count(&other, "r-1").await, 1, "nothing of it was kept");
    let (late, done) = tokio::join!(
        frozen.append(report(&old, "\"old\"")),
        other.append(report(&new, "\"new\"")),
    );
    assert_eq!(done, Ok(()));
    assert!(
        matches!(
            late,
            Err(AppendError::LeaseLost | AppendError::Moved { actual: 2 })
        ),
        "{late:?}"
    );
    // Also once it knows where the stream stands, and after the effect is settled.
    let again = Batch {
        settles: Some(old),
        ..batch("r-1", 2, "\"old\"")
    };
    assert_eq!(frozen.append(again).await, Err(AppendError::LeaseLost));
    let stream = StreamId::Run(run_id("r-1"));
    let kept: Vec<String> = other
        .read(&stream, 0, 9)
        .await
        .unwrap()
        .into_iter()
        .map(|r| r.payload)
        .collect();
    assert_eq!(kept, ["{}", "\"new\""]);
}

/// DEP-1: a server with an older schema is brought up to date and keeps what it has; reading alone changes nothing.
#[tokio::test]
async fn a_server_with_an_older_schema_is_migrated_and_keeps_what_it_has() {
    let address = bare_database().await;
    let mut conn = raw(&address).await;
    let steps = [
        (
            "ledger",
            include_str!("../../migrations/postgres/0001_ledger.sql"),
        ),
        ("ends", include_str!("../../migrations/postgres/0002_ends.sql")),
    ];
    execute(
        &mut conn,
        "CREATE TABLE schema_migrations (version BIGINT PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL)",
    )
    .await;
    for (n, (name, text)) in steps.into_iter().enumerate() {
        execute(&mut conn, text).await;
        let (version, checksum) = (n + 1, Digest::of(text.as_bytes()));
        let checksum = checksum.as_str();
        execute(
            &mut conn,
            &format!("INSERT INTO schema_migrations VALUES ({version}, '{name}', '{checksum}')"),
        )
        .await;
    }
    execute(
        &mut conn,
        "INSERT INTO records VALUES ('run/r-1', 1, 'r-1#1', 1, 'fact', 'start', '{}', 'p', 'operator', 'a', '', 1, 'h')",
    )
    .await;
    let reading = Database::connect_read_only(&address, &Settings::default()).await;
    assert_eq!(reading.expect_err("it is older").code(), "CDR0603");
    let versions = "SELECT CAST(version AS TEXT) FROM schema_migrations ORDER BY version";
    assert_eq!(column(&mut conn, versions).await, ["1", "2"]);

    let store = connect(&address, &Settings::default()).await;
    assert_eq!(count(&store, "r-1").await, 1);
    store.append(batch("r-1", 1, "{}")).await.unwrap();
    let all: Vec<String> = (1..=Database::SCHEMA_VERSION)
        .map(|step| step.to_string())
        .collect();
    assert_eq!(column(&mut conn, versions).await, all);
}
