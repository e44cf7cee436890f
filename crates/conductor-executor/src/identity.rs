//! Decides as whom a sandbox runs on the host, and gives it what it works on (S-1).
//!
//! As root: a uid of the run's own, derived from its id, in a range that no distribution and no container uses and that
//! belongs to no login. The directory is handed over whole before the sandbox starts, its top last, so a top that is
//! theirs says that all is. As anybody else: ourselves, in a user namespace.
//! This module does not know what runs as that user.

use std::ffi::{CStr, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use conductor_domain::digest::Digest;
use conductor_domain::fault::Fault;
use conductor_domain::id::RunId;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Stat, Uid};

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
    let owner = Owner { uid, gid: uid };
    let attempt = |path: &Path, error: rustix::io::Errno| {
        Fault::permanent(format!("giving {} to the sandbox: {error}", path.display()))
    };
    hand_over(dir, owner).map_err(|error| attempt(dir, error))?;
    for socket in sockets {
        let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
        rustix::fs::chownat(CWD, socket, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|error| attempt(socket, error))?;
    }
    Ok(())
}

/// Whose something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

/// Why a directory that is given away could not be given back as it was.
#[derive(Debug, thiserror::Error)]
pub enum NotOnes {
    /// All of the machine.
    #[error("it is the root of the file system")]
    Root,
    /// Somebody else's.
    #[error("`{path}` in it belongs to {}:{}, and the rest to {}:{}", theirs.uid, theirs.gid, owner.uid, owner.gid)]
    Mixed {
        /// What.
        path: PathBuf,
        /// Whose that is.
        theirs: Owner,
        /// Whose the directory is.
        owner: Owner,
    },
    /// Somewhere else.
    #[error("`{path}` in it is on another file system")]
    Mounted {
        /// What.
        path: PathBuf,
    },
    /// Not to be looked at.
    #[error("looking at `{path}`: {error}")]
    Unread {
        /// What.
        path: PathBuf,
        /// Why.
        error: rustix::io::Errno,
    },
}

/// Returns the one owner of a directory and of all that is in it.
///
/// A sandbox's user has all of it for a while, and then one owner gets it back: what is several people's is refused before
/// anything changed hands.
pub fn owner_of(dir: &Path) -> Result<Owner, NotOnes> {
    if dir.parent().is_none() {
        return Err(NotOnes::Root);
    }
    let unread = |error| NotOnes::Unread {
        path: dir.to_owned(),
        error,
    };
    let top = rustix::fs::open(dir, DIRECTORY, Mode::empty()).map_err(unread)?;
    let stat = rustix::fs::fstat(&top).map_err(unread)?;
    is_all_of(&top, Path::new(""), &stat)?;
    Ok(owner(&stat))
}

fn is_all_of(dir: &OwnedFd, place: &Path, top: &Stat) -> Result<(), NotOnes> {
    let unread = |error| NotOnes::Unread {
        path: place.to_owned(),
        error,
    };
    let mut entries = Dir::read_from(dir).map_err(unread)?;
    while let Some(entry) = entries.read() {
        let entry = entry.map_err(unread)?;
        let name: &CStr = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let path = place.join(OsStr::from_bytes(name.to_bytes()));
        let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).map_err(unread)?;
        if stat.st_dev != top.st_dev {
            return Err(NotOnes::Mounted { path });
        }
        if owner(&stat) != owner(top) {
            return Err(NotOnes::Mixed {
                path,
                theirs: owner(&stat),
                owner: owner(top),
            });
        }
        if is_directory(&stat) {
            let below = rustix::fs::openat(dir, name, DIRECTORY, Mode::empty()).map_err(unread)?;
            is_all_of(&below, &path, top)?;
        }
    }
    Ok(())
}

/// Gives a directory back to its owner, after its sandbox is closed: all that can be, though something cannot, and however
/// little of it had changed hands.
pub fn take_back(dir: &Path, owner: Owner) -> std::io::Result<()> {
    let top = rustix::fs::open(dir, DIRECTORY, Mode::empty())?;
    let mut failed = None;
    hand_over_below(&top, owner, &mut |error| {
        failed.get_or_insert(error);
        Ok(())
    })?;
    rustix::fs::fchown(
        &top,
        Some(Uid::from_raw(owner.uid)),
        Some(Gid::from_raw(owner.gid)),
    )?;
    failed.map_or(Ok(()), |error| Err(error.into()))
}

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

fn hand_over(dir: &Path, to: Owner) -> rustix::io::Result<()> {
    let top = rustix::fs::open(dir, DIRECTORY, Mode::empty())?;
    if rustix::fs::fstat(&top)?.st_uid == to.uid {
        return Ok(());
    }
    hand_over_below(&top, to, &mut Err)?;
    rustix::fs::fchown(&top, Some(Uid::from_raw(to.uid)), Some(Gid::from_raw(to.gid)))
}

/// Walks by descriptor and follows no link, so that nothing outside changes hands. Whoever is told that something could not
/// be handed over says whether to go on.
fn hand_over_below(
    dir: &OwnedFd,
    to: Owner,
    could_not: &mut impl FnMut(rustix::io::Errno) -> rustix::io::Result<()>,
) -> rustix::io::Result<()> {
    let mut entries = Dir::read_from(dir)?;
    while let Some(entry) = entries.read() {
        let entry = entry?;
        let name: &CStr = entry.file_name();
        if !matches!(name.to_bytes(), b"." | b"..") {
            hand_over_entry(dir, name, to, could_not).or_else(&mut *could_not)?;
        }
    }
    Ok(())
}

fn hand_over_entry(
    dir: &OwnedFd,
    name: &CStr,
    to: Owner,
    could_not: &mut impl FnMut(rustix::io::Errno) -> rustix::io::Result<()>,
) -> rustix::io::Result<()> {
    let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if is_directory(&stat) {
        let below = rustix::fs::openat(dir, name, DIRECTORY, Mode::empty())?;
        hand_over_below(&below, to, could_not)?;
    }
    if owner(&stat) == to {
        return Ok(());
    }
    let (uid, gid) = (Uid::from_raw(to.uid), Gid::from_raw(to.gid));
    rustix::fs::chownat(dir, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
}

fn owner(stat: &Stat) -> Owner {
    Owner {
        uid: stat.st_uid,
        gid: stat.st_gid,
    }
}

fn is_directory(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, chown, symlink};

    use super::*;

    /// ENV-2: what was left half way is given back as a whole, though its top looks as if it never changed hands.
    #[test]
    fn all_of_a_directory_is_taken_back_however_much_of_it_was_given() {
        let base = tempfile::tempdir().expect("a temporary directory");
        let dir = base.path().join("w");
        let outside = base.path().join("outside");
        fs::create_dir_all(dir.join("below")).expect("made");
        fs::write(dir.join("below/file"), "").expect("written");
        fs::write(&outside, "").expect("written");
        symlink(&outside, dir.join("link")).expect("made");
        let ours = owner_of(&dir).expect("it is one user's");
        let is_root = rustix::process::geteuid().is_root();
        if is_root {
            for path in ["below", "below/file"] {
                chown(dir.join(path), Some(FIRST), Some(FIRST)).expect("as root");
            }
            chown(&outside, Some(FIRST), Some(FIRST)).expect("as root");
            owner_of(&dir).expect_err("it is several people's");
        }
        take_back(&dir, ours).expect("taken back");
        assert_eq!(owner_of(&dir).expect("it is one user's again"), ours);
        let outside = fs::metadata(outside).expect("there").uid();
        assert_eq!(outside == FIRST, is_root, "what a link names is not touched");
    }
}
