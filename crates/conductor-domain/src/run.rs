//! A run as its events tell it.
//!
//! Built by `evolve` alone. This module does not know what comes next: that is `decide`.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::artifact::Artifact;
use crate::board::OwnFields;
use crate::diff::Weighed;
use crate::effect::EffectKind;
use crate::forge::{IssueSnapshot, PullRequest};
use crate::gate::{CallGate, Gate};
use crate::hold::{HoldKind, Holds};
use crate::id::{CommitId, EffectId, RunId};
use crate::invocation::{CallWish, Purpose};
use crate::message::CheckNote;
use crate::phase::{Phase, Proposing, ProposingStep, Workspace};
use crate::relief::Relief;
use crate::spec::{Priority, RunSpec};
use crate::throttle::Throttle;
use crate::time::Timestamp;

/// A run as its events tell it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// What it was started with.
    pub spec: RunSpec,
    /// Its position in the queue.
    pub priority: Priority,
    /// Where it stands.
    pub phase: Phase,
    /// Why it stands still.
    pub holds: Holds,
    /// The issue as it was read last.
    pub issue: Option<IssueSnapshot>,
    /// The commits it stands on.
    pub workspace: Option<Workspace>,
    /// Its pull request.
    pub pull_request: Option<PullRequest>,
    /// What it asked for and has not heard of.
    pub in_flight: BTreeMap<EffectId, InFlight>,
    /// What it has counted.
    pub counters: Counters,
    /// What it may say, and what waits to be said.
    pub throttle: Throttle,
    /// What it has heard from the forge already.
    pub heard: Heard,
    /// When a human was reminded last.
    pub reminded_at: Option<Timestamp>,
    /// Whether everything it held was given back.
    pub cleaned_up: bool,
    /// Why that was given up until a person asks for another try.
    #[serde(default)]
    pub clean_up_failed: Option<String>,
    /// A call of a tool that waits for a human.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Box<CallGate>>,
    /// How many calls waited for a human so far, this one counted.
    #[serde(default, skip_serializing_if = "is_none_yet")]
    pub calls_asked: u32,
    /// Calls that a human approved for the step at work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approved_calls: Vec<CallWish>,
    /// The overrides that operators granted it, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reliefs: Vec<Relief>,
    /// What its agents want to stand in the next check run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub check_notes: Vec<CheckNote>,
    /// What fields on the board shall say, once the change that is under way is done.
    #[serde(default, skip_serializing_if = "OwnFields::is_empty")]
    pub fields_wanted: OwnFields,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_none_yet(count: &u32) -> bool {
    *count == 0
}

/// An effect that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InFlight {
    /// Its kind.
    pub kind: EffectKind,
    /// Whether it was told to stop.
    pub stopping: bool,
    /// Whether it is a comment that people must not miss.
    #[serde(default)]
    pub must_be_heard: bool,
    /// Why it has not worked for longer than its tries; it is tried again with long pauses.
    #[serde(default)]
    pub overdue: Option<String>,
}

impl InFlight {
    /// Tells whether it is never given up for a lack of tries: what people must hear, and what must be put back.
    pub fn is_owed(&self) -> bool {
        match self.kind {
            EffectKind::ClosePullRequest | EffectKind::CleanUp => true,
            EffectKind::PostComment => self.must_be_heard,
            EffectKind::ReadIssue
            | EffectKind::PrepareWorkspace
            | EffectKind::Invoke
            | EffectKind::CommitWork
            | EffectKind::RunTests
            | EffectKind::CheckRedFirst
            | EffectKind::Rebase
            | EffectKind::InspectDiff
            | EffectKind::Push
            | EffectKind::OpenPullRequest
            | EffectKind::PublishCheck
            | EffectKind::MergePullRequest
            | EffectKind::ReadPullRequest
            | EffectKind::UpdateFields => false,
        }
    }
}

/// What a run has counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// How often an agent got its chance, by purpose; numbers the invocations.
    pub invocations: BTreeMap<Purpose, u32>,
    /// Failures of the agent at work, since it last did its job.
    pub agent_failures: u32,
    /// Interruptions of the effect at work, since one last came to its end.
    pub interruptions: u32,
    /// Whether the environment was made anew in this phase (RUN-12: once).
    pub environment_recreated: bool,
}

/// What a run has heard from the forge already; each thing counts once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heard {
    /// The human reviews that were acted on; an older one stands again when a newer is taken back.
    pub reviews: BTreeSet<u64>,
    /// The head commit whose failed checks were acted on.
    pub failed_checks: Option<CommitId>,
    /// The newest known head of the base branch, where it differs from the run's base.
    pub base_moved: Option<CommitId>,
    /// Whether the base branch is said to have moved while there is no pull request; what moves the work finds out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub base_announced: bool,
    /// The commit that Conductor itself tried to merge; it tries each once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge_tried: Option<CommitId>,
    /// The commit that was merged, where it is not the one that Conductor pushed (S-53).
    #[serde(default)]
    pub merged_other: Option<CommitId>,
}

impl Run {
    /// Its id.
    pub fn id(&self) -> &RunId {
        &self.spec.run
    }

    /// The issue that its agents may know: the one of approval time once there is one, else as it was read last (S-50).
    pub fn issue_in_force(&self) -> Option<&IssueSnapshot> {
        match &self.phase {
            Phase::AwaitingPlanApproval(waiting) => Some(&waiting.issue),
            Phase::Executing(executing) => Some(&executing.approved.issue),
            Phase::Proposing(proposing) => Some(&proposing.approved.issue),
            Phase::AwaitingMerge(waiting) => Some(&waiting.approved.issue),
            Phase::Pending(_)
            | Phase::Planning(_)
            | Phase::Completed
            | Phase::Cancelled { .. }
            | Phase::Failed { .. } => self.issue.as_ref(),
        }
    }

    /// What is known of the change that is proposed, for whoever decides about its merge (RUN-14).
    pub fn weighed(&self) -> Option<&Weighed> {
        match &self.phase {
            Phase::Proposing(proposing) => proposing.weighed.as_ref(),
            Phase::AwaitingMerge(waiting) => waiting.weighed.as_ref(),
            Phase::Pending(_)
            | Phase::Planning(_)
            | Phase::AwaitingPlanApproval(_)
            | Phase::Executing(_)
            | Phase::Completed
            | Phase::Cancelled { .. }
            | Phase::Failed { .. } => None,
        }
    }

    /// The effect of the run's own work that is under way, if any.
    pub fn work_in_flight(&self) -> Option<(&EffectId, &InFlight)> {
        self.in_flight.iter().find(|(_, effect)| effect.kind.is_work())
    }

    /// Tells whether others may have its place in its repository (RUN-13): it is over, and either cleaned up, or its
    /// clean-up waits for so long, or for a person, that nobody should wait with it.
    pub fn is_out_of_the_way(&self) -> bool {
        let is_overdue = |effect: &InFlight| effect.kind == EffectKind::CleanUp && effect.overdue.is_some();
        self.cleaned_up || self.clean_up_failed.is_some() || self.in_flight.values().any(is_overdue)
    }

    /// The question that is open: a call of a tool, or what the phase asks.
    pub fn gate(&self) -> Option<&Gate> {
        let call = self.call.as_ref().map(|call| &call.gate);
        call.or_else(|| self.phase.gate())
    }

    /// What the open question asks to approve, in the order a person should read it.
    pub fn asked(&self) -> Vec<&Artifact> {
        if let Some(call) = &self.call {
            return vec![&call.wish.text];
        }
        match &self.phase {
            Phase::AwaitingPlanApproval(waiting) => vec![
                &waiting.issue.artifact,
                &waiting.plan.artifact,
                &waiting.review.artifact,
            ],
            Phase::Proposing(Proposing {
                step: ProposingStep::AwaitingApproval { inspection, .. },
                ..
            }) => {
                let dependencies = inspection.dependencies.iter();
                dependencies.chain([&inspection.rendered]).collect()
            }
            Phase::Pending(_)
            | Phase::Planning(_)
            | Phase::Executing(_)
            | Phase::Proposing(_)
            | Phase::AwaitingMerge(_)
            | Phase::Completed
            | Phase::Cancelled { .. }
            | Phase::Failed { .. } => vec![],
        }
    }

    /// Tells whether all that the open question asks to approve can be shown; what was cut can not be approved (S-49).
    pub fn shows_all_it_asks(&self) -> bool {
        self.asked().into_iter().all(|artifact| !artifact.truncated)
    }

    /// Tells whether the run stands still.
    pub fn is_held(&self) -> bool {
        !self.holds.is_empty()
    }

    /// Tells whether a hold keeps even the next step from being asked for, until its cause is gone.
    ///
    /// A pause and the kill switch are different: the next step stands in the queue and is not dispatched.
    pub fn is_parked(&self) -> bool {
        self.holds.iter().any(|hold| match hold.kind() {
            HoldKind::Question | HoldKind::ProviderLimit | HoldKind::Failure | HoldKind::Policy => true,
            HoldKind::Operator | HoldKind::KillSwitch => false,
        })
    }

    /// The kinds of the holds, for a refusal.
    pub fn hold_kinds(&self) -> Vec<HoldKind> {
        self.holds.iter().map(crate::hold::Hold::kind).collect()
    }

    /// Tells whether a person must act for the run to go on.
    pub fn needs_human(&self) -> bool {
        if self.phase.is_terminal() {
            return self.clean_up_failed.is_some();
        }
        self.gate().is_some() || self.holds.iter().any(crate::hold::Hold::needs_human)
    }

    /// What people read; derived, never stored.
    pub fn status(&self) -> String {
        let mut status = self.phase.name().to_string();
        if !self.holds.is_empty() {
            let holds: Vec<String> = self.holds.iter().map(ToString::to_string).collect();
            status.push_str(&format!(", paused: {}", holds.join("; ")));
        }
        if self.heard.merged_other.is_some() {
            status.push_str(", merged at a commit that Conductor did not push");
        }
        for effect in self.in_flight.values() {
            if let Some(why) = &effect.overdue {
                status.push_str(&format!(", {} is overdue: {why}", effect.kind));
            }
        }
        if let Some(why) = &self.clean_up_failed {
            status.push_str(&format!(", not cleaned up: {why}"));
        }
        status
    }
}
