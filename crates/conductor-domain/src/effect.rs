//! Everything that a run can ask of the world; each effect is complete, so that its performer has nothing to choose.
//!
//! This module does not know how any of it is done.

use serde::{Deserialize, Serialize};

use crate::board::{BoardNumber, OwnFields};
use crate::digest::Digest;
use crate::id::{CommitId, EffectId, IssueNumber, PullRequestNumber, RunId};
use crate::invocation::Invocation;
use crate::message::{CheckNote, Message};
use crate::spec::{ExecutorName, RepoRef};
use crate::time::Millis;

/// An effect with its name and its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffectRequest {
    /// Derived from run, sequence and ordinal; the idempotency key.
    pub id: EffectId,
    /// The run that asks.
    pub run: RunId,
    /// The repository it concerns.
    pub repo: RepoRef,
    /// What is asked.
    pub effect: Effect,
}

/// Something that a run asks of the world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "effect")]
pub enum Effect {
    /// Reads the issue at the forge.
    ReadIssue {
        /// Which.
        issue: IssueNumber,
    },
    /// Fetches the base and makes run repository, branch and working directory.
    PrepareWorkspace {
        /// The run's branch.
        branch: String,
    },
    /// Invokes an agent.
    Invoke {
        /// All that it is given.
        invocation: Box<Invocation>,
    },
    /// Commits what the Implementer left in the working directory.
    CommitWork {
        /// The run's branch.
        branch: String,
        /// The commit that it stands at.
        parent: CommitId,
        /// The commit that the new one is put on in place of `parent`, whose line may not leave.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        onto: Option<CommitId>,
        /// The message.
        message: String,
    },
    /// Runs the test command on a fresh checkout of one commit (S-17).
    RunTests {
        /// The commit.
        commit: CommitId,
        /// The argv.
        command: Vec<String>,
        /// How long it may take.
        time: Millis,
        /// Where it runs.
        executor: ExecutorName,
    },
    /// Runs new and changed tests on the base (BEY-2).
    CheckRedFirst {
        /// The base.
        base: CommitId,
        /// The commit that holds the tests.
        head: CommitId,
        /// The argv.
        command: Vec<String>,
    },
    /// Moves the work onto the newest commit of the base branch (BEY-3).
    Rebase {
        /// The run's branch.
        branch: String,
        /// The base that it stands on.
        base: CommitId,
        /// Its head.
        head: CommitId,
    },
    /// Inspects the exact commit that is to be pushed.
    InspectDiff {
        /// From.
        base: CommitId,
        /// To.
        head: CommitId,
    },
    /// Pushes one commit to the run's branch.
    Push {
        /// The branch.
        branch: String,
        /// The commit.
        commit: CommitId,
        /// What the branch at the forge must be; `None` is "not there".
        expected: Option<CommitId>,
    },
    /// Opens the pull request.
    OpenPullRequest {
        /// The run's branch.
        branch: String,
        /// The title.
        title: String,
        /// The text.
        message: Box<Message>,
    },
    /// Writes Conductor's check run on the head commit.
    PublishCheck {
        /// The commit.
        head: CommitId,
        /// What it says in one line.
        title: String,
        /// What it says.
        summary: String,
        /// What agents say below it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<CheckNote>,
    },
    /// Merges the pull request at exactly one commit, which a policy allows (RUN-14).
    MergePullRequest {
        /// Which.
        number: PullRequestNumber,
        /// The commit that was tested and reviewed; at any other nothing is merged.
        head: CommitId,
        /// The commit of the base branch that it was tested on.
        base: CommitId,
    },
    /// Reads the pull request, its reviews and its checks.
    ReadPullRequest {
        /// Which.
        number: PullRequestNumber,
    },
    /// Closes a pull request that came too late.
    ClosePullRequest {
        /// Which.
        number: PullRequestNumber,
    },
    /// Posts a comment.
    PostComment {
        /// Where.
        target: CommentTarget,
        /// What.
        message: Box<Message>,
    },
    /// Sets Conductor's own fields of the issue on a board.
    UpdateFields {
        /// The board.
        board: BoardNumber,
        /// The issue.
        issue: IssueNumber,
        /// What they shall say.
        fields: OwnFields,
    },
    /// Saves what is unfinished and gives everything back.
    CleanUp {
        /// Whether the branch at the forge goes too; it does where it never came to a pull request.
        delete_branch: Option<String>,
        /// Where that branch must stand; what somebody else pushed to it stays. Absent from clean-ups of before this was
        /// known, which leave the branch alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pushed: Option<CommitId>,
    },
}

/// Where a comment goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "target", content = "number")]
pub enum CommentTarget {
    /// The issue.
    Issue(IssueNumber),
    /// The pull request.
    PullRequest(PullRequestNumber),
}

/// The name of an effect, without its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each is documented at its variant of Effect")]
pub enum EffectKind {
    ReadIssue,
    PrepareWorkspace,
    Invoke,
    CommitWork,
    RunTests,
    CheckRedFirst,
    Rebase,
    InspectDiff,
    Push,
    OpenPullRequest,
    PublishCheck,
    MergePullRequest,
    ReadPullRequest,
    ClosePullRequest,
    PostComment,
    UpdateFields,
    CleanUp,
}

impl EffectKind {
    /// Every kind.
    pub const ALL: [Self; 17] = [
        Self::ReadIssue,
        Self::PrepareWorkspace,
        Self::Invoke,
        Self::CommitWork,
        Self::RunTests,
        Self::CheckRedFirst,
        Self::Rebase,
        Self::InspectDiff,
        Self::Push,
        Self::OpenPullRequest,
        Self::PublishCheck,
        Self::MergePullRequest,
        Self::ReadPullRequest,
        Self::ClosePullRequest,
        Self::PostComment,
        Self::UpdateFields,
        Self::CleanUp,
    ];

    /// The name in records and on pages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadIssue => "read_issue",
            Self::PrepareWorkspace => "prepare_workspace",
            Self::Invoke => "invoke",
            Self::CommitWork => "commit_work",
            Self::RunTests => "run_tests",
            Self::CheckRedFirst => "check_red_first",
            Self::Rebase => "rebase",
            Self::InspectDiff => "inspect_diff",
            Self::Push => "push",
            Self::OpenPullRequest => "open_pull_request",
            Self::PublishCheck => "publish_check",
            Self::MergePullRequest => "merge_pull_request",
            Self::ReadPullRequest => "read_pull_request",
            Self::ClosePullRequest => "close_pull_request",
            Self::PostComment => "post_comment",
            Self::UpdateFields => "update_fields",
            Self::CleanUp => "clean_up",
        }
    }

    /// Tells whether the effect is part of the run's own work, of which there is one at a time and which holds stop.
    ///
    /// The rest looks, tells people, or cleans up: holds do not stop it (RUN-1a).
    pub fn is_work(self) -> bool {
        match self {
            Self::ReadIssue
            | Self::PrepareWorkspace
            | Self::Invoke
            | Self::CommitWork
            | Self::RunTests
            | Self::CheckRedFirst
            | Self::Rebase
            | Self::InspectDiff
            | Self::Push
            | Self::OpenPullRequest
            | Self::PublishCheck
            | Self::MergePullRequest => true,
            Self::ReadPullRequest
            | Self::ClosePullRequest
            | Self::PostComment
            | Self::UpdateFields
            | Self::CleanUp => false,
        }
    }

    /// Tells whether it can be told to stop; what writes to the forge finishes and is compensated (RUN-11).
    pub fn is_stoppable(self) -> bool {
        match self {
            Self::ReadIssue
            | Self::PrepareWorkspace
            | Self::Invoke
            | Self::CommitWork
            | Self::RunTests
            | Self::CheckRedFirst
            | Self::Rebase
            | Self::InspectDiff => true,
            Self::Push
            | Self::OpenPullRequest
            | Self::PublishCheck
            | Self::MergePullRequest
            | Self::ReadPullRequest
            | Self::ClosePullRequest
            | Self::PostComment
            | Self::UpdateFields
            | Self::CleanUp => false,
        }
    }

    /// Tells whether it runs code of an agent or of the repository; the kill switch stops these.
    pub fn executes_foreign_code(self) -> bool {
        matches!(self, Self::Invoke | Self::RunTests | Self::CheckRedFirst)
    }

    /// Tells whether it writes at the forge, and so stands in `forge_writes` (GH-6). A clean-up stands there, too, where it
    /// deletes a branch, which its kind alone does not tell.
    pub fn writes_to_forge(self) -> bool {
        matches!(
            self,
            Self::Push
                | Self::OpenPullRequest
                | Self::PublishCheck
                | Self::MergePullRequest
                | Self::ClosePullRequest
                | Self::PostComment
                | Self::UpdateFields
        )
    }
}

impl std::fmt::Display for EffectKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Effect {
    /// Its kind.
    pub fn kind(&self) -> EffectKind {
        match self {
            Self::ReadIssue { .. } => EffectKind::ReadIssue,
            Self::PrepareWorkspace { .. } => EffectKind::PrepareWorkspace,
            Self::Invoke { .. } => EffectKind::Invoke,
            Self::CommitWork { .. } => EffectKind::CommitWork,
            Self::RunTests { .. } => EffectKind::RunTests,
            Self::CheckRedFirst { .. } => EffectKind::CheckRedFirst,
            Self::Rebase { .. } => EffectKind::Rebase,
            Self::InspectDiff { .. } => EffectKind::InspectDiff,
            Self::Push { .. } => EffectKind::Push,
            Self::OpenPullRequest { .. } => EffectKind::OpenPullRequest,
            Self::PublishCheck { .. } => EffectKind::PublishCheck,
            Self::MergePullRequest { .. } => EffectKind::MergePullRequest,
            Self::ReadPullRequest { .. } => EffectKind::ReadPullRequest,
            Self::ClosePullRequest { .. } => EffectKind::ClosePullRequest,
            Self::PostComment { .. } => EffectKind::PostComment,
            Self::UpdateFields { .. } => EffectKind::UpdateFields,
            Self::CleanUp { .. } => EffectKind::CleanUp,
        }
    }
}

impl EffectRequest {
    /// Computes the digest that the log keeps of the request.
    pub fn digest(&self) -> Digest {
        let bytes = serde_json::to_vec(self)
            .expect("a request holds only text, numbers, lists and maps with text keys");
        Digest::of(&bytes)
    }
}
