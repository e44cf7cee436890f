//! Compares two commits by their objects, and marks what needs a human (S-10, S-11).
//!
//! The comparison is `diff-tree --raw`: modes, ids and path bytes of every change, without renames, attributes or
//! text conversion, so nothing in the repository can hide a change from it. Its digest is what approvals are bound
//! to. This module does not know what a policy makes of a mark.

use std::collections::HashSet;

use conductor_domain::digest::Digest;
use conductor_domain::id::CommitId;

use crate::call::{Call, Git};
use crate::error::Error;
use crate::object::ObjectId;
use crate::run_repo::RunRepo;

mod blobs;
mod mark;
mod render;

pub(crate) use blobs::{Blobs, named, split};
pub use mark::Mark;
pub(crate) use render::shown_path;

/// The kinds of entry that a tree can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A regular file that may be run.
    Executable,
    /// A symbolic link.
    Symlink,
    /// A link to a commit of another repository.
    Gitlink,
}

/// One side of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it is.
    pub kind: EntryKind,
    /// Its blob, or the commit of a gitlink.
    pub id: ObjectId,
    /// Its length; `None` for a gitlink.
    pub size: Option<u64>,
    /// Whether it holds a NUL byte near its start; files too large to be read count as binary.
    pub is_binary: bool,
    /// What it holds; `None` for a gitlink, and where that is more than is read.
    pub content: Option<Vec<u8>>,
}

/// One changed path; at least one side is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The exact bytes of the path.
    pub path: Vec<u8>,
    /// What was there.
    pub old: Option<Entry>,
    /// What is there now.
    pub new: Option<Entry>,
    /// What needs a human.
    pub marks: Vec<Mark>,
}

/// The difference between two commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// Over the raw comparison: paths, modes and ids of both sides.
    pub digest: Digest,
    /// Every changed path, in git's order.
    pub changes: Vec<Change>,
    /// What commits on the way brought that the last one does not hold: who gets the branch gets that, too.
    pub passing: Vec<Change>,
    /// The difference as text, for people only.
    pub rendered: String,
    /// The paths, as they are shown, whose change is not whole in it.
    pub unshown: Vec<String>,
}

/// Compares the trees of two commits of the run; more than `most` changed paths are refused as too large.
pub(crate) async fn diff(
    git: &Git,
    repo: &RunRepo,
    from: &CommitId,
    to: &CommitId,
    most: usize,
) -> Result<Diff, Error> {
    repo.require(git, from).await?;
    repo.require(git, to).await?;
    let raw = compare(repo.call(git, "diff-tree"), from.as_str(), to.as_str()).await?;
    let digest = Digest::of(&raw);
    let mut changes = parse(&raw, most)?;
    let blobs = Blobs::read(git, repo, &changes).await?;
    fill(&mut changes, &blobs);
    let passing = passing(git, repo, from, to, &changes, most).await?;
    let names = repo
        .call(git, "ls-tree")
        .args(["-r", "-z", "--name-only", to.as_str()])
        .bytes()
        .await?;
    // Both take long for a large change, and whoever waits for this has a lease to renew.
    let rendering = tokio::task::spawn_blocking(move || {
        mark::mark(&mut changes, &blobs, &names);
        let (rendered, unshown) = render::render(&changes, &blobs);
        Diff {
            digest,
            changes,
            passing,
            rendered,
            unshown,
        }
    });
    rendering.await.map_err(|e| Error::UnexpectedOutput {
        verb: "diff-tree",
        detail: e.to_string(),
    })
}

/// Compares two trees by their objects, with a `diff-tree` that was begun where both are; nothing in the repository can
/// hide a change from this.
pub(crate) async fn compare(diff_tree: Call<'_>, from: &str, to: &str) -> Result<Vec<u8>, Error> {
    diff_tree
        .args([
            "-r",
            "-z",
            "--raw",
            "--no-renames",
            "--no-abbrev",
            "--no-commit-id",
        ])
        .args([
            "--no-ext-diff",
            "--no-textconv",
            "--ignore-submodules=none",
            from,
            to,
        ])
        .bytes()
        .await
}

/// Adds what the blobs hold.
fn fill(changes: &mut [Change], blobs: &Blobs) {
    for change in changes {
        for entry in [&mut change.old, &mut change.new].into_iter().flatten() {
            entry.size = blobs.size(&entry.id);
            entry.is_binary = blobs.is_binary(&entry.id);
            entry.content = blobs.content(&entry.id).map(<[u8]>::to_vec);
        }
    }
}

/// Finds what commits between the two brought that is not part of the whole difference.
async fn passing(
    git: &Git,
    repo: &RunRepo,
    from: &CommitId,
    to: &CommitId,
    whole: &[Change],
    most: usize,
) -> Result<Vec<Change>, Error> {
    let between = repo
        .call(git, "rev-list")
        .args(["--reverse", "--topo-order", "--min-parents=1", to.as_str()])
        .arg(format!("^{from}"))
        .text()
        .await?;
    let commits: Vec<&str> = between.lines().collect();
    // A name leaves like what it names: what is kept under another name was brought under this one all the same.
    let kept: HashSet<(&[u8], &ObjectId)> = whole
        .iter()
        .filter_map(|change| change.new.as_ref().map(|end| (change.path.as_slice(), &end.id)))
        .collect();
    let mut passing: Vec<Change> = Vec::new();
    // One commit alone is the whole difference.
    for commit in commits.iter().filter(|_| commits.len() > 1) {
        let raw = compare(repo.call(git, "diff-tree"), &format!("{commit}^"), commit).await?;
        let brought = parse(&raw, most)?.into_iter();
        passing.extend(brought.filter(|change| {
            change
                .new
                .as_ref()
                .is_some_and(|brought| !kept.contains(&(change.path.as_slice(), &brought.id)))
        }));
        if passing.len() > most {
            return Err(too_many(most));
        }
    }
    let blobs = Blobs::read(git, repo, &passing).await?;
    fill(&mut passing, &blobs);
    Ok(passing)
}

/// Reads what git said of two trees, marks it and shows it, as [`diff`] does but without any blob; for the fuzzer.
#[doc(hidden)]
pub fn read_raw_diff(raw: &[u8], names: &[u8]) -> Result<(Vec<Change>, String), Error> {
    let (mut changes, blobs) = (parse(raw, usize::MAX)?, Blobs::default());
    mark::mark(&mut changes, &blobs, names);
    let (rendered, _unshown) = render::render(&changes, &blobs);
    Ok((changes, rendered))
}

/// Lists the paths of a commit of the run with their lengths; a gitlink has none.
pub(crate) async fn files(
    git: &Git,
    repo: &RunRepo,
    commit: &CommitId,
) -> Result<Vec<(Vec<u8>, Option<u64>)>, Error> {
    repo.require(git, commit).await?;
    let listed = repo
        .call(git, "ls-tree")
        .args(["-r", "-l", "-z", commit.as_str()])
        .bytes()
        .await?;
    let entries = listed.split(|b| *b == 0).filter(|entry| !entry.is_empty());
    entries.map(parse_file).collect()
}

/// Reads `mode type id size TAB path`; the size is padded, and `-` where there is none.
fn parse_file(entry: &[u8]) -> Result<(Vec<u8>, Option<u64>), Error> {
    let unexpected = || Error::UnexpectedOutput {
        verb: "ls-tree",
        detail: String::from_utf8_lossy(entry).chars().take(120).collect(),
    };
    let tab = entry.iter().position(|b| *b == b'\t').ok_or_else(unexpected)?;
    let (about, path) = (&entry[..tab], &entry[tab + 1..]);
    let about = std::str::from_utf8(about).map_err(|_| unexpected())?;
    let size = about.split_ascii_whitespace().nth(3).ok_or_else(unexpected)?;
    let size = match size {
        "-" => None,
        size => Some(size.parse().map_err(|_| unexpected())?),
    };
    Ok((path.to_owned(), size))
}

/// Reads `:oldmode newmode oldid newid status NUL path NUL` records, up to `most` of them.
pub(crate) fn parse(raw: &[u8], most: usize) -> Result<Vec<Change>, Error> {
    let unexpected = |what: &[u8]| Error::UnexpectedOutput {
        verb: "diff-tree",
        detail: String::from_utf8_lossy(what).chars().take(120).collect(),
    };
    let mut changes = Vec::new();
    let mut fields = raw.split(|b| *b == 0).filter(|field| !field.is_empty());
    while let Some(header) = fields.next() {
        if changes.len() == most {
            return Err(too_many(most));
        }
        let path = fields.next().ok_or_else(|| unexpected(header))?;
        let text = std::str::from_utf8(header).map_err(|_| unexpected(header))?;
        let text = text.strip_prefix(':').ok_or_else(|| unexpected(header))?;
        let parts: Vec<&str> = text.split(' ').collect();
        let [old_mode, new_mode, old_id, new_id, _status] = parts[..] else {
            return Err(unexpected(header));
        };
        let side = |mode: &str, id: &str| -> Result<Option<Entry>, Error> {
            let kind = match mode {
                "000000" => return Ok(None),
                "100755" => EntryKind::Executable,
                "120000" => EntryKind::Symlink,
                "160000" => EntryKind::Gitlink,
                mode if mode.starts_with("100") => EntryKind::File,
                _ => return Err(unexpected(header)),
            };
            Ok(Some(Entry {
                kind,
                id: ObjectId::parse(id)?,
                size: None,
                is_binary: false,
                content: None,
            }))
        };
        let (old, new) = (side(old_mode, old_id)?, side(new_mode, new_id)?);
        changes.push(Change {
            path: path.to_owned(),
            old,
            new,
            marks: Vec::new(),
        });
    }
    Ok(changes)
}

pub(crate) fn too_many(most: usize) -> Error {
    Error::SnapshotTooLarge {
        limit: format!("{most} changed paths"),
    }
}
