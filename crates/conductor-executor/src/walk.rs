//! Lists and searches, between the port's words and the guest's.
//!
//! This module does not know where the walk happens.

use std::ffi::OsString;
use std::path::Path;

use conductor_guest::file::Findings;
use conductor_guest::order::{self, Walk};
use conductor_guest::response::{self, Kind, Response, Walked};
use conductor_port::executor::{Entry, EntryKind, Found, MAX_FINDINGS, Match, Pattern};

/// How long a walk may take; what it found by then is the answer.
const WALK_MS: u32 = 10_000;

/// Asks for everything beneath a directory. Git's own files are no part of the work, and there are many.
pub(crate) fn order(path: &str) -> Walk {
    Walk {
        path: path.into(),
        depth: u16::MAX,
        findings: MAX_FINDINGS,
        time_ms: WALK_MS,
        skip: vec![OsString::from(".git")],
    }
}

pub(crate) fn pattern(pattern: &Pattern) -> order::Pattern {
    match pattern {
        Pattern::Literal(text) => order::Pattern::Literal(text.clone().into_bytes()),
        Pattern::Regex(text) => order::Pattern::Regex(text.clone()),
    }
}

pub(crate) fn found<T, U>(walked: Walked, findings: Vec<T>, say: fn(T) -> U) -> Found<U> {
    Found {
        findings: findings.into_iter().map(say).collect(),
        is_complete: walked.is_complete,
        skipped: walked.skipped,
    }
}

pub(crate) fn entry(entry: response::Entry) -> Entry {
    Entry {
        path: name(&entry.path),
        kind: match entry.kind {
            Kind::File => EntryKind::File,
            Kind::Directory => EntryKind::Directory,
            Kind::Symlink => EntryKind::Symlink,
            Kind::Other => EntryKind::Other,
        },
        size: entry.size,
    }
}

pub(crate) fn line(found: response::Match) -> Match {
    Match {
        path: name(&found.path),
        line: found.line,
        text: found.text,
    }
}

/// Takes what a walk in this process finds.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub(crate) entries: Vec<response::Entry>,
    pub(crate) matches: Vec<response::Match>,
}

impl Findings for Gathered {
    fn take(&mut self, batch: Response) {
        match batch {
            Response::Entries(entries) => self.entries.extend(entries),
            Response::Matches(matches) => self.matches.extend(matches),
            Response::Output { .. }
            | Response::FileBytes(_)
            | Response::Exited(_)
            | Response::Done
            | Response::Walked(_)
            | Response::Listening { .. }
            | Response::Ready { .. }
            | Response::Refused(_)
            | Response::Fault(_) => {}
        }
    }

    fn is_late(&self) -> bool {
        // Only tests and the demo walk here, over trees of their own.
        false
    }
}

fn name(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
