//! Requests that could be read in two ways, that never end, or that are none.

use std::time::Duration;

use conductor_domain::egress::EgressReason;
use conductor_gateway::egress::Limits;
use proptest::prelude::*;
use tokio::io::AsyncWriteExt as _;

use crate::kit::{House, NAME, OK, Server, Stage, TOKEN, both_ways, listen, request, showing};

/// S-38, S-30: nothing of a request that two readers could read differently goes out.
#[tokio::test]
async fn an_ambiguous_request_goes_nowhere() {
    let token = showing(TOKEN);
    let post = |fields: &str| format!("POST http://{NAME}/ HTTP/1.1\r\n{token}{fields}\r\n0\r\n\r\n");
    for (what, words) in [
        (
            "both framings",
            post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
        ),
        (
            "both, the other way",
            post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"),
        ),
        ("two lengths", post("Content-Length: 5\r\nContent-Length: 6\r\n")),
        (
            "the same length twice",
            post("Content-Length: 5\r\nContent-Length: 5\r\n"),
        ),
        ("a list of lengths", post("Content-Length: 5, 5\r\n")),
        ("a signed length", post("Content-Length: +5\r\n")),
        ("a length in hex", post("Content-Length: 0x5\r\n")),
        ("an empty length", post("Content-Length: \r\n")),
        (
            "an endless length",
            post("Content-Length: 99999999999999999999\r\n"),
        ),
        (
            "chunked twice",
            post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
        ),
        ("chunked in a list", post("Transfer-Encoding: gzip, chunked\r\n")),
        ("another encoding", post("Transfer-Encoding: xchunked\r\n")),
        (
            "a space before the colon",
            post("Transfer-Encoding : chunked\r\n"),
        ),
        ("a vertical tab", post("Transfer-Encoding: \x0bchunked\r\n")),
        ("an underscore", post("Transfer_Encoding: chunked\r\n")),
        ("a folded field", post("X-A: 1\r\n Content-Length: 5\r\n")),
        (
            "a field folded by a tab",
            post("X-A: 1\r\n\tContent-Length: 5\r\n"),
        ),
        ("a lone line feed", post("X-A: 1\nContent-Length: 5\r\n")),
        ("a lone carriage return", post("X-A: 1\rContent-Length: 5\r\n")),
        ("a zero byte", post("X-A: 1\0\r\n")),
        (
            "an upgrade",
            post("Upgrade: websocket\r\nConnection: upgrade\r\n"),
        ),
        (
            "chunks in HTTP/1.0",
            post("Transfer-Encoding: chunked\r\n").replace("HTTP/1.1", "HTTP/1.0"),
        ),
        ("HTTP/2.0", post("").replace("HTTP/1.1", "HTTP/2.0")),
        ("no version", format!("GET http://{NAME}/\r\n{token}\r\n")),
        (
            "two spaces",
            format!("GET  http://{NAME}/ HTTP/1.1\r\n{token}\r\n"),
        ),
        (
            "an empty line first",
            format!("\r\nGET http://{NAME}/ HTTP/1.1\r\n{token}\r\n"),
        ),
        ("origin form", request("GET /", &format!("Host: {NAME}\r\n"))),
        ("an asterisk", request("OPTIONS *", &format!("Host: {NAME}\r\n"))),
        ("authority form", request(&format!("GET {NAME}:80"), "")),
        ("another scheme", request(&format!("GET https://{NAME}/"), "")),
        ("a file", request("GET file:///etc/passwd", "")),
        ("a fragment", request(&format!("GET http://{NAME}/#x"), "")),
        ("a bad port", request(&format!("GET http://{NAME}:080/"), "")),
        ("no port", request(&format!("GET http://{NAME}:/"), "")),
        (
            "a port too high",
            request(&format!("GET http://{NAME}:65616/"), ""),
        ),
        ("a tunnel without a port", request(&format!("CONNECT {NAME}"), "")),
        (
            "a tunnel with a path",
            request(&format!("CONNECT {NAME}:443/"), ""),
        ),
        (
            "a tunnel with a body",
            request(&format!("CONNECT {NAME}:443"), "Content-Length: 5\r\n"),
        ),
    ] {
        let server = Server::answering(OK).await;
        let house = House::new(Stage::with(server.address));
        let answer = house.say(&words).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{what}: {answer}");
        assert_eq!(house.reasons(), [EgressReason::BadRequest], "{what}");
        assert_eq!(house.stage.log(), Vec::<String>::new(), "{what}");
    }
}

/// S-38: names in a request that are not the host of its target lead nowhere.
#[tokio::test]
async fn credentials_and_tricks_in_the_authority_lead_nowhere() {
    let server = Server::answering(OK).await;
    let house = House::new(Stage::with(server.address));
    for target in [
        format!("http://{NAME}@evil.example/"),
        format!("http://evil.example\\@{NAME}/"),
        format!("http://evil.example%00.{NAME}/"),
        format!("http://evil.example:80@{NAME}:80/"),
        "http://[::1]:80/".to_owned(),
        format!("http://evil.example?.{NAME}/"),
        "http:///path".to_owned(),
    ] {
        let answer = house.say(request(&format!("GET {target}"), "")).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{target}: {answer}");
    }
    assert_eq!(house.stage.log(), Vec::<String>::new());
}

/// S-38: a body that does not keep to its framing goes no further than where it breaks.
#[tokio::test]
async fn a_broken_body_is_cut_off() {
    for (what, body) in [
        ("an extension", "2;x=y\r\nok\r\n0\r\n\r\n"),
        ("a trailer", "2\r\nok\r\n0\r\nX-A: 1\r\n\r\n"),
        ("a longer chunk", "2\r\nokay\r\n0\r\n\r\n"),
        ("a lone line feed", "2\nok\n0\n\n"),
        ("a sign", "+2\r\nok\r\n0\r\n\r\n"),
        ("a prefix", "0x2\r\nok\r\n0\r\n\r\n"),
        ("a space", "2 \r\nok\r\n0\r\n\r\n"),
        ("no size", "\r\nok\r\n0\r\n\r\n"),
        ("an endless size", "fffffffffffffffff\r\nok"),
    ] {
        let server = Server::answering(OK).await;
        let house = House::new(Stage::with(server.address));
        let words = request(&format!("POST http://{NAME}/"), "Transfer-Encoding: chunked\r\n") + body;
        let answer = house.say(words).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{what}: {answer}");
        assert_eq!(house.reasons(), [EgressReason::BadRequest], "{what}");
    }
}

/// S-33, S-39: nobody keeps us waiting, and nobody fills our memory.
#[tokio::test]
async fn a_slow_or_endless_head_is_given_up() {
    let quick = Limits {
        head: Duration::from_millis(150),
        ..Limits::default()
    };
    let house = House::with(Stage::default(), both_ways(), quick);
    let mut slow = house.knock().await;
    slow.write_all(b"GET http://files.exa").await.expect("it listens");
    assert!(listen(&mut slow).await.starts_with("HTTP/1.1 408 "));

    let long = format!("GET http://{NAME}/ HTTP/1.1\r\nX-A: {}", "a".repeat(1 << 20));
    assert!(house.say(long).await.starts_with("HTTP/1.1 408 "));
    let many = request(&format!("GET http://{NAME}/"), &"X-A: 1\r\n".repeat(200));
    assert!(house.say(many).await.starts_with("HTTP/1.1 408 "));
    assert_eq!(house.reasons(), [EgressReason::LimitReached]);
    assert_eq!(house.stage.log(), Vec::<String>::new());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// S-33, S-38: whatever is said at the door, nobody outside hears of it and the door stays open.
    #[test]
    fn noise_goes_nowhere(noise in prop::collection::vec(
        prop_oneof![any::<u8>(), Just(b'\r'), Just(b'\n'), Just(b' '), Just(b':'), Just(b'/')], 0..300,
    ), start in prop_oneof![Just(""), Just("GET "), Just("CONNECT files.example:443 HTTP/1.1\r\n")]) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let server = Server::answering(OK).await;
            let house = House::new(Stage::with(server.address));
            let words = [start.as_bytes(), &noise, b"\r\n\r\n"].concat();
            let answer = house.say(words).await;
            assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
            assert_eq!(house.stage.log(), Vec::<String>::new());
            let answer = house.say(request(&format!("GET http://{NAME}/"), "")).await;
            assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        });
    }
}
