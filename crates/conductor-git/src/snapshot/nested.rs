//! Finds the directories that git must not look into: those with a `.git` of their own, and submodules.
//!
//! git would read such a `.git`, and on a second look run what its configuration names (SECURITY §10). So their
//! files are listed here, by plain directory reading that follows no link, and handed to git one by one: work in
//! a nested repository is kept as plain files, and the nested `.git` itself is never opened.
//!
//! This module does not know what git does with the rest.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use super::{Purpose, Request, zero_terminated};
use crate::call::{Git, Place};
use crate::error::Error;

/// What git must be told apart from the rest; paths are relative to the working directory.
#[derive(Debug, Default)]
pub(crate) struct Apart {
    /// Directories that git must not enter.
    pub(crate) directories: Vec<PathBuf>,
    /// Files below them that belong to the snapshot.
    pub(crate) files: Vec<PathBuf>,
}

/// Looks for nested repositories and submodules with content.
pub(crate) async fn find(git: &Git, place: Place<'_>, request: &Request) -> Result<Apart, Error> {
    let links = submodules(git, place).await?;
    let root = request.workdir.clone();
    let known = links.clone();
    let purpose = request.purpose;
    let (directories, candidates) = tokio::task::spawn_blocking(move || {
        let mut found = Walk {
            root,
            links: known,
            directories: Vec::new(),
            files: Vec::new(),
        };
        found.outside(Path::new(""));
        found.inside_all(purpose);
        (found.directories, found.files)
    })
    .await
    .map_err(|e| Error::SnapshotFailed {
        workdir: request.workdir.clone(),
        detail: e.to_string(),
    })?;
    let ignored = ignored(git, place, &candidates).await?;
    let files = candidates
        .into_iter()
        .filter(|path| !ignored.contains(path))
        .collect();
    Ok(Apart { directories, files })
}

async fn submodules(git: &Git, place: Place<'_>) -> Result<BTreeSet<PathBuf>, Error> {
    let listed = git.call(place, "ls-files").args(["-s", "-z"]).bytes().await?;
    let entries = listed.split(|b| *b == 0);
    Ok(entries
        .filter(|entry| entry.starts_with(b"160000 "))
        .filter_map(path_after_tab)
        .collect())
}

fn path_after_tab(entry: &[u8]) -> Option<PathBuf> {
    let tab = entry.iter().position(|b| *b == b'\t')?;
    Some(to_path(&entry[tab + 1..]))
}

fn to_path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(std::ffi::OsString::from_vec(bytes.to_vec()))
}

async fn ignored(git: &Git, place: Place<'_>, candidates: &[PathBuf]) -> Result<BTreeSet<PathBuf>, Error> {
    if candidates.is_empty() {
        return Ok(BTreeSet::new());
    }
    let check = git
        .call(place, "check-ignore")
        .args(["--no-index", "-z", "--stdin"]);
    let finished = check.input(zero_terminated(candidates)).finish().await?;
    match finished.status.code() {
        Some(0 | 1) => {
            let paths = finished.stdout.split(|b| *b == 0).filter(|path| !path.is_empty());
            Ok(paths.map(to_path).collect())
        }
        _ => Err(finished.into_error("check-ignore")),
    }
}

struct Walk {
    root: PathBuf,
    links: BTreeSet<PathBuf>,
    directories: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

impl Walk {
    /// Looks for directories to keep apart. One that cannot be listed is left to git, which complains about it
    /// unless it is ignored.
    fn outside(&mut self, directory: &Path) {
        let mut below = Vec::new();
        for (name, kind) in entries(&self.root.join(directory)) {
            let path = directory.join(&name);
            let is_top = directory.as_os_str().is_empty();
            if is_git_directory(&name) && !is_top {
                self.directories.push(directory.to_owned());
                return;
            }
            if kind.is_dir() && !is_git_directory(&name) {
                below.push(path);
            }
        }
        for path in below {
            if self.links.contains(&path) {
                if !entries(&self.root.join(&path)).is_empty() {
                    self.directories.push(path);
                }
            } else {
                self.outside(&path);
            }
        }
    }

    fn inside_all(&mut self, purpose: Purpose) {
        for directory in self.directories.clone() {
            match purpose {
                Purpose::Commit if self.links.contains(&directory) => {}
                Purpose::Commit | Purpose::Save => self.inside(&directory),
            }
        }
    }

    fn inside(&mut self, directory: &Path) {
        for (name, kind) in entries(&self.root.join(directory)) {
            let path = directory.join(&name);
            if is_git_directory(&name) {
                continue;
            }
            if kind.is_dir() {
                self.inside(&path);
            } else if kind.is_file() || kind.is_symlink() {
                self.files.push(path);
            }
        }
    }
}

fn entries(directory: &Path) -> Vec<(std::ffi::OsString, fs::FileType)> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| Some((entry.file_name(), entry.file_type().ok()?)))
        .collect()
}

fn is_git_directory(name: &std::ffi::OsStr) -> bool {
    name.as_bytes().eq_ignore_ascii_case(b".git")
}
