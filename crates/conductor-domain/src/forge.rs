//! What was seen at the forge: issues and pull requests as they stood when they were read.
//!
//! A webhook is only a hint to look; every transition rests on such a reading (S-52, OWN-5).
//! This module does not know how a forge is asked.

use serde::{Deserialize, Serialize};

use crate::artifact::Artifact;
use crate::id::{CommitId, IssueNumber, PullRequestNumber, RepoId};

/// An issue as it stood when it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueSnapshot {
    /// Its number.
    pub number: IssueNumber,
    /// Its title.
    pub title: String,
    /// Title, body and what people said below it, kept; its digest tells whether any of it changed.
    pub artifact: Artifact,
    /// Whether it was open.
    pub open: bool,
    /// Who wrote it.
    pub author: String,
    /// Why its author's words do not count as trusted; absent where they do. They are kept fenced then (BEY-10).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untrusted: Option<String>,
}

/// What the forge says somebody is to a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Owns it.
    Owner,
    /// Belongs to the organisation.
    Member,
    /// Was invited.
    Collaborator,
    /// Had a change merged.
    Contributor,
    /// Nothing, or not known; every bot.
    None,
}

/// Why an issue cannot be worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IssueProblem {
    /// It was deleted (410).
    Deleted,
    /// There is none with this number, or the repository is gone.
    NotFound,
    /// It was moved to another repository.
    Moved,
    /// It is a pull request.
    IsPullRequest,
}

impl std::fmt::Display for IssueProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Deleted => "the issue was deleted",
            Self::NotFound => "there is no such issue",
            Self::Moved => "the issue was moved to another repository",
            Self::IsPullRequest => "the number belongs to a pull request",
        })
    }
}

/// The pull request of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequest {
    /// Its number.
    pub number: PullRequestNumber,
    /// Its page.
    pub url: String,
    /// The commit that Conductor pushed to it last.
    pub head: CommitId,
}

/// A pull request as it stood when it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequestSnapshot {
    /// Its number.
    pub number: PullRequestNumber,
    /// Open, merged or closed.
    pub state: PullRequestState,
    /// Its head commit.
    pub head: CommitId,
    /// The repository that its head lies in; a run's own is never a fork (S-53).
    pub head_repo: Option<RepoId>,
    /// The head of the branch that it is to be merged into, where that was read.
    pub base_head: Option<CommitId>,
    /// The newest decisive review by someone who may write.
    pub review: Option<HumanReview>,
    /// Checks of others that failed on the head commit, by name.
    pub failed_checks: Vec<String>,
    /// What those say, kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks_feedback: Option<Artifact>,
    /// Checks of others on the head commit that have not ended, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending_checks: Vec<String>,
}

/// Whether a pull request is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum PullRequestState {
    /// It waits.
    Open,
    /// It was merged.
    Merged {
        /// By whom, where the forge says so.
        by: Option<String>,
    },
    /// It was closed without a merge.
    Closed,
}

/// A review by a human with write permission that asked for changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HumanReview {
    /// The forge's id; each review counts once.
    pub id: u64,
    /// Who wrote it.
    pub by: String,
    /// What it asks for, kept.
    pub feedback: Artifact,
    /// The commit that was looked at; feedback counts for that one alone (S-53).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
}

/// A hint from the forge that something changed; never a reason for a transition by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// The delivery that brought it.
    pub delivery: String,
    /// The name of the event, as the forge calls it.
    pub event: String,
    /// What it is about.
    pub subject: NoticeSubject,
}

/// What a hint is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "subject")]
pub enum NoticeSubject {
    /// The run's pull request, its reviews or its checks.
    PullRequest {
        /// Its number.
        number: PullRequestNumber,
    },
    /// The run's issue, or a comment on it.
    Issue {
        /// Its number.
        number: IssueNumber,
    },
    /// The base branch was pushed to.
    Base,
}
