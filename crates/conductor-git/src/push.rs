//! Pushes one commit to the run's branch at the configured address, or takes the branch away, and nothing else (S-12).
//!
//! The server compares and swaps: a branch that stands elsewhere than expected is never overwritten or deleted, and one
//! that stands as wanted already is a success, because an earlier try got that far.
//!
//! This module does not know whether the commit was approved.

use conductor_domain::id::CommitId;

use crate::call::Git;
use crate::error::Error;
use crate::remote::Remote;
use crate::run_repo::RunRepo;

/// Pushes `commit`, `None` is "gone"; `expected` is where the remote branch must stand, `None` is "not there".
///
/// If repeated: a branch that stands as wanted already is a success.
pub(crate) async fn push(
    git: &Git,
    repo: &RunRepo,
    remote: &Remote<'_>,
    commit: Option<&CommitId>,
    expected: Option<&CommitId>,
) -> Result<(), Error> {
    let branch = repo.branch();
    if let Some(commit) = commit {
        repo.require(git, commit).await?;
    }
    let found = remote_branch(git, repo, remote).await?;
    if found.as_ref() == commit {
        return Ok(());
    }
    if found.as_ref() != expected {
        return Err(moved(branch, expected, found.as_ref()));
    }
    let lease = format!(
        "--force-with-lease={branch}:{}",
        expected.map_or("", CommitId::as_str)
    );
    let call = repo
        .call(git, "push")
        .args([
            "--porcelain",
            "--quiet",
            "--no-verify",
            "--recurse-submodules=no",
            "--no-follow-tags",
        ])
        .args([
            lease.as_str(),
            "--",
            remote.address.url(),
            &format!("{}:{branch}", commit.map_or("", CommitId::as_str)),
        ]);
    let finished = remote.reach(call).finish().await?;
    if finished.status.success() {
        return Ok(());
    }
    let answer = String::from_utf8_lossy(&finished.stdout).into_owned();
    let Some(refusal) = answer.lines().find(|line| line.starts_with('!')) else {
        return Err(remote.name(finished, "push"));
    };
    // Someone may have moved the branch between the question and the push.
    let found = remote_branch(git, repo, remote).await?;
    if found.as_ref() == commit {
        return Ok(());
    }
    if found.as_ref() != expected {
        return Err(moved(branch, expected, found.as_ref()));
    }
    let words = refusal.rsplit('\t').next().unwrap_or(refusal);
    let reason = format!("{}\n{}", crate::call::printable(words), finished.stderr);
    Err(if is_about_content(words) {
        Error::PushDeclined { reason }
    } else {
        Error::PushRejected { reason }
    })
}

/// Tells a refusal of what was pushed from one of the push: a hook or a rule of the server "declined" it, or the server is
/// "refusing" what the token may not change, such as a workflow. Any other, such as a ref that cannot be locked, says nothing
/// about the commit.
fn is_about_content(words: &str) -> bool {
    words.starts_with("[remote rejected]") && (words.contains("declined") || words.contains("(refusing"))
}

/// Asks where the run's branch stands at the server.
pub(crate) async fn remote_branch(
    git: &Git,
    repo: &RunRepo,
    remote: &Remote<'_>,
) -> Result<Option<CommitId>, Error> {
    let branch = repo.branch();
    let refs = remote.refs(git, repo.path(), &[&branch]).await?;
    Ok(refs
        .into_iter()
        .find(|(name, _)| *name == branch)
        .map(|(_, id)| id))
}

fn moved(branch: String, expected: Option<&CommitId>, found: Option<&CommitId>) -> Error {
    let show = |id: Option<&CommitId>| id.map_or("nothing".to_owned(), ToString::to_string);
    Error::RemoteMoved {
        branch,
        expected: show(expected),
        found: show(found),
        advice: match expected {
            None => "move that branch away",
            Some(_) => "set it back to what was expected",
        },
    }
}
