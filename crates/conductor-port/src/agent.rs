//! Agents: something that works for a while through tools and ends.
//!
//! An agent acts only through the [`Tools`] it is given; what it says beside that is a stream for people to watch.
//! This port does not know how tools are served.

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::id::{EffectId, RunId};
use conductor_domain::invocation::Invocation;
use conductor_domain::plan::{PlanDraft, ReviewDraft, TestReportDraft};
use conductor_domain::time::Timestamp;

/// What an agent is given.
#[derive(Debug, Clone)]
pub struct Task {
    /// The effect that invokes it.
    pub effect: EffectId,
    /// The run.
    pub run: RunId,
    /// What it is asked.
    pub invocation: Invocation,
    /// The context's bytes, in the order of the invocation.
    pub context: Vec<Vec<u8>>,
    /// The scenario's bytes, for a scripted agent.
    pub scenario: Option<Vec<u8>>,
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
    /// Comments at the forge.
    Comment {
        /// The words.
        text: String,
    },
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
    /// Runs one agent to its end; ends its processes when this future is dropped.
    async fn invoke(&self, task: Task, tools: &dyn Tools) -> Result<AgentEnd, Fault>;

    /// The digest of what runs: guest plus agent binary, or scenario (INV-1a).
    fn image_digest(&self, task: &Task) -> String;
}
