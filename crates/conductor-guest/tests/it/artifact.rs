//! The program as it is shipped: static, small, alone in an empty sandbox, and without any switch of the tests.

#[path = "../../embed.rs"]
mod embed;

use std::path::Path;
use std::process::Command;

use conductor_guest::order::Request;
use conductor_guest::response::{PROTOCOL, Response};

use crate::kit::Place;

const LARGEST: u64 = 2 * 1024 * 1024;

/// EXEC-2: the same program runs in any image, because it needs nothing of it.
#[test]
fn the_shipped_guest_is_static_small_and_has_no_switches() {
    let guest = embed::build(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap();
    let size = std::fs::metadata(&guest).unwrap().len();
    assert!(size < LARGEST, "{size} bytes");

    let place = Place::new();
    std::fs::copy(&guest, place.guest()).unwrap();
    let ready = Response::Ready {
        protocol: PROTOCOL,
        pid: 1,
    };
    assert_eq!(
        place.alone().result(Request::Ping),
        ready,
        "nothing else is in that sandbox"
    );

    let switched = Command::new(&guest)
        .args(["--root", "/", "--without", "filter"])
        .output()
        .unwrap();
    assert_eq!(
        (
            switched.status.code(),
            String::from_utf8(switched.stderr).unwrap()
        ),
        (
            Some(2),
            "conductor-guest: argument `--without` is unknown\n".to_owned()
        )
    );
}
