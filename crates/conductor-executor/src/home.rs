//! The private directory of one sandbox, with the record of its processes.
//!
//! It stands exactly as long as something of the sandbox may be left, so what an earlier Conductor process left behind
//! is found by listing directories, and where there is none nothing needs to be looked for.
//! This module does not know what runs in it.

use std::fs::{File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use conductor_domain::id::EffectId;

use crate::process::Identity;

const RECORD: &str = "processes";

/// The private directory of one sandbox.
#[derive(Debug)]
pub(crate) struct Home {
    path: PathBuf,
    record: Mutex<File>,
}

impl Home {
    /// Makes one beneath `root`; its name begins with the effect and is never used twice at a time.
    pub(crate) fn make(root: &Path, effect: &EffectId) -> io::Result<Self> {
        std::fs::create_dir_all(root)?;
        std::fs::set_permissions(root, Permissions::from_mode(0o700))?;
        let path = tempfile::Builder::new()
            .prefix(&format!("{effect}-"))
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(root.canonicalize()?)?
            .keep();
        let mut record = File::create(path.join(RECORD))?;
        writeln!(record, "{}", boot_id()?)?;
        Ok(Self {
            path,
            record: Mutex::new(record),
        })
    }

    /// Lists those of one effect.
    pub(crate) fn of_effect(root: &Path, effect: &EffectId) -> io::Result<Vec<PathBuf>> {
        let root = match root.canonicalize() {
            Ok(root) => root,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut found = Vec::new();
        for entry in std::fs::read_dir(root)? {
            let entry = entry?;
            let name = entry.file_name();
            let owner = name
                .to_str()
                .and_then(|name| name.rsplit_once('-'))
                .map(|(owner, _)| owner);
            if owner == Some(effect.as_str()) {
                found.push(entry.path());
            }
        }
        Ok(found)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Notes a process, for a later Conductor process that may have to end it.
    pub(crate) fn note(&self, process: Identity) -> io::Result<()> {
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(record, "{} {}", process.pid, process.start)
    }
}

/// Reads the processes noted in a directory; none when the machine was started anew since.
pub(crate) fn noted(path: &Path) -> Vec<Identity> {
    let text = std::fs::read_to_string(path.join(RECORD)).unwrap_or_default();
    let mut lines = text.lines();
    if lines.next() != boot_id().ok().as_deref() {
        return Vec::new();
    }
    let identity = |line: &str| {
        let (pid, start) = line.split_once(' ')?;
        Some(Identity {
            pid: pid.parse().ok()?,
            start: start.parse().ok()?,
        })
    };
    lines.filter_map(identity).collect()
}

/// Removes the directory, whatever modes its former tenants gave to what is in it. Call when they are gone.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let result = std::fs::remove_dir_all(path).or_else(|_| {
        unlock(path)?;
        std::fs::remove_dir_all(path)
    });
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn unlock(dir: &Path) -> io::Result<()> {
    std::fs::set_permissions(dir, Permissions::from_mode(0o700))?;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            unlock(&entry.path())?;
        }
    }
    Ok(())
}

fn boot_id() -> io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?
        .trim()
        .to_owned())
}
