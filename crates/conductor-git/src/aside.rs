//! Moves directories aside, whole, for a person to look at; nothing that lies there is ever removed.
//!
//! This module does not know why a directory has to go, or what lies in it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::layout::{Layout, make_temporary, sync_directory};

/// A place of its own for one directory, known before the directory comes there, so that it can be noted first.
#[derive(Debug)]
pub(crate) struct Aside {
    holder: tempfile::TempDir,
    quarantine: PathBuf,
    from: PathBuf,
    to: PathBuf,
}

impl Aside {
    /// Makes a place for the directory at `from`; `prefix` says how it came there.
    pub(crate) fn reserve(layout: &Layout, from: &Path, prefix: &str) -> Result<Self, Error> {
        let quarantine = layout.quarantine();
        let holder = make_temporary(&quarantine, prefix)?;
        let to = holder.path().join(from.file_name().unwrap_or_default());
        Ok(Self {
            holder,
            quarantine,
            from: from.to_owned(),
            to,
        })
    }

    /// Where the directory will lie.
    pub(crate) fn path(&self) -> &Path {
        &self.to
    }

    /// Moves the directory there. If this fails, it is where it was, and the place is given up.
    pub(crate) fn take(self) -> Result<PathBuf, Error> {
        fs::rename(&self.from, &self.to).map_err(|e| Error::io("move aside", &self.from, e))?;
        let holder = self.holder.keep();
        sync_directory(&holder)?;
        sync_directory(&self.quarantine)?;
        Ok(self.to)
    }
}
