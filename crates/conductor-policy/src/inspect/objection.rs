//! What is objected to in a change, each once, up to a bound.
//!
//! This module does not know how anything is found.

use std::collections::BTreeSet;

use conductor_domain::diff::{FindingKind, MOST_FINDINGS, Severity};

/// More objections than that nobody reads.
const MOST: usize = 10 * MOST_FINDINGS;

/// Something that keeps a change from being pushed as it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Objection {
    /// Where; empty for the change as a whole.
    pub path: String,
    /// The line, from 1; zero for the file as a whole.
    pub line: usize,
    /// What it is about.
    pub subject: Subject,
    /// What follows.
    pub severity: Severity,
    /// What was seen, redacted.
    pub evidence: String,
}

/// What an objection is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// What the comparison of the trees marked, a forbidden path, or one outside the plan.
    Tree(FindingKind),
    /// A secret in an added line.
    Secret,
    /// A file for an environment, where secrets live.
    EnvironmentFile,
    /// A file that decides what the tests are (S-19).
    Harness,
    /// A binary file over the limit.
    LargeBinary,
    /// A file over the limit, or too large to be read at all.
    LargeFile,
    /// A line that nobody can read.
    LongLine,
    /// Characters that are not seen, or that turn the direction of text; also a text that is shown as a binary.
    HiddenText,
    /// A path of letters from scripts that look alike.
    MixedScripts,
    /// An operator's pattern, by its name.
    Pattern(String),
    /// More files than a person can judge.
    ManyFiles,
    /// So much to object to that not all of the change was looked at.
    Unfinished,
}

impl Subject {
    /// Tells what is no better for having been taken out again: who has the branch has its commits.
    pub fn leaves_with_history(&self) -> bool {
        match self {
            Self::Secret
            | Self::EnvironmentFile
            | Self::LargeBinary
            | Self::LargeFile
            | Self::Pattern(_)
            | Self::Unfinished => true,
            Self::Tree(_)
            | Self::Harness
            | Self::LongLine
            | Self::HiddenText
            | Self::MixedScripts
            | Self::ManyFiles => false,
        }
    }
}

/// Objections, each once, of which only those are taken that count.
pub(super) struct Objections {
    found: BTreeSet<Objection>,
    counts: fn(&Subject) -> bool,
}

impl Objections {
    pub(super) fn new(counts: fn(&Subject) -> bool) -> Self {
        Self {
            found: BTreeSet::new(),
            counts,
        }
    }

    pub(super) fn insert(&mut self, objection: Objection) {
        if (self.counts)(&objection.subject) {
            self.found.insert(objection);
        }
    }

    /// Tells whether there are more than anybody reads.
    pub(super) fn is_full(&self) -> bool {
        self.found.len() > MOST
    }

    /// Lists them, sorted; where there are more than anybody reads, that they are not all is one of them.
    pub(super) fn list(mut self) -> Vec<Objection> {
        if self.is_full() {
            self.found.insert(Objection {
                path: String::new(),
                line: 0,
                subject: Subject::Unfinished,
                severity: Severity::Violation,
                evidence: format!("more than {MOST}, so that the rest was not looked at"),
            });
        }
        self.found.into_iter().collect()
    }
}
