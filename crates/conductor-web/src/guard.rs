//! Who gets past the door: the right `Host` and `Origin` on every request (S-55), the token on every one to the API.
//!
//! A page in the operator's browser can reach loopback; it cannot know the token, and a rebound name is not one of our
//! hosts. This module does not know what is asked.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use conductor_domain::refusal::Refusal;
use conductor_domain::staff::Rank;

use crate::actor::{self, Actor};
use crate::door::Door;
use crate::error::Error;
use crate::extract::NamedRun;
use crate::operation::Operation;

/// Lets requests through that were meant for this server.
pub(crate) async fn host(
    State(door): State<Arc<Door>>,
    request: Request,
    next: Next,
) -> Result<Response, Error> {
    let named = only(request.headers(), &header::HOST).unwrap_or_default();
    let in_uri = request.uri().authority().map(ToString::to_string);
    let is_ours = |host: &str| {
        door.settings
            .hosts
            .iter()
            .any(|ours| ours.eq_ignore_ascii_case(host))
    };
    for given in [Some(named.to_owned()), in_uri].into_iter().flatten() {
        if !is_ours(&given) {
            return Err(Error::WrongHost { given });
        }
    }
    if request.headers().contains_key(header::ORIGIN) {
        let origin = only(request.headers(), &header::ORIGIN).unwrap_or_default();
        if !door
            .settings
            .origins
            .iter()
            .any(|ours| ours.eq_ignore_ascii_case(origin))
        {
            return Err(Error::WrongHost {
                given: origin.to_owned(),
            });
        }
    }
    Ok(next.run(request).await)
}

/// Lets requests through that carry the token.
pub(crate) async fn token(
    State(door): State<Arc<Door>>,
    mut request: Request,
    next: Next,
) -> Result<Response, Error> {
    let given = only(request.headers(), &header::AUTHORIZATION)
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| token.trim());
    let address = actor::address(&door, request.extensions(), request.headers());
    let actor = match given {
        Some(given) => actor::bearer(&door, given, address).await?,
        None => None,
    };
    request.extensions_mut().insert(actor.ok_or(Error::NoToken)?);
    Ok(next.run(request).await)
}

/// Lets requests through of whoever has the rank for it.
pub(crate) async fn rank(needed: Rank, request: Request, next: Next) -> Result<Response, Error> {
    let actor = request.extensions().get::<Actor>().ok_or(Error::NoToken)?;
    actor.must_be(needed)?;
    Ok(next.run(request).await)
}

/// What an address reaches; a token of one project must not reach further (SEC-7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// What whoever asks can reach.
    Asker,
    /// The run that is named.
    Run,
    /// Everything.
    Instance,
}

/// Lets requests of a project's token through only to what is of that project.
pub(crate) async fn reach(
    door: Arc<Door>,
    operation: &Operation,
    request: Request,
    next: Next,
) -> Result<Response, Error> {
    let (mut parts, body) = request.into_parts();
    let actor = Actor::from_request_parts(&mut parts, &()).await?;
    if let Some(project) = &actor.project {
        match operation.reach() {
            Reach::Asker => {}
            Reach::Run => {
                let NamedRun(run) = NamedRun::from_request_parts(&mut parts, &()).await?;
                if !door.reader.is_of(&run, project).await? {
                    return Err(Refusal::NoSuchRun.into());
                }
            }
            Reach::Instance => {
                return Err(Error::OtherProject {
                    project: project.clone(),
                });
            }
        }
    }
    Ok(next.run(Request::from_parts(parts, body)).await)
}

/// Adds what no answer may lack, whatever it is.
pub(crate) async fn headers(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    if door.settings.run.public_url.starts_with("https:") {
        let forever = HeaderValue::from_static("max-age=31536000");
        response
            .headers_mut()
            .insert(header::STRICT_TRANSPORT_SECURITY, forever);
    }
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; frame-ancestors 'none'; sandbox",
        ),
    ] {
        response
            .headers_mut()
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    response
}

/// The value of a header that stands there exactly once, as text.
pub(crate) fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    if values.next().is_some() {
        return None;
    }
    first.to_str().ok()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::Request;

    use crate::fake::{Fake, HOST, TOKEN, request};

    async fn code_of(request: Request<Body>) -> (u16, String) {
        let (status, problem) = Fake::with_repo().ask(request).await;
        (
            status.as_u16(),
            problem["code"].as_str().unwrap_or_default().to_owned(),
        )
    }

    fn with(headers: &[(&str, &str)], path: &str) -> Request<Body> {
        let mut request = Request::builder().uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Body::empty()).expect("a well-formed request")
    }

    /// SEC-7: the token is asked for on loopback too, and before anything is said about an address.
    #[tokio::test]
    async fn without_the_token_nothing_is_said() {
        let right = format!("Bearer {TOKEN}");
        for wrong in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer wrong",
            "Basic a-token-for-tests",
            "a-token-for-tests",
        ] {
            let headers = [("host", HOST), ("authorization", wrong)];
            assert_eq!(
                code_of(with(&headers, "/api/v1/runs")).await,
                (401, "CDR0301".into()),
                "{wrong:?}"
            );
        }
        let none = [("host", HOST)];
        for path in [
            "/api/v1/health",
            "/api/v1/nothing/here",
            "/api/v1/runs/r-1/stream",
        ] {
            assert_eq!(
                code_of(with(&none, path)).await,
                (401, "CDR0301".into()),
                "{path}"
            );
        }
        let twice = [
            ("host", HOST),
            ("authorization", right.as_str()),
            ("authorization", right.as_str()),
        ];
        assert_eq!(code_of(with(&twice, "/api/v1/runs")).await.0, 401);
        let once = [("host", HOST), ("authorization", right.as_str())];
        assert_eq!(code_of(with(&once, "/api/v1/runs")).await, (200, String::new()));
    }

    /// S-55: a rebound name, another port, another site's page and an absolute address for elsewhere stay outside.
    #[tokio::test]
    async fn a_request_for_another_host_or_from_another_origin_is_refused() {
        let token = format!("Bearer {TOKEN}");
        for wrong in [
            "",
            "evil.example",
            "127.0.0.1",
            "127.0.0.1:4181",
            "localhost:4180.evil.example",
        ] {
            let headers = [("host", wrong), ("authorization", token.as_str())];
            assert_eq!(
                code_of(with(&headers, "/api/v1/runs")).await,
                (421, "CDR0302".into()),
                "{wrong:?}"
            );
            assert_eq!(code_of(with(&[("host", wrong)], "/")).await.0, 421, "{wrong:?}");
            assert_eq!(
                code_of(with(&[("host", wrong)], "/webhooks/github")).await.0,
                421,
                "{wrong:?}"
            );
        }
        let two_hosts = [
            ("host", HOST),
            ("host", "evil.example"),
            ("authorization", token.as_str()),
        ];
        assert_eq!(code_of(with(&two_hosts, "/api/v1/runs")).await.0, 421);
        let absolute = [("host", HOST), ("authorization", token.as_str())];
        assert_eq!(
            code_of(with(&absolute, "http://evil.example/api/v1/runs"))
                .await
                .0,
            421
        );
        for wrong in [
            "null",
            "http://evil.example",
            "https://127.0.0.1:4180",
            "http://127.0.0.1:4181",
        ] {
            let headers = [
                ("host", HOST),
                ("origin", wrong),
                ("authorization", token.as_str()),
            ];
            assert_eq!(
                code_of(with(&headers, "/api/v1/runs")).await,
                (421, "CDR0302".into()),
                "{wrong:?}"
            );
        }
        let ours = [
            ("host", HOST),
            ("origin", "http://127.0.0.1:4180"),
            ("authorization", token.as_str()),
        ];
        assert_eq!(code_of(with(&ours, "/api/v1/runs")).await.0, 200);
    }

    #[tokio::test]
    async fn what_cannot_be_taken_is_refused_by_name() {
        let large = vec![b' '; crate::door::MAX_BODY + 1];
        assert_eq!(
            code_of(request("POST", "/api/v1/runs", large)).await,
            (413, "CDR0303".into())
        );
        assert_eq!(
            code_of(request("POST", "/api/v1/runs", "{")).await,
            (422, "CDR0304".into())
        );
        assert_eq!(
            code_of(request("DELETE", "/api/v1/runs", "")).await,
            (405, "CDR0317".into())
        );
        assert_eq!(
            code_of(request("GET", "/api/v1/nothing", "")).await,
            (404, "CDR0314".into())
        );
    }
}
