//! One damaged run, a damaged instance, many starts at once: each is named, and stops nothing else.

use anyhow::{Context as _, Result, ensure};
use conductor_it::Stage;
use conductor_it::stage::REPO;

use crate::kept::{Kept, on_both_databases};
use crate::{GREETING, PROGRAM};

on_both_databases!(
    one_damaged_run_stops_no_other,
    a_damaged_instance_stream_is_refused_at_the_start,
    of_many_starts_of_one_issue_one_begins,
);

fn listed<'a>(list: &'a serde_json::Value, run: &str) -> Result<&'a serde_json::Value> {
    let runs = list["runs"].as_array().context("runs")?;
    runs.iter()
        .find(|listed| listed["id"] == run)
        .with_context(|| format!("{run} is not in {list}"))
}

/// A run that waits at its gate, ready to be damaged by whoever stops the server.
async fn two_runs(kept: &Kept) -> Result<(Stage, String, String)> {
    let stage = Stage::set(PROGRAM, &kept.shell(GREETING)).await?;
    let damaged = stage.start_run("Damage me")?;
    stage.wait_for_phase(&damaged, "awaiting_plan_approval")?;
    let other = stage.start_run("Leave me alone")?;
    stage.wait_for_phase(&other, "awaiting_plan_approval")?;
    Ok((stage, damaged, other))
}

/// RUN-3: whatever is wrong with what is kept of one run, the server starts, lists it as damaged and carries the others.
async fn one_damaged_run_stops_no_other(kept: Kept) -> Result<()> {
    let (mut stage, damaged, other) = two_runs(&kept).await?;
    // A server keeps no words where numbers belong.
    let no_number = kept.either("issue = 'x'", "issue = -1");
    for harm in ["state = '{'", no_number, "state = '{}', priority = -1"] {
        stage.program.stop()?;
        let sql = format!("UPDATE runs SET {harm} WHERE run = '{damaged}'");
        kept.change(stage.program.data_dir(), &sql).await?;
        let without_server = stage.program.say(&["run", "list"])?.done()?;
        ensure!(
            listed(&without_server.data, &damaged)?["damaged"]["code"] == "CDR0621",
            "{harm}: {}",
            without_server.stdout
        );
        stage.program.start(None)?;
        let list = stage.program.say(&["run", "list"])?.done()?;
        let shown = listed(&list.data, &damaged)?;
        ensure!(shown["damaged"]["code"] == "CDR0621", "{harm}: {}", list.stdout);
        ensure!(
            listed(&list.data, &other)?["damaged"].is_null(),
            "{}",
            list.stdout
        );
        let plain = stage.program.say_plainly(&["run", "list"])?;
        ensure!(plain.stdout.contains("damaged (CDR0621)"), "{}", plain.stdout);
        let refused = stage
            .program
            .say(&["run", "show", &damaged])?
            .refused("CDR0621")?;
        ensure!(
            refused.stderr.contains("projections rebuild"),
            "{}",
            refused.stderr
        );
        stage.program.say(&["approvals"])?.done()?;
    }
    // The other goes on. It is not merged: that would move the base of the damaged one, whose story knows no rebase.
    stage.approve(&other)?;
    stage.wait_for_phase(&other, "awaiting_merge")?;
    let log = stage.program.log();
    // Once for each of the three starts, however often it is met.
    ensure!(
        log.matches("a run is damaged and left alone").count() <= 3,
        "{log}"
    );
    stage.program.stop()?;
    stage.program.say(&["projections", "rebuild"])?.done()?;
    stage.program.start(None)?;
    stage.carry_through(&damaged).await?;
    stage.verify(&damaged)
}

/// SEC-8: on a damaged instance stream no server starts; it says so by name, and what to do.
async fn a_damaged_instance_stream_is_refused_at_the_start(kept: Kept) -> Result<()> {
    let harms = [
        "UPDATE records SET payload = '{' WHERE stream = 'instance' AND seq = 2",
        "DELETE FROM records WHERE stream = 'instance' AND seq = (SELECT MAX(seq) FROM records WHERE stream = 'instance')",
        "UPDATE instance SET state = REPLACE(state, '\"kill_switch\":true', '\"kill_switch\":false')",
        "UPDATE instance SET state = '{'",
    ];
    for harm in harms {
        let kept = kept.another().await;
        let mut stage = Stage::set(PROGRAM, &kept.shell(GREETING)).await?;
        stage.program.say(&["kill-switch", "on"])?.done()?;
        stage.program.stop()?;
        kept.change(stage.program.data_dir(), harm).await?;
        stage.program.start_in_vain()?.refused("CDR0622").context(harm)?;
    }
    Ok(())
}

/// RUN-5: of many starts of one issue at the same moment exactly one begins a run; the others are refused by name.
async fn of_many_starts_of_one_issue_one_begins(kept: Kept) -> Result<()> {
    let stage = Stage::set(PROGRAM, &kept.shell(GREETING)).await?;
    let issue = stage.person.open_issue(REPO, "Only once", "Please.")?.to_string();
    let program = &stage.program;
    let said = std::thread::scope(|scope| {
        let starts: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| program.say(&["run", "start", REPO, &issue])))
            .collect();
        let joined = starts.into_iter().map(|start| start.join().expect("no panic"));
        joined.collect::<Result<Vec<_>>>()
    })?;
    let begun: Vec<_> = said.iter().filter(|said| said.code == 0).collect();
    ensure!(begun.len() == 1, "{} runs began", begun.len());
    let run = begun[0].data["run"].as_str().context("a run")?;
    for refused in said.iter().filter(|said| said.code != 0) {
        ensure!(
            refused.code == 4 && refused.stderr.contains("CDR0312") && refused.stderr.contains(run),
            "{}",
            refused.stderr
        );
    }
    let list = stage.program.say(&["run", "list"])?.done()?;
    ensure!(
        list.data["runs"].as_array().map(Vec::len) == Some(1),
        "{}",
        list.stdout
    );
    // Once it is over, the issue is free again.
    stage.program.say(&["run", "cancel", run])?.done()?;
    stage.wait_for_clean_up(run)?;
    stage.program.say(&["run", "start", REPO, &issue])?.done()?;
    Ok(())
}
