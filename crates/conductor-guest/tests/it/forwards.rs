//! Loopback ports that lead to unix sockets: the only ways out of a sandbox.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use conductor_guest::order::Request;
use conductor_guest::response::Response;

use crate::kit::{Guest, Place, code};

/// Answers each caller with what it said, backwards, once it has said everything.
fn answer(listener: UnixListener) {
    std::thread::spawn(move || {
        while let Ok((mut caller, _)) = listener.accept() {
            let mut said = Vec::new();
            caller.read_to_end(&mut said).unwrap();
            said.reverse();
            caller.write_all(&said).unwrap();
        }
    });
}

fn forward(guest: &mut Guest, socket: PathBuf) -> u16 {
    match guest.result(Request::Forward { port: 0, socket }) {
        Response::Listening { port } => port,
        other => panic!("{other:?}"),
    }
}

fn call(port: u16, words: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut answer = Vec::new();
    // A connection that is reset was not answered, whenever the reset came: the guest may close it
    // before the caller has said a word.
    let _ = stream
        .write_all(words)
        .and_then(|()| stream.shutdown(Shutdown::Write))
        .and_then(|()| stream.read_to_end(&mut answer));
    answer
}

/// EXEC-3.
#[test]
fn bytes_are_carried_both_ways_and_so_is_their_end() {
    let place = Place::new();
    let socket = place.base().join("socket");
    answer(UnixListener::bind(&socket).unwrap());
    std::fs::set_permissions(&socket, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let mut guest = place.plain();
    let port = forward(&mut guest, socket);
    assert_eq!(call(port, b"abc"), b"cba");
    let much: Vec<u8> = (0..3_000_000_u32).map(|number| number.to_le_bytes()[0]).collect();
    let mut reversed = much.clone();
    reversed.reverse();
    assert_eq!(call(port, &much), reversed);
    assert!(guest.peak_memory() < 16 * 1024, "{} KiB", guest.peak_memory());
}

/// A caller who says nothing keeps nobody else waiting.
#[test]
fn a_silent_caller_stops_no_other() {
    let place = Place::new();
    let socket = place.base().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    std::fs::set_permissions(&socket, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let mut guest = place.plain();
    let port = forward(&mut guest, socket);
    let _silent = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let _unheard = listener.accept().unwrap();
    answer(listener);
    assert_eq!(call(port, b"abc"), b"cba");
}

#[test]
fn a_socket_where_nobody_answers_closes_the_connection() {
    let place = Place::new();
    let mut guest = place.plain();
    let port = forward(&mut guest, place.base().join("nobody"));
    assert_eq!(call(port, b"abc"), b"");
    assert_eq!(call(port, b"again"), b"");
}

#[test]
fn a_port_that_is_taken_is_a_fault() {
    let place = Place::new();
    let mut guest = place.plain();
    let port = forward(&mut guest, place.base().join("nobody"));
    let again = Request::Forward {
        port,
        socket: place.base().join("nobody"),
    };
    assert!(matches!(guest.result(again), Response::Fault(_)));
}

/// EXEC-3: from a sandbox without a network, through its loopback, to a socket outside.
#[test]
fn a_sandbox_reaches_out_through_its_loopback() {
    let place = Place::new();
    let socket = place.work().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    std::fs::set_permissions(&socket, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    std::thread::spawn(move || listener.accept().unwrap().0.write_all(b"from outside\n").unwrap());
    let mut guest = place.sandboxed(&[]);
    let port = forward(&mut guest, "/w/socket".into());
    let ran = guest.script(&format!(
        "cat </dev/tcp/127.0.0.1/{port}; tail -n +3 /proc/net/dev | cut -d: -f1"
    ));
    assert_eq!(ran.told(), code("from outside\n    lo\n", 0));
}
