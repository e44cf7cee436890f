//! The pages that people look at, rendered here, each true without a script.
//!
//! A page reads through the same [`Reader`](crate::reader::Reader) as the API and posts plain forms; the script only
//! brings a page up to date sooner. Foreign text is shown with its hidden characters visible and escaped by the
//! templates. This module does not know what a run accepts.

pub(crate) mod session;
pub(crate) mod gate;
pub(crate) mod frame;
pub(crate) mod line;
pub(crate) mod enter;
pub(crate) mod home;
pub(crate) mod runs;
pub(crate) mod run;
pub(crate) mod log;
pub(crate) mod act;
pub(crate) mod start;
pub(crate) mod approvals;
pub(crate) mod projects;
pub(crate) mod stop;
pub(crate) mod keys;
pub(crate) mod live;
pub(crate) mod asset;
pub(crate) mod trouble;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};

use crate::door::Door;
use crate::stream;

/// The most bytes of one form.
const MAX_FORM: usize = 256 * 1024;

/// Says which address leads to which page; all but the way in ask for a session.
pub(crate) fn routes(door: &Arc<Door>) -> Router<Arc<Door>> {
    let inside = Router::new()
        .route("/", get(home::show))
        .route("/runs", get(runs::show))
        .route("/runs/{id}", get(run::show))
        .route("/runs/{id}/log", get(log::show))
        .route("/runs/{id}/act", post(act::act))
        .route("/runs/{id}/allow", post(act::allow))
        .route("/runs/{id}/live", get(stream::follow))
        .route("/start", get(start::show).post(start::start))
        .route("/approvals", get(approvals::show))
        .route("/projects", get(projects::show))
        .route("/projects/add", post(projects::add))
        .route("/repos/add", post(projects::register))
        .route("/stop", get(stop::show).post(stop::turn))
        .route("/keys", get(keys::show))
        .route("/live", get(live::follow))
        .route("/leave", post(enter::leave))
        .layer(DefaultBodyLimit::max(MAX_FORM))
        .layer(from_fn_with_state(door.clone(), gate::session));
    Router::new()
        .route("/enter/{code}", get(enter::enter))
        .route("/static/{name}", get(asset::serve))
        .merge(inside)
        .layer(from_fn(gate::headers))
}
