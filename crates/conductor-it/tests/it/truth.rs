//! What agents say decides nothing.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use conductor_it::Stage;
use conductor_it::stage::Play;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::kept::{Kept, on_both_databases};
use crate::steering::processes;
use crate::{GREETING, PROGRAM};

on_both_databases!(
    a_tester_that_lies_opens_no_gate,
    a_file_outside_the_plan_asks_again,
    tests_that_were_not_run_are_their_own_result,
    a_sandbox_that_dies_twice_is_for_a_human,
    a_hostile_cast_gets_nowhere,
    secrets_are_kept_nowhere,
);

/// RUN-8, S-18: the Tester lies about every run; the gate fails all the same, and a human is asked.
async fn a_tester_that_lies_opens_no_gate(kept: Kept) -> Result<()> {
    let scenario = GREETING
        .replace("new = \"hello, world\"", "new = \"still wrong\"")
        .replace(
            "passed = false, interpretation = \"The greeting is wrong.\"",
            "passed = true, interpretation = \"All tests passed!\"",
        );
    let tail = "[[implement]]\n[[implement.step]]\nstr_replace = { path = \"greeting.txt\", old = \"wrong\", new = \"very wrong\" }\n\n[[interpret_tests]]";
    let scenario = scenario.replacen("[[interpret_tests]]", tail, 1);
    let play = Play {
        settings: "[limits]\nimplementation-retries = 1\n".into(),
        ..kept.shell(&scenario)
    };
    let stage = Stage::set(PROGRAM, &play).await?;
    let run = stage.start_run("Lie to me")?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    stage.approve(&run)?;
    let seen = stage.wait(&run, "a hold", |run| run["holds"].to_string().contains("failure"))?;
    ensure!(seen["run"]["phase"] == "executing", "{seen:#}");
    let tests = seen["tests"].as_array().cloned().unwrap_or_default();
    ensure!(
        tests.len() == 2 && tests.iter().all(|test| test["passed"] == false),
        "{tests:?}"
    );
    ensure!(
        tests[0]["said"]
            .as_str()
            .is_some_and(|said| said.contains("exited 1 on tree")),
        "{tests:?}"
    );
    ensure!(
        stage.forge.pulls(conductor_it::stage::REPO)?.is_empty(),
        "nothing was proposed"
    );
    stage
        .program
        .say(&["run", "fail", &run, "--comment", "it lies"])?
        .done()?;
    stage.wait_for_clean_up(&run)?;
    stage.verify(&run)
}

/// S-51, BEY-1: a file that the plan does not name waits for a human, bound to the exact change.
async fn a_file_outside_the_plan_asks_again(kept: Kept) -> Result<()> {
    let more = "new = \"hello, world\" }\n\n[[implement.step]]\ncreate_file = { path = \"extra.txt\", content = \"x\" }";
    let scenario = GREETING.replace("new = \"hello, world\" }", more);
    let stage = Stage::set(PROGRAM, &kept.shell(&scenario)).await?;
    let run = stage.start_run("Too much")?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    stage.approve(&run)?;
    let seen = stage.wait(&run, "a second gate", |run| run["gate"]["kind"] == "diff")?;
    ensure!(
        seen["gate"]["findings"].to_string().contains("extra.txt"),
        "{seen:#}"
    );
    ensure!(
        stage.forge.pulls(conductor_it::stage::REPO)?.is_empty(),
        "nothing left before the approval"
    );
    stage.approve(&run)?;
    stage.merge(&run).await?;
    stage.wait_for_clean_up(&run)?;
    stage.verify(&run)
}

/// S-21: a test command that cannot be started is "not run", which is neither passed nor failed.
async fn tests_that_were_not_run_are_their_own_result(kept: Kept) -> Result<()> {
    let play = Play {
        test: "no-such-program-anywhere --all".into(),
        ..kept.shell(GREETING)
    };
    let stage = Stage::set(PROGRAM, &play).await?;
    let run = stage.start_run("No tests")?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    stage.approve(&run)?;
    let seen = stage.wait(&run, "a hold", |run| {
        run["holds"].to_string().contains("tests not run")
    })?;
    ensure!(seen["run"]["phase"] == "executing", "{seen:#}");
    let tests = &seen["tests"][0];
    ensure!(
        tests["ran"] == false && tests["passed"] == false && seen["tests"][1].is_null(),
        "{seen:#}"
    );
    ensure!(
        tests["said"].as_str().is_some_and(
            |said| said.contains("not run: program `no-such-program-anywhere` cannot be started")
        ),
        "{seen:#}"
    );
    let shown = stage.program.say_plainly(&["run", "show", &run])?.done()?;
    ensure!(shown.stdout.contains("not run: program"), "{}", shown.stdout);
    stage.verify(&run)
}

/// RUN-12, ENV-6, S-18: a sandbox that dies under the tests is made anew once. The second time a human is asked, and what was
/// seen stands among the tests.
async fn a_sandbox_that_dies_twice_is_for_a_human(kept: Kept) -> Result<()> {
    // Nobody else sleeps for so long.
    let sleep = format!("sleep {}", 1_000_000 + std::process::id());
    let play = Play {
        test: sleep.clone(),
        ..kept.shell(GREETING)
    };
    let stage = Stage::set(PROGRAM, &play).await?;
    let run = stage.start_run("Strike me")?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    stage.approve(&run)?;
    let mut struck = Vec::new();
    while struck.len() < 2 {
        let seen = stage.show(&run)?;
        ensure!(seen["holds"].as_array().is_some_and(Vec::is_empty), "{seen:#}");
        for tests in processes(&sleep)? {
            if !struck.contains(&tests) {
                // The guest, which started them, is all of the sandbox: it ends with its first process.
                kill(parent_of(tests)?, Signal::SIGKILL)?;
                struck.push(tests);
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let seen = stage.wait(&run, "a hold", |run| run["holds"].to_string().contains("failure"))?;
    ensure!(seen["holds"].to_string().contains("guest is lost"), "{seen:#}");
    ensure!(seen["attempts"] == 1, "no agent started over: {seen:#}");
    stage.program.say(&["run", "cancel", &run])?.done()?;
    stage.wait_for_clean_up(&run)?;
    ensure!(processes(&sleep)?.is_empty(), "a third was started");
    stage.verify(&run)
}

fn parent_of(process: Pid) -> Result<Pid> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    Ok(Pid::from_raw(parent.context("a parent")?.trim().parse()?))
}

/// TOOL-2, RUN-8: a hostile cast meets a refusal at every turn, its lie is recorded, and nothing leaves.
async fn a_hostile_cast_gets_nowhere(kept: Kept) -> Result<()> {
    let rust = conductor_agent::stories::find("rust").context("the rust story")?;
    let dir = tempfile::tempdir()?;
    for (path, content) in rust.files {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().context("a directory")?)?;
        std::fs::write(path, content)?;
    }
    let play = Play {
        repo: dir.path().to_owned(),
        test: rust.settings.test_command.join(" "),
        settings: "[limits]\nimplementation-retries = 0\n".into(),
        ..kept.shell(conductor_agent::stories::HOSTILE_SCENARIO)
    };
    let stage = Stage::set(PROGRAM, &play).await?;
    let run = stage.start_run("Be nice")?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    stage.approve(&run)?;
    let seen = stage.wait(&run, "a hold", |run| run["run"]["held"] == true)?;
    // The story was played to its end: what it tries is refused in the words that it expects, and the tests decide.
    let why = seen["holds"][0]["text"].as_str().unwrap_or_default();
    ensure!(
        why.contains("attempt 1 failed: `cargo test --offline --quiet` exited"),
        "{seen:#}"
    );
    ensure!(seen["tests"][0]["passed"] == false, "{seen:#}");
    ensure!(
        stage.forge.pulls(conductor_it::stage::REPO)?.is_empty(),
        "nothing was proposed"
    );
    stage.verify(&run)
}

/// SEC-3, INV-1a: a token that a person pastes into their words, or that an agent prints or dies with, is kept nowhere,
/// not in the papers of its invocation either, and posted nowhere.
async fn secrets_are_kept_nowhere(kept: Kept) -> Result<()> {
    let token = ["ghp", "_", "0123456789abcdefghijABCDEFGHIJ012345"].concat();
    let agent = ["xoxb", "-123456789012-123456789012-abcdefghijklmnopqrstuvwx"].concat();
    // A plan that holds a secret is sent back to its author; a review is kept without it.
    let plan = "[[plan.step]]\nsubmit_plan = { summary = \"Greet\"";
    let leak = format!(
        "[[plan.step]]\nsubmit_plan = {{ summary = \"Greet\", approach = \"Write {agent}.\", files = [\"a\"] }}\n\
         expect = {{ refused = \"what looks like a secret in its approach\" }}\n\n{plan}"
    );
    ensure!(crate::GREETING.contains(plan), "the first plan greets");
    let scenario = crate::GREETING.replacen(plan, &leak, 1);
    let scenario = scenario.replacen("Greet whom?", &format!("Greet whom? {agent}"), 1);
    let stack = ["ghs", "_", "abcdefghij0123456789ABCDEFGHIJ543210"].concat();
    let step = "[[review_plan.step]]\nsubmit_review = { verdict = \"reject\"";
    let crash = format!("[[review_plan.step]]\ncrash = \"stack {stack}\"\n\n[[review_plan]]\n{step}");
    ensure!(scenario.contains(step), "the first review rejects");
    let scenario = scenario.replacen(step, &crash, 1);
    let mut stage = Stage::set(PROGRAM, &kept.shell(&scenario)).await?;
    let run = stage.start_run("Keep it secret")?;
    // The Reviewer's first try crashes; its second is asked for without anybody's help.
    let seen = stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    let subject = seen["gate"]["subject"].as_str().context("a gate")?.to_owned();
    let words = format!("use my token {token}");
    stage
        .program
        .say(&["run", "revise", &run, "--subject", &subject, "--comment", &words])?
        .done()?;
    stage.wait(&run, "a new plan", |run| {
        run["plans"] == 3 && run["gate"]["subject"].is_string()
    })?;
    stage
        .program
        .say(&["run", "cancel", &run, "--comment", &words])?
        .done()?;
    stage.wait_for_clean_up(&run)?;
    stage.program.stop()?;
    let comments = stage.forge.comments(conductor_it::stage::REPO, 1)?;
    ensure!(
        comments.iter().any(|comment| comment.body.contains("stack ")),
        "the crash was told: {comments:?}"
    );
    for comment in comments {
        ensure!(
            [&token, &agent, &stack]
                .iter()
                .all(|secret| !comment.body.contains(*secret)),
            "posted: {}",
            comment.body
        );
    }
    // The papers tell of the crash in the agent's own words; below, they are searched with all the rest.
    let papers = kept.either(
        "SELECT kind FROM blobs WHERE kind = 'envelope' AND CAST(bytes AS TEXT) LIKE '%stack %'",
        "SELECT kind FROM blobs WHERE kind = 'envelope' AND convert_from(bytes, 'UTF8') LIKE '%stack %'",
    );
    ensure!(
        !kept.column(stage.program.data_dir(), papers).await?.is_empty(),
        "no envelope tells of the crash"
    );
    match &kept {
        Kept::File => {
            let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/find_secret.py");
            let database = stage.program.data_dir().join("conductor.db");
            let status = std::process::Command::new("python3")
                .arg(script)
                .arg(database)
                .args([&token, &agent, &stack])
                .status()?;
            ensure!(status.success(), "a secret is in the database ({status})");
        }
        Kept::Server(_) => {
            // The operator's own scenario holds the secrets that agents are to leak.
            let data_dir = stage.program.data_dir();
            let of_scenarios = "DELETE FROM blobs WHERE kind = 'scenario'";
            kept.change(data_dir, of_scenarios).await?;
            let all = String::from_utf8(kept.everything(data_dir).await?)?;
            for secret in [&token, &agent, &stack] {
                let bytes: String = secret
                    .bytes()
                    .fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
                ensure!(
                    !all.contains(secret) && !all.contains(&bytes),
                    "a secret is in the database"
                );
            }
            ensure!(
                all.contains("stack "),
                "the crash is in the database, without the secret"
            );
        }
    }
    Ok(())
}
