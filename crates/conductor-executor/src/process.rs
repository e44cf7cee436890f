//! Finds and ends the processes of a sandbox by what `/proc` shows of them.
//!
//! A process belongs to a sandbox when it carries its marks in the environment it was started with, when it was noted,
//! or when its parent or its session leader belongs. Only processes of our own user count. A process is named by its
//! number and its start time and signalled through a pidfd, so a number that was given away again hits nobody.
//!
//! A process that empties its environment, starts a session of its own and loses its parent between two looks gets
//! away: that takes a pid namespace, which this executor does not have.
//! This module does not know what the processes do.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;

use rustix::process::{Pid, PidfdFlags, Signal};

/// More of an environment is not looked at.
const MAX_ENVIRONMENT: u64 = 8 * 1024 * 1024;

/// How often processes are looked for anew within one call of [`end_all`].
const ROUNDS: usize = 20;

/// One process, for ever: numbers are given away again, pairs with a start time are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    pub(crate) pid: i32,
    /// In clock ticks since the machine started.
    pub(crate) start: u64,
}

/// What makes a process belong.
#[derive(Debug, Clone)]
pub(crate) struct Belonging {
    /// All of these stand in its environment, as `KEY=value`.
    pub(crate) marks: Vec<String>,
    /// Or it is one of these.
    pub(crate) noted: Vec<Identity>,
}

struct Process {
    identity: Identity,
    parent: i32,
    session: i32,
    is_dead: bool,
}

/// Names a process that exists now.
pub(crate) fn identify(pid: i32) -> io::Result<Identity> {
    Ok(look(pid)?.identity)
}

/// Lists the processes of one session.
pub(crate) fn in_session(session: i32) -> io::Result<Vec<Identity>> {
    let members = |process: &Process| process.session == session && !process.is_dead;
    Ok(processes()?
        .into_iter()
        .filter(members)
        .map(|process| process.identity)
        .collect())
}

/// Lists the living processes that belong.
pub(crate) fn alive(belonging: &Belonging) -> io::Result<Vec<Identity>> {
    let all = processes()?;
    let mut members: HashSet<i32> = all
        .iter()
        .filter(|process| {
            belonging.noted.contains(&process.identity) || has_marks(process.identity.pid, &belonging.marks)
        })
        .map(|process| process.identity.pid)
        .collect();
    let mut known = 0;
    while known < members.len() {
        known = members.len();
        for process in &all {
            if members.contains(&process.parent) || members.contains(&process.session) {
                members.insert(process.identity.pid);
            }
        }
    }
    let living = |process: &&Process| members.contains(&process.identity.pid) && !process.is_dead;
    Ok(all
        .iter()
        .filter(living)
        .map(|process| process.identity)
        .collect())
}

/// Kills what belongs, again and again until a look finds none that was not killed before.
/// Returns those that were killed; they may take a moment to be gone.
pub(crate) fn end_all(belonging: &Belonging) -> io::Result<HashSet<Identity>> {
    let mut killed = HashSet::new();
    for _ in 0..ROUNDS {
        let fresh: Vec<Identity> = alive(belonging)?
            .into_iter()
            .filter(|found| !killed.contains(found))
            .collect();
        if fresh.is_empty() {
            break;
        }
        for identity in fresh {
            kill(identity);
            killed.insert(identity);
        }
    }
    Ok(killed)
}

/// Sends SIGKILL; to ask first would only give a hostile process time.
pub(crate) fn kill(identity: Identity) {
    let Some(pid) = Pid::from_raw(identity.pid) else {
        return;
    };
    let Ok(pidfd) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else {
        return;
    };
    if identify(identity.pid).is_ok_and(|now| now == identity) {
        // It can only be gone already, or not be ours to kill; the next look tells.
        let _ = rustix::process::pidfd_send_signal(&pidfd, Signal::KILL);
    }
}

/// Reads all processes of our own user but ourselves.
fn processes() -> io::Result<Vec<Process>> {
    let us = i32::try_from(std::process::id()).unwrap_or(0);
    let user = rustix::process::geteuid().as_raw();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let entry = entry?;
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let is_ours = pid != us && entry.metadata().is_ok_and(|metadata| metadata.uid() == user);
        // A process that ends while we look at it is no error.
        if let (true, Ok(process)) = (is_ours, look(pid)) {
            found.push(process);
        }
    }
    Ok(found)
}

fn look(pid: i32) -> io::Result<Process> {
    let stat = std::fs::read(format!("/proc/{pid}/stat"))?;
    parse_stat(pid, &stat).ok_or_else(|| io::Error::other(format!("/proc/{pid}/stat has an unknown form")))
}

/// Parses `pid (name) state parent group session … start …`; the name may hold anything, parentheses too.
fn parse_stat(pid: i32, stat: &[u8]) -> Option<Process> {
    let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let fields: Vec<&str> = std::str::from_utf8(stat.get(after_name..)?)
        .ok()?
        .split_whitespace()
        .collect();
    Some(Process {
        identity: Identity {
            pid,
            start: fields.get(19)?.parse().ok()?,
        },
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        is_dead: matches!(*fields.first()?, "Z" | "X" | "x"),
    })
}

fn has_marks(pid: i32, marks: &[String]) -> bool {
    let mut environment = Vec::new();
    let read = File::open(format!("/proc/{pid}/environ"))
        .and_then(|file| file.take(MAX_ENVIRONMENT).read_to_end(&mut environment));
    let carries = |mark: &String| {
        environment
            .split(|byte| *byte == 0)
            .any(|entry| entry == mark.as_bytes())
    };
    read.is_ok() && !marks.is_empty() && marks.iter().all(carries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_process_name_hides_nothing() {
        let stat = b"7 (a) Z 1 1 (b\xff) S 2 3 4 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 1 1 1";
        let process = parse_stat(7, stat).unwrap();
        assert_eq!(process.identity, Identity { pid: 7, start: 12345 });
        assert_eq!((process.parent, process.session, process.is_dead), (2, 4, false));
        for broken in [&b""[..], b"7 (a", b"7 (a) S 1", b"7 (a) S x 1 1"] {
            assert!(parse_stat(7, broken).is_none());
        }
    }
}
