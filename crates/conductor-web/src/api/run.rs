//! A run as readers see it: the line in a list, the whole, and the pieces that it is made of.
//!
//! This module does not know how any of it is put together.

use conductor_domain::digest::Digest;
use conductor_domain::gate::GateKind;
use conductor_domain::id::{EffectId, RepoId, RunId};
use conductor_domain::role::Role;
use conductor_domain::time::{Millis, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::OverrideView;

/// A run in one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunView {
    /// Its id.
    #[schemars(with = "String")]
    pub id: RunId,
    /// Its project.
    pub project: String,
    /// `owner/name`.
    pub repo: String,
    /// The forge's id of the repository.
    #[schemars(with = "u64")]
    pub repo_id: RepoId,
    /// The issue's number.
    pub issue: u64,
    /// The issue's title; empty until it was read.
    pub title: String,
    /// The phase's name.
    pub phase: String,
    /// Phase and holds in words.
    pub status: String,
    /// Whether it stands still.
    pub held: bool,
    /// Whether a person must act.
    pub needs_human: bool,
    /// Whether it has ended.
    pub ended: bool,
    /// Why it was called off or given up; absent while it is open, and where it was completed.
    #[serde(default)]
    pub ended_because: Option<String>,
    /// The queue position, 1 to 10.
    pub priority: u8,
    /// The pull request's number.
    pub pull_request: Option<u64>,
    /// How many records its stream holds.
    pub events: u64,
    /// When it was started.
    #[schemars(with = "i64")]
    pub created_at: Timestamp,
    /// When it changed last.
    #[schemars(with = "i64")]
    pub updated_at: Timestamp,
    /// What is wrong with what is kept of it; absent for a run that can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damaged: Option<DamageView>,
}

/// Why a run cannot be read; it is shown all the same, and the others are not hidden by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DamageView {
    /// The stable code; a page in `docs/error/` explains it.
    pub code: String,
    /// What was found.
    pub what: String,
    /// What to do next.
    pub hint: String,
}

/// Runs, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunList {
    /// The runs.
    pub runs: Vec<RunView>,
    /// Give this as `after` for more.
    #[schemars(with = "Option<String>")]
    pub next: Option<RunId>,
}

/// A run with everything that a person needs to judge it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunDetail {
    /// The line.
    pub run: RunView,
    /// The branch it works on.
    pub branch: String,
    /// The ports on loopback that are its own while it works (ENV-1).
    #[serde(default)]
    pub ports: Vec<String>,
    /// The skills of its roles, locked when it started (SKILL-5).
    #[serde(default)]
    pub skills: Vec<SkillView>,
    /// What it waits for, in words.
    pub waits_for: String,
    /// What a person can do about it, as commands.
    pub next: Vec<NextStep>,
    /// Which actions would be accepted now.
    pub allowed: Vec<String>,
    /// Why it stands still.
    pub holds: Vec<HoldView>,
    /// What a person is asked to approve.
    pub gate: Option<GateView>,
    /// Since when a person is asked: by a gate, a question, or a hold that only a person releases; absent where nobody is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i64>")]
    pub asked_at: Option<Timestamp>,
    /// The newest plan.
    pub plan: Option<TextView>,
    /// Every run of the test command, oldest first; empty means that tests were not run.
    pub tests: Vec<TestView>,
    /// What its sandboxes asked of the network and did not get, oldest first (BEY-6).
    #[serde(default)]
    pub denials: Vec<DenialView>,
    /// The overrides that it was granted, oldest first (SEC-1).
    #[serde(default)]
    pub overrides: Vec<OverrideView>,
    /// The pull request.
    pub pull_request: Option<PullRequestView>,
    /// Where the time went.
    pub phases: Vec<PhaseSpan>,
    /// How often the Implementer was asked.
    pub attempts: u32,
    /// How many plans were drafted.
    pub plans: u32,
    /// The effects under way, by kind.
    pub under_way: Vec<String>,
    /// Whether everything it held was given back.
    pub cleaned_up: bool,
    /// Where unfinished work was saved to.
    pub saved: Option<String>,
}

/// A skill as a run locked it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillView {
    /// Its name.
    pub name: String,
    /// The roles that have it.
    #[schemars(with = "Vec<String>")]
    pub roles: Vec<Role>,
    /// Where it came from.
    pub source: String,
    /// The commit, where it came from git.
    pub commit: Option<String>,
    /// The hash of all its files.
    #[schemars(with = "String")]
    pub content: Digest,
}

/// A request of a sandbox that was not let out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DenialView {
    /// When.
    #[schemars(with = "i64")]
    pub at: Timestamp,
    /// The effect that owns the sandbox.
    #[schemars(with = "String")]
    pub effect: EffectId,
    /// Where to: host and port as they were asked for.
    pub target: String,
    /// Why it was denied.
    pub reason: String,
    /// The command that asked.
    pub command: Option<String>,
    /// What would let it pass, where a grant could.
    pub request: Option<GrantRequest>,
}

/// A request that an operator can grant (BEY-6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GrantRequest {
    /// The grant, as it is written.
    pub grant: String,
    /// What it risks (S-34).
    pub risk: String,
    /// The exact command that grants it.
    pub command: String,
    /// Whether it was granted since.
    pub granted: bool,
}

/// Something that a person can do, with the exact command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NextStep {
    /// What it does.
    pub what: String,
    /// The command.
    pub command: String,
}

/// One reason why a run stands still.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HoldView {
    /// Which.
    pub kind: String,
    /// In words.
    pub text: String,
    /// Whether only a person can release it.
    pub needs_human: bool,
    /// What an answer must name.
    #[schemars(with = "Option<String>")]
    pub question: Option<EffectId>,
}

/// An open gate with everything that is being approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GateView {
    /// What is asked.
    #[schemars(with = "String")]
    pub kind: GateKind,
    /// What an answer must name (BEY-1).
    #[schemars(with = "String")]
    pub subject: Digest,
    /// Since when.
    #[schemars(with = "i64")]
    pub opened_at: Timestamp,
    /// Why it was opened, where that is not the normal way of things.
    pub findings: Vec<String>,
    /// What is approved, whole (S-49).
    pub shown: Vec<TextView>,
    /// What is different since a person was last asked the same of this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<SinceView>,
}

/// What is different since a person was last asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SinceView {
    /// When that was.
    #[schemars(with = "i64")]
    pub asked_at: Timestamp,
    /// The texts that are others now, each as a change of the text that was shown then; none where all are the same.
    pub changes: Vec<TextView>,
}

/// Kept text, byte for byte; showing its hidden characters is the reader's task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TextView {
    /// What it is.
    pub kind: String,
    /// Its address.
    #[schemars(with = "String")]
    pub digest: Digest,
    /// Whether it ends in a truncation mark.
    pub truncated: bool,
    /// The text.
    pub text: String,
}

/// One run of the test command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestView {
    /// Whether it counts as passed (S-18).
    pub passed: bool,
    /// Whether the command was started at all.
    pub ran: bool,
    /// What was seen, and no more (S-21).
    pub said: String,
    /// What it printed.
    #[schemars(with = "String")]
    pub output: Digest,
    /// How long it took.
    #[schemars(with = "u64")]
    pub time: Millis,
}

/// A run's pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PullRequestView {
    /// Its number.
    pub number: u64,
    /// Its page.
    pub url: String,
    /// The commit that was pushed to it last.
    pub head: String,
}

/// A stay in one phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseSpan {
    /// The phase's name.
    pub name: String,
    /// From when.
    #[schemars(with = "i64")]
    pub from: Timestamp,
    /// How long; up to the last record for the last one.
    pub ms: u64,
}

/// What came of a start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Started {
    /// The new run.
    #[schemars(with = "String")]
    pub run: RunId,
    /// Its page.
    pub page: String,
}

/// What came of an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AcceptedView {
    /// The stream's last sequence number after it.
    pub seq: u64,
    /// Whether it had been accepted before.
    pub duplicate: bool,
}

/// All runs that wait for a person, with what they wait for; what was asked first stands first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Approvals {
    /// The runs.
    pub waiting: Vec<RunDetail>,
    /// Runs that wait for a person and cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<RunView>,
}

/// One record of a run's stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventView {
    /// Its place.
    pub seq: u64,
    /// `fact` or `decision`.
    pub class: String,
    /// The name of the input or event.
    pub kind: String,
    /// When.
    #[schemars(with = "i64")]
    pub at: Timestamp,
    /// Who, and as what.
    pub actor: String,
    /// `agent`, `operator` or `system`.
    pub actor_type: String,
    /// The payload.
    pub payload: serde_json::Value,
    /// Its link in the chain.
    pub hash: String,
}

/// Records of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventList {
    /// The records, in order.
    pub events: Vec<EventView>,
    /// Give this as `after` for more.
    #[serde(default)]
    pub next: Option<u64>,
}

/// One effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EffectView {
    /// Its id.
    #[schemars(with = "String")]
    pub id: EffectId,
    /// Its kind.
    pub kind: String,
    /// `pending`, `leased` or `done`.
    pub status: String,
    /// How often it was leased.
    pub attempts: u32,
    /// Whether it was told to stop.
    pub stop: bool,
    /// When it was asked for.
    #[schemars(with = "i64")]
    pub created_at: Timestamp,
}

/// The effects of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EffectList {
    /// In the order they were asked for.
    pub effects: Vec<EffectView>,
}

/// One write at the forge (GH-6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WriteView {
    /// The effect.
    #[schemars(with = "String")]
    pub effect: EffectId,
    /// The effect's kind.
    pub kind: String,
    /// On whose behalf.
    pub actor_type: String,
    /// What it went to.
    pub target: String,
    /// SHA-256 of the payload.
    pub payload_hash: String,
    /// `allow`, `deny` or `require_approval`.
    pub decision: String,
    /// Why.
    pub reason: String,
    /// `pending`, `done`, or what went wrong.
    pub result: String,
    /// When it changed last.
    #[schemars(with = "i64")]
    pub at: Timestamp,
}

/// The writes of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WriteList {
    /// Oldest first.
    pub writes: Vec<WriteView>,
}

/// Where a run stands now; sent on its stream after each batch of records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StateChange {
    /// The line.
    pub run: RunView,
    /// What it waits for, in words.
    pub waits_for: String,
    /// Whether everything it held was given back.
    pub cleaned_up: bool,
}

/// What an agent says while it works; never stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TalkView {
    /// The invocation.
    #[schemars(with = "String")]
    pub effect: EffectId,
    /// The words; what is hidden in them, or looks like something else, stands as `⟨U+202E⟩`.
    pub text: String,
}
