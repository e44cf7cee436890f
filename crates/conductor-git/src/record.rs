//! Remembers, outside of the working directory, what it was filled with and whether an agent has had it.
//!
//! The record only saves work: without one, a directory is treated as handed over. This module does not know the
//! directory itself.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use conductor_domain::id::{CommitId, RunId};

use crate::error::Error;
use crate::layout::{Layout, sync_directory};

/// What is known about the working directory of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Record {
    /// It holds this commit, and nobody but Conductor has had access to it.
    Fresh(CommitId),
    /// It was handed over when it held this commit.
    Given(CommitId),
}

impl Record {
    /// Reads the record of `run`; one that cannot be understood counts as none.
    pub(crate) fn read(layout: &Layout, run: &RunId) -> Result<Option<Self>, Error> {
        let path = place(layout, run);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::io("read", path, e)),
        };
        Ok(match text.trim_end().split_once(' ') {
            Some(("fresh", id)) => CommitId::parse(id).ok().map(Self::Fresh),
            Some(("given", id)) => CommitId::parse(id).ok().map(Self::Given),
            _ => None,
        })
    }

    /// Writes the record durably.
    pub(crate) fn write(&self, layout: &Layout, run: &RunId) -> Result<(), Error> {
        let text = match self {
            Self::Fresh(commit) => format!("fresh {commit}\n"),
            Self::Given(commit) => format!("given {commit}\n"),
        };
        write_durably(&place(layout, run), text.as_bytes())
    }
}

fn place(layout: &Layout, run: &RunId) -> PathBuf {
    layout.run(run).join("workdir")
}

/// Replaces a small file so that a crash leaves the old or the new content.
pub(crate) fn write_durably(path: &Path, content: &[u8]) -> Result<(), Error> {
    let parent = path.parent().unwrap_or(path);
    let write = || -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(parent)?;
        file.write_all(content)?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    };
    write().map_err(|e| Error::io("write", path, e))?;
    sync_directory(parent)
}
