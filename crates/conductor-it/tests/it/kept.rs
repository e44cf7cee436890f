//! Where the records of a story are kept, in a file or on a PostgreSQL server, and ways past Conductor into either, as
//! somebody with access to the database would go.
//!
//! Every story is told on both: `on_both_databases!` makes two tests of one story. This module does not know any story.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use conductor_it::stage::Play;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Row as _};

use crate::postgres::{copy_of, database, name_of, raw};

/// Tells stories twice: with their records in a file, and on a server.
macro_rules! on_both_databases {
    ($($story:ident),+ $(,)?) => {
        mod in_a_file {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $story() -> anyhow::Result<()> {
                    super::$story(crate::kept::Kept::File).await
                }
            )+
        }

        mod on_a_server {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $story() -> anyhow::Result<()> {
                    super::$story(crate::kept::Kept::on_a_server().await).await
                }
            )+
        }
    };
}
pub(crate) use on_both_databases;

/// Where records are kept.
#[derive(Debug, Clone)]
pub(crate) enum Kept {
    /// In a file of the data directory.
    File,
    /// In this database on a server.
    Server(String),
}

impl Kept {
    /// An empty database on the server of the tests.
    pub(crate) async fn on_a_server() -> Self {
        Self::Server(database().await)
    }

    /// Another empty database of the same kind.
    pub(crate) async fn another(&self) -> Self {
        match self {
            Self::File => Self::File,
            Self::Server(_) => Self::on_a_server().await,
        }
    }

    /// The same play with its records here.
    pub(crate) fn play(&self, play: Play) -> Play {
        Play {
            database_url: self.url().map(str::to_owned),
            ..play
        }
    }

    /// The usual play with its records here.
    pub(crate) fn shell(&self, scenario: &str) -> Play {
        self.play(Play::shell(scenario))
    }

    /// The flags of a command that keeps records of its own.
    pub(crate) fn flags(&self) -> Vec<&str> {
        self.url()
            .into_iter()
            .flat_map(|url| ["--database-url", url])
            .collect()
    }

    /// Whichever fits the database.
    pub(crate) fn either<'a>(&self, in_a_file: &'a str, on_a_server: &'a str) -> &'a str {
        match self {
            Self::File => in_a_file,
            Self::Server(_) => on_a_server,
        }
    }

    fn url(&self) -> Option<&str> {
        match self {
            Self::File => None,
            Self::Server(url) => Some(url),
        }
    }

    /// Changes the database.
    pub(crate) async fn change(&self, data_dir: &Path, sql: &str) -> Result<()> {
        match self {
            Self::File => {
                let script = "import sqlite3, sys\nc = sqlite3.connect(sys.argv[1])\nc.executescript(sys.argv[2])\n\
                              c.commit()\n";
                python(script, &file(data_dir), sql).map(drop)
            }
            Self::Server(url) => {
                let mut conn = raw(url).await;
                sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
                    .execute(&mut conn)
                    .await
                    .with_context(|| sql.to_owned())?;
                Ok(())
            }
        }
    }

    /// Reads the first column, text, of what a query finds.
    pub(crate) async fn column(&self, data_dir: &Path, sql: &str) -> Result<Vec<String>> {
        match self {
            Self::File => column_of_file(data_dir, sql),
            Self::Server(url) => texts(&mut raw(url).await, sql).await,
        }
    }

    /// Everything that is kept, to be compared with what is kept later.
    pub(crate) async fn everything(&self, data_dir: &Path) -> Result<Vec<u8>> {
        match self {
            Self::File => Ok(std::fs::read(file(data_dir))?),
            Self::Server(url) => {
                let mut conn = raw(url).await;
                let tables =
                    "SELECT CAST(tablename AS TEXT) FROM pg_tables WHERE schemaname = 'public' ORDER BY 1";
                let mut all = String::new();
                for table in texts(&mut conn, tables).await? {
                    let rows = format!("SELECT CAST(t AS TEXT) FROM {table} t ORDER BY 1");
                    all.push_str(&texts(&mut conn, &rows).await?.join("\n"));
                }
                Ok(all.into_bytes())
            }
        }
    }

    /// Copies the files of a data directory, and the database with them.
    pub(crate) async fn copy(&self, from: &Path, to: &Path) -> Result<Self> {
        std::fs::create_dir_all(to)?;
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                std::fs::copy(entry.path(), to.join(entry.file_name()))?;
            }
        }
        match self {
            Self::File => Ok(Self::File),
            Self::Server(url) => {
                let copy = copy_of(&name_of(url).await).await;
                let settings = to.join("conductor.toml");
                let text = std::fs::read_to_string(&settings)?;
                ensure!(text.contains(url), "the settings name the database: {text}");
                std::fs::write(&settings, text.replace(url, &copy))?;
                Ok(Self::Server(copy))
            }
        }
    }

    /// Lets another process have the database open and hold something of it; the statements are split at `;`.
    pub(crate) async fn hold(&self, data_dir: &Path, sql: &str) -> Result<Holder> {
        match self {
            Self::File => Holder::of_file(&file(data_dir), sql),
            Self::Server(url) => {
                let mut conn = raw(url).await;
                sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
                    .execute(&mut conn)
                    .await
                    .with_context(|| sql.to_owned())?;
                Ok(Holder::Session(Box::new(conn)))
            }
        }
    }
}

/// Reads the first column of what a query finds in the file of a data directory.
pub(crate) fn column_of_file(data_dir: &Path, sql: &str) -> Result<Vec<String>> {
    let script = "import sqlite3, sys\n\
                  c = sqlite3.connect(sys.argv[1])\n\
                  for row in c.execute(sys.argv[2]): print(row[0])\n";
    let text = python(script, &file(data_dir), sql)?;
    Ok(text.lines().map(str::to_owned).collect())
}

fn file(data_dir: &Path) -> std::path::PathBuf {
    data_dir.join("conductor.db")
}

async fn texts(conn: &mut PgConnection, sql: &str) -> Result<Vec<String>> {
    let rows = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .fetch_all(conn)
        .await
        .with_context(|| sql.to_owned())?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

fn python(script: &str, database: &Path, sql: &str) -> Result<String> {
    let output = Command::new("python3")
        .arg("-c")
        .arg(script)
        .arg(database)
        .arg(sql)
        .output()
        .context("running python3")?;
    ensure!(
        output.status.success(),
        "{sql}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Another process that has the database open and holds it.
pub(crate) enum Holder {
    /// With a file.
    Process(Child),
    /// With a server.
    Session(Box<PgConnection>),
}

impl Holder {
    fn of_file(database: &Path, sql: &str) -> Result<Self> {
        let script = "import sqlite3, sys\n\
                      c = sqlite3.connect(sys.argv[1], isolation_level=None)\n\
                      for s in sys.argv[2].split(';'): c.execute(s).fetchall()\n\
                      print('held', flush=True)\n\
                      sys.stdin.read()\n";
        let mut child = Command::new("python3")
            .arg("-c")
            .arg(script)
            .arg(database)
            .arg(sql)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("running python3")?;
        let mut line = String::new();
        let stdout = child.stdout.take().context("its words")?;
        BufReader::new(stdout).read_line(&mut line)?;
        let holder = Self::Process(child);
        if line.trim() == "held" {
            Ok(holder)
        } else {
            bail!("the database could not be held: {sql}")
        }
    }

    /// Lets go of the database; returns when it is free.
    pub(crate) async fn let_go(mut self) -> Result<()> {
        match &mut self {
            Self::Process(child) => {
                drop(child.stdin.take());
                let ended = child.wait().context("waiting for the other process")?;
                ensure!(ended.success(), "the other process ended with {ended}");
            }
            Self::Session(conn) => {
                sqlx::raw_sql("ROLLBACK").execute(&mut **conn).await?;
            }
        }
        Ok(())
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        match self {
            Self::Process(child) => {
                let _gone_already = child.kill().and_then(|()| child.wait());
            }
            // Dropping the connection ends the session.
            Self::Session(_) => {}
        }
    }
}
