//! Stored policies, as an operator meets them: set, refused with their place, asked, tested, and kept by a run.

use anyhow::{Context as _, Result, ensure};
use conductor_it::Stage;
use conductor_it::stage::REPO;

use crate::kept::{Kept, on_both_databases};
use crate::{GREETING, PROGRAM};

on_both_databases!(
    policies_are_stored_asked_tested_and_locked_by_runs,
    a_call_waits_for_a_person_and_is_made_as_it_was_approved,
);

const NO_FILES: &str = "@id(\"implementer-writes-files\") @reason(\"this repository is frozen\")\n\
                        forbid (principal == Agent::\"implementer\", action == Action::\"create_file\", resource is Worktree);\n";

/// SEC-1: `conductor policy` from end to end, with and without a server, on both databases.
async fn policies_are_stored_asked_tested_and_locked_by_runs(kept: Kept) -> Result<()> {
    let mut stage = Stage::set(PROGRAM, &kept.shell(GREETING)).await?;
    let dir = tempfile::tempdir()?;
    let file = |name: &str, text: &str| -> Result<String> {
        let path = dir.path().join(name);
        std::fs::write(&path, text)?;
        Ok(path.display().to_string())
    };
    let ask = ["policy", "check", "implementer", "create_file", "worktree:a.txt"];
    let of_repo = [&ask[..], &["--repo", REPO]].concat();
    let free = stage.program.say(&of_repo)?.done()?.data;
    ensure!(free["decision"] == "allow", "{free}");

    // A run that starts before the change keeps what counted then.
    let before = stage.start_run("before")?;
    stage.wait_for_phase(&before, "awaiting_plan_approval")?;

    let broken = file(
        "broken.cedar",
        "@id(\"x\")\n  permit (principal, action, resource",
    )?;
    let refused = stage.program.say(&["policy", "set", &broken, "--repo", REPO])?;
    ensure!(refused.code == 2, "{}", refused.code);
    ensure!(
        refused.stderr.contains("CDR0212") && refused.stderr.contains("repository policies, 2:"),
        "{}",
        refused.stderr
    );
    let checked = ["policy", "validate", &broken, "--repo", REPO];
    let flawed = stage.program.say_plainly(&checked)?;
    ensure!(
        flawed.code == 1 && flawed.stdout.starts_with(&format!("{broken}:2:")),
        "{}",
        flawed.stdout
    );
    let strict = file("strict.cedar", NO_FILES)?;
    stage
        .program
        .say(&["policy", "set", &strict, "--repo", REPO])?
        .done()?;
    let missing = stage
        .program
        .say(&["policy", "set", "/nowhere/at-all", "--repo", REPO])?;
    ensure!(
        missing.code == 2 && missing.stderr.contains("CDR0430"),
        "{}",
        missing.stderr
    );
    let nobody = stage
        .program
        .say(&["policy", "set", &strict, "--project", "nobody"])?;
    ensure!(
        nobody.code != 0 && nobody.stderr.contains("CDR0202"),
        "{}",
        nobody.stderr
    );

    let denied = stage.program.say(&of_repo)?.done()?.data;
    ensure!(
        denied["decision"] == "deny"
            && denied["policy"] == "implementer-writes-files"
            && denied["reason"] == "this repository is frozen",
        "{denied}"
    );
    let explained = stage
        .program
        .say_plainly(&[&["policy", "explain"], &ask[2..], &["--repo", REPO]].concat())?
        .done()?
        .stdout;
    ensure!(
        explained.contains("deny implementer-writes-files (repository): this repository is frozen"),
        "{explained}"
    );
    let unclear = stage
        .program
        .say(&["policy", "check", "wizard", "bash", "worktree"])?;
    ensure!(
        unclear.code != 0 && unclear.stderr.contains("`wizard` is no actor"),
        "{}",
        unclear.stderr
    );

    let expectations = file(
        "expected.txt",
        "# what is frozen\nimplementer create_file worktree:a.txt -> deny implementer-writes-files\n\
         implementer view worktree:a.txt -> allow\nconductor merge repository:acme/thing:documentation:99 -> deny\n",
    )?;
    let held = stage
        .program
        .say(&["policy", "test", &expectations, "--repo", REPO])?
        .done()?
        .data;
    ensure!(held["held"] == 3, "{held}");
    let not_there = stage.program.say(&["policy", "test", &expectations])?;
    ensure!(
        not_there.code == 1 && not_there.data["mismatches"][0]["line"] == 2 && not_there.data["held"] == 2,
        "{}",
        not_there.stdout
    );
    std::fs::write(&expectations, "# none\n")?;
    let nothing = stage.program.say(&["policy", "test", &expectations])?;
    ensure!(
        nothing.code == 1 && nothing.data["held"] == 0,
        "{}",
        nothing.stdout
    );

    // One run under the old policies goes through; one that starts now is held to the new ones.
    let run_asks = [&ask[..], &["--run", &before]].concat();
    ensure!(
        stage.program.say(&run_asks)?.done()?.data["decision"] == "allow",
        "{before}"
    );
    stage.carry_through(&before).await?;
    let after = stage.start_run("after")?;
    stage.wait_for_phase(&after, "awaiting_plan_approval")?;
    stage.approve(&after)?;
    stage.wait(&after, "a hold", |run| {
        run["holds"].to_string().contains("implementer-writes-files")
    })?;
    ensure!(
        stage.forge.pulls(REPO)?.len() == 1,
        "the second run wrote what it may not"
    );

    // Without a server the answers are the same.
    stage.program.stop()?;
    let list = stage.program.say(&["policy", "list"])?.done()?.data;
    ensure!(
        list["policies"][0]["version"] == 1 && list["policies"][0]["repo"] == REPO,
        "{list}"
    );
    let text = stage
        .program
        .say_plainly(&["policy", "show", "--repo", REPO])?
        .done()?
        .stdout;
    ensure!(text == NO_FILES, "{text}");
    ensure!(
        stage.program.say(&of_repo)?.done()?.data == denied,
        "another answer without a server"
    );
    let all = stage
        .program
        .say(&["policy", "show", "--run", &after])?
        .done()?
        .data;
    let layers: Vec<&str> = all["texts"]
        .as_array()
        .context("texts")?
        .iter()
        .filter_map(|text| text["layer"].as_str())
        .collect();
    ensure!(layers == ["shipped", "repository"], "{layers:?}");
    let set = stage.program.say(&["policy", "set", &strict, "--repo", REPO])?;
    ensure!(set.code == 3, "changing needs a server: {}", set.code);
    stage.program.start(None)?;
    stage.verify(&before)?;
    stage.verify(&after)
}

const ASK_FIRST: &str = "@id(\"people-read-new-files\") @reason(\"a person reads every new file\")\n\
                         @decision(\"require_approval\")\n\
                         permit (principal == Agent::\"implementer\", action == Action::\"create_file\", resource is Worktree);\n";

/// TOOL-4b, BEY-1, S-47, S-49: a call that policy wants approved ends the invocation; a person sees it whole, says no with
/// words or yes to exactly it; a server that was stopped meanwhile asks the same question.
async fn a_call_waits_for_a_person_and_is_made_as_it_was_approved(kept: Kept) -> Result<()> {
    let scenario = include_str!("../../testdata/scenarios/asks_first.toml");
    let mut stage = Stage::set(PROGRAM, &kept.shell(scenario)).await?;
    let dir = tempfile::tempdir()?;
    let asks = dir.path().join("asks.cedar");
    std::fs::write(&asks, ASK_FIRST)?;
    let asks = asks.display().to_string();
    let issue = stage.person.open_issue(REPO, "Greet", "Please.")?.to_string();
    let started = stage
        .program
        .say(&["run", "start", REPO, &issue, "--policy", &asks])?
        .done()?
        .data;
    let run = started["run"].as_str().context("a run")?.to_owned();
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    stage.approve(&run)?;

    let asked = |shown: &serde_json::Value| shown["gate"]["kind"] == "call";
    let first = stage.wait(&run, "a call before a person", asked)?;
    ensure!(
        first["run"]["held"] == true
            && first["gate"]["shown"][0]["text"] == "create_file greeting.txt\nhello, moon\n\n",
        "{first}"
    );
    let open = stage.program.say(&["approvals"])?.done()?.stdout;
    ensure!(open.contains("create_file greeting.txt"), "{open}");
    stage.program.stop()?;
    stage.program.start(None)?;
    let again = stage.wait(&run, "the same question", asked)?;
    ensure!(again["gate"] == first["gate"], "{again}");

    let subject = first["gate"]["subject"].as_str().context("a subject")?.to_owned();
    stage
        .program
        .say(&[
            "run",
            "revise",
            &run,
            "--subject",
            &subject,
            "--comment",
            "greet the world, not the moon",
        ])?
        .done()?;
    let second = stage.wait(&run, "another call", |shown| {
        asked(shown) && shown["gate"]["subject"] != subject.as_str()
    })?;
    ensure!(
        second["gate"]["shown"][0]["text"] == "create_file greeting.txt\nhello, world\n\n",
        "{second}"
    );
    let outdated = stage
        .program
        .say(&["run", "approve", &run, "--subject", &subject])?;
    ensure!(
        outdated.code == 4,
        "an approval of the first call let the second through: {}",
        outdated.stdout
    );
    stage.approve(&run)?;
    // The call was approved, not what commands made of the file since: the change is asked about by the same policy.
    let change = stage.wait(&run, "a change before a person", |shown| {
        shown["gate"]["kind"] == "diff"
    })?;
    ensure!(
        change["gate"]["findings"][0].as_str().is_some_and(
            |finding| finding.contains("greeting.txt") && finding.contains("people-read-new-files")
        ),
        "{change}"
    );
    stage.approve(&run)?;
    stage.merge(&run).await?;
    stage.wait_for_clean_up(&run)?;
    stage.verify(&run)
}
