//! Judges a change before it is pushed: secrets, sizes, forbidden and harness files, hidden characters, patterns, plan.
//!
//! It is told what each side of every changed path holds, byte for byte, and what git's own look at the trees marked
//! (S-10, S-11). It looks at what was added, not at what stood there before. What it objects to carries redacted
//! evidence.
//!
//! This module does not know how trees are read, who is asked, or what a run does while it waits.

mod objection;
pub mod pattern;
pub mod class;
pub(crate) mod path;

use std::collections::BTreeSet;

use conductor_domain::diff::{FindingKind, Severity};

use crate::hidden;
use crate::redact::Redactor;
use crate::secret::live::LiveSecrets;
use crate::secret::{Certainty, Sighting, armour};
use objection::Objections;
pub use objection::{Objection, Subject};
use pattern::Pattern;

/// One changed path.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// The path; bytes that are not UTF-8 are shown escaped.
    pub path: &'a str,
    /// What was there.
    pub before: Side<'a>,
    /// What is there now.
    pub after: Side<'a>,
    /// What the comparison of the trees marked.
    pub marks: &'a [FindingKind],
}

/// What one side of a change holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side<'a> {
    /// Nothing.
    Absent,
    /// A file.
    File(&'a [u8]),
    /// A file too large to be read.
    Unread {
        /// Its length.
        size: u64,
    },
    /// A symbolic link, or a link to another repository; `marks` speak of those.
    Link,
}

impl<'a> Side<'a> {
    fn bytes(self) -> &'a [u8] {
        match self {
            Self::File(bytes) => bytes,
            Self::Absent | Self::Unread { .. } | Self::Link => &[],
        }
    }
}

/// What a change may be at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a text file.
    pub file: u64,
    /// Bytes of a binary file.
    pub binary: u64,
    /// Changed paths.
    pub files: usize,
    /// Bytes of one line; longer ones hide what they hold from a reader.
    pub line: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file: 1024 * 1024,
            binary: 256 * 1024,
            files: 100,
            line: 10_000,
        }
    }
}

/// What a person would not see of a rendered difference; see [`Inspector::unshown`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unshown {
    /// Lines that are hidden together with others.
    pub lines: usize,
    /// Lines of which a part is hidden that nothing objects to.
    pub parts: usize,
}

/// Judges changes.
#[derive(Debug)]
pub struct Inspector {
    limits: Limits,
    patterns: Vec<Pattern>,
    redactor: Redactor,
}

/// Evidence longer than this is cut, visibly.
const LONGEST_EVIDENCE: usize = 160;

impl Inspector {
    /// Makes an inspector with an operator's limits and patterns, and the secrets of this instance.
    pub fn new(limits: Limits, patterns: Vec<Pattern>, live: LiveSecrets) -> Self {
        Self {
            limits,
            patterns,
            redactor: Redactor::new(live),
        }
    }

    /// Lists everything to object to, sorted; `plan` lists the files that were approved (S-51). Far behind what anybody reads it
    /// looks no further, because a file can be made of nothing else, and objects to that.
    pub fn inspect(&self, changes: &[Change<'_>], plan: &[String]) -> Vec<Objection> {
        self.list(changes, plan, |_any| true)
    }

    /// Lists the same for whoever compares the plan by other means.
    pub fn inspect_without_plan(&self, changes: &[Change<'_>]) -> Vec<Objection> {
        self.list(changes, &[], |subject| {
            *subject != Subject::Tree(FindingKind::OutsidePlan)
        })
    }

    /// Lists what to object to in what was taken out again, and leaves with the commits that brought it.
    pub fn inspect_passing(&self, changes: &[Change<'_>]) -> Vec<Objection> {
        self.list(changes, &[], Subject::leaves_with_history)
    }

    fn list(&self, changes: &[Change<'_>], plan: &[String], counts: fn(&Subject) -> bool) -> Vec<Objection> {
        let mut objections = Objections::new(counts);
        if changes.len() > self.limits.files {
            objections.insert(Objection {
                path: String::new(),
                line: 0,
                subject: Subject::ManyFiles,
                severity: Severity::NeedsApproval,
                evidence: format!("{} files, the limit is {}", changes.len(), self.limits.files),
            });
        }
        for change in changes {
            if objections.is_full() {
                break;
            }
            names(change, plan, &mut objections);
            if change.before == Side::Absent && change.after != Side::Absent {
                self.secret_names(change, &mut objections);
            }
            if change.after != Side::Absent {
                self.sizes(change, &mut objections);
                self.content(change, &mut objections);
            }
        }
        objections.list()
    }

    /// Counts what a person would not see of a rendered difference, because it is taken out as a secret (S-47, S-49).
    ///
    /// A line of the difference that neither stood there before nor goes is what counts. What [`Inspector::inspect`] objects
    /// to by itself counts only where it hides more than its own line.
    pub fn unshown(&self, rendered: &str) -> Unshown {
        let text = rendered.as_bytes();
        let is_break = |byte: &u8| matches!(*byte, b'\n' | b'\r');
        let mut unshown = Unshown::default();
        // Sightings are sorted and apart, so every byte is looked at once for its line, however many stand on one.
        let (mut begin, mut seen) = (0, 0);
        for Sighting { range, certainty, .. } in self.redactor.sight(text) {
            let passed = text.get(seen..range.start).unwrap_or_default();
            begin = passed
                .iter()
                .rposition(is_break)
                .map_or(begin, |at| seen + at + 1);
            seen = range.start;
            let mut lines = text.get(range).unwrap_or_default().split(is_break);
            let first = lines.next().and_then(|_| text.get(begin));
            let below: Vec<Option<&u8>> = lines.map(<[u8]>::first).collect();
            let is_one_line = below.is_empty();
            let heads = below.into_iter().chain([first]);
            let new = heads
                .filter(|head| !matches!(head, None | Some(b' ' | b'-')))
                .count();
            match certainty {
                Certainty::Hinted if is_one_line => unshown.parts += new,
                Certainty::Certain | Certainty::Likely if is_one_line => {}
                Certainty::Hinted | Certainty::Likely | Certainty::Certain => unshown.lines += new,
            }
        }
        unshown
    }

    /// Judges the words of a path that is new: it leaves with the commit as its content does, and is taken out of what people
    /// are shown of it (SEC-4, S-47).
    fn secret_names(&self, change: &Change<'_>, objections: &mut Objections) {
        for sighting in self.sight(change.path.as_bytes()) {
            let severity = match sighting.certainty {
                Certainty::Certain => Severity::Violation,
                Certainty::Likely => Severity::NeedsApproval,
                Certainty::Hinted => continue,
            };
            objections.insert(Objection {
                path: hidden::visible_name(change.path).text,
                line: 0,
                subject: Subject::Secret,
                severity,
                evidence: format!("in the path: {}", sighting.kind),
            });
        }
    }

    /// Finds secrets, also those that stand in what only looks like a key: people are shown one mark for all of it, but it
    /// leaves as what it is.
    fn sight(&self, text: &[u8]) -> Vec<Sighting> {
        let mut found = Vec::new();
        for sighting in self.redactor.sight(text) {
            if sighting.kind == armour::KIND && sighting.certainty == Certainty::Hinted {
                let inside = self.redactor.sight_in_keys(&text[sighting.range.clone()]);
                found.extend(inside.into_iter().map(|inner| Sighting {
                    range: sighting.range.start + inner.range.start..sighting.range.start + inner.range.end,
                    ..inner
                }));
            }
            found.push(sighting);
        }
        found
    }

    fn sizes(&self, change: &Change<'_>, objections: &mut Objections) {
        let (size, is_binary) = match change.after {
            Side::File(bytes) => (bytes.len() as u64, is_binary(bytes)),
            Side::Unread { size } => (size, false),
            Side::Absent | Side::Link => return,
        };
        let unread = matches!(change.after, Side::Unread { .. });
        let (subject, limit) = if is_binary {
            (Subject::LargeBinary, self.limits.binary)
        } else {
            (Subject::LargeFile, self.limits.file)
        };
        if size > limit || unread {
            objections.insert(Objection {
                path: hidden::visible_name(change.path).text,
                line: 0,
                subject,
                severity: Severity::NeedsApproval,
                evidence: format!("{size} bytes, the limit is {limit}"),
            });
        }
    }

    /// Judges what was added, line by line. Patterns are looked for in every file; what only a reader would miss is looked for
    /// in what is read, and a byte of zero in a source makes it none that is not (S-48).
    fn content(&self, change: &Change<'_>, objections: &mut Objections) {
        let text = change.after.bytes();
        let old: BTreeSet<&[u8]> = change.before.bytes().split(|byte| *byte == b'\n').collect();
        let mut starts = vec![0];
        starts.extend(memchr::memchr_iter(b'\n', text).map(|at| at + 1));
        let line_at = |at: usize| starts.partition_point(|start| *start <= at);
        let line_text = |line: usize| {
            let start = starts.get(line - 1).copied().unwrap_or(text.len());
            let end = starts.get(line).map_or(text.len(), |next| next - 1);
            text.get(start..end).unwrap_or_default()
        };
        let added: Vec<bool> = (1..=starts.len())
            .map(|line| !old.contains(line_text(line)))
            .collect();
        let is_added = |line: usize| added.get(line - 1) == Some(&true);
        let path = hidden::visible_name(change.path).text;
        let objection = |line, subject, severity, evidence: String| Objection {
            path: path.clone(),
            line,
            subject,
            severity,
            evidence,
        };
        for sighting in self.sight(text) {
            let lines = line_at(sighting.range.start)..=line_at(sighting.range.end.saturating_sub(1));
            let severity = match sighting.certainty {
                Certainty::Certain => Severity::Violation,
                Certainty::Likely => Severity::NeedsApproval,
                // What is taken for one secret over several lines hides any other among them.
                Certainty::Hinted if lines.end() > lines.start() => Severity::NeedsApproval,
                Certainty::Hinted => continue,
            };
            if let Some(line) = lines.into_iter().find(|line| is_added(*line)) {
                objections.insert(objection(
                    line,
                    Subject::Secret,
                    severity,
                    sighting.kind.to_string(),
                ));
            }
        }
        let is_binary = is_binary(text);
        let is_disguised = is_binary && (was_text(change.before) || path::is_text(change.path));
        if is_disguised {
            let evidence = "bytes of zero make it binary, so that a reader is shown none of its lines";
            objections.insert(objection(
                0,
                Subject::HiddenText,
                Severity::NeedsApproval,
                evidence.to_owned(),
            ));
        }
        let is_read = !is_binary || is_disguised;
        for line in (1..=starts.len()).filter(|line| is_added(*line)) {
            if objections.is_full() {
                return;
            }
            let written = line_text(line);
            if is_read && written.len() > self.limits.line {
                let evidence = format!("{} bytes, the limit is {}", written.len(), self.limits.line);
                objections.insert(objection(
                    line,
                    Subject::LongLine,
                    Severity::NeedsApproval,
                    evidence,
                ));
            }
            let shown = String::from_utf8_lossy(written);
            let shown = shown.strip_suffix('\r').unwrap_or(&shown);
            let seen = hidden::visible(shown);
            // Those of a disguised file are told once for all of it.
            let zeros = if is_disguised {
                shown.matches('\0').count()
            } else {
                0
            };
            if is_read && seen.count > zeros {
                objections.insert(objection(
                    line,
                    Subject::HiddenText,
                    Severity::NeedsApproval,
                    self.evidence(&seen.text),
                ));
            }
            for pattern in self
                .patterns
                .iter()
                .filter(|pattern| pattern.matches(change.path, written))
            {
                let subject = Subject::Pattern(pattern.name().to_owned());
                let evidence = self.evidence(&seen.text);
                objections.insert(objection(line, subject, pattern.severity(), evidence));
            }
        }
    }

    /// Shows a line without its secrets, and no more of it than fits.
    fn evidence(&self, line: &str) -> String {
        let redacted = self.redactor.redact(line.trim());
        if redacted.chars().count() <= LONGEST_EVIDENCE {
            return redacted;
        }
        redacted.chars().take(LONGEST_EVIDENCE).chain(['…']).collect()
    }
}

/// Lists the changed files that a run's own test command names: whoever changes one can change what "the tests passed" means,
/// whatever it is called (S-19). `command` is the program with its arguments.
pub fn harness_of(command: &[String], changes: &[Change<'_>]) -> Vec<Objection> {
    let named = changes
        .iter()
        .filter(|change| path::is_named_by(command, change.path));
    let objections = named.map(|change| Objection {
        path: hidden::visible_name(change.path).text,
        line: 0,
        subject: Subject::Harness,
        severity: Severity::NeedsApproval,
        evidence: "the test command names it".to_owned(),
    });
    objections.collect()
}

/// Judges a change by its path alone.
fn names(change: &Change<'_>, plan: &[String], objections: &mut Objections) {
    let mut object = |subject, severity, evidence: &str| {
        objections.insert(Objection {
            path: hidden::visible_name(change.path).text,
            line: 0,
            subject,
            severity,
            evidence: evidence.to_owned(),
        });
    };
    for mark in change.marks {
        object(Subject::Tree(*mark), severity(*mark), &mark.to_string());
    }
    if path::is_forbidden(change.path) {
        let kind = FindingKind::ForbiddenPath;
        object(
            Subject::Tree(kind),
            severity(kind),
            "decides what runs at the forge, or who must review",
        );
    }
    if !plan.iter().any(|planned| path::covers(planned, change.path)) {
        let kind = FindingKind::OutsidePlan;
        object(
            Subject::Tree(kind),
            severity(kind),
            "the approved plan does not name it",
        );
    }
    if path::is_environment(change.path) && change.after != Side::Absent {
        object(
            Subject::EnvironmentFile,
            Severity::NeedsApproval,
            "files for an environment hold its secrets",
        );
    }
    if let Some(what) = path::harness(change.path, change.before.bytes(), change.after.bytes()) {
        object(Subject::Harness, Severity::NeedsApproval, what);
    }
    if hidden::visible_name(change.path).count > 0 {
        object(
            Subject::HiddenText,
            Severity::NeedsApproval,
            "the path holds characters that are not seen",
        );
    }
    if path::mixes_scripts(change.path) {
        object(
            Subject::MixedScripts,
            Severity::NeedsApproval,
            "the path mixes scripts that look alike",
        );
    }
}

fn severity(kind: FindingKind) -> Severity {
    match kind {
        FindingKind::ForbiddenPath
        | FindingKind::ManyFindings
        | FindingKind::Unshown
        | FindingKind::Policy => Severity::Violation,
        FindingKind::OutsidePlan
        | FindingKind::Gitlink
        | FindingKind::GitSettings
        | FindingKind::EscapingSymlink
        | FindingKind::CollidingName
        | FindingKind::Secret
        | FindingKind::EnvironmentFile
        | FindingKind::Harness
        | FindingKind::LargeBinary
        | FindingKind::LargeFile
        | FindingKind::LongLine
        | FindingKind::HiddenText
        | FindingKind::MixedScripts
        | FindingKind::Pattern
        | FindingKind::ManyFiles
        | FindingKind::NewDependency
        | FindingKind::DependencyChange
        | FindingKind::UntrustedIssue => Severity::NeedsApproval,
    }
}

/// Tells whether something that people could read stood there.
fn was_text(before: Side<'_>) -> bool {
    match before {
        Side::File(bytes) => !bytes.is_empty() && !is_binary(bytes),
        Side::Absent | Side::Unread { .. } | Side::Link => false,
    }
}

/// Tells what git and the forge show no lines of.
fn is_binary(bytes: &[u8]) -> bool {
    memchr::memchr(0, bytes.get(..8000).unwrap_or(bytes)).is_some()
}
