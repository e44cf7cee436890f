//! The pages that people look at, rendered here, each true without a script.
//!
//! A page reads through the same [`Reader`](crate::reader::Reader) as the API and posts plain forms; the script only
//! brings a page up to date sooner. Foreign text is shown with its hidden characters visible and escaped by the
//! templates. This module does not know what a run accepts.

pub(crate) mod gate;
pub(crate) mod frame;
pub(crate) mod line;
pub(crate) mod enter;
pub(crate) mod home;
pub(crate) mod runs;
pub(crate) mod run;
pub(crate) mod calls;
pub(crate) mod change;
pub(crate) mod log;
pub(crate) mod output;
pub(crate) mod act;
pub(crate) mod overrides;
pub(crate) mod start;
pub(crate) mod approvals;
pub(crate) mod projects;
pub(crate) mod audit;
pub(crate) mod figures;
pub(crate) mod policies;
pub(crate) mod bulk;
pub(crate) mod stop;
pub(crate) mod settings;
pub(crate) mod keys;
pub(crate) mod live;
pub(crate) mod asset;
pub(crate) mod trouble;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::routing::{MethodRouter, get, post};
use conductor_domain::staff::Rank;

use crate::door::Door;
use crate::stream;

/// The most bytes of one form.
pub(crate) const MAX_FORM: usize = 256 * 1024;

/// A form's address, who may send it, and what it leads to.
type Form = (&'static str, Rank, fn() -> MethodRouter<Arc<Door>>);

/// Every form; what each does, the API does too, for the same ranks.
pub(crate) const FORMS: &[Form] = &[
    ("/runs/{id}/act", Rank::Operator, || post(act::act)),
    ("/runs/{id}/allow", Rank::Admin, || post(act::allow)),
    ("/runs/{id}/override", Rank::Admin, || post(overrides::grant)),
    ("/runs/{id}/override/revoke", Rank::Operator, || {
        post(overrides::revoke)
    }),
    ("/start", Rank::Operator, || post(start::start)),
    ("/projects/add", Rank::Admin, || post(projects::add)),
    ("/repos/add", Rank::Admin, || post(projects::register)),
    ("/policies/set", Rank::Admin, || post(policies::set)),
    ("/bulk/approve", Rank::Operator, || post(bulk::approve)),
    ("/bulk/reprioritize", Rank::Operator, || post(bulk::reprioritize)),
    ("/bulk/cancel", Rank::Operator, || post(bulk::cancel)),
    ("/stop", Rank::Operator, || post(stop::turn)),
    ("/operators/add", Rank::Admin, || post(settings::add)),
    ("/operators/change", Rank::Admin, || post(settings::change)),
    ("/password", Rank::Viewer, || post(settings::password)),
    ("/tokens/issue", Rank::Viewer, || post(settings::issue)),
    ("/tokens/revoke", Rank::Viewer, || post(settings::revoke)),
    ("/sign-out", Rank::Viewer, || post(settings::sign_out)),
    ("/leave", Rank::Viewer, || post(enter::leave)),
];

/// A page's address, and what shows it.
type Page = (&'static str, fn() -> MethodRouter<Arc<Door>>);

/// Every page inside; whoever has a session may look.
pub(crate) const PAGES: &[Page] = &[
    ("/", || get(home::show)),
    ("/runs", || get(runs::show)),
    ("/runs/{id}", || get(run::show)),
    ("/runs/{id}/calls", || get(calls::show)),
    ("/runs/{id}/change", || get(change::show)),
    ("/runs/{id}/log", || get(log::show)),
    ("/runs/{id}/output/{digest}", || get(output::show)),
    ("/start", || get(start::show)),
    ("/approvals", || get(approvals::show)),
    ("/projects", || get(projects::show)),
    ("/audit", || get(audit::show)),
    ("/figures", || get(figures::show)),
    ("/policies", || get(policies::show)),
    ("/bulk", || get(bulk::show)),
    ("/stop", || get(stop::show)),
    ("/keys", || get(keys::show)),
    ("/settings", || get(settings::show)),
];

/// What a page hands out to be kept.
pub(crate) const FILES: &[Page] = &[("/audit/export/{format}", || get(audit::export))];

/// What tells a page of news, for as long as somebody looks.
pub(crate) const STREAMS: &[Page] = &[
    ("/runs/{id}/live", || get(stream::follow)),
    ("/live", || get(live::follow)),
];

/// Says which address leads to which page; all but the way in ask for a session.
pub(crate) fn routes(door: &Arc<Door>) -> Router<Arc<Door>> {
    let forms = FORMS.iter().fold(Router::new(), |forms, (path, needed, route)| {
        let needed = *needed;
        let guarded = from_fn(move |request: Request, next: Next| gate::rank(needed, request, next));
        forms.route(path, route().route_layer(guarded))
    });
    let inside = PAGES
        .iter()
        .chain(FILES)
        .chain(STREAMS)
        .fold(forms, |pages, (path, route)| pages.route(path, route()))
        .layer(from_fn_with_state(door.clone(), gate::session));
    Router::new()
        .route("/enter/{code}", get(enter::enter))
        .route("/login", get(enter::show).post(enter::login))
        .route("/static/{name}", get(asset::serve))
        .merge(inside)
        .layer(DefaultBodyLimit::max(MAX_FORM))
        .layer(from_fn(gate::headers))
}
