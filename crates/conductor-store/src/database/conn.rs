//! Talks to the database: the one place that names a dialect.
//!
//! Everything above passes a statement and arguments and gets plain rows. This module does not know any table.

use std::path::Path;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgConnection, PgPool, PgRow};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqlitePool, SqliteRow};
use sqlx::{Column as _, ConnectOptions as _, Postgres, Row as _, SqlSafeStr, Sqlite, TypeInfo as _};

use super::{search, sql, text};
use crate::words::Term;

/// The pools of a database.
#[derive(Debug)]
pub(super) enum Db {
    /// A file. One writer connection: SQLite has one write lock, and waiting for it in our own queue is fair where
    /// waiting for it in SQLite is not.
    Sqlite {
        /// At most one connection; absent when the database was opened for reading only.
        writer: Option<SqlitePool>,
        /// The others.
        readers: SqlitePool,
    },
    /// A server, which other processes write to as well.
    Postgres {
        /// Absent when the database was opened for reading only.
        writers: Option<PgPool>,
        /// Their sessions refuse to write.
        readers: PgPool,
    },
}

/// How changes are put into transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// One transaction at a time, which takes in all that wait.
    Together,
    /// Each in its own, this many at a time: the server lets commits share the disk, and a transaction that holds locks
    /// for one change only cannot wait in a circle with others.
    Apart(u32),
}

/// What a transaction must have alone before it looks, so that what it saw still holds when it writes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Lock<'a> {
    /// The tables themselves.
    Schema,
    /// A stream, by its key: who appends to it.
    Stream(&'a str),
    /// An effect, by its id: who leases or changes it.
    Effect(&'a str),
    /// The slots of a repository: who takes one.
    Slots(i64),
}

/// A connection that was taken from a pool and returns to it when dropped.
#[derive(Debug)]
pub(super) enum Conn {
    /// To a file.
    Sqlite(PoolConnection<Sqlite>),
    /// To a server.
    Postgres(PoolConnection<Postgres>),
}

/// A row of an answer.
pub(super) enum Row {
    /// From a file.
    Sqlite(SqliteRow),
    /// From a server.
    Postgres(PgRow),
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
            Self::Postgres { readers, .. } => readers.acquire().await.map(Conn::Postgres),
        }
    }

    /// Takes a connection for writing; there is none when the database is open for reading only.
    pub(super) async fn writer(&self) -> Option<Result<Conn, sqlx::Error>> {
        match self {
            Self::Sqlite { writer, .. } => Some(writer.as_ref()?.acquire().await.map(Conn::Sqlite)),
            Self::Postgres { writers, .. } => Some(writers.as_ref()?.acquire().await.map(Conn::Postgres)),
        }
    }

    /// Opens a session of its own on a server, outside of the pools.
    pub(super) async fn session(&self) -> Option<Result<PgConnection, sqlx::Error>> {
        match self {
            Self::Sqlite { .. } => None,
            Self::Postgres { writers, readers } => {
                let pool = writers.as_ref().unwrap_or(readers);
                Some(pool.connect_options().connect().await)
            }
        }
    }

    /// Tells how changes are put into transactions.
    pub(super) fn pace(&self) -> Pace {
        match self {
            Self::Sqlite { .. } => Pace::Together,
            Self::Postgres { writers, .. } => Pace::Apart(
                writers
                    .as_ref()
                    .map_or(1, |pool| pool.options().get_max_connections()),
            ),
        }
    }

    /// The statement that reads a page of records as one value.
    pub(super) fn page_of_records(&self) -> &'static str {
        match self {
            Self::Sqlite { .. } => sql::PAGE_OF_RECORDS,
            Self::Postgres { .. } => sql::PAGE_OF_RECORDS_POSTGRES,
        }
    }

    /// The statement that tells what runs took as one value.
    pub(super) fn runs_took(&self) -> &'static str {
        match self {
            Self::Sqlite { .. } => sql::RUNS_TOOK,
            Self::Postgres { .. } => sql::RUNS_TOOK_POSTGRES,
        }
    }

    /// The statement that finds records by their words, and the question that it takes.
    pub(super) fn find_records(&self, groups: &[Vec<Term>]) -> (&'static str, String) {
        match self {
            Self::Sqlite { .. } => (sql::FIND_RECORDS, search::fts5(groups)),
            Self::Postgres { .. } => (sql::FIND_RECORDS_POSTGRES, search::tsquery(groups)),
        }
    }

    /// What makes `lower` change ASCII letters and leave the others: SQLite's does, and PostgreSQL's where it is told to.
    pub(super) fn fold(&self) -> &'static str {
        match self {
            Self::Sqlite { .. } => "",
            Self::Postgres { .. } => " COLLATE \"C\"",
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
            Self::Postgres { writers, readers } => {
                readers.close().await;
                if let Some(writers) = writers {
                    writers.close().await;
                }
            }
        }
    }
}

impl Conn {
    /// Begins a transaction that will write. SQLite must take its write lock at once: a reading transaction that
    /// wants to write later fails when another one wrote in between, and no busy timeout helps. PostgreSQL must show
    /// each statement what was committed before it, whatever the server's default: what is looked at under a [`Lock`]
    /// would otherwise be what stood there before the lock was had.
    pub(super) async fn begin(&mut self) -> Result<(), sqlx::Error> {
        let sql = match self {
            Self::Sqlite(_) => "BEGIN IMMEDIATE",
            Self::Postgres(_) => "BEGIN ISOLATION LEVEL READ COMMITTED",
        };
        self.execute(sql, &[]).await.map(drop)
    }

    /// Takes a lock until the transaction ends, waiting for whoever has it. Whoever takes several takes them in the
    /// order of [`Lock`]. To a file, the transaction has locked all of it already.
    pub(super) async fn hold(&mut self, lock: Lock<'_>) -> Result<(), sqlx::Error> {
        if matches!(self, Self::Sqlite(_)) {
            return Ok(());
        }
        let name = match lock {
            Lock::Effect(id) => return self.execute(sql::LOCK_EFFECT, &[Arg::Text(id)]).await.map(drop),
            Lock::Schema => "schema".to_owned(),
            Lock::Stream(key) => format!("stream {key}"),
            Lock::Slots(repo) => format!("slots {repo}"),
        };
        self.execute(sql::LOCK_NAME, &[Arg::Text(&name)]).await.map(drop)
    }

    /// Tells other processes something when the transaction is kept. To a file there are no others.
    pub(super) async fn tell(&mut self, words: &str) -> Result<(), sqlx::Error> {
        if matches!(self, Self::Sqlite(_)) {
            return Ok(());
        }
        self.execute(sql::TELL, &[Arg::Text(words)]).await.map(drop)
    }

    /// The statements that keep the words of records, each with the same rows.
    pub(super) fn keep_words(&self) -> &'static [&'static str] {
        match self {
            Self::Sqlite(_) => &[sql::PLACE_RECORDS, sql::INDEX_RECORDS],
            Self::Postgres(_) => &[sql::PLACE_RECORDS_POSTGRES],
        }
    }

    /// The statements that forget the words of all records.
    pub(super) fn forget_words(&self) -> &'static [&'static str] {
        match self {
            Self::Sqlite(_) => &[sql::FORGET_WORDS, sql::FORGET_PLACES],
            Self::Postgres(_) => &[sql::FORGET_PLACES],
        }
    }

    /// The statement that gives records their words, by their places.
    pub(super) fn give_words(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => sql::GIVE_WORDS,
            Self::Postgres(_) => sql::GIVE_WORDS_POSTGRES,
        }
    }

    /// Runs a statement; returns how many rows it changed.
    pub(super) async fn execute(&mut self, sql: &'static str, args: &[Arg<'_>]) -> Result<u64, sqlx::Error> {
        match self {
            Self::Sqlite(conn) => Ok(sqlite(sql, args).execute(&mut **conn).await?.rows_affected()),
            Self::Postgres(conn) => Ok(postgres(sql, args).execute(&mut **conn).await?.rows_affected()),
        }
    }

    /// Runs a statement; returns all rows of its answer.
    pub(super) async fn fetch(
        &mut self,
        sql: impl SqlSafeStr + Send,
        args: &[Arg<'_>],
    ) -> Result<Vec<Row>, sqlx::Error> {
        match self {
            Self::Sqlite(conn) => Ok(sqlite(sql, args)
                .fetch_all(&mut **conn)
                .await?
                .into_iter()
                .map(Row::Sqlite)
                .collect()),
            Self::Postgres(conn) => Ok(postgres(sql, args)
                .fetch_all(&mut **conn)
                .await?
                .into_iter()
                .map(Row::Postgres)
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
            Self::Postgres(conn) => Ok(postgres(sql, args)
                .fetch_optional(&mut **conn)
                .await?
                .map(Row::Postgres)),
        }
    }

    /// Tells which other version works on the database. To a file there is none.
    pub(super) async fn other_version(&mut self, ours: i32) -> Result<Option<i32>, sqlx::Error> {
        match self {
            Self::Sqlite(_) => Ok(None),
            Self::Postgres(conn) => {
                let row = sqlx::query(sql::OTHER_VERSIONS)
                    .bind(ours)
                    .fetch_optional(&mut **conn);
                row.await?.map(|row| row.try_get(0)).transpose()
            }
        }
    }

    /// Lists the tables that are there.
    pub(super) async fn tables(&mut self) -> Result<Vec<String>, sqlx::Error> {
        let sql = match self {
            Self::Sqlite(_) => {
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            }
            Self::Postgres(_) => {
                "SELECT CAST(tablename AS TEXT) FROM pg_tables WHERE schemaname = current_schema()"
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
        self.execute("VACUUM INTO $1", &[Arg::Text(&target.to_string_lossy())])
            .await
            .map(drop)
    }

    /// Runs several statements without arguments.
    pub(super) async fn script(&mut self, sql: impl SqlSafeStr + Send) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite(conn) => sqlx::raw_sql(sql).execute(&mut **conn).await.map(drop),
            Self::Postgres(conn) => sqlx::raw_sql(sql).execute(&mut **conn).await.map(drop),
        }
    }
}

fn sqlite<'q>(sql: impl SqlSafeStr, args: &[Arg<'_>]) -> Query<'q, Sqlite, SqliteArguments> {
    args.iter().fold(sqlx::query(sql), |query, arg| match *arg {
        Arg::Int(number) => query.bind(number),
        Arg::OptInt(number) => query.bind(number),
        Arg::Text(text) => query.bind(text),
        Arg::OptText(text) => query.bind(text),
        Arg::Bytes(bytes) => query.bind(bytes),
    })
}

fn postgres<'q>(sql: impl SqlSafeStr, args: &[Arg<'_>]) -> Query<'q, Postgres, PgArguments> {
    args.iter().fold(sqlx::query(sql), |query, arg| match *arg {
        Arg::Int(number) => query.bind(number),
        Arg::OptInt(number) => query.bind(number),
        Arg::Text(text) => query.bind(text::kept(text)),
        Arg::OptText(text) => query.bind(text.map(text::kept)),
        Arg::Bytes(bytes) => query.bind(bytes),
    })
}

impl Row {
    /// Reads a number.
    pub(super) fn int(&self, column: usize) -> Result<i64, sqlx::Error> {
        self.opt_int(column)?.ok_or_else(|| unreadable(column, "nothing"))
    }

    /// Reads a number that may be absent. The driver for PostgreSQL wants to be asked for the size that is kept.
    pub(super) fn opt_int(&self, column: usize) -> Result<Option<i64>, sqlx::Error> {
        match self {
            Self::Sqlite(row) => row.try_get(column),
            Self::Postgres(row) if row.try_column(column)?.type_info().name() == "INT2" => {
                Ok(row.try_get::<Option<i16>, _>(column)?.map(i64::from))
            }
            Self::Postgres(row) => row.try_get(column),
        }
    }

    /// Reads text.
    pub(super) fn text(&self, column: usize) -> Result<String, sqlx::Error> {
        match self {
            Self::Sqlite(row) => row.try_get(column),
            Self::Postgres(row) => row.try_get(column).map(text::given),
        }
    }

    /// Reads JSON that the database made of text.
    pub(super) fn json(&self, column: usize) -> Result<String, sqlx::Error> {
        match self {
            Self::Sqlite(row) => row.try_get(column),
            Self::Postgres(row) => row.try_get(column).map(text::given_json),
        }
    }

    /// Reads bytes.
    pub(super) fn bytes(&self, column: usize) -> Result<Vec<u8>, sqlx::Error> {
        match self {
            Self::Sqlite(row) => row.try_get(column),
            Self::Postgres(row) => row.try_get(column),
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
