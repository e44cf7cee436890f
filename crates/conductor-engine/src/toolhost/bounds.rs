//! Refuses calls that are too long, or that no program can be handed, before anybody judges, logs or does them.
//!
//! What is longer than Linux would ever take costs policies seconds and the log megabytes, and comes to nothing anyway.
//! Linux takes no argument with a zero byte inside. Contents have limits of their own, where they are written. This module
//! does not know who calls.

use conductor_port::agent::{Misfit, ToolRequest};
use conductor_port::executor::Pattern;

/// The longest path that Linux takes.
const MAX_PATH: usize = 4096;
/// The longest argument that Linux hands to a program.
const MAX_ARGUMENT: usize = 128 * 1024;
/// The longest text or expression that is looked for.
const MAX_PATTERN: usize = 4096;

/// Tells why nobody could do a call, and what to do instead.
pub(super) fn unfit(request: &ToolRequest) -> Option<Misfit> {
    exceeded(request).or_else(|| torn(request))
}

/// Tells what of a call is too long, and what to do instead; its words are not repeated.
fn exceeded(request: &ToolRequest) -> Option<Misfit> {
    let path = |path: &str| ("path", path.len(), MAX_PATH, "name a place below the worktree");
    let parts = match request {
        ToolRequest::View { path: named }
        | ToolRequest::CreateFile { path: named, .. }
        | ToolRequest::StrReplace { path: named, .. }
        | ToolRequest::ListFiles { path: named } => vec![path(named)],
        ToolRequest::SearchFiles {
            path: named,
            pattern: Pattern::Literal(text) | Pattern::Regex(text),
        } => vec![
            path(named),
            ("pattern", text.len(), MAX_PATTERN, "look for a part of it"),
        ],
        ToolRequest::Bash { command } => {
            let instead = "write it to a file with create_file, and run that";
            vec![("command", command.len(), MAX_ARGUMENT, instead)]
        }
        ToolRequest::GitCommit { message } => {
            vec![("message", message.len(), MAX_ARGUMENT, "say it in fewer words")]
        }
        ToolRequest::GitStatus
        | ToolRequest::GitDiff
        | ToolRequest::Github(_)
        | ToolRequest::SubmitPlan(_)
        | ToolRequest::SubmitReview(_)
        | ToolRequest::SubmitTestReport(_)
        | ToolRequest::AskHuman { .. } => vec![],
    };
    let (part, length, most, instead) = parts.into_iter().find(|(_, length, most, _)| length > most)?;
    Some(Misfit {
        tool: request.name(),
        arguments: format!("a {part} of {length} bytes"),
        reason: format!("the {part} has {length} bytes, and at most {most} are taken: {instead}"),
    })
}

/// Tells what of a call no program can be handed, and what to do instead.
fn torn(request: &ToolRequest) -> Option<Misfit> {
    let (part, text, instead) = match request {
        ToolRequest::Bash { command } => {
            let instead = "let printf write it, or create_file";
            ("command", command, instead)
        }
        ToolRequest::GitCommit { message } => ("message", message, "leave it out"),
        ToolRequest::View { .. }
        | ToolRequest::CreateFile { .. }
        | ToolRequest::StrReplace { .. }
        | ToolRequest::ListFiles { .. }
        | ToolRequest::SearchFiles { .. }
        | ToolRequest::GitStatus
        | ToolRequest::GitDiff
        | ToolRequest::Github(_)
        | ToolRequest::SubmitPlan(_)
        | ToolRequest::SubmitReview(_)
        | ToolRequest::SubmitTestReport(_)
        | ToolRequest::AskHuman { .. } => return None,
    };
    text.contains('\0').then(|| Misfit {
        tool: request.name(),
        arguments: text.clone(),
        reason: format!("the {part} holds U+0000, which no program can be handed: {instead}"),
    })
}
