//! Classifies what the database answers: what may pass (a lock, a full disk), and what no repeat will mend.
//!
//! It does not know what is done about it.

use conductor_port::Fault;

/// What SQLite's primary result codes mean to us; <https://www.sqlite.org/rescode.html>.
const BUSY: u32 = 5;
const LOCKED: u32 = 6;
const IO: u32 = 10;
const CORRUPT: u32 = 11;
const FULL: u32 = 13;
const CANNOT_OPEN: u32 = 14;
const NOT_A_DATABASE: u32 = 26;

/// What an error of the database comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Another process holds the write lock.
    Busy,
    /// There is no room.
    Full,
    /// The file system failed.
    Io,
    /// The file cannot be opened.
    CannotOpen,
    /// The file is damaged.
    Corrupt,
    /// The file is not a database.
    NotADatabase,
    /// A row with this key is there already.
    Unique,
    /// Anything else.
    Other,
}

/// Classifies an error.
pub(super) fn class(error: &sqlx::Error) -> Class {
    if let sqlx::Error::Database(error) = error {
        return match error.code().and_then(|code| code.parse::<u32>().ok()) {
            Some(_) if error.is_unique_violation() => Class::Unique,
            Some(code) => of_code(code),
            None => Class::Other,
        };
    }
    if matches!(error, sqlx::Error::PoolTimedOut) {
        Class::Busy
    } else if matches!(error, sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed) {
        Class::Io
    } else if matches!(error, sqlx::Error::Decode(_) | sqlx::Error::ColumnDecode { .. }) {
        Class::Corrupt
    } else {
        Class::Other
    }
}

/// An extended code carries the primary one in its low byte.
fn of_code(code: u32) -> Class {
    match code & 0xff {
        BUSY | LOCKED => Class::Busy,
        FULL => Class::Full,
        IO => Class::Io,
        CANNOT_OPEN => Class::CannotOpen,
        CORRUPT => Class::Corrupt,
        NOT_A_DATABASE => Class::NotADatabase,
        _ => Class::Other,
    }
}

/// Makes a fault of an error, with what was attempted.
pub(super) fn fault(attempted: &str, error: &sqlx::Error) -> Fault {
    match class(error) {
        Class::Busy => Fault::transient(format!(
            "{attempted}: the database is locked by another process, or too busy: {error}"
        )),
        Class::Full => Fault::transient(format!("{attempted}: no room is left for the database: {error}")),
        Class::Io => Fault::transient(format!("{attempted}: the disk did not do as asked: {error}")),
        Class::CannotOpen => Fault::transient(format!("{attempted}: the database cannot be opened: {error}")),
        Class::Corrupt => Fault::permanent(format!("{attempted}: the database is damaged: {error}")),
        Class::NotADatabase => Fault::permanent(format!("{attempted}: the file is not a database: {error}")),
        Class::Unique | Class::Other => Fault::permanent(format!("{attempted}: {error}")),
    }
}
