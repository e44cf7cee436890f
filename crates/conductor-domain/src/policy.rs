//! Stored policies: where a text counts, its numbered versions, and the texts that a run is held to (SEC-1).
//!
//! A version is never changed: setting a text makes the next one. A run keeps the texts it started with. This module
//! does not know what a policy says; the policy crate reads them.

use serde::{Deserialize, Serialize};

use crate::artifact::Artifact;
use crate::id::{OperatorName, ProjectId, RepoId};

/// The longest policy text, in bytes.
pub const LONGEST_POLICY: u64 = 64 * 1024;

/// Where a stored text counts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "scope")]
pub enum PolicyScope {
    /// For all repositories of a project.
    Project {
        /// Which.
        project: ProjectId,
    },
    /// For one repository, over its project's.
    Repo {
        /// Which.
        repo: RepoId,
    },
}

/// A stored text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPolicy {
    /// Who set it.
    pub by: OperatorName,
    /// The text, kept.
    pub text: Artifact,
}

/// All versions of the text of one scope; the first has number 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyVersions {
    /// Where it counts.
    pub scope: PolicyScope,
    /// The versions, oldest first; there is at least one.
    pub versions: Vec<StoredPolicy>,
}

impl PolicyVersions {
    /// The newest version and its number.
    pub fn newest(&self) -> Option<(u32, &StoredPolicy)> {
        let number = u32::try_from(self.versions.len()).ok()?;
        self.versions.last().map(|stored| (number, stored))
    }

    /// A version by its number.
    pub fn version(&self, number: u32) -> Option<&StoredPolicy> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        self.versions.get(index)
    }
}

/// Where a text stands among those that count together; a later one replaces policies of an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyLayer {
    /// Conductor's own.
    Shipped,
    /// The project's.
    Project,
    /// The repository's.
    Repository,
    /// One run's.
    Run,
}

impl std::fmt::Display for PolicyLayer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Shipped => "shipped",
            Self::Project => "project",
            Self::Repository => "repository",
            Self::Run => "run",
        })
    }
}

/// One text that a run is held to, locked when it started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockedPolicy {
    /// Where it stands.
    pub layer: PolicyLayer,
    /// The number of its version; zero where texts are not numbered.
    pub version: u32,
    /// The text, kept.
    pub text: Artifact,
}
