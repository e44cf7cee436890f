//! What a run was started with; fixed for its whole life, so that a later change of settings changes no run.
//!
//! This module does not know where settings are edited.

use serde::{Deserialize, Serialize};

use crate::board::BoardNumber;
use crate::digest::Digest;
use crate::id::{IssueNumber, OperatorName, ProjectId, RepoId, RunId};
use crate::policy::LockedPolicy;
use crate::skill::SkillLock;
use crate::staff::Rank;
use crate::time::Millis;

/// Everything that was decided about a run before it began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSpec {
    /// The run.
    pub run: RunId,
    /// The project it belongs to.
    pub project: ProjectId,
    /// The one repository it works on.
    pub repo: RepoRef,
    /// The one issue it answers.
    pub issue: IssueNumber,
    /// Who started it.
    pub started_by: OperatorName,
    /// What they might do when they did; early runs do not say.
    #[serde(default = "unsaid_rank", skip_serializing_if = "is_unsaid")]
    pub starter_rank: Rank,
    /// Position in the queue: a higher one goes first.
    pub priority: Priority,
    /// The argv that decides whether the work is right (S-19: from the operator, never from the repository).
    pub test_command: Vec<String>,
    /// Which agents work, and through which model endpoint.
    pub agents: AgentSpec,
    /// Where commands run; always named, never guessed (EXEC-1).
    pub executor: ExecutorName,
    /// What it may use up.
    pub limits: Limits,
    /// The policy that it is held to.
    pub policy: PolicyVersion,
    /// The address of the run's page, for links in messages.
    pub page: String,
    /// The skills of its roles, locked when it started (SKILL-5).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<SkillLock>,
    /// The texts of its policies, locked when it started; where there are none, Conductor's own count (SEC-1).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<LockedPolicy>,
    /// The board that its agents may keep Conductor's own fields on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub board: Option<BoardNumber>,
}

fn unsaid_rank() -> Rank {
    Rank::Operator
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_unsaid(rank: &Rank) -> bool {
    *rank == unsaid_rank()
}

impl RunSpec {
    /// The branch that the run works on.
    pub fn branch(&self) -> String {
        format!("conductor/run-{}", self.run)
    }
}

/// A repository at a forge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepoRef {
    /// The forge's numeric id; matching goes by this (S-53).
    pub id: RepoId,
    /// The forge's host, with its port where it has one.
    pub host: String,
    /// The owner's login.
    pub owner: String,
    /// The repository's name.
    pub name: String,
    /// Where git fetches from and pushes to; without credentials.
    pub clone_url: String,
    /// The branch that the work is based on and proposed for.
    pub base_branch: String,
}

impl std::fmt::Display for RepoRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)
    }
}

/// Position in the queue, 1 (last) to 10 (first).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Priority(u8);

impl Priority {
    /// Neither early nor late.
    pub const NORMAL: Self = Self(5);

    /// Makes a priority; there is none outside 1 to 10.
    pub fn new(value: u8) -> Option<Self> {
        (1..=10).contains(&value).then_some(Self(value))
    }

    /// The number, 1 to 10.
    pub fn value(self) -> u8 {
        self.0
    }
}

impl TryFrom<u8> for Priority {
    type Error = String;
    fn try_from(value: u8) -> Result<Self, String> {
        Self::new(value).ok_or_else(|| format!("priority {value} is not between 1 and 10"))
    }
}

impl From<Priority> for u8 {
    fn from(priority: Priority) -> u8 {
        priority.0
    }
}

/// Which agents work on the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSpec {
    /// The back end: `scripted`, later `claude`, `codex`, `api`.
    pub backend: AgentBackend,
    /// Which model endpoint is behind it; always explicit (INV-2).
    pub mode: Mode,
}

/// What runs an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "backend")]
pub enum AgentBackend {
    /// Plays a scenario, word for word.
    Scripted {
        /// The content address of the scenario, kept as an artifact.
        scenario: Digest,
    },
}

/// Whether a real model is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// A scripted endpoint: byte-stable, no network, no secret.
    Mock,
    /// A real model.
    Real,
}

/// The name of an executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutorName {
    /// Processes in a sandbox of namespaces on this machine.
    Local,
    /// Containers, one per sandbox.
    Docker,
    /// Plain processes without a sandbox; refused outside the demo and tests.
    UnsafePlain,
}

impl ExecutorName {
    /// The name that an operator writes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Docker => "docker",
            Self::UnsafePlain => "unsafe-plain",
        }
    }
}

/// The version of the policy that a run is held to: the address of all texts that count together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PolicyVersion(pub String);

/// What a run may use up; enforced by Conductor, not by trusting an agent (RUN-13).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// How often the Planner may revise after its reviewer said no.
    pub plan_revisions: u32,
    /// How often the Implementer may start over after failed tests or a rejected review.
    pub implementation_retries: u32,
    /// How often an agent that failed at its job is asked again.
    pub agent_retries: u32,
    /// How often an interrupted invocation is started again (RUN-12a).
    pub interruptions: u32,
    /// How often a faulted effect is repeated.
    pub effect_retries: u32,
    /// What one invocation may use up.
    pub invocation: InvocationLimits,
    /// How long the test command may take.
    pub test_time: Millis,
    /// How long a human may leave a gate or a question before being reminded.
    pub reminder: Millis,
    /// How often a waiting pull request is looked at without a webhook.
    pub poll: Millis,
    /// Whether new tests must fail on the base (BEY-2).
    pub red_first: RedFirst,
}

/// What one agent invocation may use up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvocationLimits {
    /// Model tokens, in and out.
    pub tokens: u64,
    /// Wall time.
    pub time: Millis,
    /// Calls of tools.
    pub tool_calls: u32,
}

/// What happens with tests that the run added or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RedFirst {
    /// They are not run on the base.
    Off,
    /// They are run on the base and the outcome is recorded.
    Record,
    /// They must fail on the base, or the Implementer starts over.
    Require,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            plan_revisions: 3,
            implementation_retries: 3,
            agent_retries: 2,
            interruptions: 3,
            effect_retries: 8,
            invocation: InvocationLimits {
                tokens: 2_000_000,
                time: Millis::minutes(30),
                tool_calls: 500,
            },
            test_time: Millis::minutes(15),
            reminder: Millis::hours(24),
            poll: Millis::seconds(60),
            red_first: RedFirst::Off,
        }
    }
}
