//! The guest as it is shipped in this crate: static, small, alone in an empty sandbox, and without any switch of the tests.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use conductor_guest::calls::Calls;
use conductor_guest::frame::Decoder;
use conductor_guest::order::Request;
use conductor_guest::response::{PROTOCOL, Response};

/// The very file whose bytes the executors carry.
const GUEST: &str = env!("GUEST");

const LARGEST: u64 = 2 * 1024 * 1024;

/// EXEC-2: the same program runs in any image, because it needs nothing of it.
#[test]
fn the_shipped_guest_is_static_small_and_has_no_switches() {
    let size = std::fs::metadata(GUEST).unwrap().len();
    assert!(size < LARGEST, "{size} bytes");

    let ready = Response::Ready {
        protocol: PROTOCOL,
        pid: 1,
    };
    assert_eq!(ask_alone(Request::Ping), ready, "nothing else is in that sandbox");

    let switched = command(GUEST)
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

/// Asks a guest that is PID 1 of a sandbox that holds nothing but it, its directory and `/dev`.
fn ask_alone(request: Request) -> Response {
    let work = tempfile::tempdir().unwrap();
    let mut bwrap = command("bwrap")
        .args([
            "--unshare-user",
            "--unshare-pid",
            "--unshare-net",
            "--unshare-ipc",
        ])
        .args(["--new-session", "--die-with-parent", "--as-pid-1", "--clearenv"])
        .args(["--dev", "/dev", "--ro-bind", GUEST, "/guest", "--bind"])
        .arg(work.path())
        .args(["/w", "--chdir", "/w", "/guest", "--root", "/w"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("bubblewrap is here (cargo xtask setup bubblewrap)");
    let mut calls = Calls::default();
    let mut bytes = Vec::new();
    calls.begin(request).unwrap().encode(&mut bytes).unwrap();
    bwrap.stdin.as_mut().unwrap().write_all(&bytes).unwrap();
    let mut decoder = Decoder::default();
    let frame = loop {
        if let Some(frame) = decoder.next().unwrap() {
            break frame;
        }
        let count = bwrap.stdout.as_mut().unwrap().read(decoder.room()).unwrap();
        assert!(count > 0, "the guest left");
        decoder.filled(count);
    };
    calls.admit(&frame).unwrap();
    // Its channel ends, and the guest with it.
    drop(bwrap.stdin.take());
    bwrap.wait().unwrap();
    frame.body
}

#[allow(
    clippy::disallowed_methods,
    reason = "starts what is shipped, without an executor"
)]
fn command(program: &str) -> Command {
    Command::new(program)
}
