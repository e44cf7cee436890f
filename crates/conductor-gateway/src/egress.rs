//! Lets requests out of a sandbox to granted hosts only; every denial is told, and can become a grant (EXEC-3, BEY-6).
//!
//! A visitor shows its token, then asks for a [`tunnel`] or for one plain request after the other. The order of the
//! checks is fixed: token, name, grant, then the first question to the world outside, then addresses. Redirects are
//! the client's affair. This module does not know who grants, and looks into no tunnel beyond its first message.

pub mod address;
pub mod outside;
pub mod denial;
mod hello;
mod tunnel;
mod plain;
mod outlet;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use conductor_domain::egress::host::BadHostName;
use conductor_domain::egress::{EgressReason, EgressWay, Grant, HostName, grant};
use conductor_domain::id::{EffectId, RunId};
use tokio::net::UnixStream;

use crate::door::{self, Door, Doors, Token};
use crate::http::{Malformed, Request, Wire};
use crate::switch::{Switch, Without};

pub use denial::{Denials, ToInbox};
pub use outlet::{Commands, Mint, Outlets, PORT};
pub use outside::{Internet, Outside};

use denial::Told;

/// The name of the socket in a sandbox's directory.
pub const SOCKET: &str = "egress";

/// The egress proxy; opens a door per sandbox.
#[derive(Clone)]
pub struct Egress {
    outside: Arc<dyn Outside>,
    denials: Arc<dyn Denials>,
    limits: Limits,
    without: Without,
}

/// Who stands behind a door, and what it may reach.
#[derive(Debug)]
pub struct Visitor {
    /// The run.
    pub run: RunId,
    /// The effect that owns the sandbox.
    pub effect: EffectId,
    /// What has to be shown.
    pub token: Token,
    /// What may be reached.
    pub grants: Vec<Grant>,
    /// Which commands may ask.
    pub commands: Arc<Commands>,
}

/// How much, and how slowly.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The most connections of one sandbox at a time; more wait.
    pub visitors: usize,
    /// How long a head, or the first message of a tunnel, may take as a whole.
    pub head: Duration,
    /// How long a connection, or either side of a body, may be silent.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            visitors: 64,
            head: Duration::from_secs(15),
            idle: Duration::from_mins(2),
        }
    }
}

impl Egress {
    /// Takes the world outside, and whom to tell of denials.
    pub fn new(outside: Arc<dyn Outside>, denials: Arc<dyn Denials>, limits: Limits) -> Self {
        Self {
            outside,
            denials,
            limits,
            without: Without::default(),
        }
    }

    /// Leaves a protection out, so that a test can show what it is for.
    #[doc(hidden)]
    #[cfg(debug_assertions)]
    #[must_use]
    pub fn without(mut self, switch: Switch) -> Self {
        self.without.also(switch);
        self
    }

    /// Opens the door of one sandbox. It is closed by [`Door::close`], or by its drop.
    pub fn open(&self, doors: &Doors, visitor: Visitor) -> Result<Door, door::Error> {
        let place = doors.open(visitor.effect.as_str(), SOCKET)?;
        let guard = Arc::new(Guard {
            outside: Arc::clone(&self.outside),
            told: Told::new(Arc::clone(&self.denials)),
            visitor,
            limits: self.limits,
            without: self.without.clone(),
        });
        let most = if guard.has(Switch::VisitorLimit) {
            self.limits.visitors
        } else {
            usize::MAX
        };
        Ok(Door::welcome(place, SOCKET, most, move |stream| {
            visit(Arc::clone(&guard), stream)
        }))
    }
}

impl fmt::Debug for Egress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Egress")
            .field("outside", &self.outside)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// What all visits through one door share.
struct Guard {
    outside: Arc<dyn Outside>,
    told: Told,
    visitor: Visitor,
    limits: Limits,
    without: Without,
}

/// What was asked for, as far as it could be read.
#[derive(Debug, Clone)]
struct Asked {
    host: String,
    port: u16,
    way: EgressWay,
    command: Option<String>,
}

/// What of a request is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    All,
    /// A test left out that every request is checked.
    NameOnly,
}

/// Whether the connection can carry a further request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Request,
    Nothing,
}

async fn visit(guard: Arc<Guard>, stream: UnixStream) {
    let mut client = Wire::new(stream);
    let mut check = Check::All;
    loop {
        let head = match client.head(guard.limits.idle, guard.limits.head).await {
            Ok(Some(head)) => head,
            Ok(None) => return,
            Err(malformed) => return unreadable(&guard, &mut client, malformed).await,
        };
        let mut request = match Request::parse(&head) {
            Ok(request) => request,
            Err(malformed) => return unreadable(&guard, &mut client, malformed).await,
        };
        // Every request shows it anew, because every request may come from another command.
        let shown = credentials(&mut request);
        let is_known = shown
            .as_ref()
            .is_some_and(|shown| guard.visitor.token.is(&shown.token));
        if !is_known && guard.has(Switch::OwnToken) {
            let asked = Asked::nothing(way_of(&request));
            return refuse(&guard, &mut client, &asked, EgressReason::WrongToken).await;
        }
        let command = shown.and_then(|shown| shown.command);
        let command = command.map(|name| guard.visitor.commands.words(name));
        if request.method == "CONNECT" {
            return tunnel::serve(&guard, client, &request, command).await;
        }
        match plain::serve(&guard, &mut client, &request, command, check).await {
            Next::Request if guard.has(Switch::CheckedAnew) => {}
            Next::Request => check = Check::NameOnly,
            Next::Nothing => return,
        }
    }
}

async fn unreadable(guard: &Guard, client: &mut Wire<UnixStream>, malformed: Malformed) {
    let reason = match malformed {
        Malformed::Grammar(_) => EgressReason::BadRequest,
        Malformed::TooLong | Malformed::TooSlow => EgressReason::LimitReached,
        Malformed::Ended => return,
    };
    refuse(guard, client, &Asked::nothing(EgressWay::Plain), reason).await;
}

fn way_of(request: &Request) -> EgressWay {
    if request.method == "CONNECT" {
        EgressWay::Tunnel
    } else {
        EgressWay::Plain
    }
}

/// What a visitor shows: the token as the password, and as the user the command that asks, if it likes to say so.
struct Shown {
    token: Vec<u8>,
    command: Option<String>,
}

/// Takes the credentials out of the request; they go no further.
fn credentials(request: &mut Request) -> Option<Shown> {
    let (fields, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut request.fields)
        .into_iter()
        .partition(|field| field.name == "proxy-authorization");
    request.fields = rest;
    let [field] = fields.as_slice() else { return None };
    let (scheme, encoded) = field.value.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    let decoded = STANDARD.decode(encoded.trim_ascii()).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let user = &decoded[..colon];
    Some(Shown {
        token: decoded[colon + 1..].to_vec(),
        command: ((1..=64).contains(&user.len()) && user.iter().all(is_word))
            .then(|| String::from_utf8_lossy(user).into_owned()),
    })
}

impl Asked {
    fn nothing(way: EgressWay) -> Self {
        Self {
            host: String::new(),
            port: 0,
            way,
            command: None,
        }
    }
}

impl Guard {
    /// Checks name and grant; nobody outside has been asked anything yet.
    fn admit(&self, asked: &Asked) -> Result<HostName, EgressReason> {
        let host = self.name(asked)?;
        match grant::check(&self.visitor.grants, asked.way, &host, asked.port) {
            Err(EgressReason::HostNotGranted) if !self.has(Switch::GrantedHosts) => Ok(host),
            Err(EgressReason::PortNotGranted) if !self.has(Switch::GrantedPorts) => Ok(host),
            checked => checked.map(|()| host),
        }
    }

    fn name(&self, asked: &Asked) -> Result<HostName, EgressReason> {
        #[cfg(debug_assertions)]
        if !self.has(Switch::HostNames) {
            return Ok(HostName::unchecked(&asked.host));
        }
        HostName::parse(&asked.host).map_err(|bad| match bad {
            BadHostName::Length | BadHostName::Label | BadHostName::OneLabel | BadHostName::Address => {
                EgressReason::BadHostName
            }
        })
    }

    fn has(&self, switch: Switch) -> bool {
        self.without.has(switch)
    }

    /// Tells of a denial, once per host, port and reason; it is kept before this returns.
    async fn tell(&self, asked: &Asked, reason: EgressReason) {
        self.told.tell(&self.visitor, asked, reason).await;
    }
}

/// Tells of a denial, then answers with it.
async fn refuse(guard: &Guard, client: &mut Wire<UnixStream>, asked: &Asked, reason: EgressReason) {
    guard.tell(asked, reason).await;
    let status = match reason {
        EgressReason::HostNotGranted
        | EgressReason::PortNotGranted
        | EgressReason::BadHostName
        | EgressReason::AddressNotPublic
        | EgressReason::NotTls
        | EgressReason::OtherServerName
        | EgressReason::HiddenServerName => "403 Forbidden",
        EgressReason::Unresolved | EgressReason::Unreachable | EgressReason::BadAnswer => "502 Bad Gateway",
        EgressReason::BadRequest => "400 Bad Request",
        EgressReason::WrongToken => "407 Proxy Authentication Required\r\nProxy-Authenticate: Basic",
        EgressReason::LimitReached => "408 Request Timeout",
    };
    let hint = if reason.can_be_granted() {
        "; an operator can grant it, the request is shown there"
    } else {
        ""
    };
    let text = format!("conductor: {reason}{hint}\n");
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    );
    // Whoever does not listen to the answer is not owed one.
    let _ = client.send(answer.as_bytes(), guard.limits.head).await;
}
