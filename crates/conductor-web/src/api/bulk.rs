//! What is asked of several runs at once, with what came of it for each.
//!
//! This module does not know how any of it is done.

use conductor_domain::digest::Digest;
use conductor_domain::id::RunId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Asks to cancel every open run of a project (SEC-6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelAll {
    /// The project.
    pub project: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

/// Asks to move several runs in the queue (UI-3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reprioritize {
    /// Which, up to 500.
    #[schemars(with = "Vec<String>")]
    pub runs: Vec<RunId>,
    /// Where to, 1 to 10.
    pub priority: u8,
}

/// Asks to approve plans of low risk; a plan that is none is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApproveSeveral {
    /// The plans, up to 500.
    pub plans: Vec<SeenPlan>,
    /// Said with each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

/// A plan as it was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeenPlan {
    /// The run.
    #[schemars(with = "String")]
    pub run: RunId,
    /// What was looked at (BEY-1).
    #[schemars(with = "String")]
    pub subject: Digest,
}

/// What came of asking several runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BulkView {
    /// One for each run, in the order they were asked.
    pub results: Vec<ResultView>,
}

/// What came of asking one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResultView {
    /// The run.
    #[schemars(with = "String")]
    pub run: RunId,
    /// Whether it was accepted.
    pub accepted: bool,
    /// The stable code of the refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Plans that wait for a person, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanRisks {
    /// The plans.
    pub plans: Vec<PlanRisk>,
}

/// A plan that waits for a person, and what speaks against approving it together with others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanRisk {
    /// The run.
    #[schemars(with = "String")]
    pub run: RunId,
    /// The title.
    pub title: String,
    /// `owner/name`.
    pub repo: String,
    /// What an approval must name (BEY-1).
    #[schemars(with = "String")]
    pub subject: Digest,
    /// The plan's one line.
    pub summary: String,
    /// The files that it covers.
    pub files: Vec<String>,
    /// Why it is not of low risk; nothing for one that is.
    pub because: Vec<String>,
}
