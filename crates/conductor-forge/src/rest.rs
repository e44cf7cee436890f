//! Routes REST calls and does what is common to all: identity, API version, budget, ETag, headers.
//!
//! The operations themselves are in the modules below.

mod app;
mod check;
mod delivery;
mod issue;
mod pull;
mod repo;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequestParts, OriginalUri, Query, Request, State};
use axum::http::header::{
    AUTHORIZATION, CONTENT_TYPE, ETAG, HOST, HeaderName, IF_NONE_MATCH, LOCATION, USER_AGENT,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Response, StatusCode};
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
use crate::state::{Level, Repo, Scope};
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
            get(issue::show_comment).patch(issue::edit_comment),
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
        .layer(axum::extract::DefaultBodyLimit::max(LARGEST_BODY))
        .layer(from_fn_with_state(Arc::clone(site), guard))
}

/// One REST call: who makes it, and under which address.
pub(crate) struct Call {
    pub(crate) site: Arc<Site>,
    pub(crate) caller: Caller,
    pub(crate) root: Root,
    path: String,
    query: BTreeMap<String, String>,
}

impl Call {
    pub(crate) fn query(&self, key: &str) -> Option<&str> {
        self.query.get(key).map(String::as_str)
    }

    pub(crate) fn login(&self) -> String {
        self.site.look(|state| self.caller.login(state))
    }

    /// Finds the repository that the path names, for a caller that may do this with it.
    pub(crate) fn repo(&self, owner: &str, name: &str, scope: Scope, level: Level) -> Result<Repo, Refusal> {
        self.repo_by_any(owner, name, &[scope], level)
    }

    /// Some operations are open to holders of any of several permissions.
    pub(crate) fn repo_by_any(
        &self,
        owner: &str,
        name: &str,
        scopes: &[Scope],
        level: Level,
    ) -> Result<Repo, Refusal> {
        if self.caller == Caller::Nobody {
            return Err(Refusal::Unauthorized("Requires authentication".into()));
        }
        let found = self.site.look(|state| {
            let moved = state.repo_formerly_named(owner, name).map(|repo| repo.id);
            (state.repo_named(owner, name).cloned(), moved)
        });
        let repo = match found {
            (Some(repo), _) => repo,
            (None, Some(id)) => {
                let old = format!("/repos/{owner}/{name}");
                let rest = self
                    .path
                    .find(&old)
                    .map_or("", |start| &self.path[start + old.len()..]);
                return Err(Refusal::Moved {
                    location: format!("/repositories/{id}{rest}"),
                });
            }
            (None, None) => return Err(Refusal::not_found()),
        };
        let mut refusal = Refusal::not_found();
        for scope in scopes {
            match self.caller.may(&repo, *scope, level) {
                Ok(()) => return Ok(repo),
                Err(reason) => refusal = reason,
            }
        }
        Err(refusal)
    }

    /// The URL of this call with some query parameters replaced.
    pub(crate) fn url_with(&self, replaced: &[(&str, &str)]) -> String {
        let mut query = self.query.clone();
        for (key, value) in replaced {
            query.insert((*key).to_owned(), (*value).to_owned());
        }
        let pairs: Vec<String> = query
            .iter()
            .map(|(k, v)| format!("{}={}", encode(k), encode(v)))
            .collect();
        format!("{}{}?{}", self.root.web, self.path, pairs.join("&"))
    }
}

fn encode(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

impl FromRequestParts<Arc<Site>> for Call {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, site: &Arc<Site>) -> Result<Self, Refusal> {
        let OriginalUri(uri) = OriginalUri::from_request_parts(parts, site)
            .await
            .unwrap_or_else(|never| match never {});
        let Query(query) = Query::from_request_parts(parts, site)
            .await
            .map_err(|_| Refusal::BadRequest("Problems parsing the query".into()))?;
        let caller = parts
            .extensions
            .get::<Caller>()
            .cloned()
            .unwrap_or(Caller::Nobody);
        let root = root_of(&parts.headers, uri.path(), site);
        Ok(Self {
            site: Arc::clone(site),
            caller,
            root,
            path: uri.path().to_owned(),
            query,
        })
    }
}

/// URLs in an answer lead back to the host that was asked; clients assert that.
pub(crate) fn root_of(headers: &HeaderMap, path: &str, site: &Site) -> Root {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let web = host.map_or_else(|| site.root().web.clone(), |host| format!("http://{host}"));
    if path.starts_with("/api/v3") {
        Root::enterprise(&web)
    } else {
        Root::new(&web)
    }
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
