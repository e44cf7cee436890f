//! The ledger: streams of records, the effects that they asked for, and the leases under which those are performed.
//!
//! The engine computes every byte and every hash; the ledger keeps them, all of a batch or nothing. SQLite,
//! PostgreSQL and memory cannot be told apart through this port (ARCHITECTURE invariant 7). It does not know what a
//! record means.

use async_trait::async_trait;
use conductor_domain::effect::{EffectKind, EffectRequest};
use conductor_domain::fault::Fault;
use conductor_domain::id::{EffectId, RepoId, RunId};
use conductor_domain::run::Run;
use conductor_domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::known;

/// A stream of records.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StreamId {
    /// What concerns more than one run.
    Instance,
    /// One run.
    Run(RunId),
}

impl StreamId {
    /// The name under which the stream is kept; `instance` is not a possible name of a run's stream.
    pub fn as_key(&self) -> String {
        match self {
            Self::Instance => "instance".to_owned(),
            Self::Run(run) => format!("run/{run}"),
        }
    }

    /// Parses a kept name.
    pub fn from_key(key: &str) -> Option<Self> {
        match key.strip_prefix("run/") {
            Some(run) => RunId::parse(run).ok().map(Self::Run),
            None => (key == "instance").then_some(Self::Instance),
        }
    }
}

impl std::fmt::Display for StreamId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.as_key())
    }
}

/// One record of a stream, as it is kept. `hash` covers every other field and the hash before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The stream's key.
    pub stream: String,
    /// The place in the stream, from 1, without gaps.
    pub seq: u64,
    /// Unique over all streams.
    pub event_id: String,
    /// The version of the record's form.
    pub schema_version: u32,
    /// `fact` or `decision`.
    pub class: String,
    /// The name of the input or the event.
    pub kind: String,
    /// Canonical JSON, redacted.
    pub payload: String,
    /// SHA-256 over `payload`.
    pub payload_hash: String,
    /// `agent`, `operator` or `system`.
    pub actor_type: String,
    /// Who.
    pub actor: String,
    /// The `event_id` of the fact that caused a decision; of a fact, what it answers (an effect, a delivery), or empty.
    pub cause: String,
    /// When.
    pub at: Timestamp,
    /// The chain: SHA-256 over the hash before and all the fields above.
    pub hash: String,
}

/// Everything that one decision changes; kept whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The stream it belongs to.
    pub stream: StreamId,
    /// The last sequence number that the decision saw; another one there means [`AppendError::Moved`].
    pub expected_seq: u64,
    /// The records, with sequence numbers from `expected_seq + 1`.
    pub records: Vec<Record>,
    /// Effects to be performed.
    pub effects: Vec<NewEffect>,
    /// What changes in effects that are there already.
    pub effect_changes: Vec<EffectChange>,
    /// The effect whose report this is: it must still be leased with this token, and becomes done.
    pub settles: Option<Settlement>,
    /// Refuses the batch with [`AppendError::Duplicate`] when a batch with the same key was kept before.
    pub dedupe: Option<String>,
    /// What readers see of the stream from now on.
    pub projection: Projection,
    /// Writes at the forge that were asked for or came to an end (GH-6).
    pub writes: Vec<ForgeWrite>,
    /// Gives the run's repository slot back.
    pub frees_slot: bool,
    /// What becomes of the run's claim on its issue.
    pub issue: IssueClaim,
}

/// What a batch does to the run's claim on its issue: one issue has one open run (RUN-5).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IssueClaim {
    /// Nothing.
    #[default]
    Unchanged,
    /// The run claims it; while another run has it, the batch is refused with [`AppendError::IssueTaken`].
    Taken {
        /// The repository.
        repo: RepoId,
        /// The issue's number.
        number: u64,
    },
    /// The run gives it back. If repeated: nothing changes.
    GivenBack,
}

/// An effect to be performed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEffect {
    /// Its id.
    pub id: EffectId,
    /// The run.
    pub run: RunId,
    /// The repository.
    pub repo: RepoId,
    /// Its kind.
    pub kind: EffectKind,
    /// The whole `EffectRequest` as JSON.
    pub payload: String,
    /// The queue position: higher goes first.
    pub priority: u8,
    /// Not before this time.
    pub not_before: Timestamp,
}

/// A change in an effect that is there already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EffectChange {
    /// It is to be repeated from this time on; its lease ends. Needs the token in `settles`-like fashion only when
    /// it is leased: the batch's `settles` then names the same effect and the row stays pending instead of done.
    Retry {
        /// Which.
        id: EffectId,
        /// When.
        not_before: Timestamp,
    },
    /// It is told to stop: a leased one sees it at its next renewal; one that nobody has begun is done at once, and the
    /// engine reports it as stopped; one that waits for another try is dispatched at once, whatever holds its run,
    /// because an earlier try may have had its way.
    Stop {
        /// Which.
        id: EffectId,
    },
    /// All pending effects of the run move in the queue.
    Reprioritize {
        /// The new position.
        priority: u8,
    },
}

/// Proof that the reporter still holds the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// The effect.
    pub id: EffectId,
    /// The fencing token of its lease.
    pub token: u64,
}

/// What readers see of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Projection {
    /// The instance's state as JSON, and which records told it: what is cut off the stream's end is missed (SEC-8).
    Instance {
        /// The state.
        state: String,
        /// The last sequence number.
        seq: u64,
        /// The last hash.
        head: String,
    },
    /// A run.
    Run(Box<RunRow>),
}

/// Everything that readers see and that the records tell; it replaces what is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Projections {
    /// The streams as readers see them.
    pub rows: Vec<Projection>,
    /// The writes at the forge, in the order in which batches brought them.
    pub writes: Vec<WritesAfter>,
}

/// The writes at the forge that one batch brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WritesAfter {
    /// The sequence number that the batch expected.
    pub seq: u64,
    /// Its writes.
    pub writes: Vec<ForgeWrite>,
}

/// A run as readers see it; dropped and rebuilt at will.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "columns that readers filter by, each on its own"
)]
pub struct RunRow {
    /// The run.
    pub run: RunId,
    /// Its project.
    pub project: String,
    /// Its repository.
    pub repo: RepoId,
    /// `owner/name`.
    pub repo_name: String,
    /// The issue's number.
    pub issue: u64,
    /// The issue's title, empty until it was read.
    pub title: String,
    /// The phase's name.
    pub phase: String,
    /// Whether holds keep work effects from being dispatched.
    pub held: bool,
    /// Whether a person must act.
    pub needs_human: bool,
    /// Whether it has ended.
    pub terminal: bool,
    /// Whether everything that it held was given back.
    pub cleaned_up: bool,
    /// The queue position.
    pub priority: u8,
    /// The pull request's number.
    pub pull_request: Option<u64>,
    /// When the run must be looked at again.
    pub deadline: Option<Timestamp>,
    /// The whole state as JSON.
    pub state: String,
    /// What it took so far as JSON; empty for a run that was begun before this was counted.
    pub figures: String,
    /// When it ended, of those that are counted.
    pub ended_at: Option<Timestamp>,
    /// The last sequence number.
    pub seq: u64,
    /// The last hash.
    pub head: String,
    /// When it was started.
    pub created_at: Timestamp,
    /// When it changed last.
    pub updated_at: Timestamp,
}

impl RunRow {
    /// Stands for a row of which only the name can be read; its state is none.
    pub fn unreadable(run: RunId) -> Self {
        Self {
            run,
            project: String::new(),
            repo: RepoId(0),
            repo_name: String::new(),
            issue: 0,
            title: String::new(),
            phase: String::new(),
            held: false,
            needs_human: false,
            terminal: false,
            cleaned_up: false,
            priority: 0,
            pull_request: None,
            deadline: None,
            state: String::new(),
            figures: String::new(),
            ended_at: None,
            seq: 0,
            head: String::new(),
            created_at: Timestamp(0),
            updated_at: Timestamp(0),
        }
    }

    /// Reads where the run stands.
    pub fn parse(&self) -> Result<Run, Fault> {
        serde_json::from_str(&self.state)
            .map_err(|error| Fault::permanent(format!("{} ({}): {error}", known::RUN_UNREADABLE, self.run)))
    }
}

/// A write at the forge, as the audit shows it (GH-6). A later one with the same effect replaces the earlier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForgeWrite {
    /// The effect; the idempotency key.
    pub effect: EffectId,
    /// The run.
    pub run: RunId,
    /// The effect's kind.
    pub kind: String,
    /// `agent`, `operator` or `system`: on whose behalf.
    pub actor_type: String,
    /// What it goes to, for people.
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
    pub at: Timestamp,
}

/// Why a batch was not kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The stream is longer than the decision knew; decide again.
    #[error("the stream has moved on to {actual}")]
    Moved {
        /// Its last sequence number.
        actual: u64,
    },
    /// A batch with this dedupe key was kept before; nothing is to be done.
    #[error("this input was accepted before")]
    Duplicate,
    /// The lease was lost; the report comes from a process that no longer owns the effect.
    #[error("the lease of the effect is lost")]
    LeaseLost,
    /// Another run works on the issue; RUN-5 allows one.
    #[error("the issue is being worked on by run {run}")]
    IssueTaken {
        /// Which.
        run: RunId,
    },
    /// The database did not do it.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// Which effects to look at for dispatching.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidates {
    /// The current time.
    pub now: Timestamp,
    /// Only those listed after this one, done or not.
    pub after: Option<EffectId>,
    /// At most so many.
    pub limit: u32,
}

/// An effect as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffectRow {
    /// Its id.
    pub id: EffectId,
    /// The run.
    pub run: RunId,
    /// The repository.
    pub repo: RepoId,
    /// Its kind.
    pub kind: EffectKind,
    /// The whole `EffectRequest` as JSON.
    pub payload: String,
    /// Where it stands between being asked for and being done.
    pub status: EffectStatus,
    /// How often it was leased.
    pub attempts: u32,
    /// Whether it was told to stop.
    pub stop: bool,
    /// When it was asked for.
    pub created_at: Timestamp,
}

impl EffectRow {
    /// Reads what was asked for.
    pub fn parse(&self) -> Result<EffectRequest, Fault> {
        serde_json::from_str(&self.payload).map_err(|error| {
            Fault::permanent(format!("cannot read effect {} ({}): {error}", self.id, self.kind))
        })
    }
}

/// Where an effect stands between being asked for and being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectStatus {
    /// Nobody performs it.
    Pending,
    /// Somebody performs it, or died doing so.
    Leased,
    /// It is over.
    Done,
}

impl EffectStatus {
    /// The name in tables and answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Leased => "leased",
            Self::Done => "done",
        }
    }

    /// Parses the name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Pending, Self::Leased, Self::Done]
            .into_iter()
            .find(|status| status.as_str() == text)
    }
}

/// A wish to perform an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseWish {
    /// Which effect.
    pub id: EffectId,
    /// Who asks; a process.
    pub worker: String,
    /// The current time.
    pub now: Timestamp,
    /// Until when.
    pub until: Timestamp,
    /// A repository slot that the run must have or take in the same transaction, with how many there are.
    pub slot: Option<(RepoId, u32)>,
}

/// What came of a wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leased {
    /// The effect is the wisher's, until the lease ends.
    Granted {
        /// The fencing token; greater than every earlier one of this effect.
        token: u64,
        /// How often it has been leased, this one included.
        attempt: u32,
    },
    /// Someone else was faster, or it is no longer pending.
    Gone,
    /// All slots of the repository are taken.
    NoSlot,
}

/// What came of a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewal {
    /// The lease holds; go on.
    Holds,
    /// The lease holds; stop what you do and report.
    Stop,
    /// The lease is lost; stop and report nothing.
    Lost,
}

/// Keeps streams, effects and leases. Callable from any task; each call is one transaction.
#[async_trait]
pub trait Ledger: Send + Sync + std::fmt::Debug {
    /// Keeps a batch, whole or not at all, durably before it returns.
    async fn append(&self, batch: Batch) -> Result<(), AppendError>;

    /// Reads records of a stream after `after`, in order, at most `limit`.
    async fn read(&self, stream: &StreamId, after: u64, limit: u32) -> Result<Vec<Record>, Fault>;

    /// Lists effects that could be dispatched at `now`: pending, due, not stopped and their run not held (holds
    /// concern work effects only), or leased with a lease that ended before `now`; by priority, then age. So many as
    /// the limit says unless there are no more; rows that cannot be read are left out and do not count.
    async fn dispatchable(&self, candidates: &Candidates) -> Result<Vec<EffectRow>, Fault>;

    /// Leases one effect, with its slot, in one transaction.
    async fn lease(&self, wish: LeaseWish) -> Result<Leased, Fault>;

    /// Extends a lease. If repeated: extends it again.
    async fn renew(&self, settlement: &Settlement, until: Timestamp) -> Result<Renewal, Fault>;

    /// Ends every lease of a worker. Called at its start by a process that has this name alone: leases under it are of
    /// the dead, and nobody has to wait for them. If repeated: nothing is held.
    async fn end_leases(&self, worker: &str) -> Result<u32, Fault>;

    /// Lists runs whose deadline is at or before `now`, at most `limit`.
    async fn due(&self, now: Timestamp, limit: u32) -> Result<Vec<RunId>, Fault>;

    /// Replaces all projections; used by `projections rebuild` only, while nothing else runs.
    async fn replace_projections(&self, all: Projections) -> Result<(), Fault>;
}
