//! Strangers at the HTTP door: without the lease, from a page, with another host's name, after the end.

use std::net::SocketAddr;
use std::sync::Arc;

use conductor_domain::role::Role;
use conductor_tools::{Lease, Offers, Server, door};
use reqwest::StatusCode;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixListener, UnixStream};

use crate::told::Told;

async fn open() -> (SocketAddr, Lease) {
    open_to(Told::new()).await
}

async fn open_to(told: Arc<Told>) -> (SocketAddr, Lease) {
    let lease = Lease::grant().expect("a lease");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = Server::new(Offers::to_role(Role::Planner, told));
    tokio::spawn(door::over_loopback(server, lease.clone(), listener));
    (address, lease)
}

fn ask(address: SocketAddr) -> reqwest::RequestBuilder {
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    client
        .post(format!("http://{address}/mcp"))
        .header("accept", "application/json, text/event-stream")
        .json(&json!({
            "jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": { "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } },
        }))
}

async fn status(request: reqwest::RequestBuilder) -> StatusCode {
    request.send().await.expect("an answer").status()
}

/// S-44: the token opens the door, and only the whole token does.
#[tokio::test]
async fn only_the_leases_holder_is_served() {
    let (address, lease) = open().await;
    assert_eq!(status(ask(address)).await, StatusCode::UNAUTHORIZED);
    for token in ["", "x", &lease.token()[1..], &format!("{}0", lease.token())] {
        assert_eq!(
            status(ask(address).bearer_auth(token)).await,
            StatusCode::UNAUTHORIZED
        );
    }
    assert_eq!(
        status(ask(address).bearer_auth(lease.token())).await,
        StatusCode::OK
    );
}

/// A page that rebinds a name to loopback has another host or origin, and is refused though it had the token.
#[tokio::test]
async fn another_host_or_origin_is_refused() {
    let (address, lease) = open().await;
    let asked = || ask(address).bearer_auth(lease.token());
    for host in ["evil.example", "127.0.0.1", "localhost:1"] {
        assert_eq!(
            status(asked().header("host", host)).await,
            StatusCode::FORBIDDEN,
            "{host}"
        );
    }
    for origin in ["http://evil.example", "null", "http://localhost:1"] {
        assert_eq!(
            status(asked().header("origin", origin)).await,
            StatusCode::FORBIDDEN,
            "{origin}"
        );
    }
    let own = format!("http://{address}");
    assert_eq!(status(asked().header("origin", own)).await, StatusCode::OK);
}

/// TOOL-4: with the lease's end a call under way ends, and no other begins.
#[tokio::test]
async fn nothing_is_served_after_the_lease() {
    let told = Told::new();
    let (address, lease) = open_to(Arc::clone(&told)).await;
    let slow = ask(address).bearer_auth(lease.token()).json(&json!({
        "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "view", "arguments": { "path": "slow" } },
    }));
    let under_way = tokio::spawn(slow.send());
    told.is_under_way.notified().await;
    assert!(!under_way.is_finished(), "it was answered at once");
    lease.end();
    // The connection may be cut, or the call answered with its end; a result it must not have.
    if let Ok(answer) = under_way.await.expect("no panic") {
        let (status, said) = (answer.status(), answer.text().await.unwrap_or_default());
        assert!(
            status == StatusCode::GONE || said.is_empty() || said.contains("error"),
            "{status}: {said}"
        );
        assert!(!said.contains("content of"), "{said}");
    }
    let later = ask(address).bearer_auth(lease.token()).send().await;
    assert!(later.is_err() || later.is_ok_and(|answer| answer.status() == StatusCode::GONE));
}

/// The same over a unix socket, which is how a sandbox reaches it.
#[tokio::test]
async fn a_unix_socket_serves_too() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("tools.sock");
    let lease = Lease::grant().expect("a lease");
    let listener = UnixListener::bind(&path).expect("a socket");
    let server = Server::new(Offers::to_role(Role::Planner, Told::new()));
    tokio::spawn(door::over_socket(server, lease.clone(), listener));
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } },
    })
    .to_string();
    let mut stream = UnixStream::connect(&path).await.expect("connected");
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        lease.token(),
        body.len()
    );
    stream.write_all(request.as_bytes()).await.expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("read");
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("conductor"),
        "{answer}"
    );
}

fn calling(address: SocketAddr, lease: &Lease, id: u64, path: &str) -> reqwest::RequestBuilder {
    ask(address).bearer_auth(lease.token()).json(&json!({
        "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "view", "arguments": { "path": path } },
    }))
}

/// TOOL-1: what is no message, or too long a one, is answered as such, calls nothing, and the next call is served.
#[tokio::test]
async fn hostile_bodies_are_answered_and_the_door_stays_open() {
    let (address, lease) = open().await;
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let nested = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"view","arguments":{}1{}}}}}"#,
        "{\"a\":".repeat(10_000),
        "}".repeat(10_000)
    );
    let oversized = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"ping","x":"{}"}}"#,
        "x".repeat(21 << 20)
    );
    let mut bodies = vec![
        "",
        "{",
        "null",
        "[]",
        "\u{0}",
        r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
    ];
    bodies.extend([
        r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
        deep.as_str(),
        &nested,
        &oversized,
    ]);
    for body in bodies {
        let asked = ask(address).bearer_auth(lease.token()).body(body.to_owned());
        // Whoever sends too much may be hung up on before it is all sent.
        if let Ok(answer) = asked.send().await {
            let status = answer.status();
            let said = answer.text().await.unwrap_or_default();
            let start: String = body.chars().take(60).collect();
            assert!(!status.is_server_error(), "{start}: {status} {said}");
            assert!(!status.is_success() || said.contains("error"), "{start}: {said}");
        }
        let next = calling(address, &lease, 7, "a").send().await.expect("it goes on");
        assert!(next.text().await.expect("an answer").contains("content of a"));
    }
    let unknown = ask(address).bearer_auth(lease.token());
    let unknown = unknown.json(&json!({ "jsonrpc": "2.0", "id": 1, "method": "no/such", "params": {} }));
    let said = unknown
        .send()
        .await
        .expect("an answer")
        .text()
        .await
        .expect("words");
    assert!(said.contains("-32601") || said.contains("error"), "{said}");
    for kind in ["text/plain", "application/x-www-form-urlencoded"] {
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let asked = client
            .post(format!("http://{address}/mcp"))
            .bearer_auth(lease.token())
            .header("accept", "application/json, text/event-stream")
            .header("content-type", kind)
            .body(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#);
        assert!(!status(asked).await.is_success(), "a page could send {kind}");
    }
}

/// TOOL-4, S-44: two clients on one lease share its tools and its end, and neither hears the other's answers.
#[tokio::test]
async fn two_clients_on_one_lease_hear_their_own_answers_and_end_together() {
    let (address, lease) = open().await;
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..40_u64 {
        // Both count from the same numbers on, as clients do that know nothing of each other.
        let (lease, path) = (lease.clone(), format!("{}-{}", number % 2, number / 2));
        calls.spawn(async move {
            let answer = calling(address, &lease, number / 2, &path)
                .send()
                .await
                .expect("an answer");
            let said = answer.text().await.expect("words");
            assert!(said.contains(&format!("content of {path}\"")), "{path}: {said}");
        });
    }
    while let Some(call) = calls.join_next().await {
        call.expect("no panic");
    }
    lease.end();
    for path in ["0-0", "1-0"] {
        let later = calling(address, &lease, 1, path).send().await;
        assert!(later.is_err() || later.is_ok_and(|answer| answer.status() == StatusCode::GONE));
    }
}

/// TOOL-4: the same over HTTP as over pipes: a call that cannot be read is logged, and said to be wrong.
#[tokio::test]
async fn a_call_that_cannot_be_read_is_said_to_be_wrong_and_logged() {
    let told = Told::new();
    let (address, lease) = open_to(told.clone()).await;
    let asked = ask(address).bearer_auth(lease.token()).json(&json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "view", "arguments": "{\"path\":\"a\"}" },
    }));
    let said = asked
        .send()
        .await
        .expect("an answer")
        .text()
        .await
        .expect("words");
    assert!(
        said.contains("-32602") && said.contains("`arguments` must be an object"),
        "{said}"
    );
    let tried = told.misfits();
    assert_eq!((told.asked(), tried.len(), tried[0].tool), (vec![], 1, "view"));
    // The SDK gives up on these before anybody is asked.
    let call =
        |params: &str| format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{params}}}"#);
    for (body, status, logged) in [
        (
            call("5"),
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "no request of JSON-RPC",
        ),
        (
            call(&format!("\"{}\"", "x".repeat(21 << 20))),
            StatusCode::PAYLOAD_TOO_LARGE,
            "at most 20971520 bytes",
        ),
    ] {
        let asked = ask(address).bearer_auth(lease.token()).body(body.clone());
        let asked = asked.header("content-type", "application/json");
        assert_eq!(asked.send().await.expect("an answer").status(), status);
        let last = told.misfits().pop().expect("a line of the log");
        assert!(last.reason.contains(logged), "{}", last.reason);
        // A stranger's words are nobody's call.
        let stranger = ask(address).bearer_auth("guess").body(body);
        let stranger = stranger.header("content-type", "application/json").send().await;
        assert!(
            stranger.is_err() || stranger.is_ok_and(|answer| answer.status() == StatusCode::UNAUTHORIZED)
        );
    }
    assert_eq!((told.asked(), told.misfits().len()), (vec![], 3));
}
