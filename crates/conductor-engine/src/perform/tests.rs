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
use conductor_port::executor::{Command, CommandResult, Profile};

use super::{OnRecord, Performance, sandbox};

/// Runs the tests. If repeated: what a dead process left is ended, and that is said, since tests that take the host down
/// must not do so for ever (RUN-12a); after a fault that was reported, they run again from the start.
pub(super) async fn run(
    performance: &Performance<'_>,
    commit: &CommitId,
    command: &[String],
    time: Millis,
    executor: ExecutorName,
) -> Result<Report, Fault> {
    if performance.job.interrupted {
        undo(performance, executor).await?;
        return Ok(Report::Interrupted { saved: None });
    }
    let ((), on_record) = tokio::try_join!(performance.take_worktree(), performance.take_processes())?;
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
        run_in(
            performance,
            &on_record,
            executor,
            checkout.dir.clone(),
            command,
            time,
        )
        .await?
    };
    performance.give_processes_back().await?;
    let verdict = seen.ending.of(command, &checkout.tree);
    let output = performance
        .keep(ArtifactKind::TestOutput, &text(&verdict, &seen))
        .await?;
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

/// Ends what may be left of a try; its checkout holds nothing that could be lost.
pub(super) async fn undo(performance: &Performance<'_>, executor: ExecutorName) -> Result<(), Fault> {
    performance.executor(executor)?.reap(performance.effect()).await?;
    performance.give_processes_back().await
}

async fn run_in(
    performance: &Performance<'_>,
    on_record: &OnRecord,
    executor: ExecutorName,
    dir: PathBuf,
    argv: &[String],
    time: Millis,
) -> Result<CommandResult, Fault> {
    let sandbox = sandbox::open(performance, on_record, executor, Profile::Test, dir, vec![]).await?;
    let seen = sandbox
        .bash(Command {
            argv: argv.to_vec(),
            environment: vec![],
            time,
            output: MAX_BLOB,
            listener: None,
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

/// What was printed, below what we saw ourselves: the first line is ours, whatever the tests print (RUN-8).
fn text(verdict: &str, seen: &CommandResult) -> String {
    let mut text = format!("{verdict}\n\n{}", String::from_utf8_lossy(&seen.output));
    if seen.truncated {
        text.push_str("\n… (more output was dropped)\n");
    }
    text
}
