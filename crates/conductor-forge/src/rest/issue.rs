//! Answers calls about issues and their comments.
//!
//! The rules are in `act::issue`; here requests become acts and records become answers.

use axum::extract::Path;
use axum::http::StatusCode;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

use super::Call;
use crate::act::issue::{self, IssueEdit};
use crate::answer::{self, Answer};
use crate::moment::Moment;
use crate::refusal::Refusal;
use crate::state::{Comment, Level, Presence, Repo, Scope, Standing};
use crate::view::View;

type RepoPath = Path<(String, String)>;
type NumberPath = Path<(String, String, u64)>;

/// Comments on pull requests are open to holders of either permission.
const CONVERSATION: &[Scope] = &[Scope::Issues, Scope::PullRequests];

#[derive(Deserialize)]
struct Written {
    title: Option<String>,
    body: Option<String>,
    state: Option<Standing>,
}

#[derive(Deserialize)]
struct Said {
    body: Option<String>,
}

pub(crate) async fn list(call: Call, Path((owner, name)): RepoPath) -> Answer {
    let repo = call.repo(&owner, &name, Scope::Issues, Level::Read)?;
    let since = since(&call)?;
    let mut issues: Vec<_> = repo
        .issues
        .values()
        .filter(|issue| issue.presence == Presence::Here)
        .filter(|issue| match call.query("state").unwrap_or("open") {
            "all" => true,
            "closed" => issue.standing == Standing::Closed,
            _ => issue.standing == Standing::Open,
        })
        .filter(|issue| since.is_none_or(|since| issue.updated_at >= since))
        .collect();
    match call.query("sort").unwrap_or("created") {
        "updated" => issues.sort_by_key(|issue| (issue.updated_at, issue.number)),
        _ => issues.sort_by_key(|issue| issue.number),
    }
    if call.query("direction") != Some("asc") {
        issues.reverse();
    }
    let items: Vec<Value> = call.site.look(|state| {
        let view = View::new(state, &call.root);
        issues.iter().map(|issue| view.issue(&repo, issue)).collect()
    });
    answer::page(&call, items, answer::bare_list)
}

pub(crate) async fn create(call: Call, Path((owner, name)): RepoPath, body: Bytes) -> Answer {
    let repo = call.repo(&owner, &name, Scope::Issues, Level::Write)?;
    let written: Written = answer::parse(&body)?;
    let title = written.title.ok_or_else(|| Refusal::missing("Issue", "title"))?;
    let author = call.login();
    let number = call
        .site
        .change(|change| issue::open(change, repo.id, &author, &title, written.body.as_deref()))?;
    answer::created(&shown(&call, repo.id, number)?)
}

pub(crate) async fn show(call: Call, Path((owner, name, number)): NumberPath) -> Answer {
    let repo = call.repo_by_any(&owner, &name, CONVERSATION, Level::Read)?;
    answer::ok(&shown(&call, repo.id, number)?)
}

pub(crate) async fn edit(call: Call, Path((owner, name, number)): NumberPath, body: Bytes) -> Answer {
    let repo = call.repo_by_any(&owner, &name, CONVERSATION, Level::Write)?;
    let Written { title, body, state } = answer::parse(&body)?;
    let editor = call.login();
    let edit = IssueEdit {
        title,
        body,
        standing: state,
    };
    call.site
        .change(|change| issue::edit(change, repo.id, number, &editor, edit))?;
    answer::ok(&shown(&call, repo.id, number)?)
}

pub(crate) async fn comments(call: Call, Path((owner, name, number)): NumberPath) -> Answer {
    let repo = call.repo_by_any(&owner, &name, CONVERSATION, Level::Read)?;
    issue::find(&repo, number)?;
    let since = since(&call)?;
    let comments = repo
        .comments
        .values()
        .filter(|comment| comment.issue == number)
        .filter(|comment| since.is_none_or(|since| comment.updated_at >= since));
    page_of(&call, &repo, comments.collect())
}

pub(crate) async fn all_comments(call: Call, Path((owner, name)): RepoPath) -> Answer {
    let repo = call.repo_by_any(&owner, &name, CONVERSATION, Level::Read)?;
    let since = since(&call)?;
    let mut comments: Vec<&Comment> = repo
        .comments
        .values()
        .filter(|comment| since.is_none_or(|since| comment.updated_at >= since))
        .collect();
    if call.query("sort") == Some("updated") {
        comments.sort_by_key(|comment| (comment.updated_at, comment.id));
    }
    if call.query("direction") == Some("desc") {
        comments.reverse();
    }
    page_of(&call, &repo, comments)
}

pub(crate) async fn comment(call: Call, Path((owner, name, number)): NumberPath, body: Bytes) -> Answer {
    let repo = call.repo_by_any(&owner, &name, CONVERSATION, Level::Write)?;
    let said: Said = answer::parse(&body)?;
    let text = said
        .body
        .ok_or_else(|| Refusal::missing("IssueComment", "body"))?;
    let author = call.login();
    let comment = call
        .site
        .change(|change| issue::comment(change, repo.id, number, &author, &text))?;
    answer::created(
        &call
            .site
            .look(|state| View::new(state, &call.root).comment(&repo, &comment)),
    )
}

pub(crate) async fn show_comment(call: Call, Path((owner, name, id)): NumberPath) -> Answer {
    let repo = call.repo_by_any(&owner, &name, CONVERSATION, Level::Read)?;
    let comment = repo.comments.get(&id).ok_or_else(Refusal::not_found)?;
    answer::ok(
        &call
            .site
            .look(|state| View::new(state, &call.root).comment(&repo, comment)),
    )
}

pub(crate) async fn edit_comment(call: Call, Path((owner, name, id)): NumberPath, body: Bytes) -> Answer {
    let repo = call.repo_by_any(&owner, &name, CONVERSATION, Level::Write)?;
    let said: Said = answer::parse(&body)?;
    let text = said
        .body
        .ok_or_else(|| Refusal::missing("IssueComment", "body"))?;
    let editor = call.login();
    let comment = call
        .site
        .change(|change| issue::edit_comment(change, repo.id, id, &editor, &text))?;
    answer::ok(
        &call
            .site
            .look(|state| View::new(state, &call.root).comment(&repo, &comment)),
    )
}

pub(crate) async fn delete_comment(call: Call, Path((owner, name, id)): NumberPath) -> Answer {
    let repo = call.repo_by_any(&owner, &name, CONVERSATION, Level::Write)?;
    let remover = call.login();
    call.site
        .change(|change| issue::delete_comment(change, repo.id, id, &remover))?;
    answer::empty(StatusCode::NO_CONTENT)
}

fn page_of(call: &Call, repo: &Repo, comments: Vec<&Comment>) -> Answer {
    let items: Vec<Value> = call.site.look(|state| {
        let view = View::new(state, &call.root);
        comments
            .iter()
            .map(|comment| view.comment(repo, comment))
            .collect()
    });
    answer::page(call, items, answer::bare_list)
}

fn shown(call: &Call, repo: u64, number: u64) -> Result<Value, Refusal> {
    call.site.look(|state| {
        let repo = state.repos.get(&repo).ok_or_else(Refusal::not_found)?;
        Ok(View::new(state, &call.root).issue(repo, issue::find(repo, number)?))
    })
}

fn since(call: &Call) -> Result<Option<Moment>, Refusal> {
    call.query("since")
        .map(|text| {
            Moment::parse(text).ok_or_else(|| Refusal::invalid("Search", "since", "since is not a timestamp"))
        })
        .transpose()
}
