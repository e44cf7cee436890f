//! Talks to the database: the one place that names a dialect.
//!
//! Everything above passes a statement and arguments and gets plain rows; PostgreSQL is one more variant of the three
//! enums here. This module does not know any table.

use std::path::Path;

use sqlx::pool::PoolConnection;
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqlitePool, SqliteRow};
use sqlx::{Row as _, SqlSafeStr, Sqlite};

/// The pools of a database. One writer connection: SQLite has one write lock, and waiting for it in our own queue is
/// fair where waiting for it in SQLite is not.
#[derive(Debug)]
pub(super) enum Db {
    /// A file.
    Sqlite {
        /// At most one connection; absent when the database was opened for reading only.
        writer: Option<SqlitePool>,
        /// The others.
        readers: SqlitePool,
    },
}

/// A connection that was taken from a pool and returns to it when dropped.
#[derive(Debug)]
pub(super) enum Conn {
    /// To a file.
    Sqlite(PoolConnection<Sqlite>),
}

/// A row of an answer.
pub(super) enum Row {
    /// From a file.
    Sqlite(SqliteRow),
}

/// A value that goes into a statement.
#[derive(Debug, Clone, Copy)]
pub(super) enum Arg<'a> {
    Int(i64),
    OptInt(Option<i64>),
    Text(&'a str),
    OptText(Option<&'a str>),
    Bytes(&'a [u8]),
}

impl Db {
    /// Takes a connection for reading.
    pub(super) async fn reader(&self) -> Result<Conn, sqlx::Error> {
        match self {
            Self::Sqlite { readers, .. } => readers.acquire().await.map(Conn::Sqlite),
        }
    }

    /// Takes the connection for writing; there is none when the database is open for reading only.
    pub(super) async fn writer(&self) -> Option<Result<Conn, sqlx::Error>> {
        match self {
            Self::Sqlite { writer, .. } => Some(writer.as_ref()?.acquire().await.map(Conn::Sqlite)),
        }
    }

    /// Closes all connections and waits until they are closed.
    pub(super) async fn close(&self) {
        match self {
            Self::Sqlite { writer, readers } => {
                readers.close().await;
                if let Some(writer) = writer {
                    writer.close().await;
                }
            }
        }
    }
}

impl Conn {
    /// Begins a transaction that will write. SQLite must take its write lock at once: a reading transaction that
    /// wants to write later fails when another one wrote in between, and no busy timeout helps.
    pub(super) async fn begin(&mut self) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite(_) => self.execute("BEGIN IMMEDIATE", &[]).await.map(drop),
        }
    }

    /// Runs a statement; returns how many rows it changed.
    pub(super) async fn execute(&mut self, sql: &'static str, args: &[Arg<'_>]) -> Result<u64, sqlx::Error> {
        match self {
            Self::Sqlite(conn) => Ok(sqlite(sql, args).execute(&mut **conn).await?.rows_affected()),
        }
    }

    /// Runs a statement; returns all rows of its answer.
    pub(super) async fn fetch(
        &mut self,
        sql: &'static str,
        args: &[Arg<'_>],
    ) -> Result<Vec<Row>, sqlx::Error> {
        match self {
            Self::Sqlite(conn) => Ok(sqlite(sql, args)
                .fetch_all(&mut **conn)
                .await?
                .into_iter()
                .map(Row::Sqlite)
                .collect()),
        }
    }

    /// Runs a statement; returns the first row of its answer.
    pub(super) async fn first(
        &mut self,
        sql: &'static str,
        args: &[Arg<'_>],
    ) -> Result<Option<Row>, sqlx::Error> {
        match self {
            Self::Sqlite(conn) => Ok(sqlite(sql, args)
                .fetch_optional(&mut **conn)
                .await?
                .map(Row::Sqlite)),
        }
    }

    /// Lists the tables that are there.
    pub(super) async fn tables(&mut self) -> Result<Vec<String>, sqlx::Error> {
        let sql = match self {
            Self::Sqlite(_) => {
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            }
        };
        self.fetch(sql, &[])
            .await?
            .iter()
            .map(|row| row.text(0))
            .collect()
    }

    /// Writes a copy of the whole database into a new file.
    pub(super) async fn copy_into(&mut self, target: &Path) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite(_) => self
                .execute("VACUUM INTO $1", &[Arg::Text(&target.to_string_lossy())])
                .await
                .map(drop),
        }
    }

    /// Runs several statements without arguments.
    pub(super) async fn script(&mut self, sql: impl SqlSafeStr + Send) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite(conn) => sqlx::raw_sql(sql).execute(&mut **conn).await.map(drop),
        }
    }
}

fn sqlite<'q>(sql: &'static str, args: &[Arg<'_>]) -> Query<'q, Sqlite, SqliteArguments> {
    args.iter().fold(sqlx::query(sql), |query, arg| match *arg {
        Arg::Int(number) => query.bind(number),
        Arg::OptInt(number) => query.bind(number),
        Arg::Text(text) => query.bind(text),
        Arg::OptText(text) => query.bind(text),
        Arg::Bytes(bytes) => query.bind(bytes),
    })
}

impl Row {
    /// Reads a number.
    pub(super) fn int(&self, column: usize) -> Result<i64, sqlx::Error> {
        match self {
            Self::Sqlite(row) => row.try_get(column),
        }
    }

    /// Reads a number that may be absent.
    pub(super) fn opt_int(&self, column: usize) -> Result<Option<i64>, sqlx::Error> {
        match self {
            Self::Sqlite(row) => row.try_get(column),
        }
    }

    /// Reads text.
    pub(super) fn text(&self, column: usize) -> Result<String, sqlx::Error> {
        match self {
            Self::Sqlite(row) => row.try_get(column),
        }
    }

    /// Reads bytes.
    pub(super) fn bytes(&self, column: usize) -> Result<Vec<u8>, sqlx::Error> {
        match self {
            Self::Sqlite(row) => row.try_get(column),
        }
    }

    /// Reads a flag.
    pub(super) fn flag(&self, column: usize) -> Result<bool, sqlx::Error> {
        self.int(column).map(|number| number != 0)
    }

    /// Reads a number that cannot be negative.
    pub(super) fn count<N: TryFrom<i64>>(&self, column: usize) -> Result<N, sqlx::Error> {
        let number = self.int(column)?;
        N::try_from(number).map_err(|_| unreadable(column, &number.to_string()))
    }

    /// Reads text that must parse.
    pub(super) fn parsed<T>(
        &self,
        column: usize,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, sqlx::Error> {
        let text = self.text(column)?;
        parse(&text).ok_or_else(|| unreadable(column, &text))
    }
}

fn unreadable(column: usize, found: &str) -> sqlx::Error {
    sqlx::Error::Decode(format!("column {column} holds `{found}`, which cannot be read").into())
}
