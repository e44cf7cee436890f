//! What one sandbox may use up (EXEC-6), and which limits an operator allows to be missing.
//!
//! This module does not know how a limit is enforced.

use std::collections::BTreeSet;
use std::str::FromStr;

const MIB: u64 = 1024 * 1024;

/// What one sandbox may use up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Thousandths of a processor.
    pub milli_cpus: u64,
    /// Bytes of memory, with swap and every tmpfs.
    pub memory: u64,
    /// Processes and threads.
    pub processes: u64,
    /// Open files of one process.
    pub open_files: u64,
    /// Bytes in `/tmp`, and as much in HOME.
    pub temporary: u64,
    /// Bytes in `/dev/shm`.
    pub shared_memory: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            milli_cpus: 2000,
            memory: 4096 * MIB,
            processes: 256,
            open_files: 1024,
            temporary: 1024 * MIB,
            shared_memory: 64 * MIB,
        }
    }
}

/// A limit that needs a writable cgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protection {
    /// Memory and swap.
    Memory,
    /// Processes; without a cgroup an rlimit counts them.
    Processes,
    /// Processor time.
    Cpu,
}

impl Protection {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Processes, Self::Cpu];

    /// The name that an operator writes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Processes => "processes",
            Self::Cpu => "cpu",
        }
    }
}

impl std::fmt::Display for Protection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// There is no such limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no limit `{0}`; there are `memory`, `processes` and `cpu`")]
pub struct NoSuchLimit(String);

impl FromStr for Protection {
    type Err = NoSuchLimit;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|protection| protection.as_str() == text)
            .ok_or_else(|| NoSuchLimit(text.to_owned()))
    }
}

/// The limits that may be missing; none, unless each was named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MayMiss(BTreeSet<Protection>);

impl MayMiss {
    /// Allows exactly these to be missing.
    pub fn these(protections: impl IntoIterator<Item = Protection>) -> Self {
        Self(protections.into_iter().collect())
    }

    pub(crate) fn has(&self, protection: Protection) -> bool {
        self.0.contains(&protection)
    }
}
