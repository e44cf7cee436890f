//! The tables on SQLite and on PostgreSQL are the same, and each refusal to open a server's has its name.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use conductor_port::ledger::{AppendError, Ledger};
use conductor_port::{Fault, FaultKind};
use conductor_store::{Database, OpenError, Settings};
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Row as _};

use crate::given::{batch, count, open};
use crate::postgres::{address, bare_database, column, database, execute, raw};

/// Every column with its default, index with its condition, key and count of checks, one line each, in the words of
/// PostgreSQL.
async fn of_sqlite(conn: &mut SqliteConnection) -> BTreeSet<String> {
    let columns = "SELECT 'column ' || t.name || '.' || c.cid || ' ' || c.name || ' ' || \
        CASE c.type WHEN 'TEXT' THEN 'text C' WHEN 'BLOB' THEN 'bytea' ELSE lower(c.type) END || \
        CASE WHEN c.\"notnull\" = 1 OR c.pk > 0 THEN ' NO' ELSE ' YES' END || \
        COALESCE(' default ' || c.dflt_value, '') \
        FROM sqlite_master t JOIN pragma_table_info(t.name) c WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'";
    let indexes = "SELECT 'index ' || t.name || ' (' || \
        (SELECT group_concat(name, ',') FROM (SELECT name FROM pragma_index_info(i.name) ORDER BY seqno)) || ')' || \
        CASE i.\"unique\" WHEN 1 THEN ' unique' ELSE '' END || CASE i.partial WHEN 1 THEN ' partial' ELSE '' END || \
        COALESCE((SELECT ' where' || substr(m.sql, instr(m.sql, ' WHERE ') + 6) FROM sqlite_master m \
        WHERE m.name = i.name AND i.partial = 1), '') \
        FROM sqlite_master t JOIN pragma_index_list(t.name) i WHERE t.type = 'table'";
    // The key of a table with one whole number for it is the table itself here, and an index there.
    let keys = "SELECT 'key ' || t.name || ' (' || group_concat(c.name, ',') || ')' \
        FROM sqlite_master t JOIN pragma_table_info(t.name) c WHERE t.type = 'table' AND c.pk > 0 \
        AND t.name NOT LIKE 'sqlite_%' GROUP BY t.name";
    let checks = "SELECT 'check ' || name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%CHECK (%'";
    let mut all = BTreeSet::new();
    for sql in [columns, indexes, keys, checks] {
        let rows = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
            .fetch_all(&mut *conn)
            .await
            .unwrap();
        all.extend(rows.iter().map(|row| row.get::<String, _>(0)));
    }
    all
}

async fn of_postgres(address: &str) -> BTreeSet<String> {
    let columns = "SELECT 'column ' || table_name || '.' || (ordinal_position - 1) || ' ' || column_name || ' ' || \
        data_type || COALESCE(' ' || collation_name, '') || ' ' || is_nullable || \
        COALESCE(' default ' || replace(column_default, '::text', ''), '') \
        FROM information_schema.columns WHERE table_schema = current_schema()";
    let indexes = "SELECT 'index ' || t.relname || ' (' || (SELECT string_agg(a.attname, ',' ORDER BY k.n) \
        FROM unnest(i.indkey) WITH ORDINALITY k(attnum, n) \
        JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.attnum) || ')' || \
        CASE WHEN i.indisunique THEN ' unique' ELSE '' END || CASE WHEN i.indpred IS NULL THEN '' ELSE ' partial' END || \
        COALESCE(' where ' || translate(replace(pg_get_expr(i.indpred, i.indrelid), '::text', ''), '()', ''), '') \
        FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid \
        WHERE t.relnamespace = CAST(current_schema() AS regnamespace)";
    let checks = "SELECT 'check ' || CAST(CAST(conrelid AS regclass) AS TEXT) FROM pg_constraint \
        WHERE contype = 'c' AND connamespace = CAST(current_schema() AS regnamespace)";
    let keys = "SELECT 'key ' || t.relname || ' (' || (SELECT string_agg(a.attname, ',' ORDER BY k.n) \
        FROM unnest(i.indkey) WITH ORDINALITY k(attnum, n) \
        JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.attnum) || ')' \
        FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid \
        WHERE i.indisprimary AND t.relnamespace = CAST(current_schema() AS regnamespace)";
    let mut conn = raw(address).await;
    let mut all = BTreeSet::new();
    for sql in [columns, indexes, keys, checks] {
        all.extend(column(&mut conn, sql).await);
    }
    // Made by us and not by a migration, and the same text for both: only its collation is the server's.
    all.into_iter()
        .map(|line| {
            if line.starts_with("column schema_migrations") {
                line.replace(" text ", " text C ")
            } else {
                line
            }
        })
        .collect()
}

/// Each database keeps the words of records in its own way, and only the contract says that they come to the same. The
/// number of a place is the table itself in a file.
fn besides_words(lines: BTreeSet<String>) -> BTreeSet<String> {
    let own = [
        " record_words",
        " record_places (words)",
        " record_places.4 words",
        "index record_places (place)",
    ];
    let besides = lines
        .into_iter()
        .filter(|line| !own.iter().any(|own| line.contains(own)));
    besides
        .map(|line| line.replace("record_places.0 place integer", "record_places.0 place bigint"))
        .collect()
}

/// DEP-1. Types, order, absence, defaults, order of text, keys, indexes with their conditions, and checks.
#[tokio::test]
async fn the_tables_of_both_databases_are_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.sqlite");
    open(&path).await.close().await;
    let file = besides_words(of_sqlite(&mut crate::given::raw(&path).await).await);
    let server = besides_words(of_postgres(&database().await).await);
    let differing: Vec<_> = file.symmetric_difference(&server).collect();
    assert!(differing.is_empty(), "{differing:#?}");
    assert!(file.contains("column records.0 stream text C NO"), "{file:#?}");
    assert!(file.contains("index records (stream,seq) unique"), "{file:#?}");
    assert!(
        file.contains("index runs (deadline) partial where deadline IS NOT NULL"),
        "{file:#?}"
    );
    assert!(file.contains("key effects (id)"), "{file:#?}");
    assert!(
        file.contains("column runs.18 cleaned_up smallint NO default 0"),
        "{file:#?}"
    );
    assert!(file.contains("check effects"), "{file:#?}");
}

async fn refused(address: &str) -> OpenError {
    Database::connect(address, &Settings::default())
        .await
        .expect_err("this database is not to be opened")
}

async fn altered(sql: &str) -> String {
    let address = database().await;
    execute(&mut raw(&address).await, sql).await;
    address
}

/// The same database for another user, who may connect and nothing else.
async fn as_stranger(address: &str, grants: &str) -> String {
    let mut conn = raw(address).await;
    let name = &column(&mut conn, "SELECT CAST(current_database() AS TEXT)").await[0];
    execute(
        &mut conn,
        &format!("DROP ROLE IF EXISTS {name}; CREATE ROLE {name} LOGIN"),
    )
    .await;
    if !grants.is_empty() {
        execute(&mut conn, &format!("{grants} TO {name}")).await;
    }
    address.replace("postgres://postgres@", &format!("postgres://{name}@"))
}

#[tokio::test]
async fn a_server_with_a_newer_schema_is_refused_with_a_hint() {
    let address = altered(
        "INSERT INTO schema_migrations VALUES (99, 'later', \
         'sha256:0000000000000000000000000000000000000000000000000000000000000000')",
    )
    .await;
    let error = refused(&address).await;
    assert_eq!(error.code(), "CDR0602", "{error:?}");
    assert!(error.hint().contains("newer version"), "{}", error.hint());
}

#[tokio::test]
async fn a_server_whose_set_up_text_differs_is_refused() {
    let address = altered(
        "UPDATE schema_migrations SET checksum = \
         'sha256:0000000000000000000000000000000000000000000000000000000000000000'",
    )
    .await;
    assert_eq!(refused(&address).await.code(), "CDR0604");
}

#[tokio::test]
async fn a_server_database_of_another_program_is_refused_and_left_alone() {
    for table in [
        "CREATE TABLE users (name TEXT)",
        "CREATE TABLE schema_migrations (version TEXT, dirty INTEGER)",
        "CREATE TABLE schema_migrations (version TEXT, name TEXT, checksum TEXT); \
         INSERT INTO schema_migrations VALUES ('1', 'users', 'none')",
    ] {
        let address = bare_database().await;
        let mut conn = raw(&address).await;
        execute(&mut conn, table).await;
        let error = refused(&address).await;
        assert_eq!(error.code(), "CDR0605", "{error:?}");
        let tables = column(
            &mut conn,
            "SELECT CAST(tablename AS TEXT) FROM pg_tables WHERE schemaname = 'public'",
        )
        .await;
        assert_eq!(tables.len(), 1, "{tables:?}");
    }
}

#[tokio::test]
async fn who_may_not_make_tables_or_not_write_to_them_is_told_so() {
    let without_tables = as_stranger(&bare_database().await, "").await;
    let without_sight = as_stranger(&database().await, "").await;
    let reading = as_stranger(&database().await, "GRANT SELECT ON ALL TABLES IN SCHEMA public").await;
    let elsewhere = address("no_such_database");
    for address in [&without_tables, &without_sight, &reading, &elsewhere] {
        let error = refused(address).await;
        assert_eq!(error.code(), "CDR0611", "{address}: {error:?}");
    }
    let reader = Database::connect_read_only(&reading, &Settings::default()).await;
    assert_eq!(count(&reader.unwrap(), "r-1").await, 0);
}

#[tokio::test]
async fn a_database_in_another_encoding_is_refused() {
    let bare = bare_database().await;
    let mut conn = raw(&bare).await;
    let name = &column(&mut conn, "SELECT CAST(current_database() AS TEXT)").await[0];
    let other = format!("{name}_ascii");
    execute(
        &mut conn,
        &format!("CREATE DATABASE {other} ENCODING 'SQL_ASCII' TEMPLATE template0"),
    )
    .await;
    let error = refused(&address(&other)).await;
    assert_eq!(error.code(), "CDR0612", "{error:?}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_as_such() {
    let dir = tempfile::tempdir().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for address in [
        format!("postgres://me@localhost/x?host={}", dir.path().display()),
        format!("postgres://me@{free}/x"),
    ] {
        let error = refused(&address).await;
        assert_eq!(error.code(), "CDR0610", "{error:?}");
    }
}

/// SEC-2. Who must show a certificate and does not, learns neither user nor password.
#[tokio::test]
async fn a_server_without_a_certificate_hears_nothing_where_one_is_wanted() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut asked = [0; 8];
        client.read_exact(&mut asked).unwrap();
        client.write_all(b"N").unwrap();
        let mut heard = Vec::new();
        client.read_to_end(&mut heard).unwrap();
        heard
    });
    let address = format!("postgres://me:hunter2@127.0.0.1:{port}/x?sslmode=verify-full");
    let error = refused(&address).await;
    assert_eq!(error.code(), "CDR0610", "{error:?}");
    assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    assert_eq!(heard.join().unwrap(), b"");
}

/// Several processes of a team start at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_open_an_empty_database_at_once_and_one_sets_it_up() {
    let address = bare_database().await;
    let settings = Settings::default();
    let (a, b, c) = tokio::join!(
        Database::connect(&address, &settings),
        Database::connect(&address, &settings),
        Database::connect(&address, &settings),
    );
    for store in [a, b, c] {
        store.unwrap().close().await;
    }
    let steps = column(
        &mut raw(&address).await,
        "SELECT CAST(version AS TEXT) FROM schema_migrations ORDER BY version",
    )
    .await;
    let once: Vec<String> = (1..=Database::SCHEMA_VERSION)
        .map(|step| step.to_string())
        .collect();
    assert_eq!(steps, once);
}

#[tokio::test]
async fn reading_from_a_server_changes_nothing() {
    let bare = bare_database().await;
    let error = Database::connect_read_only(&bare, &Settings::default()).await;
    assert_eq!(error.expect_err("there is nothing yet").code(), "CDR0601");
    let tables = "SELECT CAST(tablename AS TEXT) FROM pg_tables WHERE schemaname = 'public'";
    assert!(column(&mut raw(&bare).await, tables).await.is_empty());

    let reader = Database::connect_read_only(&database().await, &Settings::default())
        .await
        .unwrap();
    match reader.append(batch("r-1", 0, "{}")).await {
        Err(AppendError::Fault(Fault { kind, what, .. })) => {
            assert_eq!(kind, FaultKind::Permanent);
            assert!(what.ends_with("the database is open for reading only"), "{what}");
        }
        other => panic!("a write was answered with {other:?}"),
    }
}
