//! Where a granted name may lead.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use conductor_domain::egress::EgressReason;
use conductor_gateway::egress::address::is_public;
use conductor_gateway::egress::{Internet, Outside as _};
use proptest::prelude::*;

use crate::kit::{House, NAME, OK, PUBLIC, Server, Stage, request};

const INSIDE: &[&str] = &[
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.0.1",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.1.1.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:93.184.216.34",
    "::127.0.0.1",
    "::93.184.216.34",
    "64:ff9b::7f00:1",
    "64:ff9b::5db8:d822",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:0:7f00:1::",
    "2001:10::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::1",
    "2002:5db8:d822::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "2a00:1450::5efe:10.0.0.1",
    "2a00:1450::200:5efe:10.0.0.1",
];

const OUTSIDE: &[&str] = &[
    "1.1.1.1",
    "9.9.9.9",
    "93.184.216.34",
    "100.63.255.255",
    "100.128.0.1",
    "172.15.0.1",
    "172.32.0.1",
    "192.0.1.1",
    "198.17.0.1",
    "198.20.0.1",
    "223.255.255.255",
    "2606:4700::1111",
    "2a00:1450:4001:80b::200e",
    "2001:4860::8888",
    "2003::1",
    "2400:cb00::1",
];

/// S-36.
#[test]
fn only_global_unicast_is_public() {
    let address = |text: &&str| text.parse::<IpAddr>().expect("an address");
    for text in INSIDE {
        assert!(!is_public(address(text)), "{text}");
    }
    for text in OUTSIDE {
        assert!(is_public(address(text)), "{text}");
    }
}

proptest! {
    /// S-36: no way of writing an IPv4 address in an IPv6 one leads anywhere.
    #[test]
    fn no_ipv6_form_of_an_ipv4_address_is_public(v4 in any::<u32>(), rest in any::<[u16; 5]>()) {
        let v4 = Ipv4Addr::from(v4);
        let [a, b, c, d] = v4.octets();
        let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        for v6 in [
            v4.to_ipv6_mapped(),
            Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low),
            Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
            Ipv6Addr::new(0x2002, high, low, rest[0], rest[1], rest[2], rest[3], rest[4]),
            Ipv6Addr::new(0x2001, 0, rest[0], rest[1], rest[2], rest[3], !high, !low),
            Ipv6Addr::new(0x2a00 | (rest[0] & 0xff), rest[1], rest[2], rest[3], 0, 0x5efe, high, low),
        ] {
            prop_assert!(!is_public(v6.into()), "{}", v6);
        }
    }

    /// S-36: the standard library's own words agree wherever it has any.
    #[test]
    fn nothing_that_the_library_knows_as_special_is_public(v4 in any::<u32>(), v6 in any::<u128>()) {
        let v4 = Ipv4Addr::from(v4);
        let special = v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_multicast()
            || v4.is_broadcast() || v4.is_documentation() || v4.is_unspecified();
        prop_assert!(!(special && is_public(v4.into())), "{}", v4);
        let v6 = Ipv6Addr::from(v6);
        let special = v6.is_loopback() || v6.is_multicast() || v6.is_unspecified() || v6.is_unique_local()
            || v6.is_unicast_link_local();
        prop_assert!(!(special && is_public(v6.into())), "{}", v6);
    }
}

/// S-36: one answer that leads inside spoils all, and nobody is connected to.
#[tokio::test]
async fn one_bad_answer_spoils_all() {
    for inside in INSIDE {
        let server = Server::answering(OK).await;
        let mut stage = Stage::with(server.address);
        let public: IpAddr = PUBLIC.parse().expect("an address");
        let inside: IpAddr = inside.parse().expect("an address");
        stage.names.insert(NAME.into(), vec![public, inside]);
        let house = House::new(stage);

        let answer = house.say(request(&format!("GET http://{NAME}/"), "")).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{inside}: {answer}");
        assert_eq!(house.reasons(), [EgressReason::AddressNotPublic], "{inside}");
        assert_eq!(house.stage.log(), [format!("resolve {NAME}")], "{inside}");
    }
}

/// S-36.
#[tokio::test]
async fn a_public_address_of_this_host_is_refused() {
    let server = Server::answering(OK).await;
    let mut stage = Stage::with(server.address);
    stage.own = vec![PUBLIC.parse().expect("an address")];
    let house = House::new(stage);
    house.say(request(&format!("CONNECT {NAME}:443"), "")).await;
    assert_eq!(house.reasons(), [EgressReason::AddressNotPublic]);
    assert_eq!(house.stage.log(), [format!("resolve {NAME}")]);
}

/// S-36: the real host knows its own addresses, and no others.
#[test]
fn the_host_knows_its_own_addresses() {
    for own in ["127.0.0.1", "127.9.9.9", "0.0.0.0"] {
        assert!(Internet.is_own(own.parse().expect("an address")), "{own}");
    }
    for foreign in ["192.0.2.1", "2001:db8::1"] {
        assert!(
            !Internet.is_own(foreign.parse().expect("an address")),
            "{foreign}"
        );
    }
}

/// S-36: resolved once, connected to what was checked.
#[tokio::test]
async fn a_name_is_resolved_once_and_the_checked_address_is_connected_to() {
    let server = Server::answering(OK).await;
    let house = House::new(Stage::with(server.address));
    let answer = house.say(request(&format!("GET http://{NAME}/"), "")).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_eq!(
        house.stage.log(),
        [format!("resolve {NAME}"), format!("connect {PUBLIC}:80")]
    );
}

/// S-36: an address that does not answer gives way to the next checked one.
#[tokio::test]
async fn the_next_checked_address_is_tried() {
    let server = Server::answering(OK).await;
    let mut stage = Stage::with(server.address);
    let other: IpAddr = "93.184.216.99".parse().expect("an address");
    stage
        .names
        .insert(NAME.into(), vec![other, PUBLIC.parse().expect("an address")]);
    let house = House::new(stage);
    let answer = house.say(request(&format!("GET http://{NAME}/"), "")).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_eq!(house.stage.log().len(), 3, "{:?}", house.stage.log());
}
