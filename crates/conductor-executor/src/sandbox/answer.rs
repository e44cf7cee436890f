//! Says in the port's words what a guest answered.
//!
//! A refusal is for whoever asked; a fault is for the engine. This module does not know how the answer came.

use conductor_domain::fault::Fault;
use conductor_domain::testing::Ending;
use conductor_domain::time::Millis;
use conductor_guest::file::MAX_FILE;
use conductor_guest::response::{self, Limit, Refusal, Response};
use conductor_port::executor::{Command, CommandResult, FileRefusal};

use crate::channel::{Answer, Gathered, NotSent};

/// Tells how a command ended; a limit that was met outranks whatever the command made of it (S-18).
pub(super) fn command(
    command: &Command,
    answer: Answer,
    breached: Option<&'static str>,
    time: Millis,
) -> Result<CommandResult, Fault> {
    let (ending, dropped) = match answer.result {
        Response::Exited(exited) => (ending(exited.ending), exited.dropped),
        Response::Refused(Refusal::Busy) => {
            return Err(Fault::transient("too much is under way in the sandbox"));
        }
        Response::Refused(refusal) => {
            let reason = if let (Refusal::CannotStart(_), Some(program)) = (&refusal, command.argv.first()) {
                format!("program `{program}` {refusal}")
            } else {
                refusal.to_string()
            };
            (Ending::NotRun { reason }, 0)
        }
        Response::Fault(what) => return Err(Fault::transient(format!("running a command: {what}"))),
        other @ (Response::Output { .. }
        | Response::FileBytes(_)
        | Response::Entries(_)
        | Response::Matches(_)
        | Response::Done
        | Response::Walked(_)
        | Response::Listening { .. }
        | Response::Ready { .. }) => return Err(unfitting(&other)),
    };
    let ending = breached.map_or(ending, |limit| Ending::LimitExceeded {
        limit: limit.to_owned(),
    });
    let (output, is_cut) = match answer.gathered {
        Gathered::Output { kept, .. } => kept.finish(),
        Gathered::Bytes(_) | Gathered::Entries(_) | Gathered::Matches(_) | Gathered::Nothing => {
            (Vec::new(), false)
        }
    };
    Ok(CommandResult {
        ending,
        output,
        truncated: is_cut || dropped > 0,
        time,
    })
}

/// Tells why a command was not even sent.
pub(super) fn not_sent(error: NotSent, time: Millis) -> Result<CommandResult, Fault> {
    match error {
        NotSent::TooLong(too_long) => Ok(CommandResult {
            ending: Ending::NotRun {
                reason: too_long.to_string(),
            },
            output: Vec::new(),
            truncated: false,
            time,
        }),
        error @ (NotSent::Lost(_) | NotSent::Unavailable(_)) => Err(unasked(error)),
    }
}

/// Tells why a file tool was not even asked.
pub(super) fn not_asked(error: NotSent) -> Result<FileRefusal, Fault> {
    match error {
        NotSent::TooLong(too_long) => Ok(FileRefusal::Other(too_long.to_string())),
        error @ (NotSent::Lost(_) | NotSent::Unavailable(_)) => Err(unasked(error)),
    }
}

/// Says what keeps a guest from being asked; one that is lost takes with it all that was done there.
pub(super) fn unasked(error: NotSent) -> Fault {
    let what = format!("asking the sandbox's guest: {error}");
    match error {
        NotSent::Lost(_) => Fault::environment_lost(what),
        NotSent::TooLong(_) | NotSent::Unavailable(_) => Fault::transient(what),
    }
}

fn ending(ending: response::Ending) -> Ending {
    match ending {
        response::Ending::Code(code) => Ending::Exited { code },
        response::Ending::Signal(signal) => Ending::Signalled { signal },
        response::Ending::TimedOut => Ending::TimedOut,
        // We had it killed, and say why ourselves; without a reason its own end was not seen.
        response::Ending::Killed => Ending::Lost,
        response::Ending::Limit(Limit::Processes) => Ending::LimitExceeded {
            limit: "processes".to_owned(),
        },
        response::Ending::Limit(Limit::Memory) => Ending::LimitExceeded {
            limit: "memory".to_owned(),
        },
    }
}

/// Tells why a file tool did not do it.
pub(super) fn refused(path: &str, result: Response) -> Result<FileRefusal, Fault> {
    match result {
        Response::Refused(Refusal::Busy) => Err(Fault::transient("too much is under way in the sandbox")),
        Response::Refused(refusal) => Ok(refusal_of(path, refusal)),
        Response::Fault(what) => Err(Fault::transient(format!("`{path}` in the sandbox: {what}"))),
        other @ (Response::Output { .. }
        | Response::FileBytes(_)
        | Response::Entries(_)
        | Response::Matches(_)
        | Response::Exited(_)
        | Response::Done
        | Response::Walked(_)
        | Response::Listening { .. }
        | Response::Ready { .. }) => Err(unfitting(&other)),
    }
}

/// Says a guest's refusal in the port's words.
pub(crate) fn refusal_of(path: &str, refusal: Refusal) -> FileRefusal {
    let name = path.to_owned();
    match refusal {
        Refusal::Outside => FileRefusal::Outside(name),
        Refusal::NotFound => FileRefusal::NotFound(name),
        Refusal::NotAFile => FileRefusal::NotAFile(name),
        Refusal::Link => FileRefusal::Link(name),
        Refusal::Exists => FileRefusal::Exists(name),
        Refusal::TooLarge { limit } => FileRefusal::TooLarge { path: name, limit },
        Refusal::NoMatch => FileRefusal::NoMatch(name),
        Refusal::Ambiguous {
            lines,
            has_more: false,
        } => FileRefusal::Ambiguous {
            path: name,
            lines: lines
                .into_iter()
                .map(|line| usize::try_from(line).unwrap_or(usize::MAX))
                .collect(),
        },
        Refusal::Ambiguous {
            lines,
            has_more: true,
        } => FileRefusal::Other(format!(
            "the text to replace occurs more than {} times in `{path}`",
            lines.len()
        )),
        Refusal::NotADirectory => FileRefusal::Other(format!(
            "`{path}` leads through something that is not a directory"
        )),
        Refusal::Denied => FileRefusal::Other(format!("`{path}`: permission denied")),
        Refusal::Full => FileRefusal::Other(format!("`{path}`: no space is left")),
        refusal @ (Refusal::Busy | Refusal::CannotStart(_) | Refusal::Invalid(_)) => {
            FileRefusal::Other(refusal.to_string())
        }
    }
}

/// Refuses what would not fit into a frame, before it is sent.
pub(super) fn too_large(path: &str) -> FileRefusal {
    FileRefusal::TooLarge {
        path: path.to_owned(),
        limit: MAX_FILE as u64,
    }
}

fn unfitting(response: &Response) -> Fault {
    Fault::permanent(format!("an answer that does not fit its request: {response:?}"))
}
