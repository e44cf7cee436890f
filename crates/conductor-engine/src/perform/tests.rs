//! Runs the test command on a fresh checkout of the exact commit, in a sandbox of its own (S-17).
//!
//! The ending is passed on as it was seen; nothing here calls it passed or failed (S-18, S-21). This module does not
//! know what the tests test.

use std::path::PathBuf;

use conductor_domain::artifact::ArtifactKind;
use conductor_domain::fault::Fault;
use conductor_domain::id::CommitId;
use conductor_domain::input::Report;
use conductor_domain::spec::ExecutorName;
use conductor_domain::testing::{Ending, TestRun};
use conductor_domain::time::Millis;
use conductor_port::blobs::MAX_BLOB;
use conductor_port::executor::{Command, CommandResult, Profile, SandboxSpec};

use super::Performance;

/// Runs the tests. If repeated: what an earlier try left running is ended, and they run again from the start.
pub(super) async fn run(
    performance: &Performance<'_>,
    commit: &CommitId,
    command: &[String],
    time: Millis,
    executor: ExecutorName,
) -> Result<Report, Fault> {
    performance.take_worktree().await?;
    performance.take_processes().await?;
    if performance.job.is_repeated() {
        performance.executor(executor)?.reap(performance.effect()).await?;
    }
    let checkout = performance
        .ports()
        .workspace
        .checkout(performance.run(), commit)
        .await?;
    let seen = if command.is_empty() {
        not_run("there is no test command")
    } else {
        run_in(performance, executor, checkout.dir.clone(), command, time).await?
    };
    performance.give_processes_back().await?;
    let output = performance.keep(ArtifactKind::TestOutput, &text(&seen)).await?;
    Ok(Report::TestsRan {
        tests: TestRun {
            commit: commit.clone(),
            tree: checkout.tree.clone(),
            command: command.to_vec(),
            ending: seen.ending,
            output,
            time: seen.time,
        },
    })
}

async fn run_in(
    performance: &Performance<'_>,
    executor: ExecutorName,
    dir: PathBuf,
    argv: &[String],
    time: Millis,
) -> Result<CommandResult, Fault> {
    let spec = SandboxSpec {
        effect: performance.effect().clone(),
        run: performance.run().clone(),
        profile: Profile::Test,
        dir,
    };
    let sandbox = performance.executor(executor)?.open(spec).await?;
    let seen = sandbox
        .bash(Command {
            argv: argv.to_vec(),
            time,
            output: MAX_BLOB,
        })
        .await;
    // Whatever came of the command, nothing of it is left running when the report goes out.
    sandbox.close().await?;
    seen
}

fn not_run(reason: &str) -> CommandResult {
    CommandResult {
        ending: Ending::NotRun {
            reason: reason.to_owned(),
        },
        output: vec![],
        truncated: false,
        time: Millis(0),
    }
}

fn text(seen: &CommandResult) -> String {
    let mut text = String::from_utf8_lossy(&seen.output).into_owned();
    if seen.truncated {
        text.push_str("\n… (more output was dropped)\n");
    }
    text
}
