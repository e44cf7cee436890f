//! Decides which directories git must not look into: those with a `.git` of their own, and filled submodules.
//!
//! git would read such a `.git`, and on a second look run what its configuration names (SECURITY §10). So their
//! files are listed by plain directory reading that follows no link, and handed to git one by one: work in
//! a nested repository is kept as plain files, and the nested `.git` itself is never opened.
//!
//! This module does not know what git does with the rest.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use super::room::{Room, split_at_zero, to_path, zero_terminated};
use super::{Purpose, Request};
use crate::error::Error;

/// What git must be told apart from the rest; paths are relative to the working directory.
#[derive(Debug, Default)]
pub(super) struct Apart {
    /// Directories that git must not enter.
    directories: Vec<PathBuf>,
    /// Files below them that belong to the snapshot.
    pub(super) files: Vec<PathBuf>,
}

impl Apart {
    /// Everything but those directories, as a list that `--pathspec-from-file` reads.
    pub(super) fn pathspecs(&self) -> Vec<u8> {
        let mut list = b":(top)\0".to_vec();
        for directory in &self.directories {
            list.extend_from_slice(b":(top,exclude,literal)");
            list.extend_from_slice(directory.as_os_str().as_bytes());
            list.push(0);
        }
        list
    }
}

/// Looks for nested repositories and submodules with content.
pub(super) async fn find(room: &dyn Room, request: &Request) -> Result<Apart, Error> {
    let links = submodules(room).await?;
    let survey = room.survey(&links).await?;
    if let Some(path) = survey.waiting.first() {
        return Err(Error::SnapshotFailed {
            workdir: request.workdir.clone(),
            detail: format!(
                "`{}` is no regular file, and git would wait for it",
                path.display()
            ),
        });
    }
    let directories = outermost(survey.repositories.into_iter().chain(survey.filled));
    let below: Vec<PathBuf> = match request.purpose {
        Purpose::Commit => directories
            .iter()
            .filter(|path| !links.contains(*path))
            .cloned()
            .collect(),
        Purpose::Save => directories.clone(),
    };
    if below.is_empty() {
        return Ok(Apart {
            directories,
            files: Vec::new(),
        });
    }
    let candidates = room.files(&below).await?;
    let ignored = ignored(room, &candidates).await?;
    let files = candidates
        .into_iter()
        .filter(|path| !ignored.contains(path))
        .collect();
    Ok(Apart { directories, files })
}

/// Leaves out what lies below another.
fn outermost(directories: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    let all: BTreeSet<PathBuf> = directories.collect();
    let mut kept: Vec<PathBuf> = Vec::new();
    // Paths are ordered by their parts, so whatever lies below one follows it at once.
    for directory in all {
        if !kept.last().is_some_and(|outer| directory.starts_with(outer)) {
            kept.push(directory);
        }
    }
    kept
}

async fn submodules(room: &dyn Room) -> Result<Vec<PathBuf>, Error> {
    let listed = room.git("ls-files", &["-s", "-z"], Vec::new()).await?;
    if !listed.status.success() {
        return Err(listed.into_error("ls-files"));
    }
    let links = split_at_zero(&listed.stdout).filter(|entry| entry.starts_with(b"160000 "));
    Ok(links.filter_map(path_after_tab).collect())
}

fn path_after_tab(entry: &[u8]) -> Option<PathBuf> {
    let tab = entry.iter().position(|b| *b == b'\t')?;
    Some(to_path(&entry[tab + 1..]))
}

async fn ignored(room: &dyn Room, candidates: &[PathBuf]) -> Result<BTreeSet<PathBuf>, Error> {
    if candidates.is_empty() {
        return Ok(BTreeSet::new());
    }
    let check = ["--no-index", "-z", "--stdin"];
    let checked = room
        .git("check-ignore", &check, zero_terminated(candidates))
        .await?;
    match checked.status.code() {
        Some(0 | 1) => Ok(split_at_zero(&checked.stdout).map(to_path).collect()),
        _ => Err(checked.into_error("check-ignore")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: &[&str], expected: &[&str]) {
        let kept = outermost(given.iter().map(PathBuf::from));
        assert_eq!(kept, expected.iter().map(PathBuf::from).collect::<Vec<_>>());
    }

    /// S-7.
    #[test]
    fn what_lies_below_another_is_left_out() {
        check(&[], &[]);
        check(&["a/b", "a", "a-b", "a/b/c", "ab"], &["a", "a-b", "ab"]);
        check(&["x/y", "x/z", "x/y"], &["x/y", "x/z"]);
    }
}
