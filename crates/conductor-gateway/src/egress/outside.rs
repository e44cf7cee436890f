//! Resolves a granted name once, checks every answer, and connects to a checked address (S-36).
//!
//! [`Outside`] is the world beyond: [`Internet`] in earnest, a stage in tests, where the addresses are checked all the
//! same. This module does not know what is sent.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use async_trait::async_trait;
use conductor_domain::egress::{EgressReason, HostName};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Guard;
use super::address::is_public;
use crate::switch::Switch;

const RESOLVE_TIME: Duration = Duration::from_secs(10);
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// More answers than this are checked but not tried.
const MAX_TRIED: usize = 4;

/// The world beyond the gateway.
#[async_trait]
pub trait Outside: Send + Sync + std::fmt::Debug {
    /// Asks for all addresses of a name.
    async fn resolve(&self, host: &HostName) -> io::Result<Vec<IpAddr>>;

    /// Tells whether an address is this host's own; an address that cannot be told is.
    fn is_own(&self, address: IpAddr) -> bool;

    /// Connects to exactly this address.
    async fn connect(&self, address: SocketAddr) -> io::Result<TcpStream>;
}

/// The real network, asked through the host's resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct Internet;

#[async_trait]
impl Outside for Internet {
    async fn resolve(&self, host: &HostName) -> io::Result<Vec<IpAddr>> {
        // The final dot keeps the resolver from trying its search domains, which nobody granted.
        let absolute = format!("{host}.");
        let answers = tokio::net::lookup_host((absolute.as_str(), 0)).await?;
        Ok(answers.map(|answer| answer.ip()).collect())
    }

    fn is_own(&self, address: IpAddr) -> bool {
        // Only an address of this host can be bound, whatever interface or route carries it, at this very moment.
        match UdpSocket::bind((address, 0)) {
            Ok(_) => true,
            Err(error) => !matches!(
                error.kind(),
                io::ErrorKind::AddrNotAvailable | io::ErrorKind::Unsupported
            ),
        }
    }

    async fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        TcpStream::connect(address).await
    }
}

/// Connects to a granted name, or says why not.
pub(super) async fn reach(guard: &Guard, host: &HostName, port: u16) -> Result<TcpStream, EgressReason> {
    let outside = guard.outside.as_ref();
    let mut answers = resolve(outside, host).await?;
    // One bad answer among good ones is how a name is made to lead inside at the second try.
    let checked = if guard.has(Switch::EveryAnswer) {
        answers.len()
    } else {
        1
    };
    if answers.iter().take(checked).any(|answer| is_bad(guard, *answer)) {
        return Err(EgressReason::AddressNotPublic);
    }
    if !guard.has(Switch::ResolvedOnce) {
        answers = resolve(outside, host).await?;
    }
    for answer in answers.into_iter().take(MAX_TRIED) {
        if let Ok(Ok(stream)) = timeout(CONNECT_TIME, outside.connect((answer, port).into())).await {
            return Ok(stream);
        }
    }
    Err(EgressReason::Unreachable)
}

async fn resolve(outside: &dyn Outside, host: &HostName) -> Result<Vec<IpAddr>, EgressReason> {
    match timeout(RESOLVE_TIME, outside.resolve(host)).await {
        Ok(Ok(answers)) if !answers.is_empty() => Ok(answers),
        Ok(Ok(_) | Err(_)) | Err(_) => Err(EgressReason::Unresolved),
    }
}

fn is_bad(guard: &Guard, answer: IpAddr) -> bool {
    (guard.has(Switch::PublicAddresses) && !is_public(answer))
        || (guard.has(Switch::ForeignAddresses) && guard.outside.is_own(answer))
}
