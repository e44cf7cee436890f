//! Who finds a socket, who may speak there, and how many at a time.

use std::io::IoSlice;
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use conductor_domain::egress::EgressReason;
use conductor_gateway::door::{Doors, Error};
use conductor_gateway::egress::{Egress, Limits};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::Notify;

use crate::kit::{House, NAME, OK, Server, Stage, TOKEN, both_ways, listen, request, showing, visitor};

fn mode(path: &std::path::Path) -> u32 {
    std::fs::symlink_metadata(path)
        .expect("it is there")
        .permissions()
        .mode()
        & 0o7777
}

/// S-32.
#[tokio::test]
async fn the_parent_is_closed_and_the_directory_is_of_one_sandbox() {
    let house = House::new(Stage::default());
    assert_eq!(mode(&house.home.path().join("sockets")), 0o700);
    let directory = house.door.directory().to_owned();
    assert_eq!(directory, house.home.path().join("sockets/r1.7.0"));
    assert_eq!((mode(&directory), mode(&house.socket())), (0o755, 0o666));

    let mut visit = house.knock().await;
    visit.write_all(b"GET ").await.expect("it listens");
    house.door.close().await;
    assert!(!directory.exists());
    assert_eq!(listen(&mut visit).await, "", "a visit ends with its door");
}

/// S-32.
#[tokio::test]
async fn a_parent_that_others_can_enter_is_refused() {
    let home = tempfile::tempdir().expect("a directory");
    let parent = home.path().join("sockets");
    std::fs::create_dir(&parent).expect("a directory");
    std::fs::set_permissions(&parent, std::fs::Permissions::from_mode(0o755)).expect("ours");
    assert!(matches!(Doors::below(&parent), Err(Error::Open { .. })));

    let link = home.path().join("link");
    let closed = home.path().join("closed");
    Doors::below(&closed).expect("a closed parent");
    std::os::unix::fs::symlink(&closed, &link).expect("a link");
    assert!(matches!(Doors::below(&link), Err(Error::Open { .. })));
}

/// S-32: a door that a dead process left behind is opened anew, below a path of any length.
#[tokio::test]
async fn a_door_can_be_opened_anew_and_below_a_long_path() {
    let home = tempfile::tempdir().expect("a directory");
    let deep = home.path().join("d".repeat(120)).join("sockets");
    let doors = Doors::below(&deep).expect("a parent");
    let egress = Egress::new(
        Arc::new(Stage::default()),
        Arc::new(crate::kit::Heard::default()),
        Limits::default(),
    );
    let first = egress
        .open(&doors, visitor("r1.7.0", TOKEN, both_ways()))
        .expect("a door");
    std::mem::forget(first);
    let second = egress
        .open(&doors, visitor("r1.7.0", TOKEN, both_ways()))
        .expect("a door");
    assert!(second.directory().join("egress").exists());
}

/// S-32: identity comes from the socket, so the token of another sandbox opens nothing.
#[tokio::test]
async fn only_the_token_of_this_socket_counts() {
    let server = Server::answering(OK).await;
    let house = House::new(Stage::with(server.address));
    let ask = |fields: &str| format!("GET http://{NAME}/ HTTP/1.1\r\n{fields}\r\n");
    for fields in [
        String::new(),
        showing("the-token-of-another"),
        showing(""),
        showing(&TOKEN[1..]),
        format!("{}{}", showing(TOKEN), showing("x")),
        format!("Proxy-Authorization: Bearer {TOKEN}\r\n"),
        "Proxy-Authorization: Basic %%%\r\n".to_owned(),
        "Proxy-Authorization: Basic\r\n".to_owned(),
        showing(TOKEN).replace("Proxy-", ""),
    ] {
        let answer = house.say(ask(&fields)).await;
        assert!(answer.starts_with("HTTP/1.1 407 "), "{fields}: {answer}");
        assert!(answer.contains("Proxy-Authenticate: Basic"), "{answer}");
    }
    assert_eq!(house.reasons(), [EgressReason::WrongToken]);
    assert_eq!(house.stage.log(), Vec::<String>::new());
    assert!(house.say(ask(&showing(TOKEN))).await.starts_with("HTTP/1.1 200 "));
    assert!(
        !server.received()[0].to_lowercase().contains("proxy-"),
        "the token stays here"
    );
}

/// S-33: what is passed along with bytes is dropped by the kernel.
#[tokio::test]
async fn a_passed_descriptor_is_dropped() {
    let house = House::new(Stage::default());
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let stream = std::os::unix::net::UnixStream::connect(house.socket()).expect("a socket");
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let passed = [writer.as_fd()];
    assert!(ancillary.push(SendAncillaryMessage::ScmRights(&passed)));
    let words = request(&format!("GET http://{NAME}/"), "");
    let bytes = [IoSlice::new(words.as_bytes())];
    sendmsg(&stream, &bytes, &mut ancillary, SendFlags::empty()).expect("sent");
    drop(writer);

    stream.set_nonblocking(true).expect("ours");
    let mut stream = UnixStream::from_std(stream).expect("a stream");
    // An answer means that the bytes were read; the connection stays open on our side.
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 502");
    let end = tokio::task::spawn_blocking(move || std::io::Read::read(&mut reader, &mut [0; 1]));
    let end = tokio::time::timeout(Duration::from_secs(10), end).await;
    let end = end.expect("nobody holds the other end").expect("no panic");
    assert_eq!(end.expect("a pipe"), 0);
}

/// S-33.
#[tokio::test]
async fn no_more_visitors_than_the_limit_at_a_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let house = House::with(
        Stage::with(listener.local_addr().expect("an address")),
        both_ways(),
        Limits {
            visitors: 2,
            ..Limits::default()
        },
    );
    let most = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&most);
    tokio::spawn(async move {
        let (here, third) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        while let Ok((mut stream, _)) = listener.accept().await {
            let (here, third, seen) = (Arc::clone(&here), Arc::clone(&third), Arc::clone(&seen));
            tokio::spawn(async move {
                let now = here.fetch_add(1, Ordering::SeqCst) + 1;
                seen.fetch_max(now, Ordering::SeqCst);
                if now > 2 {
                    third.notify_waiters();
                }
                // Long enough for a third one to come, if it could.
                let _ = tokio::time::timeout(Duration::from_millis(200), third.notified()).await;
                here.fetch_sub(1, Ordering::SeqCst);
                let _ = stream.write_all(OK.as_bytes()).await;
            });
        }
    });
    let ask = request(&format!("GET http://{NAME}/"), "Connection: close\r\n");
    let say = || Box::pin(house.say(&ask));
    let (a, b, c, d) = tokio::join!(say(), say(), say(), say());
    for answer in [a, b, c, d] {
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    assert_eq!(most.load(Ordering::SeqCst), 2);
}
