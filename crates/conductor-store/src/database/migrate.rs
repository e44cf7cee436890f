//! Brings a database up to the schema that this version knows: forward only, in order, each once, each checksummed.
//!
//! Before an existing file is changed, a copy of it is kept next to it; who runs a server keeps its copies. This module
//! does not know what the tables are for.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use conductor_domain::digest::Digest;

use super::conn::Arg::{Int, Text};
use super::conn::{Conn, Db, Lock};
use super::error::{OpenError, Place};
use super::fault::{Class, class};
use super::{rows, search, sql, version};

/// One step of the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Migration {
    /// Its place, from 1, without gaps.
    pub(super) version: i64,
    /// Its name.
    pub(super) name: &'static str,
    /// Its statements for a file. Never changed once released: the checksum is kept with the database.
    pub(super) sqlite: &'static str,
    /// Its statements for a server, which come to the same tables.
    pub(super) postgres: &'static str,
}

/// Every step that this version knows, in order.
pub(super) const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        name: "ledger",
        sqlite: include_str!("../../migrations/0001_ledger.sql"),
        postgres: include_str!("../../migrations/postgres/0001_ledger.sql"),
    },
    Migration {
        version: 2,
        name: "ends",
        sqlite: include_str!("../../migrations/0002_ends.sql"),
        postgres: include_str!("../../migrations/postgres/0002_ends.sql"),
    },
    Migration {
        version: 3,
        name: "duties",
        sqlite: include_str!("../../migrations/0003_duties.sql"),
        postgres: include_str!("../../migrations/postgres/0003_duties.sql"),
    },
    Migration {
        version: 4,
        name: "keys",
        sqlite: include_str!("../../migrations/0004_keys.sql"),
        postgres: include_str!("../../migrations/postgres/0004_keys.sql"),
    },
    Migration {
        version: 5,
        name: "search",
        sqlite: include_str!("../../migrations/0005_search.sql"),
        postgres: include_str!("../../migrations/postgres/0005_search.sql"),
    },
    Migration {
        version: 6,
        name: "answers",
        sqlite: include_str!("../../migrations/0006_answers.sql"),
        postgres: include_str!("../../migrations/postgres/0006_answers.sql"),
    },
    Migration {
        version: 7,
        name: "figures",
        sqlite: include_str!("../../migrations/0007_figures.sql"),
        postgres: include_str!("../../migrations/postgres/0007_figures.sql"),
    },
    Migration {
        version: 8,
        name: "questions",
        sqlite: include_str!("../../migrations/0008_questions.sql"),
        postgres: include_str!("../../migrations/postgres/0008_questions.sql"),
    },
    Migration {
        version: 9,
        name: "since",
        sqlite: include_str!("../../migrations/0009_since.sql"),
        postgres: include_str!("../../migrations/postgres/0009_since.sql"),
    },
];

impl Migration {
    fn text(&self, place: &Place) -> &'static str {
        match place {
            Place::File(_) => self.sqlite,
            Place::Server(_) => self.postgres,
        }
    }

    fn checksum(&self, place: &Place) -> Digest {
        Digest::of(self.text(place).as_bytes())
    }
}

type Applied = (i64, String, Digest);

/// Tells which steps are still to be done, or why this is not a database that we can work with. Changes nothing.
pub(super) async fn outstanding<'m>(
    db: &Db,
    place: &Place,
    known: &'m [Migration],
) -> Result<&'m [Migration], OpenError> {
    let failed = |error| OpenError::of("look into", place, error);
    let mut conn = db.reader().await.map_err(failed)?;
    let applied = applied(&mut conn, place).await?;
    compare(&applied, known, place)
}

/// Makes sure that no step is still to be done. Changes nothing.
pub(super) async fn all_done(db: &Db, place: &Place, known: &[Migration]) -> Result<(), OpenError> {
    match (outstanding(db, place, known).await?.first(), known.last()) {
        (Some(next), Some(_)) if next.version == 1 => Err(OpenError::Missing { place: place.clone() }),
        (Some(next), Some(last)) => Err(OpenError::OlderSchema {
            place: place.clone(),
            found: next.version - 1,
            needed: last.version,
        }),
        (None, _) | (_, None) => Ok(()),
    }
}

/// Does the steps that are still to be done, all of them or none.
pub(super) async fn run(db: &Db, place: &Place, known: &[Migration], rules: u32) -> Result<(), OpenError> {
    let failed = |error| OpenError::of("migrate", place, error);
    let Some(conn) = db.writer().await else {
        return Ok(());
    };
    let mut conn = conn.map_err(failed)?;
    let before = applied(&mut conn, place).await?;
    let steps = compare(&before, known, place)?;
    if steps.is_empty() {
        return Ok(());
    }
    if let (Some((version, ..)), Place::File(path)) = (before.last(), place) {
        keep_copy(&mut conn, path, *version).await?;
    }
    conn.begin().await.map_err(failed)?;
    // Another process may have been faster; what counts is what stands there under the write lock.
    match apply(&mut conn, place, known, rules).await {
        Ok(()) => conn.execute(sql::COMMIT, &[]).await.map(drop).map_err(failed),
        Err(error) => {
            // It may be over already; what matters is that none is open.
            let _ = conn.execute(sql::ROLLBACK, &[]).await;
            Err(error)
        }
    }
}

async fn apply(conn: &mut Conn, place: &Place, known: &[Migration], rules: u32) -> Result<(), OpenError> {
    let failed = |error| OpenError::of("migrate", place, error);
    conn.hold(Lock::Schema).await.map_err(failed)?;
    let ours = version::number(rules);
    if let Some(theirs) = conn.other_version(ours).await.map_err(failed)? {
        return Err(version::other_version(place, ours, theirs));
    }
    let before = applied(conn, place).await?;
    conn.script(sql::CREATE_MIGRATIONS).await.map_err(failed)?;
    for step in compare(&before, known, place)? {
        conn.script(step.text(place)).await.map_err(failed)?;
        if step.name == "search" {
            // No statement can tell which words the records have that are there already.
            search::keep_all_words(conn).await.map_err(failed)?;
        }
        let checksum = step.checksum(place);
        let args = [Int(step.version), Text(step.name), Text(checksum.as_str())];
        conn.execute(sql::INSERT_MIGRATION, &args).await.map_err(failed)?;
    }
    Ok(())
}

/// Reads which steps were done. Tables without a list of steps that reads like ours belong to another program.
async fn applied(conn: &mut Conn, place: &Place) -> Result<Vec<Applied>, OpenError> {
    let failed = |error| OpenError::of("look into", place, error);
    let tables = conn.tables().await.map_err(failed)?;
    if tables.is_empty() {
        return Ok(Vec::new());
    }
    let foreign = || OpenError::Foreign { place: place.clone() };
    if !tables.iter().any(|table| table == "schema_migrations") {
        return Err(foreign());
    }
    let rows = conn.fetch(sql::MIGRATIONS, &[]).await;
    let rows = rows.map_err(|error| {
        if class(&error) == Class::Other {
            foreign()
        } else {
            failed(error)
        }
    })?;
    rows.iter()
        .map(rows::migration)
        .collect::<Result<_, _>>()
        .map_err(|_| foreign())
}

fn compare<'m>(
    applied: &[Applied],
    known: &'m [Migration],
    place: &Place,
) -> Result<&'m [Migration], OpenError> {
    let newest = known.last().map_or(0, |last| last.version);
    if let Some((found, ..)) = applied.last().filter(|(version, ..)| *version > newest) {
        return Err(OpenError::NewerSchema {
            place: place.clone(),
            found: *found,
            known: newest,
        });
    }
    for ((version, name, checksum), step) in applied.iter().zip(known) {
        if (*version, checksum) != (step.version, &step.checksum(place)) {
            let (version, name) = (*version, name.clone());
            return Err(OpenError::OtherMigration {
                place: place.clone(),
                version,
                name,
            });
        }
    }
    Ok(&known[applied.len()..])
}

/// Writes the copy under another name first, so that an earlier copy is replaced by a whole one or not at all.
async fn keep_copy(conn: &mut Conn, path: &Path, version: i64) -> Result<(), OpenError> {
    let target = beside(path, &format!(".schema-{version}.copy"));
    let partial = beside(path, &format!(".schema-{version}.copy.partial"));
    let failed = |source| OpenError::Backup {
        path: target.clone(),
        source,
    };
    match std::fs::remove_file(&partial) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        Ok(()) | Err(_) => {}
    }
    conn.copy_into(&partial)
        .await
        .map_err(|error| OpenError::of("copy", &Place::File(path.to_owned()), error))?;
    std::fs::rename(&partial, &target).map_err(failed)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().map(OsString::from).unwrap_or_default();
    name.push(ending);
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::open::{Settings, readers, writer};

    const ONE: Migration = Migration {
        version: 1,
        name: "one",
        sqlite: "CREATE TABLE a (x TEXT)",
        postgres: "",
    };
    const TWO: Migration = Migration {
        version: 2,
        name: "two",
        sqlite: "CREATE TABLE b (x TEXT); INSERT INTO b SELECT x FROM a",
        postgres: "",
    };
    const BROKEN: Migration = Migration {
        version: 3,
        name: "broken",
        sqlite: "CREATE TABLE c (x TEXT); INSERT INTO nowhere VALUES (1)",
        postgres: "",
    };

    fn db(path: &Path) -> Db {
        let settings = Settings::default();
        Db::Sqlite {
            writer: Some(writer(path, &settings)),
            readers: readers(path, &settings),
        }
    }

    fn place(path: &Path) -> Place {
        Place::File(path.to_owned())
    }

    async fn tables(path: &Path) -> Vec<String> {
        let mut tables = db(path).reader().await.unwrap().tables().await.unwrap();
        tables.sort();
        tables
    }

    #[tokio::test]
    async fn an_older_database_is_copied_before_it_is_migrated() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.sqlite");
        let db = db(&path);
        run(&db, &place(&path), &[ONE], 1).await.unwrap();
        let copy = dir.path().join("c.sqlite.schema-1.copy");
        assert!(!copy.exists(), "there was nothing to copy");
        db.writer()
            .await
            .unwrap()
            .unwrap()
            .execute("INSERT INTO a VALUES ('kept')", &[])
            .await
            .unwrap();
        // What an interrupted attempt leaves behind does not stand in the way.
        std::fs::write(dir.path().join("c.sqlite.schema-1.copy.partial"), "half").unwrap();

        run(&db, &place(&path), &[ONE, TWO], 1).await.unwrap();

        assert_eq!(tables(&path).await, ["a", "b", "schema_migrations"]);
        assert_eq!(tables(&copy).await, ["a", "schema_migrations"]);
        let mut conn = db.reader().await.unwrap();
        let row = conn.first("SELECT x FROM b", &[]).await.unwrap().unwrap();
        assert_eq!(row.text(0).unwrap(), "kept");
        assert_eq!(outstanding(&db, &place(&path), &[ONE, TWO]).await.unwrap(), []);
    }

    #[tokio::test]
    async fn a_step_that_fails_leaves_the_schema_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.sqlite");
        let db = db(&path);
        run(&db, &place(&path), &[ONE], 1).await.unwrap();
        let error = run(&db, &place(&path), &[ONE, TWO, BROKEN], 1).await.unwrap_err();
        assert_eq!(error.code(), "CDR0608", "{error:?}");
        assert_eq!(tables(&path).await, ["a", "schema_migrations"]);
        assert_eq!(outstanding(&db, &place(&path), &[ONE, TWO]).await.unwrap(), [TWO]);
        run(&db, &place(&path), &[ONE, TWO], 1).await.unwrap();
    }

    #[test]
    fn steps_are_numbered_without_gaps() {
        let versions: Vec<i64> = MIGRATIONS.iter().map(|step| step.version).collect();
        assert_eq!(
            versions,
            (1..=MIGRATIONS.len().try_into().unwrap()).collect::<Vec<i64>>()
        );
    }
}
