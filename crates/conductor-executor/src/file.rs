//! Reads and writes files beneath one directory and nowhere else (TOOL-2, S-46).
//!
//! The kernel itself resolves every path beneath the directory's descriptor (`openat2`), so neither `..` nor a symlink
//! nor a rename between check and use leads out. Only regular files are touched, and a write shows whole or not at all.
//! Nothing is synced to disk: a working directory that a crash caught is reset (RUN-12a).
//! This module does not know whose files these are.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use conductor_domain::fault::Fault;
use conductor_port::executor::FileRefusal;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;

/// The largest file that is read or written.
pub(crate) const MAX_FILE: u64 = 8 * 1024 * 1024;

/// How many places of an ambiguous text are named.
const MAX_PLACES: usize = 100;

/// How often a path is resolved again that changed meanwhile.
const RESOLVE_TRIES: u32 = 64;

/// A directory and everything beneath it.
#[derive(Debug)]
pub(crate) struct Beneath {
    root: OwnedFd,
    /// Held while a file is changed, so that of two replacements at once none is lost.
    changing: Mutex<()>,
    scratch: AtomicU64,
}

/// Why an operation stopped.
enum Stop {
    Refused(FileRefusal),
    Fault(Fault),
}

impl From<FileRefusal> for Stop {
    fn from(refusal: FileRefusal) -> Self {
        Self::Refused(refusal)
    }
}

type Answer<T> = Result<Result<T, FileRefusal>, Fault>;

fn answer<T>(result: Result<T, Stop>) -> Answer<T> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(Stop::Refused(refusal)) => Ok(Err(refusal)),
        Err(Stop::Fault(fault)) => Err(fault),
    }
}

/// Whether a file of that name may be there already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Existing {
    Refused,
    Replaced,
}

impl Beneath {
    /// Opens the directory; it stays the same one even when it is renamed.
    pub(crate) fn open(dir: &Path) -> Result<Self, Fault> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(dir, flags, Mode::empty()).map_err(|error| {
            Fault::permanent(format!(
                "opening the working directory {}: {error}",
                dir.display()
            ))
        })?;
        Ok(Self {
            root,
            changing: Mutex::new(()),
            scratch: AtomicU64::new(0),
        })
    }

    /// Duplicates the directory's descriptor, for a command that is to start there.
    pub(crate) fn descriptor(&self) -> Result<OwnedFd, Fault> {
        self.root
            .try_clone()
            .map_err(|error| Fault::transient(format!("duplicating a descriptor: {error}")))
    }

    /// Reads a file.
    pub(crate) fn view(&self, path: &str) -> Answer<Vec<u8>> {
        answer(self.read(path).map(|(bytes, _)| bytes))
    }

    /// Writes a new file and the directories it needs.
    pub(crate) fn create(&self, path: &str, content: &[u8]) -> Answer<()> {
        answer((|| {
            check_size(path, content.len())?;
            let (parents, name) = split(path)?;
            let dir = self.make_directories(path, &parents)?;
            self.put(
                path,
                &dir,
                name,
                content,
                Mode::from_raw_mode(0o644),
                Existing::Refused,
            )
        })())
    }

    /// Replaces the one occurrence of `old`; the file keeps its mode.
    pub(crate) fn replace(&self, path: &str, old: &str, new: &str) -> Answer<()> {
        answer((|| {
            let _one_at_a_time = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
            let (bytes, mode) = self.read(path)?;
            let at = only_match(path, &bytes, old.as_bytes())?;
            let mut changed = Vec::with_capacity(bytes.len() - old.len() + new.len());
            changed.extend_from_slice(&bytes[..at]);
            changed.extend_from_slice(new.as_bytes());
            changed.extend_from_slice(&bytes[at + old.len()..]);
            check_size(path, changed.len())?;
            let (parents, name) = split(path)?;
            let dir = self.directory(path, &parents.join("/"))?;
            self.put(path, &dir, name, &changed, mode, Existing::Replaced)
        })())
    }

    fn read(&self, path: &str) -> Result<(Vec<u8>, Mode), Stop> {
        split(path)?;
        let opened = self.resolve(path, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK);
        let file = opened.map_err(|errno| stop(path, errno))?;
        let stat = rustix::fs::fstat(&file).map_err(|errno| stop(path, errno))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(FileRefusal::NotAFile(path.to_owned()).into());
        }
        check_size(path, usize::try_from(stat.st_size).unwrap_or(usize::MAX))?;
        let mut bytes = Vec::new();
        // The file may grow while it is read, so the limit is held here too.
        File::from(file)
            .take(MAX_FILE + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| Stop::Fault(Fault::transient(format!("reading `{path}`: {error}"))))?;
        check_size(path, bytes.len())?;
        Ok((bytes, Mode::from_raw_mode(stat.st_mode & 0o777)))
    }

    fn directory(&self, path: &str, directory: &str) -> Result<OwnedFd, Stop> {
        let directory = if directory.is_empty() { "." } else { directory };
        self.resolve(directory, OFlags::PATH | OFlags::DIRECTORY)
            .map_err(|errno| stop(path, errno))
    }

    fn make_directories(&self, path: &str, parents: &[&str]) -> Result<OwnedFd, Stop> {
        let mut dir = self.directory(path, "")?;
        for depth in 1..=parents.len() {
            let prefix = parents[..depth].join("/");
            dir = match self.resolve(&prefix, OFlags::PATH | OFlags::DIRECTORY) {
                Ok(found) => found,
                Err(Errno::NOENT) => {
                    match rustix::fs::mkdirat(&dir, parents[depth - 1], Mode::from_raw_mode(0o755)) {
                        Ok(()) | Err(Errno::EXIST) => self.directory(path, &prefix)?,
                        Err(errno) => return Err(stop(path, errno)),
                    }
                }
                Err(errno) => return Err(stop(path, errno)),
            };
        }
        Ok(dir)
    }

    fn put(
        &self,
        path: &str,
        dir: &OwnedFd,
        name: &str,
        content: &[u8],
        mode: Mode,
        existing: Existing,
    ) -> Result<(), Stop> {
        let number = self.scratch.fetch_add(1, Ordering::Relaxed);
        let scratch = format!(".conductor-{}-{number}.part", std::process::id());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(dir, &scratch, flags, Mode::from_raw_mode(0o600))
            .map_err(|errno| stop(path, errno))?;
        let written = (|| {
            let mut file = File::from(file);
            file.write_all(content)
                .map_err(|error| Stop::Fault(Fault::transient(format!("writing `{path}`: {error}"))))?;
            rustix::fs::fchmod(&file, mode).map_err(|errno| stop(path, errno))?;
            let flags = match existing {
                Existing::Refused => RenameFlags::NOREPLACE,
                Existing::Replaced => RenameFlags::empty(),
            };
            rustix::fs::renameat_with(dir, &scratch, dir, name, flags).map_err(|errno| stop(path, errno))
        })();
        if written.is_err() {
            // Already failing; a scratch file that stays is swept with the working directory.
            let _ = rustix::fs::unlinkat(dir, &scratch, AtFlags::empty());
        }
        written
    }

    /// Opens beneath the root. The kernel answers EAGAIN when the path was moved while it looked.
    fn resolve(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let mut tries = 0;
        loop {
            match rustix::fs::openat2(&self.root, path, flags | OFlags::CLOEXEC, Mode::empty(), beneath) {
                Err(Errno::AGAIN | Errno::INTR) if tries < RESOLVE_TRIES => tries += 1,
                result => return result,
            }
        }
    }
}

/// Splits a path into its directories and its name; what could mean another place is refused before the kernel is asked.
fn split(path: &str) -> Result<(Vec<&str>, &str), FileRefusal> {
    if path.is_empty() || path.contains('\0') {
        return Err(FileRefusal::Other(format!(
            "`{}` is not a path",
            path.escape_debug()
        )));
    }
    if path.starts_with('/') || path.split('/').any(|part| part == "..") {
        return Err(FileRefusal::Outside(path.to_owned()));
    }
    let mut parts: Vec<&str> = path
        .split('/')
        .filter(|part| !matches!(*part, "" | "."))
        .collect();
    match parts.pop() {
        Some(name) if path.ends_with(name) => Ok((parts, name)),
        Some(_) | None => Err(FileRefusal::NotAFile(path.to_owned())),
    }
}

fn check_size(path: &str, bytes: usize) -> Result<(), FileRefusal> {
    if bytes as u64 > MAX_FILE {
        return Err(FileRefusal::TooLarge {
            path: path.to_owned(),
            limit: MAX_FILE,
        });
    }
    Ok(())
}

/// Finds the one place of `old`; overlapping ones count, because either could be meant.
fn only_match(path: &str, bytes: &[u8], old: &[u8]) -> Result<usize, FileRefusal> {
    if old.is_empty() {
        return Err(FileRefusal::Other("the text to replace is empty".into()));
    }
    let finder = memchr::memmem::Finder::new(old);
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(found) = bytes.get(from..).and_then(|rest| finder.find(rest)) {
        places.push(from + found);
        from += found + 1;
        if places.len() > MAX_PLACES {
            return Err(FileRefusal::Other(format!(
                "the text to replace occurs more than {MAX_PLACES} times in `{path}`"
            )));
        }
    }
    match places.as_slice() {
        [] => Err(FileRefusal::NoMatch(path.to_owned())),
        [place] => Ok(*place),
        _ => Err(FileRefusal::Ambiguous {
            path: path.to_owned(),
            lines: lines_of(bytes, &places),
        }),
    }
}

fn lines_of(bytes: &[u8], places: &[usize]) -> Vec<usize> {
    places
        .iter()
        .map(|place| 1 + memchr::memchr_iter(b'\n', &bytes[..*place]).count())
        .collect()
}

/// Tells what the kernel's answer means: for the agent, or for us.
fn stop(path: &str, errno: Errno) -> Stop {
    let path = path.to_owned();
    Stop::Refused(match errno {
        Errno::XDEV => FileRefusal::Outside(path),
        Errno::NOENT => FileRefusal::NotFound(path),
        Errno::LOOP | Errno::NXIO | Errno::ISDIR => FileRefusal::NotAFile(path),
        Errno::EXIST => FileRefusal::Exists(path),
        Errno::NOTDIR => FileRefusal::Other(format!(
            "`{path}` leads through something that is not a directory"
        )),
        Errno::NAMETOOLONG => FileRefusal::Other(format!("`{path}` is too long for a path")),
        Errno::ACCESS | Errno::PERM => FileRefusal::Other(format!("`{path}`: permission denied")),
        Errno::AGAIN => FileRefusal::Other(format!(
            "`{path}` was moved again and again while it was looked for"
        )),
        Errno::NOSYS => {
            return Stop::Fault(Fault::permanent(
                "this kernel has no openat2 (Linux 5.6 or newer is needed)",
            ));
        }
        other => return Stop::Fault(Fault::transient(format!("`{path}`: {other}"))),
    })
}
