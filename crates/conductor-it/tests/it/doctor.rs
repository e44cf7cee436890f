//! What the doctor says of a database server, well and ill: a real server that answers as an old, slow, late or unfriendly
//! one would; and of the App with which Conductor signs in at the forge.

use anyhow::{Context as _, Result, ensure};
use conductor_forge::{Forge, Options};
use conductor_it::Program;
use serde_json::Value;

use crate::PROGRAM;
use crate::postgres::{bare_database, column, database, execute, name_of, raw};

/// What the doctor says of a database, by the names of its checks.
struct Diagnosis {
    code: i32,
    checks: Vec<Value>,
}

impl Diagnosis {
    fn of(address: &str) -> Result<Self> {
        Self::with("", &["--database-url", address])
    }

    /// With these settings and flags.
    fn with(settings: &str, flags: &[&str]) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        std::fs::write(dir.path().join("conductor.toml"), settings)?;
        let program = Program::new(PROGRAM, dir.path(), vec![]);
        let said = program.say(&[&["doctor"], flags].concat())?;
        ensure!(
            !said.stdout.contains("hunter2") && !said.stderr.contains("hunter2"),
            "a password is shown: {}",
            said.stdout
        );
        let checks = said.data.as_array().with_context(|| said.stdout.clone())?.clone();
        Ok(Self {
            code: said.code,
            checks,
        })
    }

    /// Insists on how something is, on words about it, and on a hint where it is not well.
    fn says(&self, name: &str, health: &str, words: &str) -> Result<()> {
        let check = self.checks.iter().find(|check| check["name"] == name);
        let check = check.with_context(|| format!("{name} is not looked at: {:#?}", self.checks))?;
        ensure!(
            check["health"] == health
                && check["found"].as_str().is_some_and(|found| found.contains(words))
                && check["hint"].is_string() == (health != "ok"),
            "{name} is not {health} with `{words}`: {check:#}"
        );
        ensure!(
            health != "fail" || self.code == 1,
            "a failure is an exit code, not {}",
            self.code
        );
        Ok(())
    }
}

/// A database whose server has these functions instead of its own.
async fn pretending(functions: &str) -> Result<String> {
    let address = database().await;
    let name = name_of(&address).await;
    let mut conn = raw(&address).await;
    execute(&mut conn, functions).await;
    execute(
        &mut conn,
        &format!("ALTER DATABASE {name} SET search_path = public, pg_catalog"),
    )
    .await;
    Ok(address)
}

fn clock_that(says: &str) -> String {
    format!(
        "CREATE FUNCTION public.clock_timestamp() RETURNS TIMESTAMPTZ VOLATILE LANGUAGE plpgsql AS \
         $$ BEGIN {says}; END $$"
    )
}

/// DEP-1: all is well; and an empty database is one in which tables can be made.
#[tokio::test(flavor = "multi_thread")]
async fn a_healthy_database_server_is_said_to_be_one() -> Result<()> {
    let diagnosis = Diagnosis::of(&database().await)?;
    diagnosis.says("database server", "ok", "PostgreSQL 1")?;
    diagnosis.says("database rights", "ok", "may make, read and write")?;
    diagnosis.says("database clock", "ok", "this machine's")?;
    diagnosis.says("database latency", "ok", "ms for an answer")?;
    diagnosis.says("database", "ok", "opens")?;
    let empty = Diagnosis::of(&bare_database().await)?;
    empty.says("database rights", "ok", "may make")?;
    empty.says("database", "warn", "not there yet")
}

/// DEP-1: a server that is too old is named with the version that is needed.
#[tokio::test(flavor = "multi_thread")]
async fn an_old_database_server_is_named() -> Result<()> {
    let old = pretending(
        "CREATE FUNCTION public.current_setting(TEXT) RETURNS TEXT LANGUAGE sql AS \
         $$ SELECT CASE $1 WHEN 'server_version_num' THEN '140012' ELSE pg_catalog.current_setting($1) END $$",
    )
    .await?;
    Diagnosis::of(&old)?.says("database server", "fail", "PostgreSQL 14, at least 15 is needed")
}

/// DEP-1: a user who may not make tables, or not write to those that are there, is told what is missing.
#[tokio::test(flavor = "multi_thread")]
async fn missing_rights_on_a_database_are_named() -> Result<()> {
    for (address, grants, words) in [
        (bare_database().await, "", "make tables in schema public"),
        (
            database().await,
            "GRANT SELECT ON ALL TABLES IN SCHEMA public",
            "insert records",
        ),
        (
            database().await,
            "GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public",
            "delete records",
        ),
    ] {
        let mut conn = raw(&address).await;
        let role = format!("doctor_{}", name_of(&address).await);
        execute(
            &mut conn,
            &format!("DROP ROLE IF EXISTS {role}; CREATE ROLE {role} LOGIN"),
        )
        .await;
        if !grants.is_empty() {
            execute(&mut conn, &format!("{grants} TO {role}")).await;
        }
        let theirs = address.replace("postgres://postgres@", &format!("postgres://{role}:hunter2@"));
        let diagnosis = Diagnosis::of(&theirs)?;
        let all: Vec<&Value> = diagnosis.checks.iter().collect();
        diagnosis
            .says("database rights", "fail", "its user may not")
            .with_context(|| format!("{words}: {all:?}"))?;
        let found = diagnosis
            .checks
            .iter()
            .find(|check| check["name"] == "database rights");
        let found = found.context("just seen")?["found"].to_string();
        ensure!(
            found.contains(words) || found.contains(" more"),
            "{words}: {found}"
        );
        column(&mut conn, "SELECT CAST(current_user AS TEXT)").await;
        execute(&mut conn, &format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
    }
    Ok(())
}

/// DEP-3: a clock that is wrong is named, in either direction; one that is strange is a warning.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_clock_that_is_wrong_is_named() -> Result<()> {
    for (by, health, words) in [
        ("+ INTERVAL '1 hour'", "fail", "ahead of this machine's"),
        ("- INTERVAL '1 hour'", "fail", "behind this machine's"),
        ("+ INTERVAL '9 seconds'", "warn", "ahead of this machine's"),
    ] {
        let wrong = pretending(&clock_that(&format!("RETURN pg_catalog.clock_timestamp() {by}"))).await?;
        Diagnosis::of(&wrong)?.says("database clock", health, words)?;
    }
    Ok(())
}

/// DEP-1: a server that answers late is named.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_server_that_is_far_away_is_named() -> Result<()> {
    for (seconds, health) in [("0.3", "fail"), ("0.05", "warn")] {
        let late = clock_that(&format!(
            "PERFORM pg_sleep({seconds}); RETURN pg_catalog.clock_timestamp()"
        ));
        Diagnosis::of(&pretending(&late).await?)?.says("database latency", health, "ms for an answer")?;
    }
    Ok(())
}

/// DEP-1: a server that does not answer, an address that lets anybody answer, and a newer database are named.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_cannot_be_used_is_named() -> Result<()> {
    let free = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let nobody = format!("postgres://me:hunter2@{free}/conductor");
    Diagnosis::of(&nobody)?.says("database server", "fail", "cannot reach the database server")?;
    let anybody = "postgres://me:hunter2@db.example/conductor?sslmode=require";
    Diagnosis::of(anybody)?.says("database server", "fail", "lets anybody answer")?;
    let newer = database().await;
    execute(
        &mut raw(&newer).await,
        "INSERT INTO schema_migrations SELECT 999, 'future', checksum FROM schema_migrations LIMIT 1",
    )
    .await;
    Diagnosis::of(&newer)?.says("database", "fail", "newer Conductor")
}

/// GH-1: an id or a key that is not the App's is named before the first repository needs it.
#[tokio::test(flavor = "multi_thread")]
async fn an_app_that_cannot_sign_in_is_named() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let forge = Forge::start(Options::in_dir(dir.path().join("one"))).await?;
    let other = Forge::start(Options::in_dir(dir.path().join("other"))).await?;
    let settings = |name: &str, id: u64, key: &str| -> Result<String> {
        let file = dir.path().join(name);
        std::fs::write(&file, key)?;
        let (url, file) = (forge.base_url(), file.display());
        Ok(format!(
            "forge-url = \"{url}\"\napp-id = {id}\nprivate-key-file = \"{file}\"\n"
        ))
    };
    let (id, key) = (forge.app_id(), forge.app_key_pem());
    for (settings, health, words) in [
        (
            settings("right", id, key)?,
            "ok",
            format!("signs in as {}", forge.bot_login()),
        ),
        (
            settings("wrong-id", id + 1, key)?,
            "fail",
            "GitHub answered 404: Integration not found".to_owned(),
        ),
        (
            settings("wrong-key", id, other.app_key_pem())?,
            "fail",
            "GitHub answered 401".to_owned(),
        ),
        (
            settings("no-key", id, "no key")?,
            "fail",
            "private key cannot be used".to_owned(),
        ),
    ] {
        Diagnosis::with(&settings, &[])?.says("app", health, &words)?;
    }
    Ok(())
}
