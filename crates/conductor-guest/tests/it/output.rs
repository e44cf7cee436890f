//! Output of any length and any bytes, in bounded memory.

use conductor_guest::order::{Request, Run};
use conductor_guest::response::{Ending, Response};

use crate::kit::{Place, command, script};

/// More than the guest may ever hold, in KiB. A debug build starts at about 4 MiB.
const BOUND: u64 = 16 * 1024;

/// EXEC-7: bounded, and truncation is told.
#[test]
fn endless_output_is_cut_counted_and_ended_by_the_time() {
    let place = Place::new();
    let mut guest = place.plain();
    let run = Run {
        time_ms: 700,
        output: 1000,
        ..command(&["yes"])
    };
    let ran = guest.run(run);
    assert_eq!(ran.exited.ending, Ending::TimedOut);
    assert_eq!(ran.output, b"y\n".repeat(500));
    assert!(ran.exited.dropped > 100_000, "{:?}", ran.exited);
    assert!(guest.peak_memory() < BOUND, "{} KiB", guest.peak_memory());
    assert_eq!(guest.script("echo next").text(), "next\n");
}

/// EXEC-7.
#[test]
fn a_line_of_a_gibibyte_takes_no_more_memory_than_a_short_one() {
    const GIB: u64 = 1024 * 1024 * 1024;
    let place = Place::new();
    let mut guest = place.plain();
    let run = Run {
        output: 100_000,
        ..command(&["head", "-c", &GIB.to_string(), "/dev/zero"])
    };
    let ran = guest.run(run);
    assert_eq!(ran.exited.ending, Ending::Code(0));
    assert_eq!((ran.output.len(), ran.exited.dropped), (100_000, GIB - 100_000));
    assert!(guest.peak_memory() < BOUND, "{} KiB", guest.peak_memory());
}

/// EXEC-7: without credit nothing is sent and nothing is lost; the command waits.
#[test]
fn a_command_prints_as_much_as_it_was_granted() {
    const WHOLE: usize = 3_000_000;
    let place = Place::new();
    let mut guest = place.plain();
    let run = Run {
        credit: 1000,
        ..command(&["head", "-c", &WHOLE.to_string(), "/dev/zero"])
    };
    let id = guest.begin(Request::Run(run));
    let mut arrived = 0;
    while arrived < 1000 {
        let (frame, _) = guest.next();
        let Response::Output { bytes, .. } = frame.body else {
            panic!("{frame:?}")
        };
        arrived += bytes.len();
    }
    // Whatever was sent before this answer has arrived with it.
    let ping = guest.begin(Request::Ping);
    assert_eq!(guest.next().0.id, ping);
    assert_eq!(arrived, 1000);
    guest.grant(id, u32::MAX);
    loop {
        let (frame, _) = guest.next();
        match frame.body {
            Response::Output { bytes, .. } => arrived += bytes.len(),
            Response::Exited(exited) => {
                assert_eq!(
                    (exited.ending, exited.dropped, arrived),
                    (Ending::Code(0), 0, WHOLE)
                );
                break;
            }
            other => panic!("{other:?}"),
        }
    }
}

/// A host that lost interest gets the result without granting anything.
#[test]
fn a_killed_command_needs_no_credit_to_end() {
    let place = Place::new();
    let mut guest = place.plain();
    let run = Run {
        credit: 2,
        ..command(&["yes"])
    };
    let id = guest.begin(Request::Run(run));
    assert!(matches!(guest.next().0.body, Response::Output { .. }));
    guest.kill(id);
    let Response::Exited(exited) = guest.next().0.body else {
        panic!("no result")
    };
    assert_eq!(exited.ending, Ending::Killed);
}

#[test]
fn any_bytes_are_carried_as_they_are() {
    let place = Place::new();
    let ran = place.plain().script(r"printf 'a\0b\377\376\r\n\033[0m'");
    assert_eq!(ran.output, b"a\0b\xff\xfe\r\n\x1b[0m");
}

/// What is left in the pipe when a command ends is not lost, though somebody keeps the pipe open and goes on.
#[test]
fn the_last_bytes_arrive_although_a_survivor_keeps_printing() {
    let place = Place::new();
    let mut guest = place.plain();
    let ran =
        guest.script("yes survivor & head -c 70000 /dev/zero; kill -STOP $!; echo; echo last; kill -CONT $!");
    assert_eq!(ran.exited.ending, Ending::Code(0));
    assert!(ran.text().contains("\nlast\n"));
}

/// EXEC-7: shows that what the host holds is what it granted, also while several commands print.
#[test]
fn one_command_without_credit_does_not_stop_another() {
    let place = Place::new();
    let mut guest = place.plain();
    let stuck = Run {
        credit: 0,
        ..script("yes")
    };
    let stuck = guest.begin(Request::Run(stuck));
    let other = guest.begin(Request::Run(command(&["echo", "through"])));
    let (frame, _) = guest.next();
    assert_eq!(frame.id, other);
    assert!(matches!(frame.body, Response::Output { bytes, .. } if bytes == b"through\n"));
    assert!(matches!(guest.next().0.body, Response::Exited(_)));
    guest.kill(stuck);
    assert_eq!(guest.next().0.id, stuck);
}
