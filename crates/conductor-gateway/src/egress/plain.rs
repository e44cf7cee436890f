//! Serves one plain HTTP request: absolute form in, origin form out, on a connection of its own (S-38).
//!
//! The `Host` that goes out is the one that was checked. Fields that concern a single connection stay here. Nothing is
//! pooled, so a request cannot leave anything behind for the next one. This module does not follow redirects and does
//! not know what is asked for.

use conductor_domain::egress::grant::default_port;
use conductor_domain::egress::{EgressReason, EgressWay, HostName};
use tokio::net::{TcpStream, UnixStream};

use super::{Asked, Check, Guard, Next, outside, refuse};
use crate::http::{Body, Field, Malformed, Relayed, Request, Response, Wire, relay};
use crate::switch::Switch;

/// Fields that concern one connection, or that we write ourselves.
const OURS: &[&str] = &[
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// How many interim answers are passed over.
const MAX_INTERIM: usize = 8;

pub(super) async fn serve(
    guard: &Guard,
    client: &mut Wire<UnixStream>,
    request: &Request,
    command: Option<String>,
    check: Check,
) -> Next {
    let target = if guard.has(Switch::AbsoluteForm) {
        request.target.clone()
    } else {
        made_absolute(request)
    };
    let Some((asked, path)) = absolute(&target, command) else {
        let asked = Asked::nothing(EgressWay::Plain);
        refuse(guard, client, &asked, EgressReason::BadRequest).await;
        return Next::Nothing;
    };
    match exchange(guard, client, request, (&asked, check), path).await {
        Ok(next) => next,
        Err(Failed::Early(reason)) => {
            refuse(guard, client, &asked, reason).await;
            Next::Nothing
        }
        Err(Failed::Late(reason)) => {
            guard.tell(&asked, reason).await;
            Next::Nothing
        }
        Err(Failed::Gone) => Next::Nothing,
    }
}

/// Reads `http://host[:port][/path][?query]`.
fn absolute(target: &str, command: Option<String>) -> Option<(Asked, String)> {
    let scheme = target.get(..7)?;
    let rest = target.get(7..)?;
    if !scheme.eq_ignore_ascii_case("http://") || target.contains('#') {
        return None;
    }
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, text)) => (host, port(text)?),
        None => (authority, default_port(EgressWay::Plain)),
    };
    let path = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    };
    let asked = Asked {
        host: host.to_owned(),
        port,
        way: EgressWay::Plain,
        command,
    };
    Some((asked, path))
}

/// What a reader makes of a request whose line names no host, when a test leaves out that it must.
fn made_absolute(request: &Request) -> String {
    match claimed_host(request) {
        Some(host) if request.target.starts_with('/') => {
            format!("http://{}{}", String::from_utf8_lossy(host), request.target)
        }
        _ => request.target.clone(),
    }
}

/// The host that the client's own field names; nothing in it is believed.
fn claimed_host(request: &Request) -> Option<&[u8]> {
    let mut fields = request.fields.iter();
    fields
        .find(|field| field.name == "host")
        .map(|field| field.value.as_slice())
}

/// Reads a port in its one usual form.
pub(super) fn port(text: &str) -> Option<u16> {
    let is_usual = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| is_usual)
}

enum Failed {
    /// Nothing was answered yet.
    Early(EgressReason),
    /// An answer is under way and breaks off.
    Late(EgressReason),
    /// The client is gone.
    Gone,
}

async fn exchange(
    guard: &Guard,
    client: &mut Wire<UnixStream>,
    request: &Request,
    (asked, check): (&Asked, Check),
    path: String,
) -> Result<Next, Failed> {
    let host = match check {
        Check::All => guard.admit(asked),
        Check::NameOnly => guard.name(asked),
    }
    .map_err(Failed::Early)?;
    let upstream = outside::reach(guard, &host, asked.port)
        .await
        .map_err(Failed::Early)?;
    let mut upstream = Wire::new(upstream);
    let idle = guard.limits.idle;
    upstream
        .send(&request_head(guard, request, &host, asked.port, &path), idle)
        .await
        .map_err(|_| Failed::Early(EgressReason::Unreachable))?;
    if request.body != Body::None && request.fields.iter().any(|field| field.name == "expect") {
        let go_on = client.send(b"HTTP/1.1 100 Continue\r\n\r\n", idle).await;
        go_on.map_err(|_| Failed::Gone)?;
    }
    match relay(client, &mut upstream, request.body, idle).await {
        // A server may answer and close before it has read everything.
        Relayed::Whole | Relayed::LostReceiver => {}
        Relayed::BadSender(malformed) => {
            return Err(match malformed {
                Malformed::Grammar(_) => Failed::Early(EgressReason::BadRequest),
                Malformed::TooLong | Malformed::TooSlow => Failed::Early(EgressReason::LimitReached),
                Malformed::Ended => Failed::Gone,
            });
        }
    }
    answer(guard, client, &mut upstream, request).await
}

fn request_head(guard: &Guard, request: &Request, host: &HostName, port: u16, path: &str) -> Vec<u8> {
    let mut head = format!("{} {path} HTTP/1.1\r\nHost: ", request.method).into_bytes();
    match claimed_host(request) {
        Some(claimed) if !guard.has(Switch::OwnHost) => head.extend_from_slice(claimed),
        _ => head.extend_from_slice(host.as_str().as_bytes()),
    }
    if port != default_port(EgressWay::Plain) {
        head.extend_from_slice(format!(":{port}").as_bytes());
    }
    head.extend_from_slice(b"\r\n");
    pass_on(&request.fields, &mut head);
    frame(request.body, &mut head);
    head.extend_from_slice(b"Connection: close\r\n\r\n");
    head
}

async fn answer(
    guard: &Guard,
    client: &mut Wire<UnixStream>,
    upstream: &mut Wire<TcpStream>,
    request: &Request,
) -> Result<Next, Failed> {
    let idle = guard.limits.idle;
    let response = final_answer(guard, upstream, &request.method)
        .await
        .ok_or(Failed::Early(EgressReason::BadAnswer))?;
    let next = if response.body != Body::UntilEnd && request.keeps_alive() {
        Next::Request
    } else {
        Next::Nothing
    };
    let mut head = format!("HTTP/1.1 {} \r\n", response.status).into_bytes();
    pass_on(&response.fields, &mut head);
    if response.body == Body::None {
        // The length of what a HEAD or a 304 does not carry is news to the client.
        for field in response
            .fields
            .iter()
            .filter(|field| field.name == "content-length")
        {
            put(field, &mut head);
        }
    }
    frame(response.body, &mut head);
    head.extend_from_slice(match next {
        Next::Request => b"Connection: keep-alive\r\n\r\n".as_slice(),
        Next::Nothing => b"Connection: close\r\n\r\n".as_slice(),
    });
    client.send(&head, idle).await.map_err(|_| Failed::Gone)?;
    match relay(upstream, client, response.body, idle).await {
        Relayed::Whole => Ok(next),
        Relayed::BadSender(_) => Err(Failed::Late(EgressReason::BadAnswer)),
        Relayed::LostReceiver => Err(Failed::Gone),
    }
}

/// Reads answers until one is not interim; an answer that switches protocols is none.
async fn final_answer(guard: &Guard, upstream: &mut Wire<TcpStream>, method: &str) -> Option<Response> {
    for _ in 0..MAX_INTERIM {
        let head = upstream.head(guard.limits.idle, guard.limits.head).await.ok()??;
        let response = Response::parse(&head, method).ok()?;
        match response.status {
            101 => return None,
            100..200 => {}
            _ => return Some(response),
        }
    }
    None
}

/// Writes the fields that concern more than one connection.
fn pass_on(fields: &[Field], head: &mut Vec<u8>) {
    let named_by_connection = |name: &str| {
        fields
            .iter()
            .filter(|field| field.name == "connection")
            .flat_map(|field| field.value.split(|byte| *byte == b','))
            .any(|word| word.trim_ascii().eq_ignore_ascii_case(name.as_bytes()))
    };
    for field in fields {
        if !OURS.contains(&field.name.as_str()) && !named_by_connection(&field.name) {
            put(field, head);
        }
    }
}

fn put(field: &Field, head: &mut Vec<u8>) {
    head.extend_from_slice(field.name.as_bytes());
    head.extend_from_slice(b": ");
    head.extend_from_slice(&field.value);
    head.extend_from_slice(b"\r\n");
}

fn frame(body: Body, head: &mut Vec<u8>) {
    match body {
        Body::None | Body::UntilEnd => {}
        Body::Length(length) => head.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes()),
        Body::Chunked => head.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
    }
}
