//! Names every reason why a database cannot be opened, each with a code and a hint.
//!
//! It does not know how one is opened.

use std::fmt;
use std::path::PathBuf;

use super::fault::{Class, class};

/// Why a database could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is nothing to read.
    #[error("there is no database at {place}")]
    Missing {
        /// Where.
        place: Place,
    },
    /// It comes from a later version.
    #[error("the database {place} was written by a newer Conductor (schema {found}, this one knows {known})")]
    NewerSchema {
        /// Where.
        place: Place,
        /// Its schema version.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// It comes from an earlier version, and reading must not change it.
    #[error(
        "the database {place} was written by an older Conductor (schema {found}, this one needs {needed})"
    )]
    OlderSchema {
        /// Where.
        place: Place,
        /// Its schema version.
        found: i64,
        /// Ours.
        needed: i64,
    },
    /// A migration was applied in another form than this version knows.
    #[error("the database {place} was set up by another text of migration {version} ({name})")]
    OtherMigration {
        /// Where.
        place: Place,
        /// Which migration.
        version: i64,
        /// Its name.
        name: String,
    },
    /// It is a database of another program.
    #[error("the database {place} belongs to another program")]
    Foreign {
        /// Where.
        place: Place,
    },
    /// It is no database, or a damaged one.
    #[error("the file {place} is damaged or not a database")]
    Damaged {
        /// Where.
        place: Place,
        /// What the database said.
        source: sqlx::Error,
    },
    /// Another process holds the write lock.
    #[error("the database {place} is locked by another process")]
    Locked {
        /// Where.
        place: Place,
        /// What the database said.
        source: sqlx::Error,
    },
    /// Anything else.
    #[error("cannot {attempted} the database {place}")]
    Failed {
        /// What was attempted.
        attempted: &'static str,
        /// Where.
        place: Place,
        /// What the database said.
        source: sqlx::Error,
    },
    /// The server does not answer, or not as one that can be trusted.
    #[error("cannot reach the database server of {place}")]
    Unreachable {
        /// Where.
        place: Place,
        /// What was said.
        source: sqlx::Error,
    },
    /// The server answers, and has no connection left for us.
    #[error("the database server of {place} has no connection left")]
    NoConnection {
        /// Where.
        place: Place,
        /// What was said.
        source: sqlx::Error,
    },
    /// The server does not let this user do what is needed.
    #[error("the database server does not let this user work in {place}")]
    Denied {
        /// Where.
        place: Place,
        /// What the server said.
        source: sqlx::Error,
    },
    /// The server or the database on it is of the wrong kind.
    #[error("the database {place} cannot be used: {why}")]
    Unfit {
        /// Where.
        place: Place,
        /// What is wrong.
        why: String,
    },
    /// Another process works on it, under this name or alone.
    #[error("another Conductor has claimed the database {place}")]
    Claimed {
        /// Where.
        place: Place,
    },
    /// Processes of another version work on it.
    #[error("another version of Conductor works on the database {place} ({theirs}; this one has {ours})")]
    OtherVersion {
        /// Where.
        place: Place,
        /// What the others have.
        theirs: String,
        /// What this one has.
        ours: String,
    },
    /// The address is none, or one under which anybody could answer.
    #[error("the address of the database cannot be used: {why}")]
    BadAddress {
        /// What is wrong; never the address itself, which may hold a password.
        why: String,
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
            Self::Unreachable { .. } => "CDR0610",
            Self::Denied { .. } => "CDR0611",
            Self::Unfit { .. } => "CDR0612",
            Self::BadAddress { .. } => "CDR0613",
            Self::Claimed { .. } => "CDR0614",
            Self::OtherVersion { .. } => "CDR0615",
            Self::NoConnection { .. } => "CDR0617",
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
            Self::Unreachable { .. } => {
                "see that the server runs, that its address is right, and that its certificate is of an authority in `sslrootcert`"
            }
            Self::NoConnection { .. } => {
                "every `conductor serve` takes ten connections: raise `max_connections` of the server, or end what uses them"
            }
            Self::Denied { .. } => {
                "make the database, let its user connect, make tables in its schema and write to them, and look at the password"
            }
            Self::Unfit { .. } => "use PostgreSQL 15 or newer, and a database whose encoding is UTF8",
            Self::BadAddress { .. } => {
                "write `postgres://user@host/database`, for another machine with `?sslmode=verify-full`"
            }
            Self::Claimed { .. } => {
                "stop the other `conductor serve`; several on one database need a data directory each, and none that was copied"
            }
            Self::OtherVersion { .. } => {
                "stop all processes of the other version first; all that share a database must be of one version"
            }
            Self::Backup { .. } => {
                "make room next to the database, and start again; nothing in it was changed"
            }
        }
    }

    /// Tells whether waiting may help.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Locked { .. }
            | Self::Failed { .. }
            | Self::Unreachable { .. }
            | Self::NoConnection { .. }
            | Self::Denied { .. } => true,
            Self::Missing { .. }
            | Self::NewerSchema { .. }
            | Self::OlderSchema { .. }
            | Self::OtherMigration { .. }
            | Self::Foreign { .. }
            | Self::Damaged { .. }
            | Self::Unfit { .. }
            | Self::Claimed { .. }
            | Self::OtherVersion { .. }
            | Self::BadAddress { .. }
            | Self::Backup { .. } => false,
        }
    }

    pub(super) fn of(attempted: &'static str, place: &Place, source: sqlx::Error) -> Self {
        let place = place.clone();
        match (class(&source), &place) {
            // A file's connections are all in use for as long as another process has its lock.
            (Class::Busy, _) | (Class::NoConnection, Place::File(_)) => Self::Locked { place, source },
            (Class::Corrupt | Class::NotADatabase, _) => Self::Damaged { place, source },
            (Class::Unreachable, _) | (Class::Io, Place::Server(_)) => Self::Unreachable { place, source },
            (Class::NoConnection, Place::Server(_)) => Self::NoConnection { place, source },
            (Class::Denied, _) => Self::Denied { place, source },
            (
                Class::Full
                | Class::Io
                | Class::CannotOpen
                | Class::Unique
                | Class::UniquePlace
                | Class::Other,
                _,
            ) => Self::Failed {
                attempted,
                place,
                source,
            },
        }
    }
}

/// Where a database is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A file.
    File(PathBuf),
    /// A database on a server, without who asks and with which password.
    Server(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Server(address) => f.write_str(address),
        }
    }
}
