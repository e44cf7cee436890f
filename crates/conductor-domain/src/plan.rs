//! A plan and a review: what agents submit, and the exact text that humans judge.
//!
//! The rendered text is the only thing that is displayed, hashed, approved and handed to the Implementer (S-47).
//! This module does not know whether a plan is any good.

use serde::{Deserialize, Serialize};

use crate::artifact::Artifact;
use crate::digest::Digest;
use crate::testing::TestRun;

/// Limits of what a submission may hold; longer is refused, never cut (S-49).
pub const MAX_TEXT: usize = 48_000;
/// The most files that a plan may name.
pub const MAX_FILES: usize = 200;
/// The most characters that are told of a path that is none.
const MAX_TOLD: usize = 200;

/// What a Planner submits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanDraft {
    /// One line: what will be done.
    pub summary: String,
    /// How it will be done.
    pub approach: String,
    /// The files that will be changed, relative to the repository's root.
    pub files: Vec<String>,
    /// What could go wrong.
    #[serde(default)]
    pub risks: Vec<String>,
}

/// The reason why a submission is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSubmission {
    /// A field that must say something is empty.
    #[error("`{0}` is empty")]
    Empty(&'static str),
    /// A field is longer than can be shown whole.
    #[error("the text is {0} bytes long, the limit is {MAX_TEXT}")]
    TooLong(usize),
    /// More files than a human can judge.
    #[error("{0} files are named, the limit is {MAX_FILES}")]
    TooManyFiles(usize),
    /// A path that is absolute, leaves the tree, or is not plain text.
    #[error("`{0}` is not a path inside the repository")]
    BadPath(String),
}

impl PlanDraft {
    /// Checks the draft and renders the text that will be judged.
    pub fn render(&self) -> Result<String, InvalidSubmission> {
        for (name, text) in [("summary", &self.summary), ("approach", &self.approach)] {
            if text.trim().is_empty() {
                return Err(InvalidSubmission::Empty(name));
            }
        }
        if self.files.is_empty() {
            return Err(InvalidSubmission::Empty("files"));
        }
        if self.files.len() > MAX_FILES {
            return Err(InvalidSubmission::TooManyFiles(self.files.len()));
        }
        if let Some(bad) = self.files.iter().find(|path| !is_inside(path)) {
            return Err(InvalidSubmission::BadPath(bad.chars().take(MAX_TOLD).collect()));
        }
        let mut text = format!(
            "## {}\n\n{}\n\n### Files to change\n\n",
            one_line(&self.summary),
            self.approach.trim()
        );
        for file in &self.files {
            text.push_str(&format!("- `{file}`\n"));
        }
        text.push_str("\n### Risks\n\n");
        if self.risks.is_empty() {
            text.push_str("- none known\n");
        }
        for risk in &self.risks {
            text.push_str(&format!("- {}\n", one_line(risk)));
        }
        if text.len() > MAX_TEXT {
            Err(InvalidSubmission::TooLong(text.len()))
        } else {
            Ok(text)
        }
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_inside(path: &str) -> bool {
    !path.is_empty()
        && path.len() <= 1024
        && !path.starts_with('/')
        && !path.contains(['\\', '`'])
        && !path.chars().any(char::is_control)
        && path
            .split('/')
            .all(|part| !matches!(part, "" | "." | ".." | ".git"))
}

/// A plan that was submitted and kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The rendered text.
    pub artifact: Artifact,
    /// Its one line.
    pub summary: String,
    /// The files that it covers (S-51).
    pub files: Vec<String>,
}

/// What a Reviewer submits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReviewDraft {
    /// Yes or no.
    pub verdict: Verdict,
    /// Why.
    pub summary: String,
    /// What must change, each on its own.
    #[serde(default)]
    pub findings: Vec<String>,
}

impl ReviewDraft {
    /// Checks the draft and renders the text that is kept.
    pub fn render(&self) -> Result<String, InvalidSubmission> {
        if self.summary.trim().is_empty() {
            return Err(InvalidSubmission::Empty("summary"));
        }
        let mut text = format!("{}\n", self.summary.trim());
        for finding in &self.findings {
            text.push_str(&format!("- {}\n", one_line(finding)));
        }
        if text.len() > MAX_TEXT {
            Err(InvalidSubmission::TooLong(text.len()))
        } else {
            Ok(text)
        }
    }
}

/// A reviewer's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Go on.
    Approve,
    /// Do it again.
    Reject,
}

/// A review that was submitted and kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    /// Yes or no.
    pub verdict: Verdict,
    /// The rendered text.
    pub artifact: Artifact,
}

/// What a Tester submits: words about a test run, never a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestReportDraft {
    /// What the Tester believes the outcome to be; compared with the exit code, never used instead.
    pub passed: bool,
    /// What the output means.
    pub interpretation: String,
}

impl TestReportDraft {
    /// Checks the draft and renders the text that is kept.
    pub fn render(&self) -> Result<String, InvalidSubmission> {
        if self.interpretation.trim().is_empty() {
            return Err(InvalidSubmission::Empty("interpretation"));
        }
        let text = format!("{}\n", self.interpretation.trim());
        if text.len() > MAX_TEXT {
            Err(InvalidSubmission::TooLong(text.len()))
        } else {
            Ok(text)
        }
    }
}

/// A Tester's words that were submitted and kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestReport {
    /// What the Tester claims.
    pub claims_passed: bool,
    /// The rendered text.
    pub artifact: Artifact,
}

impl TestReport {
    /// Tells whether the Tester claims something else than what was seen, which is what counts.
    pub(crate) fn contradicts(&self, tests: &TestRun) -> bool {
        self.claims_passed != tests.has_passed()
    }
}

/// Computes what a plan approval is bound to: everything that is shown with the question, and the asking itself, so
/// that an answer to an earlier asking never fits a later one (BEY-1, S-47, S-50).
pub fn plan_subject(
    plan: &Artifact,
    review: &Artifact,
    issue: &Artifact,
    policy: &crate::spec::PolicyVersion,
    asked_at: crate::time::Timestamp,
) -> Digest {
    let shown = format!(
        "plan {}\nreview {}\nissue {}\n",
        plan.digest, review.digest, issue.digest
    );
    Digest::of(format!("{shown}policy {}\nasked {}\n", policy.0, asked_at.0).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(files: &[&str]) -> PlanDraft {
        PlanDraft {
            summary: "Do\nit".into(),
            approach: "Carefully.".into(),
            files: files.iter().map(|f| (*f).to_owned()).collect(),
            risks: vec![],
        }
    }

    /// S-47, S-49: what cannot be shown whole and plainly is refused, not cut.
    #[test]
    fn hostile_plans_are_refused() {
        for bad in [
            "/etc/passwd",
            "../x",
            "a/../b",
            "a//b",
            ".git/config",
            "a\nb",
            "",
            "a`b",
            "x/.git",
        ] {
            assert_eq!(
                draft(&[bad]).render(),
                Err(InvalidSubmission::BadPath(bad.into()))
            );
        }
        assert_eq!(
            draft(&[&format!("/{}", "é".repeat(1_000_000))]).render(),
            Err(InvalidSubmission::BadPath(format!(
                "/{}",
                "é".repeat(MAX_TOLD - 1)
            )))
        );
        assert_eq!(draft(&[]).render(), Err(InvalidSubmission::Empty("files")));
        let mut long = draft(&["a"]);
        long.approach = "x".repeat(MAX_TEXT);
        assert!(matches!(long.render(), Err(InvalidSubmission::TooLong(_))));
        let mut empty = draft(&["a"]);
        empty.approach = " \n".into();
        assert_eq!(empty.render(), Err(InvalidSubmission::Empty("approach")));
    }

    #[test]
    fn the_rendered_plan_names_all_it_covers() {
        let text = draft(&["src/lib.rs"]).render().expect("a valid draft");
        assert_eq!(
            text,
            "## Do it\n\nCarefully.\n\n### Files to change\n\n- `src/lib.rs`\n\n### Risks\n\n- none known\n"
        );
    }
}
