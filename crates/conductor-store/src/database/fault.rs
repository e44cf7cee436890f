//! Classifies what the database answers: what may pass (a lock, a full disk), and what no repeat will mend.
//!
//! It does not know what is done about it.

use conductor_port::{Fault, known};
use sqlx::postgres::PgDatabaseError;

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
    /// The server cannot be reached, is going down, or is a copy that takes no writes.
    Unreachable,
    /// No connection is left: all of ours are in use, or all of the server's.
    NoConnection,
    /// The server does not let us do it.
    Denied,
    /// The file is damaged.
    Corrupt,
    /// The file is not a database.
    NotADatabase,
    /// A row with this key is there already.
    Unique,
    /// A record stands at this place of its stream already.
    UniquePlace,
    /// Anything else.
    Other,
}

/// Classifies an error.
pub(super) fn class(error: &sqlx::Error) -> Class {
    if let sqlx::Error::Database(error) = error {
        if let Some(error) = error.try_downcast_ref::<PgDatabaseError>() {
            return of_state(error);
        }
        return match error.code().and_then(|code| code.parse::<u32>().ok()) {
            Some(_) if error.is_unique_violation() => Class::Unique,
            Some(code) => of_code(code),
            None => Class::Other,
        };
    }
    if matches!(error, sqlx::Error::PoolTimedOut) {
        Class::NoConnection
    } else if matches!(error, sqlx::Error::WorkerCrashed) {
        Class::Io
    } else if matches!(
        error,
        // What a file's driver says of its disk comes as a code; this is a connection that broke.
        sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_)
    ) {
        Class::Unreachable
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

/// What PostgreSQL's states mean to us; <https://www.postgresql.org/docs/current/errcodes-appendix.html>. The first two
/// characters are the state's family.
fn of_state(error: &PgDatabaseError) -> Class {
    let state = error.code();
    match state {
        "23505" if error.constraint() == Some("records_stream_seq_key") => return Class::UniquePlace,
        "23505" => return Class::Unique,
        // Serialization failure, deadlock, lock timeout, statement timeout, no memory.
        "40001" | "40P01" | "55P03" | "57014" | "53200" => return Class::Busy,
        "53300" => return Class::NoConnection,
        "53100" => return Class::Full,
        // A copy that takes no writes: what was the first server until it failed over.
        "25006" => return Class::Unreachable,
        "42501" | "3D000" | "3F000" => return Class::Denied,
        _ => {}
    }
    match state.get(..2) {
        Some("08" | "57") => Class::Unreachable,
        Some("28") => Class::Denied,
        // A transaction that the server ended because nothing came any more.
        Some("25") => Class::Busy,
        Some("58") => Class::Io,
        Some("XX") => Class::Corrupt,
        Some(_) | None => Class::Other,
    }
}

/// Makes a fault of an error, with what was attempted.
pub(super) fn fault(attempted: &str, error: &sqlx::Error) -> Fault {
    match class(error) {
        Class::Busy => Fault::transient(format!("{attempted}: {}, or too busy: {error}", known::LOCKED)),
        Class::Full => Fault::transient(format!("{attempted}: {}: {error}", known::NO_ROOM)),
        Class::Io => Fault::transient(format!("{attempted}: the disk did not do as asked: {error}")),
        Class::Unreachable => Fault::transient(format!(
            "{attempted}: {} or takes no writes: {error}",
            known::NO_SERVER
        )),
        Class::NoConnection => Fault::transient(format!("{attempted}: {}: {error}", known::NO_CONNECTION)),
        Class::Denied => Fault::transient(format!(
            "{attempted}: the database server does not let us: {error}"
        )),
        Class::CannotOpen => Fault::transient(format!("{attempted}: the database cannot be opened: {error}")),
        Class::Corrupt => Fault::permanent(format!("{attempted}: {}: {error}", known::DAMAGED)),
        Class::NotADatabase => Fault::permanent(format!("{attempted}: {}: {error}", known::NOT_A_DATABASE)),
        Class::Unique | Class::UniquePlace | Class::Other => {
            Fault::permanent(format!("{attempted}: {error}"))
        }
    }
}
