//! Serves `CONNECT`: a tunnel to a granted host, whose first message must be a TLS hello to that very host (S-39).
//!
//! Not one byte of the client goes out before its whole hello was read and found right. What the tunnel carries after
//! that is end-to-end encrypted: a grant of this way can exfiltrate, and is labelled so (S-34). This module does not
//! know what is carried.

use std::time::Duration;

use conductor_domain::egress::{EgressReason, EgressWay, HostName};
use tokio::io::{AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use super::{Asked, Guard, hello, outside, refuse};
use crate::http::{Body, Malformed, Request, Wire};
use crate::switch::Switch;

const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";
/// Fatal, access denied: what a TLS client can show its user.
const ALERT: &[u8] = &[21, 3, 1, 0, 2, 2, 49];

pub(super) async fn serve(
    guard: &Guard,
    mut client: Wire<UnixStream>,
    request: &Request,
    command: Option<String>,
) {
    let Some(asked) = authority(request, command) else {
        let asked = Asked::nothing(EgressWay::Tunnel);
        return refuse(guard, &mut client, &asked, EgressReason::BadRequest).await;
    };
    let (host, upstream) = match connect(guard, &asked).await {
        Ok(connected) => connected,
        Err(reason) => return refuse(guard, &mut client, &asked, reason).await,
    };
    if client.send(ESTABLISHED, guard.limits.head).await.is_err() {
        return;
    }
    let patience = if guard.has(Switch::HelloTime) {
        guard.limits.head
    } else {
        Duration::MAX
    };
    match timeout(patience, first_message(guard, &mut client, &host, patience)).await {
        Ok(Ok(First::Right)) => carry(client, upstream).await,
        Ok(Ok(First::Gone)) => {}
        Ok(Err(reason)) => end(guard, client, &asked, reason).await,
        Err(_) => end(guard, client, &asked, EgressReason::LimitReached).await,
    }
}

/// Reads `host:port`, and nothing else.
fn authority(request: &Request, command: Option<String>) -> Option<Asked> {
    let (host, port) = request.target.rsplit_once(':')?;
    Some(Asked {
        host: host.to_owned(),
        port: super::plain::port(port)?,
        way: EgressWay::Tunnel,
        command,
    })
    .filter(|_| request.body == Body::None)
}

async fn connect(guard: &Guard, asked: &Asked) -> Result<(HostName, TcpStream), EgressReason> {
    let host = guard.admit(asked)?;
    let upstream = outside::reach(guard, &host, asked.port).await?;
    Ok((host, upstream))
}

enum First {
    Right,
    /// The client left without a word.
    Gone,
}

async fn first_message(
    guard: &Guard,
    client: &mut Wire<UnixStream>,
    host: &HostName,
    patience: Duration,
) -> Result<First, EgressReason> {
    let sizes = if guard.has(Switch::HelloSize) {
        hello::SIZES
    } else {
        hello::ANY_SIZE
    };
    loop {
        match hello::server_name(client.ahead(), sizes) {
            Ok(None) => {}
            Ok(Some(name)) if name == *host || !guard.has(Switch::SameName) => return Ok(First::Right),
            Ok(Some(_)) => return Err(EgressReason::OtherServerName),
            Err(EgressReason::HiddenServerName) if !guard.has(Switch::NoHiddenName) => {
                return Ok(First::Right);
            }
            Err(EgressReason::NotTls) if !guard.has(Switch::TlsOnly) => return Ok(First::Right),
            Err(reason) => return Err(reason),
        }
        if client.ahead().len() >= sizes.read {
            return Err(EgressReason::LimitReached);
        }
        match client.fill(patience).await {
            Ok(0) if client.ahead().is_empty() => return Ok(First::Gone),
            Ok(0) | Err(Malformed::Grammar(_)) => return Err(EgressReason::NotTls),
            Ok(_) => {}
            Err(Malformed::TooSlow | Malformed::TooLong) => return Err(EgressReason::LimitReached),
            Err(Malformed::Ended) => return Ok(First::Gone),
        }
    }
}

async fn carry(client: Wire<UnixStream>, mut upstream: TcpStream) {
    let (mut client, ahead) = client.into_parts();
    if upstream.write_all(&ahead).await.is_ok() {
        // Either side may end it in any way it likes; there is nobody to tell.
        let _ = copy_bidirectional(&mut client, &mut upstream).await;
    }
}

async fn end(guard: &Guard, mut client: Wire<UnixStream>, asked: &Asked, reason: EgressReason) {
    guard.tell(asked, reason).await;
    // Whoever does not listen to the alert is not owed one.
    let _ = client.send(ALERT, guard.limits.head).await;
}
