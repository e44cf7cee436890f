//! Agents: something that works for a while through tools and ends.
//!
//! An agent acts only through the [`Tools`] it is given; what it says beside that is a stream for people to watch.
//! This port does not know how tools are served.

use std::collections::BTreeMap;

use async_trait::async_trait;
use conductor_domain::artifact::Artifact;
use conductor_domain::fault::Fault;
use conductor_domain::id::{EffectId, RunId};
use conductor_domain::invocation::Invocation;
use conductor_domain::plan::{PlanDraft, ReviewDraft, TestReportDraft};
use conductor_domain::time::Timestamp;

use crate::executor::Pattern;

/// What an agent is given.
#[derive(Debug, Clone)]
pub struct Task {
    /// The effect that invokes it.
    pub effect: EffectId,
    /// The run.
    pub run: RunId,
    /// What it is asked.
    pub invocation: Invocation,
    /// What it is given to read: what the invocation names, then what it asks to be made, in that order (OWN-2).
    pub context: Vec<Material>,
    /// The scenario's bytes, for a scripted agent.
    pub scenario: Option<Vec<u8>>,
}

/// Something that an agent is given to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Material {
    /// What the bytes are; their own digest, and whether something was left out of them.
    pub artifact: Artifact,
    /// The bytes, without secrets.
    pub bytes: Vec<u8>,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolRequest {
    /// Reads a file.
    View {
        /// Its path.
        path: String,
    },
    /// Writes a new file.
    CreateFile {
        /// Its path.
        path: String,
        /// Its content.
        content: Vec<u8>,
    },
    /// Replaces the one occurrence of a text.
    StrReplace {
        /// The file's path.
        path: String,
        /// The text.
        old: String,
        /// What it becomes.
        new: String,
    },
    /// Runs a command.
    Bash {
        /// For `bash -c`.
        command: String,
    },
    /// Lists what is beneath a directory.
    ListFiles {
        /// The directory; empty is the worktree.
        path: String,
    },
    /// Finds lines in the files beneath a directory.
    SearchFiles {
        /// The directory; empty is the worktree.
        path: String,
        /// What is looked for.
        pattern: Pattern,
    },
    /// Tells what differs from the last commit, file by file.
    GitStatus,
    /// Tells what differs from the last commit, line by line.
    GitDiff,
    /// Commits everything in the worktree's own throw-away repository.
    GitCommit {
        /// What was done.
        message: String,
    },
    /// Reads or writes at the forge.
    Github(GithubCall),
    /// Submits a plan.
    SubmitPlan(PlanDraft),
    /// Submits a review.
    SubmitReview(ReviewDraft),
    /// Submits a test report.
    SubmitTestReport(TestReportDraft),
    /// Asks a human; ends the invocation.
    AskHuman {
        /// The question.
        question: String,
    },
}

impl ToolRequest {
    /// Returns the tool's name, as agents, the log and policies know it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::View { .. } => "view",
            Self::CreateFile { .. } => "create_file",
            Self::StrReplace { .. } => "str_replace",
            Self::Bash { .. } => "bash",
            Self::ListFiles { .. } => "list_files",
            Self::SearchFiles { .. } => "search_files",
            Self::GitStatus => "git_status",
            Self::GitDiff => "git_diff",
            Self::GitCommit { .. } => "git_commit",
            Self::Github(call) => call.name(),
            Self::SubmitPlan(_) => "submit_plan",
            Self::SubmitReview(_) => "submit_review",
            Self::SubmitTestReport(_) => "submit_test_report",
            Self::AskHuman { .. } => "ask_human",
        }
    }
}

/// A call of a tool for the forge; without a number it is about the run's own issue or pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "numbers, paths, lines and words are what they are called"
)]
pub enum GithubCall {
    /// Reads an issue.
    GetIssue { number: Option<u64> },
    /// Reads what people said below an issue.
    ListComments { number: Option<u64> },
    /// Reads a pull request.
    GetPullRequest { number: Option<u64> },
    /// Comments on an issue.
    CommentIssue { number: Option<u64>, text: String },
    /// Comments on a pull request.
    CommentPullRequest { number: Option<u64>, text: String },
    /// Comments on a line of a pull request.
    ReviewComment {
        number: Option<u64>,
        path: String,
        line: u32,
        text: String,
    },
    /// Adds words to Conductor's own check run.
    UpdateCheckRun { text: String },
    /// Sets Conductor's own fields on a project board.
    UpdateProjectFields { fields: BTreeMap<String, String> },
}

impl GithubCall {
    /// Returns the tool's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::GetIssue { .. } => "github_get_issue",
            Self::ListComments { .. } => "github_list_comments",
            Self::GetPullRequest { .. } => "github_get_pull_request",
            Self::CommentIssue { .. } => "github_comment_issue",
            Self::CommentPullRequest { .. } => "github_comment_pull_request",
            Self::ReviewComment { .. } => "github_review_comment",
            Self::UpdateCheckRun { .. } => "github_update_check_run",
            Self::UpdateProjectFields { .. } => "github_update_project_fields",
        }
    }
}

/// A call that came to no request: its tool is not offered to whoever called, or its arguments do not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// The tool's name.
    pub tool: &'static str,
    /// The arguments as they came.
    pub arguments: String,
    /// What is wrong.
    pub reason: String,
}

/// What a tool answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolAnswer {
    /// It was done; this came of it.
    Done {
        /// The result's bytes.
        output: Vec<u8>,
    },
    /// It was not done; the agent can act on this.
    Refused {
        /// Why.
        reason: String,
    },
    /// It was recorded; the agent must end now (TOOL-4b).
    Stop,
}

/// The tools of one invocation. Every call is checked and logged behind this trait.
#[async_trait]
pub trait Tools: Send + Sync {
    /// Calls a tool.
    async fn call(&self, request: ToolRequest) -> Result<ToolAnswer, Fault>;

    /// Logs a call that cannot be made, and counts it like any other (TOOL-4).
    async fn misfit(&self, call: Misfit) -> Result<ToolAnswer, Fault>;

    /// Shows people what the agent says; kept by nobody.
    async fn say(&self, text: &str);
}

/// How an agent ended, by its own account and what was seen of its process; the engine makes the outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentEnd {
    /// It ended normally.
    Finished {
        /// Tokens, from the provider's figures.
        tokens: u64,
    },
    /// It ended with an error.
    Crashed {
        /// What it said.
        reason: String,
        /// Tokens, from the provider's figures.
        tokens: u64,
    },
    /// The provider refused more work for now.
    ProviderLimited {
        /// On which account.
        account: String,
        /// Until when.
        until: Timestamp,
    },
}

/// Runs agents. Calls may be made at once.
#[async_trait]
pub trait Agent: Send + Sync + std::fmt::Debug {
    /// Puts what an agent is told into words: its job, its rules, its context, foreign text marked as data. Says the
    /// same of the same task.
    fn prompt(&self, task: &Task) -> Result<String, Fault>;

    /// Runs one agent to its end, told exactly this; ends its processes when this future is dropped.
    async fn invoke(&self, task: Task, prompt: String, tools: &dyn Tools) -> Result<AgentEnd, Fault>;

    /// The digest of what runs: guest plus agent binary, or scenario (INV-1a).
    fn image_digest(&self, task: &Task) -> String;
}
