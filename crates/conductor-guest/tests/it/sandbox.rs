//! The guest as PID 1 among hostile processes of its own user, in a real sandbox.

use conductor_guest::calls::Standing;
use conductor_guest::frame::Frame;
use conductor_guest::order::Request;
use conductor_guest::response::{Ending, Exited, PROTOCOL, Refusal, Response, Usage};
use conductor_guest::seccomp;

use crate::kit::{Guest, Place, code, script};

/// S-14.
#[test]
fn the_guest_is_the_first_process_of_its_sandbox() {
    let place = Place::new();
    let ready = Response::Ready {
        protocol: PROTOCOL,
        pid: 1,
    };
    assert_eq!(place.sandboxed(&[]).result(Request::Ping), ready);
}

/// Writes a frame into everything that the guest has open for writing.
const FORGE: &str = "for info in /proc/1/fdinfo/*; do \
    grep -q '^flags:.*1$' $info && cat frame > /proc/1/fd/${info##*/}; done 2>/dev/null; exit 7";

/// A command that writes "I exited with 0" into the guest's own channel, then fails.
fn forger(guest: &mut Guest) -> Ending {
    let forged = Response::Exited(Exited {
        ending: Ending::Code(0),
        usage: Usage::default(),
        dropped: 0,
    });
    let request = Request::Run(script(FORGE));
    let frame = guest.calls.begin(request).unwrap();
    let mut bytes = Vec::new();
    Frame {
        id: frame.id,
        body: forged,
    }
    .encode(&mut bytes)
    .unwrap();
    let content = Request::CreateFile {
        path: "frame".into(),
        content: bytes,
    };
    assert_eq!(guest.result(content), Response::Done);
    guest.tell(&frame);
    loop {
        let (answer, standing) = guest.next();
        if let (Response::Exited(exited), Standing::Over) = (answer.body, standing) {
            return exited.ending;
        }
    }
}

/// S-14, S-18: no command can speak for the guest.
#[test]
fn a_command_cannot_forge_its_own_result() {
    let place = Place::new();
    assert_eq!(forger(&mut place.sandboxed(&[])), Ending::Code(7));
}

/// S-14, S-18: shows what the protection is good for.
#[test]
fn without_its_protection_a_result_is_forged() {
    let place = Place::new();
    assert_eq!(
        forger(&mut place.sandboxed(&["--without", "undumpable"])),
        Ending::Code(0)
    );
}

/// S-15, S-16: what was forged is seen at the latest when the true result comes.
#[test]
fn a_forged_result_makes_the_true_one_a_violation() {
    let place = Place::new();
    let mut guest = place.sandboxed(&["--without", "undumpable"]);
    forger(&mut guest);
    assert!(guest.judge().is_err());
}

/// S-14.
#[test]
fn the_guests_memory_and_descriptors_are_closed_to_its_commands() {
    let place = Place::new();
    let text = "for name in mem environ maps auxv task/1/mem; do (: </proc/1/$name) && echo $name; done; \
                ls /proc/1/fd; exit 0";
    let told = |arguments: &[&str]| {
        place
            .sandboxed(arguments)
            .script(&format!("({text}) 2>/dev/null"))
            .text()
    };
    assert_eq!(told(&[]), "");
    assert!(
        told(&["--without", "undumpable"]).starts_with("mem\nenviron\nmaps\nauxv\ntask/1/mem\n0\n1\n2\n")
    );
}

/// S-14: the kernel keeps signals from PID 1.
#[test]
fn no_signal_from_a_command_ends_the_guest() {
    let place = Place::new();
    let mut guest = place.sandboxed(&[]);
    let text = "for signal in KILL STOP TERM INT HUP SEGV BUS ABRT SYS CHLD PIPE; do kill -$signal 1; kill -$signal 1; done; \
                kill -KILL -1; echo unreached";
    guest.script(text);
    assert_eq!(guest.script("echo on").told(), code("on\n", 0));
}

/// S-1: nothing in the sandbox is root anywhere.
#[test]
fn nothing_made_in_a_sandbox_belongs_to_root() {
    use std::os::unix::fs::MetadataExt as _;
    let place = Place::new();
    let mut guest = place.sandboxed(&[]);
    let ran = guest.script("echo x > /proc/sys/kernel/core_pattern || touch made; id -u");
    assert!(
        ran.text().contains("Read-only file system") || ran.text().contains("ermission denied"),
        "{}",
        ran.text()
    );
    let made = std::fs::metadata(place.work().join("made")).unwrap();
    assert_ne!(made.uid(), 0);
}

/// EXEC-7: a full disk is an answer, not a hang; and the sandbox goes on.
#[test]
fn a_full_disk_is_told() {
    let place = Place::new();
    std::fs::create_dir(place.work().join("small")).unwrap();
    let mut guest = place.sandboxed_with(&["--size", "65536", "--tmpfs", "/w/small"], &[]);
    let full = Request::CreateFile {
        path: "small/file".into(),
        content: vec![1; 100_000],
    };
    assert_eq!(guest.result(full), Response::Refused(Refusal::Full));
    assert_eq!(
        guest.script("ls -A small").told(),
        code("", 0),
        "nothing half-made stays"
    );
}

/// S-40: the program that is exported works where `bwrap` installs it.
#[test]
fn bubblewrap_takes_the_exported_list() {
    let place = Place::new();
    place.add_probe();
    std::fs::write(place.base().join("list"), seccomp::bpf()).unwrap();
    let unshare = |guest: &mut Guest| guest.script("./probe 272 1").text();
    let filtered = &["--filtered-outside"];
    assert_eq!(unshare(&mut place.sandboxed_by_list(filtered)), "1\n");
    assert_eq!(unshare(&mut place.sandboxed(filtered)), "22\n");
}
