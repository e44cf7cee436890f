//! Answers calls about check runs and suites.
//!
//! Only Apps may write checks; the rules of suites are in `act::check`.

use std::sync::Arc;

use axum::extract::Path;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Call;
use crate::act::check::{self, CheckEdit};
use crate::answer::{self, Answer};
use crate::auth::Caller;
use crate::refusal::Refusal;
use crate::state::{CheckApp, CheckStatus, Conclusion, Level, Repo, Scope};
use crate::view::View;

type RepoPath = Path<(String, String)>;
type IdPath = Path<(String, String, u64)>;
type CommitPath = Path<(String, String, String)>;

#[derive(Deserialize)]
struct Wish {
    head_sha: Option<String>,
    name: Option<String>,
    external_id: Option<String>,
    details_url: Option<String>,
    status: Option<CheckStatus>,
    conclusion: Option<Conclusion>,
    output: Option<Output>,
}

#[derive(Deserialize, Default)]
struct Output {
    title: Option<String>,
    summary: Option<String>,
    text: Option<String>,
}

impl Wish {
    fn edit(self) -> Result<CheckEdit, Refusal> {
        if let Some(output) = &self.output
            && output.summary.is_none()
        {
            return Err(Refusal::missing("CheckRun", "output"));
        }
        let Output { title, summary, text } = self.output.unwrap_or_default();
        let Self {
            name,
            external_id,
            details_url,
            status,
            conclusion,
            ..
        } = self;
        Ok(CheckEdit {
            name,
            external_id,
            details_url,
            status,
            conclusion,
            title,
            summary,
            text,
        })
    }
}

pub(crate) async fn create(call: Call, Path((owner, name)): RepoPath, body: Bytes) -> Answer {
    let repo = writable(&call, &owner, &name)?;
    let wish: Wish = answer::parse(&body)?;
    let head = wish
        .head_sha
        .clone()
        .ok_or_else(|| Refusal::missing("CheckRun", "head_sha"))?;
    let known = call.site.git.resolve(&call.site.repo_dir(repo.id), &head).await?;
    if known.as_deref() != Some(head.as_str()) {
        return Err(Refusal::Unprocessable(format!("No commit found for SHA: {head}")));
    }
    let (edit, sender) = (wish.edit()?, call.login());
    let run = call
        .site
        .change(|change| check::create(change, repo.id, &CheckApp::Registered, &sender, &head, edit))?;
    answer::created(&shown(&call, repo.id, run.id)?)
}

pub(crate) async fn update(call: Call, Path((owner, name, id)): IdPath, body: Bytes) -> Answer {
    let repo = writable(&call, &owner, &name)?;
    let wish: Wish = answer::parse(&body)?;
    let (edit, sender) = (wish.edit()?, call.login());
    call.site
        .change(|change| check::update(change, repo.id, &CheckApp::Registered, &sender, id, edit))?;
    answer::ok(&shown(&call, repo.id, id)?)
}

pub(crate) async fn show(call: Call, Path((owner, name, id)): IdPath) -> Answer {
    let repo = call.repo(&owner, &name, Scope::Checks, Level::Read)?;
    answer::ok(&shown(&call, repo.id, id)?)
}

pub(crate) async fn runs_of_commit(call: Call, Path((owner, name, commit)): CommitPath) -> Answer {
    let repo = call.repo(&owner, &name, Scope::Checks, Level::Read)?;
    let sha = resolve(&call, &repo, &commit).await?;
    let items: Vec<Value> = call.site.look(|state| {
        let view = View::new(state, &call.root);
        repo.check_runs
            .values()
            .rev()
            .filter(|run| run.head_sha == sha)
            .filter(|run| call.query("check_name").is_none_or(|name| run.name == name))
            .map(|run| view.check_run(&repo, run))
            .filter(|run| {
                call.query("app_id")
                    .is_none_or(|id| id.parse().is_ok_and(|id: u64| run["app"]["id"] == id))
            })
            .filter(|run| call.query("status").is_none_or(|status| run["status"] == status))
            .collect()
    });
    answer::page(
        &call,
        items,
        |total, items| json!({ "total_count": total, "check_runs": items }),
    )
}

pub(crate) async fn suites_of_commit(call: Call, Path((owner, name, commit)): CommitPath) -> Answer {
    let repo = call.repo(&owner, &name, Scope::Checks, Level::Read)?;
    let sha = resolve(&call, &repo, &commit).await?;
    let items: Vec<Value> = call.site.look(|state| {
        let view = View::new(state, &call.root);
        let of_commit = repo.check_suites.values().filter(|suite| suite.head_sha == sha);
        of_commit.map(|suite| view.check_suite(&repo, suite)).collect()
    });
    answer::page(
        &call,
        items,
        |total, items| json!({ "total_count": total, "check_suites": items }),
    )
}

/// The forge knows no commit statuses, only checks; the answer is what GitHub says of a commit without any.
pub(crate) async fn status_of_commit(call: Call, Path((owner, name, commit)): CommitPath) -> Answer {
    let repo = call.repo(&owner, &name, Scope::Contents, Level::Read)?;
    let sha = resolve(&call, &repo, &commit).await?;
    let url = format!("{}/repos/{}/commits/{sha}", call.root.api, repo.full_name());
    let shown = call.site.look(|state| View::new(state, &call.root).repo(&repo));
    answer::ok(&json!({
        "state": "pending", "statuses": [], "sha": sha, "total_count": 0, "repository": shown,
        "commit_url": url, "url": format!("{url}/status"),
    }))
}

fn writable(call: &Call, owner: &str, name: &str) -> Result<Arc<Repo>, Refusal> {
    let repo = call.repo(owner, name, Scope::Checks, Level::Write)?;
    match call.caller {
        Caller::Installation { .. } => Ok(repo),
        Caller::Nobody | Caller::App | Caller::Person { .. } => Err(Refusal::Forbidden(
            "You must authenticate via a GitHub App.".into(),
        )),
    }
}

async fn resolve(call: &Call, repo: &Repo, commit: &str) -> Result<String, Refusal> {
    let dir = call.site.repo_dir(repo.id);
    let sha = call.site.git.resolve(&dir, commit).await?;
    sha.ok_or_else(|| Refusal::Unprocessable(format!("No commit found for SHA: {commit}")))
}

fn shown(call: &Call, repo: u64, id: u64) -> Result<Value, Refusal> {
    call.site.look(|state| {
        let repo = state.repos.get(&repo).ok_or_else(Refusal::not_found)?;
        let run = repo.check_runs.get(&id).ok_or_else(Refusal::not_found)?;
        Ok(View::new(state, &call.root).check_run(repo, run))
    })
}
