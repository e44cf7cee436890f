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
mod claim;
mod writer;
mod append;
mod dispatch;
mod ledger;
mod views;
mod blobs;

use std::sync::Arc;

use conductor_port::Fault;

pub use claim::Claim;
pub use error::{OpenError, Place};
pub use open::Settings;

use conn::{Arg, Db, Row};
use fault::fault;
use writer::Writer;

/// A store in a database.
#[derive(Debug)]
pub struct Database {
    db: Arc<Db>,
    writer: Writer,
    place: Place,
}

impl Database {
    /// Finishes what waits to be written, and closes all connections.
    pub async fn close(&self) {
        self.writer.close().await;
        self.db.close().await;
    }

    /// Runs one reading statement. The answer is one point in time, at or after every commit before the call.
    async fn look<T>(
        &self,
        attempted: &str,
        sql: &'static str,
        args: &[Arg<'_>],
        read: fn(&Row) -> Result<T, sqlx::Error>,
    ) -> Result<Vec<T>, Fault> {
        let failed = |error: sqlx::Error| fault(attempted, &error);
        let rows = self
            .db
            .reader()
            .await
            .map_err(failed)?
            .fetch(sql, args)
            .await
            .map_err(failed)?;
        rows.iter().map(read).collect::<Result<_, _>>().map_err(failed)
    }
}
