//! Decides as whom a sandbox runs on the host, and gives it what it works on (S-1).
//!
//! As root: a uid of the run's own, derived from its id, in a range that no distribution and no container uses and that
//! belongs to no login. The directory is handed over whole before the sandbox starts, its top last, so a top that is
//! theirs says that all is. As anybody else: ourselves, in a user namespace.
//! This module does not know what runs as that user.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use conductor_domain::digest::Digest;
use conductor_domain::fault::Fault;
use conductor_domain::id::RunId;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Uid};

/// Above what systemd gives to containers (up to 0x6fff_ffff), below what it gives to foreign trees.
const FIRST: u32 = 0x7000_0000;
const COUNT: u32 = 0x0ffe_0000;

/// As whom a sandbox runs on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// As a user of the run's own; we are root and drop to it.
    Own(u32),
    /// As ourselves; we are not root.
    Ourselves,
    /// As root, which only a test can ask for.
    Root,
}

/// Names the user of a run's sandboxes.
pub(crate) fn of_run(run: &RunId, has_own: bool) -> Result<Who, Fault> {
    if !rustix::process::geteuid().is_root() {
        return Ok(Who::Ourselves);
    }
    if !has_own {
        return Ok(Who::Root);
    }
    let digest = Digest::of(run.as_str().as_bytes());
    let hex = digest.as_str().trim_start_matches("sha256:");
    let number = hex.get(..8).and_then(|hex| u32::from_str_radix(hex, 16).ok());
    let number = number.ok_or_else(|| Fault::permanent("a digest has no hexadecimal digits"))?;
    let uid = FIRST + number % COUNT;
    match nix::unistd::User::from_uid(uid.into()) {
        Ok(None) => Ok(Who::Own(uid)),
        Ok(Some(login)) => Err(Fault::permanent(format!(
            "the uid {uid} of run {run} belongs to the login `{}`; a sandbox never runs as one (S-1)",
            login.name
        ))),
        Err(error) => Err(Fault::transient(format!(
            "looking whom the uid {uid} belongs to: {error}"
        ))),
    }
}

/// Gives the directory and the sockets to the sandbox's user. If repeated: a directory that was given is left as it is.
pub(crate) fn give(dir: &Path, sockets: &[PathBuf], who: Who) -> Result<(), Fault> {
    let Who::Own(uid) = who else {
        return Ok(());
    };
    let owner = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(uid)));
    let attempt = |path: &Path, error: rustix::io::Errno| {
        Fault::permanent(format!("giving {} to the sandbox: {error}", path.display()))
    };
    hand_over(dir, owner).map_err(|error| attempt(dir, error))?;
    for socket in sockets {
        rustix::fs::chownat(CWD, socket, owner.0, owner.1, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|error| attempt(socket, error))?;
    }
    Ok(())
}

/// Gives a directory back to a user, after its sandbox is closed.
pub fn take_back(dir: &Path, uid: u32, gid: u32) -> std::io::Result<()> {
    let owner = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
    Ok(hand_over(dir, owner)?)
}

type Owner = (Option<Uid>, Option<Gid>);

fn hand_over(dir: &Path, owner: Owner) -> rustix::io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let top = rustix::fs::open(dir, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&top)?;
    if Some(Uid::from_raw(stat.st_uid)) == owner.0 {
        return Ok(());
    }
    hand_over_below(&top, owner)?;
    rustix::fs::fchown(&top, owner.0, owner.1)
}

/// Walks by descriptor and follows no link, so that nothing outside changes hands.
fn hand_over_below(dir: &OwnedFd, owner: Owner) -> rustix::io::Result<()> {
    let mut entries = Dir::read_from(dir)?;
    while let Some(entry) = entries.read() {
        let entry = entry?;
        let name: &CStr = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if is_directory(dir, name, entry.file_type())? {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let below = rustix::fs::openat(dir, name, flags, Mode::empty())?;
            hand_over_below(&below, owner)?;
        }
        rustix::fs::chownat(dir, name, owner.0, owner.1, AtFlags::SYMLINK_NOFOLLOW)?;
    }
    Ok(())
}

fn is_directory(dir: impl AsFd, name: &CStr, told: FileType) -> rustix::io::Result<bool> {
    if told != FileType::Unknown {
        return Ok(told == FileType::Directory);
    }
    let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}
