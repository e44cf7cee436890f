//! Each protection of the ways out: what it stops, and that nothing else stops it without it (S-32…S-39).
//!
//! One row and one test per protection: an attack that tells whether it got through, told twice. The rows are a section of
//! `docs/protections.md`, checked against the code's own list. What is an absence, and so has no switch, stands below it:
//! there the test plays the reader that has what ours lacks.

use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use conductor_domain::egress::{EgressWay, Grant};
use conductor_gateway::Switch;
use conductor_gateway::door::Doors;
use conductor_gateway::egress::Limits;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::kit::{House, NAME, OK, PUBLIC, Server, Stage, both_ways, grant, request, showing};
use crate::matrix::{self, Line};
use crate::tunnels::{connect, hello_to, in_records, raw_server, with_extension};

struct Row {
    test: &'static str,
    requirement: &'static str,
    protection: Switch,
}

macro_rules! rows {
    ($( $test:ident: $requirement:literal $protection:ident $(beside $beside:ident)?; )+) => {
        const ROWS: &[Row] = &[ $( Row {
            test: stringify!($test),
            requirement: $requirement,
            protection: Switch::$protection,
        }, )+ ];

        mod each {
            use super::Switch;

            $(
                #[doc = $requirement]
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test() {
                    // Others that would stop the attack as well are left out both times.
                    let beside: &[Switch] = &[ $( Switch::$beside )? ];
                    assert!(!super::$test(beside).await, "in force");
                    assert!(super::$test(&[beside, &[Switch::$protection]].concat()).await, "left out");
                }
            )+
        }
    };
}

rows! {
    open_parent: "S-32" ClosedParent;
    foreign_token: "S-32" OwnToken;
    crowd: "S-33" VisitorLimit;
    host_that_nobody_granted: "S-34" GrantedHosts;
    address_as_a_name: "S-35" HostNames beside GrantedHosts;
    name_that_leads_inside: "S-36" PublicAddresses;
    name_that_leads_to_this_host: "S-36" ForeignAddresses;
    bad_answer_behind_a_good_one: "S-36" EveryAnswer;
    name_that_changes_its_mind: "S-36" ResolvedOnce;
    port_that_nobody_granted: "S-37" GrantedPorts;
    host_in_a_field_only: "S-38" AbsoluteForm;
    foreign_host_field: "S-38" OwnHost;
    second_request_elsewhere: "S-38" CheckedAnew;
    tunnel_without_tls: "S-39" TlsOnly;
    hello_to_another: "S-39" SameName;
    hello_with_a_hidden_name: "S-39" NoHiddenName;
    hello_of_any_size: "S-39" HelloSize;
    hello_that_never_ends: "S-39" HelloTime;
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// A house without these protections whose `NAME` leads to a server that answers, and which may reach it both ways.
async fn house(without: &[Switch], change: impl FnOnce(&mut Stage)) -> (House, Server) {
    let server = Server::answering(OK).await;
    let mut stage = Stage::with(server.address);
    change(&mut stage);
    (
        House::without(stage, both_ways(), Limits::default(), without),
        server,
    )
}

fn get(target: &str) -> String {
    request(&format!("GET {target}"), "Connection: close\r\n")
}

fn is_answered(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 200 ")
}

async fn open_parent(without: &[Switch]) -> bool {
    let home = tempfile::tempdir().expect("a directory");
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(home.path(), open).expect("ours");
    match without.first() {
        Some(switch) => Doors::below_without(home.path(), *switch).is_ok(),
        None => Doors::below(home.path()).is_ok(),
    }
}

async fn foreign_token(without: &[Switch]) -> bool {
    let (house, _server) = house(without, |_| {}).await;
    let words = format!(
        "GET http://{NAME}/ HTTP/1.1\r\n{}Connection: close\r\n\r\n",
        showing("the-token-of-another")
    );
    is_answered(&house.say(words).await)
}

/// More than one visitor is served at a time where one is the limit.
async fn crowd(without: &[Switch]) -> bool {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let stage = Stage::with(listener.local_addr().expect("an address"));
    let limits = Limits {
        visitors: 1,
        ..Limits::default()
    };
    let house = House::without(stage, both_ways(), limits, without);
    // With the limit the second one never comes while the first is here; without it, it surely does.
    let patience = if without.is_empty() { 300 } else { 60_000 };
    let most = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&most);
    let serving = tokio::spawn(async move {
        let (here, second) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        while let Ok((mut stream, _)) = listener.accept().await {
            let (here, second, seen) = (Arc::clone(&here), Arc::clone(&second), Arc::clone(&seen));
            tokio::spawn(async move {
                let arrived = second.notified();
                if here.fetch_add(1, Ordering::SeqCst) == 0 {
                    let _ = tokio::time::timeout(Duration::from_millis(patience), arrived).await;
                } else {
                    second.notify_waiters();
                }
                seen.fetch_max(here.load(Ordering::SeqCst), Ordering::SeqCst);
                here.fetch_sub(1, Ordering::SeqCst);
                let _ = stream.write_all(OK.as_bytes()).await;
            });
        }
    });
    let words = get(&format!("http://{NAME}/"));
    let (one, other) = tokio::join!(house.say(&words), house.say(&words));
    assert!(is_answered(&one) && is_answered(&other), "{one} {other}");
    serving.abort();
    most.load(Ordering::SeqCst) > 1
}

async fn host_that_nobody_granted(without: &[Switch]) -> bool {
    let (house, _server) = house(without, |stage| {
        stage.names.insert("forge.example".into(), vec![address(PUBLIC)]);
    })
    .await;
    is_answered(&house.say(get("http://forge.example/")).await)
}

async fn address_as_a_name(without: &[Switch]) -> bool {
    let (house, _server) = house(without, |_| {}).await;
    house.say(get("http://127.1/")).await;
    house.stage.log().contains(&"resolve 127.1".to_owned())
}

/// The name leads to an address inside, where a server answers.
async fn leads_to(without: &[Switch], answers: &[&str], change: impl FnOnce(&mut Stage)) -> bool {
    let (house, _server) = house(without, |stage| {
        let answers: Vec<IpAddr> = answers.iter().map(|text| address(text)).collect();
        let server = stage.servers[&(address(PUBLIC), 80).into()];
        stage.servers.clear();
        for inside in answers.iter().filter(|inside| **inside != address(PUBLIC)) {
            stage.servers.insert((*inside, 80).into(), server);
        }
        stage.names.insert(NAME.into(), answers);
        change(stage);
    })
    .await;
    is_answered(&house.say(get(&format!("http://{NAME}/"))).await)
}

async fn name_that_leads_inside(without: &[Switch]) -> bool {
    leads_to(without, &["169.254.169.254"], |_| {}).await
}

async fn name_that_leads_to_this_host(without: &[Switch]) -> bool {
    leads_to(without, &["93.184.216.99"], |stage| {
        stage.own = vec![address("93.184.216.99")];
    })
    .await
}

async fn bad_answer_behind_a_good_one(without: &[Switch]) -> bool {
    leads_to(without, &[PUBLIC, "10.0.0.1"], |_| {}).await
}

async fn name_that_changes_its_mind(without: &[Switch]) -> bool {
    leads_to(without, &["10.0.0.1"], |stage| {
        let inside = stage.names.insert(NAME.into(), vec![address(PUBLIC)]);
        stage.later.insert(NAME.into(), inside.expect("a name"));
    })
    .await
}

async fn port_that_nobody_granted(without: &[Switch]) -> bool {
    let (house, _server) = house(without, |_| {}).await;
    is_answered(&house.say(get(&format!("http://{NAME}:8443/"))).await)
}

async fn host_in_a_field_only(without: &[Switch]) -> bool {
    let (house, _server) = house(without, |_| {}).await;
    let fields = format!("Host: {NAME}\r\nConnection: close\r\n");
    is_answered(&house.say(request("GET /", &fields)).await)
}

async fn foreign_host_field(without: &[Switch]) -> bool {
    let (house, server) = house(without, |_| {}).await;
    let fields = "Host: another.example\r\nConnection: close\r\n";
    let answer = house.say(request(&format!("GET http://{NAME}/"), fields)).await;
    assert!(is_answered(&answer), "{answer}");
    server.received()[0].contains("another.example")
}

async fn second_request_elsewhere(without: &[Switch]) -> bool {
    let (house, server) = house(without, |stage| {
        stage.names.insert("forge.example".into(), vec![address(PUBLIC)]);
    })
    .await;
    let first = request(&format!("GET http://{NAME}/1"), "");
    house
        .say(format!("{first}{}", get("http://forge.example/2")))
        .await;
    server
        .received()
        .iter()
        .any(|received| received.contains("Host: forge.example"))
}

/// Sends these bytes through a tunnel; tells whether all of them came out.
async fn passes(without: &[Switch], bytes: &[u8]) -> bool {
    let (address, received) = raw_server().await;
    let house = House::without(Stage::with(address), both_ways(), Limits::default(), without);
    let mut stream = connect(&house).await;
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    // The end comes when the other side has read everything, or with the refusal.
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said).await;
    let received = received.lock().expect("not poisoned");
    *received == bytes
}

async fn tunnel_without_tls(without: &[Switch]) -> bool {
    passes(without, b"SSH-2.0-OpenSSH_9.2\r\n").await
}

async fn hello_to_another(without: &[Switch]) -> bool {
    passes(without, &hello_to("another.example")).await
}

async fn hello_with_a_hidden_name(without: &[Switch]) -> bool {
    passes(without, &with_extension(&hello_to(NAME), 0xfe0d, &[0; 8])).await
}

async fn hello_of_any_size(without: &[Switch]) -> bool {
    const PADDING: u16 = 21;
    let large = with_extension(&hello_to(NAME), PADDING, &vec![0; 20_000]);
    passes(without, &in_records(&large, 10_000)).await
}

/// Somebody who says half a hello and no more is still waited for.
async fn hello_that_never_ends(without: &[Switch]) -> bool {
    let (address, _received) = raw_server().await;
    let limits = Limits {
        head: Duration::from_millis(200),
        ..Limits::default()
    };
    let house = House::without(Stage::with(address), both_ways(), limits, without);
    let mut stream = connect(&house).await;
    stream.write_all(&hello_to(NAME)[..20]).await.expect("it listens");
    // With the limit the alert comes, however late; without it nothing ever does.
    let patience = if without.is_empty() { 60_000 } else { 1_000 };
    let alert = stream.read_u8();
    let given_up = tokio::time::timeout(Duration::from_millis(patience), alert).await;
    given_up.is_err()
}

/// S-34: the repositories' own forge is granted to nobody by default, and neither is anything else.
#[tokio::test]
async fn nothing_is_granted_by_default() {
    let server = Server::answering(OK).await;
    let none: Vec<Grant> = Vec::new();
    let house = House::without(Stage::with(server.address), none, Limits::default(), &[]);
    for words in [
        get(&format!("http://{NAME}/")),
        request(&format!("CONNECT {NAME}:443"), ""),
    ] {
        assert!(house.say(words).await.starts_with("HTTP/1.1 403 "));
    }
    assert_eq!(house.stage.log(), Vec::<String>::new());
    let one_way = vec![grant(NAME, EgressWay::Plain, &[])];
    let house = House::without(Stage::with(server.address), one_way, Limits::default(), &[]);
    let tunnel = request(&format!("CONNECT {NAME}:443"), "");
    assert!(house.say(tunnel).await.starts_with("HTTP/1.1 403 "));
}

/// S-33: a reader with a control buffer would have got the descriptor that ours drops
/// (`doors::a_passed_descriptor_is_dropped`).
#[test]
fn a_reader_with_a_control_buffer_would_keep_a_passed_descriptor() {
    use std::io::{IoSlice, IoSliceMut};
    use std::os::fd::AsFd as _;

    use rustix::net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
        SendFlags, recvmsg, sendmsg,
    };

    let (visitor, door) = std::os::unix::net::UnixStream::pair().expect("a pair");
    let (_reader, writer) = std::io::pipe().expect("a pipe");
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let passed = [writer.as_fd()];
    assert!(ancillary.push(SendAncillaryMessage::ScmRights(&passed)));
    sendmsg(
        &visitor,
        &[IoSlice::new(b"GET ")],
        &mut ancillary,
        SendFlags::empty(),
    )
    .expect("sent");

    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = [0; 4];
    let mut slices = [IoSliceMut::new(&mut bytes)];
    recvmsg(&door, &mut slices, &mut ancillary, RecvFlags::CMSG_CLOEXEC).expect("received");
    let descriptors = ancillary.drain().find_map(|message| {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            Some(descriptors.count())
        } else {
            None
        }
    });
    assert_eq!(descriptors, Some(1));
}

/// S-32…S-39: every switch of the code has a row, and every row stands in the matrix.
#[test]
fn the_matrix_has_every_protection() {
    let mut lines = Vec::new();
    for switch in Switch::ALL {
        let rows: Vec<&Row> = ROWS.iter().filter(|row| row.protection == *switch).collect();
        lines.push(Line {
            protection: format!("ways out: {switch:?}"),
            requirement: rows
                .first()
                .map(|row| row.requirement.to_owned())
                .unwrap_or_default(),
            tests: rows
                .iter()
                .map(|row| format!("conductor-gateway::it protections::each::{}", row.test))
                .collect(),
        });
    }
    matrix::check("egress", &lines);
}
