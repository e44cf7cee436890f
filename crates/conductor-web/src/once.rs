//! Answers that are given once or only when they changed: idempotency keys on writes, tags on what is read.
//!
//! A repeated write gets its first answer again, also from a server that was started anew; a tag is the hash of the answer.
//! This module does not know what is asked.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use conductor_domain::digest::Digest;
use conductor_domain::fault::Fault;
use conductor_domain::time::{Millis, Timestamp};
use conductor_port::answer::{Begun, KeptAnswer, NamedWrite};
use conductor_port::key::Holder;

use crate::actor::Actor;
use crate::door::{Door, MAX_BODY};
use crate::error::Error;
use crate::guard::only;
use crate::operation::is_secret;

/// Names a write, so that it is done once however often it is sent.
pub(crate) static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
static REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// How long an answer is kept.
const LIFE: Millis = Millis::hours(24);
/// How long a write may take; whoever began one earlier and has not answered is gone.
const LONG: Millis = Millis::minutes(1);
/// The most answers that are kept; the oldest makes room.
const MOST: u32 = 10_000;
/// The longest key.
const LONGEST: usize = 200;
/// The most bytes of an answer that is kept; what is written is answered in a few words.
const KEPT: usize = 64 * 1024;
/// The most bytes of an answer that is tagged; a larger one is given as it is.
const LARGEST: usize = 16 * 1024 * 1024;

/// Marks an answer that holds a secret: it is given once and never kept, so a repeated write is a new one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToldOnce;

/// Marks an answer that is written as it is sent: it has no tag, because nobody holds all of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Endless;

/// Does a write with a key once.
pub(crate) async fn writes(
    State(door): State<Arc<Door>>,
    request: Request,
    next: Next,
) -> Result<Response, Error> {
    let address = request.extensions().get::<MatchedPath>();
    // A hash of a password can be guessed at; such a write is done anew, and says so where that cannot be.
    let is_kept = request.method() == Method::POST && address.is_some_and(|path| !is_secret(path.as_str()));
    if !is_kept {
        return Ok(next.run(request).await);
    }
    let actor = request.extensions().get::<Actor>().cloned();
    let mut actor = actor.ok_or(Error::NoToken)?;
    let Some(name) = name(&actor, request.headers())? else {
        return Ok(next.run(request).await);
    };
    let (mut parts, body) = request.into_parts();
    let body = to_bytes(body, MAX_BODY)
        .await
        .map_err(|_| Error::TooLarge { limit: MAX_BODY })?;
    let asked = Digest::of(&[parts.uri.to_string().as_bytes(), &[0], &body].concat());
    // The run that is asked remembers names for longer than answers are kept: there, a name is one of this very request.
    actor.named = Some(Digest::of(format!("{name} {asked}").as_bytes()));
    parts.extensions.insert(actor);
    let now = door.settings.clock.now();
    let write = NamedWrite {
        name: name.clone(),
        request: asked,
        now,
        lost_before: before(now, LONG),
        ends_at: now.after(LIFE),
        most: MOST,
    };
    match door.answers.begin(&write).await? {
        Begun::New => {}
        Begun::UnderWay => return Err(Error::UnderWay),
        Begun::Answered(answer) => return again(answer),
        Begun::Taken => {
            return Err(Error::Invalid {
                what: "this idempotency key was used for another request".to_owned(),
            });
        }
    }
    // In a task of its own, because a client that goes away ends its handler: what was begun must be answered once, so
    // that a second attempt with the key finds the answer and does nothing.
    let request = Request::from_parts(parts, Body::from(body));
    let answering = tokio::spawn(answer(door, name, request, next));
    answering.await.unwrap_or_else(|_| {
        Err(Error::Fault(Fault::transient(
            "answering a write with an idempotency key: it ended early",
        )))
    })
}

/// The time so long before another.
fn before(now: Timestamp, length: Millis) -> Timestamp {
    let micros = i64::try_from(length.0.saturating_mul(1000)).unwrap_or(i64::MAX);
    Timestamp(now.0.saturating_sub(micros))
}

/// Gives a kept answer again.
fn again(kept: KeptAnswer) -> Result<Response, Error> {
    let damaged = |what: &str| Error::Fault(Fault::permanent(format!("a kept answer has no {what}")));
    let status = StatusCode::from_u16(kept.status).map_err(|_| damaged("status"))?;
    let mut response = (status, kept.body).into_response();
    response.headers_mut().remove(header::CONTENT_TYPE);
    if !kept.kind.is_empty() {
        let kind = HeaderValue::from_str(&kept.kind).map_err(|_| damaged("type"))?;
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
    }
    response
        .headers_mut()
        .insert(REPLAYED.clone(), HeaderValue::from_static("true"));
    Ok(response)
}

async fn answer(door: Arc<Door>, name: Digest, request: Request, next: Next) -> Result<Response, Error> {
    let response = next.run(request).await;
    // A fault of the world is no answer, nor is what depends on who may do what or on what is there: the same request may
    // fare better later.
    let is_for_now = matches!(
        response.status(),
        StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::NOT_FOUND
            | StatusCode::PRECONDITION_FAILED
    );
    if is_for_now || response.status().is_server_error() || response.extensions().get::<ToldOnce>().is_some()
    {
        door.answers.forget(&name).await?;
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, LARGEST)
        .await
        .map_err(|_| Error::TooLarge { limit: LARGEST })?;
    let kind = parts.headers.get(header::CONTENT_TYPE);
    let kept = KeptAnswer {
        status: parts.status.as_u16(),
        kind: kind
            .and_then(|kind| kind.to_str().ok())
            .unwrap_or_default()
            .to_owned(),
        body: body.to_vec(),
    };
    let done = if body.len() <= KEPT {
        door.answers.keep(&name, &kept).await
    } else {
        door.answers.forget(&name).await
    };
    // It was done, and says so, whether or not that can be kept.
    if let Err(fault) = done {
        tracing::warn!(what = %fault.what, "the answer to a write was not kept");
    }
    Ok(Response::from_parts(parts, Body::from(body)))
}

/// What a write is known by: the hash of who asks and what they named it, where they did. Everybody has names of their own,
/// and each rank and project its own, so that nobody is given an answer that was not for them.
fn name(actor: &Actor, headers: &HeaderMap) -> Result<Option<Digest>, Error> {
    if !headers.contains_key(&IDEMPOTENCY_KEY) {
        return Ok(None);
    }
    let whose = match &actor.holder {
        Holder::Owner(name) => format!("owner {name}"),
        Holder::Operator(name) => format!("operator {name}"),
    };
    let place = actor.project.as_ref().map_or("", |project| project.as_str());
    let named = format!("{whose} as {} in `{place}`: {}", actor.rank, key_of(headers)?);
    Ok(Some(Digest::of(named.as_bytes())))
}

fn key_of(headers: &HeaderMap) -> Result<&str, Error> {
    only(headers, &IDEMPOTENCY_KEY)
        .filter(|key| !key.is_empty() && key.len() <= LONGEST && key.bytes().all(|b| b.is_ascii_graphic()))
        .ok_or_else(|| Error::Invalid {
            what: format!("an idempotency key is 1 to {LONGEST} visible characters, given once"),
        })
}

/// Tags what is read, and answers 304 to whoever has it already.
pub(crate) async fn tags(request: Request, next: Next) -> Response {
    let is_read = request.method() == Method::GET;
    let known = only(request.headers(), &header::IF_NONE_MATCH).map(str::to_owned);
    let response = next.run(request).await;
    let is_data = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    let is_endless = response.extensions().get::<Endless>().is_some();
    if !is_read || response.status() != StatusCode::OK || !is_data || is_endless {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(body) = to_bytes(body, LARGEST).await else {
        return Error::TooLarge { limit: LARGEST }.into_response();
    };
    let tag = tag(&body);
    let is_known = known.is_some_and(|known| names(&known, &tag));
    if let Ok(value) = HeaderValue::from_str(&tag) {
        parts.headers.insert(header::ETAG, value);
    }
    if is_known {
        parts.status = StatusCode::NOT_MODIFIED;
        parts.headers.remove(header::CONTENT_TYPE);
        parts.headers.remove(header::CONTENT_LENGTH);
        return Response::from_parts(parts, Body::empty());
    }
    Response::from_parts(parts, Body::from(body))
}

/// The tag of an answer.
pub(crate) fn tag(body: &[u8]) -> String {
    format!("\"{}\"", Digest::of(body))
}

/// Tells whether a condition names a tag.
pub(crate) fn names(condition: &str, tag: &str) -> bool {
    condition
        .split(',')
        .map(str::trim)
        .any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag)
}

#[cfg(test)]
mod tests {
    use axum::http::Request;
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;

    use super::*;
    use crate::fake::{Fake, request, row};

    async fn ask(
        fake: &Fake,
        mut asked: Request<Body>,
        headers: &[(&str, &str)],
    ) -> (u16, HeaderMap, String) {
        for (name, value) in headers {
            let name: HeaderName = name.parse().expect("a name");
            asked.headers_mut().append(name, value.parse().expect("a value"));
        }
        let response = fake.router().oneshot(asked).await.expect("a router never fails");
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.expect("a body").to_bytes();
        let text = String::from_utf8(bytes.to_vec()).expect("text");
        (parts.status.as_u16(), parts.headers, text)
    }

    /// UI-4: a write that is sent twice with one key happens once; another write cannot hide behind the same key.
    #[tokio::test]
    async fn a_write_with_a_key_is_done_once() {
        let fake = Fake::with_repo();
        fake.world().rows.push(row("r-1", 1, None));
        let router = fake.router();
        let send = async |body: &'static str, key: &'static str| {
            let mut asked = request("POST", "/api/v1/runs/r-1/actions", body);
            asked
                .headers_mut()
                .insert(&IDEMPOTENCY_KEY, key.parse().expect("a value"));
            let response = router.clone().oneshot(asked).await.expect("a router never fails");
            let replayed = response.headers().contains_key(&REPLAYED);
            (response.status().as_u16(), replayed)
        };
        let pause = r#"{"action":"pause"}"#;
        assert_eq!(send(pause, "one").await, (200, false));
        assert_eq!(send(pause, "one").await, (200, true));
        assert_eq!(fake.world().submitted.len(), 1, "it was done again");
        assert_eq!(send(r#"{"action":"resume"}"#, "one").await.0, 422);
        assert_eq!(fake.world().submitted.len(), 1);
        assert_eq!(send(pause, "two").await, (200, false));
        assert_eq!(fake.world().submitted.len(), 2);
        assert_eq!(send(pause, " ").await.0, 422);
        let named = fake
            .world()
            .submitted
            .iter()
            .filter_map(|one| one.dedupe.clone())
            .count();
        assert_eq!(named, 2, "also the machine knows each by its name");
        let anew = fake.router();
        let mut asked = request("POST", "/api/v1/runs/r-1/actions", pause);
        asked
            .headers_mut()
            .insert(&IDEMPOTENCY_KEY, "one".parse().expect("a value"));
        let again = anew.oneshot(asked).await.expect("a router never fails");
        assert!(
            again.headers().contains_key(&REPLAYED),
            "another door knows it, too"
        );
        assert_eq!(fake.world().submitted.len(), 2);
    }

    /// UI-4: what was refused because it was not there, or not allowed, is asked anew by the same name.
    #[tokio::test]
    async fn a_refusal_for_now_is_not_kept() {
        let fake = Fake::with_repo();
        let pause = || request("POST", "/api/v1/runs/r-9/actions", r#"{"action":"pause"}"#);
        let key = [("idempotency-key", "k")];
        let (status, _, said) = ask(&fake, pause(), &key).await;
        assert_eq!(status, 404, "{said}");
        fake.world().rows.push(row("r-9", 1, None));
        let (status, headers, said) = ask(&fake, pause(), &key).await;
        assert!(status == 200 && !headers.contains_key(&REPLAYED), "{said}");
    }

    /// SEC-7: what carries a password is not kept under any name, refused or not.
    #[tokio::test]
    async fn a_request_with_a_password_leaves_nothing() {
        let fake = Fake::with_repo();
        let long = "long enough, that";
        for (path, body) in [
            (
                "/api/v1/operators",
                format!(r#"{{"name":"eve","rank":"viewer","password":"{long}"}}"#),
            ),
            (
                "/api/v1/operators",
                r#"{"name":"bob","rank":"viewer","password":"short"}"#.to_owned(),
            ),
            (
                "/api/v1/operators/eve/password",
                format!(r#"{{"password":"{long}"}}"#),
            ),
        ] {
            let (status, headers, said) =
                ask(&fake, request("POST", path, body), &[("idempotency-key", "k")]).await;
            assert!(status < 500 && !headers.contains_key(&REPLAYED), "{path}: {said}");
        }
        let known = format!("{:?}", fake.world().answers);
        assert!(!known.contains("sha256"), "{known}");
    }

    /// UI-4: whoever has an answer is told so, and whoever acts on an old one is refused.
    #[tokio::test]
    async fn a_tag_tells_what_is_known_and_what_is_stale() {
        let fake = Fake::with_repo();
        let _played = crate::fake::played::Played::start(&fake);
        let (status, headers, body) = ask(&fake, request("GET", "/api/v1/runs/r-1", ""), &[]).await;
        let tag = headers[header::ETAG].to_str().expect("text").to_owned();
        assert_eq!((status, super::tag(body.as_bytes())), (200, tag.clone()));
        let (status, _, body) = ask(
            &fake,
            request("GET", "/api/v1/runs/r-1", ""),
            &[("if-none-match", &tag)],
        )
        .await;
        assert_eq!((status, body.as_str()), (304, ""));
        let act = || request("POST", "/api/v1/runs/r-1/actions", r#"{"action":"pause"}"#);
        let (status, _, body) = ask(&fake, act(), &[("if-match", "\"0123\"")]).await;
        assert_eq!(status, 412, "{body}");
        assert_eq!(fake.world().submitted.len(), 0, "a stale wish went through");
        assert_eq!(ask(&fake, act(), &[("if-match", &tag)]).await.0, 200);
    }
}
