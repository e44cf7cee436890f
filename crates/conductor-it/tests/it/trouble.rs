//! Bad input and faults: each is a named error with a hint, a refusal or a hold; nothing is lost.

use anyhow::{Context as _, Result, ensure};
use conductor_it::stage::{Play, REPO};
use conductor_it::{Program, Stage};

use crate::{GREETING, PROGRAM};

/// Unknown repository, unknown, closed and deleted issue, unknown run, stale and missing arguments.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_started_is_refused_by_name() -> Result<()> {
    let stage = Stage::set(PROGRAM, &Play::shell(GREETING)).await?;
    let refused = |arguments: &[&str]| -> Result<String> {
        let said = stage.program.say(arguments)?;
        ensure!(
            said.code != 0 && said.stderr.contains("CDR") && said.stderr.contains("hint:"),
            "{arguments:?}: {}{}",
            said.stdout,
            said.stderr
        );
        Ok(said.stderr)
    };
    refused(&["run", "start", "acme/nothing", "1"])?;
    refused(&["run", "start", REPO, "999"])?;
    let closed = stage.person.open_issue(REPO, "closed", "x")?;
    stage.person.close(REPO, closed)?;
    let text = refused(&["run", "start", REPO, &closed.to_string()])?;
    ensure!(text.contains("closed"), "{text}");
    let deleted = stage.person.open_issue(REPO, "deleted", "x")?;
    stage.person.delete_issue(REPO, deleted)?;
    let text = refused(&["run", "start", REPO, &deleted.to_string()])?;
    ensure!(text.contains("deleted"), "{text}");
    refused(&["run", "show", "r-nothing"])?;
    refused(&["run", "pause", "r-nothing"])?;
    refused(&["project", "add", "acme"])?;
    refused(&["repo", "add", "acme/none", "--project", "acme", "--test", "true"])?;
    let usage = stage.program.say(&["run", "show"])?;
    ensure!(usage.code == 2, "wrong usage is exit 2, not {}", usage.code);
    Ok(())
}

/// GH-4, RUN-4: the forge is down for a while in the middle of a run; the run waits and goes on by itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_forge_that_is_down_is_waited_for() -> Result<()> {
    let stage = Stage::set(PROGRAM, &Play::shell(GREETING)).await?;
    let issue = stage.person.open_issue(REPO, "Greet people", "Please.")?;
    let run = stage.start_run_for(issue)?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    stage.forge.faults().set_down(true);
    stage.approve(&run)?;
    stage.wait_for_phase(&run, "proposing")?;
    std::thread::sleep(std::time::Duration::from_secs(3));
    stage.forge.faults().set_down(false);
    stage.merge(&run).await?;
    stage.wait_for_clean_up(&run)?;
    stage.verify_forge(&run, issue)?;
    stage.verify(&run)
}

/// SEC-8: each kind of tampering is named by `audit verify`.
#[tokio::test(flavor = "multi_thread")]
async fn tampering_is_named() -> Result<()> {
    let play = Play::shell(GREETING);
    let mut stage = Stage::set(PROGRAM, &play).await?;
    let run = stage.start_run("Watch me")?;
    stage.carry_through(&run).await?;
    let other = stage.start_run("Remove me")?;
    stage.wait_for_phase(&other, "awaiting_plan_approval")?;
    stage.program.say(&["run", "cancel", &other])?.done()?;
    stage.wait_for_clean_up(&other)?;
    stage.program.stop()?;
    let database = stage.program.data_dir().join("conductor.db");
    ensure!(database.exists(), "the database is at {}", database.display());
    let copies = tempfile::tempdir()?;
    let last = format!("(SELECT MAX(seq) FROM records WHERE stream = 'run/{run}')");
    let cases = [
        (
            "changed",
            format!(
                "UPDATE records SET payload = REPLACE(payload, 'Greet', 'Threat') WHERE stream = 'run/{run}' AND payload LIKE '%Greet%'"
            ),
        ),
        (
            "removed",
            format!("DELETE FROM records WHERE stream = 'run/{run}' AND seq = 5"),
        ),
        (
            "reordered",
            format!(
                "UPDATE records SET seq = CASE seq WHEN 5 THEN -6 ELSE -5 END WHERE stream = 'run/{run}' AND seq IN (5, 6); UPDATE records SET seq = -seq WHERE seq < 0"
            ),
        ),
        (
            "truncated",
            format!("DELETE FROM records WHERE stream = 'run/{run}' AND seq > {last} - 3"),
        ),
        (
            "removed run",
            format!(
                "DELETE FROM records WHERE stream = 'run/{other}'; DELETE FROM runs WHERE run = '{other}'"
            ),
        ),
    ];
    let program = |name: &str| Program::new(PROGRAM, copies.path().join(name), vec![]);
    let untouched = copy(stage.program.data_dir(), &copies.path().join("untouched"))?;
    ensure!(
        program("untouched").say(&["audit", "verify"])?.code == 0,
        "the copy in {untouched:?} verifies"
    );
    for (name, sql) in cases {
        let dir = name.replace(' ', "-");
        let path = copy(stage.program.data_dir(), &copies.path().join(&dir))?;
        conductor_it_sql(&path.join("conductor.db"), &sql)?;
        let said = program(&dir).say(&["audit", "verify"])?;
        ensure!(
            said.code == 1,
            "{name} was not noticed: {}{}",
            said.stdout,
            said.stderr
        );
        let named = if name == "removed run" { &other } else { &run };
        ensure!(
            said.stdout.contains(named.as_str()),
            "{name} is not named: {}",
            said.stdout
        );
    }
    Ok(())
}

fn copy(from: &std::path::Path, to: &std::path::Path) -> Result<std::path::PathBuf> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(to.to_owned())
}

/// Tampers with a database as somebody with access to the file would.
fn conductor_it_sql(database: &std::path::Path, sql: &str) -> Result<()> {
    let script =
        "import sqlite3, sys\nc = sqlite3.connect(sys.argv[1])\nc.executescript(sys.argv[2])\nc.commit()\n";
    let status = std::process::Command::new("python3")
        .arg("-c")
        .arg(script)
        .arg(database)
        .arg(sql)
        .status();
    ensure!(
        status.context("running python3")?.success(),
        "tampering failed: {sql}"
    );
    Ok(())
}

/// DESIGN §4: without a server, reading works and changing says what to start.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_server_reading_works_and_changing_says_what_to_do() -> Result<()> {
    let play = Play::shell(GREETING);
    let mut stage = Stage::set(PROGRAM, &play).await?;
    let run = stage.start_run("Look at me")?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    stage.program.stop()?;
    stage.program.say(&["run", "list"])?.done()?;
    stage.program.say(&["run", "show", &run])?.done()?;
    stage.program.say(&["audit", "verify"])?.done()?;
    let said = stage.program.say(&["run", "pause", &run])?;
    ensure!(
        said.code == 3 && said.stderr.contains("conductor serve"),
        "{}: {}",
        said.code,
        said.stderr
    );
    stage.program.start(None)?;
    stage.carry_through(&run).await?;
    stage.verify(&run)
}
