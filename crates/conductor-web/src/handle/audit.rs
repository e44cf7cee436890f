//! Answers about proofs: audits, replays, and the kept bytes themselves.
//!
//! Kept bytes come from agents: they leave as an attachment that no browser opens, guesses at or runs (S-57).
//! This module does not know how an audit works.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use conductor_domain::digest::Digest;

use crate::api::{AuditView, ReplayView};
use crate::door::Door;
use crate::error::Error;
use crate::extract::NamedRun;

/// Checks every stream.
pub(crate) async fn verify(State(door): State<Arc<Door>>) -> Result<Json<AuditView>, Error> {
    Ok(Json(door.backstage.verify().await?))
}

/// Recomputes a run.
pub(crate) async fn replay(
    State(door): State<Arc<Door>>,
    NamedRun(id): NamedRun,
) -> Result<Json<ReplayView>, Error> {
    door.reader.state(&id).await?;
    Ok(Json(door.backstage.replay(&id).await?))
}

/// Hands kept bytes out.
pub(crate) async fn artifact(
    State(door): State<Arc<Door>>,
    Path(digest): Path<String>,
) -> Result<Response, Error> {
    let digest = Digest::parse(digest).map_err(|error| Error::Invalid {
        what: error.to_string(),
    })?;
    let bytes = door.reader.artifact(&digest).await?;
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (
            header::CONTENT_DISPOSITION,
            format!("attachment; filename=\"{}.bin\"", digest.short()),
        ),
        (
            header::CONTENT_SECURITY_POLICY,
            "sandbox; default-src 'none'".to_owned(),
        ),
    ];
    Ok((headers, bytes).into_response())
}
