//! The records of everything the forge knows besides git objects.
//!
//! Pull requests are issues with a [`Pull`] beside them under the same number, as at GitHub. Records are
//! plain data: any combination of values can be written, the acts in `act/` keep them sensible.
//! Nothing here knows how a record is shown to a client or where it is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::moment::Moment;

/// All records of one site.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct State {
    pub last_id: u64,
    pub app: App,
    pub hook: Option<Hook>,
    pub users: BTreeMap<String, User>,
    pub installations: BTreeMap<u64, Installation>,
    /// Installation and personal tokens by the SHA-256 of their text; the text itself is never kept.
    pub tokens: BTreeMap<String, Token>,
    /// Shared, so that a reader keeps a repository as it was while another is writing.
    pub repos: BTreeMap<u64, Arc<Repo>>,
    /// Project boards of organisations.
    #[serde(default)]
    pub boards: Vec<Board>,
}

impl State {
    pub(crate) fn mint_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Finds a repository by its present name; names are compared as GitHub does, without case.
    pub fn repo_named(&self, owner: &str, name: &str) -> Option<&Arc<Repo>> {
        self.repos
            .values()
            .find(|repo| repo.owner.eq_ignore_ascii_case(owner) && repo.name.eq_ignore_ascii_case(name))
    }

    /// Finds the repository that once had this name.
    pub(crate) fn repo_formerly_named(&self, owner: &str, name: &str) -> Option<&Arc<Repo>> {
        self.repos.values().find(|repo| {
            repo.former_names
                .iter()
                .any(|(o, n)| o.eq_ignore_ascii_case(owner) && n.eq_ignore_ascii_case(name))
        })
    }

    pub(crate) fn installation_of(&self, account: &str) -> Option<&Installation> {
        self.installations
            .values()
            .find(|installation| installation.account.eq_ignore_ascii_case(account))
    }
}

/// The GitHub App that is registered at this site; the forge has exactly one.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct App {
    pub id: u64,
    pub slug: String,
    pub name: String,
}

impl App {
    /// The account under which the App writes.
    pub fn bot_login(&self) -> String {
        format!("{}[bot]", self.slug)
    }
}

/// Where and with which secret deliveries of the App are sent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Hook {
    pub url: String,
    pub secret: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AccountKind {
    User,
    Bot,
    Organization,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct User {
    pub id: u64,
    pub login: String,
    pub kind: AccountKind,
}

/// The App installed on one account, for all of that account's repositories.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Installation {
    pub id: u64,
    pub account: String,
    pub permissions: Permissions,
    pub created_at: Moment,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    Checks,
    Contents,
    Issues,
    Metadata,
    OrganizationProjects,
    PullRequests,
    Statuses,
    Workflows,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Read,
    Write,
}

pub type Permissions = BTreeMap<Scope, Level>;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Token {
    pub holder: Holder,
    pub expires_at: Moment,
    /// How many of the next uses are refused although the token is good; GitHub does so while a fresh
    /// token has not reached all of its machines.
    pub refusals_left: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Holder {
    Installation {
        installation: u64,
        repos: BTreeSet<u64>,
        permissions: Permissions,
    },
    Person {
        login: String,
    },
}

/// What a person may do in a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Read,
    Write,
    Admin,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Repo {
    pub id: u64,
    pub owner: String,
    pub name: String,
    pub former_names: Vec<(String, String)>,
    pub default_branch: String,
    pub created_at: Moment,
    pub roles: BTreeMap<String, Role>,
    pub protected_branches: BTreeSet<String>,
    /// The branches as last seen; the difference to git is what has been pushed since.
    pub heads: BTreeMap<String, String>,
    pub last_number: u64,
    pub issues: BTreeMap<u64, Issue>,
    pub comments: BTreeMap<u64, Comment>,
    pub pulls: BTreeMap<u64, Pull>,
    pub reviews: BTreeMap<u64, Review>,
    pub review_comments: BTreeMap<u64, ReviewComment>,
    pub check_suites: BTreeMap<u64, CheckSuite>,
    pub check_runs: BTreeMap<u64, CheckRun>,
}

impl Repo {
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }

    pub fn role_of(&self, login: &str) -> Option<Role> {
        if login.eq_ignore_ascii_case(&self.owner) {
            Some(Role::Admin)
        } else {
            self.roles.get(login).copied()
        }
    }
}

/// A project board of an organisation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Board {
    pub owner: String,
    pub number: u32,
    pub created_at: Moment,
    pub fields: Vec<BoardField>,
    pub items: Vec<BoardItem>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BoardField {
    pub id: u64,
    pub name: String,
    /// `text`, `number`, `single_select`, …
    pub data_type: String,
}

/// An issue on a board, with what its fields say by their ids.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BoardItem {
    pub id: u64,
    pub repo: u64,
    pub issue: u64,
    pub values: BTreeMap<u64, String>,
    pub created_at: Moment,
    pub updated_at: Moment,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    Open,
    Closed,
}

/// Whether an issue can still be read where it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Presence {
    Here,
    Deleted,
    Moved { repo: u64, number: u64 },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Issue {
    pub id: u64,
    pub number: u64,
    pub title: String,
    pub body: Option<String>,
    pub standing: Standing,
    pub presence: Presence,
    pub author: String,
    pub labels: Vec<String>,
    pub created_at: Moment,
    pub updated_at: Moment,
    pub closed_at: Option<Moment>,
    pub closed_by: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comment {
    pub id: u64,
    pub issue: u64,
    pub author: String,
    pub body: String,
    pub created_at: Moment,
    pub updated_at: Moment,
}

/// What a pull request has beyond its issue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pull {
    pub id: u64,
    pub number: u64,
    pub draft: bool,
    pub head_branch: String,
    pub head_sha: String,
    pub base_branch: String,
    pub base_sha: String,
    pub size: Size,
    pub merge: Option<Merge>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    pub commits: u64,
    pub additions: u64,
    pub deletions: u64,
    pub changed_files: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Merge {
    pub commit_sha: String,
    pub by: String,
    pub at: Moment,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Verdict {
    Approved,
    ChangesRequested,
    Commented,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    pub id: u64,
    pub pull: u64,
    pub author: String,
    pub verdict: Verdict,
    pub body: String,
    pub commit_sha: String,
    pub submitted_at: Moment,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewComment {
    pub id: u64,
    pub pull: u64,
    /// The review that it is part of; remarks can also stand alone.
    pub review: Option<u64>,
    pub author: String,
    pub body: String,
    pub path: String,
    pub commit_sha: String,
    pub line: Option<u64>,
    pub in_reply_to: Option<u64>,
    pub created_at: Moment,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    Queued,
    InProgress,
    Completed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    ActionRequired,
    Cancelled,
    Failure,
    Neutral,
    Success,
    Skipped,
    TimedOut,
}

/// Whose check it is: the registered App's, or that of another one (a CI) named by its slug.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CheckApp {
    Registered,
    Other { slug: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckSuite {
    pub id: u64,
    pub head_sha: String,
    pub app: CheckApp,
    pub status: CheckStatus,
    pub conclusion: Option<Conclusion>,
    pub created_at: Moment,
    pub updated_at: Moment,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckRun {
    pub id: u64,
    pub suite: u64,
    pub name: String,
    pub head_sha: String,
    pub external_id: String,
    pub details_url: Option<String>,
    pub status: CheckStatus,
    pub conclusion: Option<Conclusion>,
    pub title: Option<String>,
    pub summary: Option<String>,
    pub text: Option<String>,
    pub started_at: Option<Moment>,
    pub completed_at: Option<Moment>,
}
