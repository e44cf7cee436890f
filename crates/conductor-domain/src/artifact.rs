//! Refers to bytes that were kept: what they are, their content address, and whether anything was cut.
//!
//! This module does not know where the bytes are kept.

use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// A reference to kept bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// What the bytes are.
    pub kind: ArtifactKind,
    /// Their content address.
    pub digest: Digest,
    /// How many bytes were kept.
    pub bytes: u64,
    /// Whether the bytes end in a truncation mark.
    pub truncated: bool,
}

/// What kept bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactKind {
    /// The issue as it stood when it was read.
    Issue,
    /// A plan, in the exact bytes that a human sees and the Implementer receives (S-47).
    Plan,
    /// A review of a plan or an implementation.
    Review,
    /// What the test command printed.
    TestOutput,
    /// The Tester's interpretation.
    TestReport,
    /// Words from a human or from a failed step that go back to an agent.
    Feedback,
    /// The rendered difference between two commits.
    Diff,
    /// The files of a commit by name.
    Files,
    /// What was proposed to a repository before.
    PastPullRequests,
    /// What one agent was told, word for word.
    Context,
    /// The envelope of one agent invocation.
    Envelope,
    /// The receipt of one agent invocation.
    Receipt,
    /// What scripted agents play, from the operator.
    Scenario,
    /// A part of the files of a skill, from the operator.
    Skill,
    /// What a change does to the dependencies, one a line.
    Dependencies,
    /// The skills of a role, by name, description and place.
    Skills,
    /// The text of policies, from the operator.
    Policy,
    /// A call of a tool with all its arguments, redacted.
    Call,
}

impl ArtifactKind {
    /// The name in addresses and listings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Issue => "issue",
            Self::Plan => "plan",
            Self::Review => "review",
            Self::TestOutput => "test_output",
            Self::TestReport => "test_report",
            Self::Feedback => "feedback",
            Self::Diff => "diff",
            Self::Files => "files",
            Self::PastPullRequests => "past_pull_requests",
            Self::Context => "context",
            Self::Envelope => "envelope",
            Self::Receipt => "receipt",
            Self::Scenario => "scenario",
            Self::Skill => "skill",
            Self::Dependencies => "dependencies",
            Self::Skills => "skills",
            Self::Policy => "policy",
            Self::Call => "call",
        }
    }
}

impl Artifact {
    /// Describes whole bytes.
    pub fn of(kind: ArtifactKind, bytes: &[u8]) -> Self {
        Self {
            kind,
            digest: Digest::of(bytes),
            bytes: bytes.len() as u64,
            truncated: false,
        }
    }
}
