//! Who speaks and who acts: the four agent roles, and the Orchestrator that none of them can pass for.
//!
//! This module does not know how an agent is run.

use serde::{Deserialize, Serialize};

/// The job that an agent is invoked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Writes the plan; changes nothing.
    Planner,
    /// Edits the worktree.
    Implementer,
    /// Judges a plan or an implementation; changes nothing.
    Reviewer,
    /// Interprets test output; decides nothing.
    Tester,
}

impl Role {
    /// Every role, in the order in which a run meets them.
    pub const ALL: [Self; 4] = [Self::Planner, Self::Reviewer, Self::Implementer, Self::Tester];

    /// Tells whether the role may change files.
    pub fn may_write(self) -> bool {
        match self {
            Self::Implementer => true,
            Self::Planner | Self::Reviewer | Self::Tester => false,
        }
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Planner => "Planner",
            Self::Implementer => "Implementer",
            Self::Reviewer => "Reviewer",
            Self::Tester => "Tester",
        })
    }
}

/// Who is named in the header of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "speaker", content = "role")]
pub enum Speaker {
    /// Conductor itself; the only one to announce phases.
    Orchestrator,
    /// An agent in one of its roles.
    Agent(Role),
}

impl std::fmt::Display for Speaker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Orchestrator => f.write_str("Orchestrator"),
            Self::Agent(role) => role.fmt(f),
        }
    }
}
