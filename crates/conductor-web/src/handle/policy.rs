//! Answers about stored policies, sets them, and asks them (SEC-1).
//!
//! A text is checked by the engine before it is stored; here it is only kept. This module does not know what a policy says.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use conductor_domain::artifact::ArtifactKind;
use conductor_domain::digest::Digest;
use conductor_domain::id::ProjectId;
use conductor_domain::instance::InstanceInput;
use conductor_domain::policy::PolicyScope;

use crate::actor::Actor;
use crate::api::{
    AcceptedView, ExpectedView, FlawList, FlawView, PolicyExpectations, PolicyList, PolicyPlace,
    PolicyQuestion, PolicyTexts, RulingView, SetPolicy, VersionList,
};
use crate::door::Door;
use crate::error::{Error, StartRefusal};
use crate::extract::{Asked, Posted};
use crate::handle::instance::submit;

/// Lists the stored policies.
pub(crate) async fn list(State(door): State<Arc<Door>>) -> Result<Json<PolicyList>, Error> {
    Ok(Json(door.reader.policies().await?))
}

/// Reads texts.
pub(crate) async fn texts(
    State(door): State<Arc<Door>>,
    Asked(place): Asked<PolicyPlace>,
) -> Result<Json<PolicyTexts>, Error> {
    let of = door.reader.policies_shown(&place).await?;
    let texts = door.rules.texts(&of).await?;
    Ok(Json(PolicyTexts { texts }))
}

/// Lists versions.
pub(crate) async fn versions(
    State(door): State<Arc<Door>>,
    Asked(place): Asked<PolicyPlace>,
) -> Result<Json<VersionList>, Error> {
    Ok(Json(door.reader.policy_versions(&place).await?))
}

/// Says what is wrong with a text, and stores nothing.
pub(crate) async fn validate(
    State(door): State<Arc<Door>>,
    Posted(wish): Posted<SetPolicy>,
) -> Result<Json<FlawList>, Error> {
    Ok(Json(FlawList {
        flaws: flaws(&door, &wish).await?,
    }))
}

/// Says what is wrong with a text wherever it would count, each thing once.
pub(crate) async fn flaws(door: &Door, wish: &SetPolicy) -> Result<Vec<FlawView>, Error> {
    let place = PolicyPlace {
        project: wish.project.clone(),
        repo: wish.repo.clone(),
        ..PolicyPlace::default()
    };
    let (layer, sets) = door.reader.policies_around(&place).await?;
    let mut flaws: Vec<FlawView> = Vec::new();
    for below in &sets {
        for flaw in door.rules.flaws(below, layer, &wish.text).await? {
            if !flaws.contains(&flaw) {
                flaws.push(flaw);
            }
        }
    }
    Ok(flaws)
}

/// Sets the policies of a project or a repository.
pub(crate) async fn set(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Posted(wish): Posted<SetPolicy>,
) -> Result<(StatusCode, Json<AcceptedView>), Error> {
    Ok((StatusCode::CREATED, Json(store(&door, &actor, &wish).await?)))
}

/// Stores a new version, whichever door it came through.
pub(crate) async fn store(door: &Door, actor: &Actor, wish: &SetPolicy) -> Result<AcceptedView, Error> {
    let invalid = |what: &str| Error::Invalid {
        what: what.to_owned(),
    };
    let scope = match (&wish.project, &wish.repo) {
        (Some(project), None) => PolicyScope::Project {
            project: ProjectId::parse(project.clone()).map_err(|error| invalid(&error.to_string()))?,
        },
        (None, Some(name)) => {
            let known = door.reader.registration(name).await?;
            let known = known.ok_or_else(|| StartRefusal::RepoNotRegistered(name.clone()))?;
            PolicyScope::Repo { repo: known.repo.id }
        }
        (Some(_), Some(_)) | (None, None) => {
            return Err(invalid("name a project or a repository, one of both"));
        }
    };
    let text = door.blobs.put(ArtifactKind::Policy, wish.text.as_bytes()).await?;
    if !text.truncated && text.digest != Digest::of(wish.text.as_bytes()) {
        return Err(invalid(
            "the policies hold a secret, which would be kept and shown; take it out",
        ));
    }
    let by = actor.name();
    submit(door, actor, InstanceInput::SetPolicy { by, scope, text }).await
}

/// Answers for a request that nobody makes.
pub(crate) async fn check(
    State(door): State<Arc<Door>>,
    Posted(asked): Posted<PolicyQuestion>,
) -> Result<Json<RulingView>, Error> {
    let of = door.reader.policies_counting(&asked.of).await?;
    let ruling = door.rules.judge(&of, &asked.question).await?;
    Ok(Json(ruling.map_err(|what| Error::Invalid { what })?))
}

/// Checks a file of expected decisions.
pub(crate) async fn expect(
    State(door): State<Arc<Door>>,
    Posted(asked): Posted<PolicyExpectations>,
) -> Result<Json<ExpectedView>, Error> {
    let of = door.reader.policies_counting(&asked.of).await?;
    Ok(Json(door.rules.expect(&of, &asked.text).await?))
}
