//! The few fields we read of GitHub's answers; everything else may come, go or change.
//!
//! Only what a decision rests on is required. Fields that API version 2026-03-10 removes are not read.
//! It does not know where an answer came from.

use conductor_domain::forge::Standing;
use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct ErrorBody {
    pub(crate) message: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) errors: Vec<ErrorDetail>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct ErrorDetail {
    pub(crate) code: Option<String>,
    pub(crate) message: Option<String>,
}

/// `errors` holds objects, strings, or nothing at all, depending on the endpoint.
fn lenient<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<ErrorDetail>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    let items = value.as_array().cloned().unwrap_or_default();
    let detail = |item: serde_json::Value| match item.as_str() {
        Some(message) => ErrorDetail {
            code: None,
            message: Some(message.to_owned()),
        },
        None => serde_json::from_value(item).unwrap_or_default(),
    };
    Ok(items.into_iter().map(detail).collect())
}

#[derive(Debug, Deserialize)]
pub(crate) struct Installation {
    pub(crate) id: u64,
}

#[derive(Deserialize)]
pub(crate) struct MintedToken {
    pub(crate) token: String,
    pub(crate) expires_at: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct App {
    pub(crate) slug: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Account {
    pub(crate) login: String,
    /// `User`, `Bot`, `Organization`.
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
}

/// What the forge says the author of something is to its repository; an account that is a bot, or is gone, is nothing.
pub(crate) fn standing(author: Option<&Account>, association: Option<&str>) -> Standing {
    if author.is_none_or(|author| author.kind.as_deref() == Some("Bot")) {
        return Standing::None;
    }
    match association {
        Some("OWNER") => Standing::Owner,
        Some("MEMBER") => Standing::Member,
        Some("COLLABORATOR") => Standing::Collaborator,
        Some("CONTRIBUTOR") => Standing::Contributor,
        // First-timers, mannequins, and whatever comes to be one day.
        Some(_) | None => Standing::None,
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Repository {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) owner: Account,
    pub(crate) clone_url: String,
    pub(crate) default_branch: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Branch {
    pub(crate) commit: Commit,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Commit {
    pub(crate) sha: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Issue {
    pub(crate) title: String,
    pub(crate) body: Option<String>,
    pub(crate) state: String,
    pub(crate) user: Option<Account>,
    pub(crate) comments: Option<u64>,
    pub(crate) author_association: Option<String>,
    pub(crate) performed_via_github_app: Option<serde_json::Value>,
    pub(crate) pull_request: Option<serde_json::Value>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Comment {
    pub(crate) id: u64,
    pub(crate) body: Option<String>,
    pub(crate) html_url: String,
    pub(crate) user: Option<Account>,
    pub(crate) author_association: Option<String>,
    pub(crate) performed_via_github_app: Option<AppId>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct AppId {
    pub(crate) id: u64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct PullRequest {
    pub(crate) number: u64,
    pub(crate) html_url: String,
    pub(crate) title: String,
    pub(crate) user: Option<Account>,
    pub(crate) state: String,
    pub(crate) merged_at: Option<String>,
    pub(crate) merged_by: Option<Account>,
    pub(crate) head: Side,
    pub(crate) base: Side,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Side {
    #[serde(rename = "ref")]
    pub(crate) branch: String,
    pub(crate) sha: String,
    /// Absent when a fork was deleted.
    pub(crate) repo: Option<SideRepository>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct SideRepository {
    pub(crate) id: u64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Review {
    pub(crate) id: u64,
    pub(crate) user: Option<Account>,
    pub(crate) body: Option<String>,
    pub(crate) state: String,
    pub(crate) author_association: Option<String>,
    /// Absent when the commit is gone.
    pub(crate) commit_id: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ReviewComment {
    pub(crate) path: String,
    pub(crate) line: Option<u64>,
    pub(crate) body: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Permission {
    pub(crate) permission: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct CheckRuns {
    pub(crate) check_runs: Vec<CheckRun>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct CheckRun {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) external_id: Option<String>,
    pub(crate) status: Option<String>,
    pub(crate) conclusion: Option<String>,
    pub(crate) started_at: Option<String>,
    pub(crate) completed_at: Option<String>,
    pub(crate) app: Option<AppId>,
    pub(crate) output: Option<CheckOutput>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct CheckOutput {
    pub(crate) title: Option<String>,
    pub(crate) summary: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct BoardField {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) data_type: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct BoardItem {
    pub(crate) id: u64,
    pub(crate) content: Option<BoardContent>,
}

/// What stands on a board; a draft has neither.
#[derive(Debug, Deserialize)]
pub(crate) struct BoardContent {
    pub(crate) number: Option<u64>,
    pub(crate) repository_url: Option<String>,
}
