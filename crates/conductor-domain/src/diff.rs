//! What an inspection of the exact commit to be pushed found.
//!
//! This module does not know how a diff is read; it knows which findings need a human and which stop the run.

use serde::{Deserialize, Serialize};

use crate::artifact::Artifact;
use crate::digest::Digest;

/// The result of an inspection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inspection {
    /// Binds an approval to these exact changes (BEY-1).
    pub digest: Digest,
    /// The changed paths.
    pub files: Vec<String>,
    /// What needs attention.
    pub findings: Vec<Finding>,
    /// The rendered difference.
    pub rendered: Artifact,
    /// What became of the dependencies, where a manifest or a lock file changed (SEC-5); an approval covers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependencies: Option<Artifact>,
    /// What kind of change it is.
    #[serde(default, skip_serializing_if = "ChangeClass::is_code")]
    pub class: ChangeClass,
    /// The paths whose change the rendering does not hold whole; nobody can approve what is not shown (S-49).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unshown: Vec<String>,
}

/// So many paths are named where one would do to refuse.
const MOST_NAMED: usize = 20;

impl Inspection {
    /// Objects to what an approval would have to show and cannot (S-49).
    pub(crate) fn objections_to_an_approval(&self) -> Vec<Finding> {
        let cut = [Some(&self.rendered), self.dependencies.as_ref()];
        let is_cut = cut.into_iter().flatten().any(|text| text.truncated);
        let whole = is_cut.then(String::new);
        let paths = self.unshown.iter().take(MOST_NAMED).cloned().chain(whole);
        paths
            .map(|path| Finding::of_path(FindingKind::Unshown, path, Severity::Violation))
            .collect()
    }
}

/// What kind of change it is, told by its paths alone (RUN-14); a later one includes those before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeClass {
    /// Words for people alone.
    Documentation,
    /// Tests alone, or with documentation.
    Tests,
    /// What the project depends on.
    Dependencies,
    /// Everything else.
    #[default]
    Code,
}

impl ChangeClass {
    /// The word that policies know it by.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Documentation => "documentation",
            Self::Tests => "tests",
            Self::Dependencies => "dependencies",
            Self::Code => "code",
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_code(&self) -> bool {
        *self == Self::Code
    }
}

/// What is known of a change that a merge policy may weigh: facts alone, none of them an agent's word (RUN-14).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Weighed {
    /// What kind of change it is.
    pub class: ChangeClass,
    /// How many files it touches.
    pub files: u32,
    /// How much in it needed a second look.
    pub findings: u32,
    /// How many attempts failed before it.
    pub retries: u32,
}

impl Weighed {
    /// How sure one can be of it, in percent: whole for a small change that worked at once and had nothing to look at
    /// twice; each failed attempt and any finding cost a fifth, each file after the fifth a hundredth.
    pub fn confidence(&self) -> u8 {
        let found = u32::from(self.findings > 0);
        let doubts = self
            .retries
            .saturating_add(found)
            .saturating_mul(20)
            .saturating_add(self.files.saturating_sub(5));
        u8::try_from(100_u32.saturating_sub(doubts)).unwrap_or(0)
    }
}

/// One thing that needs attention.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What was found.
    pub kind: FindingKind,
    /// Where.
    pub path: String,
    /// What follows.
    pub severity: Severity,
    /// The line, from 1; zero for the path as a whole.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub line: u32,
    /// What was seen there, redacted; empty where the kind says it all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub evidence: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(line: &u32) -> bool {
    *line == 0
}

impl Finding {
    /// Something about a path as a whole, which its kind tells.
    pub fn of_path(kind: FindingKind, path: impl Into<String>, severity: Severity) -> Self {
        Self {
            kind,
            path: path.into(),
            severity,
            line: 0,
            evidence: String::new(),
        }
    }

    /// Where it is: the path, and the line where there is one.
    pub fn place(&self) -> String {
        match (self.path.as_str(), self.line) {
            ("", _) => "the change".to_owned(),
            (path, 0) => path.to_owned(),
            (path, line) => format!("{path}:{line}"),
        }
    }
}

/// More findings than this nobody judges (S-49).
pub const MOST_FINDINGS: usize = 200;

/// Refuses what is too much to be judged, the worst first, instead of cutting it (S-49).
pub fn bounded(mut findings: Vec<Finding>) -> Vec<Finding> {
    let all = findings.len();
    if all <= MOST_FINDINGS {
        return findings;
    }
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings.truncate(MOST_FINDINGS);
    findings.push(Finding {
        evidence: format!("{all}, the limit is {MOST_FINDINGS}"),
        ..Finding::of_path(FindingKind::ManyFindings, "", Severity::Violation)
    });
    findings
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.place(), self.kind)?;
        if self.evidence.is_empty() {
            return Ok(());
        }
        write!(f, ": {}", self.evidence)
    }
}

/// What can be found in a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// A file that the approved plan does not name (S-51).
    OutsidePlan,
    /// A link to a commit of another repository.
    Gitlink,
    /// A file that changes how git itself behaves.
    GitSettings,
    /// A symbolic link that is absolute or leaves the tree.
    EscapingSymlink,
    /// Two names that some file systems cannot tell apart.
    CollidingName,
    /// A path that agents may not change.
    ForbiddenPath,
    /// A secret in an added line.
    Secret,
    /// A file for an environment, where secrets live.
    EnvironmentFile,
    /// A file that decides what "the tests passed" means (S-19).
    Harness,
    /// A binary file over the limit.
    LargeBinary,
    /// A file over the limit, or too large to be read.
    LargeFile,
    /// A line that nobody can read.
    LongLine,
    /// Characters that are not seen, or that turn the direction of text (S-48).
    HiddenText,
    /// A path of letters from scripts that look alike (S-49).
    MixedScripts,
    /// What an operator's pattern objects to.
    Pattern,
    /// More files than a person can judge.
    ManyFiles,
    /// A manifest or lock file brings something new (SEC-5).
    NewDependency,
    /// A manifest or lock file changed otherwise (SEC-5).
    DependencyChange,
    /// More findings than a person can judge (S-49).
    ManyFindings,
    /// An issue by somebody whose words do not count as trusted (BEY-10).
    UntrustedIssue,
    /// A change that is longer than can be shown whole, or hidden as a secret, where a person would have to approve it
    /// (S-47, S-49).
    Unshown,
    /// A policy lets Conductor not push it or open its pull request, or not before a person was asked (SEC-1).
    Policy,
}

/// What follows from a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// A human must approve it.
    NeedsApproval,
    /// The run stops.
    Violation,
}

impl std::fmt::Display for FindingKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::OutsidePlan => "outside the approved plan",
            Self::Gitlink => "link to another repository",
            Self::GitSettings => "changes how git behaves",
            Self::EscapingSymlink => "symbolic link out of the tree",
            Self::CollidingName => "name that collides on some file systems",
            Self::ForbiddenPath => "path that agents may not change",
            Self::Secret => "secret",
            Self::EnvironmentFile => "file for an environment",
            Self::Harness => "test harness changed",
            Self::LargeBinary => "large binary file",
            Self::LargeFile => "large file",
            Self::LongLine => "line too long to read",
            Self::HiddenText => "hidden characters",
            Self::MixedScripts => "name that mixes scripts",
            Self::Pattern => "matches a pattern of the policy",
            Self::ManyFiles => "many files",
            Self::NewDependency => "new dependency",
            Self::DependencyChange => "dependencies changed",
            Self::ManyFindings => "too many findings",
            Self::UntrustedIssue => "written by somebody whose words do not count as trusted",
            Self::Unshown => "not shown whole",
            Self::Policy => "decides about what leaves",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::ArtifactKind;

    /// A person reads where, what, and what proves it, as far as each is known.
    #[test]
    fn a_finding_says_where_it_is_and_what_proves_it() {
        let of_path = Finding::of_path(FindingKind::Gitlink, "lib", Severity::NeedsApproval);
        assert_eq!(of_path.to_string(), "lib: link to another repository");
        let whole = Finding {
            line: 7,
            evidence: "ghp_…".to_owned(),
            kind: FindingKind::Secret,
            ..of_path.clone()
        };
        assert_eq!(whole.to_string(), "lib:7: secret: ghp_…");
        let of_all = Finding {
            path: String::new(),
            ..of_path
        };
        assert_eq!(of_all.to_string(), "the change: link to another repository");
    }
    /// S-49: nothing is cut from what may be judged; of more, the worst is shown, and how much there is.
    #[test]
    fn too_many_findings_are_a_finding_of_their_own() {
        let of = |severity| Finding::of_path(FindingKind::Gitlink, "lib", severity);
        let many = vec![of(Severity::NeedsApproval); MOST_FINDINGS];
        assert_eq!(bounded(many.clone()), many);
        let shown = bounded([many, vec![of(Severity::Violation)]].concat());
        assert_eq!(shown.len(), MOST_FINDINGS + 1);
        assert_eq!(shown[0], of(Severity::Violation));
        let last = shown.last().expect("findings");
        assert_eq!(
            (last.kind, last.severity),
            (FindingKind::ManyFindings, Severity::Violation)
        );
        assert_eq!(last.evidence, "201, the limit is 200");
    }

    /// RUN-14: what an inspection saw is written with the kind of change where it is not the usual one, and reads back.
    #[test]
    fn the_usual_kind_of_change_is_not_written() {
        for (class, is_written) in [
            (ChangeClass::Code, false),
            (ChangeClass::Documentation, true),
            (ChangeClass::Tests, true),
            (ChangeClass::Dependencies, true),
        ] {
            let seen = Inspection {
                digest: Digest::of(b""),
                files: vec![],
                findings: vec![],
                rendered: Artifact::of(ArtifactKind::Diff, b""),
                dependencies: None,
                class,
                unshown: vec![],
            };
            let text = serde_json::to_string(&seen).expect("JSON");
            assert_eq!(text.contains("class"), is_written, "{text}");
            assert_eq!(
                serde_json::from_str::<Inspection>(&text).expect("an inspection"),
                seen
            );
        }
    }
}
