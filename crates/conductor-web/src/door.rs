//! The door itself: what it holds, what it was told at start, and which address leads where.
//!
//! This module does not know what stands behind the ports.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::routing::post;
use conductor_domain::id::{OperatorName, RunId};
use conductor_domain::spec::{AgentSpec, ExecutorName, Limits};
use conductor_domain::time::Timestamp;
use conductor_port::answer::Answers;
use conductor_port::blobs::Blobs;
use conductor_port::clock::Clock;
use conductor_port::forge::Forge;
use conductor_port::inbox::Inbox;
use conductor_port::key::Keys;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::attempts::Attempts;
use crate::backstage::Backstage;
use crate::error::Error;
use crate::operation::OPERATIONS;
use crate::password::Hashing;
use crate::reader::Reader;
use crate::rules::Rules;
use crate::webhook::ReadDelivery;
use crate::{guard, handle, once, page, patience, webhook};

/// The most bytes of one request; a scenario fits.
pub(crate) const MAX_BODY: usize = 2 * 1024 * 1024;

/// The secret that every request must carry; only its hash is kept, so that nothing can print it.
#[derive(Debug, Clone, Copy)]
pub struct Token([u8; 32]);

impl Token {
    /// Remembers a token.
    pub fn new(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }

    /// Compares in constant time; hashing first hides the length too.
    pub(crate) fn is(&self, given: &str) -> bool {
        let given: [u8; 32] = Sha256::digest(given.as_bytes()).into();
        self.0.ct_eq(&given).into()
    }
}

/// What every run is started with, unless the request says otherwise.
#[derive(Debug, Clone)]
pub struct RunDefaults {
    /// Which agents work; without any, no run starts.
    pub agents: Option<AgentSpec>,
    /// Where commands run.
    pub executor: ExecutorName,
    /// What it may use up.
    pub limits: Limits,
    /// Where runs have their pages.
    pub public_url: String,
}

/// What the door was told at start.
pub struct Settings {
    /// The secret of every request.
    pub token: Token,
    /// The exact values of `Host` that are ours, with port (S-55).
    pub hosts: Vec<String>,
    /// The exact values of `Origin` that are ours.
    pub origins: Vec<String>,
    /// Whose token it is, for the audit.
    pub operator: OperatorName,
    /// Whether a proxy stands before this server and tells who asks (SEC-7).
    pub is_proxied: bool,
    /// Checks and reads deliveries; without it, no webhooks are taken.
    pub deliveries: Option<ReadDelivery>,
    /// What runs are started with.
    pub run: RunDefaults,
    /// Makes the id of a new run.
    pub mint: Arc<dyn Fn() -> RunId + Send + Sync>,
    /// Makes secrets that nobody can guess.
    pub secret: Arc<dyn Fn() -> String + Send + Sync>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// The version, for `health`.
    pub version: String,
    /// The process, for `health`.
    pub pid: u32,
    /// When the server started.
    pub started_at: Timestamp,
    /// Ends live streams, so that a server with watchers can stop.
    pub shutdown: CancellationToken,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("hosts", &self.hosts)
            .field("run", &self.run)
            .finish_non_exhaustive()
    }
}

/// What stands behind the door.
pub struct Behind {
    /// Takes what people ask.
    pub inbox: Arc<dyn Inbox>,
    /// Keeps bytes.
    pub blobs: Arc<dyn Blobs>,
    /// Only asked, never told: a start is checked against it.
    pub forge: Arc<dyn Forge>,
    /// Tells what happens.
    pub backstage: Arc<dyn Backstage>,
    /// Answers about policies.
    pub rules: Arc<dyn Rules>,
    /// What opens the door to people.
    pub keys: Arc<dyn Keys>,
    /// What was answered to writes that named themselves.
    pub answers: Arc<dyn Answers>,
}

impl std::fmt::Debug for Behind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Behind").finish_non_exhaustive()
    }
}

/// Everything that handlers may use.
pub struct Door {
    pub(crate) reader: Reader,
    pub(crate) inbox: Arc<dyn Inbox>,
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) forge: Arc<dyn Forge>,
    pub(crate) backstage: Arc<dyn Backstage>,
    pub(crate) rules: Arc<dyn Rules>,
    pub(crate) settings: Settings,
    pub(crate) deliveries: Semaphore,
    pub(crate) keys: Arc<dyn Keys>,
    pub(crate) hashing: Hashing,
    pub(crate) attempts: Attempts,
    pub(crate) answers: Arc<dyn Answers>,
}

impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Door")
            .field("hosts", &self.settings.hosts)
            .finish_non_exhaustive()
    }
}

impl Door {
    /// Makes a door.
    pub fn new(reader: Reader, behind: Behind, settings: Settings) -> Self {
        Self {
            reader,
            inbox: behind.inbox,
            blobs: behind.blobs,
            forge: behind.forge,
            backstage: behind.backstage,
            rules: behind.rules,
            keys: behind.keys,
            settings,
            deliveries: Semaphore::new(webhook::AT_ONCE),
            hashing: Hashing::default(),
            attempts: Attempts::default(),
            answers: behind.answers,
        }
    }
}

/// Says which address leads where, behind the guards.
pub fn router(door: Arc<Door>) -> Router {
    let api = OPERATIONS
        .iter()
        .fold(Router::new(), |api, operation| {
            let door = door.clone();
            let reached = from_fn(move |request: Request, next: Next| {
                guard::reach(door.clone(), operation, request, next)
            });
            let ranked = from_fn(|request: Request, next: Next| guard::rank(operation.rank, request, next));
            let guarded = (operation.route)().route_layer(reached).route_layer(ranked);
            api.route(operation.path, guarded)
        })
        .method_not_allowed_fallback(|| async { Error::WrongMethod })
        .fallback(handle::nothing_here)
        .layer(from_fn(once::tags))
        .layer(from_fn_with_state(door.clone(), once::writes))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(from_fn_with_state(door.clone(), guard::token));
    Router::new()
        .nest("/api/v1", api)
        .route(
            "/webhooks/github",
            post(webhook::receive).layer(DefaultBodyLimit::disable()),
        )
        .merge(page::routes(&door))
        .fallback(handle::nothing_here)
        .layer(from_fn(patience::bodies))
        .layer(from_fn_with_state(door.clone(), guard::headers))
        .layer(from_fn_with_state(door.clone(), guard::host))
        .with_state(door)
}
