//! Merging by policy from end to end: off by default, on for what a written policy names, and recorded (RUN-14).

use anyhow::{Context as _, Result, ensure};
use conductor_it::Stage;
use conductor_it::stage::REPO;
use serde_json::Value;

use crate::kept::{Kept, on_both_databases};
use crate::{GREETING, PROGRAM};

on_both_databases!(
    a_written_policy_merges_and_nothing_else_does,
    an_override_lets_one_call_through_and_is_recorded,
);

const MERGE: &str = "@id(\"merge-small-changes\") @reason(\"small changes that worked at once\")\n\
                     permit (principal is Orchestrator, action == Action::\"merge\", resource is Repository)\n\
                     when { resource.name == \"acme/thing\" && context.changeClass == \"code\" && context.confidence >= 80 };\n";

fn events(stage: &Stage, run: &str) -> Result<Vec<String>> {
    let shown = stage.program.say(&["run", "show", run, "--events"])?.done()?.data;
    let events = shown["events"].as_array().context("events")?;
    Ok(events
        .iter()
        .filter_map(|event| event["kind"].as_str().map(str::to_owned))
        .collect())
}

/// RUN-14: without a policy a finished pull request waits for a person; with one, exactly what was tested is merged, and
/// the run completes by what it read at the forge.
async fn a_written_policy_merges_and_nothing_else_does(kept: Kept) -> Result<()> {
    let stage = Stage::set(PROGRAM, &kept.shell(GREETING)).await?;
    let waits = stage.start_run("wait for a person")?;
    stage.wait_for_phase(&waits, "awaiting_plan_approval")?;
    stage.approve(&waits)?;
    let shown = stage.wait_for_phase(&waits, "awaiting_merge")?;
    ensure!(
        shown["waits_for"] == "a person: merge or close the pull request at the forge",
        "{shown}"
    );
    stage.program.say(&["run", "cancel", &waits])?.done()?;
    stage.wait_for_clean_up(&waits)?;

    let dir = tempfile::tempdir()?;
    let file = dir.path().join("merge.cedar");
    std::fs::write(&file, MERGE)?;
    let file = file.display().to_string();
    stage
        .program
        .say(&["policy", "set", &file, "--project", "acme"])?
        .done()?;
    let merges = stage.start_run("merge by itself")?;
    stage.wait_for_phase(&merges, "awaiting_plan_approval")?;
    stage.approve(&merges)?;
    let done = stage.wait_for_phase(&merges, "completed")?;
    let head = done["pull_request"]["head"]
        .as_str()
        .context("a head")?
        .to_owned();
    let number = done["pull_request"]["number"].as_u64().context("a number")?;
    stage.wait_for_clean_up(&merges)?;
    let pulls = stage.forge.pulls(REPO)?;
    let pull = pulls
        .iter()
        .find(|pull| pull.number == number)
        .context("the pull request")?;
    let merge = pull.merge.as_ref().context("it is merged")?;
    ensure!(
        merge.by.ends_with("[bot]") && pull.head_sha == head,
        "{} at {}",
        merge.by,
        pull.head_sha
    );
    let kinds = events(&stage, &merges)?;
    // The forge may tell of the merge before its own answer is heard; then that comes too late to be told.
    for (kind, most) in [("merge_began", 1), ("pull_request_merged", 1), ("merge_ended", 0)] {
        let count = kinds.iter().filter(|known| *known == kind).count();
        ensure!(count == 1 || count == most, "{kind} {count} times: {kinds:?}");
    }
    ensure!(
        !events(&stage, &waits)?.iter().any(|kind| kind == "merge_began"),
        "the first was never to be merged"
    );
    stage.verify(&waits)?;
    stage.verify(&merges)
}

const NO_GREETINGS: &str = "@id(\"no-greetings\") @reason(\"greetings are written by people\")\n\
                            forbid (principal == Agent::\"implementer\", action == Action::\"create_file\", resource is Worktree)\n\
                            when { resource.path == \"greeting.txt\" };\n";

/// SEC-1: what a policy denies is let through by an override of exactly that call, recorded with name and reason.
async fn an_override_lets_one_call_through_and_is_recorded(kept: Kept) -> Result<()> {
    let stage = Stage::set(PROGRAM, &kept.shell(GREETING)).await?;
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("none.cedar");
    std::fs::write(&file, NO_GREETINGS)?;
    let file = file.display().to_string();
    stage
        .program
        .say(&["policy", "set", &file, "--repo", REPO])?
        .done()?;
    let run = stage.start_run("greet")?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    let wish = |policy: &str, target: &str, why: &str| -> Result<conductor_it::Said> {
        stage.program.say(&[
            "policy",
            "override",
            &run,
            "--policy",
            policy,
            "implementer",
            "create_file",
            target,
            "--because",
            why,
            "--for",
            "20",
        ])
    };
    let (target, why) = (
        "worktree:greeting.txt",
        "this one greeting was asked for by the owner",
    );
    let is_final = wish("git-directory", "worktree:.git/config", why)?;
    ensure!(
        is_final.code != 0 && is_final.stderr.contains("is final"),
        "{}",
        is_final.stderr
    );
    let vague = wish("no-greetings", target, "please")?;
    ensure!(
        vague.code != 0 && vague.stderr.contains("CDR0118"),
        "{}",
        vague.stderr
    );
    wish("no-greetings", target, why)?.done()?;
    let listed = stage.program.say(&["policy", "overrides", &run])?.done()?.data;
    ensure!(
        listed[0]["number"] == 1
            && listed[0]["policy"] == "no-greetings"
            && listed[0]["revoked_by"] == Value::Null,
        "{listed}"
    );
    stage.approve(&run)?;
    stage.wait_for_phase(&run, "awaiting_merge")?;
    let revoked = stage.program.say(&["policy", "revoke", &run, "1"])?;
    revoked.done()?;
    let twice = stage.program.say(&["policy", "revoke", &run, "1"])?;
    ensure!(
        twice.code != 0 && twice.stderr.contains("CDR0120"),
        "{}",
        twice.stderr
    );
    let kinds = events(&stage, &run)?;
    for kind in ["relief_granted", "relief_revoked"] {
        ensure!(kinds.iter().any(|known| known == kind), "{kind}: {kinds:?}");
    }
    stage.merge(&run).await?;
    stage.wait_for_clean_up(&run)?;
    stage.verify(&run)
}
