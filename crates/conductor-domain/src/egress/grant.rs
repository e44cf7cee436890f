//! Decides what a project may reach: which host, which way, which port. Nothing is granted that is not listed.
//!
//! Grants are configuration; none stands in the code. This module does not know addresses.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::host::{BadHostName, HostName};
use super::{EgressReason, EgressWay};

/// One host, or all hosts below a name, that may be reached one way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// Which host.
    pub host: HostPattern,
    /// Which way.
    pub way: EgressWay,
    /// Which ports; none named is the way's own (S-37).
    #[serde(default)]
    pub ports: Vec<u16>,
}

/// Why a text is not a grant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadGrant {
    /// The host is none.
    #[error("`{given}` does not name a host")]
    Host {
        /// What was given.
        given: String,
        /// Why.
        source: BadHostName,
    },
    /// What follows the colon is not a port.
    #[error("`{0}` does not end in a port from 1 to 65535")]
    Port(String),
}

impl BadGrant {
    /// What a person can do about it.
    pub const HINT: &str = "write a host name: `files.example`, `*.files.example` for all below it, `files.example:8443` for \
                            another port, `http://files.example` for requests without TLS; addresses are never granted";
}

impl Grant {
    /// Reads a grant as a person writes it: a host or `*.` and a name, with a port if it is not the way's own, and
    /// `http://` before it where requests are not to be encrypted.
    pub fn parse(text: &str) -> Result<Self, BadGrant> {
        let (way, rest) = match (text.strip_prefix("http://"), text.strip_prefix("https://")) {
            (Some(rest), _) => (EgressWay::Plain, rest),
            (None, Some(rest)) => (EgressWay::Tunnel, rest),
            (None, None) => (EgressWay::Tunnel, text),
        };
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) => {
                let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
                let number = port.parse().ok().filter(|port| is_number && *port > 0);
                (host, Some(number.ok_or_else(|| BadGrant::Port(text.to_owned()))?))
            }
            None => (rest, None),
        };
        let host = HostPattern::parse(host).map_err(|source| BadGrant::Host {
            given: text.to_owned(),
            source,
        })?;
        let port = port.filter(|port| *port != default_port(way));
        Ok(Self {
            host,
            way,
            ports: port.into_iter().collect(),
        })
    }

    /// The grant as a person writes it, one text per port.
    pub fn written(&self) -> Vec<String> {
        let scheme = match self.way {
            EgressWay::Tunnel => "",
            EgressWay::Plain => "http://",
        };
        if self.ports.is_empty() {
            return vec![format!("{scheme}{}", self.host)];
        }
        self.ports
            .iter()
            .map(|port| format!("{scheme}{}:{port}", self.host))
            .collect()
    }

    fn has_port(&self, port: u16) -> bool {
        if self.ports.is_empty() {
            port == default_port(self.way)
        } else {
            self.ports.contains(&port)
        }
    }
}

/// Reads as an operator sees it, with its risk (S-34).
impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = match self.way {
            EgressWay::Tunnel => "tunnel to",
            EgressWay::Plain => "plain requests to",
        };
        write!(f, "{way} {}", self.host)?;
        if !self.ports.is_empty() {
            let ports: Vec<String> = self.ports.iter().map(u16::to_string).collect();
            write!(f, " on port {}", ports.join(", "))?;
        }
        write!(f, " ({})", EgressWay::RISK)
    }
}

/// The port that a way leads to when nothing else is said.
pub fn default_port(way: EgressWay) -> u16 {
    match way {
        EgressWay::Tunnel => 443,
        EgressWay::Plain => 80,
    }
}

/// `name.example`, or `*.name.example` for everything below it but not itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum HostPattern {
    /// This host.
    Exactly(HostName),
    /// Every host below this name.
    Below(HostName),
}

impl HostPattern {
    /// Reads a pattern.
    pub fn parse(text: &str) -> Result<Self, BadHostName> {
        match text.strip_prefix("*.") {
            Some(rest) => HostName::parse(rest).map(Self::Below),
            None => HostName::parse(text).map(Self::Exactly),
        }
    }

    fn covers(&self, host: &HostName) -> bool {
        match self {
            Self::Exactly(name) => name == host,
            Self::Below(name) => host
                .as_str()
                .strip_suffix(name.as_str())
                .is_some_and(|rest| rest.ends_with('.')),
        }
    }
}

impl TryFrom<String> for HostPattern {
    type Error = BadHostName;

    fn try_from(text: String) -> Result<Self, BadHostName> {
        Self::parse(&text)
    }
}

impl From<HostPattern> for String {
    fn from(pattern: HostPattern) -> Self {
        pattern.to_string()
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(name) => write!(f, "{name}"),
            Self::Below(name) => write!(f, "*.{name}"),
        }
    }
}

/// Looks for a grant, and says which of its parts is missing.
pub fn check(grants: &[Grant], way: EgressWay, host: &HostName, port: u16) -> Result<(), EgressReason> {
    let mut of_host = grants
        .iter()
        .filter(|grant| grant.way == way && grant.host.covers(host))
        .peekable();
    if of_host.peek().is_none() {
        return Err(EgressReason::HostNotGranted);
    }
    if of_host.any(|grant| grant.has_port(port)) {
        Ok(())
    } else {
        Err(EgressReason::PortNotGranted)
    }
}
