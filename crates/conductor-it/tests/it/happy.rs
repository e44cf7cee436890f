//! From an issue to a merged pull request.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use conductor_it::stage::{Play, REPO};
use conductor_it::{Program, Stage};

use crate::kept::{Kept, on_both_databases};
use crate::{GREETING, PROGRAM};

on_both_databases!(
    an_issue_becomes_a_merged_pull_request,
    runs_queue_for_the_slots_of_their_repository,
    the_demo_plays_every_language,
    the_demo_plays_any_scenario_on_any_directory,
    the_documented_scenario_plays_as_it_is_printed,
);

/// RUN-5 to RUN-10, GH-5, ENV-1, ENV-3: the whole way, and what it leaves at the forge and on disk.
async fn an_issue_becomes_a_merged_pull_request(kept: Kept) -> Result<()> {
    let stage = Stage::set(PROGRAM, &kept.shell(GREETING)).await?;
    let issue = stage.person.open_issue(REPO, "Greet people", "Please.")?;
    let run = stage.start_run_for(issue)?;
    let seen = stage.carry_through(&run).await?;
    ensure!(
        seen["run"]["phase"] == "completed" && seen["plans"] == 2 && seen["attempts"] == 2,
        "{seen:#}"
    );
    stage.verify(&run)?;
    stage.verify_forge(&run, issue)?;

    let pull = &stage.forge.pulls(REPO)?[0];
    let proposed = stage.forge.issue(REPO, pull.number)?;
    ensure!(
        proposed.title == "Greet the world (#1)"
            && proposed
                .body
                .as_deref()
                .is_some_and(|body| body.contains("Closes #1.")),
        "{proposed:?}"
    );
    let comments = stage.forge.comments(REPO, issue)?;
    for comment in &comments {
        ensure!(comment.body.starts_with("[Conductor | "), "{}", comment.body);
        ensure!(comment.body.contains(&format!("run:{run}]")), "{}", comment.body);
    }
    let check = &stage.forge.check_runs(REPO)?;
    ensure!(
        check.len() == 1 && check[0].head_sha == pull.head_sha,
        "{check:?}"
    );
    everything_is_given_back(&kept, &stage).await
}

/// ENV-2, ENV-3: no working directory, no lease of any kind, no slot, nothing left to do; what stays is the base clone and
/// the run's own repository without its working parts.
async fn everything_is_given_back(kept: &Kept, stage: &Stage) -> Result<()> {
    let data = stage.program.data_dir();
    for empty in ["worktrees", "trash", "quarantine", "executor/open"] {
        let dir = data.join(empty);
        let left: Vec<_> = std::fs::read_dir(&dir)
            .map(|entries| entries.filter_map(Result::ok).map(|entry| entry.path()).collect())
            .unwrap_or_default();
        ensure!(left.is_empty(), "left behind: {left:?}");
    }
    for (what, sql) in [
        ("a lease", "SELECT kind || ' ' || name FROM resource_leases"),
        ("a slot", "SELECT run FROM slots"),
        (
            "an effect",
            "SELECT id || ' ' || status FROM effects WHERE status <> 'done'",
        ),
    ] {
        let left = kept.column(data, sql).await?;
        ensure!(left.is_empty(), "{what} is left: {left:?}");
    }
    Ok(())
}

/// RUN-13: more runs than slots; they finish one after the other, the most urgent first.
async fn runs_queue_for_the_slots_of_their_repository(kept: Kept) -> Result<()> {
    let play = Play {
        slots: 1,
        ..kept.shell(GREETING)
    };
    let stage = Stage::set(PROGRAM, &play).await?;
    let first = stage.start_run("first")?;
    stage.wait_for_phase(&first, "awaiting_plan_approval")?;
    let second = stage.start_run("second")?;
    let third = stage.start_run("third")?;
    stage.program.say(&["run", "reprioritize", &third, "9"])?.done()?;
    for waiting in [&second, &third] {
        stage.wait(waiting, "reading its issue", |run| run["run"]["title"] != "")?;
        ensure!(stage.show(waiting)?["run"]["phase"] == "pending");
    }
    stage.program.say(&["run", "cancel", &first])?.done()?;
    stage.wait_for_phase(&third, "awaiting_plan_approval")?;
    ensure!(
        stage.show(&second)?["run"]["phase"] == "pending",
        "the less urgent one waits"
    );
    stage.program.say(&["run", "cancel", &third])?.done()?;
    stage.carry_through(&second).await?;
    stage.verify(&second)
}

/// DEP-1: the demo plays a Rust, a Python and a Node story to a merged pull request, and on a server one of them; it prints
/// one JSON summary, and leaves nothing behind.
async fn the_demo_plays_every_language(kept: Kept) -> Result<()> {
    // No language knows where the records are kept.
    let languages: &[&str] = match kept {
        Kept::File => &["rust", "python", "node"],
        Kept::Server(_) => &["python"],
    };
    for &language in languages {
        let dir = tempfile::tempdir()?;
        let program = Program::new(PROGRAM, dir.path(), vec![]);
        let mut demo = vec!["demo", "--yes", "--story", language];
        demo.extend(kept.flags());
        let said = program.say(&demo)?.done()?;
        let played = said.data;
        ensure!(
            played.is_object(),
            "not one JSON document on stdout: {}",
            said.stdout
        );
        ensure!(
            played["merged"] == true
                && played["outcome"] == "completed"
                && played["pull_request"].is_number()
                && (&played["plans"], &played["attempts"]) == (&2.into(), &2.into())
                && played["worktrees_left"] == 0
                && played["audit"]["holds"] == true
                && played["replay"]["same"] == true,
            "{language}: {}",
            said.stdout
        );
        ensure!(
            std::fs::read_dir(dir.path())?.next().is_none(),
            "{language}: the demo wrote to the data directory"
        );
        if let Kept::Server(_) = kept {
            let schemas =
                "SELECT CAST(nspname AS TEXT) FROM pg_namespace WHERE nspname LIKE 'conductor_demo%'";
            let left = kept.column(dir.path(), schemas).await?;
            ensure!(left.is_empty(), "{language}: left in the database: {left:?}");
        }
    }
    Ok(())
}

/// The demo plays any scenario on any git directory, and leaves the original as it was.
async fn the_demo_plays_any_scenario_on_any_directory(kept: Kept) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let repo = dir.path().join("repo");
    std::fs::create_dir(&repo)?;
    for file in ["test.sh", "README.md"] {
        std::fs::copy(
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("testdata/shell")
                .join(file),
            repo.join(file),
        )?;
    }
    for arguments in [
        &["init", "-q", "-b", "main"][..],
        &["add", "."],
        &[
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "commit",
            "-qm",
            "first",
        ],
    ] {
        ensure!(
            std::process::Command::new("git")
                .arg("-C")
                .arg(&repo)
                .args(arguments)
                .status()?
                .success()
        );
    }
    let scenario = dir.path().join("scenario.toml");
    std::fs::write(&scenario, GREETING)?;
    let program = Program::new(PROGRAM, dir.path().join("data"), vec![]);
    let (scenario, path) = (scenario.display().to_string(), repo.display().to_string());
    let mut demo = vec![
        "demo",
        "--scenario",
        &scenario,
        "--repo",
        &path,
        "--test",
        "sh test.sh",
    ];
    demo.extend(kept.flags());
    let said = program.say(&demo)?.done()?;
    ensure!(said.data["attempts"] == 2, "{}", said.stdout);
    ensure!(!repo.join("greeting.txt").exists(), "the original was touched");

    // Where it waits for a person before its end, whoever reads JSON is told all the same; its stage is left to be looked at.
    if let Kept::Server(_) = kept {
        return Ok(());
    }
    for word in demo.iter_mut().filter(|word| **word == "sh test.sh") {
        *word = "no-such-program";
    }
    let said = program.say(&demo)?;
    ensure!(
        said.code == 5 && said.stderr.contains("CDR0417"),
        "{}",
        said.stderr
    );
    ensure!(
        said.data["merged"] == false && said.data["outcome"].to_string().contains("tests not run"),
        "{}",
        said.stdout
    );
    let left = said.stderr.split_once("--data-dir ").context("what is left")?.1;
    let left = left.split_once("/data run list").context("its place")?.0;
    std::fs::remove_dir_all(left).with_context(|| format!("removing {left}"))
}

/// Every example of `docs/scenarios.md` is played, as it is printed.
async fn the_documented_scenario_plays_as_it_is_printed(kept: Kept) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()?;
    let page = std::fs::read_to_string(root.join("docs/scenarios.md"))?;
    let blocks = |kind: &str| -> Vec<String> {
        let open = format!("```{kind}\n");
        page.split(&open)
            .skip(1)
            .filter_map(|rest| rest.split_once("```").map(|(block, _)| block.to_owned()))
            .collect()
    };
    let (scenarios, commands) = (blocks("toml"), blocks("sh"));
    ensure!(
        scenarios.len() == 1 && commands.len() == 1,
        "an example that this test does not play: {scenarios:?} {commands:?}"
    );
    let dir = tempfile::tempdir()?;
    std::fs::write(dir.path().join("small.toml"), &scenarios[0])?;
    std::os::unix::fs::symlink(root.join("stories"), dir.path().join("stories"))?;
    let flags: Vec<String> = kept.flags().iter().map(|flag| format!(" '{flag}'")).collect();
    let program = dir.path().join("conductor");
    std::fs::write(
        &program,
        format!("#!/bin/sh\nexec '{PROGRAM}' \"$@\"{}\n", flags.concat()),
    )?;
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    let path = std::env::join_paths(
        std::iter::once(dir.path().to_owned()).chain(std::env::split_paths(
            &std::env::var_os("PATH").unwrap_or_default(),
        )),
    )?;
    let output = std::process::Command::new("sh")
        .args(["-c", &commands[0]])
        .current_dir(dir.path())
        .env("PATH", path)
        .output()?;
    ensure!(
        output.status.success() && String::from_utf8_lossy(&output.stdout).contains("completed"),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
