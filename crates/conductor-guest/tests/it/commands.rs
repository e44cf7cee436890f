//! Commands: what they start with, how they end, what cannot be started.

use std::path::PathBuf;

use conductor_guest::order::{Request, Run, Streams};
use conductor_guest::response::{Ending, Refusal, Response, Stream};

use crate::kit::{Place, code, command, script};

fn check(text: &str, expected: (String, Ending)) {
    let place = Place::new();
    assert_eq!(place.plain().script(text).told(), expected, "{text}");
}

/// S-18, EXEC-1.
#[test]
fn exit_codes_and_signals_are_reported_as_they_are() {
    check("echo out; echo err >&2", code("out\nerr\n", 0));
    check("exit 3", code("", 3));
    check("exit 255", code("", 255));
    check("kill -KILL $$", (String::new(), Ending::Signal(9)));
    check("kill -SEGV $$", (String::new(), Ending::Signal(11)));
}

/// EXEC-5: the environment is what the request says and nothing else.
#[test]
fn a_command_gets_its_argv_environment_and_directory_and_nothing_else() {
    let place = Place::new();
    place.write("in here/file", b"");
    let mut guest = place.plain();
    let odd = "a b'c\"d\ne$(f)\\";
    let run = Run {
        environment: vec![("ONLY".into(), odd.into())],
        directory: "in here".into(),
        ..command(&[
            "/usr/bin/bash",
            "-c",
            "/usr/bin/env; printf '%s|' \"$@\"; echo *",
            "name",
            odd,
            "",
        ])
    };
    let told = guest.run(run).text();
    let ours: Vec<&str> = told.lines().filter(|line| line.starts_with("ONLY=")).collect();
    assert_eq!(ours, ["ONLY=a b'c\"d"]);
    let inherited = told
        .lines()
        .any(|line| line.starts_with("PATH=") || line.starts_with("HOME="));
    assert!(!inherited, "{told}");
    assert!(told.ends_with(&format!("{odd}||file\n")), "{told}");
}

/// A command that expects input finds none instead of waiting for it.
#[test]
fn standard_input_is_empty() {
    check("cat; read line; echo $?", code("1\n", 0));
}

/// S-14: nothing of the guest's is inherited: no descriptor, no signal mask, no session.
#[test]
fn a_command_inherits_no_descriptor_no_mask_and_no_session() {
    let place = Place::new();
    let mut guest = place.plain();
    let descriptors = guest.run(command(&["ls", "/proc/self/fd"])).text();
    assert_eq!(
        descriptors, "0\n1\n2\n3\n",
        "the last is the directory that ls reads"
    );
    let told = guest
        .script("grep SigBlk /proc/self/status; cut -d' ' -f6 /proc/$$/stat; echo $$")
        .text();
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[0], "SigBlk:\t0000000000000000");
    assert_eq!(lines[1], lines[2], "it leads its own session");
}

/// S-14: what the host forgot to close is not inherited either.
#[test]
fn a_descriptor_that_the_host_left_open_is_closed() {
    let place = Place::new();
    let mut guest = place.plain_by("exec 7</etc/hostname 200</etc/hostname; exec \"$@\"");
    assert_eq!(
        guest.run(command(&["ls", "/proc/self/fd"])).text(),
        "0\n1\n2\n3\n"
    );
}

/// S-14: shows that the tests above would notice.
#[test]
fn without_its_protection_the_channel_is_inherited() {
    let place = Place::new();
    let mut guest = place.plain_with(&["--without", "hidden-channel"]);
    let descriptors = guest.run(command(&["ls", "/proc/self/fd"])).text();
    assert_ne!(descriptors, "0\n1\n2\n3\n");
}

#[test]
fn new_privileges_are_given_up() {
    let place = Place::new();
    let told = |arguments: &[&str]| {
        place
            .plain_with(arguments)
            .script("grep NoNewPrivs /proc/self/status")
            .text()
    };
    assert_eq!(told(&[]), "NoNewPrivs:\t1\n");
    let bare = ["--without", "no-new-privileges", "--without", "filter"];
    assert_eq!(told(&bare), "NoNewPrivs:\t0\n");
}

/// EXEC-6.
#[test]
fn the_limit_of_open_files_holds_and_no_core_is_written() {
    let place = Place::new();
    let told = |arguments: &[&str]| {
        place
            .plain_with(arguments)
            .script("ulimit -n; ulimit -Hn; ulimit -c")
            .text()
    };
    assert_eq!(told(&["--open-files", "77"]), "77\n77\n0\n");
    assert!(!told(&[]).starts_with("77\n"));
}

#[test]
fn what_cannot_be_started_is_refused_with_a_reason() {
    let place = Place::new();
    place.write("plain", b"no program");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(place.work().join("plain"), mode).unwrap();
    let mut guest = place.plain();
    let mut refusal = |run: Run| match guest.result(Request::Run(run)) {
        Response::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    };
    let reason = |refusal| match refusal {
        Refusal::CannotStart(reason) => reason,
        other => panic!("{other:?}"),
    };
    assert!(reason(refusal(command(&["no-such-program"]))).starts_with("No such file"));
    assert!(reason(refusal(command(&["./plain"]))).contains("ermission denied"));
    assert!(reason(refusal(command(&["a\0b"]))).contains("nul"));
    assert_eq!(
        refusal(command(&[])),
        Refusal::Invalid("the command is empty".into())
    );
    let elsewhere = |directory: &str| Run {
        directory: PathBuf::from(directory),
        ..command(&["true"])
    };
    assert_eq!(refusal(elsewhere("..")), Refusal::Outside);
    assert_eq!(refusal(elsewhere("/")), Refusal::Outside);
    assert_eq!(refusal(elsewhere("gone")), Refusal::NotFound);
    assert_eq!(refusal(elsewhere("plain")), Refusal::NotADirectory);
}

/// The streams can be told apart, or be in exact order; not both.
#[test]
fn streams_come_apart_or_in_exact_order() {
    let place = Place::new();
    let mut guest = place.plain();
    let text = "for i in 1 2 3; do echo o$i; echo e$i >&2; done";
    assert_eq!(guest.script(text).text(), "o1\ne1\no2\ne2\no3\ne3\n");
    let apart = Run {
        streams: Streams::Apart,
        ..script(text)
    };
    let (mut out, mut error) = (Vec::new(), Vec::new());
    for answer in guest.ask(Request::Run(apart)) {
        match answer {
            Response::Output {
                stream: Stream::Out,
                bytes,
            } => out.extend(bytes),
            Response::Output {
                stream: Stream::Error,
                bytes,
            } => error.extend(bytes),
            Response::Exited(exited) => assert_eq!(exited.ending, Ending::Code(0)),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((out, error), (b"o1\no2\no3\n".to_vec(), b"e1\ne2\ne3\n".to_vec()));
}

/// EXEC-1: calls may be made at once.
#[test]
fn two_commands_run_at_once_and_each_gets_its_own_output() {
    let place = Place::new();
    let mut guest = place.plain();
    // The first can only end after the second has run.
    let first = guest.begin(Request::Run(script("mkfifo gate; echo first; cat gate; exit 1")));
    let (started, _) = guest.next();
    assert_eq!(started.id, first);
    let second = guest.begin(Request::Run(script("echo second; echo open > gate; exit 2")));
    let mut told = [(first, Vec::new(), None), (second, Vec::new(), None)];
    while told.iter().any(|(_, _, ending)| ending.is_none()) {
        let (frame, _) = guest.next();
        let (_, output, ending) = told.iter_mut().find(|(id, ..)| *id == frame.id).unwrap();
        match frame.body {
            Response::Output { bytes, .. } => output.extend(bytes),
            Response::Exited(exited) => *ending = Some(exited.ending),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(told[0].1, b"open\n");
    assert_eq!(told[1].1, b"second\n");
    assert_eq!(
        (told[0].2, told[1].2),
        (Some(Ending::Code(1)), Some(Ending::Code(2)))
    );
}

#[test]
fn more_commands_than_it_can_hold_are_refused() {
    let place = Place::new();
    let mut guest = place.plain();
    for _ in 0..64 {
        guest.begin(Request::Run(command(&["sleep", "1000"])));
    }
    let answer = guest.result(Request::Run(command(&["true"])));
    assert_eq!(answer, Response::Refused(Refusal::Busy));
}

/// EXEC-6.
#[test]
fn what_a_command_used_is_measured() {
    let place = Place::new();
    let busy = "for ((i = 0; i < 50000; i++)); do :; done";
    let used = place.plain().script(busy).exited.usage;
    assert!(
        used.user_us > 1000 && used.elapsed_us >= used.user_us / 2 && used.max_rss_kib > 500,
        "{used:?}"
    );
}

/// S-15: the guest takes nothing from a host that does not speak the protocol.
#[test]
fn a_broken_order_ends_the_guest() {
    let place = Place::new();
    let mut guest = place.plain();
    let twice = guest
        .calls
        .begin(Request::Run(command(&["sleep", "1000"])))
        .unwrap();
    guest.tell(&twice);
    guest.tell(&twice);
    assert_eq!(guest.hear(), None);
    assert!(!guest.hang_up());
}

#[test]
fn a_worktree_path_may_hold_anything() {
    let place = Place::new();
    place.write("it's \"odd\"\n $HOME/x", b"there");
    let odd = place.work().join("it's \"odd\"\n $HOME");
    let mut guest = place.plain_with(&["--root", odd.to_str().unwrap()]);
    assert_eq!(guest.script("cat x").text(), "there");
    assert_eq!(guest.view("x"), Ok(b"there".to_vec()));
}

/// A host that ignores a signal, SIGCHLD above all, does not pass that on: neither to commands nor to their burial.
#[test]
fn signals_that_the_host_ignores_are_not_ignored_inside() {
    let place = Place::new();
    let mut guest = place.plain_by("trap '' HUP INT TERM CHLD; exec \"$@\"");
    assert_eq!(
        guest.script("kill -TERM $$; exit 3").told(),
        (String::new(), Ending::Signal(15))
    );
    assert_eq!(guest.script("exit 3").told(), code("", 3));
}
