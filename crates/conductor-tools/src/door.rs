//! Carries messages to a server: over two pipes, or over HTTP on a unix socket or loopback to the holder of a lease.
//!
//! HTTP is stateless. It asks for the lease's token, for one of the expected hosts, and for an expected origin where there
//! is one, so that no page in a browser and no neighbour on the machine can speak to it. With the lease's end every call
//! is refused. Clients get only so many connections and only so much time to say what they want. This module does not know
//! what is served.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use rand::TryRngCore as _;
use rmcp::ServiceExt as _;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use subtle::ConstantTimeEq as _;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio_util::sync::CancellationToken;

use crate::listen::{self, Bounds};
use crate::pipes::Pipes;
use crate::server::{Server, Shelf, too_long};

/// The longest message of a client: a file of the largest size, with room for its escapes.
pub(crate) const MAX_MESSAGE: usize = 20 * 1024 * 1024;

/// How often an open stream says that it is there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The right to call the tools of one invocation, for as long as it lasts.
#[derive(Debug, Clone)]
pub struct Lease {
    token: Arc<SecretString>,
    ended: CancellationToken,
}

impl Lease {
    /// Grants one, with a token that nobody can guess.
    pub fn grant() -> io::Result<Self> {
        let mut bytes = [0_u8; 32];
        rand::rngs::OsRng
            .try_fill_bytes(&mut bytes)
            .map_err(io::Error::other)?;
        Ok(Self {
            token: Arc::new(SecretString::from(hex::encode(bytes))),
            ended: CancellationToken::new(),
        })
    }

    /// Returns the token, for its one holder.
    pub fn token(&self) -> &str {
        self.token.expose_secret()
    }

    /// Ends it; calls under way come to their end, and nobody is answered any more.
    pub fn end(&self) {
        self.ended.cancel();
    }

    fn is_shown_in(&self, request: &Request) -> bool {
        let shown = request.headers().get(header::AUTHORIZATION);
        let token = shown
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.strip_prefix("Bearer "));
        token.is_some_and(|token| token.as_bytes().ct_eq(self.token().as_bytes()).into())
    }
}

/// The clients of a lease are one agent; each connection may hold a message of the largest size.
fn bounds() -> Bounds {
    Bounds {
        connections: 32,
        farewell: Duration::from_secs(5),
        ..Bounds::default()
    }
}

/// Serves over two pipes until the client leaves or the lease ends.
pub async fn over_pipes<S: Shelf>(
    server: Server<S>,
    lease: &Lease,
    read: impl AsyncRead + Send + Unpin + 'static,
    write: impl AsyncWrite + Send + Unpin + 'static,
) -> io::Result<()> {
    let pipes = Pipes::new(read, write, server.clone());
    let running = match server.serve_with_ct(pipes, lease.ended.clone()).await {
        Ok(running) => running,
        // A client that leaves before it has said anything is no error of ours.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        // Which of our types was in the way is nothing that a person can use.
        Err(rmcp::service::ServerInitializeError::TransportError { error, .. }) => {
            return Err(io::Error::other(error.error));
        }
        Err(error) => return Err(io::Error::other(error)),
    };
    running.waiting().await.map_err(io::Error::other)?;
    Ok(())
}

/// Serves over HTTP on a unix socket, at `/mcp`, until the lease ends.
pub async fn over_socket<S: Shelf>(
    server: Server<S>,
    lease: Lease,
    listener: UnixListener,
) -> io::Result<()> {
    let ended = lease.ended.clone();
    let router = router(server, lease, vec!["localhost".to_owned()], vec![]);
    listen::serve(listener, router, bounds(), ended).await;
    Ok(())
}

/// Serves over HTTP on loopback, at `/mcp`, until the lease ends.
pub async fn over_loopback<S: Shelf>(
    server: Server<S>,
    lease: Lease,
    listener: TcpListener,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    if !address.ip().is_loopback() {
        return Err(io::Error::other(format!("{address} is not loopback")));
    }
    let ended = lease.ended.clone();
    let router = loopback(server, lease, address.port());
    listen::serve(listener, router, bounds(), ended).await;
    Ok(())
}

/// What is served on a port of loopback.
pub fn loopback<S: Shelf>(server: Server<S>, lease: Lease, port: u16) -> Router {
    let hosts = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{port}"));
    let origins = hosts.iter().map(|host| format!("http://{host}")).collect();
    router(server, lease, hosts.to_vec(), origins)
}

fn router<S: Shelf>(server: Server<S>, lease: Lease, hosts: Vec<String>, origins: Vec<String>) -> Router {
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(hosts)
        .with_allowed_origins(origins)
        .enforce_origin_validation()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_sse_keep_alive(Some(KEEP_ALIVE))
        .with_max_request_body_bytes(MAX_MESSAGE)
        .with_cancellation_token(lease.ended.clone());
    let noting = server.clone();
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(NeverSessionManager::default()),
        config,
    );
    Router::new()
        .nest_service("/mcp", service)
        .layer(axum::middleware::from_fn_with_state(noting, note::<S>))
        .layer(axum::middleware::from_fn_with_state(lease, admit))
}

/// Takes note of messages that the SDK refuses to read, which may have been calls (TOOL-4).
async fn note<S: Shelf>(State(server): State<Server<S>>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let reason = match response.status() {
        StatusCode::PAYLOAD_TOO_LARGE => too_long(),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "this is no request of JSON-RPC 2.0".to_owned(),
        _ => return response,
    };
    match server.note(Value::Null, &reason).await {
        None => response,
        // Busy, or the log cannot be written; the message was refused already.
        Some(_answer) => (StatusCode::SERVICE_UNAVAILABLE, "busy; try again").into_response(),
    }
}

/// Lets only the lease's holder pass, and only while it lasts.
async fn admit(State(lease): State<Lease>, request: Request, next: Next) -> Response {
    if lease.ended.is_cancelled() {
        return (StatusCode::GONE, "the lease of these tools has ended").into_response();
    }
    if !lease.is_shown_in(&request) {
        // A stranger who asks on and on would have a seat for good.
        let ask = [
            (header::WWW_AUTHENTICATE, "Bearer"),
            (header::CONNECTION, "close"),
        ];
        return (
            StatusCode::UNAUTHORIZED,
            ask,
            "the lease's token is missing or wrong",
        )
            .into_response();
    }
    tokio::select! {
        response = next.run(request) => response,
        () = lease.ended.cancelled() => (StatusCode::GONE, "the lease of these tools has ended").into_response(),
    }
}
