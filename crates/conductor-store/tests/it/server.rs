//! What a server and other processes do to a database: locks, races, ended sessions. Nothing is lost or done twice.

use std::sync::Arc;
use std::time::Duration;

use conductor_domain::effect::EffectKind;
use conductor_domain::id::{EffectId, RepoId};
use conductor_domain::time::Timestamp;
use conductor_port::ledger::{
    AppendError, Batch, EffectChange, LeaseWish, Leased, Ledger, NewEffect, StreamId,
};
use conductor_port::{Fault, FaultKind};
use conductor_store::{Database, Heard, Settings};
use sqlx::postgres::PgConnection;
use tokio::task::JoinSet;

use crate::given::{batch, count, run_id};
use crate::postgres::{bare_database, column, database, execute, raw};

const LOCK_OF_R_1: &str = "BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('stream run/r-1', 0))";

async fn connect(address: &str, settings: &Settings) -> Arc<Database> {
    Arc::new(Database::connect(address, settings).await.unwrap())
}

fn fault(outcome: Result<(), AppendError>) -> Fault {
    match outcome {
        Err(AppendError::Fault(fault)) => fault,
        other => panic!("a fault is due, not {other:?}"),
    }
}

fn hasty() -> Settings {
    Settings {
        busy_timeout: Duration::from_millis(600),
        ..Settings::default()
    }
}

/// Waits until a session of the store waits for a lock; one that never does has not taken it.
async fn until_one_waits(conn: &mut PgConnection) {
    let waiting = "SELECT CAST(pid AS TEXT) FROM pg_stat_activity WHERE datname = current_database() \
        AND application_name = 'conductor' AND wait_event_type = 'Lock'";
    let watch = async {
        while column(conn, waiting).await.is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), watch)
        .await
        .expect("a session waits for a lock");
}

fn effect() -> EffectId {
    EffectId::derive(&run_id("r-1"), 0, 0)
}

/// Run `r-1` with one effect that could be leased at 10.
async fn asked(store: &Database) {
    let asked = NewEffect {
        id: effect(),
        run: run_id("r-1"),
        repo: RepoId(7),
        kind: EffectKind::Invoke,
        payload: "{}".to_owned(),
        priority: 50,
        not_before: Timestamp(10),
    };
    let batch = Batch {
        effects: vec![asked],
        ..batch("r-1", 0, "{}")
    };
    store.append(batch).await.unwrap();
}

fn wish() -> LeaseWish {
    LeaseWish {
        id: effect(),
        worker: "worker".to_owned(),
        now: Timestamp(10),
        until: Timestamp(20),
        slot: None,
    }
}

/// DEP-1, RUN-4.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_stores_append_to_one_stream_without_gap_or_repeat() {
    const EACH: usize = 20;
    let address = database().await;
    let mut appenders = JoinSet::new();
    for _ in 0..4 {
        let store = connect(&address, &Settings::default()).await;
        appenders.spawn(async move {
            let mut kept = 0;
            let mut seq = 0;
            while kept < EACH {
                match store.append(batch("r-1", seq, "{}")).await {
                    Ok(()) => {
                        kept += 1;
                        seq += 1;
                    }
                    Err(AppendError::Moved { actual }) => seq = actual,
                    other => panic!("an append was answered with {other:?}"),
                }
            }
            store.close().await;
        });
    }
    appenders.join_all().await;
    let store = connect(&address, &Settings::default()).await;
    let records = store
        .read(&StreamId::Run(run_id("r-1")), 0, u32::MAX)
        .await
        .unwrap();
    let seqs: Vec<u64> = records.iter().map(|record| record.seq).collect();
    assert_eq!(seqs, (1..=4 * EACH as u64).collect::<Vec<_>>());
}

#[tokio::test]
async fn who_appends_to_a_stream_has_it_alone_and_nobody_waits_for_ever() {
    let address = database().await;
    let store = connect(&address, &hasty()).await;
    let mut other = raw(&address).await;
    execute(&mut other, LOCK_OF_R_1).await;
    let locked = fault(store.append(batch("r-1", 0, "{}")).await);
    assert_eq!(locked.kind, FaultKind::Transient { retry_after: None });
    assert!(
        locked
            .what
            .starts_with("append to stream run/r-1 after 0: the database is locked"),
        "{}",
        locked.what
    );
    assert!(locked.what.contains("lock timeout"), "{}", locked.what);
    store.append(batch("r-2", 0, "{}")).await.unwrap();
    execute(&mut other, "ROLLBACK").await;
    store.append(batch("r-1", 0, "{}")).await.unwrap();
}

#[tokio::test]
async fn a_statement_that_takes_too_long_is_a_passing_fault() {
    let address = database().await;
    let hasty = Settings {
        statement_timeout: Duration::from_millis(50),
        ..Settings::default()
    };
    let store = connect(&address, &hasty).await;
    let mut other = raw(&address).await;
    execute(&mut other, LOCK_OF_R_1).await;
    let slow = fault(store.append(batch("r-1", 0, "{}")).await);
    assert_eq!(slow.kind, FaultKind::Transient { retry_after: None });
    assert!(slow.what.contains("statement timeout"), "{}", slow.what);
}

/// A process that knows nothing of our locks, as another version might, still cannot make us break a stream.
#[tokio::test]
async fn a_place_that_was_taken_past_the_lock_is_a_moved_stream() {
    let address = database().await;
    let store = connect(&address, &Settings::default()).await;
    let mut other = raw(&address).await;
    execute(
        &mut other,
        "BEGIN; INSERT INTO records VALUES ('run/r-1', 1, 'theirs', 1, '', '', '', '', '', '', '', 1, '')",
    )
    .await;
    let append = tokio::spawn({
        let store = Arc::clone(&store);
        async move { Ledger::append(&*store, batch("r-1", 0, "{}")).await }
    });
    let mut eye = raw(&address).await;
    until_one_waits(&mut eye).await;
    execute(&mut other, "COMMIT").await;
    assert_eq!(append.await.unwrap(), Err(AppendError::Moved { actual: 1 }));
    assert_eq!(count(&store, "r-1").await, 1);
}

/// OWN-1. Between the look at an effect and its change, nobody leases it.
#[tokio::test]
async fn a_retry_that_races_with_a_lease_is_refused() {
    let address = database().await;
    let store = connect(&address, &Settings::default()).await;
    asked(&store).await;
    let mut other = raw(&address).await;
    execute(
        &mut other,
        "BEGIN; UPDATE effects SET status = 'leased', attempts = 1, lease_until = 20",
    )
    .await;
    let retry = Batch {
        effect_changes: vec![EffectChange::Retry {
            id: effect(),
            not_before: Timestamp(5),
        }],
        ..batch("r-1", 1, "{}")
    };
    let append = tokio::spawn({
        let store = Arc::clone(&store);
        async move { Ledger::append(&*store, retry).await }
    });
    let mut eye = raw(&address).await;
    until_one_waits(&mut eye).await;
    execute(&mut other, "COMMIT").await;
    assert_eq!(append.await.unwrap(), Err(AppendError::LeaseLost));
}

/// RUN-4. What is leased is judged as it stands when the lease is had, with everything that was kept together with it.
#[tokio::test]
async fn a_lease_that_races_with_a_hold_is_not_granted() {
    let address = database().await;
    let store = connect(&address, &Settings::default()).await;
    asked(&store).await;
    let mut other = raw(&address).await;
    execute(
        &mut other,
        "BEGIN; UPDATE runs SET held = 1; UPDATE effects SET not_before = 9",
    )
    .await;
    let lease = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.lease(wish()).await }
    });
    let mut eye = raw(&address).await;
    until_one_waits(&mut eye).await;
    execute(&mut other, "COMMIT").await;
    assert_eq!(lease.await.unwrap(), Ok(Leased::Gone));
}

/// RUN-13. Slots are counted as they stand when one is to be taken.
#[tokio::test]
async fn a_lease_that_races_for_the_last_slot_goes_without() {
    let address = database().await;
    let store = connect(&address, &Settings::default()).await;
    asked(&store).await;
    let mut other = raw(&address).await;
    execute(
        &mut other,
        "BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('slots 7', 0)); INSERT INTO slots VALUES (7, 1, 'r-9')",
    )
    .await;
    let lease = tokio::spawn({
        let store = Arc::clone(&store);
        let wish = LeaseWish {
            slot: Some((RepoId(7), 1)),
            ..wish()
        };
        async move { store.lease(wish).await }
    });
    let mut eye = raw(&address).await;
    until_one_waits(&mut eye).await;
    execute(&mut other, "COMMIT").await;
    assert_eq!(lease.await.unwrap(), Ok(Leased::NoSlot));
}

/// The isolation that locks rely on is ours to choose, not the server's.
#[tokio::test]
async fn a_server_that_would_show_old_rows_is_told_not_to() {
    let address = database().await;
    let mut other = raw(&address).await;
    let name = &column(&mut other, "SELECT CAST(current_database() AS TEXT)").await[0];
    execute(
        &mut other,
        &format!("ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'"),
    )
    .await;
    let store = connect(&address, &Settings::default()).await;
    execute(&mut other, LOCK_OF_R_1).await;
    let append = tokio::spawn({
        let store = Arc::clone(&store);
        async move { Ledger::append(&*store, batch("r-1", 0, "{}")).await }
    });
    let mut eye = raw(&address).await;
    until_one_waits(&mut eye).await;
    execute(
        &mut other,
        "INSERT INTO records VALUES ('run/r-1', 1, 'theirs', 1, '', '', '', '', '', '', '', 1, ''), \
         ('run/r-1', 2, 'theirs too', 1, '', '', '', '', '', '', '', 1, ''); COMMIT",
    )
    .await;
    assert_eq!(append.await.unwrap(), Err(AppendError::Moved { actual: 2 }));
}

/// A restart of the server ends all sessions: what was under way is undone and said to be so, and work goes on.
#[tokio::test]
async fn ended_sessions_are_a_passing_fault_and_lose_nothing() {
    let address = database().await;
    let store = connect(&address, &Settings::default()).await;
    store.append(batch("r-1", 0, "{}")).await.unwrap();
    let mut other = raw(&address).await;
    execute(&mut other, LOCK_OF_R_1).await;
    let append = tokio::spawn({
        let store = Arc::clone(&store);
        async move { Ledger::append(&*store, batch("r-1", 1, "{}")).await }
    });
    let mut eye = raw(&address).await;
    until_one_waits(&mut eye).await;
    let end = "SELECT CAST(pg_terminate_backend(pid, 10000) AS TEXT) FROM pg_stat_activity \
        WHERE datname = current_database() AND application_name = 'conductor'";
    column(&mut eye, end).await;
    assert_eq!(
        fault(append.await.unwrap()).kind,
        FaultKind::Transient { retry_after: None }
    );
    execute(&mut other, "ROLLBACK").await;
    assert_eq!(count(&store, "r-1").await, 1);
    store.append(batch("r-1", 1, "{}")).await.unwrap();
    assert_eq!(count(&store, "r-1").await, 2);
}

/// The sessions that hold a claim, ended as a cut connection would.
async fn end_claims(address: &str) {
    let end = "SELECT CAST(pg_terminate_backend(pid, 10000) AS TEXT) FROM pg_locks \
        WHERE locktype = 'advisory' AND objsubid = 1 \
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    column(&mut raw(address).await, end).await;
}

/// DEP-3: several processes work on a database, each under a name of its own, until one wants it alone.
#[tokio::test]
async fn processes_share_a_database_under_names_of_their_own() {
    let address = database().await;
    let first = connect(&address, &Settings::default()).await;
    let second = connect(&address, &hasty()).await;
    let one = first.claim("w-1").await.unwrap();
    let taken = second.claim("w-1").await.expect_err("the name is taken");
    assert_eq!(taken.code(), "CDR0614", "{taken:?}");
    let other = second.claim("w-2").await.unwrap();
    let third = connect(&address, &hasty()).await;
    assert_eq!(third.claim_alone().await.unwrap_err().code(), "CDR0614");
    drop((one, other));
    connect(&address, &Settings::default())
        .await
        .claim_alone()
        .await
        .unwrap();
}

/// DEP-3: a claim whose connection is cut is had back; work goes on, and nobody else got the name meanwhile.
#[tokio::test]
async fn a_claim_survives_its_connection() {
    let address = database().await;
    let store = connect(&address, &Settings::default()).await;
    let mut claim = store.claim("w-1").await.unwrap();
    end_claims(&address).await;
    let held = "SELECT CAST(pid AS TEXT) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted \
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    let mut eye = raw(&address).await;
    let had_back = async {
        while column(&mut eye, held).await.len() < 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = had_back => {}
        why = claim.lost() => panic!("the claim is lost for good: {why:?}"),
    }
    let other = connect(&address, &hasty()).await;
    assert_eq!(other.claim("w-1").await.unwrap_err().code(), "CDR0614");
}

/// DEP-3: two processes of different versions never work on one database; the one that comes later is told why, also
/// when it is the older one that comes back.
#[tokio::test]
async fn another_version_is_refused_while_one_works() {
    let address = database().await;
    let old = connect(&address, &Settings::default()).await;
    let mut claim = old.claim("w-1").await.unwrap();
    let newer = Settings {
        rules: Settings::default().rules + 1,
        ..hasty()
    };
    let refused = Database::connect(&address, &newer)
        .await
        .expect_err("another works");
    assert_eq!(refused.code(), "CDR0615", "{refused:?}");
    assert!(refused.to_string().contains("rules"), "{refused}");

    // The old one is cut off long enough for the newer one to come.
    let mut eye = raw(&address).await;
    let name = &column(&mut eye, "SELECT CAST(current_database() AS TEXT)").await[0];
    let mut outside = raw(&crate::postgres::address("postgres")).await;
    execute(
        &mut outside,
        &format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false"),
    )
    .await;
    let end = "SELECT CAST(pg_terminate_backend(pid, 10000) AS TEXT) FROM pg_stat_activity \
        WHERE datname = current_database() AND application_name = 'conductor'";
    column(&mut eye, end).await;
    // Its lock is taken by hand before the door opens again, so that the order of the two is certain.
    let theirs = format!(
        "SELECT pg_advisory_lock_shared(1131376228, {})",
        Database::SCHEMA_VERSION * 10_000 + i64::from(newer.rules)
    );
    execute(&mut eye, &theirs).await;
    execute(
        &mut outside,
        &format!("ALTER DATABASE {name} ALLOW_CONNECTIONS true"),
    )
    .await;

    let why = tokio::time::timeout(Duration::from_mins(1), claim.lost()).await;
    assert_eq!(why.expect("it gives up").code(), "CDR0615");
    let late = fault(old.append(batch("r-1", 0, "{}")).await);
    assert!(matches!(late.kind, FaultKind::Transient { .. }), "{late:?}");
    assert!(column(&mut eye, "SELECT stream FROM records").await.is_empty());
}

/// DEP-3: tables are not changed under those who work on them.
#[tokio::test]
async fn nobody_migrates_while_an_older_version_works() {
    let address = bare_database().await;
    let mut old = raw(&address).await;
    execute(&mut old, "SELECT pg_advisory_lock_shared(1131376228, 10001)").await;
    let refused = Database::connect(&address, &hasty())
        .await
        .expect_err("an older works");
    assert_eq!(refused.code(), "CDR0615", "{refused:?}");
    let tables = "SELECT CAST(tablename AS TEXT) FROM pg_tables WHERE schemaname = 'public'";
    assert!(column(&mut old, tables).await.is_empty());
}

/// DEP-3: what one process commits the others hear at once, and not what they committed themselves.
#[tokio::test]
async fn a_commit_is_heard_by_the_others() {
    let address = database().await;
    let (one, other) = (
        connect(&address, &Settings::default()).await,
        connect(&address, &Settings::default()).await,
    );
    let _claims = (one.claim("w-1").await.unwrap(), other.claim("w-2").await.unwrap());
    let mut ear = one.listen().await.unwrap();
    one.append(batch("r-1", 0, "{}")).await.unwrap();
    other.append(batch("r-2", 0, "{}")).await.unwrap();
    let heard = tokio::time::timeout(Duration::from_secs(20), ear.next())
        .await
        .unwrap();
    assert_eq!(
        heard,
        Heard::Commit {
            stream: StreamId::Run(run_id("r-2")),
            seq: 1,
            records: 1
        }
    );
    let end = "SELECT CAST(pg_terminate_backend(pid, 10000) AS TEXT) FROM pg_stat_activity \
        WHERE datname = current_database() AND query LIKE 'LISTEN%'";
    column(&mut raw(&address).await, end).await;
    let heard = tokio::time::timeout(Duration::from_secs(20), ear.next())
        .await
        .unwrap();
    assert_eq!(heard, Heard::Gap, "what was missed is looked for");
}

/// A server that failed over leaves a copy behind that takes no writes.
#[tokio::test]
async fn a_server_that_takes_no_writes_is_a_passing_fault() {
    let address = database().await;
    let store = connect(&address, &Settings::default()).await;
    let mut other = raw(&address).await;
    let name = &column(&mut other, "SELECT CAST(current_database() AS TEXT)").await[0];
    execute(
        &mut other,
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN RAISE SQLSTATE '25006'; END $$; \
         CREATE TRIGGER refuse BEFORE INSERT ON records FOR EACH ROW EXECUTE FUNCTION refuse()",
    )
    .await;
    let refused = fault(store.append(batch("r-1", 0, "{}")).await);
    assert_eq!(refused.kind, FaultKind::Transient { retry_after: None }, "{name}");
    assert!(refused.what.contains("takes no writes"), "{}", refused.what);
}
