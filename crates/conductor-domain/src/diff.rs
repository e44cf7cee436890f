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
        })
    }
}
