//! Repositories and working directories of runs.
//!
//! Adapters work under S-4…S-13: nothing that an agent can write is ever used as a repository. Each method names the
//! effect that asks for it where a repeat must find its earlier result. This port does not know the forge's API.

use std::path::PathBuf;

use async_trait::async_trait;
use conductor_domain::diff::FindingKind;
use conductor_domain::digest::Digest;
use conductor_domain::fault::Fault;
use conductor_domain::id::{CommitId, EffectId, RunId};
use conductor_domain::spec::RepoRef;
use conductor_domain::time::Timestamp;

/// A token for git, good for one repository and a short time; prints as nothing.
#[derive(Clone)]
pub struct GitToken(pub String);

impl std::fmt::Debug for GitToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("GitToken(…)")
    }
}

/// What came of making a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prepared {
    /// It stands.
    Ready {
        /// The commit of the base branch it starts from.
        base: CommitId,
    },
    /// It can never be made: empty repository, no such branch, branch taken.
    Impossible {
        /// Why, for people.
        why: String,
    },
}

/// What is to be committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitOrder {
    /// The effect; a repeat finds the commit that it made.
    pub effect: EffectId,
    /// The run.
    pub run: RunId,
    /// The run's branch.
    pub branch: String,
    /// The commit that the branch must stand at.
    pub parent: CommitId,
    /// The commit that the new one is put on, where that is not `parent`; the branch then leaves `parent` behind.
    pub onto: Option<CommitId>,
    /// The message.
    pub message: String,
    /// The author's and committer's time.
    pub at: Timestamp,
}

/// What came of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Committed {
    /// It was made, now or by an earlier try of the same effect.
    Commit {
        /// The commit.
        commit: CommitId,
        /// Its tree.
        tree: CommitId,
    },
    /// The working directory holds what the parent holds.
    Nothing,
}

/// A change of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The path; bytes that are not UTF-8 are shown escaped.
    pub path: String,
    /// What needs attention about it (S-11).
    pub findings: Vec<FindingKind>,
    /// What was there.
    pub before: Side,
    /// What is there now.
    pub after: Side,
}

/// What one side of a change holds, byte for byte; never as text conversion or attributes would show it (S-10).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Side {
    /// Nothing.
    Absent,
    /// The bytes of a file, or the target of a symbolic link.
    Bytes(Vec<u8>),
    /// More than is read.
    Unread {
        /// How much.
        size: u64,
    },
    /// A link to a commit of another repository.
    Elsewhere,
}

/// The difference between two commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// Over the raw difference; binds approvals.
    pub digest: Digest,
    /// The changed paths.
    pub changes: Vec<Change>,
    /// What commits between the two brought that the second does not hold any more; it leaves with a push all the same.
    pub passing: Vec<Change>,
    /// The rendered difference, for people.
    pub rendered: String,
    /// The paths whose change is not whole in it: too long, or more than is read.
    pub unshown: Vec<String>,
}

/// A file of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// The path; bytes that are not UTF-8 are shown escaped.
    pub path: String,
    /// Its length; `None` for a link to another repository.
    pub bytes: Option<u64>,
}

/// What is to be rebased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RebaseOrder {
    /// The effect; a repeat finds what came of it, and another rebase of the same commits does not.
    pub effect: EffectId,
    /// The run.
    pub run: RunId,
    /// The run's branch.
    pub branch: String,
    /// The commit that the run's own ones stand on. What lies below is not the run's, and does not move with it, though the
    /// base branch has dropped it.
    pub base: CommitId,
    /// The commit that the branch must stand at.
    pub head: CommitId,
}

/// What came of a rebase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rebased {
    /// It fits.
    Clean {
        /// The new base.
        base: CommitId,
        /// The new head.
        head: CommitId,
    },
    /// It does not.
    Conflicted {
        /// Where.
        paths: Vec<String>,
    },
}

/// What is to be pushed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushOrder {
    /// The run.
    pub run: RunId,
    /// The branch.
    pub branch: String,
    /// Where the branch shall stand; `None` is "gone".
    pub commit: Option<CommitId>,
    /// Where the branch at the forge must stand before; `None` is "not there".
    pub expected: Option<CommitId>,
}

/// Keeps repositories and working directories. Calls for different runs may be made at once; for one run, one at a time.
#[async_trait]
pub trait Workspace: Send + Sync + std::fmt::Debug {
    /// Fetches the base, makes the run's repository, branch and working directory.
    /// If repeated: what stands is kept when it is whole, else made anew; the base stays the one first chosen.
    async fn prepare(
        &self,
        run: &RunId,
        repo: &RepoRef,
        branch: &str,
        token: Option<&GitToken>,
    ) -> Result<Prepared, Fault>;

    /// Makes the working directory hold exactly `commit`, and the run's branch stand there; uncommitted work is saved first.
    /// Returns the directory and where work was saved to: a ref, or the path of a directory that could only be moved aside.
    /// If repeated: the same directory.
    async fn reset(&self, run: &RunId, commit: &CommitId) -> Result<(PathBuf, Option<String>), Fault>;

    /// Commits the working directory (S-7). If repeated: finds the commit by its effect.
    async fn commit(&self, order: &CommitOrder) -> Result<Committed, Fault>;

    /// Checks a commit's tree out into a fresh directory without `.git` (S-17); the caller removes it with `discard`.
    async fn checkout(&self, run: &RunId, commit: &CommitId) -> Result<Checkout, Fault>;

    /// Compares two commits of the run by their objects (S-10).
    async fn diff(&self, run: &RunId, from: &CommitId, to: &CommitId) -> Result<Diff, Fault>;

    /// Lists the files of a commit of the run, in git's order.
    async fn files(&self, run: &RunId, commit: &CommitId) -> Result<Vec<File>, Fault>;

    /// Fetches the base branch and moves the run's commits onto its head (S-13).
    /// If repeated: finds what came of it by its effect.
    async fn rebase(
        &self,
        order: &RebaseOrder,
        repo: &RepoRef,
        token: Option<&GitToken>,
    ) -> Result<Rebased, Fault>;

    /// Pushes one commit, or takes the branch away (S-12). One that stands elsewhere than expected is left alone, which is a
    /// conflict. If repeated: a branch that stands as wanted already is a success.
    async fn push(&self, order: &PushOrder, repo: &RepoRef, token: Option<&GitToken>) -> Result<(), Fault>;

    /// Saves unfinished work, then gives working directory and run repository back; saved work stays recoverable.
    /// Returns where it was saved to, as `reset` does. If repeated: nothing is left to do.
    async fn clean_up(&self, run: &RunId, repo: &RepoRef) -> Result<Option<String>, Fault>;
}

/// A fresh directory with a commit's tree.
#[derive(Debug)]
pub struct Checkout {
    /// Where; gone when this is dropped.
    pub dir: PathBuf,
    /// The tree.
    pub tree: CommitId,
    /// Removes the directory when dropped.
    pub guard: Box<dyn std::any::Any + Send>,
}
