//! Lends tests a place for what they make: in memory where there is plenty, because a file system on a disk makes and drops
//! thousands of small files slowly.
//!
//! It does not know what is made there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{process, workspace};

/// What Linux keeps in memory.
const MEMORY: &str = "/dev/shm";

/// The tests were seen to keep a hundredth of it at a time; the rest is for whatever else the machine does.
const PLENTY_KIB: u64 = 4 * 1024 * 1024;

/// Short, because names of sockets may be no longer than a hundred bytes.
const PREFIX: &str = "ct-";

/// A directory that is gone when this is dropped, or none where the usual place has to do.
#[derive(Debug)]
pub(crate) struct Scratch(Option<PathBuf>);

impl Scratch {
    /// Makes the directory, unless somebody chose another place or the machine has no memory to spare. What a gate left there
    /// that was ended before its time is removed.
    pub(crate) fn prepare() -> Self {
        if workspace::variable("TMPDIR").is_some() || !is_plenty() {
            return Self(None);
        }
        let home = Path::new(MEMORY);
        remove_orphans(home);
        let dir = home.join(format!("{PREFIX}{}", std::process::id()));
        Self(fs::create_dir(&dir).is_ok().then_some(dir))
    }

    /// Lets a program make its temporary files there.
    pub(crate) fn lend(&self, command: &mut Command) {
        if let Some(dir) = &self.0 {
            command.env("TMPDIR", dir);
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(dir) = &self.0 {
            let _ = fs::remove_dir_all(dir);
        }
    }
}

fn is_plenty() -> bool {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let room = process::capture(process::command("df").args(["--output=avail", MEMORY])).unwrap_or_default();
    may_run_programs(&mounts)
        && kib_available(&memory) >= PLENTY_KIB
        && room
            .lines()
            .nth(1)
            .and_then(|kib| kib.trim().parse().ok())
            .is_some_and(|kib: u64| kib >= PLENTY_KIB)
}

/// Tells whether it is there, in memory, and programs in it may be started.
fn may_run_programs(mounts: &str) -> bool {
    mounts.lines().any(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        matches!(words.as_slice(), [_, MEMORY, "tmpfs", options, ..] if !options.split(',').any(|option| option == "noexec"))
    })
}

fn kib_available(memory: &str) -> u64 {
    memory
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

/// Removes the directories of processes that are no more.
fn remove_orphans(home: &Path) {
    for entry in fs::read_dir(home).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let Some(owner) = owner.and_then(|owner| owner.parse::<u32>().ok()) else {
            continue;
        };
        if !Path::new("/proc").join(owner.to_string()).exists() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_where_programs_may_run_in_it() {
        for (mounts, is_fit) in [
            ("tmpfs /dev/shm tmpfs rw,nosuid,nodev 0 0", true),
            (
                "/dev/vda / ext4 rw 0 0\nshm /dev/shm tmpfs rw,size=65536k 0 0",
                true,
            ),
            ("shm /dev/shm tmpfs rw,nosuid,noexec 0 0", false),
            ("/dev/vda /dev/shm ext4 rw 0 0", false),
            ("tmpfs /run tmpfs rw 0 0", false),
            ("", false),
        ] {
            assert_eq!(may_run_programs(mounts), is_fit, "{mounts}");
        }
    }

    #[test]
    fn what_is_available_is_read_from_its_own_line() {
        let memory = "MemTotal:       24634264 kB\nMemFree: 1 kB\nMemAvailable:   20000000 kB\n";
        assert_eq!(kib_available(memory), 20_000_000);
        assert_eq!(kib_available("MemTotal: 24634264 kB\n"), 0);
    }

    #[test]
    fn only_what_nobody_uses_is_removed() {
        let home = workspace::target().join(format!("scratch-{}", std::process::id()));
        let kept = [
            format!("{PREFIX}{}", std::process::id()),
            "ct-x".into(),
            "other-1".into(),
        ];
        // No process has a number so high.
        let orphan = home.join(format!("{PREFIX}{}", u32::MAX));
        for name in &kept {
            fs::create_dir_all(home.join(name)).expect("made");
        }
        fs::create_dir_all(orphan.join("deep")).expect("made");
        remove_orphans(&home);
        assert!(!orphan.exists());
        assert!(kept.iter().all(|name| home.join(name).exists()));
        fs::remove_dir_all(&home).expect("removed");
    }
}
