//! The forge: GitHub, GitHub Enterprise, or the embedded one, by the same code (GH-7).
//!
//! Adapters classify and never retry. Writes carry a marker; a repeat looks for it first. This port does not know git.

use async_trait::async_trait;
use conductor_domain::board::{BoardNumber, OwnFields};
use conductor_domain::effect::CommentTarget;
use conductor_domain::fault::Fault;
use conductor_domain::forge::{IssueProblem, PullRequestState, Standing};
use conductor_domain::id::{CommitId, IssueNumber, PullRequestNumber, RepoId};
use conductor_domain::spec::RepoRef;

use crate::workspace::GitToken;

/// A repository as the forge describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoDescription {
    /// The numeric id.
    pub id: RepoId,
    /// The owner's login, as the forge spells it.
    pub owner: String,
    /// The name, as the forge spells it.
    pub name: String,
    /// Where git goes, without credentials.
    pub clone_url: String,
    /// The default branch.
    pub default_branch: String,
}

/// An issue as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// The title.
    pub title: String,
    /// The text.
    pub body: String,
    /// Whether it is open.
    pub open: bool,
    /// Who wrote it.
    pub author: String,
    /// What its author is to the repository; nothing for a bot (BEY-10).
    pub standing: Standing,
    /// What people said below it, oldest first; without what bots said, Conductor among them.
    pub comments: Vec<IssueComment>,
}

/// What a person said below an issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssueComment {
    /// Who.
    pub by: String,
    /// What they are to the repository.
    pub standing: Standing,
    /// What.
    pub text: String,
}

/// A pull request as it stands, with what people and checks say about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequestReading {
    /// Open, merged or closed.
    pub state: PullRequestState,
    /// Its head commit.
    pub head: CommitId,
    /// The repository of its head.
    pub head_repo: Option<RepoId>,
    /// The head of its base branch now.
    pub base_head: Option<CommitId>,
    /// The reviews that ask for changes and still stand, by people with write permission, oldest first: of each person those
    /// since they last approved or were dismissed, as far as they are about the head commit or about what their newest is.
    pub changes_requested: Vec<ReviewReading>,
    /// Failed checks of other apps on the head commit, by name.
    pub failed_checks: Vec<FailedCheck>,
    /// Checks of other apps on the head commit that have not ended.
    pub pending_checks: Vec<String>,
}

/// A check that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedCheck {
    /// Its name.
    pub name: String,
    /// What it says about that, where it says anything.
    pub words: String,
}

/// A review that asks for changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewReading {
    /// The forge's id.
    pub id: u64,
    /// Who wrote it.
    pub by: String,
    /// What they are to the repository.
    pub standing: Standing,
    /// What it says, its line comments included.
    pub text: String,
    /// The commit that was reviewed, where the forge still knows it (S-53).
    pub commit: Option<CommitId>,
}

/// A pull request that is over, as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastPullRequest {
    /// Its number.
    pub number: PullRequestNumber,
    /// Its title.
    pub title: String,
    /// Who opened it, where the forge still knows.
    pub by: Option<String>,
    /// Whether it was merged.
    pub is_merged: bool,
}

/// A pull request to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPullRequest {
    /// The run's branch.
    pub branch: String,
    /// The title.
    pub title: String,
    /// The text, with its marker last.
    pub body: String,
}

/// A check run to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCheck {
    /// The commit.
    pub head: CommitId,
    /// Finds it again; the effect's id.
    pub external_id: String,
    /// One line.
    pub title: String,
    /// The text.
    pub summary: String,
    /// The run's page.
    pub details_url: String,
}

/// Tells whether a text is the one that a marker finds again: the marker stands last, where nothing but a writer of ours
/// puts it. Anywhere else it may be quoted, by an agent too, to pass for a write that was never made.
pub fn has_marker(body: &str, marker: &str) -> bool {
    !marker.is_empty() && body.trim_end().ends_with(marker)
}

/// Reads and writes at the forge. Calls may be made at once; the adapter keeps the installation's budget.
#[async_trait]
pub trait Forge: Send + Sync + std::fmt::Debug {
    /// Describes a repository; `None` when there is none that we may see.
    async fn repository(&self, owner: &str, name: &str) -> Result<Option<RepoDescription>, Fault>;

    /// Reads an issue.
    async fn issue(&self, repo: &RepoRef, number: IssueNumber) -> Result<Result<Issue, IssueProblem>, Fault>;

    /// Posts a comment, which ends with `marker`, and returns its page. If repeated: a comment of ours that
    /// [has the marker](has_marker) is looked for first, and what is found is the answer.
    async fn comment(
        &self,
        repo: &RepoRef,
        target: CommentTarget,
        body: &str,
        marker: &str,
        repeated: bool,
    ) -> Result<String, Fault>;

    /// Removes what we posted more than once: of our comments with this marker all but the oldest. Returns how many. If
    /// repeated: none is left to be removed.
    async fn remove_repeats(&self, repo: &RepoRef, target: CommentTarget, marker: &str)
    -> Result<u32, Fault>;

    /// Opens a pull request and returns number and page. If repeated: the one of the same branch is found.
    async fn open_pull_request(
        &self,
        repo: &RepoRef,
        new: &NewPullRequest,
    ) -> Result<(PullRequestNumber, String), Fault>;

    /// Reads a pull request with reviews and checks.
    async fn pull_request(
        &self,
        repo: &RepoRef,
        number: PullRequestNumber,
    ) -> Result<PullRequestReading, Fault>;

    /// Lists pull requests that were merged or closed, the newest first, at most `most`.
    async fn past_pull_requests(&self, repo: &RepoRef, most: u8) -> Result<Vec<PastPullRequest>, Fault>;

    /// Closes a pull request. If repeated: it is closed already.
    async fn close_pull_request(&self, repo: &RepoRef, number: PullRequestNumber) -> Result<(), Fault>;

    /// Writes a completed, successful check run. If repeated: the one with the same external id is updated.
    async fn publish_check(&self, repo: &RepoRef, check: &NewCheck) -> Result<(), Fault>;

    /// Sets text fields of an issue on a board of the repository's owner; the issue is put there first if it has to be. If
    /// repeated: they say so already.
    async fn update_fields(
        &self,
        repo: &RepoRef,
        board: BoardNumber,
        issue: IssueNumber,
        fields: &OwnFields,
    ) -> Result<(), Fault>;

    /// Returns a short-lived token for git on this repository; `None` where git needs none.
    async fn git_token(&self, repo: &RepoRef) -> Result<Option<GitToken>, Fault>;
}

/// Merges pull requests. Apart from [`Forge`], so that only what is given it can merge anything (RUN-14).
#[async_trait]
pub trait Merges: Send + Sync + std::fmt::Debug {
    /// Merges a pull request if its head is exactly this commit, or says why the forge will not. If repeated: the forge
    /// refuses what is merged already; who repeats reads first.
    async fn merge(
        &self,
        repo: &RepoRef,
        number: PullRequestNumber,
        head: &CommitId,
    ) -> Result<Result<(), String>, Fault>;
}
