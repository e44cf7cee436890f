//! Opens a database in a file: looks at what is there first, refuses what is not ours, and changes nothing before that.
//!
//! With `server.rs` the one home of connection pools. It does not know any statement on tables beyond those of the
//! migrations.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};

use super::Database;
use super::conn::Db;
use super::error::{OpenError, Place};
use super::migrate::{self, MIGRATIONS};
use super::writer::Writer;

/// SQLite's page size unless told otherwise; limits are given to it in pages.
const PAGE: u64 = 4096;

/// How a database is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How many connections read at once.
    pub readers: u32,
    /// How many connections write at once; to a file there is one.
    pub writers: u32,
    /// How long to wait for another process that holds a lock, and for a connection.
    pub busy_timeout: Duration,
    /// How long a server may work on one statement, and may wait for the next one of a transaction before it ends
    /// it: a frozen process must not keep others waiting.
    pub statement_timeout: Duration,
    /// The version of the rules by which this process decides; on a server all must have the same.
    pub rules: u32,
    /// The most bytes that the file may take; unlimited if absent. A server has its own limits.
    pub size_limit: Option<u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            readers: 4,
            writers: 4,
            busy_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(30),
            rules: conductor_domain::DECIDER_VERSION,
            size_limit: None,
        }
    }
}

impl Database {
    /// The newest schema that this version knows, and the one that an opened database has.
    pub const SCHEMA_VERSION: i64 = MIGRATIONS[MIGRATIONS.len() - 1].version;

    /// Opens the database at `path`; makes it where there is none, and migrates an older one after copying it.
    pub async fn open(path: &Path, settings: &Settings) -> Result<Self, OpenError> {
        let db = Db::Sqlite {
            writer: Some(writer(path, settings)),
            readers: readers(path, settings),
        };
        let place = Place::File(path.to_owned());
        if holds_bytes(path) {
            migrate::outstanding(&db, &place, MIGRATIONS).await?;
        }
        migrate::run(&db, &place, MIGRATIONS, settings.rules).await?;
        Ok(Self::on(db, place, settings))
    }

    /// Opens the database at `path` for reading only; every write is answered with a fault.
    pub async fn open_read_only(path: &Path, settings: &Settings) -> Result<Self, OpenError> {
        let place = Place::File(path.to_owned());
        if !holds_bytes(path) {
            return Err(OpenError::Missing { place });
        }
        let db = Db::Sqlite {
            writer: None,
            readers: readers(path, settings),
        };
        migrate::all_done(&db, &place, MIGRATIONS).await?;
        Ok(Self::on(db, place, settings))
    }

    pub(super) fn on(db: Db, place: Place, settings: &Settings) -> Self {
        let db = Arc::new(db);
        Self {
            writer: Writer::start(Arc::clone(&db)),
            db,
            place,
            rules: settings.rules,
            voice: Arc::default(),
        }
    }
}

/// An empty file is what a crash between creating and first writing leaves; it is as good as none.
fn holds_bytes(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|file| file.len() > 0)
}

/// Durable before an answer: every commit waits for the disk.
pub(super) fn writer(path: &Path, settings: &Settings) -> SqlitePool {
    let mut options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(settings.busy_timeout);
    if let Some(limit) = settings.size_limit {
        options = options.pragma("max_page_count", (limit / PAGE).to_string());
    }
    pool(options, 1)
}

pub(super) fn readers(path: &Path, settings: &Settings) -> SqlitePool {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .read_only(true)
        .busy_timeout(settings.busy_timeout);
    pool(options, settings.readers)
}

/// Connects when first used, and keeps connections: to a file they do not go stale.
#[allow(clippy::disallowed_methods, reason = "the one home of pools")]
fn pool(options: SqliteConnectOptions, connections: u32) -> SqlitePool {
    SqlitePoolOptions::new()
        .max_connections(connections)
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None)
        .connect_lazy_with(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// GH-2: what is acknowledged has reached the disk, because every commit waits for it.
    #[tokio::test]
    async fn the_writer_waits_for_the_disk_and_readers_cannot_write() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.sqlite");
        let store = Database::open(&path, &Settings::default()).await.unwrap();
        let mut conn = store.db.writer().await.unwrap().unwrap();
        for (pragma, expected) in [
            ("PRAGMA synchronous", 2),
            ("PRAGMA foreign_keys", 1),
            ("PRAGMA busy_timeout", 5_000),
        ] {
            let row = conn.first(pragma, &[]).await.unwrap().unwrap();
            assert_eq!(row.int(0).unwrap(), expected, "{pragma}");
        }
        let row = conn.first("PRAGMA journal_mode", &[]).await.unwrap().unwrap();
        assert_eq!(row.text(0).unwrap(), "wal");
        let mut reader = store.db.reader().await.unwrap();
        let error = reader.execute("DELETE FROM records", &[]).await.unwrap_err();
        assert!(error.to_string().contains("readonly"), "{error}");
    }
}
