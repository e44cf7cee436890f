//! What an agent plants in its change does not leave: it is found in the exact commit, and a person decides or the run stops.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use conductor_it::Stage;
use conductor_it::stage::REPO;

use crate::kept::{Kept, on_both_databases};
use crate::{GREETING, PROGRAM};

on_both_databases!(
    a_planted_secret_never_leaves_though_it_was_taken_out_again,
    another_try_without_the_secret_is_merged_and_its_history_never_leaves,
    a_workflow_that_was_edited_by_a_command_stops_the_run,
    a_new_dependency_waits_for_an_approval_of_the_list,
    a_changed_harness_asks_a_human_though_the_tests_passed,
);

fn token() -> String {
    ["gh", "p_", "0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R"].concat()
}

/// The story of the greeting, with a command of the Implementer's after its first and its second change.
fn with_commands(first: &str, second: &str) -> String {
    let step = |command: &str| {
        if command.is_empty() {
            String::new()
        } else {
            format!("\n[[implement.step]]\nbash = '''{command}'''\n")
        }
    };
    GREETING
        .replacen(
            "content = \"hello\\n\" }\n",
            &format!("content = \"hello\\n\" }}\n{}", step(first)),
            1,
        )
        .replacen(
            "new = \"hello, world\" }\n",
            &format!("new = \"hello, world\" }}\n{}", step(second)),
            1,
        )
}

async fn set(kept: &Kept, first: &str, second: &str) -> Result<(Stage, String)> {
    let scenario = with_commands(first, second);
    let commands = [first, second]
        .iter()
        .filter(|command| !command.is_empty())
        .count();
    ensure!(scenario.matches("bash = '''").count() == commands, "{scenario}");
    let stage = Stage::set(PROGRAM, &kept.shell(&scenario)).await?;
    let run = stage.start_run("Greet people")?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    stage.approve(&run)?;
    Ok((stage, run))
}

/// Insists that nothing of the run is at the forge.
fn nothing_left(stage: &Stage, run: &str) -> Result<()> {
    let branch = stage.forge.branch(REPO, &format!("conductor/run-{run}"))?;
    ensure!(branch.is_none(), "the branch is at the forge");
    ensure!(stage.forge.pulls(REPO)?.is_empty(), "a pull request is open");
    Ok(())
}

/// Pushes what the run has committed as the person would, without Conductor; returns whether the forge took it.
fn push_without_inspection(stage: &Stage, run: &str) -> Result<bool> {
    let repo = stage.program.data_dir().join("runs").join(run).join("run.git");
    let pushed = Command::new("git")
        .arg("-C")
        .arg(repo)
        .arg("push")
        .arg(stage.url_of_person(REPO)?)
        .arg(format!("refs/heads/conductor/run-{run}:refs/heads/control"))
        .output()?;
    Ok(pushed.status.success() && stage.forge.branch(REPO, "control")?.is_some())
}

/// SEC-4, S-10, RUN-12: a secret in the first commit leaves with the branch though the second took it out; the run stands
/// still, nobody is shown the secret, nobody can approve it, and the forge alone would have taken the push.
async fn a_planted_secret_never_leaves_though_it_was_taken_out_again(kept: Kept) -> Result<()> {
    let planted = format!("echo 'key = \"{}\"' >> README.md", token());
    let (stage, run) = set(&kept, &planted, "sed -i '/^key = /d' README.md").await?;
    let seen = stage.wait(&run, "a hold", |run| run["run"]["held"] == true)?;
    ensure!(seen["run"]["phase"] == "proposing", "{seen:#}");
    let why = seen["holds"][0]["text"].as_str().unwrap_or_default();
    ensure!(
        why.contains("the change may not leave") && why.contains("README.md:") && why.contains("secret"),
        "{why}"
    );
    let inbox = stage.program.say_plainly(&["approvals"])?.done()?.stdout;
    ensure!(inbox.contains(&run), "{inbox}");
    let approval = stage
        .program
        .say(&["run", "approve", &run, "--subject", &"0".repeat(64)])?;
    ensure!(approval.code != 0, "{}", approval.stdout);
    nothing_left(&stage, &run)?;
    let shown = stage.program.say(&["run", "show", &run])?.done()?.stdout;
    let comments = format!("{:?}", stage.forge.comments(REPO, 1)?);
    ensure!(comments.contains("may not leave"), "{comments}");
    for text in [&shown, &inbox, &comments] {
        ensure!(!text.contains(&token()), "the secret is shown: {text}");
    }
    ensure!(
        push_without_inspection(&stage, &run)?,
        "the forge refused the push by itself: the story proves nothing"
    );
    stage
        .program
        .say(&["run", "fail", &run, "--comment", "it planted a secret"])?
        .done()?;
    stage.wait_for_clean_up(&run)?;
    stage.verify(&run)
}

/// SEC-4, RUN-11, RUN-12: another try is told why the change may not leave; though it changes nothing more, its commit takes the
/// place of those before it, so that the run goes on to its end and no object at the forge holds the secret.
async fn another_try_without_the_secret_is_merged_and_its_history_never_leaves(kept: Kept) -> Result<()> {
    let planted = format!("echo 'key = \"{}\"' >> README.md", token());
    let another = "\n[[implement]]\ncontext = [\"issue\", \"plan\", \"diff\", \"feedback\"]\n\
                   [[implement.step]]\nbash = 'true'\n";
    let scenario = with_commands(&planted, "sed -i '/^key = /d' README.md") + another;
    let stage = Stage::set(PROGRAM, &kept.shell(&scenario)).await?;
    let run = stage.start_run("Greet people")?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    stage.approve(&run)?;
    stage.wait(&run, "a hold", |run| {
        run["holds"].to_string().contains("the change may not leave")
    })?;
    nothing_left(&stage, &run)?;
    stage.program.say(&["run", "retry", &run])?.done()?;
    stage.wait_for_phase(&run, "awaiting_merge")?;

    let dir = tempfile::tempdir()?;
    let git = |arguments: &[&str]| -> Result<String> {
        let said = Command::new("git")
            .current_dir(dir.path())
            .args(arguments)
            .output()?;
        ensure!(said.status.success(), "{arguments:?}: {said:?}");
        Ok(String::from_utf8_lossy(&said.stdout).into_owned())
    };
    git(&["clone", "--quiet", "--mirror", &stage.url_of_person(REPO)?, "."])?;
    let range = format!("main..conductor/run-{run}");
    ensure!(git(&["rev-list", "--count", &range])?.trim() == "1", "{range}");
    let all = git(&["log", "--all", "--patch", "--format=%B"])?;
    ensure!(all.contains("hello, world"), "{all}");
    ensure!(!all.contains(&token()), "the secret is at the forge");
    stage.merge(&run).await?;
    stage.wait_for_clean_up(&run)?;
    stage.verify(&run)
}

/// SEC-4: the tools refuse to write a workflow; a command can, and the inspection finds it.
async fn a_workflow_that_was_edited_by_a_command_stops_the_run(kept: Kept) -> Result<()> {
    let planted = "mkdir -p .github/workflows && echo 'on: push' > .github/workflows/ci.yml";
    let (stage, run) = set(&kept, "", planted).await?;
    let seen = stage.wait(&run, "a hold", |run| run["run"]["held"] == true)?;
    let why = seen["holds"][0]["text"].as_str().unwrap_or_default();
    ensure!(
        why.contains(".github/workflows/ci.yml (path that agents may not change)"),
        "{why}"
    );
    nothing_left(&stage, &run)?;
    ensure!(
        push_without_inspection(&stage, &run)?,
        "the forge refused the push by itself: the story proves nothing"
    );
    stage.verify(&run)
}

/// SEC-5, BEY-1: a new dependency stands in the inbox with the list; an approval of anything else is refused, that of the
/// exact list lets the change go.
async fn a_new_dependency_waits_for_an_approval_of_the_list(kept: Kept) -> Result<()> {
    let planted = "printf '[dependencies]\\nleft-pad = \"1.3\"\\n' > Cargo.toml";
    let (stage, run) = set(&kept, "", planted).await?;
    let seen = stage.wait(&run, "a gate", |run| run["gate"]["kind"] == "diff")?;
    let findings = seen["gate"]["findings"].to_string();
    ensure!(
        findings.contains("Cargo.toml: new dependency: 1 added, 0 changed, 0 removed"),
        "{findings}"
    );
    let list = &seen["gate"]["shown"][0];
    ensure!(list["kind"] == "dependencies", "{seen:#}");
    ensure!(
        list["text"] == "added cargo left-pad 1.3 in Cargo.toml\n",
        "{list}"
    );
    let inbox = stage.program.say_plainly(&["approvals"])?.done()?.stdout;
    ensure!(inbox.contains("! Cargo.toml: new dependency"), "{inbox}");
    let digest = list["digest"].as_str().context("a digest")?;
    let other = stage
        .program
        .say(&["run", "approve", &run, "--subject", digest])?;
    ensure!(other.code != 0, "{}", other.stdout);
    nothing_left(&stage, &run)?;
    stage.approve(&run)?;
    stage.merge(&run).await?;
    stage.wait_for_clean_up(&run)?;
    stage.verify(&run)
}

/// S-19: the tests passed, by a harness that the agent changed; that is for a human to see.
async fn a_changed_harness_asks_a_human_though_the_tests_passed(kept: Kept) -> Result<()> {
    let (stage, run) = set(&kept, "", "printf 'test:\\n\\ttrue\\n' > Makefile").await?;
    let seen = stage.wait(&run, "a gate", |run| run["gate"]["kind"] == "diff")?;
    let findings = seen["gate"]["findings"].to_string();
    ensure!(findings.contains("Makefile: test harness changed"), "{findings}");
    let subject = seen["gate"]["subject"].as_str().context("a subject")?;
    nothing_left(&stage, &run)?;
    stage
        .program
        .say(&["run", "reject", &run, "--subject", subject])?
        .done()?;
    stage.wait_for_clean_up(&run)?;
    nothing_left(&stage, &run)?;
    stage.verify(&run)
}
