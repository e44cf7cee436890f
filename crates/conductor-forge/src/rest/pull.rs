//! Answers calls about pull requests, their reviews and their merge.
//!
//! The rules are in `act::pull`; here requests become acts and records become answers.

use axum::extract::Path;
use axum::http::StatusCode;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Call;
use crate::act::issue::{self, IssueEdit};
use crate::act::pull::{self, MergeMethod, Proposal, Remark};
use crate::answer::{self, Answer};
use crate::refusal::Refusal;
use crate::state::{Level, Repo, Scope, Standing, Verdict};
use crate::view::{Mergeable, View};

type RepoPath = Path<(String, String)>;
type NumberPath = Path<(String, String, u64)>;

#[derive(Deserialize)]
struct Wish {
    head: Option<String>,
    base: Option<String>,
    title: Option<String>,
    body: Option<String>,
    #[serde(default)]
    draft: bool,
}

#[derive(Deserialize)]
struct Written {
    title: Option<String>,
    body: Option<String>,
    state: Option<Standing>,
}

pub(crate) async fn list(call: Call, Path((owner, name)): RepoPath) -> Answer {
    let repo = call.repo(&owner, &name, Scope::PullRequests, Level::Read)?;
    let head = call.query("head").map(|head| {
        // Without the owner GitHub ignores the filter; here it must match, so that a client's slip shows.
        head.strip_prefix(&format!("{}:", repo.owner)).unwrap_or("\0")
    });
    let mut items: Vec<Value> = call.site.look(|state| {
        let view = View::new(state, &call.root);
        repo.pulls
            .values()
            .filter_map(|pull| repo.issues.get(&pull.number).map(|issue| (issue, pull)))
            .filter(|(issue, _)| match call.query("state").unwrap_or("open") {
                "all" => true,
                "closed" => issue.standing == Standing::Closed,
                _ => issue.standing == Standing::Open,
            })
            .filter(|(_, pull)| head.is_none_or(|head| pull.head_branch == head))
            .filter(|(_, pull)| call.query("base").is_none_or(|base| pull.base_branch == base))
            .map(|(issue, pull)| view.pull(&repo, issue, pull))
            .collect()
    });
    if call.query("direction") != Some("asc") {
        items.reverse();
    }
    answer::page(&call, items, answer::bare_list)
}

pub(crate) async fn create(call: Call, Path((owner, name)): RepoPath, body: Bytes) -> Answer {
    let repo = call.repo(&owner, &name, Scope::PullRequests, Level::Write)?;
    let wish: Wish = answer::parse(&body)?;
    let missing = |field| Refusal::missing("PullRequest", field);
    let proposal = Proposal {
        head: wish.head.ok_or_else(|| missing("head"))?,
        base: wish.base.ok_or_else(|| missing("base"))?,
        title: wish.title.ok_or_else(|| missing("title"))?,
        body: wish.body,
        draft: wish.draft,
    };
    let number = pull::open(&call.site, repo.id, &call.login(), proposal).await?;
    answer::created(&shown(&call, repo.id, number, Mergeable::Computing)?)
}

pub(crate) async fn show(call: Call, Path((owner, name, number)): NumberPath) -> Answer {
    let repo = call.repo(&owner, &name, Scope::PullRequests, Level::Read)?;
    let record = pull::find(&repo, number)?;
    let mergeable = if call.site.asks_again(record) {
        pull::mergeable(&call.site, &repo, record).await?
    } else {
        Mergeable::Computing
    };
    answer::ok(&shown(&call, repo.id, number, mergeable)?)
}

pub(crate) async fn edit(call: Call, Path((owner, name, number)): NumberPath, body: Bytes) -> Answer {
    let repo = call.repo(&owner, &name, Scope::PullRequests, Level::Write)?;
    pull::find(&repo, number)?;
    let Written { title, body, state } = answer::parse(&body)?;
    let editor = call.login();
    let edit = IssueEdit {
        title,
        body,
        standing: state,
    };
    call.site
        .change(|change| issue::edit(change, repo.id, number, &editor, edit))?;
    answer::ok(&shown(&call, repo.id, number, Mergeable::Computing)?)
}

pub(crate) async fn is_merged(call: Call, Path((owner, name, number)): NumberPath) -> Answer {
    let repo = call.repo(&owner, &name, Scope::PullRequests, Level::Read)?;
    if pull::find(&repo, number)?.merge.is_some() {
        answer::empty(StatusCode::NO_CONTENT)
    } else {
        Err(Refusal::not_found())
    }
}

#[derive(Deserialize)]
struct MergeWish {
    sha: Option<String>,
    merge_method: Option<String>,
}

pub(crate) async fn merge(call: Call, Path((owner, name, number)): NumberPath, body: Bytes) -> Answer {
    let repo = call.repo(&owner, &name, Scope::Contents, Level::Write)?;
    let wish: MergeWish = if body.is_empty() {
        MergeWish {
            sha: None,
            merge_method: None,
        }
    } else {
        answer::parse(&body)?
    };
    let method = match wish.merge_method.as_deref().unwrap_or("merge") {
        "merge" => MergeMethod::Merge,
        "squash" => MergeMethod::Squash,
        other => {
            return Err(Refusal::NotMergeable(format!(
                "Merge method {other} is not allowed"
            )));
        }
    };
    let login = call.login();
    let sha = pull::merge(&call.site, repo.id, number, &login, method, wish.sha.as_deref()).await?;
    answer::ok(&json!({ "sha": sha, "merged": true, "message": "Pull Request successfully merged" }))
}

pub(crate) async fn reviews(call: Call, Path((owner, name, number)): NumberPath) -> Answer {
    let repo = call.repo(&owner, &name, Scope::PullRequests, Level::Read)?;
    pull::find(&repo, number)?;
    let items: Vec<Value> = call.site.look(|state| {
        let view = View::new(state, &call.root);
        let of_pull = repo.reviews.values().filter(|review| review.pull == number);
        of_pull.map(|review| view.review(&repo, review)).collect()
    });
    answer::page(&call, items, answer::bare_list)
}

#[derive(Deserialize)]
struct ReviewWish {
    event: Option<String>,
    #[serde(default)]
    body: String,
}

/// GitHub answers the creation of a review with 200, not 201.
pub(crate) async fn review(call: Call, Path((owner, name, number)): NumberPath, body: Bytes) -> Answer {
    let repo = call.repo(&owner, &name, Scope::PullRequests, Level::Write)?;
    let wish: ReviewWish = answer::parse(&body)?;
    let verdict = match wish.event.as_deref() {
        Some("APPROVE") => Verdict::Approved,
        Some("REQUEST_CHANGES") => Verdict::ChangesRequested,
        Some("COMMENT") => Verdict::Commented,
        Some(_) | None => {
            return Err(Refusal::invalid(
                "PullRequestReview",
                "event",
                "event is not one of the known ones",
            ));
        }
    };
    let author = call.login();
    let review = call
        .site
        .change(|change| pull::review(change, repo.id, number, &author, verdict, &wish.body))?;
    answer::ok(
        &call
            .site
            .look(|state| View::new(state, &call.root).review(&repo, &review)),
    )
}

pub(crate) async fn remarks(call: Call, Path((owner, name, number)): NumberPath) -> Answer {
    let repo = call.repo(&owner, &name, Scope::PullRequests, Level::Read)?;
    pull::find(&repo, number)?;
    let items: Vec<Value> = call.site.look(|state| {
        let view = View::new(state, &call.root);
        let of_pull = repo
            .review_comments
            .values()
            .filter(|comment| comment.pull == number);
        of_pull
            .map(|comment| view.review_comment(&repo, comment))
            .collect()
    });
    answer::page(&call, items, answer::bare_list)
}

pub(crate) async fn remarks_of_review(
    call: Call,
    Path((owner, name, number, review)): Path<(String, String, u64, u64)>,
) -> Answer {
    let repo = call.repo(&owner, &name, Scope::PullRequests, Level::Read)?;
    repo.reviews
        .get(&review)
        .filter(|it| it.pull == number)
        .ok_or_else(Refusal::not_found)?;
    let items: Vec<Value> = call.site.look(|state| {
        let view = View::new(state, &call.root);
        let of_review = repo
            .review_comments
            .values()
            .filter(|comment| comment.review == Some(review));
        of_review
            .map(|comment| view.review_comment(&repo, comment))
            .collect()
    });
    answer::page(&call, items, answer::bare_list)
}

#[derive(Deserialize)]
struct RemarkWish {
    body: Option<String>,
    commit_id: Option<String>,
    path: Option<String>,
    line: Option<u64>,
    in_reply_to: Option<u64>,
}

pub(crate) async fn remark(call: Call, Path((owner, name, number)): NumberPath, body: Bytes) -> Answer {
    let repo = call.repo(&owner, &name, Scope::PullRequests, Level::Write)?;
    let wish: RemarkWish = answer::parse(&body)?;
    let missing = |field| Refusal::missing("PullRequestReviewComment", field);
    let parent = wish.in_reply_to.and_then(|id| repo.review_comments.get(&id));
    let path = wish.path.or_else(|| parent.map(|parent| parent.path.clone()));
    let commit = wish
        .commit_id
        .or_else(|| parent.map(|parent| parent.commit_sha.clone()));
    let remark = Remark {
        review: None,
        body: wish.body.ok_or_else(|| missing("body"))?,
        path: path.ok_or_else(|| missing("path"))?,
        commit_sha: commit.ok_or_else(|| missing("commit_id"))?,
        line: wish.line,
        in_reply_to: wish.in_reply_to,
    };
    let author = call.login();
    let comment = call
        .site
        .change(|change| pull::remark(change, repo.id, number, &author, remark))?;
    answer::created(
        &call
            .site
            .look(|state| View::new(state, &call.root).review_comment(&repo, &comment)),
    )
}

fn shown(call: &Call, repo: u64, number: u64, mergeable: Mergeable) -> Result<Value, Refusal> {
    call.site.look(|state| {
        let repo: &Repo = state.repos.get(&repo).ok_or_else(Refusal::not_found)?;
        let pull = pull::find(repo, number)?;
        let issue = issue::find(repo, number)?;
        Ok(View::new(state, &call.root).full_pull(repo, issue, pull, mergeable))
    })
}
