//! Who sees a page: a browser with an open session; and what may be posted: a form of our own pages.
//!
//! A form is ours when the browser says so (`Sec-Fetch-Site`) or its `Origin` is ours, which `guard::host` has checked
//! exactly; one that says neither is refused (SEC-7). This module does not know what is on a page.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use conductor_domain::staff::Rank;

use crate::actor;
use crate::door::Door;
use crate::error::Error;
use crate::guard::{self, only};
use crate::page::enter;
use crate::page::trouble::Trouble;

static SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What a page may load: its own style and script, nothing else, and nobody may frame it.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Lets requests through that belong to an open session.
pub(crate) async fn session(
    State(door): State<Arc<Door>>,
    mut request: Request,
    next: Next,
) -> Result<Response, Trouble> {
    let address = actor::address(&door, request.extensions(), request.headers());
    let visitor = match secret_of(&door, request.headers()) {
        Some(secret) => actor::visitor(&door, secret, address).await?,
        None => None,
    };
    let Some(visitor) = visitor else {
        return Ok(enter::ask(&door, request.uri().path()).await);
    };
    if !request.method().is_safe() && !is_ours(request.headers()) {
        return Err(Error::ForeignForm.into());
    }
    request.extensions_mut().insert(visitor);
    Ok(next.run(request).await)
}

/// Lets forms through of whoever has the rank for them.
pub(crate) async fn rank(needed: Rank, request: Request, next: Next) -> Result<Response, Trouble> {
    Ok(guard::rank(needed, request, next).await?)
}

/// Adds what pages need besides what no answer may lack.
pub(crate) async fn headers(request: Request, next: Next) -> Response {
    // A link's secret stands in its address, so no referrer at all leaves that one (S-55). Elsewhere browsers would send
    // `Origin: null` with every form of a page without referrers, and a form that hides its origin is not taken.
    let referrer = if request.uri().path().starts_with("/enter/") {
        "no-referrer"
    } else {
        "same-origin"
    };
    let mut response = next.run(request).await;
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, referrer),
    ] {
        response
            .headers_mut()
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    response
}

/// The name of the cookie; a cookie goes to every port of a host, so the port is in its name. Over HTTPS a browser takes
/// one that begins with `__Host-` from this very host only, and not from one beside it.
pub(crate) fn cookie_name(door: &Door) -> String {
    if is_https(door) {
        return "__Host-conductor".to_owned();
    }
    let port = door
        .settings
        .hosts
        .first()
        .and_then(|host| host.rsplit_once(':'))
        .map_or("", |(_, port)| port);
    format!("conductor{port}")
}

/// Tells whether people reach this server over HTTPS.
pub(crate) fn is_https(door: &Door) -> bool {
    door.settings.run.public_url.starts_with("https:")
}

/// The session's secret as the browser sent it.
pub(crate) fn secret_of<'a>(door: &Door, headers: &'a HeaderMap) -> Option<&'a str> {
    let name = cookie_name(door);
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(given, _)| *given == name)
        .map(|(_, secret)| secret)
}

/// Tells whether a form was sent by one of our own pages.
pub(crate) fn is_ours(headers: &HeaderMap) -> bool {
    match only(headers, &SEC_FETCH_SITE) {
        Some(site) => site == "same-origin",
        None => !headers.contains_key(&SEC_FETCH_SITE) && headers.contains_key(header::ORIGIN),
    }
}
