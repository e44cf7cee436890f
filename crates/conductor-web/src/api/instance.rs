//! What concerns more than one run: projects, repositories, the kill switch, the server's health.
//!
//! This module does not know any single run.

use conductor_domain::id::{ProjectId, RepoId};
use conductor_domain::instance::TestEgress;
use conductor_domain::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tells that the server answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// `ok`, or `troubled` while something keeps the server from its work.
    pub status: String,
    /// What that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<TroubleView>,
    /// Conductor's version.
    pub version: String,
    /// The server's process.
    pub pid: u32,
    /// When it started.
    #[schemars(with = "i64")]
    pub started_at: Timestamp,
}

/// What keeps the server from its work; it goes on by itself when that is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TroubleView {
    /// Since when.
    #[schemars(with = "i64")]
    pub since: Timestamp,
    /// The stable code; a page in `docs/error/` explains it.
    pub code: String,
    /// What was said.
    pub what: String,
    /// What to do next.
    pub hint: String,
}

/// The instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstanceView {
    /// Whether all agent execution is switched off.
    pub kill_switch: bool,
    /// The projects.
    #[schemars(with = "Vec<String>")]
    pub projects: Vec<ProjectId>,
    /// The repositories.
    pub repos: Vec<RepoView>,
    /// Accounts that take no work for now.
    pub suspensions: Vec<SuspensionView>,
    /// What the sandboxes of each project may reach.
    #[serde(default)]
    pub egress: Vec<GrantView>,
    /// How many records the instance's stream holds.
    pub events: u64,
    /// The end of its chain.
    pub head: String,
}

/// An account that takes no work for now (BEY-5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SuspensionView {
    /// Which.
    pub account: String,
    /// Until when.
    #[schemars(with = "i64")]
    pub until: Timestamp,
}

/// Something that the sandboxes of a project may reach (EXEC-3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GrantView {
    /// The project.
    #[schemars(with = "String")]
    pub project: ProjectId,
    /// The grant, as it is written.
    pub grant: String,
    /// What it risks (S-34).
    pub risk: String,
}

/// What the sandboxes of all projects may reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GrantList {
    /// By project, in the order they were granted.
    pub grants: Vec<GrantView>,
}

/// Grants a project something at the network, or takes that back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrantEgress {
    /// The project.
    pub project: String,
    /// The grant: `files.example`, `*.files.example`, `files.example:8443`, `http://files.example`.
    pub grant: String,
}

/// Adds a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddProject {
    /// Its name.
    pub name: String,
}

/// The projects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectList {
    /// In the order they were added.
    #[schemars(with = "Vec<String>")]
    pub projects: Vec<ProjectId>,
}

/// Registers a repository, or changes its registration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterRepo {
    /// The project.
    pub project: String,
    /// `owner/name` at the forge.
    pub repo: String,
    /// The argv that decides whether work is right.
    pub test_command: Vec<String>,
    /// How many runs may work on it at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// The branch to base work on; the forge's default branch when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_branch: Option<String>,
    /// Whether the test command may reach what the project may (EXEC-3a); it may not when absent.
    #[serde(default)]
    #[schemars(with = "String")]
    pub test_egress: TestEgress,
    /// The number of the owner's project board on which agents may keep Conductor's own fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub board: Option<u32>,
}

/// A registered repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RepoView {
    /// The forge's id.
    #[schemars(with = "u64")]
    pub id: RepoId,
    /// `owner/name`.
    pub repo: String,
    /// Its project.
    #[schemars(with = "String")]
    pub project: ProjectId,
    /// The branch that work is based on.
    pub base_branch: String,
    /// The argv that decides whether work is right.
    pub test_command: Vec<String>,
    /// How many runs may work on it at once.
    pub slots: u32,
    /// Where git goes.
    pub clone_url: String,
    /// Whether the test command may reach what the project may.
    #[serde(default)]
    #[schemars(with = "String")]
    pub test_egress: TestEgress,
    /// The number of the owner's project board on which agents may keep Conductor's own fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub board: Option<u32>,
}

/// The registered repositories.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RepoList {
    /// By the forge's id.
    pub repos: Vec<RepoView>,
}

/// Turns the kill switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KillSwitch {
    /// On or off.
    pub on: bool,
}

/// A link that signs one browser in, once (S-55).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinkView {
    /// Where to go.
    pub url: String,
    /// Until when.
    #[schemars(with = "i64")]
    pub expires_at: Timestamp,
}

/// Nothing has to be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}
