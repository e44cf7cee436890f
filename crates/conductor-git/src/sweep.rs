//! Finds directories that no run accounts for, and sets them aside; removes nothing that could be work.
//!
//! One function decides, so that a dry run reports exactly what a real one does (invariant 8).
//! This module does not know which runs exist; the caller says.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::PathBuf;

use conductor_domain::id::RunId;

use crate::aside::Aside;
use crate::error::Error;
use crate::layout::Layout;
use crate::workdir::remove_tree;

/// Whether to act on what is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Report only.
    DryRun,
    /// Report and set aside.
    SetAside,
}

/// A directory that no run accounts for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// Where it was found.
    pub path: PathBuf,
    /// Where it was put, when it was.
    pub set_aside: Option<PathBuf>,
}

/// Looks through the working directories for what is not among `known`.
pub(crate) fn sweep(layout: &Layout, known: &BTreeSet<RunId>, mode: Mode) -> Result<Vec<Unknown>, Error> {
    let unknown = decide(layout, known)?;
    match mode {
        Mode::DryRun => Ok(unknown),
        Mode::SetAside => unknown
            .into_iter()
            .map(|found| set_aside(layout, found))
            .collect(),
    }
}

fn decide(layout: &Layout, known: &BTreeSet<RunId>) -> Result<Vec<Unknown>, Error> {
    let parent = layout.worktrees();
    let expected: BTreeSet<OsString> = known.iter().map(|run| format!("run-{run}").into()).collect();
    let mut unknown = Vec::new();
    for entry in fs::read_dir(&parent).map_err(|e| Error::io("list", &parent, e))? {
        let entry = entry.map_err(|e| Error::io("list", &parent, e))?;
        if !expected.contains(&entry.file_name()) {
            unknown.push(Unknown {
                path: entry.path(),
                set_aside: None,
            });
        }
    }
    unknown.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(unknown)
}

fn set_aside(layout: &Layout, found: Unknown) -> Result<Unknown, Error> {
    let set_aside = Aside::reserve(layout, &found.path, "found-")?.take()?;
    Ok(Unknown {
        set_aside: Some(set_aside),
        ..found
    })
}

/// Finishes removals that a crash interrupted; what lies in the trash was saved before it came there.
pub(crate) fn empty_trash(layout: &Layout) -> Result<(), Error> {
    let trash = layout.trash();
    for entry in fs::read_dir(&trash).map_err(|e| Error::io("list", &trash, e))? {
        let path = entry.map_err(|e| Error::io("list", &trash, e))?.path();
        match remove_tree(&path) {
            Ok(()) => {}
            // Another process may be at the same removal.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(Error::io("remove", path, e)),
        }
    }
    Ok(())
}
