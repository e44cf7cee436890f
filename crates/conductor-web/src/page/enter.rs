//! The way in: a one-time link, or a name and a password, becomes a cookie that no script can read (S-55); and the way out.
//!
//! Whoever comes without a session is told how to come in, and nothing about what is inside. This module does not know
//! who asks for links.

use std::net::IpAddr;
use std::sync::Arc;

use askama::Template;
use axum::extract::{FromRequest, Path, Query, Request, State};
use axum::http::{Extensions, HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::{Extension, Json};
use conductor_domain::digest::Digest;
use conductor_domain::id::{OperatorName, RunId};
use conductor_domain::instance::InstanceInput;
use conductor_domain::staff::StaffChange;
use conductor_port::key::{Holder, Key, KeyKind};
use serde::Deserialize;

use crate::actor::{self, Actor, LINK_LIFE, LONGEST_SESSION, Way};
use crate::api::{LinkView, Nothing};
use crate::door::Door;
use crate::error::Error;
use crate::extract::{Filled, Posted};
use crate::handle::staff;
use crate::once::ToldOnce;
use crate::page::asset;
use crate::page::frame::page;
use crate::page::gate::{cookie_name, is_https, is_ours, secret_of};
use crate::page::trouble::Trouble;

#[derive(Template)]
#[template(path = "enter.html")]
struct EnterPage {
    style: &'static str,
    is_used_up: bool,
    is_wrong: bool,
    /// Whether anybody has a password.
    has_staff: bool,
    /// The run whose page was asked for, so that it can be led to.
    run: Option<String>,
}

/// Asks whoever has no session to come in; says the same whatever the address was.
pub(crate) async fn ask(door: &Door, path: &str) -> Response {
    let run = path.strip_prefix("/runs/").and_then(|rest| {
        let id = rest.split('/').next().unwrap_or_default();
        RunId::parse(id).ok()
    });
    let mut response = (
        StatusCode::UNAUTHORIZED,
        page(&EnterPage {
            run: run.map(|run| run.to_string()),
            ..way_in(door).await
        }),
    )
        .into_response();
    forget(door, response.headers_mut());
    response
}

/// Shows the way in to whoever asks for it.
pub(crate) async fn show(State(door): State<Arc<Door>>) -> Html<String> {
    page(&way_in(&door).await)
}

async fn way_in(door: &Door) -> EnterPage {
    // A database that does not answer keeps the form away; the page must say what it can all the same.
    let has_staff = door.reader.staff().await.is_ok_and(|staff| !staff.is_empty());
    EnterPage {
        style: asset::STYLE.path,
        is_used_up: false,
        is_wrong: false,
        has_staff,
        run: None,
    }
}

/// Makes a one-time link for whoever asks; it opens a session of the same rank.
pub(crate) async fn link(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Posted(Nothing {}): Posted<Nothing>,
) -> Result<(StatusCode, Extension<ToldOnce>, Json<LinkView>), Error> {
    let change = StaffChange::Link {
        holder: actor.holder.clone(),
    };
    staff::tell(&door, &actor, change).await?;
    let code = (door.settings.secret)();
    let now = door.settings.clock.now();
    let key = Key {
        kind: KeyKind::Link,
        hash: Digest::of(code.as_bytes()),
        holder: actor.holder,
        since: now,
        ends_at: now.after(LINK_LIFE),
    };
    door.keys.keep(&key, now).await?;
    let base = door.settings.run.public_url.trim_end_matches('/');
    let view = LinkView {
        url: format!("{base}/enter/{code}"),
        expires_at: key.ends_at,
    };
    Ok((StatusCode::CREATED, Extension(ToldOnce), Json(view)))
}

/// Where to go after entering.
#[derive(Debug, Deserialize)]
pub(crate) struct EnterQuery {
    run: Option<RunId>,
}

/// Exchanges a link for a session.
pub(crate) async fn enter(
    State(door): State<Arc<Door>>,
    Path(code): Path<String>,
    Query(query): Query<EnterQuery>,
    extensions: Extensions,
    headers: HeaderMap,
) -> Result<Response, Trouble> {
    let now = door.settings.clock.now();
    let hash = Digest::of(code.as_bytes());
    let Some(link) = door.keys.find(KeyKind::Link, &hash, now).await? else {
        return Ok(used_up(&door).await);
    };
    // The session is there before the link goes: whoever ends all keys of its holder meanwhile ends one or the other.
    let secret = actor::open_session(&door, link.holder.clone()).await?;
    if door.keys.take(KeyKind::Link, &hash, now).await?.is_none() {
        actor::close_session(&door, &secret).await?;
        return Ok(used_up(&door).await);
    }
    let change = StaffChange::Enter {
        holder: link.holder.clone(),
    };
    let address = actor::address(&door, &extensions, &headers);
    record(&door, &link.holder, address, change, &secret).await?;
    come_in(&door, &secret, query.run, &headers).await
}

/// Says that a link opens nothing, and how to come in.
async fn used_up(door: &Door) -> Response {
    let body = page(&EnterPage {
        is_used_up: true,
        ..way_in(door).await
    });
    (StatusCode::UNAUTHORIZED, body).into_response()
}

/// The fields of the form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LoginForm {
    name: String,
    password: String,
    #[serde(default)]
    run: String,
}

/// Exchanges a name and a password for a session.
pub(crate) async fn login(State(door): State<Arc<Door>>, request: Request) -> Result<Response, Trouble> {
    // A form of another site could sign a person in as somebody else, and have them work there.
    if !is_ours(request.headers()) {
        return Err(Error::ForeignForm.into());
    }
    let address = actor::address(&door, request.extensions(), request.headers());
    let headers = request.headers().clone();
    let Filled(form) = <Filled<LoginForm> as FromRequest<()>>::from_request(request, &()).await?;
    let run = RunId::parse(form.run).ok();
    let Some(Known { name, hash }) = known(&door, &form.name, form.password, address).await? else {
        return Ok(mistaken(&door, run, address).await);
    };
    let holder = Holder::Operator(name.clone());
    let secret = actor::open_session(&door, holder.clone()).await?;
    // A password that was changed while it was checked opens nothing: who changes it ends the sessions that it finds.
    if door.keys.password(&name).await? != hash {
        actor::close_session(&door, &secret).await?;
        return Ok(mistaken(&door, run, address).await);
    }
    let change = StaffChange::SignIn { operator: name };
    record(&door, &holder, address, change, &secret).await?;
    come_in(&door, &secret, run, &headers).await
}

/// Says that name and password do not fit.
async fn mistaken(door: &Door, run: Option<RunId>, address: Option<IpAddr>) -> Response {
    tracing::warn!(?address, "somebody could not sign in");
    let body = page(&EnterPage {
        is_wrong: true,
        run: run.map(|run| run.to_string()),
        ..way_in(door).await
    });
    (StatusCode::UNAUTHORIZED, body).into_response()
}

/// Keeps who came in from where, before they are given their session; one that cannot be kept is over.
async fn record(
    door: &Door,
    holder: &Holder,
    address: Option<IpAddr>,
    change: StaffChange,
    secret: &str,
) -> Result<(), Error> {
    let by = holder.name().clone();
    let cause = actor::cause(Way::Page, address);
    let input = InstanceInput::ChangeStaff { by, change };
    if let Err(error) = door.inbox.submit_to_instance(input, &cause).await {
        actor::close_session(door, secret).await?;
        return Err(error.into());
    }
    Ok(())
}

/// Somebody whose password was right, and the hash that it was right for.
struct Known {
    name: OperatorName,
    hash: Option<String>,
}

/// Finds the operator whose name and password these are; whoever has none is told so as late as somebody who mistyped.
async fn known(
    door: &Door,
    name: &str,
    password: String,
    address: Option<IpAddr>,
) -> Result<Option<Known>, Error> {
    let now = door.settings.clock.now();
    door.attempts
        .begin(name, address, now)
        .map_err(|retry_after| Error::TooMany { retry_after })?;
    let operator = OperatorName::parse(name).ok();
    let staff = door.reader.staff().await?;
    let operator = operator.filter(|operator| staff.operators.contains_key(operator));
    let hash = match &operator {
        Some(operator) => door.keys.password(operator).await?,
        None => None,
    };
    if !door.hashing.is(password, hash.clone()).await? {
        return Ok(None);
    }
    door.attempts.succeeded(name, address);
    Ok(operator.map(|name| Known { name, hash }))
}

/// Hands a session to a browser, ends the one that it had, so that nobody is where somebody else was (SEC-7), and leads on.
async fn come_in(
    door: &Door,
    secret: &str,
    run: Option<RunId>,
    headers: &HeaderMap,
) -> Result<Response, Trouble> {
    if let Some(before) = secret_of(door, headers) {
        actor::close_session(door, before).await?;
    }
    // Only an id is taken from the address, so that it can lead nowhere else.
    let to = run.map_or_else(|| "/".to_owned(), |run| format!("/runs/{run}"));
    let mut response = Redirect::to(&to).into_response();
    // The server ends a session that is not used sooner than that; a browser could not tell.
    set_cookie(door, response.headers_mut(), secret, LONGEST_SESSION.0 / 1000);
    Ok(response)
}

/// Ends the session.
pub(crate) async fn leave(
    State(door): State<Arc<Door>>,
    actor: Actor,
    headers: HeaderMap,
) -> Result<Response, Trouble> {
    let holder = actor.holder.clone();
    let told = staff::tell(&door, &actor, StaffChange::Leave { holder }).await;
    // Whoever wants to leave leaves, even where that cannot be kept.
    if let Some(secret) = secret_of(&door, &headers) {
        actor::close_session(&door, secret).await?;
    }
    told?;
    let mut response = Redirect::to("/").into_response();
    forget(&door, response.headers_mut());
    Ok(response)
}

fn forget(door: &Door, headers: &mut HeaderMap) {
    set_cookie(door, headers, "", 0);
}

fn set_cookie(door: &Door, headers: &mut HeaderMap, secret: &str, age: u64) {
    let name = cookie_name(door);
    // Lax, so that a link in a comment at the forge opens the run's page; forms are guarded by their origin.
    let secure = if is_https(door) { "; Secure" } else { "" };
    let cookie = format!("{name}={secret}; Path=/; HttpOnly; SameSite=Lax; Max-Age={age}{secure}");
    if let Ok(value) = HeaderValue::from_str(&cookie) {
        headers.insert(header::SET_COOKIE, value);
    }
}
