//! Keeps everything in a database: a file (SQLite) for one process, or a server (PostgreSQL) for several.
//!
//! Reads go to several connections, each call one statement; writes go through the tasks of `writer.rs`, each call
//! whole or not at all, durable before it is answered. It does not know what a record means.

mod sql;
mod text;
mod conn;
mod fault;
mod rows;
mod error;
mod migrate;
mod open;
mod server;
mod examine;
mod scratch;
mod version;
mod claim;
mod listen;
mod writer;
mod append;
mod dispatch;
mod ledger;
mod runs;
mod views;
mod search;
mod tally;
mod blobs;
mod duties;
mod keys;
mod answers;

use std::sync::{Arc, OnceLock};

use conductor_domain::time::Timestamp;
use conductor_port::Fault;
use sqlx::{SqlSafeStr, SqlStr};

pub use claim::Claim;
pub use error::{OpenError, Place};
pub use examine::{Examined, Reading};
pub use listen::{Ear, Heard};
pub use open::Settings;
pub use scratch::Scratch;

use conn::{Arg, Db, Row};
use fault::fault;
use writer::Writer;

/// A store in a database.
#[derive(Debug)]
pub struct Database {
    db: Arc<Db>,
    writer: Writer,
    place: Place,
    /// The version of the rules by which this process decides.
    rules: u32,
    /// Under which name this process tells others of its commits.
    voice: Arc<OnceLock<String>>,
}

/// A statement with what goes into it.
#[derive(Debug)]
struct Statement<'a> {
    sql: SqlStr,
    args: Vec<Arg<'a>>,
}

/// What is listed page by page.
trait Paged: Sync {
    /// The statement for the rows that come after the one with this key, or for the first ones; at most so many.
    fn page<'a>(&'a self, after: Option<&'a str>, limit: u32) -> Statement<'a>;
}

impl Database {
    /// Finishes what waits to be written, and closes all connections.
    pub async fn close(&self) {
        self.writer.close().await;
        self.db.close().await;
    }

    /// Runs one reading statement, and leaves out rows that cannot be read: one that is damaged must not hide the
    /// others, and an audit names what is missing.
    async fn look_past_damage<T>(
        &self,
        attempted: &str,
        sql: &'static str,
        args: &[Arg<'_>],
        read: fn(&Row) -> Result<T, sqlx::Error>,
    ) -> Result<Vec<T>, Fault> {
        let rows = self.fetch(attempted, sql, args).await?;
        Ok(rows.iter().filter_map(|row| read(row).ok()).collect())
    }

    /// Runs a statement that lists a page, likewise; what is left out is made up from what follows, so that a page that
    /// is not full is the last one, however many damaged rows come before it.
    async fn page_past_damage<T>(
        &self,
        attempted: &str,
        pages: &impl Paged,
        (after, limit): (Option<&str>, u32),
        read: fn(&Row) -> Result<T, sqlx::Error>,
    ) -> Result<Vec<T>, Fault> {
        let (mut found, mut after) = (Vec::new(), after.map(str::to_owned));
        loop {
            let left = limit.saturating_sub(u32::try_from(found.len()).unwrap_or(u32::MAX));
            let Statement { sql, args } = pages.page(after.as_deref(), left);
            let rows = self.fetch(attempted, sql, &args).await?;
            found.extend(rows.iter().filter_map(|row| read(row).ok()));
            // The key comes first in every list.
            let last = rows.last().and_then(|row| row.text(0).ok());
            let is_last = rows.len() < left as usize || found.len() >= limit as usize;
            let (false, Some(last)) = (is_last, last) else {
                return Ok(found);
            };
            after = Some(last);
        }
    }

    /// Tells what time it is at the server; nothing for a file, whose only process has its own clock.
    pub async fn server_time(&self) -> Result<Option<Timestamp>, Fault> {
        if matches!(*self.db, Db::Sqlite { .. }) {
            return Ok(None);
        }
        let read = |row: &Row| row.int(0).map(Timestamp);
        let times = self
            .look("read the server's clock", sql::SERVER_TIME, &[], read)
            .await?;
        Ok(times.into_iter().next())
    }

    /// Runs one reading statement. The answer is one point in time, at or after every commit before the call.
    async fn look<T>(
        &self,
        attempted: &str,
        sql: impl SqlSafeStr + Send,
        args: &[Arg<'_>],
        read: fn(&Row) -> Result<T, sqlx::Error>,
    ) -> Result<Vec<T>, Fault> {
        let rows = self.fetch(attempted, sql, args).await?;
        let read: Result<_, _> = rows.iter().map(read).collect();
        read.map_err(|error| fault(attempted, &error))
    }

    async fn fetch(
        &self,
        attempted: &str,
        sql: impl SqlSafeStr + Send,
        args: &[Arg<'_>],
    ) -> Result<Vec<Row>, Fault> {
        let failed = |error: sqlx::Error| fault(attempted, &error);
        let mut conn = self.db.reader().await.map_err(failed)?;
        conn.fetch(sql, args).await.map_err(failed)
    }
}
