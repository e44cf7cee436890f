//! Moves a run's commits onto a new base without any working directory (S-13).
//!
//! Each commit is merged as a tree and written again with its own words and times, so the same rebase always
//! makes the same commits. The outcome stands under a ref named after the effect before the branch moves, so a
//! repeat finds it, and another rebase of the same commits does not. This module does not know how a conflict is solved.

use conductor_domain::id::CommitId;
use conductor_port::workspace::RebaseOrder;

use crate::call::Git;
use crate::commit::expect_branch;
use crate::error::Error;
use crate::lock::Lock;
use crate::object::{ObjectId, commit_id};
use crate::run_repo::RunRepo;

/// What came of a rebase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The branch stands on the new base.
    Clean {
        /// The new base.
        base: CommitId,
        /// The new head.
        head: CommitId,
    },
    /// Nothing was moved; these paths conflict.
    Conflicted(Vec<Vec<u8>>),
}

/// Replays the commits of the branch, which must stand at the order's head, onto `onto`.
///
/// If repeated: returns the earlier outcome, on the base that was chosen then.
pub(crate) async fn rebase(
    git: &Git,
    repo: &RunRepo,
    lock: &Lock,
    RebaseOrder {
        effect, base, head, ..
    }: &RebaseOrder,
    onto: &CommitId,
) -> Result<Outcome, Error> {
    let head_mark = format!("refs/conductor/rebased/{effect}/head");
    let base_mark = format!("refs/conductor/rebased/{effect}/base");
    if let (Some(new), Some(base)) = (
        repo.resolve(git, &head_mark).await?,
        repo.resolve(git, &base_mark).await?,
    ) {
        if repo.head(git).await? == *head {
            repo.move_ref(git, lock, &repo.branch(), &new, Some(head)).await?;
        }
        expect_branch(git, repo, &new).await?;
        return Ok(Outcome::Clean { base, head: new });
    }
    expect_branch(git, repo, head).await?;
    let listed = repo
        .call(git, "rev-list")
        .args(["--reverse", "--topo-order", head.as_str()])
        .args(["--not", base.as_str(), onto.as_str()])
        .text()
        .await?;
    let commits: Vec<CommitId> = listed.lines().map(commit_id).collect::<Result<_, _>>()?;
    // What the base branch went back on is below the work, and stays behind.
    if is_below(git, repo, base, onto).await? && is_below(git, repo, onto, head).await? {
        return Ok(Outcome::Clean {
            base: onto.clone(),
            head: head.clone(),
        });
    }
    let mut tip = onto.clone();
    for commit in &commits {
        match replay(git, repo, commit, &tip).await? {
            Replayed::Made(made) => tip = made,
            Replayed::Empty => {}
            Replayed::Conflicted(paths) => return Ok(Outcome::Conflicted(paths)),
        }
    }
    put(git, repo, lock, &base_mark, onto).await?;
    put(git, repo, lock, &head_mark, &tip).await?;
    repo.move_ref(git, lock, &repo.branch(), &tip, Some(head)).await?;
    Ok(Outcome::Clean {
        base: onto.clone(),
        head: tip,
    })
}

async fn is_below(git: &Git, repo: &RunRepo, low: &CommitId, high: &CommitId) -> Result<bool, Error> {
    let asked = repo
        .call(git, "merge-base")
        .args(["--is-ancestor", low.as_str(), high.as_str()]);
    Ok(asked.finish().await?.status.success())
}

/// Writes a mark, over one that an interrupted try left.
async fn put(git: &Git, repo: &RunRepo, lock: &Lock, name: &str, value: &CommitId) -> Result<(), Error> {
    let before = repo.resolve(git, name).await?;
    repo.move_ref(git, lock, name, value, before.as_ref()).await
}

enum Replayed {
    Made(CommitId),
    Empty,
    Conflicted(Vec<Vec<u8>>),
}

async fn replay(git: &Git, repo: &RunRepo, commit: &CommitId, tip: &CommitId) -> Result<Replayed, Error> {
    let raw = repo
        .call(git, "cat-file")
        .args(["commit", commit.as_str()])
        .bytes()
        .await?;
    let Original {
        parent,
        author,
        committer,
        message,
    } = parse(&raw)?;
    let merged = repo
        .call(git, "merge-tree")
        .args([
            "--write-tree",
            "-z",
            "--name-only",
            "--no-messages",
            "--allow-unrelated-histories",
        ])
        .arg(format!("--merge-base={parent}"))
        .args([tip.as_str(), commit.as_str()])
        .finish()
        .await?;
    let mut parts = merged.stdout.split(|b| *b == 0);
    let tree = parts.next().unwrap_or_default();
    match merged.status.code() {
        Some(0) => {}
        Some(1) => {
            return Ok(Replayed::Conflicted(
                parts
                    .filter(|path| !path.is_empty())
                    .map(<[u8]>::to_vec)
                    .collect(),
            ));
        }
        _ => return Err(merged.into_error("merge-tree")),
    }
    let tree = ObjectId::parse(&String::from_utf8_lossy(tree))?;
    if tree == repo.tree_of(git, tip).await? {
        return Ok(Replayed::Empty);
    }
    let mut again = format!("tree {tree}\nparent {tip}\n").into_bytes();
    for (name, value) in [("author", author), ("committer", committer)] {
        again.extend_from_slice(name.as_bytes());
        again.push(b' ');
        again.extend_from_slice(value);
        again.push(b'\n');
    }
    again.push(b'\n');
    again.extend_from_slice(message);
    let made = repo
        .call(git, "hash-object")
        .args(["-t", "commit", "-w", "--stdin"])
        .input(again)
        .text()
        .await?;
    commit_id(made.trim()).map(Replayed::Made)
}

struct Original<'a> {
    parent: CommitId,
    author: &'a [u8],
    committer: &'a [u8],
    message: &'a [u8],
}

/// Reads a commit that Conductor wrote: one parent, no signature.
fn parse(raw: &[u8]) -> Result<Original<'_>, Error> {
    let unexpected = |detail: &str| Error::UnexpectedOutput {
        verb: "cat-file",
        detail: detail.to_owned(),
    };
    let end = raw
        .windows(2)
        .position(|pair| pair == b"\n\n")
        .ok_or_else(|| unexpected("a commit without message"))?;
    let (mut parent, mut author, mut committer) = (None, None, None);
    for line in raw[..end].split(|b| *b == b'\n') {
        if let Some(id) = line.strip_prefix(b"parent ") {
            if parent.replace(commit_id(&String::from_utf8_lossy(id))?).is_some() {
                return Err(unexpected("a merge on a run's branch"));
            }
        } else if let Some(value) = line.strip_prefix(b"author ") {
            author = Some(value);
        } else if let Some(value) = line.strip_prefix(b"committer ") {
            committer = Some(value);
        }
    }
    match (parent, author, committer) {
        (Some(parent), Some(author), Some(committer)) => Ok(Original {
            parent,
            author,
            committer,
            message: &raw[end + 2..],
        }),
        _ => Err(unexpected("a commit without parent, author or committer")),
    }
}
