//! Opens a database: looks at what is there first, refuses what is not ours, and changes nothing before that.
//!
//! The one home of connection pools. It does not know any statement on tables beyond those of the migrations.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};

use super::Database;
use super::conn::Db;
use super::fault::{Class, class};
use super::migrate::{self, MIGRATIONS};
use super::writer::Writer;

/// SQLite's page size unless told otherwise; limits are given to it in pages.
const PAGE: u64 = 4096;

/// How a database is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How many connections read at once.
    pub readers: u32,
    /// How long to wait for another process that holds the write lock.
    pub busy_timeout: Duration,
    /// The most bytes that the file may take; unlimited if absent.
    pub size_limit: Option<u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            readers: 4,
            busy_timeout: Duration::from_secs(5),
            size_limit: None,
        }
    }
}

/// Why a database could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is nothing to read.
    #[error("there is no database at {}", .path.display())]
    Missing {
        /// Where.
        path: PathBuf,
    },
    /// It comes from a later version.
    #[error("the database {} was written by a newer Conductor (schema {found}, this one knows {known})", .path.display())]
    NewerSchema {
        /// Where.
        path: PathBuf,
        /// Its schema version.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// It comes from an earlier version, and reading must not change it.
    #[error("the database {} was written by an older Conductor (schema {found}, this one needs {needed})", .path.display())]
    OlderSchema {
        /// Where.
        path: PathBuf,
        /// Its schema version.
        found: i64,
        /// Ours.
        needed: i64,
    },
    /// A migration was applied in another form than this version knows.
    #[error("the database {} was set up by another text of migration {version} ({name})", .path.display())]
    OtherMigration {
        /// Where.
        path: PathBuf,
        /// Which migration.
        version: i64,
        /// Its name.
        name: String,
    },
    /// It is a database of another program.
    #[error("the database {} belongs to another program", .path.display())]
    Foreign {
        /// Where.
        path: PathBuf,
    },
    /// It is no database, or a damaged one.
    #[error("the file {} is damaged or not a database", .path.display())]
    Damaged {
        /// Where.
        path: PathBuf,
        /// What the database said.
        source: sqlx::Error,
    },
    /// Another process holds the write lock.
    #[error("the database {} is locked by another process", .path.display())]
    Locked {
        /// Where.
        path: PathBuf,
        /// What the database said.
        source: sqlx::Error,
    },
    /// Anything else.
    #[error("cannot {attempted} the database {}", .path.display())]
    Failed {
        /// What was attempted.
        attempted: &'static str,
        /// Where.
        path: PathBuf,
        /// What the database said.
        source: sqlx::Error,
    },
    /// The copy that is made before a migration could not be put in its place.
    #[error("cannot keep a copy of the database at {}", .path.display())]
    Backup {
        /// Where.
        path: PathBuf,
        /// What the file system said.
        source: std::io::Error,
    },
}

impl OpenError {
    /// The stable code; a page in `docs/error/` explains it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "CDR0601",
            Self::NewerSchema { .. } => "CDR0602",
            Self::OlderSchema { .. } => "CDR0603",
            Self::OtherMigration { .. } => "CDR0604",
            Self::Foreign { .. } => "CDR0605",
            Self::Damaged { .. } => "CDR0606",
            Self::Locked { .. } => "CDR0607",
            Self::Failed { .. } => "CDR0608",
            Self::Backup { .. } => "CDR0609",
        }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "start `conductor serve` once, or name the right data directory",
            Self::NewerSchema { .. } => "use that newer version, or another data directory",
            Self::OlderSchema { .. } => {
                "start `conductor serve` once; it keeps a copy and brings the database up to date"
            }
            Self::OtherMigration { .. } => "use the version that wrote it, or another data directory",
            Self::Foreign { .. } => "name another data directory; nothing in this file was changed",
            Self::Damaged { .. } => "move the file away and bring back a copy; nothing in it was changed",
            Self::Locked { .. } => "stop the other `conductor serve`, or wait until it has finished",
            Self::Failed { .. } => {
                "look at the permissions of the data directory and at the room left on its disk"
            }
            Self::Backup { .. } => {
                "make room next to the database, and start again; nothing in it was changed"
            }
        }
    }

    pub(super) fn of(attempted: &'static str, path: &Path, source: sqlx::Error) -> Self {
        let path = path.to_owned();
        match class(&source) {
            Class::Busy => Self::Locked { path, source },
            Class::Corrupt | Class::NotADatabase => Self::Damaged { path, source },
            Class::Full | Class::Io | Class::CannotOpen | Class::Unique | Class::Other => Self::Failed {
                attempted,
                path,
                source,
            },
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
        if holds_bytes(path) {
            migrate::outstanding(&db, path, MIGRATIONS).await?;
        }
        migrate::run(&db, path, MIGRATIONS).await?;
        Ok(Self::on(db))
    }

    /// Opens the database at `path` for reading only; every write is answered with a fault.
    pub async fn open_read_only(path: &Path, settings: &Settings) -> Result<Self, OpenError> {
        if !holds_bytes(path) {
            return Err(OpenError::Missing {
                path: path.to_owned(),
            });
        }
        let db = Db::Sqlite {
            writer: None,
            readers: readers(path, settings),
        };
        let outstanding = migrate::outstanding(&db, path, MIGRATIONS).await?;
        match outstanding.first() {
            None => Ok(Self::on(db)),
            Some(next) => Err(OpenError::OlderSchema {
                path: path.to_owned(),
                found: next.version - 1,
                needed: Self::SCHEMA_VERSION,
            }),
        }
    }

    fn on(db: Db) -> Self {
        let db = Arc::new(db);
        Self {
            writer: Writer::start(Arc::clone(&db)),
            db,
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
