//! Reads a path as a place beneath the root, and finds the one place of a text.
//!
//! What could mean another place is refused before the kernel is asked. This module does not touch any file.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::response::{MAX_PLACES, Refusal};

/// A path beneath the root: its directories, then its name, if it has one.
#[derive(Debug)]
pub(super) struct Place<'a>(Vec<&'a [u8]>);

impl<'a> Place<'a> {
    /// Reads the path of a file; it has a name.
    pub(super) fn file(path: &'a Path) -> Result<Self, Refusal> {
        let place = Self::directory(path)?;
        match place.0.last() {
            Some(name) if path.as_os_str().as_bytes().ends_with(name) => Ok(place),
            Some(_) | None => Err(Refusal::NotAFile),
        }
    }

    /// Reads the path of a directory; the root is empty.
    pub(super) fn directory(path: &'a Path) -> Result<Self, Refusal> {
        let bytes = path.as_os_str().as_bytes();
        if bytes.contains(&0) {
            return Err(Refusal::Invalid("a path holds a NUL byte".into()));
        }
        let parts = || bytes.split(|byte| *byte == b'/');
        if bytes.starts_with(b"/") || parts().any(|part| part == b"..") {
            return Err(Refusal::Outside);
        }
        Ok(Self(
            parts().filter(|part| !matches!(*part, b"" | b".")).collect(),
        ))
    }

    /// Reads a path as it is, for a test that left the refusals out.
    pub(super) fn unchecked(path: &'a Path) -> Self {
        let parts = path.as_os_str().as_bytes().split(|byte| *byte == b'/');
        Self(parts.collect())
    }

    pub(super) fn parts(&self) -> impl Iterator<Item = &'a [u8]> {
        self.0.iter().copied()
    }

    /// The name; only [`Place::file`] makes sure that there is one.
    pub(super) fn name(&self) -> &'a [u8] {
        self.0.last().copied().unwrap_or_default()
    }

    pub(super) fn parents(&self) -> &[&'a [u8]] {
        &self.0[..self.0.len().saturating_sub(1)]
    }
}

/// Finds the one place of `old`; overlapping ones count, because either could be meant.
pub(super) fn only_match(bytes: &[u8], old: &[u8]) -> Result<usize, Refusal> {
    if old.is_empty() {
        return Err(Refusal::Invalid("the text to replace is empty".into()));
    }
    let finder = memchr::memmem::Finder::new(old);
    let most = usize::try_from(MAX_PLACES).unwrap_or(usize::MAX);
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(found) = bytes.get(from..).and_then(|rest| finder.find(rest)) {
        if places.len() == most {
            return Err(ambiguous(bytes, &places, true));
        }
        places.push(from + found);
        from += found + 1;
    }
    match places.as_slice() {
        [] => Err(Refusal::NoMatch),
        [place] => Ok(*place),
        _ => Err(ambiguous(bytes, &places, false)),
    }
}

fn ambiguous(bytes: &[u8], places: &[usize], has_more: bool) -> Refusal {
    let line = |place: &usize| 1 + memchr::memchr_iter(b'\n', &bytes[..*place]).count();
    Refusal::Ambiguous {
        lines: places
            .iter()
            .map(|place| u32::try_from(line(place)).unwrap_or(u32::MAX))
            .collect(),
        has_more,
    }
}
