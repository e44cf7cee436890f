//! Does the calls that stay in the sandbox: files, searches, commands, and git on the worktree's throw-away repository.
//!
//! Git runs inside, as a command: whatever the agent wrote into its repository concerns nobody outside (S-6), and makes git
//! run no command of the agent's either, who may be one who may run none (SEC-1). This module does not know who may call,
//! nor how it is logged.

use conductor_domain::fault::Fault;
use conductor_domain::testing::Ending;
use conductor_domain::time::Millis;
use conductor_port::agent::{ToolAnswer, ToolRequest};
use conductor_port::executor::{
    Command, CommandResult, Entry, EntryKind, FileRefusal, Found, Match, Sandbox,
};

use super::diff;
use super::log::Reach;

/// The most bytes of a command's output that an agent is shown.
const MAX_OUTPUT: usize = 256 * 1024;

/// The most bytes that git may say, of which some are shown.
const MAX_SAID: usize = 4 * 1024 * 1024;

/// How many places of an ambiguous text are shown, and how much of each line.
const PLACES: usize = 10;
const PLACE: usize = 200;

/// What git does for an agent; its first argument says which of its tools it is.
const GIT: &str = include_str!("git.sh");

/// What came of a call.
#[derive(Debug)]
pub(super) struct Acted {
    pub(super) answer: ToolAnswer,
    /// For the log.
    pub(super) result: String,
}

/// Tells how far a call can reach: every command finds the sandbox's outlet, and git is one.
pub(super) fn reach(request: &ToolRequest) -> Reach {
    match request {
        ToolRequest::Bash { .. }
        | ToolRequest::GitStatus
        | ToolRequest::GitDiff
        | ToolRequest::GitCommit { .. } => Reach::Outside,
        ToolRequest::View { .. }
        | ToolRequest::CreateFile { .. }
        | ToolRequest::StrReplace { .. }
        | ToolRequest::ListFiles { .. }
        | ToolRequest::SearchFiles { .. }
        // These become inputs, and whoever submits those keeps the call first.
        | ToolRequest::Github(_)
        | ToolRequest::SubmitPlan(_)
        | ToolRequest::SubmitReview(_)
        | ToolRequest::SubmitTestReport(_)
        | ToolRequest::AskHuman { .. } => Reach::Inside,
    }
}

/// Does a call; `None` when it is none of the sandbox. What `may_see` refuses is left out of lists, searches, diffs and
/// of what is said of a text: whoever may look at a directory, or write a file, need not be one who may look at all of it
/// (SEC-1).
pub(super) async fn act(
    sandbox: &dyn Sandbox,
    time: Millis,
    request: &ToolRequest,
    may_see: &(dyn Fn(&str) -> bool + Sync),
) -> Result<Option<Acted>, Fault> {
    Ok(Some(match request {
        ToolRequest::View { path } => answered(sandbox.view(path).await?),
        ToolRequest::CreateFile { path, content } => {
            let answer = sandbox.create_file(path, content).await?;
            answered(answer.map(|()| b"created".to_vec()))
        }
        ToolRequest::StrReplace { path, old, new } => match sandbox.str_replace(path, old, new).await? {
            Err(FileRefusal::Ambiguous { path: named, lines }) if may_see(path) => {
                ambiguous(sandbox, named, lines).await?
            }
            answer => answered(answer.map(|()| b"replaced".to_vec())),
        },
        ToolRequest::ListFiles { path } => {
            let answer = sandbox.list(path).await?;
            let answer = answer.map(|found| only(found, |entry| may_see(&entry.path)));
            answered(answer.map(|found| told(&found, entry)))
        }
        ToolRequest::SearchFiles { path, pattern } => {
            let answer = sandbox.search(path, pattern).await?;
            let answer = answer.map(|found| only(found, |found| may_see(&found.path)));
            answered(answer.map(|found| told(&found, line)))
        }
        ToolRequest::Bash { command } => run(sandbox, time, &["bash", "-c", command]).await?,
        ToolRequest::GitStatus => {
            let instead = "look at one directory after the other with list_files";
            let seen = git(sandbox, time, "status").await?;
            only_seen(seen, instead, |said| diff::only_names(said, may_see))
        }
        ToolRequest::GitDiff => {
            let instead = "let git_status name the files";
            let seen = git(sandbox, time, "diff").await?;
            only_seen(seen, instead, |said| diff::only(said, may_see))
        }
        ToolRequest::GitCommit { message } => {
            run(sandbox, time, &["bash", "-c", GIT, "git", "commit", message]).await?
        }
        ToolRequest::Github(_)
        | ToolRequest::SubmitPlan(_)
        | ToolRequest::SubmitReview(_)
        | ToolRequest::SubmitTestReport(_)
        | ToolRequest::AskHuman { .. } => return Ok(None),
    }))
}

fn answered(answer: Result<Vec<u8>, FileRefusal>) -> Acted {
    match answer {
        Ok(output) => Acted {
            answer: ToolAnswer::Done { output },
            result: "ok".to_owned(),
        },
        Err(refusal) => Acted {
            answer: ToolAnswer::Refused {
                reason: refusal.to_string(),
            },
            result: refusal.to_string(),
        },
    }
}

/// Shows the places of a text that occurs more than once, so that the next call can name one of them.
async fn ambiguous(sandbox: &dyn Sandbox, path: String, lines: Vec<usize>) -> Result<Acted, Fault> {
    let content = sandbox.view(&path).await?.unwrap_or_default();
    let content = String::from_utf8_lossy(&content);
    let mut acted = answered(Err(FileRefusal::Ambiguous {
        path,
        lines: lines.clone(),
    }));
    if let ToolAnswer::Refused { reason } = &mut acted.answer {
        for line in lines.into_iter().take(PLACES) {
            let text = content.lines().nth(line.saturating_sub(1)).unwrap_or_default();
            let text: String = text.chars().take(PLACE).collect();
            reason.push_str(&format!("\n{line}: {text}"));
        }
        reason.push_str("\nGive more of the text around the one that is meant.");
    }
    Ok(acted)
}

async fn git(sandbox: &dyn Sandbox, time: Millis, what: &str) -> Result<CommandResult, Fault> {
    ran(sandbox, time, MAX_SAID, &["bash", "-c", GIT, "git", what]).await
}

/// Shows what git said without what `only` leaves out of it. Of words with a gap nothing is shown: nobody knows whose the
/// lines behind it are.
fn only_seen(mut seen: CommandResult, instead: &str, only: impl FnOnce(&[u8]) -> (Vec<u8>, usize)) -> Acted {
    if seen.truncated {
        seen.output = format!("[there is too much to be looked at: {instead}]").into_bytes();
        return acted(seen);
    }
    let (shown, hidden) = only(&seen.output);
    seen.truncated = shown.len() > MAX_OUTPUT;
    seen.output = shown;
    seen.output.truncate(MAX_OUTPUT);
    if hidden > 0 {
        let told = format!("\n[{hidden} could not be looked at]");
        seen.output.extend_from_slice(told.as_bytes());
    }
    acted(seen)
}

async fn run(sandbox: &dyn Sandbox, time: Millis, argv: &[&str]) -> Result<Acted, Fault> {
    ran(sandbox, time, MAX_OUTPUT, argv).await.map(acted)
}

async fn ran(
    sandbox: &dyn Sandbox,
    time: Millis,
    most: usize,
    argv: &[&str],
) -> Result<CommandResult, Fault> {
    let command = Command {
        argv: argv.iter().map(|&word| word.to_owned()).collect(),
        environment: vec![],
        time,
        output: most,
        listener: None,
    };
    sandbox.bash(command).await
}

/// Answers how a command ended; one that never began is refused, or an agent might believe that something was done.
fn acted(seen: CommandResult) -> Acted {
    let ending = seen.ending.to_string();
    let answer = match &seen.ending {
        Ending::NotRun { .. } => ToolAnswer::Refused {
            reason: ending.clone(),
        },
        Ending::Exited { .. }
        | Ending::Signalled { .. }
        | Ending::TimedOut
        | Ending::LimitExceeded { .. }
        | Ending::Lost => ToolAnswer::Done {
            output: shown(seen, &ending),
        },
    };
    Acted {
        answer,
        result: ending,
    }
}

fn shown(seen: CommandResult, ending: &str) -> Vec<u8> {
    let mut output = seen.output;
    if seen.truncated {
        output.extend_from_slice("\n[more output was dropped]".as_bytes());
    }
    output.extend_from_slice(format!("\n[{ending}]\n").as_bytes());
    output
}

/// Leaves findings out, and says how many.
fn only<T>(mut found: Found<T>, may_see: impl Fn(&T) -> bool) -> Found<T> {
    let all = found.findings.len();
    found.findings.retain(|finding| may_see(finding));
    let hidden = u32::try_from(all - found.findings.len()).unwrap_or(u32::MAX);
    found.skipped = found.skipped.saturating_add(hidden);
    found
}

/// Tells findings one a line, and what they leave out.
fn told<T>(found: &Found<T>, say: fn(&T) -> String) -> Vec<u8> {
    let mut text: String = found.findings.iter().map(say).collect();
    if found.findings.is_empty() {
        text.push_str("[nothing was found]\n");
    }
    if found.skipped > 0 {
        text.push_str(&format!("[{} could not be looked at]\n", found.skipped));
    }
    if !found.is_complete {
        text.push_str("[there is more than was looked at: name a directory below]\n");
    }
    text.into_bytes()
}

fn entry(entry: &Entry) -> String {
    match entry.kind {
        EntryKind::File => format!("{} ({} bytes)\n", entry.path, entry.size),
        EntryKind::Directory => format!("{}/\n", entry.path),
        EntryKind::Symlink => format!("{} (link)\n", entry.path),
        EntryKind::Other => format!("{} (no file)\n", entry.path),
    }
}

fn line(found: &Match) -> String {
    format!(
        "{}:{}: {}\n",
        found.path,
        found.line,
        String::from_utf8_lossy(&found.text)
    )
}
