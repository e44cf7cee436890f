//! Decides which role may call which tool, and how a call is shown in the log.
//!
//! This module does not know what a tool does.

use conductor_domain::digest::Digest;
use conductor_domain::role::Role;
use conductor_domain::testing::Ending;
use conductor_port::agent::ToolRequest;
use serde_json::json;

use super::log::Entry;
use crate::record::canonical;

/// The longest target that the log shows.
const MAX_TARGET: usize = 200;

/// Tells whether a role may call a tool.
pub(super) fn allow(role: Role, request: &ToolRequest) -> Result<(), String> {
    let wanted = match request {
        ToolRequest::View { .. } | ToolRequest::Comment { .. } | ToolRequest::AskHuman { .. } => {
            return Ok(());
        }
        // A command can write as well as read, so it belongs to the one role that may write.
        ToolRequest::CreateFile { .. } | ToolRequest::StrReplace { .. } | ToolRequest::Bash { .. } => {
            Role::Implementer
        }
        ToolRequest::SubmitPlan(_) => Role::Planner,
        ToolRequest::SubmitReview(_) => Role::Reviewer,
        ToolRequest::SubmitTestReport(_) => Role::Tester,
    };
    if role == wanted {
        Ok(())
    } else {
        Err(format!(
            "{} is for the {wanted}, not for the {role}",
            name(request)
        ))
    }
}

/// The name of a tool in the log.
pub(super) fn name(request: &ToolRequest) -> &'static str {
    match request {
        ToolRequest::View { .. } => "view",
        ToolRequest::CreateFile { .. } => "create_file",
        ToolRequest::StrReplace { .. } => "str_replace",
        ToolRequest::Bash { .. } => "bash",
        ToolRequest::Comment { .. } => "comment",
        ToolRequest::SubmitPlan(_) => "submit_plan",
        ToolRequest::SubmitReview(_) => "submit_review",
        ToolRequest::SubmitTestReport(_) => "submit_test_report",
        ToolRequest::AskHuman { .. } => "ask_human",
    }
}

/// Describes a call for the log, as allowed and done; texts are redacted before they are shown or hashed (SEC-3).
pub(super) fn entry(request: &ToolRequest, redact: &dyn Fn(&str) -> String) -> Entry {
    let (target, arguments) = match request {
        ToolRequest::View { path } => (path.clone(), json!({ "path": redact(path) })),
        ToolRequest::CreateFile { path, content } => (
            path.clone(),
            json!({ "path": redact(path), "content": Digest::of(content) }),
        ),
        ToolRequest::StrReplace { path, old, new } => (
            path.clone(),
            json!({ "path": redact(path), "old": redact(old), "new": redact(new) }),
        ),
        ToolRequest::Bash { command } => (command.clone(), json!({ "command": redact(command) })),
        ToolRequest::Comment { text } => (
            "issue or pull request".to_owned(),
            json!({ "text": redact(text) }),
        ),
        ToolRequest::SubmitPlan(draft) => ("plan".to_owned(), json!(redact(&canonical(draft)))),
        ToolRequest::SubmitReview(draft) => ("review".to_owned(), json!(redact(&canonical(draft)))),
        ToolRequest::SubmitTestReport(draft) => ("test report".to_owned(), json!(redact(&canonical(draft)))),
        ToolRequest::AskHuman { question } => ("a human".to_owned(), json!({ "question": redact(question) })),
    };
    Entry {
        tool: name(request),
        target: shorten(&redact(&target)),
        payload_hash: Digest::of(canonical(&arguments).as_bytes()).into(),
        decision: "allow",
        reason: "builtin-1: the role has this tool".to_owned(),
        result: "ok".to_owned(),
    }
}

fn shorten(text: &str) -> String {
    if text.chars().count() <= MAX_TARGET {
        return text.to_owned();
    }
    text.chars().take(MAX_TARGET).chain(['…']).collect()
}

/// Says how a command ended.
pub(super) fn describe(ending: &Ending) -> String {
    match ending {
        Ending::Exited { code } => format!("exited {code}"),
        Ending::Signalled { signal } => format!("ended by signal {signal}"),
        Ending::TimedOut => "timed out".to_owned(),
        Ending::LimitExceeded { limit } => format!("limit exceeded: {limit}"),
        Ending::Lost => "lost".to_owned(),
        Ending::NotRun { reason } => format!("not run: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use conductor_domain::plan::{PlanDraft, ReviewDraft, TestReportDraft, Verdict};

    use super::*;

    /// TOOL-3, RUN-8: only the Implementer gets anything that writes; each result belongs to one role.
    #[test]
    fn each_role_gets_its_own_tools_and_no_others() {
        let requests = [
            ToolRequest::View { path: "a".into() },
            ToolRequest::CreateFile {
                path: "a".into(),
                content: vec![],
            },
            ToolRequest::StrReplace {
                path: "a".into(),
                old: "b".into(),
                new: "c".into(),
            },
            ToolRequest::Bash {
                command: "true".into(),
            },
            ToolRequest::Comment { text: "hm".into() },
            ToolRequest::SubmitPlan(PlanDraft {
                summary: "s".into(),
                approach: "a".into(),
                files: vec!["f".into()],
                risks: vec![],
            }),
            ToolRequest::SubmitReview(ReviewDraft {
                verdict: Verdict::Approve,
                summary: "s".into(),
                findings: vec![],
            }),
            ToolRequest::SubmitTestReport(TestReportDraft {
                passed: true,
                interpretation: "i".into(),
            }),
            ToolRequest::AskHuman { question: "q".into() },
        ];
        let table: Vec<String> = Role::ALL
            .into_iter()
            .map(|role| {
                let tools: Vec<&str> = requests
                    .iter()
                    .filter(|r| allow(role, r).is_ok())
                    .map(name)
                    .collect();
                format!("{role}: {}", tools.join(" "))
            })
            .collect();
        assert_eq!(
            table,
            [
                "Planner: view comment submit_plan ask_human",
                "Reviewer: view comment submit_review ask_human",
                "Implementer: view create_file str_replace bash comment ask_human",
                "Tester: view comment submit_test_report ask_human",
            ]
        );
    }

    /// SEC-3, TOOL-4.
    #[test]
    fn a_secret_in_a_command_reaches_neither_target_nor_length() {
        let request = ToolRequest::Bash {
            command: format!("echo SECRET {}", "x".repeat(500)),
        };
        let entry = entry(&request, &|text| text.replace("SECRET", "[redacted]"));
        assert!(entry.target.starts_with("echo [redacted] xxx"));
        assert_eq!(entry.target.chars().count(), MAX_TARGET + 1);
    }
}
