//! The way in: a one-time link becomes a cookie that no script can read (S-55); and the way out.
//!
//! Whoever comes without a session is told how to get a link, and nothing about what is inside. This module does not
//! know who asks for links.

use std::sync::Arc;

use askama::Template;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};

use crate::api::LinkView;
use crate::door::Door;
use crate::page::asset;
use crate::page::frame::page;
use crate::page::gate::{cookie_name, secret_of};
use crate::page::session::{LINK_LIFE, SESSION_LIFE};

#[derive(Template)]
#[template(path = "enter.html")]
struct EnterPage {
    style: &'static str,
    is_used_up: bool,
    /// The run whose page was asked for, so that its link can be asked for.
    run: Option<String>,
}

/// Asks whoever has no session to get a link; says the same whatever the address was.
pub(crate) fn ask(door: &Door, path: &str) -> (StatusCode, HeaderMap, Html<String>) {
    let run = path.strip_prefix("/runs/").and_then(|rest| {
        let id = rest.split('/').next().unwrap_or_default();
        conductor_domain::id::RunId::parse(id).ok()
    });
    let mut headers = HeaderMap::new();
    forget(door, &mut headers);
    let asked = EnterPage {
        style: asset::STYLE.path,
        is_used_up: false,
        run: run.map(|run| run.to_string()),
    };
    (StatusCode::UNAUTHORIZED, headers, page(&asked))
}

/// Makes a one-time link; the API's token was shown for it.
pub(crate) async fn link(State(door): State<Arc<Door>>) -> (StatusCode, Json<LinkView>) {
    let code = (door.settings.secret)();
    let now = door.settings.clock.now();
    door.sessions.keep_link(&code, now);
    let base = door.settings.run.public_url.trim_end_matches('/');
    let view = LinkView {
        url: format!("{base}/enter/{code}"),
        expires_at: now.after(LINK_LIFE),
    };
    (StatusCode::CREATED, Json(view))
}

/// Where to go after entering.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct EnterQuery {
    run: Option<conductor_domain::id::RunId>,
}

/// Exchanges a link for a session.
pub(crate) async fn enter(
    State(door): State<Arc<Door>>,
    Path(code): Path<String>,
    axum::extract::Query(query): axum::extract::Query<EnterQuery>,
) -> Response {
    let now = door.settings.clock.now();
    if !door.sessions.use_link(&code, now) {
        let body = page(&EnterPage {
            style: asset::STYLE.path,
            is_used_up: true,
            run: None,
        });
        return (StatusCode::UNAUTHORIZED, body).into_response();
    }
    let secret = (door.settings.secret)();
    door.sessions.open(&secret, now);
    // Only an id is taken from the address, so that it can lead nowhere else.
    let to = query
        .run
        .map_or_else(|| "/".to_owned(), |run| format!("/runs/{run}"));
    let mut response = Redirect::to(&to).into_response();
    let age = SESSION_LIFE.0 / 1000;
    set_cookie(&door, response.headers_mut(), &secret, age);
    response
}

/// Ends the session.
pub(crate) async fn leave(State(door): State<Arc<Door>>, headers: HeaderMap) -> Response {
    if let Some(secret) = secret_of(&door, &headers) {
        door.sessions.close(secret);
    }
    let mut response = Redirect::to("/").into_response();
    forget(&door, response.headers_mut());
    response
}

fn forget(door: &Door, headers: &mut HeaderMap) {
    set_cookie(door, headers, "", 0);
}

fn set_cookie(door: &Door, headers: &mut HeaderMap, secret: &str, age: u64) {
    let name = cookie_name(door);
    // Lax, so that a link in a comment at the forge opens the run's page; forms are guarded by their origin.
    let secure = if door.settings.run.public_url.starts_with("https:") {
        "; Secure"
    } else {
        ""
    };
    let cookie = format!("{name}={secret}; Path=/; HttpOnly; SameSite=Lax; Max-Age={age}{secure}");
    if let Ok(value) = HeaderValue::from_str(&cookie) {
        headers.insert(header::SET_COOKIE, value);
    }
}
