//! Who asks, from where, and what they may do (SEC-7).
//!
//! Whoever has the server's own token, or a link made with it, owns the data directory and may do everything. Everybody else
//! is of the staff, and their rank is looked up at every request: who is removed is outside at once. This module does not
//! know what is asked.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderName};
use conductor_domain::digest::Digest;
use conductor_domain::id::{OperatorName, ProjectId, RunId};
use conductor_domain::staff::Rank;
use conductor_domain::time::{Millis, Timestamp};
use conductor_port::key::{Holder, Key, KeyKind};

use crate::door::Door;
use crate::error::Error;

/// How long a link can be used.
pub(crate) const LINK_LIFE: Millis = Millis::minutes(10);
/// How long a session lasts after its last request.
pub(crate) const SESSION_LIFE: Millis = Millis::hours(12);
/// How long a session lasts at most, however much it is used: a cookie that leaked is not good for ever.
pub(crate) const LONGEST_SESSION: Millis = Millis::hours(7 * 24);
/// How often a session that is used is made to last longer; not at every request, because that is a write.
const RENEWED_EVERY: Millis = Millis::minutes(10);
/// How long a watcher is believed to be inside still; not asked at every event, because hundreds may watch.
const BELIEVED_FOR: Millis = Millis::seconds(5);

static FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// By which way somebody asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Api,
    Page,
}

/// What somebody showed to come in.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Proof {
    /// The server's own token.
    Server,
    /// A token that was issued, by its hash.
    Token(Digest),
    /// A session, by its hash.
    Session(Digest),
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Actor {
    pub(crate) holder: Holder,
    pub(crate) rank: Rank,
    /// The one project that a token is for; all when absent.
    pub(crate) project: Option<ProjectId>,
    pub(crate) way: Way,
    pub(crate) address: Option<IpAddr>,
    /// What the write is known by, where it named itself.
    pub(crate) named: Option<Digest>,
    proof: Proof,
}

impl Actor {
    /// The name, for the audit.
    pub(crate) fn name(&self) -> OperatorName {
        self.holder.name().clone()
    }

    /// By which way and from where, for the audit.
    pub(crate) fn cause(&self) -> String {
        cause(self.way, self.address)
    }

    /// Tells whether what belongs to a project is there for whoever asks.
    pub(crate) fn reaches(&self, project: &ProjectId) -> bool {
        self.project.as_ref().is_none_or(|own| own == project)
    }

    /// Makes sure that somebody may do what only a rank may.
    pub(crate) fn must_be(&self, needed: Rank) -> Result<(), Error> {
        if self.rank >= needed {
            return Ok(());
        }
        Err(Error::Forbidden {
            needed,
            rank: self.rank,
        })
    }
}

/// Tells by which way and from where something came.
pub(crate) fn cause(way: Way, address: Option<IpAddr>) -> String {
    let way = match way {
        Way::Api => "api",
        Way::Page => "page",
    };
    match address {
        Some(address) => format!("{way} from {address}"),
        None => way.to_owned(),
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Actor {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Error> {
        // The guards put it there; without one, nobody asks.
        parts.extensions.get::<Self>().cloned().ok_or(Error::NoToken)
    }
}

/// Tells from where a request comes. Behind a proxy only the proxy knows: it adds the last word of the header, and what
/// stands before it anybody can write.
pub(crate) fn address(door: &Door, extensions: &Extensions, headers: &HeaderMap) -> Option<IpAddr> {
    let peer = extensions.get::<ConnectInfo<SocketAddr>>();
    let peer = peer.map(|ConnectInfo(peer)| peer.ip());
    if !door.settings.is_proxied {
        return peer;
    }
    let told = headers.get_all(&FORWARDED_FOR).iter().next_back();
    let told = told.and_then(|value| value.to_str().ok());
    let last = told.and_then(|value| value.rsplit(',').next());
    last.and_then(|last| last.trim().parse().ok()).or(peer)
}

/// Tells who carries a token: the server's own, or one that was issued to an operator.
pub(crate) async fn bearer(
    door: &Door,
    token: &str,
    address: Option<IpAddr>,
) -> Result<Option<Actor>, Error> {
    let known = |holder: Holder, rank: Rank, project: Option<&ProjectId>, proof: Proof| Actor {
        holder,
        rank,
        project: project.cloned(),
        way: Way::Api,
        address,
        named: None,
        proof,
    };
    if door.settings.token.is(token) {
        let owner = Holder::Owner(door.settings.operator.clone());
        return Ok(Some(known(owner, Rank::Admin, None, Proof::Server)));
    }
    let now = door.settings.clock.now();
    let staff = door.reader.staff().await?;
    let hash = Digest::of(token.as_bytes());
    Ok(staff.bearer(&hash, now).map(|bearer| {
        let holder = Holder::Operator(bearer.operator.clone());
        known(holder, bearer.rank, bearer.project, Proof::Token(hash.clone()))
    }))
}

/// Tells whose session a secret is, and lets it last from now on.
pub(crate) async fn visitor(
    door: &Door,
    secret: &str,
    address: Option<IpAddr>,
) -> Result<Option<Actor>, Error> {
    let now = door.settings.clock.now();
    let hash = Digest::of(secret.as_bytes());
    let Some(key) = door.keys.find(KeyKind::Session, &hash, now).await? else {
        return Ok(None);
    };
    let Some(rank) = rank_of(door, &key.holder).await? else {
        return Ok(None);
    };
    let last = key.since.after(LONGEST_SESSION);
    if key.ends_at < now.after(Millis(SESSION_LIFE.0 - RENEWED_EVERY.0)).min(last) {
        let ends_at = now.after(SESSION_LIFE).min(last);
        // Who left since the session was found is outside: it is made longer, and never made anew.
        if !door.keys.lengthen(KeyKind::Session, &hash, ends_at).await? {
            return Ok(None);
        }
    }
    Ok(Some(Actor {
        holder: key.holder,
        rank,
        project: None,
        way: Way::Page,
        address,
        named: None,
        proof: Proof::Session(hash),
    }))
}

/// Opens a session; nobody is inside before they are given its secret.
pub(crate) async fn open_session(door: &Door, holder: Holder) -> Result<String, Error> {
    let now = door.settings.clock.now();
    let secret = (door.settings.secret)();
    let session = Key {
        kind: KeyKind::Session,
        hash: Digest::of(secret.as_bytes()),
        holder,
        since: now,
        ends_at: now.after(SESSION_LIFE),
    };
    door.keys.keep(&session, now).await?;
    Ok(secret)
}

/// Ends a session.
pub(crate) async fn close_session(door: &Door, secret: &str) -> Result<(), Error> {
    let now = door.settings.clock.now();
    let hash = Digest::of(secret.as_bytes());
    door.keys.take(KeyKind::Session, &hash, now).await?;
    Ok(())
}

async fn rank_of(door: &Door, holder: &Holder) -> Result<Option<Rank>, Error> {
    match holder {
        Holder::Owner(_) => Ok(Some(Rank::Admin)),
        Holder::Operator(name) => Ok(door.reader.staff().await?.operators.get(name).copied()),
    }
}

/// Somebody who came in and listens on: what is told after the guards is told to whoever is inside still.
pub(crate) struct Watcher {
    door: Arc<Door>,
    actor: Actor,
    believed_until: Timestamp,
}

impl Watcher {
    /// Begins to listen.
    pub(crate) fn new(door: Arc<Door>, actor: Actor) -> Self {
        let believed_until = door.settings.clock.now().after(BELIEVED_FOR);
        Self {
            door,
            actor,
            believed_until,
        }
    }

    /// Tells whether the watcher may hear something; `changed` is the run that it is about. What is about no run may be
    /// about the watcher. A database that does not answer lets nobody hear anything; they come back and ask.
    pub(crate) async fn may_hear(&mut self, changed: Option<&RunId>) -> bool {
        let now = self.door.settings.clock.now();
        if changed.is_some() && now < self.believed_until {
            return true;
        }
        // That somebody is to go is told before their key is gone: after such news the next word is not believed either.
        self.believed_until = match changed {
            Some(_) => now.after(BELIEVED_FOR),
            None => now,
        };
        is_inside(&self.door, &self.actor, now).await.unwrap_or_default()
    }
}

async fn is_inside(door: &Door, actor: &Actor, now: Timestamp) -> Result<bool, Error> {
    match &actor.proof {
        Proof::Server => Ok(true),
        Proof::Token(hash) => Ok(door.reader.staff().await?.bearer(hash, now).is_some()),
        Proof::Session(hash) => match door.keys.find(KeyKind::Session, hash, now).await? {
            Some(key) => Ok(rank_of(door, &key.holder).await?.is_some()),
            None => Ok(false),
        },
    }
}
