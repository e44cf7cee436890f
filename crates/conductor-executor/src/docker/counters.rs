//! Finds the kernel's counters of a container, where nothing inside can write (S-42).
//!
//! They are opened once and kept open, so that they can still be read when the container is gone.
//! This module does not know what a limit means.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::sandbox::Counters;

/// The open counters of one container.
#[derive(Debug)]
pub(super) struct Opened {
    memory: File,
    processes: File,
}

impl Opened {
    /// Opens the counters of the container whose first process is `pid` on this host.
    pub(super) fn of(pid: i32) -> io::Result<Self> {
        let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
        let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
        Ok(Self {
            memory: open(
                &groups,
                &mounts,
                "memory",
                ["memory.oom_control", "memory.events"],
            )?,
            processes: open(&groups, &mounts, "pids", ["pids.events", "pids.events"])?,
        })
    }

    pub(super) fn read(&self) -> Counters {
        Counters {
            memory: value(&self.memory, "oom_kill"),
            processes: value(&self.processes, "max"),
        }
    }
}

/// Opens the counter of a controller: in its own hierarchy (v1) or in the common one (v2).
fn open(groups: &str, mounts: &str, controller: &str, [old, new]: [&str; 2]) -> io::Result<File> {
    let directory = directory(groups, mounts, controller).ok_or_else(|| {
        io::Error::other(format!(
            "the {controller} group of a container is not to be seen from here"
        ))
    })?;
    let (path, file) = match directory {
        Directory::Old(path) => (path, old),
        Directory::New(path) => (path, new),
    };
    let path = path.join(file);
    File::open(&path).map_err(|error| io::Error::other(format!("{}: {error}", path.display())))
}

#[derive(Debug, PartialEq, Eq)]
enum Directory {
    Old(PathBuf),
    New(PathBuf),
}

fn directory(groups: &str, mounts: &str, controller: &str) -> Option<Directory> {
    let group = |wanted: &dyn Fn(&str) -> bool| {
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            wanted(controllers).then(|| PathBuf::from(path))
        })
    };
    let has = |list: &str| list.split(',').any(|name| name == controller);
    if let Some(path) = group(&|controllers| has(controllers)) {
        return place(mounts, &path, |kind, options| kind == "cgroup" && has(options)).map(Directory::Old);
    }
    let path = group(&str::is_empty)?;
    place(mounts, &path, |kind, _| kind == "cgroup2").map(Directory::New)
}

/// Where a group stands in the file system: below the mount of its hierarchy, of which we may see only a part.
fn place(mounts: &str, group: &Path, is_it: impl Fn(&str, &str) -> bool) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut right = right.split(' ');
        let (kind, options) = (right.next()?, right.nth(1)?);
        let mut left = left.split(' ').skip(3);
        let (root, point) = (left.next()?, left.next()?);
        let below = group.strip_prefix(root).ok()?;
        is_it(kind, options).then(|| Path::new(point).join(below))
    })
}

/// Reads `key N` from a file of such lines; what is not there is 0.
fn value(file: &File, key: &str) -> u64 {
    let mut bytes = [0; 512];
    let Ok(count) = file.read_at(&mut bytes, 0) else {
        return 0;
    };
    std::str::from_utf8(&bytes[..count])
        .unwrap_or_default()
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S-42: both versions of cgroups, and a part of a hierarchy.
    #[test]
    fn the_group_of_a_container_is_found_in_either_version() {
        let old = "9:memory:/docker/abc\n8:pids:/docker/abc\n0::/init\n";
        let mounts = "30 25 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                      31 25 0:27 /docker /groups/pids rw shared:4 - cgroup cgroup rw,pids\n\
                      32 25 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        assert_eq!(
            directory(old, mounts, "memory"),
            Some(Directory::Old("/sys/fs/cgroup/memory/docker/abc".into()))
        );
        assert_eq!(
            directory(old, mounts, "pids"),
            Some(Directory::Old("/groups/pids/abc".into()))
        );
        let new = "0::/system.slice/docker-abc.scope\n";
        let mounts = "30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";
        assert_eq!(
            directory(new, mounts, "memory"),
            Some(Directory::New(
                "/sys/fs/cgroup/system.slice/docker-abc.scope".into()
            ))
        );
        assert_eq!(directory(new, "", "memory"), None);
        assert_eq!(directory("", mounts, "memory"), None);
    }
}
