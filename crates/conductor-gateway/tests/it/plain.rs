//! Plain requests: what goes out, what comes back, and that each is checked anew.

use conductor_domain::egress::{EgressReason, EgressWay};
use conductor_gateway::egress::Limits;

use crate::kit::{House, NAME, OK, Server, Stage, grant, request};

/// S-38.
#[tokio::test]
async fn what_goes_out_is_framed_and_addressed_by_us() {
    let server = Server::answering(OK).await;
    let house = House::new(Stage::with(server.address));
    let fields = "Host: evil.example\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nTE: trailers\r\nX-End: 2\r\n\
                  Proxy-Connection: keep-alive\r\nContent-Length: 4\r\n";
    let words = request("PUT HTTP://FILES.example/a/../b?q=%20", fields) + "body";
    let answer = house.say(words).await;
    assert_eq!(
        answer,
        "HTTP/1.1 200 \r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok"
    );
    assert_eq!(
        server.received(),
        [format!(
            "PUT /a/../b?q=%20 HTTP/1.1\r\nHost: {NAME}\r\nx-end: 2\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody"
        )]
    );
    assert_eq!(house.denials(), []);
}

/// S-38: the second request on a connection is checked like the first.
#[tokio::test]
async fn every_request_on_a_connection_is_checked_anew() {
    let server = Server::answering(OK).await;
    let house = House::new(Stage::with(server.address));
    let first = request(&format!("GET http://{NAME}/1"), "");
    let second = request("GET http://evil.example/2", &format!("Host: {NAME}\r\n"));
    let third = request(&format!("GET http://{NAME}/3"), "");
    let answer = house.say(format!("{first}{second}{third}")).await;
    let statuses: Vec<&str> = answer.matches("HTTP/1.1 ").collect();
    assert_eq!(statuses.len(), 2, "{answer}");
    assert!(answer.contains("HTTP/1.1 403 Forbidden"), "{answer}");
    assert_eq!(server.received().len(), 1);
    let denials = house.denials();
    assert_eq!((denials[0].host.as_str(), denials[0].port), ("evil.example", 80));
    assert_eq!(denials[0].reason, EgressReason::HostNotGranted);
    assert_eq!(denials[0].command.as_deref(), Some("call-1"));
}

/// S-38: chunks are read and written anew, and two requests do not run into each other.
#[tokio::test]
async fn bodies_are_framed_anew() {
    let server = Server::answering(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n00a\r\n0123456789\r\n0\r\n\r\n",
    )
    .await;
    let house = House::new(Stage::with(server.address));
    let ask = request(&format!("POST http://{NAME}/"), "Transfer-Encoding: Chunked\r\n")
        + "5\r\nhello\r\n0\r\n\r\n";
    let answer = house.say(format!("{ask}{ask}")).await;
    let one = "HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n\
               3\r\nabc\r\na\r\n0123456789\r\n0\r\n\r\n";
    assert_eq!(answer, format!("{one}{one}"));
    for received in server.received() {
        assert!(
            received.ends_with("\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
            "{received}"
        );
    }
    assert_eq!(server.received().len(), 2);
}

/// S-38: an answer goes back as it is, also one that leads elsewhere; the proxy does not go there.
#[tokio::test]
async fn a_redirect_is_the_clients_affair() {
    let server = Server::answering(
        "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n",
    )
    .await;
    let house = House::new(Stage::with(server.address));
    let answer = house.say(request(&format!("GET http://{NAME}/"), "")).await;
    assert!(answer.starts_with("HTTP/1.1 302 "), "{answer}");
    assert!(
        answer.contains("location: http://169.254.169.254/\r\n"),
        "{answer}"
    );
    assert_eq!(house.stage.log().len(), 2);
}

/// S-38: a server is no more trusted than a client.
#[tokio::test]
async fn an_ambiguous_answer_is_not_passed_on() {
    for (what, bytes) in [
        (
            "both framings",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
        (
            "two lengths",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nok",
        ),
        ("a folded field", "HTTP/1.1 200 OK\r\nX: 1\r\n 2\r\n\r\n"),
        ("switching", "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"),
        ("no answer", "SSH-2.0-x\r\n"),
        ("nothing", ""),
        ("interim without end", &"HTTP/1.1 100 Continue\r\n\r\n".repeat(20)),
    ] {
        let server = Server::answering(bytes).await;
        let house = House::new(Stage::with(server.address));
        let answer = house.say(request(&format!("GET http://{NAME}/"), "")).await;
        assert!(answer.starts_with("HTTP/1.1 502 "), "{what}: {answer}");
        assert_eq!(house.reasons(), [EgressReason::BadAnswer], "{what}");
    }
}

#[tokio::test]
async fn answers_without_a_length_end_with_the_connection() {
    let server = Server::answering("HTTP/1.0 200 OK\r\n\r\nuntil the end").await;
    let house = House::new(Stage::with(server.address));
    let answer = house.say(request(&format!("GET http://{NAME}/"), "")).await;
    assert_eq!(answer, "HTTP/1.1 200 \r\nConnection: close\r\n\r\nuntil the end");

    let server = Server::answering("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n").await;
    let house = House::new(Stage::with(server.address));
    let answer = house.say(request(&format!("HEAD http://{NAME}/"), "")).await;
    assert_eq!(
        answer,
        "HTTP/1.1 200 \r\ncontent-length: 7\r\nConnection: keep-alive\r\n\r\n"
    );
}

/// S-37: the usual ports, unless the policy names others; and a way is not the other way.
#[tokio::test]
async fn ports_and_ways_are_granted_each() {
    let server = Server::answering(OK).await;
    let grants = vec![
        grant("*.files.example", EgressWay::Plain, &[]),
        grant(NAME, EgressWay::Plain, &[80, 8443]),
        grant(NAME, EgressWay::Tunnel, &[]),
    ];
    for (line, expected) in [
        (format!("GET http://{NAME}/"), Vec::new()),
        (format!("GET http://{NAME}:8443/"), Vec::new()),
        (
            format!("GET http://{NAME}:443/"),
            vec![EgressReason::PortNotGranted],
        ),
        (
            format!("GET http://{NAME}:22/"),
            vec![EgressReason::PortNotGranted],
        ),
        (format!("CONNECT {NAME}:80"), vec![EgressReason::PortNotGranted]),
        (format!("CONNECT {NAME}:8443"), vec![EgressReason::PortNotGranted]),
        (
            "CONNECT other.example:443".to_owned(),
            vec![EgressReason::HostNotGranted],
        ),
        (
            "GET http://xfiles.example/".to_owned(),
            vec![EgressReason::HostNotGranted],
        ),
        (
            "GET http://files.example.org/".to_owned(),
            vec![EgressReason::HostNotGranted],
        ),
        (
            "GET http://a.b.files.example/".to_owned(),
            vec![EgressReason::Unresolved],
        ),
    ] {
        let house = House::with(Stage::with(server.address), grants.clone(), Limits::default());
        house.say(request(&line, "")).await;
        assert_eq!(house.reasons(), expected, "{line}");
    }
}
