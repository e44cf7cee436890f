//! Trees of processes: killed whole at a time-out, a kill and the channel's end; left alone otherwise.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};

use conductor_guest::frame::RequestId;
use conductor_guest::order::{Request, Run};
use conductor_guest::response::{Ending, Exited, Response};

use crate::kit::{Guest, Place, command, script};

/// A daemon by the book: a session of its own, its parent gone. It says who it is once it is one.
const DAEMON: &str = "(setsid bash -c 'echo daemon $$; [ -p up ] && echo >up; trap \"\" TERM HUP INT; while :; do sleep 100; done' &)";

/// Waits for the daemon's word and returns its number.
fn daemon(guest: &mut Guest) -> i32 {
    let mut told = String::new();
    while !told.ends_with('\n') {
        let (frame, _) = guest.next();
        let Response::Output { bytes, .. } = frame.body else {
            panic!("{frame:?}")
        };
        told.push_str(std::str::from_utf8(&bytes).unwrap());
    }
    told.trim().strip_prefix("daemon ").unwrap().parse().unwrap()
}

fn result(guest: &mut Guest, id: RequestId) -> Exited {
    loop {
        let (frame, _) = guest.next();
        match frame.body {
            Response::Exited(exited) if frame.id == id => return exited,
            Response::Output { .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// EXEC-7: time-outs kill the whole tree.
#[test]
fn a_daemonised_grandchild_is_killed_at_the_time_out() {
    let place = Place::new();
    let mut guest = place.plain();
    let run = Run {
        time_ms: 1500,
        ..script(&format!("{DAEMON}; sleep 1000"))
    };
    let id = guest.begin(Request::Run(run));
    let daemon = daemon(&mut guest);
    assert!(is_alive(daemon));
    assert_eq!(result(&mut guest, id).ending, Ending::TimedOut);
    assert!(!is_alive(daemon));
}

/// EXEC-7.
#[test]
fn a_daemonised_grandchild_is_killed_with_its_command() {
    let place = Place::new();
    let mut guest = place.plain();
    let id = guest.begin(Request::Run(script(&format!("{DAEMON}; sleep 1000"))));
    let daemon = daemon(&mut guest);
    guest.kill(id);
    assert_eq!(result(&mut guest, id).ending, Ending::Killed);
    assert!(!is_alive(daemon));
}

/// EXEC-7: shows what the protection is good for.
#[test]
fn without_adoption_a_daemon_gets_away() {
    let place = Place::new();
    let mut guest = place.plain_with(&["--without", "adoption"]);
    let id = guest.begin(Request::Run(script(&format!("{DAEMON}; sleep 1000"))));
    let daemon = daemon(&mut guest);
    guest.kill(id);
    result(&mut guest, id);
    assert!(is_alive(daemon));
}

/// EXEC-7.
#[test]
fn a_command_that_ignores_every_polite_signal_is_killed() {
    let place = Place::new();
    let mut guest = place.plain();
    let run = Run {
        time_ms: 300,
        ..script("trap '' TERM INT HUP QUIT; while :; do sleep 100; done")
    };
    assert_eq!(guest.run(run).exited.ending, Ending::TimedOut);
}

#[test]
fn one_tree_is_killed_and_another_is_not() {
    let place = Place::new();
    let mut guest = place.plain();
    let other = guest.begin(Request::Run(script(
        "mkfifo gate; echo ready; (cat gate; exit 4); exit $?",
    )));
    guest.next();
    let doomed = guest.begin(Request::Run(script(&format!("{DAEMON}; sleep 1000"))));
    daemon(&mut guest);
    guest.kill(doomed);
    assert_eq!(result(&mut guest, doomed).ending, Ending::Killed);
    let helper = guest.begin(Request::Run(script("echo > gate")));
    let (mut opened, mut ended) = (false, false);
    while !(opened && ended) {
        let (frame, _) = guest.next();
        if let Response::Exited(exited) = frame.body {
            opened |= frame.id == helper && exited.ending == Ending::Code(0);
            ended |= frame.id == other && exited.ending == Ending::Code(4);
        }
    }
}

/// A server that an agent leaves running serves its next commands, until the sandbox ends.
#[test]
fn what_a_command_leaves_behind_lives_until_the_channel_ends() {
    let place = Place::new();
    let mut guest = place.plain();
    let id = guest.begin(Request::Run(script(&format!(
        "mkfifo up; {DAEMON}; cat up >/dev/null"
    ))));
    let survivor = daemon(&mut guest);
    assert_eq!(result(&mut guest, id).ending, Ending::Code(0));
    guest.run(command(&["true"]));
    assert!(is_alive(survivor));
    assert!(guest.hang_up());
    assert!(!is_alive(survivor));
}

/// The one that asks to end everything gets its answer first.
#[test]
fn shutting_down_ends_everything_and_says_so() {
    let place = Place::new();
    let mut guest = place.plain();
    let id = guest.begin(Request::Run(script(&format!("{DAEMON}; sleep 1000"))));
    let daemon = daemon(&mut guest);
    let shutdown = guest.begin(Request::Shutdown);
    let (frame, _) = guest.next();
    assert_eq!((frame.id, frame.body), (shutdown, Response::Done));
    assert_eq!(guest.hear(), None);
    assert_eq!(
        guest.calls.open().collect::<Vec<_>>(),
        [id],
        "lost with the channel, and never a success (S-18)"
    );
    assert!(guest.hang_up());
    assert!(!is_alive(daemon));
}

/// No zombie stays: neither of a command nor of what it left behind.
#[test]
fn the_dead_are_buried() {
    let place = Place::new();
    let mut guest = place.plain();
    guest.script("for i in 1 2 3 4 5 6 7 8; do (setsid true &); (sleep 0.0$i &); done");
    let children = format!("/proc/{0}/task/{0}/children", guest.child.id());
    while !std::fs::read_to_string(&children).unwrap().trim().is_empty() {
        guest.run(command(&["true"]));
    }
    assert_eq!(guest.run(command(&["true"])).exited.ending, Ending::Code(0));
}

/// EXEC-6: a fork bomb meets the limit, is killed whole at its time, and the sandbox goes on.
#[test]
fn a_fork_bomb_is_killed_and_the_sandbox_goes_on() {
    let place = Place::new();
    let mut guest = place.sandboxed(&["--processes", "120"]);
    let bomb = Run {
        time_ms: 1000,
        output: 1000,
        ..script("bomb() { bomb | bomb & }; bomb; while :; do bomb; done")
    };
    assert_eq!(guest.run(bomb).exited.ending, Ending::TimedOut);
    let left = guest.script("set -- /proc/[0-9]*; echo $#");
    assert_eq!(
        left.told(),
        ("2\n".to_owned(), Ending::Code(0)),
        "the guest and the one who counts"
    );
}

/// S-16, S-43: when the channel ends, PID 1 ends, and the kernel ends everything in its namespace.
#[test]
fn the_end_of_the_channel_ends_the_sandbox() {
    let place = Place::new();
    let mut guest = place.sandboxed(&[]);
    guest.script("mkfifo alive; chmod 666 alive");
    guest.begin(Request::Run(script(
        "(setsid bash -c 'exec 5>alive; echo here >&5; sleep 1000' &); sleep 1000",
    )));
    // Only the daemon holds the other end: it is at its end when the daemon is.
    let mut alive = BufReader::new(File::open(place.work().join("alive")).unwrap());
    let mut line = String::new();
    alive.read_line(&mut line).unwrap();
    assert_eq!(line, "here\n");
    guest.hang_up();
    assert_eq!(alive.read(&mut [0]).unwrap(), 0);
}
