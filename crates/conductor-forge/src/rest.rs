//! Routes REST calls and does what is common to all: identity, API version, budget, ETag, headers.
//!
//! The operations themselves are in the modules below.

mod call;
mod app;
mod board;
mod check;
mod delivery;
mod issue;
mod pull;
mod repo;

pub(crate) use call::Call;
use call::root_of;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{OriginalUri, Request, State};
use axum::http::header::{
    AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH, LOCATION, USER_AGENT,
};
use axum::http::{Method, Response, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::IntoResponse;
use axum::routing::{delete, get, patch, post, put};
use http_body_util::BodyExt;
use sha2::{Digest, Sha256};

use crate::answer::{self, set};
use crate::auth::{self, Caller, Window};
use crate::chance;
use crate::refusal::Refusal;
use crate::site::Site;
use crate::view::Root;

/// The API version that the forge speaks; GitHub answers 400 to versions it does not know.
const API_VERSION: &str = "2022-11-28";
const LARGEST_BODY: usize = 2 * 1024 * 1024;

pub(crate) fn router(site: &Arc<Site>) -> Router<Arc<Site>> {
    let repo = "/repos/{owner}/{name}";
    let at = |path: &str| format!("{repo}{path}");
    Router::new()
        .route("/app", get(app::show))
        .route("/app/installations", get(app::installations))
        .route("/app/installations/{id}", get(app::installation))
        .route("/app/installations/{id}/access_tokens", post(app::mint))
        .route(
            "/app/hook/config",
            get(delivery::config).patch(delivery::configure),
        )
        .route("/app/hook/deliveries", get(delivery::list))
        .route("/app/hook/deliveries/{id}", get(delivery::show))
        .route("/app/hook/deliveries/{id}/attempts", post(delivery::redeliver))
        .route("/installation/token", delete(app::revoke))
        .route("/installation/repositories", get(app::repositories))
        .route("/rate_limit", get(app::rate_limit))
        .route(repo, get(repo::show))
        .route(&at("/installation"), get(app::repo_installation))
        .route(&at("/branches/{*branch}"), get(repo::branch))
        .route(&at("/git/ref/{*name}"), get(repo::git_ref))
        .route(&at("/git/refs/{*name}"), delete(repo::delete_ref))
        .route(&at("/collaborators/{login}/permission"), get(repo::permission))
        .route(&at("/issues"), get(issue::list).post(issue::create))
        .route(&at("/issues/comments"), get(issue::all_comments))
        .route(
            &at("/issues/comments/{id}"),
            get(issue::show_comment)
                .patch(issue::edit_comment)
                .delete(issue::delete_comment),
        )
        .route(&at("/issues/{number}"), get(issue::show).patch(issue::edit))
        .route(
            &at("/issues/{number}/comments"),
            get(issue::comments).post(issue::comment),
        )
        .route(&at("/pulls"), get(pull::list).post(pull::create))
        .route(&at("/pulls/{number}"), get(pull::show).patch(pull::edit))
        .route(&at("/pulls/{number}/merge"), get(pull::is_merged))
        .route(&at("/pulls/{number}/merge"), put(pull::merge))
        .route(
            &at("/pulls/{number}/reviews"),
            get(pull::reviews).post(pull::review),
        )
        .route(
            &at("/pulls/{number}/reviews/{review}/comments"),
            get(pull::remarks_of_review),
        )
        .route(
            &at("/pulls/{number}/comments"),
            get(pull::remarks).post(pull::remark),
        )
        .route(&at("/check-runs"), post(check::create))
        .route(&at("/check-runs/{id}"), get(check::show))
        .route(&at("/check-runs/{id}"), patch(check::update))
        .route(&at("/commits/{sha}/check-runs"), get(check::runs_of_commit))
        .route(&at("/commits/{sha}/check-suites"), get(check::suites_of_commit))
        .route(&at("/commits/{sha}/status"), get(check::status_of_commit))
        .route("/orgs/{org}/projectsV2/{number}/fields", get(board::fields))
        .route(
            "/orgs/{org}/projectsV2/{number}/items",
            get(board::items).post(board::add),
        )
        .route("/orgs/{org}/projectsV2/{number}/items/{item}", patch(board::edit))
        .layer(axum::extract::DefaultBodyLimit::max(LARGEST_BODY))
        .layer(from_fn_with_state(Arc::clone(site), guard))
}

/// What has to be known of a request before it is handled.
struct Admitted {
    caller: Caller,
    window: Window,
    root: Root,
    known_tag: Option<String>,
    is_free: bool,
}

async fn guard(State(site): State<Arc<Site>>, mut request: Request, next: Next) -> Response<Body> {
    let Admitted {
        caller,
        window,
        root,
        known_tag,
        is_free,
    } = match admit(&site, &request) {
        Ok(admitted) => admitted,
        Err(response) => return finish(*response),
    };
    let budget = caller.budget();
    let is_get = request.method() == Method::GET;
    request.extensions_mut().insert(caller);
    let mut response = next.run(request).await;
    if is_get && response.status() == StatusCode::OK {
        response = tagged(response, known_tag).await;
    }
    // What the client already had costs nothing.
    let costs = response.status() != StatusCode::NOT_MODIFIED && !is_free;
    let window = if costs {
        site.rates.spend(&budget, site.clock.now())
    } else {
        window
    };
    answer::set_rate(&mut response, &window);
    let location = response
        .headers()
        .get(LOCATION)
        .and_then(|location| location.to_str().ok());
    if let Some(relative) = location.filter(|location| location.starts_with('/')) {
        let absolute = format!("{}{relative}", root.api);
        set(&mut response, LOCATION, &absolute);
    }
    finish(response)
}

fn admit(site: &Site, request: &Request) -> Result<Admitted, Box<Response<Body>>> {
    let refused = |refusal: Refusal| Err(Box::new(refusal.into_response()));
    let text = |name: HeaderName| request.headers().get(name).and_then(|value| value.to_str().ok());
    if text(USER_AGENT).is_none_or(str::is_empty) {
        let message = "Request forbidden by administrative rules. Please make sure your request has a \
                       User-Agent header.";
        return refused(Refusal::Forbidden(message.into()));
    }
    if let Some(version) = text(HeaderName::from_static("x-github-api-version"))
        && version != API_VERSION
    {
        return refused(Refusal::BadRequest(format!("Not a supported version: {version}")));
    }
    let caller =
        auth::identify(site, text(AUTHORIZATION)).map_err(|refusal| Box::new(refusal.into_response()))?;
    let window = site.rates.window(&caller.budget(), site.clock.now());
    let is_free = request.uri().path().ends_with("/rate_limit");
    if window.remaining() == 0 && !is_free {
        return Err(Box::new(answer::primary_limit(&caller.budget(), &window)));
    }
    let path = request
        .extensions()
        .get::<OriginalUri>()
        .map_or(request.uri().path(), |uri| uri.path());
    let root = root_of(request.headers(), path, site);
    Ok(Admitted {
        caller,
        window,
        root,
        known_tag: text(IF_NONE_MATCH).map(str::to_owned),
        is_free,
    })
}

fn finish(mut response: Response<Body>) -> Response<Body> {
    set(
        &mut response,
        HeaderName::from_static("x-github-api-version-selected"),
        API_VERSION,
    );
    set(
        &mut response,
        HeaderName::from_static("x-github-media-type"),
        "github.v3; format=json",
    );
    let id = chance::digits();
    set(&mut response, HeaderName::from_static("x-github-request-id"), &id);
    set(
        &mut response,
        HeaderName::from_static("x-content-type-options"),
        "nosniff",
    );
    response
}

/// Adds an ETag, and answers 304 when the client already has this content.
async fn tagged(response: Response<Body>, known: Option<String>) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    let bytes = match body.collect().await {
        Ok(collected) => collected.to_bytes(),
        Err(error) => return Refusal::Broken(format!("cannot read the answer: {error}")).into_response(),
    };
    let tag = format!("W/\"{}\"", hex::encode(Sha256::digest(&bytes)));
    let matches = known.is_some_and(|known| known.split(',').any(|one| one.trim() == tag));
    let body = if matches {
        parts.status = StatusCode::NOT_MODIFIED;
        parts.headers.remove(CONTENT_TYPE);
        Body::empty()
    } else {
        Body::from(bytes)
    };
    let mut response = Response::from_parts(parts, body);
    set(&mut response, ETAG, &tag);
    response
}
