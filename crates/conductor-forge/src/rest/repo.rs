//! Answers calls about repositories, branches, refs and collaborators.
//!
//! It does not know of conversations.

use axum::extract::Path;
use axum::http::StatusCode;

use super::Call;
use crate::act::push;
use crate::answer::{self, Answer};
use crate::refusal::Refusal;
use crate::state::{Level, Scope};
use crate::view::View;

pub(crate) async fn show(call: Call, Path((owner, name)): Path<(String, String)>) -> Answer {
    let repo = call.repo(&owner, &name, Scope::Metadata, Level::Read)?;
    answer::ok(&call.site.look(|state| View::new(state, &call.root).repo(&repo)))
}

pub(crate) async fn branch(
    call: Call,
    Path((owner, name, branch)): Path<(String, String, String)>,
) -> Answer {
    let repo = call.repo(&owner, &name, Scope::Contents, Level::Read)?;
    let sha = repo
        .heads
        .get(&branch)
        .ok_or_else(|| Refusal::NotFound("Branch not found".into()))?;
    let commit = call
        .site
        .git
        .commit_facts(&call.site.repo_dir(repo.id), sha)
        .await?;
    answer::ok(
        &call
            .site
            .look(|state| View::new(state, &call.root).branch(&repo, &branch, &commit)),
    )
}

pub(crate) async fn git_ref(
    call: Call,
    Path((owner, name, short)): Path<(String, String, String)>,
) -> Answer {
    let repo = call.repo(&owner, &name, Scope::Contents, Level::Read)?;
    if repo.heads.is_empty() {
        return Err(Refusal::Conflict("Git Repository is empty.".into()));
    }
    let full = format!("refs/{short}");
    let sha = call.site.git.resolve(&call.site.repo_dir(repo.id), &full).await?;
    let sha = sha.ok_or_else(Refusal::not_found)?;
    answer::ok(
        &call
            .site
            .look(|state| View::new(state, &call.root).git_ref(&repo, &full, &sha)),
    )
}

pub(crate) async fn delete_ref(
    call: Call,
    Path((owner, name, short)): Path<(String, String, String)>,
) -> Answer {
    let repo = call.repo(&owner, &name, Scope::Contents, Level::Write)?;
    let missing = || Refusal::Unprocessable("Reference does not exist".into());
    let branch = short.strip_prefix("heads/").ok_or_else(missing)?;
    if repo.protected_branches.contains(branch) || branch == repo.default_branch {
        return Err(Refusal::Unprocessable("Cannot delete a protected branch".into()));
    }
    if !repo.heads.contains_key(branch) {
        return Err(missing());
    }
    call.site
        .git
        .delete_ref(&call.site.repo_dir(repo.id), &format!("refs/heads/{branch}"))
        .await?;
    push::notice(&call.site, repo.id, &call.login()).await?;
    answer::empty(StatusCode::NO_CONTENT)
}

pub(crate) async fn permission(
    call: Call,
    Path((owner, name, login)): Path<(String, String, String)>,
) -> Answer {
    let repo = call.repo(&owner, &name, Scope::Metadata, Level::Read)?;
    let known = call.site.look(|state| state.users.contains_key(&login));
    if !known {
        return Err(Refusal::not_found());
    }
    answer::ok(
        &call
            .site
            .look(|state| View::new(state, &call.root).permission(&repo, &login)),
    )
}
