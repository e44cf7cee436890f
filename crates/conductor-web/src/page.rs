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
pub(crate) mod output;
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
use axum::routing::{MethodRouter, get, post};

use crate::door::Door;
use crate::stream;

/// The most bytes of one form.
const MAX_FORM: usize = 256 * 1024;

/// A form's address, and what it leads to.
type Form = (&'static str, fn() -> MethodRouter<Arc<Door>>);

/// Every form; what each does, the API does too.
pub(crate) const FORMS: &[Form] = &[
    ("/runs/{id}/act", || post(act::act)),
    ("/runs/{id}/allow", || post(act::allow)),
    ("/start", || post(start::start)),
    ("/projects/add", || post(projects::add)),
    ("/repos/add", || post(projects::register)),
    ("/stop", || post(stop::turn)),
    ("/leave", || post(enter::leave)),
];

/// Says which address leads to which page; all but the way in ask for a session.
pub(crate) fn routes(door: &Arc<Door>) -> Router<Arc<Door>> {
    let forms = FORMS
        .iter()
        .fold(Router::new(), |forms, (path, route)| forms.route(path, route()));
    let inside = forms
        .route("/", get(home::show))
        .route("/runs", get(runs::show))
        .route("/runs/{id}", get(run::show))
        .route("/runs/{id}/log", get(log::show))
        .route("/runs/{id}/output/{digest}", get(output::show))
        .route("/runs/{id}/live", get(stream::follow))
        .route("/start", get(start::show))
        .route("/approvals", get(approvals::show))
        .route("/projects", get(projects::show))
        .route("/stop", get(stop::show))
        .route("/keys", get(keys::show))
        .route("/live", get(live::follow))
        .layer(DefaultBodyLimit::max(MAX_FORM))
        .layer(from_fn_with_state(door.clone(), gate::session));
    Router::new()
        .route("/enter/{code}", get(enter::enter))
        .route("/static/{name}", get(asset::serve))
        .merge(inside)
        .layer(from_fn(gate::headers))
}
