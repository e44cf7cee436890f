//! Where the steps of a snapshot are taken: a throw-away git directory, and eyes for the working directory.
//!
//! This module does not know the steps.

use std::ffi::OsString;
use std::path::PathBuf;

use async_trait::async_trait;

use super::Snapshot;
use crate::call::Finished;
use crate::error::Error;

/// A place with a git directory that nobody else sees, over the working directory.
#[async_trait]
pub(super) trait Room: Send + Sync {
    /// Runs git to its end, whatever the end is.
    async fn git(&self, verb: &str, args: &[&str], input: Vec<u8>) -> Result<Finished, Error>;

    /// Looks through the working directory by plain reading that follows no link; `links` are its submodules.
    async fn survey(&self, links: &[PathBuf]) -> Result<Survey, Error>;

    /// Lists the files and links below these directories, and nothing below any `.git`.
    async fn files(&self, below: &[PathBuf]) -> Result<Vec<PathBuf>, Error>;

    /// Packs the new objects and gives the room up.
    async fn pack(self: Box<Self>, tree: String, args: &[&str], input: Vec<u8>) -> Result<Snapshot, Error>;
}

/// What is odd in a working directory; paths are relative to it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Survey {
    /// Directories with a `.git` of their own, the top not counted.
    pub(super) repositories: Vec<PathBuf>,
    /// Submodules whose directory has content.
    pub(super) filled: Vec<PathBuf>,
    /// What git would open by its name and wait for: pipes, sockets and devices in place of its settings.
    pub(super) waiting: Vec<PathBuf>,
}

/// Files of a working directory that git opens by their name, without asking what they are.
pub(super) const OPENED_BY_NAME: [&str; 3] = [".gitignore", ".gitattributes", ".gitmodules"];

/// Joins paths to a list as git reads and `find` writes it.
pub(super) fn zero_terminated(paths: &[PathBuf]) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt as _;
    let mut list = Vec::new();
    for path in paths {
        list.extend_from_slice(path.as_os_str().as_bytes());
        list.push(0);
    }
    list
}

/// Reads such a list.
pub(super) fn split_at_zero(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == 0).filter(|path| !path.is_empty())
}

/// A path of bytes.
pub(super) fn to_path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStringExt as _;
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}
