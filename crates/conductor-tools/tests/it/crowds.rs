//! Crowds at the door: clients that only take up room, and one that calls everything at once.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use conductor_domain::role::Role;
use conductor_tools::{Lease, Offers, Server, door};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::told::Told;

/// Longer than anything here takes; whoever waits so long waits for ever.
const FOR_EVER: Duration = Duration::from_secs(30);

async fn open(told: Arc<Told>) -> (SocketAddr, Lease) {
    let lease = Lease::grant().expect("a lease");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = Server::new(Offers::to_role(Role::Planner, told));
    tokio::spawn(door::over_loopback(server, lease.clone(), listener));
    (address, lease)
}

fn viewing(id: u64, path: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "view", "arguments": { "path": path } } })
}

/// What a client on a connection of its own sends.
fn request(address: SocketAddr, lease: &Lease, body: &Value) -> String {
    let body = body.to_string();
    format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        lease.token(),
        body.len()
    )
}

async fn said(stream: &mut TcpStream, words: &str) -> String {
    stream.write_all(words.as_bytes()).await.expect("it listens");
    let mut answer = String::new();
    let heard = tokio::time::timeout(FOR_EVER, stream.read_to_string(&mut answer)).await;
    heard.expect("it never hangs up").expect("it is read");
    answer
}

async fn until_asked(told: &Told, calls: usize) {
    let asked = async {
        while told.asked().len() < calls {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(FOR_EVER, asked).await.expect("all are made");
}

/// TOOL-1, S-44: neighbours who only connect take the seats that there are and no more, and the lease's holder comes in when
/// one of them is over.
#[tokio::test]
async fn only_so_many_are_inside_at_once() {
    let (address, lease) = open(Told::new()).await;
    let mut idle = Vec::new();
    for _ in 0..32 {
        idle.push(TcpStream::connect(address).await.expect("it listens"));
    }
    let mut holder = TcpStream::connect(address).await.expect("it waits");
    let words = request(address, &lease, &viewing(1, "a"));
    holder.write_all(words.as_bytes()).await.expect("it waits");
    let mut byte = [0];
    let early = tokio::time::timeout(Duration::from_millis(300), holder.read(&mut byte)).await;
    assert!(early.is_err(), "one more came in");
    idle.pop();
    let answer = said(&mut holder, "").await;
    assert!(answer.contains("content of a"), "{answer}");
}

/// S-44: a stranger who asks on and on is told once, and hung up on, whether it reads or not.
#[tokio::test]
async fn a_stranger_is_told_once_and_hung_up_on() {
    let (address, _lease) = open(Told::new()).await;
    let ask = format!("GET /mcp HTTP/1.1\r\nhost: {address}\r\n\r\n");
    let mut stranger = TcpStream::connect(address).await.expect("it listens");
    stranger
        .write_all(ask.repeat(3).as_bytes())
        .await
        .expect("it listens");
    let mut heard = Vec::new();
    let ended = tokio::time::timeout(FOR_EVER, stranger.read_to_end(&mut heard)).await;
    // What it said and nobody read is answered by a reset.
    let _hung_up = ended.expect("it never hangs up");
    let heard = String::from_utf8(heard).expect("text");
    assert!(heard.matches("HTTP/1.1 401").count() <= 1, "{heard}");
}

/// TOOL-1, TOOL-4: of many calls at once so many are made, the rest are told to try again and reach no tool; when some are
/// done, others are served.
#[tokio::test]
async fn of_many_calls_at_once_only_so_many_are_under_way() {
    let told = Told::new();
    let (address, lease) = open(told.clone()).await;
    let mut under_way = tokio::task::JoinSet::new();
    for id in 0..16 {
        let words = request(address, &lease, &viewing(id, "held"));
        under_way.spawn(async move {
            let mut stream = TcpStream::connect(address).await.expect("it listens");
            said(&mut stream, &words).await
        });
    }
    until_asked(&told, 16).await;
    for id in 16..20 {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let answer = said(&mut stream, &request(address, &lease, &viewing(id, "a"))).await;
        assert!(
            answer.contains("busy") && answer.contains("try again") && answer.contains(r#""isError":true"#),
            "{answer}"
        );
    }
    assert_eq!(told.asked().len(), 16, "a tool was called beside them");
    told.go_on.notify_waiters();
    while let Some(answer) = under_way.join_next().await {
        let answer = answer.expect("no panic");
        assert!(answer.contains("held"), "{answer}");
    }
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let answer = said(&mut stream, &request(address, &lease, &viewing(20, "a"))).await;
    assert!(answer.contains("content of a"), "{answer}");
}

/// TOOL-1: the same over two pipes, where one client sends everything without waiting.
#[tokio::test]
async fn one_client_on_pipes_has_no_more_under_way() {
    let told = Told::new();
    let (mut write, there) = tokio::io::duplex(1 << 20);
    let (here, read) = tokio::io::duplex(1 << 20);
    let lease = Lease::grant().expect("a lease");
    let server = Server::new(Offers::to_role(Role::Planner, told.clone()));
    tokio::spawn(async move { door::over_pipes(server, &lease, there, here).await });
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let mut lines =
        vec![json!({ "jsonrpc": "2.0", "id": 1000, "method": "initialize", "params": hello }).to_string()];
    lines.push(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
    lines.extend((0..100).map(|id| viewing(id, "held").to_string()));
    write
        .write_all((lines.join("\n") + "\n").as_bytes())
        .await
        .expect("written");
    let mut heard = BufReader::new(read).lines();
    let mut busy = 0;
    // The greeting's answer, and one for each call that found no room.
    for _ in 0..=84 {
        let line = tokio::time::timeout(FOR_EVER, heard.next_line()).await;
        let line = line.expect("in time").expect("read").expect("a line");
        busy += usize::from(line.contains("busy") && line.contains("try again"));
    }
    assert_eq!((busy, told.asked().len()), (84, 16));
    told.go_on.notify_waiters();
    for _ in 0..16 {
        let line = tokio::time::timeout(FOR_EVER, heard.next_line()).await;
        let line = line.expect("in time").expect("read").expect("a line");
        assert!(line.contains("held"), "{line}");
    }
}
