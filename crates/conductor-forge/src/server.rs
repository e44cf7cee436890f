//! Accepts connections and answers requests, faults included.
//!
//! Every request is taken to its end even when its client hangs up, as a real site would. It does not
//! know what the requests mean.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::header::{DATE, HOST, LOCATION};
use axum::http::uri::Authority;
use axum::http::{Request, Response, StatusCode, Uri};
use axum::response::IntoResponse;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::answer::{self, set};
use crate::auth::Window;
use crate::fault::{Fault, When};
use crate::refusal::Refusal;
use crate::site::Site;
use crate::{backend, page, rest};

/// A connection that is closed without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the connection was dropped on purpose")]
struct Dropped;

pub(crate) fn router(site: &Arc<Site>) -> Router {
    let rest = rest::router(site);
    Router::new()
        .merge(rest.clone())
        .nest("/api/v3", rest)
        .merge(backend::router())
        .merge(page::router())
        .fallback(async || Refusal::not_found())
        .method_not_allowed_fallback(async || Refusal::not_found())
        .with_state(Arc::clone(site))
}

/// Serves until told to stop; connections that are open then are closed.
pub(crate) async fn serve(site: Arc<Site>, listener: TcpListener, stop: CancellationToken) {
    let router = router(&site);
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        match accepted {
            Ok((stream, _)) if site.faults.is_down() => drop(stream),
            Ok((stream, _)) => {
                connections.spawn(connection(Arc::clone(&site), router.clone(), stream));
            }
            Err(error) => tracing::warn!(%error, "a connection could not be accepted"),
        }
    }
    connections.shutdown().await;
}

async fn connection(site: Arc<Site>, router: Router, stream: TcpStream) {
    let service = service_fn(move |request| {
        let (site, router) = (Arc::clone(&site), router.clone());
        async move { respond(&site, router, request).await }
    });
    // Clients that hang up and connections that we drop end here alike; neither is worth a word.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn respond(
    site: &Arc<Site>,
    router: Router,
    request: Request<Incoming>,
) -> Result<Response<Body>, Dropped> {
    if site.faults.is_down() {
        return Err(Dropped);
    }
    let fault = site.faults.take(request.method(), request.uri().path());
    if let Some(Fault::Late(wait)) = &fault {
        tokio::time::sleep(*wait).await;
    }
    let done = match &fault {
        None
        | Some(
            Fault::Late(_)
            | Fault::Drop(When::AfterTheWrite)
            | Fault::Hang(When::AfterTheWrite)
            | Fault::Status {
                when: When::AfterTheWrite,
                ..
            },
        ) => handle(site, router, request).await,
        Some(_) => Ok(Response::new(Body::empty())),
    };
    let now = site.clock.now();
    let answered = match fault {
        None | Some(Fault::Late(_)) => done,
        Some(Fault::Drop(_)) => Err(Dropped),
        Some(Fault::Hang(_)) => std::future::pending().await,
        Some(Fault::Status { status, .. }) => Ok(answer::plain_status(status)),
        Some(Fault::PrimaryLimit { resets_in }) => {
            let window = Window {
                limit: 5000,
                used: 5000,
                resets_at: now.plus_seconds(resets_in),
            };
            Ok(answer::primary_limit("installation ID 1", &window))
        }
        Some(Fault::SecondaryLimit { retry_after }) => Ok(answer::secondary_limit(retry_after)),
        Some(Fault::Redirect { location }) => {
            let mut response = answer::plain_status(StatusCode::TEMPORARY_REDIRECT.as_u16());
            set(&mut response, LOCATION, &location);
            Ok(response)
        }
    };
    answered.map(|mut response| {
        set(&mut response, DATE, &now.http_date());
        response
    })
}

/// Handles a request in a task of its own, so that it ends whether or not anyone waits for the answer.
async fn handle(
    site: &Arc<Site>,
    router: Router,
    request: Request<Incoming>,
) -> Result<Response<Body>, Dropped> {
    if !is_local(&request) {
        let message = "The forge answers to loopback names only";
        return Ok(Refusal::BadRequest(message.into()).into_response());
    }
    let request = by_name(site, request.map(Body::new));
    let handled = site.tasks.spawn(async move {
        let answered: Result<Response<Body>, Infallible> = router.oneshot(request).await;
        answered.unwrap_or_else(|never| match never {})
    });
    handled.await.map_err(|_| Dropped)
}

/// A page of another origin could point its own name at loopback; only loopback names are answered.
fn is_local(request: &Request<Incoming>) -> bool {
    let header = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let Some(authority) = request.uri().authority().map(Authority::as_str).or(header) else {
        return true;
    };
    let host = authority.rsplit_once(':').map_or(authority, |(host, port)| {
        if port.bytes().all(|byte| byte.is_ascii_digit()) {
            host
        } else {
            authority
        }
    });
    let host = host.to_ascii_lowercase();
    host == "localhost"
        || host.ends_with(".localhost")
        || host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|ip| ip.is_loopback())
}

/// Redirects of renamed repositories lead to `/repositories/{id}`; such a path means the present name.
fn by_name(site: &Site, mut request: Request<Body>) -> Request<Body> {
    let path = request.uri().path();
    let (prefix, rest) = match path.strip_prefix("/api/v3") {
        Some(rest) => ("/api/v3", rest),
        None => ("", path),
    };
    let renamed = rest.strip_prefix("/repositories/").and_then(|rest| {
        let (id, rest) = rest
            .split_once('/')
            .map_or((rest, String::new()), |(id, rest)| (id, format!("/{rest}")));
        let name = site.look(|state| state.repos.get(&id.parse().ok()?).map(|repo| repo.full_name()))?;
        let query = request
            .uri()
            .query()
            .map(|query| format!("?{query}"))
            .unwrap_or_default();
        format!("{prefix}/repos/{name}{rest}{query}").parse::<Uri>().ok()
    });
    if let Some(uri) = renamed {
        *request.uri_mut() = uri;
    }
    request
}
