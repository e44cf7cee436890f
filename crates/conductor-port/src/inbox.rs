//! What doors may call: submit an input, and watch what was committed.
//!
//! A door decides nothing and causes nothing by itself. This port does not know HTTP.

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::id::{IssueNumber, RunId};
use conductor_domain::input::Input;
use conductor_domain::instance::{InstanceInput, InstanceRefusal};
use conductor_domain::phase::PhaseName;
use conductor_domain::refusal::Refusal;

/// Why a submission was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The run machine said no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The instance said no.
    #[error(transparent)]
    InstanceRefused(#[from] InstanceRefusal),
    /// What the submitter looked at is not what stands there now.
    #[error("the run is {now} now")]
    Stale {
        /// What was looked at.
        seen: Seen,
        /// The phase that the run is in.
        now: PhaseName,
    },
    /// One issue, one run (RUN-5), and another start was faster.
    #[error("issue {number} is being worked on by run {run}")]
    IssueHasRun {
        /// Which.
        number: IssueNumber,
        /// By which run.
        run: RunId,
    },
    /// The world did not do it.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// What came of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// The stream's last sequence number after it.
    pub seq: u64,
    /// Whether the same input was accepted before, so that nothing changed now.
    pub duplicate: bool,
}

/// What the submitter saw of the run; checked in the very step that decides, so that nothing can come in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Seen {
    /// It is meant whatever the run does.
    #[default]
    Anything,
    /// It is meant for this phase.
    Phase(PhaseName),
    /// It is meant for the run as it stood after this record.
    Record(u64),
}

/// Who submits, for the audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    /// The run.
    pub run: RunId,
    /// What happens to it.
    pub input: Input,
    /// Refuses a second submission with the same key.
    pub dedupe: Option<String>,
    /// What it answers or where it came from: a delivery, an address; kept as the fact's cause.
    pub cause: String,
    /// What it was decided on.
    pub seen: Seen,
}

/// Takes inputs in. Durable before it returns.
#[async_trait]
pub trait Inbox: Send + Sync {
    /// Submits an input to a run.
    async fn submit(&self, submission: Submission) -> Result<Accepted, SubmitError>;

    /// Submits an input to the instance; `cause` as in [`Submission`].
    async fn submit_to_instance(&self, input: InstanceInput, cause: &str) -> Result<Accepted, SubmitError>;
}
