//! Names everything that can go wrong with a repository, and says what a repeat can be expected to bring.
//!
//! This module does not know how often anything is repeated.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use conductor_domain::fault::{Fault, FaultKind};
use conductor_domain::id::CommitId;
use conductor_port::known;

/// The reason why git work was not done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No usable git program.
    #[error("no git program at {program}; install git {needed} or later")]
    GitMissing {
        /// Where it was looked for.
        program: PathBuf,
        /// The oldest version that has every command in use.
        needed: &'static str,
        /// What the system answered.
        source: io::Error,
    },
    /// The installed git lacks a command in use.
    #[error("git {found} is too old; install git {needed} or later")]
    GitTooOld {
        /// What is installed.
        found: String,
        /// The oldest version that has every command in use.
        needed: &'static str,
    },
    /// A git process ended with a failure that has no name of its own.
    #[error("`git {verb}` failed with {status}: {stderr}")]
    Call {
        /// The subcommand.
        verb: String,
        /// The exit status as text.
        status: String,
        /// The bounded end of its standard error.
        stderr: String,
    },
    /// A git process was killed at its time limit.
    #[error("`git {verb}` did not end within {limit:?} and was killed")]
    TimedOut {
        /// The subcommand.
        verb: String,
        /// The limit.
        limit: Duration,
    },
    /// A git process was ended by a signal of somebody else's, as when the machine shuts down.
    #[error("`git {verb}` was ended from outside: {status}")]
    Killed {
        /// The subcommand.
        verb: String,
        /// The exit status as text.
        status: String,
    },
    /// A git process was killed at its output limit.
    #[error("`git {verb}` wrote more than {limit} bytes and was killed")]
    OutputTooLarge {
        /// The subcommand.
        verb: String,
        /// The limit.
        limit: usize,
    },
    /// A git process wrote something that its documentation does not allow.
    #[error("`git {verb}` answered with unexpected output: {detail}")]
    UnexpectedOutput {
        /// The subcommand.
        verb: &'static str,
        /// What was wrong with it.
        detail: String,
    },
    /// The file system refused.
    #[error("could not {attempt} {path}")]
    Io {
        /// What was attempted, as an imperative.
        attempt: &'static str,
        /// On which path.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
    /// The disk that holds the data directory is full.
    #[error("{}: {detail}; free space in the data directory", known::DISK_FULL)]
    DiskFull {
        /// What was being written.
        detail: String,
    },
    /// A clone address that cannot be used.
    #[error("`{given}` is not a repository address: {reason}")]
    InvalidAddress {
        /// The address as given, without credentials.
        given: String,
        /// Which rule it breaks.
        reason: &'static str,
    },
    /// The server did not answer, or answered that it cannot now.
    #[error("the git server at {host} cannot be reached: {detail}")]
    ServerUnreachable {
        /// The configured host.
        host: String,
        /// What git reported.
        detail: String,
    },
    /// The server refused the credentials.
    #[error("the git server at {host} refused access: {detail}; check the installation's permissions")]
    AccessRefused {
        /// The configured host.
        host: String,
        /// What git reported.
        detail: String,
    },
    /// The server answered with a redirect, which is never followed (S-9).
    #[error("{url} has moved; register the repository under its new address")]
    Redirected {
        /// The configured address.
        url: String,
    },
    /// There is no such repository, or it is hidden from us.
    #[error("there is no repository at {url}, or the installation cannot see it")]
    RepositoryMissing {
        /// The configured address.
        url: String,
    },
    /// The repository has no commit.
    #[error("the repository at {url} is empty; push a first commit")]
    EmptyRepository {
        /// The configured address.
        url: String,
    },
    /// The repository has no such branch.
    #[error("the repository at {url} has no branch `{branch}`; check its default branch")]
    BranchMissing {
        /// The configured address.
        url: String,
        /// The branch that was asked for.
        branch: String,
    },
    /// Another process works on the same repository for too long.
    #[error("{what} is in use by another process")]
    Busy {
        /// What is locked.
        what: String,
    },
    /// The run has no repository here.
    #[error("run {run} has no repository in the data directory")]
    RunMissing {
        /// The run.
        run: String,
    },
    /// The run has no working directory here.
    #[error("run {run} has no working directory in the data directory")]
    WorkdirMissing {
        /// The run.
        run: String,
    },
    /// An object id that is not one, empty included (S-8).
    #[error("`{given}` is not an object id (40 or 64 lowercase hex digits)")]
    InvalidObjectId {
        /// The text, cut to a displayable length.
        given: String,
    },
    /// A commit that the repository does not have.
    #[error("{repository} has no commit {commit}")]
    CommitMissing {
        /// Where it was looked for.
        repository: PathBuf,
        /// The commit.
        commit: CommitId,
    },
    /// The run's branch stands elsewhere than the caller believes.
    #[error("{branch} was expected at {expected} but stands at {found}")]
    BranchMoved {
        /// The ref.
        branch: String,
        /// What the caller believed.
        expected: String,
        /// What is there.
        found: String,
    },
    /// The working directory could not be read whole.
    #[error("the working directory {workdir} could not be read whole: {detail}")]
    SnapshotFailed {
        /// The working directory.
        workdir: PathBuf,
        /// What could not be read.
        detail: String,
    },
    /// The sandbox of a snapshot could not be used.
    #[error("the sandbox that reads the working directory could not be used: {fault}")]
    Sandbox {
        /// What its executor said.
        fault: Fault,
    },
    /// The snapshot breaks a size limit.
    #[error("the change is larger than {limit}; remove generated or binary files, or ignore them")]
    SnapshotTooLarge {
        /// The limit in words.
        limit: String,
    },
    /// The snapshot holds objects that git refuses (S-7).
    #[error("the change holds objects that git refuses: {detail}")]
    PackRefused {
        /// What git reported.
        detail: String,
    },
    /// The snapshot lacks objects.
    #[error("tree {tree} is incomplete: {detail}")]
    TreeIncomplete {
        /// The claimed tree.
        tree: String,
        /// What is missing.
        detail: String,
    },
    /// An identity or message that cannot stand in a commit.
    #[error("the {part} of a commit may not hold {forbidden}")]
    InvalidCommitText {
        /// Name, address or message.
        part: &'static str,
        /// What was found in it.
        forbidden: &'static str,
    },
    /// The server looked at what was pushed and does not take it.
    #[error("the server declined the push: {reason}")]
    PushDeclined {
        /// The server's words.
        reason: String,
    },
    /// The server refused the update of the run's branch.
    #[error("the server refused the push: {reason}")]
    PushRejected {
        /// The server's words.
        reason: String,
    },
    /// The remote branch stands elsewhere than the caller believes.
    #[error(
        "the remote branch {branch} was expected at {expected} but stands at {found}, and was not overwritten; \
         {advice} at the forge, then retry the run"
    )]
    RemoteMoved {
        /// The ref.
        branch: String,
        /// What the caller believed, or "nothing".
        expected: String,
        /// What is there, or "nothing".
        found: String,
        /// What a person can do about it.
        advice: &'static str,
    },
    /// A branch that is not the run's own (S-12).
    #[error("`{branch}` is not the branch of run {run}")]
    ForeignBranch {
        /// The branch that was asked for.
        branch: String,
        /// The run.
        run: String,
    },
    /// The run's branch is taken at the server before the run began.
    #[error("the branch {branch} exists already at {url}; remove it there or start another run")]
    BranchTaken {
        /// The ref.
        branch: String,
        /// The configured address.
        url: String,
    },
    /// A checkout target that already has content.
    #[error("{path} is not an empty directory")]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// Work could not be saved, therefore nothing was removed (invariant 8).
    #[error("the work of run {run} could not be saved, so its directory was kept")]
    SaveFailed {
        /// The run.
        run: String,
        /// Why not.
        source: Box<Error>,
    },
}

impl Error {
    pub(crate) fn io(attempt: &'static str, path: impl AsRef<Path>, source: io::Error) -> Self {
        let path = path.as_ref().to_owned();
        if source.kind() == io::ErrorKind::StorageFull || source.kind() == io::ErrorKind::QuotaExceeded {
            return Self::DiskFull {
                detail: format!("could not {attempt} {}", path.display()),
            };
        }
        Self::Io {
            attempt,
            path,
            source,
        }
    }

    /// Says what a repeat can be expected to bring.
    fn prospect(&self) -> Prospect {
        match self {
            Self::TimedOut { .. }
            | Self::Killed { .. }
            | Self::DiskFull { .. }
            | Self::Io { .. }
            | Self::ServerUnreachable { .. }
            | Self::AccessRefused { .. }
            | Self::Busy { .. } => Prospect::Transient,
            Self::BranchMoved { .. } | Self::RemoteMoved { .. } => Prospect::Conflict,
            Self::PushDeclined { .. } => Prospect::Refused,
            Self::SaveFailed { source, .. } => source.prospect(),
            Self::Sandbox { fault } => match fault.kind {
                FaultKind::Transient { .. } | FaultKind::EnvironmentLost => Prospect::Transient,
                FaultKind::Conflict => Prospect::Conflict,
                FaultKind::Refused => Prospect::Refused,
                FaultKind::Permanent => Prospect::Permanent,
            },
            Self::GitMissing { .. }
            | Self::GitTooOld { .. }
            | Self::Call { .. }
            | Self::OutputTooLarge { .. }
            | Self::UnexpectedOutput { .. }
            | Self::InvalidAddress { .. }
            | Self::Redirected { .. }
            | Self::RepositoryMissing { .. }
            | Self::EmptyRepository { .. }
            | Self::BranchMissing { .. }
            | Self::RunMissing { .. }
            | Self::WorkdirMissing { .. }
            | Self::InvalidObjectId { .. }
            | Self::CommitMissing { .. }
            | Self::SnapshotFailed { .. }
            | Self::SnapshotTooLarge { .. }
            | Self::PackRefused { .. }
            | Self::TreeIncomplete { .. }
            | Self::InvalidCommitText { .. }
            | Self::PushRejected { .. }
            | Self::ForeignBranch { .. }
            | Self::BranchTaken { .. }
            | Self::NotEmpty { .. } => Prospect::Permanent,
        }
    }

    /// Tells whether what lies in a working directory is the reason why it cannot be saved, now or ever.
    ///
    /// A git or a sandbox that is missing is for an operator to mend; then the work can be saved as it is.
    pub(crate) fn is_due_to_the_work(&self) -> bool {
        let is_due_to_the_machine = matches!(
            self,
            Self::GitMissing { .. } | Self::GitTooOld { .. } | Self::Sandbox { .. }
        );
        !is_due_to_the_machine && matches!(self.prospect(), Prospect::Permanent)
    }

    /// Tells whether the set-up of a run can never succeed (RUN-1).
    pub(crate) fn is_for_ever(&self) -> bool {
        matches!(
            self,
            Self::EmptyRepository { .. }
                | Self::BranchMissing { .. }
                | Self::BranchTaken { .. }
                | Self::RepositoryMissing { .. }
                | Self::Redirected { .. }
                | Self::InvalidAddress { .. }
        )
    }
}

enum Prospect {
    Transient,
    Conflict,
    Refused,
    Permanent,
}

impl From<Error> for Fault {
    /// Classifies; the text carries the whole chain, because a fault has no source of its own.
    fn from(error: Error) -> Self {
        let mut what = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(inner) = cause {
            what.push_str(": ");
            what.push_str(&inner.to_string());
            cause = inner.source();
        }
        match error.prospect() {
            Prospect::Transient => Self::transient(what),
            Prospect::Conflict => Self::conflict(what),
            Prospect::Refused => Self::refused(what),
            Prospect::Permanent => Self::permanent(what),
        }
    }
}
