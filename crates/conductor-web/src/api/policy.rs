//! Stored policies: what there is, the texts, a new version, a question to them, and a file of expectations (SEC-1).
//!
//! This module does not know what a policy says.

use conductor_domain::digest::Digest;
use conductor_domain::id::{OperatorName, ProjectId, RunId};
use conductor_domain::policy::PolicyLayer;
use conductor_domain::role::Role;
use conductor_domain::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// Whose policies are meant: a project's, a repository's with its project's below, a run's as it locked them, or, where
/// none is named, Conductor's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyPlace {
    /// A project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// `owner/name` of a registered repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// A run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub run: Option<RunId>,
    /// Which version of the project's or repository's text; the newest where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
}

/// Reads a place by the names of its fields; serde would take a list of their values, too.
fn named_fields<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PolicyPlace, D::Error> {
    let fields = serde_json::Map::deserialize(deserializer)?;
    PolicyPlace::deserialize(serde_json::Value::Object(fields)).map_err(serde::de::Error::custom)
}

/// The stored policies of one project or repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyView {
    /// Where it stands.
    #[schemars(with = "String")]
    pub layer: PolicyLayer,
    /// The project.
    #[schemars(with = "String")]
    pub project: ProjectId,
    /// The repository, where it is one's.
    pub repo: Option<String>,
    /// The newest version; all earlier ones are kept.
    pub version: u32,
    /// Its text.
    #[schemars(with = "String")]
    pub text: Digest,
    /// Who set it.
    #[schemars(with = "String")]
    pub by: OperatorName,
}

/// All stored policies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyList {
    /// The policies.
    pub policies: Vec<PolicyView>,
}

/// One text of policies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyText {
    /// Where it stands.
    #[schemars(with = "String")]
    pub layer: PolicyLayer,
    /// The number of its version; zero where texts are not numbered.
    pub version: u32,
    /// The text.
    pub text: String,
}

/// Texts of policies, in the order of their layers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyTexts {
    /// The texts.
    pub texts: Vec<PolicyText>,
}

/// Sets the policies of a project or a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetPolicy {
    /// A project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// `owner/name` of a registered repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// The text.
    pub text: String,
}

/// A question to policies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyQuestion {
    /// Whose.
    #[serde(default, deserialize_with = "named_fields")]
    pub of: PolicyPlace,
    /// `actor action target`, e.g. `implementer bash worktree:src`.
    pub question: String,
}

/// What the policies answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RulingView {
    /// `allow`, `require_approval` or `deny`.
    pub decision: String,
    /// Why.
    pub reason: String,
    /// The policy that decided; `deny-by-default` when none did.
    pub policy: String,
    /// Every policy that decided it, the one that is named first.
    pub rules: Vec<RuleView>,
    /// The address of all texts that counted.
    #[schemars(with = "String")]
    pub version: Digest,
}

/// One policy as it counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleView {
    /// Its id.
    pub id: String,
    /// Where it was written last.
    #[schemars(with = "String")]
    pub layer: PolicyLayer,
    /// What follows when it applies.
    pub decision: String,
    /// Why it is there.
    pub reason: String,
    /// Whether lower layers must leave it alone.
    pub is_final: bool,
}

/// A file of expected decisions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyExpectations {
    /// Of whose policies.
    #[serde(default, deserialize_with = "named_fields")]
    pub of: PolicyPlace,
    /// One expectation a line: `actor action target -> decision [policy]`.
    pub text: String,
}

/// What became of expectations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExpectedView {
    /// How many held.
    pub held: usize,
    /// Those that did not.
    pub mismatches: Vec<MismatchView>,
}

/// An expectation that did not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MismatchView {
    /// The line, from 1.
    pub line: usize,
    /// What was expected and what is.
    pub message: String,
}

/// Lifts one policy's no to one call of a tool, in one run, for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrantOverride {
    /// The policy that says no, or asks.
    pub policy: String,
    /// Whose calls: `planner`, `implementer`, `reviewer` or `tester`.
    #[schemars(with = "String")]
    pub role: Role,
    /// The tool.
    pub tool: String,
    /// What it acts on, as in a question to policies: `worktree:src/a.rs`, `own-issue` and so on.
    pub target: String,
    /// Why, in 10 characters or more.
    pub justification: String,
    /// For how long, at most 1440.
    pub minutes: u32,
}

/// Takes an override back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RevokeOverride {
    /// Its number.
    pub number: u32,
}

/// An override that a run was granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OverrideView {
    /// Its number within the run.
    pub number: u32,
    /// The policy that it lifts.
    pub policy: String,
    /// Whose calls.
    #[schemars(with = "String")]
    pub role: Role,
    /// The tool.
    pub tool: String,
    /// What it acts on.
    pub target: String,
    /// Why.
    pub justification: String,
    /// Who granted it.
    #[schemars(with = "String")]
    pub by: OperatorName,
    /// When it ends by itself.
    #[schemars(with = "i64")]
    pub until: Timestamp,
    /// Who took it back.
    #[schemars(with = "Option<String>")]
    pub revoked_by: Option<OperatorName>,
}

/// Something that is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlawView {
    /// In which text; another one than the checked where the two do not go together.
    #[schemars(with = "String")]
    pub layer: PolicyLayer,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong, and what would help.
    pub message: String,
}

/// Everything that is wrong with a text; nothing where it could be stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlawList {
    /// The flaws.
    pub flaws: Vec<FlawView>,
}

/// One version of a stored text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VersionView {
    /// Its number, from 1.
    pub version: u32,
    /// Who set it.
    #[schemars(with = "String")]
    pub by: OperatorName,
    /// Its text.
    #[schemars(with = "String")]
    pub text: Digest,
}

/// All versions of the text of a project or a repository, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VersionList {
    /// The versions.
    pub versions: Vec<VersionView>,
}
