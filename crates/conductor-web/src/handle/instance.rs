//! Answers about projects, repositories, the kill switch and the server itself.
//!
//! A repository is looked up at the forge before it is registered, because only the forge knows its numeric id (S-53).
//! This module does not know any run.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use conductor_domain::board::BoardNumber;
use conductor_domain::egress::Grant;
use conductor_domain::egress::grant::BadGrant;
use conductor_domain::id::ProjectId;
use conductor_domain::instance::{InstanceInput, Registration};
use conductor_domain::spec::RepoRef;
use conductor_port::forge::RepoDescription;

use crate::actor::Actor;
use crate::api::{
    AcceptedView, AddProject, GrantEgress, GrantList, Health, InstanceView, KillSwitch, ProjectList,
    RegisterRepo, RepoList, RepoView,
};
use crate::door::Door;
use crate::error::{Error, StartRefusal};
use crate::extract::Posted;
use crate::reader::repo_view;

/// Tells that the server answers, and whether something keeps it from its work.
pub(crate) async fn health(State(door): State<Arc<Door>>) -> Json<Health> {
    let trouble = door.backstage.trouble();
    Json(Health {
        status: if trouble.is_none() { "ok" } else { "troubled" }.to_owned(),
        trouble,
        version: door.settings.version.clone(),
        pid: door.settings.pid,
        started_at: door.settings.started_at,
    })
}

/// Shows the instance.
pub(crate) async fn instance(State(door): State<Arc<Door>>) -> Result<Json<InstanceView>, Error> {
    Ok(Json(door.reader.instance().await?))
}

/// Lists the projects.
pub(crate) async fn projects(State(door): State<Arc<Door>>) -> Result<Json<ProjectList>, Error> {
    Ok(Json(ProjectList {
        projects: door.reader.instance().await?.projects,
    }))
}

/// Adds a project.
pub(crate) async fn add_project(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Posted(wish): Posted<AddProject>,
) -> Result<(StatusCode, Json<AcceptedView>), Error> {
    Ok((StatusCode::CREATED, Json(add(&door, &actor, wish).await?)))
}

/// Adds a project, whichever door it came through.
pub(crate) async fn add(door: &Door, actor: &Actor, wish: AddProject) -> Result<AcceptedView, Error> {
    let project = ProjectId::parse(wish.name).map_err(|error| Error::Invalid {
        what: error.to_string(),
    })?;
    let input = InstanceInput::AddProject {
        by: actor.name(),
        project,
    };
    submit(door, actor, input).await
}

/// Lists the repositories.
pub(crate) async fn repos(State(door): State<Arc<Door>>) -> Result<Json<RepoList>, Error> {
    Ok(Json(RepoList {
        repos: door.reader.instance().await?.repos,
    }))
}

/// Registers a repository, or changes its registration.
pub(crate) async fn register_repo(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Posted(wish): Posted<RegisterRepo>,
) -> Result<(StatusCode, Json<RepoView>), Error> {
    Ok((StatusCode::CREATED, Json(register(&door, &actor, wish).await?)))
}

/// Registers a repository, whichever door it came through.
pub(crate) async fn register(door: &Door, actor: &Actor, wish: RegisterRepo) -> Result<RepoView, Error> {
    let project = ProjectId::parse(wish.project).map_err(|error| Error::Invalid {
        what: error.to_string(),
    })?;
    let (owner, name) = split_name(&wish.repo)?;
    let found = door
        .forge
        .repository(owner, name)
        .await?
        .ok_or_else(|| StartRefusal::RepoUnknown(wish.repo.clone()))?;
    let registration = Registration {
        project,
        repo: repo_ref(found, wish.base_branch)?,
        test_command: wish.test_command,
        slots: wish.slots.unwrap_or(1),
        test_egress: wish.test_egress,
        board: wish.board.map(BoardNumber),
    };
    let view = repo_view(&registration);
    submit(
        door,
        actor,
        InstanceInput::RegisterRepo {
            by: actor.name(),
            registration,
        },
    )
    .await?;
    Ok(view)
}

/// Lists what the sandboxes of each project may reach.
pub(crate) async fn grants(State(door): State<Arc<Door>>) -> Result<Json<GrantList>, Error> {
    Ok(Json(GrantList {
        grants: door.reader.instance().await?.egress,
    }))
}

/// Grants a project something at the network (BEY-6).
pub(crate) async fn allow_egress(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Posted(wish): Posted<GrantEgress>,
) -> Result<(StatusCode, Json<AcceptedView>), Error> {
    Ok((StatusCode::CREATED, Json(allow(&door, &actor, &wish).await?)))
}

/// Grants a project something at the network, whichever door it came through.
pub(crate) async fn allow(door: &Door, actor: &Actor, wish: &GrantEgress) -> Result<AcceptedView, Error> {
    let (project, grant) = read_grant(wish)?;
    let by = actor.name();
    submit(door, actor, InstanceInput::GrantEgress { by, project, grant }).await
}

/// Takes such a grant back.
pub(crate) async fn revoke_egress(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Posted(wish): Posted<GrantEgress>,
) -> Result<Json<AcceptedView>, Error> {
    let (project, grant) = read_grant(&wish)?;
    let input = InstanceInput::RevokeEgress {
        by: actor.name(),
        project,
        grant,
    };
    Ok(Json(submit(&door, &actor, input).await?))
}

fn read_grant(wish: &GrantEgress) -> Result<(ProjectId, Grant), Error> {
    let invalid = |what: String| Error::Invalid { what };
    let project = ProjectId::parse(wish.project.clone()).map_err(|error| invalid(error.to_string()))?;
    let grant = Grant::parse(&wish.grant).map_err(|error| {
        let why = match &error {
            BadGrant::Host { source, .. } => format!(" ({source})"),
            BadGrant::Port(_) => String::new(),
        };
        invalid(format!("{error}{why}; {}", BadGrant::HINT))
    })?;
    Ok((project, grant))
}

/// Turns the kill switch (SEC-6).
pub(crate) async fn kill_switch(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Posted(wish): Posted<KillSwitch>,
) -> Result<Json<AcceptedView>, Error> {
    Ok(Json(turn(&door, &actor, wish).await?))
}

/// Turns the kill switch, whichever door it came through.
pub(crate) async fn turn(door: &Door, actor: &Actor, wish: KillSwitch) -> Result<AcceptedView, Error> {
    let input = InstanceInput::TurnKillSwitch {
        by: actor.name(),
        on: wish.on,
    };
    submit(door, actor, input).await
}

/// Submits what somebody asks of the instance.
pub(super) async fn submit(door: &Door, actor: &Actor, input: InstanceInput) -> Result<AcceptedView, Error> {
    let accepted = door.inbox.submit_to_instance(input, &actor.cause()).await?;
    Ok(AcceptedView {
        seq: accepted.seq,
        duplicate: accepted.duplicate,
    })
}

fn split_name(name: &str) -> Result<(&str, &str), Error> {
    let is_part = |part: &str| {
        !part.is_empty()
            && !matches!(part, "." | "..")
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    };
    name.split_once('/')
        .filter(|(owner, name)| is_part(owner) && is_part(name))
        .ok_or_else(|| Error::Invalid {
            what: format!("`{name}` is not a repository (write owner/name)"),
        })
}

fn repo_ref(found: RepoDescription, base_branch: Option<String>) -> Result<RepoRef, Error> {
    let host = found
        .clone_url
        .parse::<Uri>()
        .ok()
        .and_then(|uri| uri.authority().map(ToString::to_string))
        .filter(|host| !host.contains('@'))
        .ok_or_else(|| Error::Invalid {
            what: format!("the forge gave `{}` to clone from", found.clone_url),
        })?;
    Ok(RepoRef {
        id: found.id,
        host,
        owner: found.owner,
        name: found.name,
        clone_url: found.clone_url,
        base_branch: base_branch.unwrap_or(found.default_branch),
    })
}
