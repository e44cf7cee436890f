//! From an issue to a merged pull request.

use anyhow::{Result, ensure};
use conductor_it::stage::{Play, REPO};
use conductor_it::{Program, Stage};

use crate::{GREETING, PROGRAM};

/// RUN-5 to RUN-10, GH-5, ENV-1, ENV-3: the whole way, and what it leaves at the forge and on disk.
#[tokio::test(flavor = "multi_thread")]
async fn an_issue_becomes_a_merged_pull_request() -> Result<()> {
    let stage = Stage::set(PROGRAM, &Play::shell(GREETING)).await?;
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
    Ok(())
}

/// RUN-13: more runs than slots; they finish one after the other, the most urgent first.
#[tokio::test(flavor = "multi_thread")]
async fn runs_queue_for_the_slots_of_their_repository() -> Result<()> {
    let play = Play {
        slots: 1,
        ..Play::shell(GREETING)
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

/// DEP-1: the demo plays a Rust, a Python and a Node story to a merged pull request, and prints one JSON summary.
#[test]
fn the_demo_plays_every_language() -> Result<()> {
    for language in ["rust", "python", "node"] {
        let dir = tempfile::tempdir()?;
        let program = Program::new(PROGRAM, dir.path(), vec![]);
        let said = program.say(&["demo", "--yes", "--story", language])?.done()?;
        ensure!(
            said.data["pull_request"].is_number() && said.data["attempts"] == 2,
            "{language}: {}",
            said.stdout
        );
        ensure!(
            said.data.is_object(),
            "not one JSON document on stdout: {}",
            said.stdout
        );
    }
    Ok(())
}

/// The demo plays any scenario on any git directory, and leaves the original as it was.
#[test]
fn the_demo_plays_any_scenario_on_any_directory() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let repo = dir.path().join("repo");
    std::fs::create_dir(&repo)?;
    for file in ["test.sh", "README.md"] {
        std::fs::copy(
            std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
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
    let said = program
        .say(&[
            "demo",
            "--scenario",
            &scenario,
            "--repo",
            &path,
            "--test",
            "sh test.sh",
        ])?
        .done()?;
    ensure!(said.data["attempts"] == 2, "{}", said.stdout);
    ensure!(!repo.join("greeting.txt").exists(), "the original was touched");
    Ok(())
}
