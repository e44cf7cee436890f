//! Everything that can happen to a run, as it arrives.
//!
//! Inputs that ask are imperative, inputs that tell are past tense. This module does not know who sends them.

use serde::{Deserialize, Serialize};

use crate::artifact::Artifact;
use crate::board::OwnFields;
use crate::deadline::Deadline;
use crate::diff::Inspection;
use crate::digest::Digest;
use crate::egress::EgressDenial;
use crate::fault::Fault;
use crate::forge::{IssueProblem, IssueSnapshot, Notice, PullRequestSnapshot};
use crate::gate::GateKind;
use crate::id::{CommitId, EffectId, OperatorName, PullRequestNumber};
use crate::invocation::{InvocationReport, Remains};
use crate::message::CommentRequest;
use crate::relief::ReliefScope;
use crate::role::Role;
use crate::spec::{Priority, RunSpec};
use crate::testing::{RedFirstOutcome, TestRun};
use crate::time::Timestamp;

/// Something that happens to a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "input")]
pub enum Input {
    /// An operator asks for a new run.
    StartRun {
        /// All that it is started with.
        spec: Box<RunSpec>,
    },
    /// An operator acts on a run.
    Operate {
        /// Who.
        by: OperatorName,
        /// What.
        action: Action,
    },
    /// The kill switch of the instance was turned.
    KillSwitchTurned {
        /// On or off.
        on: bool,
    },
    /// An effect was performed; this is what came of it.
    Performed {
        /// The effect.
        effect: EffectId,
        /// What came of it.
        report: Box<Report>,
    },
    /// An effect met a fault.
    Faulted {
        /// The effect.
        effect: EffectId,
        /// How often it has been attempted.
        attempt: u32,
        /// The fault.
        fault: Fault,
        /// What is left of it, if it was an invocation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remains: Option<Box<Remains>>,
    },
    /// A running agent asks for a comment at the forge (TOOL-4a).
    RequestComment {
        /// The invocation that asks.
        invocation: EffectId,
        /// What it wants to say.
        comment: CommentRequest,
    },
    /// A running agent asks for Conductor's own fields on the board to be set (TOOL-3, TOOL-4a).
    RequestFields {
        /// The invocation that asks.
        invocation: EffectId,
        /// The agent's role.
        role: Role,
        /// What they shall say.
        fields: OwnFields,
    },
    /// Code in a sandbox asked for the network and was denied (BEY-6).
    EgressDenied {
        /// The effect that owns the sandbox.
        effect: EffectId,
        /// What was asked for, and why not.
        denial: Box<EgressDenial>,
    },
    /// The forge hinted that something changed.
    ForgeNoticed {
        /// The hint.
        notice: Notice,
    },
    /// A time that the run waited for has come.
    DeadlinePassed {
        /// What it waited for.
        deadline: Deadline,
    },
}

/// What an operator can do to a run (RUN-7, RUN-11).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "action")]
pub enum Action {
    /// Lets the run pass a gate.
    Approve {
        /// Which gate.
        gate: GateKind,
        /// The digest of what was looked at; anything else is refused (BEY-1).
        subject: Digest,
        /// Said with it.
        comment: Option<String>,
    },
    /// Sends the work back.
    Revise {
        /// Which gate.
        gate: GateKind,
        /// The digest of what was looked at.
        subject: Digest,
        /// What must change, kept.
        feedback: Artifact,
    },
    /// Calls the run off at a gate.
    Reject {
        /// Which gate.
        gate: GateKind,
        /// The digest of what was looked at.
        subject: Digest,
        /// Said with it.
        comment: Option<String>,
    },
    /// Answers a question of an agent.
    Answer {
        /// The question's id.
        question: EffectId,
        /// The answer, kept.
        answer: Artifact,
    },
    /// Lets the current effect finish and starts nothing new.
    Pause,
    /// Takes the operator's pause away.
    Resume,
    /// Calls the run off.
    Cancel {
        /// Why.
        comment: Option<String>,
    },
    /// Starts the current phase over, with fresh counters.
    Retry,
    /// Gives a held run up.
    Fail {
        /// Why.
        comment: Option<String>,
    },
    /// Moves the run in the queue.
    Reprioritize {
        /// Where to.
        priority: Priority,
    },
    /// Lifts one policy's no to one call for a while (SEC-1).
    GrantRelief {
        /// What for.
        scope: ReliefScope,
        /// Why.
        justification: String,
        /// Until when.
        until: Timestamp,
    },
    /// Takes an override back.
    RevokeRelief {
        /// Which, by its number.
        number: u32,
    },
}

/// What came of an effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Report {
    /// The issue was read.
    IssueRead {
        /// What it said.
        issue: IssueSnapshot,
    },
    /// The issue cannot be worked on.
    IssueUnavailable {
        /// Why.
        problem: IssueProblem,
    },
    /// The workspace stands.
    WorkspacePrepared {
        /// The commit it starts from.
        base: CommitId,
    },
    /// There can be no workspace.
    WorkspaceImpossible {
        /// Why.
        why: String,
    },
    /// The invocation ended.
    Invoked {
        /// How.
        report: InvocationReport,
    },
    /// The work was committed.
    WorkCommitted {
        /// The new commit.
        commit: CommitId,
        /// Its tree.
        tree: CommitId,
        /// What it changes in all, rendered for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<Artifact>,
    },
    /// There was nothing to commit.
    NothingToCommit,
    /// The test command ran, or was found impossible to run.
    TestsRan {
        /// What was seen.
        tests: TestRun,
    },
    /// New tests ran on the base.
    RedFirstChecked {
        /// What they did there.
        outcome: RedFirstOutcome,
    },
    /// The work stands on the new base.
    Rebased {
        /// The new base.
        base: CommitId,
        /// The new head.
        head: CommitId,
        /// What it changes in all, rendered for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<Artifact>,
    },
    /// The work does not fit the new base.
    RebaseConflicted {
        /// Where, kept as feedback.
        feedback: Artifact,
    },
    /// The commit was inspected.
    DiffInspected {
        /// What was found.
        inspection: Inspection,
    },
    /// The commit is at the forge.
    Pushed {
        /// The commit.
        commit: CommitId,
    },
    /// The pull request is there.
    PullRequestOpened {
        /// Its number.
        number: PullRequestNumber,
        /// Its page.
        url: String,
    },
    /// The check run is written.
    CheckPublished,
    /// The pull request was merged at the commit that was asked for.
    PullRequestMerged,
    /// The pull request was not merged.
    MergeRefused {
        /// Why.
        why: String,
    },
    /// The pull request was read.
    PullRequestRead {
        /// What it said.
        pull_request: PullRequestSnapshot,
    },
    /// The pull request was closed.
    PullRequestClosed,
    /// The comment is there.
    CommentPosted {
        /// Its page.
        url: String,
    },
    /// The fields on the board are set.
    FieldsUpdated,
    /// Everything that the run held was given back.
    CleanedUp {
        /// Where unfinished work was saved to.
        saved: Option<String>,
        /// The branch that stays at the forge, because somebody else pushed to it or it may not be deleted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch_left: Option<String>,
    },
    /// The effect was told to stop before it had come to anything, and did.
    Stopped,
    /// Conductor died while the effect ran; recovery found it and undid what it left (RUN-12a).
    Interrupted {
        /// Where unfinished work was saved to.
        saved: Option<String>,
    },
}

/// The verdict of the policy engine on an input, reached before `decide`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub enum PolicyVerdict {
    /// Nothing speaks against it.
    Allow,
    /// It is forbidden.
    Deny {
        /// By which rule and why.
        reason: String,
    },
}
