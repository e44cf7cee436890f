//! Makes the one commit that an effect asks for, from a snapshot of the working directory (S-7).
//!
//! The new commit is first put under the effect's own ref, then the branch is moved from its known parent. So a
//! repeat after a crash at any point finds what was done and finishes it; there is never a second commit (RUN-4).
//!
//! This module does not know why the commit is wanted.

use std::path::PathBuf;

use conductor_domain::id::{CommitId, EffectId};
use conductor_domain::time::Timestamp;

use crate::call::Git;
use crate::error::Error;
use crate::import::{Limits, import};
use crate::layout::is_there;
use crate::lock::Lock;
use crate::object::{ObjectId, commit_id};
use crate::run_repo::RunRepo;
use crate::snapshot::{Purpose, Request, Snapshotter};

/// Who stands in a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The name.
    pub name: String,
    /// The mail address.
    pub email: String,
}

/// The parts of a commit that come from the effect.
#[derive(Debug, Clone)]
pub(crate) struct Words<'a> {
    pub(crate) identity: &'a Identity,
    pub(crate) at: Timestamp,
    pub(crate) message: &'a str,
}

/// What a commit is made from.
#[derive(Debug)]
pub(crate) struct Work<'a> {
    pub(crate) effect: &'a EffectId,
    pub(crate) parent: &'a CommitId,
    /// What the commit is put on, where that is not what the branch stands at.
    pub(crate) onto: Option<&'a CommitId>,
    pub(crate) workdir: PathBuf,
    pub(crate) objects: Vec<PathBuf>,
    pub(crate) words: Words<'a>,
    pub(crate) limits: Limits,
}

/// What came of the wish for a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Committed(CommitId),
    NothingToCommit,
}

/// Commits the working directory onto the run's branch.
///
/// If repeated: returns the commit that the same effect made earlier.
pub(crate) async fn commit(
    git: &Git,
    repo: &RunRepo,
    lock: &Lock,
    snapshotter: &dyn Snapshotter,
    work: &Work<'_>,
) -> Result<Outcome, Error> {
    let mark = RunRepo::effect_ref(work.effect);
    if let Some(made) = repo.resolve(git, &mark).await? {
        advance(git, repo, lock, work.parent, &made).await?;
        return Ok(Outcome::Committed(made));
    }
    expect_branch(git, repo, work.parent).await?;
    if !is_there(&work.workdir)? {
        return Err(Error::WorkdirMissing {
            run: repo.run().to_string(),
        });
    }
    let before = repo.tree_of(git, work.parent).await?;
    let request = Request {
        run: repo.run().clone(),
        workdir: work.workdir.clone(),
        objects: work.objects.clone(),
        parent: before.clone(),
        purpose: Purpose::Commit,
    };
    let snapshot = snapshotter.snapshot(&request).await?;
    let tree = import(git, repo, snapshot, &before, work.limits).await?;
    let (onto, below) = match work.onto {
        Some(onto) => (onto, repo.tree_of(git, onto).await?),
        None => (work.parent, before),
    };
    if tree == below {
        return Ok(Outcome::NothingToCommit);
    }
    let message = with_trailer(work.words.message, work.effect);
    let words = Words {
        message: &message,
        ..work.words.clone()
    };
    let made = write_commit(git, repo, &tree, onto, &words).await?;
    repo.move_ref(git, lock, &mark, &made, None).await?;
    advance(git, repo, lock, work.parent, &made).await?;
    Ok(Outcome::Committed(made))
}

/// Moves the branch from `parent` to `made`, unless it is there or beyond already.
pub(crate) async fn advance(
    git: &Git,
    repo: &RunRepo,
    lock: &Lock,
    parent: &CommitId,
    made: &CommitId,
) -> Result<(), Error> {
    if repo.head(git).await? != *parent {
        let ancestor = repo
            .call(git, "merge-base")
            .args(["--is-ancestor", made.as_str(), &repo.branch()]);
        if ancestor.finish().await?.status.success() {
            return Ok(());
        }
    }
    repo.move_ref(git, lock, &repo.branch(), made, Some(parent)).await
}

/// Refuses work that is based on another commit than the branch stands at.
pub(crate) async fn expect_branch(git: &Git, repo: &RunRepo, expected: &CommitId) -> Result<(), Error> {
    let found = repo.head(git).await?;
    if found == *expected {
        return Ok(());
    }
    Err(Error::BranchMoved {
        branch: repo.branch(),
        expected: expected.to_string(),
        found: found.to_string(),
    })
}

/// Writes a commit object; nothing refers to it yet.
pub(crate) async fn write_commit(
    git: &Git,
    repo: &RunRepo,
    tree: &ObjectId,
    parent: &CommitId,
    words: &Words<'_>,
) -> Result<CommitId, Error> {
    check_words(words)?;
    let date = format!("@{} +0000", words.at.0.div_euclid(1_000_000));
    let Identity { name, email } = words.identity;
    let made = repo
        .call(git, "commit-tree")
        .env("GIT_AUTHOR_NAME", name)
        .env("GIT_AUTHOR_EMAIL", email)
        .env("GIT_AUTHOR_DATE", &date)
        .env("GIT_COMMITTER_NAME", name)
        .env("GIT_COMMITTER_EMAIL", email)
        .env("GIT_COMMITTER_DATE", &date)
        .args([tree.as_str(), "-p", parent.as_str(), "-F", "-"])
        .input(words.message)
        .text()
        .await?;
    commit_id(made.trim())
}

fn check_words(words: &Words<'_>) -> Result<(), Error> {
    let breaks = |text: &str| text.is_empty() || text.chars().any(|c| c.is_control() || c == '<' || c == '>');
    let Identity { name, email } = words.identity;
    for (part, text) in [("name", name), ("address", email)] {
        if breaks(text) {
            return Err(Error::InvalidCommitText {
                part,
                forbidden: "control characters, `<` or `>`, or be empty",
            });
        }
    }
    if words.message.contains('\0') {
        return Err(Error::InvalidCommitText {
            part: "message",
            forbidden: "a NUL byte",
        });
    }
    Ok(())
}

/// Ends the message with the effect's id, for people; what counts is the effect's ref, which no message can forge.
fn with_trailer(message: &str, effect: &EffectId) -> String {
    format!("{}\n\nConductor-Effect: {effect}\n", message.trim_end())
}
