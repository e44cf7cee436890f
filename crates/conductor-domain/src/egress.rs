//! What a sandbox may ask of the network, and what it asked and did not get, as it is kept and shown (EXEC-3, BEY-6).
//!
//! [`host`] says what is a host name, [`grant`] what a project may reach. A denial changes nothing in the run: it is a
//! request that an operator may turn into a grant. The host stands in it as it was asked for, so it is foreign text.
//! This module does not know how the network is guarded.

pub mod host;
pub mod grant;

use serde::{Deserialize, Serialize};

pub use grant::{Grant, HostPattern};
pub use host::HostName;

/// A request that was not let out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EgressDenial {
    /// The host that was asked for, in visible ASCII; empty where none could be read.
    pub host: String,
    /// The port; 0 where none could be read.
    pub port: u16,
    /// How it was asked for.
    pub way: EgressWay,
    /// Why it was denied.
    pub reason: EgressReason,
    /// Which command asked, as far as the sandbox told it truly.
    pub command: Option<String>,
}

impl EgressDenial {
    /// The smallest grant that would have let this pass, where one could.
    pub fn wanted(&self) -> Option<Grant> {
        if !self.reason.can_be_granted() {
            return None;
        }
        let host = HostName::parse(&self.host).ok()?;
        let is_usual = self.port == grant::default_port(self.way);
        Some(Grant {
            host: HostPattern::Exactly(host),
            way: self.way,
            ports: if is_usual { vec![] } else { vec![self.port] },
        })
    }
}

/// The two ways through the egress proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EgressWay {
    /// `CONNECT`: end-to-end TLS, so nobody sees what is carried.
    Tunnel,
    /// A plain HTTP request, forwarded.
    Plain,
}

impl EgressWay {
    /// The word that stands beside a grant of this way wherever a person reads it (S-34).
    ///
    /// Plain requests carry it too: whoever may send a request may send what he knows in it.
    pub const RISK: &str = "can exfiltrate";
}

/// Why a request was not let out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EgressReason {
    /// No grant names the host.
    HostNotGranted,
    /// The host is granted, the port is not.
    PortNotGranted,
    /// The name is an address, or no host name at all.
    BadHostName,
    /// The name could not be resolved.
    Unresolved,
    /// The name leads to an address that is not global unicast, or to this host.
    AddressNotPublic,
    /// Nobody answers there.
    Unreachable,
    /// What came through the tunnel is not TLS.
    NotTls,
    /// The TLS handshake names another host, or none.
    OtherServerName,
    /// The TLS handshake hides its host.
    HiddenServerName,
    /// The request is malformed or ambiguous.
    BadRequest,
    /// The answer is malformed or ambiguous.
    BadAnswer,
    /// The token is missing or belongs to another socket.
    WrongToken,
    /// The sandbox asks for too much at once, or too slowly.
    LimitReached,
}

impl EgressReason {
    /// Tells whether a grant would have let it pass.
    pub fn can_be_granted(self) -> bool {
        matches!(self, Self::HostNotGranted | Self::PortNotGranted)
    }
}

impl std::fmt::Display for EgressReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::HostNotGranted => "no policy grants this host",
            Self::PortNotGranted => "no policy grants this port of the host",
            Self::BadHostName => "this is an address or not a host name",
            Self::Unresolved => "the name could not be resolved",
            Self::AddressNotPublic => "the name leads to an address that is not public",
            Self::Unreachable => "nobody answers there",
            Self::NotTls => "only TLS may pass through a tunnel",
            Self::OtherServerName => "the TLS handshake names another host, or none",
            Self::HiddenServerName => "the TLS handshake hides its host",
            Self::BadRequest => "the request is malformed or ambiguous",
            Self::BadAnswer => "the answer is malformed or ambiguous",
            Self::WrongToken => "the token does not belong to this sandbox",
            Self::LimitReached => "too much at once, or too slow",
        })
    }
}

impl std::fmt::Display for EgressDenial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}, {}", self.host, self.port, self.reason)
    }
}
