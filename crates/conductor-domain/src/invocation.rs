//! One invocation of an agent: what it is asked, and how it can end.
//!
//! Nothing that an agent says decides anything; an outcome is what Conductor itself saw (ARCHITECTURE invariant 10).
//! This module does not know how an agent process is run.

use serde::{Deserialize, Serialize};

use crate::artifact::Artifact;
use crate::digest::Digest;
use crate::id::CommitId;
use crate::plan::{Plan, Review, TestReport};
use crate::role::Role;
use crate::spec::{AgentSpec, ExecutorName, InvocationLimits};
use crate::time::{Millis, Timestamp};

/// What an agent is asked to do; complete, so that its performer has nothing left to choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invocation {
    /// In which role.
    pub role: Role,
    /// To what end.
    pub purpose: Purpose,
    /// How often an agent has had its chance at this purpose in the run, plus one.
    pub attempt: u32,
    /// The commit that the working directory stands at when it begins.
    pub start: CommitId,
    /// What it is given to read, in this order (OWN-2).
    pub context: Vec<Artifact>,
    /// What it is given after that, made when it begins from what these name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
    /// Who runs it.
    pub agents: AgentSpec,
    /// Where its commands run.
    pub executor: ExecutorName,
    /// What it may use up.
    pub limits: InvocationLimits,
    /// Calls that a person approved; each is let through once, whatever asks for approval otherwise (TOOL-4b).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approved: Vec<Digest>,
}

/// A call of a tool that was not made, because policy wants a person to approve it first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallWish {
    /// The tool.
    pub tool: String,
    /// The address of exactly this call: the tool and all its arguments.
    pub call: Digest,
    /// The call as a person reads it.
    pub text: Artifact,
    /// Which policy asks, and why.
    pub reason: String,
}

/// Something that an agent is given to read and that is made when it begins; leaves its maker nothing to choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "source")]
pub enum Source {
    /// What exactly was changed between two commits of the run.
    Diff {
        /// Before.
        from: CommitId,
        /// After.
        to: CommitId,
    },
    /// Which files there are, those first that the issue seems to be about; never what they hold (OWN-4).
    Files {
        /// In which commit.
        commit: CommitId,
    },
    /// What was proposed to the repository before, by anyone.
    PastPullRequests,
    /// Which skills the role has, as the run locked them (SKILL-5).
    Skills,
    /// Why the change as it stands may not leave (SEC-4).
    Barred {
        /// Why.
        reason: String,
    },
}

/// To what end an agent is invoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Write a plan.
    Plan,
    /// Judge the plan.
    ReviewPlan,
    /// Make the change.
    Implement,
    /// Interpret the test output.
    InterpretTests,
    /// Judge the change against the plan.
    ReviewImplementation,
}

impl Purpose {
    /// The role that serves it.
    pub fn role(self) -> Role {
        match self {
            Self::Plan => Role::Planner,
            Self::ReviewPlan | Self::ReviewImplementation => Role::Reviewer,
            Self::Implement => Role::Implementer,
            Self::InterpretTests => Role::Tester,
        }
    }
}

/// What Conductor saw of one invocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvocationReport {
    /// How it ended.
    pub outcome: Outcome,
    /// The tool log's length and head hash, which anchor it in the run's chain (TOOL-4).
    pub tools: ToolLogHead,
    /// What it used up, from our own meters.
    pub usage: Usage,
    /// The envelope and the receipt (INV-1a), where one could be made.
    pub papers: Option<Papers>,
    /// Where work that would have been lost was saved to.
    pub saved: Option<String>,
    /// What it was there for; the run may have moved on meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<Purpose>,
}

/// What is left of an invocation that met a fault of its environment (INV-1a).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remains {
    /// What it was there for.
    pub purpose: Purpose,
    /// The tool log's length and head hash.
    pub tools: ToolLogHead,
    /// The envelope and the receipt, where there was room for them.
    pub papers: Option<Papers>,
}

/// Length and head hash of an invocation's tool log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolLogHead {
    /// How many calls it holds.
    pub calls: u64,
    /// The hash of the last one; of nothing, when there was none.
    pub head: Digest,
}

/// What one invocation used up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Model tokens, in and out.
    pub tokens: u64,
    /// Wall time.
    pub time: Millis,
}

/// The papers of an invocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Papers {
    /// What the agent was told, word for word (OWN-2); absent where it never began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Artifact>,
    /// What came out.
    pub envelope: Artifact,
    /// The proof of what was run with what.
    pub receipt: Artifact,
}

/// How an invocation ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Outcome {
    /// The Planner submitted a valid plan.
    Planned {
        /// The plan.
        plan: Plan,
    },
    /// The Reviewer submitted a valid review.
    Reviewed {
        /// The review.
        review: Review,
    },
    /// The Implementer says that it is done; what it did is seen at the commit.
    Implemented,
    /// The Tester submitted its words.
    Interpreted {
        /// Its words.
        report: TestReport,
    },
    /// The agent asked a human and was ended (TOOL-4b).
    Asked {
        /// What it asked.
        question: String,
    },
    /// The agent made a call that a person must approve, and was ended (TOOL-4b).
    NeedsApproval {
        /// The call.
        wish: Box<CallWish>,
    },
    /// The agent failed at its job.
    Failed {
        /// How.
        failure: AgentFailure,
    },
    /// The agent did what policy forbids outright.
    Violated {
        /// What, and which rule.
        violation: String,
    },
    /// The provider refused more work for now (BEY-5).
    ProviderLimited {
        /// On which account.
        account: String,
        /// Until when.
        until: Timestamp,
    },
    /// Conductor told it to stop, and it did.
    Stopped,
    /// Conductor itself died meanwhile; recovery ended what was left (RUN-12a).
    Interrupted,
}

/// How an agent failed at its job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "failure")]
pub enum AgentFailure {
    /// It ended without submitting what it was asked for.
    NoResult,
    /// It submitted something that is not valid.
    InvalidResult {
        /// Why.
        reason: String,
    },
    /// It ended with an error.
    Crashed {
        /// What it said.
        reason: String,
    },
    /// It used up one of its limits.
    LimitExceeded {
        /// Which one.
        limit: InvocationLimit,
    },
}

/// The limits of one invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InvocationLimit {
    /// Model tokens.
    Tokens,
    /// Wall time.
    Time,
    /// Tool calls.
    ToolCalls,
}

impl std::fmt::Display for AgentFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoResult => f.write_str("ended without a result"),
            Self::InvalidResult { reason } => write!(f, "submitted an invalid result: {reason}"),
            Self::Crashed { reason } => write!(f, "ended with an error: {reason}"),
            Self::LimitExceeded { limit } => f.write_str(match limit {
                InvocationLimit::Tokens => "used up its tokens",
                InvocationLimit::Time => "used up its time",
                InvocationLimit::ToolCalls => "used up its tool calls",
            }),
        }
    }
}
