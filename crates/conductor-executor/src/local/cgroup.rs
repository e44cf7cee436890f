//! Makes, reads and removes the cgroups of a sandbox, v1 and v2 alike (EXEC-6, S-42).
//!
//! A sandbox's groups stand below our own, or below the top where our own is not to be seen, so that whatever limits us
//! limits it too. Breaches are read from the kernel's counters, outside. As anybody but root there are usually none.
//! This module does not know what runs in a group.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::process::{Pid, Signal};

use crate::limits::{Limits, Protection};
use crate::sandbox::Counters;

/// The group below which all sandboxes' groups stand.
const OURS: &str = "conductor";

/// Room for what is not the command's: bubblewrap and the guest's threads.
const OVERHEAD: u64 = 16;

/// The length over which processor time is measured, in microseconds.
const PERIOD: u64 = 100_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// Where groups are made for one controller.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hierarchy {
    controls: Protection,
    version: Version,
    /// Sandboxes' groups are made in here.
    parent: PathBuf,
}

/// The controllers of this machine that we may use.
#[derive(Debug, Clone)]
pub(super) struct Cgroups(Vec<Hierarchy>);

/// The groups of one sandbox.
#[derive(Debug)]
pub(super) struct Cgroup {
    groups: Vec<(Hierarchy, PathBuf)>,
    memory: Option<File>,
    processes: Option<File>,
}

impl Cgroups {
    /// Finds what is mounted and writable.
    pub(super) fn find() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let candidates = hierarchies(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"));
        let mut found: Vec<Hierarchy> = Vec::new();
        for candidate in candidates {
            let is_new = found.iter().all(|known| known.controls != candidate.controls);
            if is_new && candidate.prepare().is_ok() {
                found.push(candidate);
            }
        }
        Self(found)
    }

    /// Names the limits that cannot be enforced.
    pub(super) fn missing(&self) -> impl Iterator<Item = Protection> {
        Protection::ALL
            .into_iter()
            .filter(|controls| self.0.iter().all(|known| known.controls != *controls))
    }

    /// Makes the groups of one sandbox, with its limits.
    pub(super) fn make(&self, name: &str, limits: &Limits) -> io::Result<Cgroup> {
        let mut cgroup = self.of(name);
        let made = cgroup
            .groups
            .iter()
            .try_for_each(|(hierarchy, directory)| hierarchy.make(directory, limits))
            .and_then(|()| cgroup.open_counters());
        if let Err(error) = made {
            let _ = cgroup.remove();
            return Err(error);
        }
        Ok(cgroup)
    }

    /// Names the groups of a sandbox, whether they are there or not.
    pub(super) fn of(&self, name: &str) -> Cgroup {
        let group = |hierarchy: &Hierarchy| (hierarchy.clone(), hierarchy.parent.join(name));
        Cgroup {
            groups: self.0.iter().map(group).collect(),
            memory: None,
            processes: None,
        }
    }
}

/// Lists where groups could be made, best first, from what the kernel says of mounts and of ourselves.
fn hierarchies(mounts: &str, ourselves: &str) -> Vec<Hierarchy> {
    let mut found = Vec::new();
    for mount in mounts.lines() {
        let Some((place, kind)) = mount.split_once(" - ") else {
            continue;
        };
        let Some(point) = place.split(' ').nth(4).map(PathBuf::from) else {
            continue;
        };
        let mut kind = kind.split(' ');
        let (version, options) = match (kind.next(), kind.nth(1)) {
            (Some("cgroup"), Some(options)) => (Version::One, options),
            (Some("cgroup2"), _) => (Version::Two, ""),
            _ => continue,
        };
        for (name, controls) in [
            ("memory", Protection::Memory),
            ("pids", Protection::Processes),
            ("cpu", Protection::Cpu),
        ] {
            match version {
                Version::One if options.split(',').any(|option| option == name) => {
                    let own = own_path(ourselves, |controllers| {
                        controllers.split(',').any(|controller| controller == name)
                    });
                    for below in own.into_iter().chain([PathBuf::new()]) {
                        found.push(Hierarchy {
                            controls,
                            version,
                            parent: point.join(below).join(OURS),
                        });
                    }
                }
                Version::Two => found.push(Hierarchy {
                    controls,
                    version,
                    parent: point.join(OURS),
                }),
                Version::One => {}
            }
        }
    }
    found
}

/// Our own group in the hierarchy of a controller, relative to its top.
fn own_path(ourselves: &str, is_it: impl Fn(&str) -> bool) -> Option<PathBuf> {
    let line = ourselves
        .lines()
        .find(|line| line.split(':').nth(1).is_some_and(&is_it))?;
    let path = line.splitn(3, ':').nth(2)?.trim_start_matches('/');
    let is_plain = !Path::new(path)
        .components()
        .any(|part| part == std::path::Component::ParentDir);
    (is_plain && !path.is_empty()).then(|| PathBuf::from(path))
}

impl Hierarchy {
    /// Makes the parent of all groups; fails where we may not.
    fn prepare(&self) -> io::Result<()> {
        let top = self.parent.parent().unwrap_or(&self.parent);
        if self.version == Version::Two {
            let offered = std::fs::read_to_string(top.join("cgroup.controllers"))?;
            let name = self.name();
            if !offered.split_whitespace().any(|offered| offered == name) {
                return Err(io::Error::from(io::ErrorKind::Unsupported));
            }
            std::fs::write(top.join("cgroup.subtree_control"), format!("+{name}"))?;
            make_directory(&self.parent)?;
            return std::fs::write(self.parent.join("cgroup.subtree_control"), format!("+{name}"));
        }
        if !top.is_dir() {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        make_directory(&self.parent)?;
        // One that somebody else made is there, and not ours to make groups in.
        Ok(access(&self.parent, Access::WRITE_OK)?)
    }

    fn name(&self) -> &'static str {
        match self.controls {
            Protection::Memory => "memory",
            Protection::Processes => "pids",
            Protection::Cpu => "cpu",
        }
    }

    fn make(&self, directory: &Path, limits: &Limits) -> io::Result<()> {
        make_directory(directory)?;
        for (file, value, is_needed) in self.settings(limits) {
            let path = directory.join(file);
            if is_needed || path.exists() {
                std::fs::write(&path, value)
                    .map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?;
            }
        }
        Ok(())
    }

    /// Which file gets which value, and whether a kernel without that file will not do.
    fn settings(&self, limits: &Limits) -> Vec<(&'static str, String, bool)> {
        let memory = limits.memory.to_string();
        let processes = (limits.processes + OVERHEAD).to_string();
        let quota = limits.milli_cpus * PERIOD / 1000;
        match (self.controls, self.version) {
            (Protection::Memory, Version::One) => vec![
                ("memory.limit_in_bytes", memory.clone(), true),
                // Without swap accounting there is no such file; then swap is kept out by swappiness.
                ("memory.memsw.limit_in_bytes", memory, false),
                ("memory.swappiness", "0".to_owned(), false),
            ],
            (Protection::Memory, Version::Two) => vec![
                ("memory.max", memory, true),
                ("memory.swap.max", "0".to_owned(), false),
            ],
            (Protection::Processes, Version::One | Version::Two) => vec![("pids.max", processes, true)],
            (Protection::Cpu, Version::One) => vec![
                ("cpu.cfs_period_us", PERIOD.to_string(), true),
                ("cpu.cfs_quota_us", quota.to_string(), true),
            ],
            (Protection::Cpu, Version::Two) => vec![("cpu.max", format!("{quota} {PERIOD}"), true)],
        }
    }

    /// The file whose counter rises when the limit is met.
    fn counter(&self) -> Option<&'static str> {
        match (self.controls, self.version) {
            (Protection::Memory, Version::One) => Some("memory.oom_control"),
            (Protection::Memory, Version::Two) => Some("memory.events"),
            (Protection::Processes, Version::One | Version::Two) => Some("pids.events"),
            (Protection::Cpu, Version::One | Version::Two) => None,
        }
    }
}

fn make_directory(path: &Path) -> io::Result<()> {
    match std::fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

impl Cgroup {
    fn open_counters(&mut self) -> io::Result<()> {
        for (hierarchy, directory) in &self.groups {
            let Some(counter) = hierarchy.counter() else {
                continue;
            };
            let file = File::open(directory.join(counter))?;
            match hierarchy.controls {
                Protection::Memory => self.memory = Some(file),
                Protection::Processes => self.processes = Some(file),
                Protection::Cpu => {}
            }
        }
        Ok(())
    }

    /// Whether the kernel holds the sandbox to this limit.
    pub(super) fn enforces(&self, protection: Protection) -> bool {
        self.groups
            .iter()
            .any(|(hierarchy, _)| hierarchy.controls == protection)
    }

    /// Opens what a process writes to that moves in.
    pub(super) fn entrances(&self) -> io::Result<Vec<OwnedFd>> {
        self.directories()
            .map(|directory| {
                let file = File::options().write(true).open(directory.join("cgroup.procs"))?;
                Ok(OwnedFd::from(file))
            })
            .collect()
    }

    /// Reads how often each limit was met.
    pub(super) fn counters(&self) -> Counters {
        Counters {
            memory: read(self.memory.as_ref(), "oom_kill"),
            processes: read(self.processes.as_ref(), "max"),
        }
    }

    /// The directories, each once: with v2 all controllers share one.
    fn directories(&self) -> impl Iterator<Item = &PathBuf> {
        let mut seen = std::collections::BTreeSet::new();
        self.groups
            .iter()
            .map(|(_, directory)| directory)
            .filter(move |directory| seen.insert((*directory).clone()))
    }

    /// Kills everything in the groups; returns whether there was anything.
    pub(super) fn kill(&self) -> io::Result<bool> {
        let mut found = false;
        for directory in self.directories() {
            let text = match std::fs::read_to_string(directory.join("cgroup.procs")) {
                Ok(text) => text,
                // A group that is gone holds nobody.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NODEV.raw_os_error()) => {
                    continue;
                }
                Err(error) => return Err(error),
            };
            for pid in text.lines().filter_map(|line| line.parse().ok()) {
                found = true;
                if let Some(pid) = Pid::from_raw(pid) {
                    // It may have ended meanwhile; its number is not given away while it stands in the group.
                    let _ = rustix::process::kill_process(pid, Signal::KILL);
                }
            }
        }
        Ok(found)
    }

    /// Removes the groups; fails with `ResourceBusy` while somebody is dying in one.
    pub(super) fn remove(&self) -> io::Result<()> {
        for directory in self.directories() {
            match std::fs::remove_dir(directory) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => other?,
            }
        }
        Ok(())
    }
}

/// Reads `key N` from a file of such lines; what is not there is 0.
fn read(file: Option<&File>, key: &str) -> u64 {
    let mut bytes = [0; 512];
    let Some(Ok(count)) = file.map(|file| file.read_at(&mut bytes, 0)) else {
        return 0;
    };
    std::str::from_utf8(&bytes[..count])
        .unwrap_or_default()
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests;
