//! Looks at a database on a server as a doctor does: what the server is, what its user may do, how far it is away.
//!
//! Changes nothing, and needs no table of ours. It does not know what is well and what is not.

use std::time::Duration;

use conductor_domain::time::Timestamp;

use super::conn::{Conn, Db};
use super::error::OpenError;
use super::server::{Access, check_server, parse, pool, reach};
use super::{Database, Settings, sql};

/// How often the server's clock is read; one answer may have been held up.
const READINGS: usize = 5;

/// What was seen of a database on a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examined {
    /// The server's version, in its own words.
    pub version: String,
    /// Whether what is said to it is encrypted.
    pub encrypted: bool,
    /// What this user may not do though a server of Conductor must; empty when nothing is missing.
    pub missing_rights: Vec<String>,
    /// Readings of the server's clock.
    pub readings: Vec<Reading>,
}

/// One reading of the server's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// What the reader's own clock said when it asked.
    pub asked: Timestamp,
    /// What the server's clock said.
    pub server: Timestamp,
    /// How long the answer took.
    pub took: Duration,
}

impl Reading {
    /// By how many microseconds the server's clock is ahead of the reader's, as far as the reading can tell.
    pub fn ahead(&self) -> i64 {
        let half = i64::try_from(self.took.as_micros() / 2).unwrap_or(i64::MAX);
        self.server.0.saturating_sub(self.asked.0.saturating_add(half))
    }
}

impl Database {
    /// Looks at the database at `address`. Clock and stopwatch are the caller's: `now` reads the one, `waited` measures
    /// from some moment on.
    pub async fn examine(
        address: &str,
        settings: &Settings,
        now: impl Fn() -> Timestamp,
        waited: impl Fn() -> Duration,
    ) -> Result<Examined, OpenError> {
        let (options, place) = parse(address)?;
        reach(&options, &place, settings, Access::Read).await?;
        let db = Db::Postgres {
            writers: None,
            readers: pool(&options, settings, Access::Read),
        };
        check_server(&db, &place).await?;
        let failed = |error| OpenError::of("look into", &place, error);
        let mut conn = db.reader().await.map_err(failed)?;
        let version = texts(&mut conn, sql::SERVER_VERSION).await.map_err(failed)?;
        let encrypted = texts(&mut conn, sql::ENCRYPTED).await.map_err(failed)?;
        let missing_rights = texts(&mut conn, sql::MISSING_RIGHTS).await.map_err(failed)?;
        let mut readings = Vec::new();
        for _ in 0..READINGS {
            let (asked, begun) = (now(), waited());
            let row = conn.first(sql::SERVER_TIME, &[]).await.map_err(failed)?;
            let took = waited().saturating_sub(begun);
            if let Some(row) = row {
                let server = Timestamp(row.int(0).map_err(failed)?);
                readings.push(Reading { asked, server, took });
            }
        }
        drop(conn);
        db.close().await;
        Ok(Examined {
            version: version.concat(),
            encrypted: !encrypted.is_empty(),
            missing_rights,
            readings,
        })
    }
}

async fn texts(conn: &mut Conn, sql: &'static str) -> Result<Vec<String>, sqlx::Error> {
    conn.fetch(sql, &[])
        .await?
        .iter()
        .map(|row| row.text(0))
        .collect()
}
