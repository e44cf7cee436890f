//! The same stories with the records on a PostgreSQL server.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use conductor_it::program::HOPELESS;
use conductor_it::stage::{Play, REPO};
use conductor_it::{Program, Stage};

use crate::postgres::{column, database, execute, raw};
use crate::{GREETING, PROGRAM};

fn play(address: &str) -> Play {
    Play {
        settings: format!("database-url = \"{address}\"\n[limits]\npoll-seconds = 1\n"),
        ..Play::shell(GREETING)
    }
}

/// DEP-1, RUN-4: the whole way, with a kill in the middle; and without a server the records are read from the database.
#[tokio::test(flavor = "multi_thread")]
async fn an_issue_becomes_a_merged_pull_request_with_its_records_on_postgres() -> Result<()> {
    let address = database().await;
    let mut stage = Stage::set(PROGRAM, &play(&address)).await?;
    let issue = stage.person.open_issue(REPO, "Greet people", "Please.")?;
    let run = stage.start_run_for(issue)?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    stage.program.kill()?;
    ensure!(stage.show(&run)?["run"]["phase"] == "awaiting_plan_approval");
    stage.program.start(None)?;

    let seen = stage.carry_through(&run).await.with_context(|| stage.log())?;
    ensure!(seen["run"]["phase"] == "completed", "{seen:#}");
    stage.verify(&run)?;
    stage.verify_forge(&run, issue)?;
    ensure!(!stage.program.data_dir().join("conductor.db").exists());
    stage.program.stop()
}

/// DEP-1: a second server keeps its hands off, and one that lost its claim stops before it does harm.
#[tokio::test(flavor = "multi_thread")]
async fn one_server_works_on_a_database_and_stops_when_it_is_lost() -> Result<()> {
    let address = database().await;
    let mut first = Stage::set(PROGRAM, &play(&address)).await?;
    let second = Stage::set_without_server(PROGRAM, &play(&address)).await?;
    let refused = second.program.say_plainly(&[
        "serve",
        "--executor",
        "unsafe-plain",
        "--i-know-this-is-unsafe-demo",
        "--app-id",
        "1",
        "--private-key-file",
        &key_of(&second.program),
    ])?;
    ensure!(
        refused.code == 1 && refused.stderr.contains("CDR0614"),
        "{refused:?}"
    );

    let mut conn = raw(&address).await;
    let holder = column(
        &mut conn,
        "SELECT CAST(pid AS TEXT) FROM pg_locks WHERE locktype = 'advisory' AND granted \
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
    )
    .await;
    execute(&mut conn, &format!("SELECT pg_terminate_backend({})", holder[0])).await;
    let begun = Instant::now();
    while !first.program.has_ended()? {
        ensure!(begun.elapsed() < HOPELESS, "the server goes on without its claim");
        tokio::task::yield_now().await;
    }
    ensure!(first.log().contains("CDR0614"), "{}", first.log());
    Ok(())
}

fn key_of(program: &Program) -> String {
    let beside = program.data_dir().with_file_name("app.pem");
    beside.display().to_string()
}
