//! What is now true of a run, in the past tense, for ever.
//!
//! A new event is a new variant; an old one is never changed, because old logs hold it.
//! This module does not know what follows from an event: that is `evolve`.

use serde::{Deserialize, Serialize};

use crate::artifact::Artifact;
use crate::board::OwnFields;
use crate::diff::Inspection;
use crate::digest::Digest;
use crate::effect::EffectKind;
use crate::egress::EgressDenial;
use crate::forge::{HumanReview, IssueSnapshot, PullRequest};
use crate::gate::{Gate, GateKind};
use crate::hold::{Hold, HoldKind};
use crate::id::{CommitId, EffectId, OperatorName};
use crate::invocation::{CallWish, Papers, Purpose, ToolLogHead};
use crate::message::{CheckNote, Message};
use crate::phase::{AfterTests, Barred, EndReason};
use crate::plan::{Plan, Review, TestReport};
use crate::relief::Relief;
use crate::role::Role;
use crate::spec::{Priority, RunSpec};
use crate::testing::{RedFirstOutcome, TestRun};
use crate::time::Timestamp;

/// Something that is now true of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
#[allow(missing_docs, reason = "the fields carry the names of their types")]
pub enum Event {
    /// The run exists.
    RunStarted { spec: Box<RunSpec> },
    /// The issue was read.
    IssueSnapshotted { issue: IssueSnapshot },
    /// The workspace stands.
    WorkspacePrepared { base: CommitId },
    /// A planning cycle began; the counters start anew.
    PlanningBegan { feedback: Vec<Artifact> },
    /// The Planner submitted a plan.
    PlanDrafted { plan: Plan },
    /// The Reviewer judged it.
    PlanReviewed { review: Review },
    /// The Planner must revise this plan, and answer to this.
    PlanSentBack {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan: Option<Artifact>,
        feedback: Artifact,
    },
    /// The plan stands before a human.
    PlanProposed {
        gate: Gate,
        plan: Plan,
        review: Review,
        issue: IssueSnapshot,
    },
    /// A human approved what a gate showed.
    GateApproved {
        kind: GateKind,
        subject: Digest,
        by: OperatorName,
        comment: Option<String>,
    },
    /// A human sent back what a gate showed.
    GateRevised {
        kind: GateKind,
        subject: Digest,
        by: OperatorName,
        feedback: Artifact,
    },
    /// A human rejected what a gate showed.
    GateRejected {
        kind: GateKind,
        subject: Digest,
        by: OperatorName,
        comment: Option<String>,
    },
    /// What a gate showed changed, so that it asks anew.
    GateReopened { gate: Gate, issue: IssueSnapshot },
    /// The approved plan is being carried out; the counters start anew.
    ExecutionBegan { by: OperatorName },
    /// Work that was already proposed is taken up again.
    ReworkBegan {
        feedback: Vec<Artifact>,
        /// What is asked of the work from now on, however many attempts it takes.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        demands: Vec<Artifact>,
        /// The change that is not to leave, where that is why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        barred: Option<Barred>,
    },
    /// The Implementer is done; its work is being committed.
    ImplementationFinished,
    /// The work was committed.
    WorkCommitted {
        commit: CommitId,
        tree: CommitId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<Artifact>,
    },
    /// The work is being moved onto a newer base.
    RebaseBegan,
    /// The work stands on the new base.
    WorkRebased {
        base: CommitId,
        head: CommitId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<Artifact>,
    },
    /// The test command is being run.
    TestingBegan { commit: CommitId, then: AfterTests },
    /// The test command ran, or could not; its ending says which.
    TestsRan { tests: TestRun, then: AfterTests },
    /// New tests are being run on the base.
    RedFirstBegan { tests: TestRun },
    /// New tests ran on the base.
    RedFirstChecked { outcome: RedFirstOutcome },
    /// The Tester's words, and whether they contradict what was seen.
    TestsInterpreted {
        report: Option<TestReport>,
        contradicts: bool,
    },
    /// The Reviewer is asked about the work.
    ImplementationReviewBegan { tests: TestRun },
    /// The Reviewer judged the work.
    ImplementationReviewed { review: Review },
    /// The attempt failed; the Implementer starts over.
    AttemptFailed { retries: u32, feedback: Vec<Artifact> },
    /// The work is on its way to the forge.
    ProposalBegan { tests: TestRun },
    /// The exact commit was inspected.
    DiffInspected { inspection: Inspection },
    /// The inspection needs a human.
    DiffGateOpened { gate: Gate, inspection: Inspection },
    /// Nothing stands in the way of a push.
    DiffCleared,
    /// A call of a tool waits for a human (TOOL-4b).
    CallGateOpened { gate: Gate, wish: CallWish },
    /// The commit is at the forge.
    Pushed { commit: CommitId },
    /// The pull request is there.
    PullRequestOpened { pull_request: PullRequest },
    /// The pull request's head is the newest commit, with a check run on it.
    MergeAwaited,
    /// A policy lets Conductor merge exactly this commit.
    MergeBegan { head: CommitId, reason: String },
    /// The forge took the merge, or refused it.
    MergeEnded {
        head: CommitId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refused: Option<String>,
    },
    /// A human asked for changes on the pull request.
    ChangesRequested { review: HumanReview },
    /// A human asked for changes on another commit than the one that is proposed; it is not feedback for this one.
    ReviewSetAside { review: HumanReview },
    /// Checks of others failed on the pull request.
    ChecksFailed {
        head: CommitId,
        names: Vec<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        feedback: Option<Artifact>,
    },
    /// The base branch went ahead.
    BaseMoved { head: CommitId },
    /// The forge hinted that the base branch went ahead, and there was no pull request to read where to.
    BaseAnnounced,
    /// The pull request was merged.
    PullRequestMerged {
        by: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        other_head: Option<CommitId>,
    },
    /// The pull request was closed without a merge.
    PullRequestClosed,
    /// The run is done.
    RunCompleted,
    /// The run was called off.
    RunCancelled { reason: EndReason },
    /// The run was given up.
    RunFailed { reason: EndReason },
    /// Everything that the run held was given back; nothing follows.
    CleanedUp { saved: Option<String> },
    /// Giving everything back was given up until a person asks for another try.
    CleanUpFailed { reason: String },
    /// The run stands still for one more reason.
    HoldPlaced { hold: Hold },
    /// One reason to stand still is gone.
    HoldReleased { kind: HoldKind },
    /// A human answered a question.
    QuestionAnswered {
        question: EffectId,
        by: OperatorName,
        answer: Artifact,
    },
    /// The current phase starts over.
    PhaseRetried { by: OperatorName },
    /// The run moved in the queue.
    Reprioritized { priority: Priority },
    /// An operator lifted one policy's no to one call for a while.
    ReliefGranted { relief: Relief },
    /// An operator took that back.
    ReliefRevoked { number: u32, by: OperatorName },
    /// An invocation ended; its tool log and papers are anchored here.
    /// `counts` is whether the agent got its chance: a stopped or interrupted one starts over with the same number.
    InvocationEnded {
        effect: EffectId,
        purpose: Purpose,
        counts: bool,
        tools: ToolLogHead,
        papers: Option<Papers>,
    },
    /// An agent failed at its job and is asked again, or no longer.
    AgentFailed {
        purpose: Purpose,
        failures: u32,
        reason: String,
    },
    /// Conductor died during an effect.
    Interrupted {
        effect: EffectId,
        interruptions: u32,
        saved: Option<String>,
    },
    /// An effect was asked for; its digest lets a replay compare it, and the chain cover it.
    EffectRequested {
        effect: EffectId,
        kind: EffectKind,
        digest: Digest,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        must_be_heard: bool,
    },
    /// An effect came to its end.
    EffectSettled { effect: EffectId },
    /// An effect will be repeated.
    EffectRetryScheduled {
        effect: EffectId,
        attempt: u32,
        at: Timestamp,
        reason: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        overdue: bool,
    },
    /// An effect was told to stop.
    EffectStopRequested { effect: EffectId },
    /// An environment was broken and is made anew (RUN-12, ENV-6).
    EnvironmentRecreated { reason: String },
    /// A message was sent at once; the throttle remembers when.
    MessageSent { at: Timestamp },
    /// A message waits for the throttle.
    MessageDeferred { message: Box<Message> },
    /// Messages that waited were sent as one.
    MessagesFlushed { count: u32 },
    /// An agent's words will stand in the check run of the next proposed commit.
    CheckNoted { note: CheckNote },
    /// An agent wants fields on the board to say this; they are set together when the last change is done.
    FieldsWanted { role: Role, fields: OwnFields },
    /// An agent's wish to comment was denied.
    CommentDenied { invocation: EffectId, reason: String },
    /// Code in a sandbox was denied the network; an operator may grant it for the next time.
    EgressDenied { effect: EffectId, denial: EgressDenial },
    /// A human was reminded.
    Reminded { at: Timestamp },
    /// The pull request was looked at. Only early logs hold it: by now a look without news leaves no trace.
    PullRequestSeen { at: Timestamp },
    /// Something was noted that changes nothing.
    Noted { what: String },
}

impl Event {
    /// The name in records and on pages.
    pub fn name(&self) -> &'static str {
        macro_rules! names {
            ($($variant:ident => $name:literal),* $(,)?) => {
                match self { $(Self::$variant { .. } => $name,)* }
            };
        }
        names! {
            RunStarted => "run_started", IssueSnapshotted => "issue_snapshotted",
            WorkspacePrepared => "workspace_prepared", PlanningBegan => "planning_began",
            PlanDrafted => "plan_drafted", PlanReviewed => "plan_reviewed", PlanSentBack => "plan_sent_back",
            PlanProposed => "plan_proposed", GateApproved => "gate_approved", GateRevised => "gate_revised",
            GateRejected => "gate_rejected", GateReopened => "gate_reopened", ExecutionBegan => "execution_began",
            ReworkBegan => "rework_began", ImplementationFinished => "implementation_finished",
            WorkCommitted => "work_committed", RebaseBegan => "rebase_began", WorkRebased => "work_rebased",
            TestingBegan => "testing_began", TestsRan => "tests_ran", RedFirstBegan => "red_first_began",
            RedFirstChecked => "red_first_checked",
            TestsInterpreted => "tests_interpreted", ImplementationReviewBegan => "implementation_review_began",
            ImplementationReviewed => "implementation_reviewed", AttemptFailed => "attempt_failed",
            ProposalBegan => "proposal_began", DiffInspected => "diff_inspected",
            DiffGateOpened => "diff_gate_opened", DiffCleared => "diff_cleared",
            CallGateOpened => "call_gate_opened", Pushed => "pushed",
            PullRequestOpened => "pull_request_opened", MergeAwaited => "merge_awaited",
            MergeBegan => "merge_began", MergeEnded => "merge_ended",
            ChangesRequested => "changes_requested", ReviewSetAside => "review_set_aside", ChecksFailed => "checks_failed", BaseMoved => "base_moved",
            BaseAnnounced => "base_announced",
            PullRequestMerged => "pull_request_merged", PullRequestClosed => "pull_request_closed",
            RunCompleted => "run_completed", RunCancelled => "run_cancelled", RunFailed => "run_failed",
            CleanedUp => "cleaned_up", CleanUpFailed => "clean_up_failed", HoldPlaced => "hold_placed", HoldReleased => "hold_released",
            QuestionAnswered => "question_answered", PhaseRetried => "phase_retried",
            Reprioritized => "reprioritized", ReliefGranted => "relief_granted", ReliefRevoked => "relief_revoked", InvocationEnded => "invocation_ended",
            AgentFailed => "agent_failed", Interrupted => "interrupted", EffectRequested => "effect_requested",
            EffectSettled => "effect_settled", EffectRetryScheduled => "effect_retry_scheduled",
            EffectStopRequested => "effect_stop_requested", EnvironmentRecreated => "environment_recreated",
            MessageSent => "message_sent", MessageDeferred => "message_deferred",
            MessagesFlushed => "messages_flushed", CommentDenied => "comment_denied",
            CheckNoted => "check_noted", FieldsWanted => "fields_wanted", EgressDenied => "egress_denied", Reminded => "reminded",
            PullRequestSeen => "pull_request_seen", Noted => "noted",
        }
    }
}
