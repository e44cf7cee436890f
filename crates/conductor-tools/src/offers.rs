//! Which tools an agent is offered, each with a description, a schema and a way to read its arguments.
//!
//! A role sees only what it could ever be allowed (RUN-8); whether a call is allowed is decided where it is served.
//! This module does not know how messages come.

use std::sync::Arc;

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::role::Role;
use conductor_port::agent::{Misfit, ToolAnswer, ToolRequest, Tools};
use rmcp::handler::server::common::schema_for_input;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Tool, ToolAnnotations};
use serde_json::Value;

use crate::arguments::{
    Arguments, AskHuman, Bash, CommentIssue, CommentPullRequest, CreateFile, GetIssue, GetPullRequest,
    GitCommit, GitDiff, GitStatus, ListComments, ListFiles, ReviewComment, SearchFiles, StrReplace,
    SubmitPlan, SubmitReview, SubmitTestReport, UpdateCheckRun, UpdateProjectFields, View,
};
use crate::server::{Progress, Shelf};

/// The most bytes of text in one answer; a model can use no more of it.
const MAX_ANSWER: usize = 512 * 1024;

/// One tool.
struct Offer {
    name: &'static str,
    description: &'static str,
    is_writing: bool,
    schema: fn() -> Arc<JsonObject>,
    read: fn(&Value) -> Result<ToolRequest, String>,
}

fn offer<A: Arguments>(name: &'static str, description: &'static str, is_writing: bool) -> Offer {
    Offer {
        name,
        description,
        is_writing,
        schema: || schema_for_input::<A>().unwrap_or_else(|why| unreachable!("a struct is an object: {why}")),
        read: |arguments| {
            <A as serde::Deserialize<'_>>::deserialize(arguments)
                .map(A::request)
                .map_err(|error| format!("the arguments do not fit: {error}"))
        },
    }
}

/// Reading the worktree; every role may.
fn reading() -> Vec<Offer> {
    vec![
        offer::<View>("view", "Reads a file of the worktree.", false),
        offer::<ListFiles>(
            "list_files",
            "Lists files and directories below a directory, one a line, all the way down.",
            false,
        ),
        offer::<SearchFiles>(
            "search_files",
            "Finds lines in the files below a directory; each answer line is `path:line: text`.",
            false,
        ),
        offer::<GitStatus>(
            "git_status",
            "Tells which files differ from the last commit.",
            false,
        ),
        offer::<GitDiff>("git_diff", "Tells what differs from the last commit.", false),
    ]
}

/// Changing the worktree; one role may.
fn writing() -> Vec<Offer> {
    vec![
        offer::<CreateFile>(
            "create_file",
            "Writes a new file; an existing one is refused.",
            true,
        ),
        offer::<StrReplace>(
            "str_replace",
            "Replaces a text in a file. It must occur exactly once; otherwise the places are named.",
            true,
        ),
        offer::<Bash>(
            "bash",
            "Runs a command line in the worktree, in a sandbox without network; the last line says how it ended.",
            true,
        ),
        offer::<GitCommit>(
            "git_commit",
            "Commits everything in the worktree as a mark for yourself; Conductor makes the real commit.",
            true,
        ),
    ]
}

/// Reading what the run was shown of the forge; every role may.
fn reading_the_forge() -> Vec<Offer> {
    vec![
        offer::<GetIssue>(
            "github_get_issue",
            "Reads the run's issue as it was approved; what strangers changed since is not in it.",
            false,
        ),
        offer::<ListComments>(
            "github_list_comments",
            "Reads what people said below the run's issue, as it was approved.",
            false,
        ),
        offer::<GetPullRequest>(
            "github_get_pull_request",
            "Tells number, page, branch and commits of the run's pull request.",
            false,
        ),
    ]
}

/// Speaking at the forge; each is a wish that the run decides on, and the answer says what was decided.
fn speaking(role: Role) -> Vec<Offer> {
    let mut offers = vec![offer::<CommentIssue>(
        "github_comment_issue",
        "Asks for a comment on the run's issue; answers accepted, deferred or denied, never waits for the forge.",
        true,
    )];
    // Where plans are made there is no pull request.
    if role != Role::Planner {
        offers.extend([
            offer::<CommentPullRequest>(
                "github_comment_pull_request",
                "Asks for a comment on the run's pull request; denied while there is none.",
                true,
            ),
            offer::<ReviewComment>(
                "github_review_comment",
                "Asks for a comment on the run's pull request about one line of a file.",
                true,
            ),
            offer::<UpdateCheckRun>(
                "github_update_check_run",
                "Adds your words to Conductor's check run of the next proposed commit; its verdict is not yours.",
                true,
            ),
            offer::<UpdateProjectFields>(
                "github_update_project_fields",
                "Sets Conductor's own fields on a project board; refused where none is kept.",
                true,
            ),
        ]);
    }
    offers
}

/// What one role hands in.
fn handing_in(role: Role) -> Vec<Offer> {
    match role {
        Role::Planner => vec![offer::<SubmitPlan>(
            "submit_plan",
            "Hands in the plan; the first valid one counts.",
            true,
        )],
        Role::Reviewer => vec![offer::<SubmitReview>(
            "submit_review",
            "Hands in the review; the first valid one counts.",
            true,
        )],
        Role::Tester => vec![offer::<SubmitTestReport>(
            "submit_test_report",
            "Hands in what the test output says; the first valid one counts.",
            true,
        )],
        Role::Implementer => vec![],
    }
}

/// Asking a person; every role may.
fn asking() -> Offer {
    offer::<AskHuman>(
        "ask_human",
        "Asks a human and ends the work; it begins anew with the answer.",
        true,
    )
}

/// Finds a tool that there is, whoever it is offered to.
fn known(name: &str) -> Option<&'static str> {
    let mut all = reading();
    all.extend(writing());
    all.extend(reading_the_forge());
    for role in Role::ALL {
        all.extend(speaking(role));
        all.extend(handing_in(role));
    }
    all.push(asking());
    let found = all.into_iter().find(|offer| offer.name == name);
    found.map(|offer| offer.name)
}

/// Tools on offer, and who serves them.
pub struct Offers {
    offers: Vec<Offer>,
    tools: Arc<dyn Tools>,
}

impl std::fmt::Debug for Offers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.offers.iter().map(|offer| offer.name))
            .finish()
    }
}

impl Offers {
    /// Offers what a role needs in a run.
    pub fn to_role(role: Role, tools: Arc<dyn Tools>) -> Self {
        let mut offers = reading();
        if role.may_write() {
            offers.extend(writing());
        }
        offers.extend(reading_the_forge());
        offers.extend(speaking(role));
        offers.extend(handing_in(role));
        offers.push(asking());
        Self { offers, tools }
    }

    /// Offers the worktree alone, to whoever has no run: what the role may do with it.
    pub fn of_worktree(role: Role, tools: Arc<dyn Tools>) -> Self {
        let mut offers = reading();
        if role.may_write() {
            offers.extend(writing());
        }
        Self { offers, tools }
    }
}

#[async_trait]
impl Shelf for Offers {
    fn tools(&self) -> Vec<Tool> {
        self.offers
            .iter()
            .map(|offer| {
                let hints = ToolAnnotations::new()
                    .read_only(!offer.is_writing)
                    .open_world(false);
                Tool::new(offer.name, offer.description, (offer.schema)()).with_annotations(hints)
            })
            .collect()
    }

    async fn call(&self, name: &str, arguments: JsonObject, _progress: &Progress) -> Option<CallToolResult> {
        let arguments = Value::Object(arguments);
        let Some(offer) = self.offers.iter().find(|offer| offer.name == name) else {
            // What is not offered, or not there at all, was tried all the same, and is told to the log.
            let call = match known(name) {
                Some(tool) => Misfit {
                    tool,
                    arguments: arguments.to_string(),
                    reason: format!("{tool} is not offered here"),
                },
                None => Misfit {
                    tool: "unknown",
                    arguments: format!("{name} {arguments}"),
                    reason: "there is no tool of this name".to_owned(),
                },
            };
            let logged = self.tools.misfit(call).await;
            return logged.err().map(|fault| failed(name, &fault));
        };
        let answer = match (offer.read)(&arguments) {
            Ok(request) => self.tools.call(request).await,
            Err(reason) => {
                let call = Misfit {
                    tool: offer.name,
                    arguments: arguments.to_string(),
                    reason,
                };
                self.tools.misfit(call).await
            }
        };
        Some(match answer {
            Ok(ToolAnswer::Done { output }) => {
                CallToolResult::success(vec![ContentBlock::text(readable(&output))])
            }
            Ok(ToolAnswer::Refused { reason }) => refused(&reason),
            Ok(ToolAnswer::Stop) => CallToolResult::success(vec![ContentBlock::text("recorded; stop now")]),
            Err(fault) => failed(name, &fault),
        })
    }

    async fn misfit(&self, parameters: Value, reason: &str) -> Option<CallToolResult> {
        let name = parameters["name"].as_str().and_then(known);
        let tool = name.unwrap_or("unknown");
        let call = Misfit {
            tool,
            arguments: parameters.to_string(),
            reason: reason.to_owned(),
        };
        let logged = self.tools.misfit(call).await;
        logged.err().map(|fault| failed(tool, &fault))
    }
}

fn failed(name: &str, fault: &Fault) -> CallToolResult {
    tracing::warn!(tool = name, %fault, "a tool met a fault");
    refused(&format!(
        "the tool failed, not you: {fault}; try again or ask a human"
    ))
}

fn refused(reason: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(readable(reason.as_bytes()))])
}

/// Bytes as text, with a note where they are no text or too many.
fn readable(output: &[u8]) -> String {
    let kept = &output[..output.len().min(MAX_ANSWER)];
    let mut text = String::from_utf8_lossy(kept).into_owned();
    if kept.len() < output.len() {
        text.push_str(&format!(
            "\n[{} of {} bytes are shown]\n",
            kept.len(),
            output.len()
        ));
    }
    if text.contains(char::REPLACEMENT_CHARACTER) && std::str::from_utf8(kept).is_err() {
        text.push_str("\n[some bytes are no text and are shown as \u{fffd}]\n");
    }
    text
}
