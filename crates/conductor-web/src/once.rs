//! Answers that are given once or only when they changed: idempotency keys on writes, tags on what is read.
//!
//! A repeated write gets its first answer again, from this process's memory; a tag is the hash of the answer. This module
//! does not know what is asked.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use conductor_domain::digest::Digest;
use conductor_domain::fault::Fault;
use conductor_domain::time::{Millis, Timestamp};
use conductor_port::key::Holder;
use sha2::{Digest as _, Sha256};

use crate::actor::Actor;
use crate::door::{Door, MAX_BODY};
use crate::error::Error;
use crate::guard::only;

/// Names a write, so that it is done once however often it is sent.
pub(crate) static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
static REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// How long an answer is kept.
const LIFE: Millis = Millis::hours(24);
/// The most answers that are kept; the oldest makes room.
const MOST: usize = 1024;
/// The longest key.
const LONGEST: usize = 200;
/// The most bytes of an answer that is kept or tagged; a larger one is given as it is.
const LARGEST: usize = 16 * 1024 * 1024;

type Hash = [u8; 32];

/// Marks an answer that holds a secret: it is given once and never kept, so a repeated write is a new one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToldOnce;

/// Marks an answer that is written as it is sent: it has no tag, because nobody holds all of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Endless;

/// The answers that were given to writes with a key.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    kept: Mutex<BTreeMap<String, Kept>>,
}

#[derive(Debug, Clone)]
struct Kept {
    request: Hash,
    at: Timestamp,
    /// Absent while the first request is still being done.
    answer: Option<(StatusCode, Option<HeaderValue>, Bytes)>,
}

/// What is known of a key.
enum Known {
    Nothing,
    Answered(Response),
}

impl Answers {
    fn kept(&self) -> MutexGuard<'_, BTreeMap<String, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a key for a request, or says what became of it before.
    fn take(&self, key: &str, request: Hash, now: Timestamp) -> Result<Known, Error> {
        let mut kept = self.kept();
        kept.retain(|_, one| now < one.at.after(LIFE));
        if let Some(known) = kept.get(key) {
            if known.request != request {
                return Err(Error::Invalid {
                    what: "this idempotency key was used for another request".to_owned(),
                });
            }
            let Some((status, kind, body)) = known.answer.clone() else {
                return Err(Error::UnderWay);
            };
            let mut response = (status, body).into_response();
            response.headers_mut().remove(header::CONTENT_TYPE);
            if let Some(kind) = kind {
                response.headers_mut().insert(header::CONTENT_TYPE, kind);
            }
            response
                .headers_mut()
                .insert(REPLAYED.clone(), HeaderValue::from_static("true"));
            return Ok(Known::Answered(response));
        }
        while kept.len() >= MOST {
            let oldest = kept
                .iter()
                .min_by_key(|(_, one)| one.at)
                .map(|(key, _)| key.clone());
            if let Some(oldest) = oldest {
                kept.remove(&oldest);
            }
        }
        let begun = Kept {
            request,
            at: now,
            answer: None,
        };
        kept.insert(key.to_owned(), begun);
        Ok(Known::Nothing)
    }

    fn keep(&self, key: &str, status: StatusCode, kind: Option<HeaderValue>, body: Bytes) {
        if let Some(kept) = self.kept().get_mut(key) {
            kept.answer = Some((status, kind, body));
        }
    }

    fn drop(&self, key: &str) {
        self.kept().remove(key);
    }
}

/// Forgets a key whose request came to no answer worth keeping.
struct Begun {
    door: Arc<Door>,
    key: String,
    is_kept: bool,
}

impl Drop for Begun {
    fn drop(&mut self) {
        if !self.is_kept {
            self.door.answers.drop(&self.key);
        }
    }
}

/// Does a write with a key once.
pub(crate) async fn writes(
    State(door): State<Arc<Door>>,
    request: Request,
    next: Next,
) -> Result<Response, Error> {
    if request.method() != Method::POST || !request.headers().contains_key(&IDEMPOTENCY_KEY) {
        return Ok(next.run(request).await);
    }
    let actor = request.extensions().get::<Actor>().ok_or(Error::NoToken)?;
    // Everybody has keys of their own, so that nobody is given somebody else's answer.
    let whose = match &actor.holder {
        Holder::Owner(name) => format!("owner {name}"),
        Holder::Operator(name) => format!("operator {name}"),
    };
    let key = format!("{whose} {}", key_of(request.headers())?);
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, MAX_BODY)
        .await
        .map_err(|_| Error::TooLarge { limit: MAX_BODY })?;
    let mut hash = Sha256::new();
    hash.update(parts.uri.to_string().as_bytes());
    hash.update([0]);
    hash.update(&body);
    let now = door.settings.clock.now();
    match door.answers.take(&key, hash.finalize().into(), now)? {
        Known::Answered(response) => return Ok(response),
        Known::Nothing => {}
    }
    let begun = Begun {
        door,
        key,
        is_kept: false,
    };
    // In a task of its own, because a client that goes away ends its handler: what was begun must be answered once, so
    // that a second attempt with the key finds the answer and does nothing.
    let answering = tokio::spawn(answer(begun, Request::from_parts(parts, Body::from(body)), next));
    answering.await.unwrap_or_else(|_| {
        Err(Error::Fault(Fault::transient(
            "answering a write with an idempotency key: it ended early",
        )))
    })
}

async fn answer(mut begun: Begun, request: Request, next: Next) -> Result<Response, Error> {
    let response = next.run(request).await;
    // A fault of the world is no answer: the same request may fare better later.
    if response.status().is_server_error() || response.extensions().get::<ToldOnce>().is_some() {
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, LARGEST)
        .await
        .map_err(|_| Error::TooLarge { limit: LARGEST })?;
    let kind = parts.headers.get(header::CONTENT_TYPE).cloned();
    begun
        .door
        .answers
        .keep(&begun.key, parts.status, kind, body.clone());
    begun.is_kept = true;
    Ok(Response::from_parts(parts, Body::from(body)))
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
