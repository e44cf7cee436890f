//! Answers of the instance that say no: each has a stable code, a sentence, and a hint about what to do instead.
//!
//! This module does not know how a refusal is shown.

use crate::egress::Grant;
use crate::id::{ProjectId, RepoId};
use crate::policy::LONGEST_POLICY;
use crate::staff::StaffRefusal;

/// Why the instance did not accept an input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InstanceRefusal {
    /// The project exists.
    #[error("project `{0}` exists already")]
    ProjectExists(ProjectId),
    /// There is no such project.
    #[error("there is no project `{0}`")]
    NoSuchProject(ProjectId),
    /// The repository belongs to another project.
    #[error("{repo} is registered in project `{project}` already")]
    RepoElsewhere {
        /// The repository.
        repo: String,
        /// Its project.
        project: ProjectId,
    },
    /// No test command was given.
    #[error("a repository needs a test command")]
    NoTestCommand,
    /// No run could ever start.
    #[error("a repository needs at least one slot")]
    NoSlot,
    /// The switch stands like that already.
    #[error("the kill switch is {} already", if *.0 { "on" } else { "off" })]
    SwitchStands(bool),
    /// There is no such grant to take back.
    #[error("project `{project}` was not granted {grant}")]
    NotGranted {
        /// The project.
        project: ProjectId,
        /// The grant.
        grant: Grant,
    },
    /// There is no such repository.
    #[error("there is no registered repository with id {0}")]
    NoSuchRepo(RepoId),
    /// The text is too long to be judged.
    #[error("the policies are longer than {LONGEST_POLICY} bytes")]
    PolicyTooLong,
    /// The text cannot be used.
    #[error("the policies cannot be used: {}", .flaws.join("; "))]
    PolicyInvalid {
        /// What is wrong, each with line and column.
        flaws: Vec<String>,
    },
    /// The staff stays as it is.
    #[error(transparent)]
    Staff(#[from] StaffRefusal),
}

impl InstanceRefusal {
    /// The stable code; a page in `docs/error/` explains it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::ProjectExists(_) => "CDR0201",
            Self::NoSuchProject(_) => "CDR0202",
            Self::RepoElsewhere { .. } => "CDR0203",
            Self::NoTestCommand => "CDR0204",
            Self::NoSlot => "CDR0205",
            Self::SwitchStands(_) => "CDR0206",
            Self::NotGranted { .. } => "CDR0207",
            Self::NoSuchRepo(_) => "CDR0210",
            Self::PolicyTooLong => "CDR0211",
            Self::PolicyInvalid { .. } => "CDR0212",
            Self::Staff(refusal) => refusal.code(),
        }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::ProjectExists(_) => "use it, or choose another name",
            Self::NoSuchProject(_) => {
                "`conductor project list` shows the projects; `conductor project add` makes one"
            }
            Self::RepoElsewhere { .. } => "a repository belongs to one project",
            Self::NoTestCommand => "say it with --test '<command>'",
            Self::NoSlot => "give --slots 1 or more",
            Self::SwitchStands(_) => "nothing is to be done",
            Self::NotGranted { .. } => {
                "`conductor egress list` shows the grants; what `[egress]` of the settings file allows is taken back there"
            }
            Self::NoSuchRepo(_) => {
                "`conductor repo list` shows the repositories; `conductor repo add` registers one"
            }
            Self::PolicyTooLong => "say it in fewer policies; one can name several actions",
            Self::PolicyInvalid { .. } => {
                "mend the places named; `conductor policy show` prints policies to begin with, docs/policies.md explains them"
            }
            Self::Staff(refusal) => refusal.hint(),
        }
    }
}
