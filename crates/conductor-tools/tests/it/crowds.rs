//! Crowds at the door: clients that only take up room, and one that calls everything at once.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use conductor_domain::role::Role;
use conductor_tools::{Lease, Offers, Server, Shelf, door};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines,
};
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

/// TOOL-1, TOOL-4: of many calls at once so many are made, the rest wait and reach no tool; when some are done, they are made.
#[tokio::test]
async fn of_many_calls_at_once_only_so_many_are_under_way() {
    let told = Told::new();
    let (address, lease) = open(told.clone()).await;
    let mut under_way = tokio::task::JoinSet::new();
    let ask = |id, path| {
        let words = request(address, &lease, &viewing(id, path));
        async move {
            let mut stream = TcpStream::connect(address).await.expect("it listens");
            said(&mut stream, &words).await
        }
    };
    for id in 0..16 {
        under_way.spawn(ask(id, "held"));
    }
    until_asked(&told, 16).await;
    let mut waiting = tokio::task::JoinSet::new();
    for id in 16..20 {
        waiting.spawn(ask(id, "a"));
    }
    let early = tokio::time::timeout(Duration::from_millis(300), waiting.join_next()).await;
    assert!(early.is_err(), "one was answered beside them");
    assert_eq!(told.asked().len(), 16, "a tool was called beside them");
    told.go_on.notify_waiters();
    while let Some(answer) = under_way.join_next().await {
        let answer = answer.expect("no panic");
        assert!(answer.contains("held"), "{answer}");
    }
    while let Some(answer) = waiting.join_next().await {
        let answer = answer.expect("no panic");
        assert!(answer.contains("content of a"), "{answer}");
    }
    assert_eq!(told.misfits(), []);
}

type Heard = Lines<BufReader<DuplexStream>>;

/// A client on pipes that said these lines after its greeting, which was answered.
async fn client<S: Shelf>(server: Server<S>, lease: &Lease, said: &[String]) -> (DuplexStream, Heard) {
    let (mut write, there) = tokio::io::duplex(1 << 20);
    let (here, read) = tokio::io::duplex(1 << 20);
    let lease = lease.clone();
    tokio::spawn(async move { door::over_pipes(server, &lease, there, here).await });
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let hello = json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": hello });
    let greeted = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let words = format!("{hello}\n{greeted}\n{}\n", said.join("\n"));
    write.write_all(words.as_bytes()).await.expect("written");
    let mut heard = BufReader::new(read).lines();
    let answer = next(&mut heard).await;
    assert!(answer.contains("serverInfo"), "{answer}");
    (write, heard)
}

async fn next(heard: &mut Heard) -> String {
    let line = tokio::time::timeout(FOR_EVER, heard.next_line()).await;
    line.expect("in time").expect("read").expect("a line")
}

fn views(ids: std::ops::Range<u64>, path: &str) -> Vec<String> {
    ids.map(|id| viewing(id, path).to_string()).collect()
}

fn shared(told: &Arc<Told>) -> (Server<Offers>, Lease) {
    let server = Server::new(Offers::to_role(Role::Planner, told.clone()));
    (server, Lease::grant().expect("a lease"))
}

/// TOOL-1: the same over two pipes, where one client sends everything without waiting.
#[tokio::test]
async fn one_client_on_pipes_has_no_more_under_way() {
    let told = Told::new();
    let (server, lease) = shared(&told);
    let (_write, mut heard) = client(server, &lease, &views(0..96, "held")).await;
    for made in 1..=6 {
        until_asked(&told, 16 * made).await;
        let early = tokio::time::timeout(Duration::from_millis(50), heard.next_line()).await;
        assert!(early.is_err(), "one was answered beside them");
        assert_eq!(told.asked().len(), 16 * made, "a tool was called beside them");
        told.go_on.notify_waiters();
        for _ in 0..16 {
            let answer = next(&mut heard).await;
            assert!(answer.contains("held"), "{answer}");
        }
    }
}

/// TOOL-1: calls that are sent without waiting for answers are all made, and those that cannot be read are all logged.
#[tokio::test]
async fn calls_that_are_sent_ahead_are_all_made() {
    let told = Told::new();
    let (server, lease) = shared(&told);
    let mut lines = views(0..400, "a");
    lines.extend((400..500).map(|id| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "view", "arguments": 5 } })
            .to_string()
    }));
    let (_write, mut heard) = client(server, &lease, &lines).await;
    let mut made = 0;
    let mut unfit = 0;
    for _ in 0..500 {
        let answer = next(&mut heard).await;
        made += usize::from(answer.contains("content of a"));
        unfit += usize::from(answer.contains("must be an object"));
    }
    assert_eq!((made, unfit), (400, 100));
    assert_eq!((told.asked().len(), told.misfits().len()), (400, 100));
}

/// How many calls the log says were refused because others were under way.
fn refused(told: &Told) -> usize {
    let misfits = told.misfits();
    let count = |reason: &str| {
        let count = reason.starts_with("busy").then(|| reason.rsplit(": ").next())?;
        count?.parse::<usize>().ok()
    };
    misfits.iter().filter_map(|call| count(&call.reason)).sum()
}

/// TOOL-4, S-44: where more wait than there is room for, the rest are told to try again, reach no tool, and stand in the log by
/// their number.
#[tokio::test]
async fn calls_that_may_not_even_wait_are_refused_and_logged() {
    let told = Told::new();
    let (server, lease) = shared(&told);
    let (_first, mut heard) = client(server.clone(), &lease, &views(0..64, "held")).await;
    until_asked(&told, 16).await;
    let early = tokio::time::timeout(Duration::from_millis(300), heard.next_line()).await;
    assert!(early.is_err(), "one had no room");
    let (_second, mut heard) = client(server, &lease, &views(0..50, "a")).await;
    for _ in 0..50 {
        let answer = next(&mut heard).await;
        let is_refusal = answer.contains("busy") && answer.contains("try again");
        assert!(is_refusal && answer.contains(r#""isError":true"#), "{answer}");
    }
    assert_eq!((told.asked().len(), refused(&told)), (16, 50));
}

/// TOOL-4: a call that is taken back while it waits, by its client or by the end of the lease, is not made any more, and
/// stands in the log.
#[tokio::test]
async fn a_call_that_is_taken_back_while_it_waits_is_logged_and_not_made() {
    let told = Told::new();
    let (server, lease) = shared(&told);
    let mut lines = views(0..16, "held");
    lines.extend(views(16..18, "a"));
    lines.push(
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 16 } })
            .to_string(),
    );
    lines.push(json!({ "jsonrpc": "2.0", "id": "list", "method": "tools/list" }).to_string());
    let (_write, mut heard) = client(server, &lease, &lines).await;
    let answer = next(&mut heard).await;
    assert!(answer.contains(r#""id":"list""#), "{answer}");
    let until_refused = async |calls| {
        let told = async {
            while refused(&told) < calls {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(FOR_EVER, told)
            .await
            .expect("all are logged");
    };
    until_refused(1).await;
    lease.end();
    until_refused(2).await;
    told.go_on.notify_waiters();
    for _ in 0..16 {
        next(&mut heard).await;
    }
    assert_eq!((told.asked().len(), refused(&told)), (16, 2));
}

/// Says one line after the other on two small pipes, and counts the bytes that were taken.
fn flood(lines: impl Iterator<Item = String> + Send + 'static) -> (Arc<AtomicUsize>, DuplexStream) {
    let (mut write, there) = tokio::io::duplex(4096);
    let (here, read) = tokio::io::duplex(4096);
    let lease = Lease::grant().expect("a lease");
    let server = Server::new(Offers::to_role(Role::Planner, Told::new()));
    tokio::spawn(async move { door::over_pipes(server, &lease, there, here).await });
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let hello = json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": hello });
    let greeted = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let taken = Arc::new(AtomicUsize::default());
    let count = Arc::clone(&taken);
    tokio::spawn(async move {
        for line in [hello.to_string(), greeted.to_string()].into_iter().chain(lines) {
            // The story may be over before all is said.
            let Ok(()) = write.write_all(format!("{line}\n").as_bytes()).await else {
                return;
            };
            count.fetch_add(line.len() + 1, Ordering::Relaxed);
        }
        // It stays, as one who waits for answers does.
        std::future::pending::<()>().await;
    });
    (taken, read)
}

async fn until_it_stands_still(taken: &AtomicUsize) -> usize {
    let mut before = usize::MAX;
    while taken.load(Ordering::Relaxed) != before {
        before = taken.load(Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    before
}

/// What is said on and on, how many bytes of it are too many, and the line of each number.
type Flood = (&'static str, usize, Box<dyn Fn(usize) -> String + Send>);

const SMALL: usize = 64 << 10;
const LARGE: usize = 16 << 20;

/// TOOL-1: a client that reads none of its answers is not read on for long, whatever it says, so that what it is owed waits
/// in its own memory.
#[tokio::test]
async fn a_client_that_reads_nothing_is_not_read_for_long() {
    let listing = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#);
    // Each waits for its answer, and is kept until then.
    let long = |id: usize| {
        let mut call = viewing(id as u64, "held");
        call["params"]["_meta"] = json!({ "padding": "x".repeat(1 << 20) });
        call.to_string()
    };
    let floods: Vec<Flood> = vec![
        ("requests", SMALL, Box::new(move |n| listing(&n.to_string()))),
        ("requests of one id", SMALL, Box::new(move |_| listing("1"))),
        ("no JSON", SMALL, Box::new(|_| "{".repeat(40))),
        (
            "no requests",
            SMALL,
            Box::new(|_| "[]".to_owned() + &" ".repeat(40)),
        ),
        ("long requests", LARGE, Box::new(long)),
    ];
    for (what, most, line) in floods {
        let bytes = line(0).len();
        let (taken, _unread) = flood((0..4 * most / bytes).map(line));
        let taken = until_it_stands_still(&taken).await;
        assert!(taken < most, "{what}: {taken} bytes were taken");
    }
}

/// TOOL-1: once such a client reads, it gets all its answers.
#[tokio::test]
async fn a_client_that_reads_late_gets_every_answer() {
    let requests = 2000;
    let listing = |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#);
    let (taken, read) = flood((0..requests).map(listing));
    until_it_stands_still(&taken).await;
    let mut heard = BufReader::new(read).lines();
    let mut answered = BTreeSet::new();
    for _ in 0..=requests {
        let line = tokio::time::timeout(FOR_EVER, heard.next_line()).await;
        let line = line.expect("in time").expect("read").expect("a line");
        let answer: Value = serde_json::from_str(&line).expect("JSON");
        assert!(answer["result"].is_object(), "{answer}");
        answered.insert(answer["id"].to_string());
    }
    assert_eq!(answered.len(), requests + 1);
}
