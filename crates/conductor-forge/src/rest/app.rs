//! Answers calls about the App itself: installations, tokens, budget.
//!
//! It does not know what the tokens are used for.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::Path;
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Call;
use crate::answer::{self, Answer};
use crate::auth::{self, Caller};
use crate::refusal::Refusal;
use crate::state::{Holder, Level, Permissions, Repo, Scope};
use crate::view::View;

pub(crate) async fn show(call: Call) -> Answer {
    call.caller.require_app()?;
    answer::ok(&call.site.look(|state| View::new(state, &call.root).app()))
}

pub(crate) async fn installations(call: Call) -> Answer {
    call.caller.require_app()?;
    let items = call.site.look(|state| {
        let view = View::new(state, &call.root);
        state
            .installations
            .values()
            .map(|installation| view.installation(installation))
            .collect()
    });
    answer::page(&call, items, answer::bare_list)
}

pub(crate) async fn installation(call: Call, Path(id): Path<u64>) -> Answer {
    call.caller.require_app()?;
    let shown = call.site.look(|state| {
        state
            .installations
            .get(&id)
            .map(|found| View::new(state, &call.root).installation(found))
    });
    answer::ok(&shown.ok_or_else(Refusal::not_found)?)
}

pub(crate) async fn repo_installation(call: Call, Path((owner, name)): Path<(String, String)>) -> Answer {
    call.caller.require_app()?;
    let shown = call.site.look(|state| {
        let repo = state.repo_named(&owner, &name)?;
        Some(View::new(state, &call.root).installation(state.installation_of(&repo.owner)?))
    });
    answer::ok(&shown.ok_or_else(Refusal::not_found)?)
}

#[derive(Deserialize)]
struct Wish {
    repositories: Option<Vec<String>>,
    repository_ids: Option<Vec<u64>>,
    permissions: Option<Permissions>,
}

pub(crate) async fn mint(call: Call, Path(id): Path<u64>, body: Bytes) -> Answer {
    call.caller.require_app()?;
    let wish: Wish = if body.is_empty() {
        Wish {
            repositories: None,
            repository_ids: None,
            permissions: None,
        }
    } else {
        answer::parse(&body)?
    };
    let (repos, permissions) = call.site.look(|state| {
        let installation = state.installations.get(&id).ok_or_else(Refusal::not_found)?;
        let owned: Vec<&Arc<Repo>> = state
            .repos
            .values()
            .filter(|repo| repo.owner.eq_ignore_ascii_case(&installation.account))
            .collect();
        let missing = || {
            Refusal::Unprocessable(
                "There is at least one repository that does not exist or is not accessible to the parent \
                 installation."
                    .into(),
            )
        };
        let chosen: BTreeSet<u64> = match (&wish.repositories, &wish.repository_ids) {
            (Some(names), _) => names
                .iter()
                .map(|name| {
                    let mut owned = owned.iter();
                    owned
                        .find(|repo| repo.name.eq_ignore_ascii_case(name))
                        .map(|repo| repo.id)
                        .ok_or_else(missing)
                })
                .collect::<Result<_, _>>()?,
            (None, Some(ids)) => {
                if ids.iter().any(|id| !owned.iter().any(|repo| repo.id == *id)) {
                    return Err(missing());
                }
                ids.iter().copied().collect()
            }
            (None, None) => owned.iter().map(|repo| repo.id).collect(),
        };
        let permissions = granted(&installation.permissions, wish.permissions.as_ref())?;
        Ok::<_, Refusal>((chosen, permissions))
    })?;
    let holder = Holder::Installation {
        installation: id,
        repos: repos.clone(),
        permissions: permissions.clone(),
    };
    let (text, expires_at) = auth::mint(&call.site, holder)?;
    let shown = call.site.look(|state| {
        let listed: Vec<&Repo> = repos
            .iter()
            .filter_map(|id| state.repos.get(id))
            .map(Arc::as_ref)
            .collect();
        View::new(state, &call.root).token(&text, json!(expires_at), &listed, &permissions)
    });
    Ok(answer::json(StatusCode::CREATED, &shown))
}

/// A token has what was asked for, never more than the installation; reading metadata is always in it.
fn granted(installed: &Permissions, wish: Option<&Permissions>) -> Result<Permissions, Refusal> {
    // Clients send an empty object when they mean everything, and GitHub understands it so.
    let mut granted = wish.filter(|wish| !wish.is_empty()).unwrap_or(installed).clone();
    for (scope, level) in &granted {
        if installed.get(scope).is_none_or(|installed| installed < level) {
            return Err(Refusal::Unprocessable(
                "The permissions requested are not granted to this installation.".into(),
            ));
        }
    }
    granted.entry(Scope::Metadata).or_insert(Level::Read);
    Ok(granted)
}

pub(crate) async fn revoke(call: Call, headers: HeaderMap) -> Answer {
    let text = headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    match &call.caller {
        Caller::Installation { .. } => {
            auth::revoke(
                &call.site,
                text.split_once(' ').map_or("", |(_, token)| token.trim()),
            )?;
            answer::empty(StatusCode::NO_CONTENT)
        }
        Caller::Nobody | Caller::App | Caller::Person { .. } => {
            Err(Refusal::Unauthorized("Bad credentials".into()))
        }
    }
}

pub(crate) async fn repositories(call: Call) -> Answer {
    let Caller::Installation { repos, .. } = &call.caller else {
        return Err(Refusal::Forbidden(
            "You must authenticate with an installation access token in order to list repositories for an \
             installation."
                .into(),
        ));
    };
    let items: Vec<Value> = call.site.look(|state| {
        let view = View::new(state, &call.root);
        repos
            .iter()
            .filter_map(|id| state.repos.get(id))
            .map(|repo| view.repo(repo))
            .collect()
    });
    answer::page(
        &call,
        items,
        |total, items| json!({ "total_count": total, "repository_selection": "selected", "repositories": items }),
    )
}

pub(crate) async fn rate_limit(call: Call) -> Answer {
    let window = call
        .site
        .rates
        .window(&call.caller.budget(), call.site.clock.now());
    let core = json!({
        "limit": window.limit,
        "used": window.used,
        "remaining": window.remaining(),
        "reset": window.resets_at.as_second(),
    });
    answer::ok(&json!({ "resources": { "core": core, "search": core, "graphql": core }, "rate": core }))
}
