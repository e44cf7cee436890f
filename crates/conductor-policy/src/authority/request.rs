//! Who asks to do what to which target, as types, and as Cedar sees it.
//!
//! This module does not know any policy.

use std::collections::{HashMap, HashSet};
use std::str::FromStr;
use std::sync::LazyLock;

use cedar_policy::{
    Context, Entities, Entity, EntityId, EntityTypeName, EntityUid, RestrictedExpression, Schema,
};
use conductor_domain::role::Role;

use crate::inspect::path::plain;

/// What somebody is to a repository.
pub use conductor_domain::forge::Standing;
/// What an operator may do.
pub use conductor_domain::staff::Rank as Level;

/// A question to the authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Who asks.
    pub actor: Actor,
    /// What for.
    pub action: Action,
    /// What it would be done to.
    pub target: Target,
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actor {
    /// An agent in its role.
    Agent(Role),
    /// Conductor itself.
    Orchestrator,
    /// Somebody at the control plane.
    Operator {
        /// Who.
        name: String,
        /// What they may do there.
        level: Level,
    },
    /// Somebody at the forge.
    Person {
        /// Who.
        login: String,
        /// What the forge says they are to the repository; a bot has none, whatever the forge says (BEY-10).
        standing: Standing,
    },
}

/// What somebody wants to do; every tool, and what Conductor asks on its own behalf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(
    missing_docs,
    reason = "each is the tool of its name; the schema says who may use it on what"
)]
pub enum Action {
    View,
    ListFiles,
    SearchFiles,
    GitStatus,
    GitDiff,
    CreateFile,
    StrReplace,
    Bash,
    GitCommit,
    GithubGetIssue,
    GithubListComments,
    GithubCommentIssue,
    GithubGetPullRequest,
    GithubCommentPullRequest,
    GithubReviewComment,
    GithubUpdateCheckRun,
    GithubUpdateProjectFields,
    SubmitPlan,
    SubmitReview,
    SubmitTestReport,
    AskHuman,
    AddDependency,
    Push,
    OpenPullRequest,
    Merge,
    StartRun,
    TrustText,
}

const NAMES: [(Action, &str); 27] = [
    (Action::View, "view"),
    (Action::ListFiles, "list_files"),
    (Action::SearchFiles, "search_files"),
    (Action::GitStatus, "git_status"),
    (Action::GitDiff, "git_diff"),
    (Action::CreateFile, "create_file"),
    (Action::StrReplace, "str_replace"),
    (Action::Bash, "bash"),
    (Action::GitCommit, "git_commit"),
    (Action::GithubGetIssue, "github_get_issue"),
    (Action::GithubListComments, "github_list_comments"),
    (Action::GithubCommentIssue, "github_comment_issue"),
    (Action::GithubGetPullRequest, "github_get_pull_request"),
    (Action::GithubCommentPullRequest, "github_comment_pull_request"),
    (Action::GithubReviewComment, "github_review_comment"),
    (Action::GithubUpdateCheckRun, "github_update_check_run"),
    (Action::GithubUpdateProjectFields, "github_update_project_fields"),
    (Action::SubmitPlan, "submit_plan"),
    (Action::SubmitReview, "submit_review"),
    (Action::SubmitTestReport, "submit_test_report"),
    (Action::AskHuman, "ask_human"),
    (Action::AddDependency, "add_dependency"),
    (Action::Push, "push"),
    (Action::OpenPullRequest, "open_pull_request"),
    (Action::Merge, "merge"),
    (Action::StartRun, "start_run"),
    (Action::TrustText, "trust_text"),
];

impl Action {
    /// Lists every action.
    pub fn all() -> impl Iterator<Item = Self> {
        NAMES.into_iter().map(|(action, _)| action)
    }

    /// Returns its name, which is the tool's.
    pub fn name(self) -> &'static str {
        NAMES
            .iter()
            .find(|(action, _)| *action == self)
            .map_or("", |(_, name)| name)
    }

    /// Says it in Cedar's words.
    pub(super) fn uid(self) -> EntityUid {
        EntityUid::from_type_name_and_id(TYPES.action.clone(), EntityId::new(self.name()))
    }

    /// Finds an action by its name.
    pub fn named(name: &str) -> Option<Self> {
        NAMES
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(action, _)| *action)
    }
}

/// What something would be done to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A path of the run's worktree; empty for the whole.
    Worktree {
        /// The path.
        path: String,
    },
    /// A command in the run's worktree.
    Command {
        /// The command, as it would be run.
        text: String,
    },
    /// An issue.
    Issue {
        /// Whether it is the run's.
        is_own: bool,
    },
    /// A pull request.
    PullRequest {
        /// Whether it is the run's.
        is_own: bool,
    },
    /// A check run.
    CheckRun {
        /// Whether it is Conductor's.
        is_own: bool,
    },
    /// Fields of a project board.
    ProjectFields {
        /// Whether they are Conductor's.
        is_own: bool,
    },
    /// What a role hands in.
    Outcome,
    /// A person.
    Human,
    /// A repository.
    Repository {
        /// Its full name.
        name: String,
        /// What is known about the change; merging needs it.
        change: Option<Change>,
    },
    /// One version of a dependency that a repository would get.
    Dependency {
        /// The repository's full name.
        repo: String,
        /// Where packages of that name come from, e.g. `cargo`.
        ecosystem: String,
        /// Its name.
        name: String,
        /// The version, or what stands for it.
        version: String,
    },
}

/// What is known about a change when merging it is asked for (RUN-14).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Its class, e.g. `documentation`.
    pub class: String,
    /// How sure one can be of it, in percent.
    pub confidence: u8,
}

/// The types of the schema, parsed once.
struct Types {
    action: EntityTypeName,
    by_name: HashMap<&'static str, EntityTypeName>,
}

static TYPES: LazyLock<Types> = LazyLock::new(|| {
    let parse = |name: &str| EntityTypeName::from_str(name).expect("a plain word is a type's name");
    Types {
        action: parse("Action"),
        by_name: [
            "Agent",
            "Orchestrator",
            "Operator",
            "Person",
            "Worktree",
            "Issue",
            "PullRequest",
            "CheckRun",
            "ProjectFields",
            "Outcome",
            "Human",
            "Repository",
        ]
        .into_iter()
        .map(|name| (name, parse(name)))
        .collect(),
    }
});

/// An entity before Cedar sees it: its type, its id, its attributes.
type Sketch = (&'static str, String, Vec<(&'static str, RestrictedExpression)>);

impl Request {
    /// Makes a question.
    pub fn new(actor: Actor, action: Action, target: Target) -> Self {
        Self {
            actor,
            action,
            target,
        }
    }

    /// Asks whether an agent may call a tool of its run on a subject: the path or the command where the tool names one.
    /// `None`: there is no such tool.
    pub fn of_tool(role: Role, tool: &str, subject: &str) -> Option<Self> {
        let action = Action::named(tool)?;
        let target = match action {
            Action::View
            | Action::ListFiles
            | Action::SearchFiles
            | Action::GitStatus
            | Action::GitDiff
            | Action::CreateFile
            | Action::StrReplace
            | Action::GitCommit => Target::Worktree { path: plain(subject) },
            Action::Bash => Target::Command {
                text: subject.to_owned(),
            },
            Action::GithubGetIssue | Action::GithubListComments | Action::GithubCommentIssue => {
                Target::Issue { is_own: true }
            }
            Action::GithubGetPullRequest | Action::GithubCommentPullRequest | Action::GithubReviewComment => {
                Target::PullRequest { is_own: true }
            }
            Action::GithubUpdateCheckRun => Target::CheckRun { is_own: true },
            Action::GithubUpdateProjectFields => Target::ProjectFields { is_own: true },
            Action::SubmitPlan | Action::SubmitReview | Action::SubmitTestReport => Target::Outcome,
            Action::AskHuman => Target::Human,
            Action::AddDependency
            | Action::Push
            | Action::OpenPullRequest
            | Action::Merge
            | Action::StartRun
            | Action::TrustText => return None,
        };
        Some(Self::new(Actor::Agent(role), action, target))
    }

    /// Says it in Cedar's words; an action that no such actor can do to such a target is an error.
    pub(super) fn compile(&self, schema: &Schema) -> Result<(cedar_policy::Request, Entities), String> {
        let (principal, principal_entity) = entity(self.actor.sketch())?;
        let (resource, resource_entity) = entity(self.target.sketch())?;
        let action = self.action.uid();
        let context = self
            .context()
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value));
        let context = Context::from_pairs(context).map_err(|error| error.to_string())?;
        let request = cedar_policy::Request::new(principal, action, resource, context, Some(schema))
            .map_err(|error| format!("{} cannot be asked for like that: {error}", self.action.name()))?;
        let entities = Entities::from_entities([principal_entity, resource_entity], None)
            .map_err(|error| error.to_string())?;
        Ok((request, entities))
    }

    /// What is known beside who and what; a command or a dependency is never left out, so that it fits its own action only.
    fn context(&self) -> Vec<(&'static str, RestrictedExpression)> {
        let dependency = |ecosystem: &str, name: &str, version: &str| {
            vec![
                ("ecosystem", text(ecosystem)),
                ("name", text(name)),
                ("version", text(version)),
            ]
        };
        match (&self.target, self.action) {
            (
                Target::Repository {
                    change: Some(change), ..
                },
                Action::Merge,
            ) => vec![
                ("changeClass", text(change.class.clone())),
                (
                    "confidence",
                    RestrictedExpression::new_long(i64::from(change.confidence)),
                ),
            ],
            (Target::Command { text: command }, _) => vec![("command", text(command.clone()))],
            (Target::Worktree { .. }, Action::Bash) => vec![("command", text(""))],
            (
                Target::Dependency {
                    ecosystem,
                    name,
                    version,
                    ..
                },
                _,
            ) => dependency(ecosystem, name, version),
            (Target::Repository { .. }, Action::AddDependency) => dependency("", "", ""),
            _ => vec![],
        }
    }

    /// Tells whether whoever may do this may do the other: the same, or any command where this names none.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let is_any_command = self.action == Action::Bash
            && matches!(&self.target, Target::Worktree { path } if path.is_empty())
            && matches!(other.target, Target::Command { .. });
        let is_same = self.actor == other.actor && self.action == other.action;
        is_same && (self.target == other.target || is_any_command)
    }
}

fn entity((kind, id, attributes): Sketch) -> Result<(EntityUid, Entity), String> {
    let name = TYPES.by_name.get(kind).ok_or("no such type")?.clone();
    let uid = EntityUid::from_type_name_and_id(name, EntityId::new(id));
    let attributes: HashMap<String, RestrictedExpression> = attributes
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect();
    let entity = Entity::new(uid.clone(), attributes, HashSet::new()).map_err(|error| error.to_string())?;
    Ok((uid, entity))
}

fn text(value: impl Into<String>) -> RestrictedExpression {
    RestrictedExpression::new_string(value.into())
}

impl Actor {
    fn sketch(&self) -> Sketch {
        match self {
            Self::Agent(role) => ("Agent", role.to_string().to_lowercase(), vec![]),
            Self::Orchestrator => ("Orchestrator", "conductor".to_owned(), vec![]),
            Self::Operator { name, level } => {
                ("Operator", name.clone(), vec![("level", text(level.as_str()))])
            }
            Self::Person { login, standing } => {
                let standing = match standing {
                    _ if login.to_lowercase().ends_with("[bot]") => "none",
                    Standing::Owner => "owner",
                    Standing::Member => "member",
                    Standing::Collaborator => "collaborator",
                    Standing::Contributor => "contributor",
                    Standing::None => "none",
                };
                ("Person", login.clone(), vec![("standing", text(standing))])
            }
        }
    }
}

impl Target {
    /// The same kind of thing at the forge, belonging to somebody else; anything else belongs to nobody.
    #[must_use]
    pub fn of_others(self) -> Self {
        match self {
            Self::Issue { .. } => Self::Issue { is_own: false },
            Self::PullRequest { .. } => Self::PullRequest { is_own: false },
            Self::CheckRun { .. } => Self::CheckRun { is_own: false },
            Self::ProjectFields { .. } => Self::ProjectFields { is_own: false },
            Self::Worktree { .. }
            | Self::Command { .. }
            | Self::Outcome
            | Self::Human
            | Self::Repository { .. }
            | Self::Dependency { .. } => self,
        }
    }

    fn sketch(&self) -> Sketch {
        let own = |kind, is_own: bool| {
            let id = if is_own { "own" } else { "other" };
            (
                kind,
                id.to_owned(),
                vec![("own", RestrictedExpression::new_bool(is_own))],
            )
        };
        match self {
            Self::Worktree { path } => {
                let path = path.to_lowercase();
                ("Worktree", path.clone(), vec![("path", text(path))])
            }
            Self::Command { .. } => ("Worktree", String::new(), vec![("path", text(""))]),
            Self::Issue { is_own } => own("Issue", *is_own),
            Self::PullRequest { is_own } => own("PullRequest", *is_own),
            Self::CheckRun { is_own } => own("CheckRun", *is_own),
            Self::ProjectFields { is_own } => own("ProjectFields", *is_own),
            Self::Outcome => ("Outcome", "outcome".to_owned(), vec![]),
            Self::Human => ("Human", "human".to_owned(), vec![]),
            Self::Repository { name, .. } | Self::Dependency { repo: name, .. } => {
                ("Repository", name.clone(), vec![("name", text(name.clone()))])
            }
        }
    }
}
