//! What is a host name, and what is an address in disguise.

use std::net::ToSocketAddrs as _;

use conductor_domain::egress::HostName;
use conductor_domain::egress::host::BadHostName;
use proptest::prelude::*;

use crate::kit::{House, OK, Server, Stage, request};

/// S-35.
#[test]
fn host_names_are_letters_digits_and_hyphens() {
    let long = format!("{}.example", "a".repeat(64));
    let longest = format!("{}.example", vec!["a".repeat(61); 4].join("."));
    for (text, expected) in [
        ("files.example", Ok("files.example")),
        ("FILES.Example", Ok("files.example")),
        ("xn--bcher-kva.example", Ok("xn--bcher-kva.example")),
        ("1.2.3.4.example", Ok("1.2.3.4.example")),
        ("", Err(BadHostName::Length)),
        (longest.as_str(), Err(BadHostName::Length)),
        (long.as_str(), Err(BadHostName::Label)),
        ("files.example.", Err(BadHostName::Label)),
        (".files.example", Err(BadHostName::Label)),
        ("files..example", Err(BadHostName::Label)),
        ("-files.example", Err(BadHostName::Label)),
        ("files-.example", Err(BadHostName::Label)),
        ("fi_les.example", Err(BadHostName::Label)),
        ("fi les.example", Err(BadHostName::Label)),
        ("files.example\0.evil", Err(BadHostName::Label)),
        ("files.example%2eevil", Err(BadHostName::Label)),
        ("user@files.example", Err(BadHostName::Label)),
        ("büch.example", Err(BadHostName::Label)),
        ("files。example", Err(BadHostName::Label)),
        ("localhost", Err(BadHostName::OneLabel)),
        ("127.0.0.1", Err(BadHostName::Address)),
        ("127.1", Err(BadHostName::Address)),
        ("0x7f.0.0.1", Err(BadHostName::Address)),
        ("0X7F.1", Err(BadHostName::Address)),
        ("2130706433", Err(BadHostName::Address)),
        ("0x7f000001", Err(BadHostName::Address)),
        ("017700000001", Err(BadHostName::Address)),
        ("files.0x", Err(BadHostName::Address)),
        ("[::1]", Err(BadHostName::Label)),
        ("::1", Err(BadHostName::Label)),
        ("fe80::1%eth0", Err(BadHostName::Label)),
        ("::ffff:127.0.0.1", Err(BadHostName::Label)),
    ] {
        let name = HostName::parse(text);
        assert_eq!(
            name.as_ref().map(HostName::as_str),
            expected.as_ref().copied(),
            "{text:?}"
        );
    }
}

/// One part of an address, in one of the bases of `inet_aton`.
fn part(value: u32, base: u8) -> String {
    match base {
        0 => format!("{value}"),
        1 => format!("{value:#x}"),
        _octal => format!("0{value:o}"),
    }
}

/// The forms in which `inet_aton` reads an address.
fn address_forms() -> impl Strategy<Value = String> {
    (any::<u32>(), 1..=4_usize, prop::collection::vec(0..3_u8, 4)).prop_map(|(address, parts, bases)| {
        let mut text: Vec<String> = address.to_be_bytes()[..parts - 1]
            .iter()
            .zip(&bases)
            .map(|(byte, base)| part(u32::from(*byte), *base))
            .collect();
        let low_bits = 8 * (5 - u32::try_from(parts).expect("at most 4"));
        let mask = u32::MAX >> (32 - low_bits);
        text.push(part(address & mask, bases[3]));
        text.join(".")
    })
}

proptest! {
    /// S-35: whatever the system's own reader takes for an address, we do, without asking anybody.
    #[test]
    fn every_form_of_an_address_is_refused(text in address_forms()) {
        prop_assert!((text.as_str(), 80).to_socket_addrs().is_ok(), "{} is no address", text);
        prop_assert_eq!(HostName::parse(&text), Err(BadHostName::Address));
    }

    /// S-35.
    #[test]
    fn what_passes_is_plain_and_ends_in_no_number(text in "[a-zA-Z0-9.:%\\[\\]@_ -]{0,40}|\\PC{0,20}") {
        if let Ok(name) = HostName::parse(&text) {
            let name = name.as_str();
            prop_assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b)));
            prop_assert!(name.contains('.') && !name.ends_with('.') && !name.contains(".."));
            prop_assert!(name.parse::<std::net::IpAddr>().is_err());
        }
    }
}

/// S-35: a bad name is refused before anybody outside hears of it, even if somebody had granted it.
#[tokio::test]
async fn nothing_is_asked_about_a_bad_name() {
    let server = Server::answering(OK).await;
    let house = House::new(Stage::with(server.address));
    for host in [
        "127.1",
        "2130706433",
        "localhost",
        "a%b.example",
        "files.example.",
        "a_b.example",
    ] {
        let answer = house.say(request(&format!("CONNECT {host}:443"), "")).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{host}: {answer}");
        let answer = house.say(request(&format!("GET http://{host}/"), "")).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{host}: {answer}");
    }
    assert_eq!(house.stage.log(), Vec::<String>::new());
}
