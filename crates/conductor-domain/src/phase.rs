//! Where a run stands; each phase owns the data that it cannot be without (RUN-1).
//!
//! This module does not know how a run gets from one phase to the next.

use serde::{Deserialize, Serialize};

use crate::artifact::Artifact;
use crate::diff::{Inspection, Weighed};
use crate::forge::{IssueSnapshot, PullRequest};
use crate::gate::Gate;
use crate::id::{CommitId, OperatorName};
use crate::plan::{Plan, Review};
use crate::testing::TestRun;

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "phase")]
pub enum Phase {
    /// Waits for its place, its issue and its workspace.
    Pending(SetUp),
    /// A plan is being written and judged by agents.
    Planning(Planning),
    /// A human judges the plan.
    AwaitingPlanApproval(PlanGate),
    /// The plan is being carried out.
    Executing(Executing),
    /// The work is on its way to the forge.
    Proposing(Proposing),
    /// A human judges the pull request.
    AwaitingMerge(AwaitingMerge),
    /// Merged.
    Completed,
    /// Called off.
    Cancelled {
        /// By whom and why.
        reason: EndReason,
    },
    /// Given up.
    Failed {
        /// By whom and why.
        reason: EndReason,
    },
}

/// How far the set-up is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "step")]
pub enum SetUp {
    /// The issue is being read.
    ReadingIssue,
    /// The workspace is being made.
    PreparingWorkspace,
}

/// A planning cycle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planning {
    /// How many plans this cycle has seen rejected.
    pub revisions: u32,
    /// What people have asked of the plan, in this cycle and the ones before; every draft answers to all of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Artifact>,
    /// What became of the drafts before, and why.
    pub feedback: Vec<Artifact>,
    /// Who is at work.
    pub step: PlanningStep,
}

/// Who is at work in planning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "step")]
pub enum PlanningStep {
    /// The Planner.
    Drafting,
    /// The Reviewer.
    Reviewing {
        /// The plan under review.
        plan: Plan,
    },
    /// Conductor, which reads the issue once more before a human judges the plan beside it (S-50).
    Confirming {
        /// The plan that passed its review.
        plan: Plan,
        /// The review.
        review: Review,
    },
}

/// A plan before a human.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanGate {
    /// The question.
    pub gate: Gate,
    /// The plan.
    pub plan: Plan,
    /// What the Reviewer said about it.
    pub review: Review,
    /// The issue as it is shown beside the plan (S-50).
    pub issue: IssueSnapshot,
    /// What people have asked of the plan so far, for the next one if it is sent back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Artifact>,
}

/// A plan that a human approved, with the issue as it stood then (S-50).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovedPlan {
    /// The plan.
    pub plan: Plan,
    /// The issue of approval time.
    pub issue: IssueSnapshot,
    /// Who approved it.
    pub by: OperatorName,
    /// What people, and the checks of the pull request, have asked of the work since; every attempt answers to all of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub demands: Vec<Artifact>,
}

/// The plan being carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Executing {
    /// What was approved.
    pub approved: ApprovedPlan,
    /// How many attempts failed before this one.
    pub retries: u32,
    /// Why the attempt before this one failed.
    pub feedback: Vec<Artifact>,
    /// The change that this attempt replaces, because it may not leave; nothing once the next one is committed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub barred: Option<Barred>,
    /// Who is at work.
    pub step: ExecutingStep,
}

impl Executing {
    /// At a step, of which nothing is known yet but what was approved.
    pub(crate) fn at(step: ExecutingStep, approved: ApprovedPlan, retries: u32) -> Self {
        Self {
            approved,
            retries,
            feedback: vec![],
            barred: None,
            step,
        }
    }
}

/// A change that may not leave, and where the next one begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Barred {
    /// Why it may not leave.
    pub reason: String,
    /// The commit that the next one is put on: a push carries every commit on its way, also what was taken out again.
    pub onto: CommitId,
}

/// Who is at work in execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "step")]
pub enum ExecutingStep {
    /// The Implementer.
    Implementing,
    /// Conductor commits what it did.
    Committing,
    /// Conductor moves the work onto a base that went ahead (BEY-3).
    Rebasing,
    /// Conductor runs the test command.
    Testing {
        /// What follows when it passes.
        then: AfterTests,
    },
    /// Conductor runs new tests on the base (BEY-2).
    CheckingRedFirst {
        /// The run that passed.
        tests: TestRun,
    },
    /// The Tester interprets.
    Interpreting {
        /// What it interprets.
        tests: TestRun,
    },
    /// The Reviewer judges.
    Reviewing {
        /// The run that passed.
        tests: TestRun,
    },
}

/// What follows passed tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterTests {
    /// The work has not been reviewed.
    Review,
    /// The work was reviewed; only its base changed.
    Propose,
}

/// The work on its way to the forge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposing {
    /// What was approved.
    pub approved: ApprovedPlan,
    /// The run that passed on the commit being proposed.
    pub tests: TestRun,
    /// How many attempts failed before.
    pub retries: u32,
    /// What is known of the change, once it was inspected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weighed: Option<Weighed>,
    /// What is under way.
    pub step: ProposingStep,
}

/// What is under way on the way to the forge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "step")]
pub enum ProposingStep {
    /// The exact commit is inspected.
    Inspecting,
    /// A human judges what the inspection found.
    AwaitingApproval {
        /// The question.
        gate: Gate,
        /// What was found.
        inspection: Box<Inspection>,
    },
    /// The commit is pushed.
    Pushing,
    /// The pull request is opened.
    OpeningPullRequest,
    /// The check run is written.
    PublishingCheck,
}

/// A pull request before a human.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwaitingMerge {
    /// What was approved.
    pub approved: ApprovedPlan,
    /// The run that passed on the proposed commit.
    pub tests: TestRun,
    /// The pull request.
    pub pull_request: PullRequest,
    /// What is known of the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weighed: Option<Weighed>,
    /// The commit that a policy lets Conductor merge, while it does (RUN-14).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merging: Option<CommitId>,
    /// What speaks against it, while it is held for that; the Implementer is told, if a human asks for another try.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feedback: Vec<Artifact>,
}

/// Why a run ended early.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reason")]
pub enum EndReason {
    /// An operator said so.
    Operator {
        /// Who.
        by: OperatorName,
        /// Why, where they said it.
        comment: Option<String>,
    },
    /// The plan was rejected.
    PlanRejected {
        /// By whom.
        by: OperatorName,
    },
    /// The change was rejected.
    DiffRejected {
        /// By whom.
        by: OperatorName,
    },
    /// A call of a tool was rejected, and the run with it.
    CallRejected {
        /// By whom.
        by: OperatorName,
    },
    /// The pull request was closed without a merge.
    PullRequestClosed,
    /// The set-up can never succeed.
    SetUpImpossible {
        /// Why.
        why: String,
    },
}

impl std::fmt::Display for EndReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Operator { by, comment: None } => write!(f, "by {by}"),
            Self::Operator {
                by,
                comment: Some(comment),
            } => write!(f, "by {by}: {comment}"),
            Self::PlanRejected { by } => write!(f, "{by} rejected the plan"),
            Self::DiffRejected { by } => write!(f, "{by} rejected the change"),
            Self::CallRejected { by } => write!(f, "{by} rejected a call of a tool"),
            Self::PullRequestClosed => f.write_str("the pull request was closed without a merge"),
            Self::SetUpImpossible { why } => f.write_str(why),
        }
    }
}

/// The name of a phase, without its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseName {
    /// See [`Phase::Pending`].
    Pending,
    /// See [`Phase::Planning`].
    Planning,
    /// See [`Phase::AwaitingPlanApproval`].
    AwaitingPlanApproval,
    /// See [`Phase::Executing`].
    Executing,
    /// See [`Phase::Proposing`].
    Proposing,
    /// See [`Phase::AwaitingMerge`].
    AwaitingMerge,
    /// See [`Phase::Completed`].
    Completed,
    /// See [`Phase::Cancelled`].
    Cancelled,
    /// See [`Phase::Failed`].
    Failed,
}

impl PhaseName {
    /// Every phase, in order.
    pub const ALL: [Self; 9] = [
        Self::Pending,
        Self::Planning,
        Self::AwaitingPlanApproval,
        Self::Executing,
        Self::Proposing,
        Self::AwaitingMerge,
        Self::Completed,
        Self::Cancelled,
        Self::Failed,
    ];

    /// The name in records and on pages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Planning => "planning",
            Self::AwaitingPlanApproval => "awaiting_plan_approval",
            Self::Executing => "executing",
            Self::Proposing => "proposing",
            Self::AwaitingMerge => "awaiting_merge",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
        }
    }

    /// Parses a written name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|name| name.as_str() == text)
    }

    /// Tells whether a run can never leave it.
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Completed | Self::Cancelled | Self::Failed => true,
            Self::Pending
            | Self::Planning
            | Self::AwaitingPlanApproval
            | Self::Executing
            | Self::Proposing
            | Self::AwaitingMerge => false,
        }
    }
}

impl std::fmt::Display for PhaseName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Phase {
    /// Its name.
    pub fn name(&self) -> PhaseName {
        match self {
            Self::Pending(_) => PhaseName::Pending,
            Self::Planning(_) => PhaseName::Planning,
            Self::AwaitingPlanApproval(_) => PhaseName::AwaitingPlanApproval,
            Self::Executing(_) => PhaseName::Executing,
            Self::Proposing(_) => PhaseName::Proposing,
            Self::AwaitingMerge(_) => PhaseName::AwaitingMerge,
            Self::Completed => PhaseName::Completed,
            Self::Cancelled { .. } => PhaseName::Cancelled,
            Self::Failed { .. } => PhaseName::Failed,
        }
    }

    /// Tells whether a run can never leave it.
    pub fn is_terminal(&self) -> bool {
        self.name().is_terminal()
    }

    /// The open gate, where a human is asked something.
    pub fn gate(&self) -> Option<&Gate> {
        match self {
            Self::AwaitingPlanApproval(waiting) => Some(&waiting.gate),
            Self::Proposing(Proposing {
                step: ProposingStep::AwaitingApproval { gate, .. },
                ..
            }) => Some(gate),
            Self::Pending(_)
            | Self::Planning(_)
            | Self::Executing(_)
            | Self::Proposing(_)
            | Self::AwaitingMerge(_)
            | Self::Completed
            | Self::Cancelled { .. }
            | Self::Failed { .. } => None,
        }
    }

    /// What people have asked of the plan, which goes along from one planning cycle to the next.
    pub(crate) fn asked_of_the_plan(&self) -> Vec<Artifact> {
        match self {
            Self::Planning(planning) => planning.asked.clone(),
            Self::AwaitingPlanApproval(waiting) => waiting.asked.clone(),
            Self::Pending(_)
            | Self::Executing(_)
            | Self::Proposing(_)
            | Self::AwaitingMerge(_)
            | Self::Completed
            | Self::Cancelled { .. }
            | Self::Failed { .. } => vec![],
        }
    }

    /// The approved plan and the retries that go along from phase to phase.
    pub(crate) fn carried(&self) -> Option<(ApprovedPlan, u32)> {
        match self {
            Self::Executing(executing) => Some((executing.approved.clone(), executing.retries)),
            Self::Proposing(proposing) => Some((proposing.approved.clone(), proposing.retries)),
            Self::AwaitingMerge(waiting) => Some((waiting.approved.clone(), 0)),
            Self::Pending(_)
            | Self::Planning(_)
            | Self::AwaitingPlanApproval(_)
            | Self::Completed
            | Self::Cancelled { .. }
            | Self::Failed { .. } => None,
        }
    }
}

/// The commits that a run stands on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    /// The commit of the base branch that the work starts from.
    pub base: CommitId,
    /// The newest commit of the run's branch; the base until there is one.
    pub head: CommitId,
    /// What the run's branch at the forge was last known to be.
    pub pushed: Option<CommitId>,
}
