//! Reads and writes files beneath one directory and nowhere else (TOOL-2, S-46).
//!
//! The kernel itself resolves every path beneath the directory's descriptor (`openat2`), so neither `..` nor a symlink
//! nor a magic link nor a rename between check and use leads out. A link that stays beneath is not passed through either:
//! whoever judged the path judged the name that was given, and it must not mean another place (SEC-1). Only regular files
//! are touched, and a write shows whole or not at all.
//! This module does not know whose files these are.

mod place;
mod walk;

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, FallocateFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;

use crate::order::Range;
use crate::response::{CHUNK, Refusal};
use crate::switch::switches;
use place::Place;

pub use walk::Findings;

/// The largest file that is read or written.
pub const MAX_FILE: usize = 8 * 1024 * 1024;

/// How often a path is resolved again that changed meanwhile.
const RESOLVE_TRIES: u32 = 64;

/// Why nothing was done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The asker can act on it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The world did not do it.
    #[error("{attempted}: {errno}")]
    Fault {
        /// What was attempted.
        attempted: &'static str,
        /// What the kernel said.
        errno: Errno,
    },
}

switches! {
    /// No `..` in a path, before the kernel is asked.
    NoParents,
    /// The kernel resolves beneath the root, whatever is moved or linked meanwhile.
    Beneath,
    /// No link that only looks like one, as in `/proc`.
    NoMagicLinks,
    /// No link on the way, wherever it leads.
    NoLinks,
    /// The last name is no link.
    NoFollow,
    /// Nobody waits at a pipe.
    NonBlocking,
    /// Only regular files.
    RegularFiles,
    /// No file larger than the limit.
    SizeLimit,
    /// What exists is not created over.
    NoReplace,
}

/// A directory and everything beneath it.
#[derive(Debug)]
pub struct Beneath {
    root: OwnedFd,
    /// Refusals that a test left out.
    without: Vec<Switch>,
    /// Held while a file is changed, so that of two replacements at once none is lost.
    changing: Mutex<()>,
    scratch: AtomicU64,
}

/// Whether a file of that name may be there already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Existing {
    Refused,
    Replaced,
}

impl Beneath {
    /// Opens the directory; it stays the same one even when it is renamed.
    pub fn open(root: &Path) -> Result<Self, Error> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(root, flags, Mode::empty()).map_err(|errno| Error::Fault {
            attempted: "opening the root directory",
            errno,
        })?;
        Ok(Self {
            root,
            without: Vec::new(),
            changing: Mutex::new(()),
            scratch: AtomicU64::new(0),
        })
    }

    /// Leaves a refusal out, so that a test can show what it is for.
    #[doc(hidden)]
    #[cfg(debug_assertions)]
    #[must_use]
    pub fn without(mut self, switch: Switch) -> Self {
        self.without.push(switch);
        self
    }

    fn has(&self, switch: Switch) -> bool {
        !self.without.contains(&switch)
    }

    /// Reads the path of a file.
    fn place<'a>(&self, path: &'a Path) -> Result<Place<'a>, Refusal> {
        if self.has(Switch::NoParents) {
            Place::file(path)
        } else {
            Ok(Place::unchecked(path))
        }
    }

    /// Opens a directory beneath the root, for a command that is to start there; empty is the root.
    pub fn directory(&self, path: &Path) -> Result<OwnedFd, Error> {
        let place = Place::directory(path)?;
        self.descend(&place.parts().collect::<Vec<_>>().join(&b'/'))
    }

    /// Reads a file, or lines of it.
    pub fn view(&self, path: &Path, range: Range) -> Result<Vec<u8>, Error> {
        let (_, bytes, _) = self.read(&self.place(path)?)?;
        Ok(match range {
            Range::Whole => bytes,
            Range::Lines { first, last } => lines(&bytes, first, last)?.to_vec(),
        })
    }

    /// Writes a new file and the directories that it needs.
    pub fn create(&self, path: &Path, content: &[u8]) -> Result<(), Error> {
        check_size(content.len())?;
        let place = self.place(path)?;
        let dir = self.make_directories(&place)?;
        self.put(
            &dir,
            place.name(),
            content,
            Mode::from_raw_mode(0o644),
            Existing::Refused,
        )
    }

    /// Replaces the one occurrence of `old`; the file keeps its mode. What was replaced is released when it is dropped.
    pub fn replace(&self, path: &Path, old: &[u8], new: &[u8]) -> Result<Replaced, Error> {
        let _one_at_a_time = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let place = self.place(path)?;
        let (file, bytes, mode) = self.read(&place)?;
        let at = place::only_match(&bytes, old)?;
        check_size(bytes.len() - old.len() + new.len())?;
        let changed = [&bytes[..at], new, &bytes[at + old.len()..]].concat();
        let dir = self.descend(&place.parents().join(&b'/'))?;
        self.put(&dir, place.name(), &changed, mode, Existing::Replaced)?;
        Ok(Replaced(file))
    }

    fn read(&self, place: &Place<'_>) -> Result<(OwnedFd, Vec<u8>, Mode), Error> {
        let mut flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        flags.set(OFlags::NOFOLLOW, self.has(Switch::NoFollow));
        flags.set(OFlags::NONBLOCK, self.has(Switch::NonBlocking));
        let file = self.resolve(&place.parts().collect::<Vec<_>>().join(&b'/'), flags)?;
        let (bytes, mode) = if self.has(Switch::RegularFiles) && self.has(Switch::SizeLimit) {
            read_file(&file)?
        } else {
            read_unchecked(&file, self.has(Switch::RegularFiles))?
        };
        Ok((file, bytes, mode))
    }

    /// Opens a directory; its path is already split and joined again.
    fn descend(&self, path: &[u8]) -> Result<OwnedFd, Error> {
        let path = if path.is_empty() { b"." } else { path };
        self.resolve(path, OFlags::PATH | OFlags::DIRECTORY)
    }

    fn make_directories(&self, place: &Place<'_>) -> Result<OwnedFd, Error> {
        let parents = place.parents();
        let mut dir = self.descend(b"")?;
        for depth in 1..=parents.len() {
            let prefix = parents[..depth].join(&b'/');
            dir = match self.descend(&prefix) {
                Err(Error::Refused(Refusal::NotFound)) => {
                    match rustix::fs::mkdirat(&dir, parents[depth - 1], Mode::from_raw_mode(0o755)) {
                        Ok(()) | Err(Errno::EXIST) => self.descend(&prefix)?,
                        Err(errno) => return Err(error("making a directory", errno)),
                    }
                }
                found => found?,
            };
        }
        Ok(dir)
    }

    fn put(
        &self,
        dir: &OwnedFd,
        name: &[u8],
        content: &[u8],
        mode: Mode,
        existing: Existing,
    ) -> Result<(), Error> {
        let number = self.scratch.fetch_add(1, Ordering::Relaxed);
        let scratch = format!(".conductor-{}-{number}.part", std::process::id());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(dir, &scratch, flags, Mode::from_raw_mode(0o600))
            .map_err(|errno| error("making a file", errno))?;
        let written = (|| {
            let mut file = File::from(file);
            take_room(&file, content.len())?;
            file.write_all(content)
                .map_err(|io| error("writing a file", errno_of(&io)))?;
            rustix::fs::fchmod(&file, mode).map_err(|errno| error("setting a file's mode", errno))?;
            let flags = match existing {
                Existing::Refused if self.has(Switch::NoReplace) => RenameFlags::NOREPLACE,
                Existing::Refused | Existing::Replaced => RenameFlags::empty(),
            };
            rustix::fs::renameat_with(dir, &scratch, dir, name, flags)
                .map_err(|errno| error("putting a file in its place", errno))
        })();
        if written.is_err() {
            // Already failing; a scratch file that stays is swept with the worktree.
            let _ = rustix::fs::unlinkat(dir, &scratch, AtFlags::empty());
        }
        written
    }

    /// Opens beneath the root. The kernel answers EAGAIN when the path was moved while it looked.
    fn resolve(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Error> {
        let mut resolve = RESOLVE;
        resolve.set(ResolveFlags::BENEATH, self.has(Switch::Beneath));
        resolve.set(ResolveFlags::NO_MAGICLINKS, self.has(Switch::NoMagicLinks));
        resolve.set(ResolveFlags::NO_SYMLINKS, self.has(Switch::NoLinks));
        resolve_at(&self.root, path, flags, resolve)
    }
}

/// A file that another has taken the place of. Releasing it takes the file system longer than replacing it, so whoever
/// waits is answered first.
#[derive(Debug)]
pub struct Replaced(#[expect(dead_code, reason = "held, not used")] OwnedFd);

/// Takes room for a whole file: a full disk says so before anything is written, and nothing need be found while the file
/// is put in its place. A file system that cannot is none the worse.
fn take_room(file: &File, bytes: usize) -> Result<(), Error> {
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes as u64) {
        Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => Err(error("writing a file", errno)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// How every path is resolved.
const RESOLVE: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_SYMLINKS);

fn resolve_at(dir: impl AsFd, path: &[u8], flags: OFlags, resolve: ResolveFlags) -> Result<OwnedFd, Error> {
    let mut tries = 0;
    loop {
        match rustix::fs::openat2(&dir, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) if tries < RESOLVE_TRIES => tries += 1,
            Err(errno) => return Err(error("opening a file", errno)),
            Ok(opened) => return Ok(opened),
        }
    }
}

/// Reads an open file as it comes, for a test that left a refusal out.
fn read_unchecked(file: &OwnedFd, is_regular_only: bool) -> Result<(Vec<u8>, Mode), Error> {
    let stat = rustix::fs::fstat(file).map_err(|errno| error("looking at a file", errno))?;
    if is_regular_only && FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Refusal::NotAFile.into());
    }
    let mut bytes = Vec::new();
    let file = file
        .try_clone()
        .map_err(|io| error("reading a file", errno_of(&io)))?;
    let read = std::io::Read::read_to_end(&mut File::from(file), &mut bytes);
    read.map_err(|io| error("reading a file", errno_of(&io)))?;
    Ok((bytes, Mode::from_raw_mode(stat.st_mode & 0o777)))
}

/// Reads an open file, if it is a regular one.
fn read_file(file: &OwnedFd) -> Result<(Vec<u8>, Mode), Error> {
    let stat = rustix::fs::fstat(file).map_err(|errno| error("looking at a file", errno))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Refusal::NotAFile.into());
    }
    let size = usize::try_from(stat.st_size).unwrap_or(usize::MAX);
    check_size(size)?;
    // One byte more than its size tells the end in the same turn. It may grow while it is read, so the limit is held
    // here too.
    let mut bytes = Vec::with_capacity(size + 1);
    while bytes.len() <= MAX_FILE {
        match rustix::io::read(file, rustix::buffer::spare_capacity(&mut bytes)) {
            Ok(0) => break,
            Ok(_) if bytes.len() == size => break,
            Ok(_) => bytes.reserve(CHUNK),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(error("reading a file", errno)),
        }
    }
    check_size(bytes.len())?;
    Ok((bytes, Mode::from_raw_mode(stat.st_mode & 0o777)))
}

fn check_size(bytes: usize) -> Result<(), Refusal> {
    if bytes > MAX_FILE {
        return Err(Refusal::TooLarge {
            limit: MAX_FILE as u64,
        });
    }
    Ok(())
}

/// Cuts out lines, counted from 1, both included, with their line ends.
fn lines(bytes: &[u8], first: u32, last: u32) -> Result<&[u8], Refusal> {
    let Some(skipped) = first.checked_sub(1).filter(|_| first <= last) else {
        return Err(Refusal::Invalid(format!("there are no lines {first} to {last}")));
    };
    let start_of = |line: u32| match usize::try_from(line).unwrap_or(usize::MAX) {
        0 => 0,
        line => memchr::memchr_iter(b'\n', bytes)
            .nth(line - 1)
            .map_or(bytes.len(), |end| end + 1),
    };
    let start = start_of(skipped);
    if start == bytes.len() && skipped > 0 {
        let count = memchr::memchr_iter(b'\n', bytes).count() + usize::from(!bytes.ends_with(b"\n"));
        return Err(Refusal::Invalid(format!(
            "line {first} is beyond the last, {count}"
        )));
    }
    Ok(&bytes[start..start_of(last)])
}

/// Tells what the kernel's answer means: for the asker, or for us.
fn error(attempted: &'static str, errno: Errno) -> Error {
    Error::Refused(match errno {
        Errno::XDEV => Refusal::Outside,
        Errno::NOENT => Refusal::NotFound,
        Errno::LOOP => Refusal::Link,
        Errno::NXIO | Errno::ISDIR => Refusal::NotAFile,
        Errno::NOTDIR => Refusal::NotADirectory,
        Errno::EXIST => Refusal::Exists,
        Errno::ACCESS | Errno::PERM | Errno::ROFS => Refusal::Denied,
        Errno::NOSPC | Errno::DQUOT => Refusal::Full,
        Errno::FBIG => Refusal::TooLarge {
            limit: MAX_FILE as u64,
        },
        Errno::NAMETOOLONG => Refusal::Invalid("a name is too long".into()),
        Errno::AGAIN => Refusal::Invalid("it was moved again and again while it was looked for".into()),
        errno => return Error::Fault { attempted, errno },
    })
}

fn errno_of(io: &std::io::Error) -> Errno {
    Errno::from_io_error(io).unwrap_or(Errno::IO)
}
