//! Ends processes with all their descendants, by what `/proc` shows.
//!
//! A command adopts its own orphans, so while it lives everything that it started, daemons included, is below it. The
//! tree is frozen until a look finds nobody new, then killed from below, the command last; so a process that forks
//! all the time does not run away from it. A process is named by its number and its start time and signalled through
//! a pidfd, so a number that was given away again hits nobody.
//! This module does not know why they are to end.

use std::collections::HashSet;
use std::io;

use rustix::process::{Pid, PidfdFlags, Signal};

/// How often the tree is looked at before what was found is killed; only a fork bomb needs more than two.
const LOOKS: usize = 100;

/// What is left of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// Some are dying; look again soon.
    Dying,
    /// Nothing but its root, which was told to die.
    Nothing,
}

/// One process, for ever: numbers are given away again, pairs with a start time are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Identity {
    pid: i32,
    /// In clock ticks since the machine started.
    start: u64,
}

#[derive(Debug, Clone, Copy)]
struct Process {
    identity: Identity,
    parent: i32,
    is_dead: bool,
}

/// Kills a command and everything below it. If repeated: goes on where it was.
pub(crate) fn end(root: i32) -> Left {
    match end_below(root) {
        Ok(Left::Dying) => Left::Dying,
        Ok(Left::Nothing) => {
            kill(root);
            Left::Nothing
        }
        Err(_) => {
            // Without /proc there is still its session's first group.
            kill_group(root);
            kill(root);
            Left::Nothing
        }
    }
}

/// Kills everything below this process: all that its sandbox holds.
pub(crate) fn end_everything() {
    let own = rustix::process::getpid();
    if own == Pid::INIT {
        // With PID 1 the kernel ends the rest of its namespace, without a gap.
        return;
    }
    while matches!(end_below(own.as_raw_nonzero().get()), Ok(Left::Dying)) {
        while crate::children::bury().is_some() {}
        std::thread::yield_now();
    }
}

fn end_below(root: i32) -> io::Result<Left> {
    let mut frozen = HashSet::new();
    freeze_root(root);
    for _ in 0..LOOKS {
        let members = below(root)?;
        let new: Vec<Identity> = members
            .into_iter()
            .filter(|member| !frozen.contains(member))
            .collect();
        if new.is_empty() {
            break;
        }
        for member in new {
            signal(member, Signal::STOP);
            frozen.insert(member);
        }
    }
    if frozen.is_empty() {
        return Ok(Left::Nothing);
    }
    for member in frozen {
        signal(member, Signal::KILL);
    }
    Ok(Left::Dying)
}

/// Lists the living processes below `root`, without it.
fn below(root: i32) -> io::Result<Vec<Identity>> {
    let all = processes()?;
    let mut members = HashSet::from([root]);
    let mut known = 0;
    while known < members.len() {
        known = members.len();
        for process in &all {
            if members.contains(&process.parent) {
                members.insert(process.identity.pid);
            }
        }
    }
    let is_living_member = |process: &&Process| {
        process.identity.pid != root && !process.is_dead && members.contains(&process.identity.pid)
    };
    Ok(all
        .iter()
        .filter(is_living_member)
        .map(|process| process.identity)
        .collect())
}

fn processes() -> io::Result<Vec<Process>> {
    let mut processes = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let pid = entry?.file_name().to_str().and_then(|name| name.parse().ok());
        // One that ended meanwhile is no process.
        processes.extend(pid.and_then(look));
    }
    Ok(processes)
}

/// Reads `/proc/PID/stat`; the program's name, which may hold anything, ends at the last parenthesis.
fn look(pid: i32) -> Option<Process> {
    let line = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let end = memchr::memrchr(b')', &line)?;
    let rest = std::str::from_utf8(line.get(end + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    // The start is field 22, and the parent was field 4.
    let start = fields.nth(22 - 5)?.parse().ok()?;
    Some(Process {
        identity: Identity { pid, start },
        parent,
        is_dead: matches!(state, "Z" | "X"),
    })
}

fn signal(process: Identity, signal: Signal) {
    let Some(pid) = Pid::from_raw(process.pid) else {
        return;
    };
    let Ok(descriptor) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else {
        return;
    };
    if look(process.pid).is_some_and(|now| now.identity == process) {
        // It may have ended meanwhile.
        let _ = rustix::process::pidfd_send_signal(&descriptor, signal);
    }
}

/// Stops a command, so that it starts nothing new while its tree is ended. It is our child and not yet buried, so its
/// number is its own.
fn freeze_root(root: i32) {
    if let Some(pid) = Pid::from_raw(root).filter(|pid| *pid != rustix::process::getpid()) {
        let _ = rustix::process::kill_process(pid, Signal::STOP);
    }
}

/// Kills a command alone; it is our child and not yet buried.
pub(crate) fn kill(root: i32) {
    if let Some(pid) = Pid::from_raw(root) {
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
}

fn kill_group(root: i32) {
    if let Some(pid) = Pid::from_raw(root) {
        let _ = rustix::process::kill_process_group(pid, Signal::KILL);
    }
}
