//! Bad input and faults: each is a named error with a hint, a refusal or a hold; nothing is lost.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use conductor_it::Stage;
use conductor_it::stage::REPO;

use crate::kept::{Kept, on_both_databases};
use crate::{GREETING, PROGRAM};

on_both_databases!(
    what_cannot_be_started_is_refused_by_name,
    a_forge_that_is_down_is_waited_for,
    without_a_server_reading_works_and_changing_says_what_to_do,
    a_server_that_cannot_read_worktrees_in_a_sandbox_does_not_start,
);

/// Unknown repository, unknown, closed and deleted issue, unknown run, stale and missing arguments.
async fn what_cannot_be_started_is_refused_by_name(kept: Kept) -> Result<()> {
    let stage = Stage::set(PROGRAM, &kept.shell(GREETING)).await?;
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

/// GH-4, RUN-4, RUN-5, RUN-12: the forge is down in the middle of a run, and at the start of another, which is refused and
/// leaves no run; the one that runs waits longer and longer, each repeat is on record, and when the forge is back it goes on
/// by itself. The simulation does the same for whole minutes.
async fn a_forge_that_is_down_is_waited_for(kept: Kept) -> Result<()> {
    let stage = Stage::set(PROGRAM, &kept.shell(GREETING)).await?;
    let issue = stage.person.open_issue(REPO, "Greet people", "Please.")?;
    let run = stage.start_run_for(issue)?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    let number = stage.person.open_issue(REPO, "Not now", "Please.")?.to_string();
    stage.forge.faults().set_down(true);
    stage
        .program
        .say(&["repo", "add", REPO, "--project", "acme", "--test", "true"])?
        .refused("CDR0313")?;
    stage
        .program
        .say(&["run", "start", REPO, &number])?
        .refused("CDR0313")?;
    let runs = stage.program.say(&["run", "list"])?.done()?.data["runs"].clone();
    let runs = runs.as_array().context("runs")?;
    ensure!(
        matches!(runs.as_slice(), [only] if only["id"] == run.as_str()),
        "a start that could not read its issue made a run: {runs:?}"
    );
    stage.approve(&run)?;
    stage.wait_for_phase(&run, "proposing")?;
    stage.wait(&run, "the third repeat of its push", |_run| {
        repeats(&stage, &run).is_ok_and(|repeats| repeats.iter().any(|times| *times >= 3))
    })?;
    ensure!(
        stage.show(&run)?["run"]["held"] == false,
        "it waits, nobody has to act"
    );
    stage.forge.faults().set_down(false);
    stage.merge(&run).await?;
    stage.wait_for_clean_up(&run)?;
    stage.verify_forge(&run, issue)?;
    stage.verify(&run)
}

/// How often each effect of a run was put off, by its records.
fn repeats(stage: &Stage, run: &str) -> Result<Vec<usize>> {
    let said = stage.program.say(&["run", "show", run, "--events"])?.done()?;
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for event in said.data["events"].as_array().into_iter().flatten() {
        if event["kind"] == "effect_retry_scheduled" {
            *times.entry(event["payload"]["effect"].to_string()).or_default() += 1;
        }
    }
    Ok(times.into_values().collect())
}

/// Without a server, reading works and changing says what to start.
async fn without_a_server_reading_works_and_changing_says_what_to_do(kept: Kept) -> Result<()> {
    let play = kept.shell(GREETING);
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

/// S-7: where what agents write cannot be read in a sandbox, the server does not start, and says what to do; nothing else reads
/// it instead.
async fn a_server_that_cannot_read_worktrees_in_a_sandbox_does_not_start(kept: Kept) -> Result<()> {
    let mut stage = Stage::set_without_server(PROGRAM, &kept.shell(GREETING)).await?;
    let reader = stage.program.data_dir().join("reader");
    std::fs::write(&reader, "no directory")?;
    let said = stage.program.start_in_vain()?.refused("CDR0429")?;
    ensure!(
        said.code == 4 && said.stderr.contains("reader"),
        "exit {}: {}",
        said.code,
        said.stderr
    );
    std::fs::remove_file(&reader)?;
    stage.program.start(None)
}
