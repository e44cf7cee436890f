//! Walks a directory to list it or to search its files, within limits of depth, findings and time.
//!
//! A walk neither begins at a symlink nor passes through one: each directory is opened by its name in the one before. Names come in the
//! order of their bytes. Files that are too large, binary, not regular or unreadable are counted, not searched.
//! This module does not know who reads the findings, nor the time.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

use super::place::Place;
use super::{Beneath, Error, RESOLVE, error, read_file, resolve_at};
use crate::order::{Pattern, Walk};
use crate::response::{BATCH, Entry, Kind, MAX_REPORTED, Match, Refusal, Response, Walked};

/// The most names of one directory that are looked at.
const MAX_NAMES: usize = 100_000;

/// Deeper than this a walk does not go, whatever is asked: one descriptor is open per level.
const MAX_DEPTH: u16 = 64;

/// How much of a file is looked at to tell whether it is binary.
const SAMPLE: usize = 8 * 1024;

/// Takes what a walk finds, and says when it must stop.
pub trait Findings {
    /// Takes a batch.
    fn take(&mut self, batch: Response);

    /// Whether time is up.
    fn is_late(&self) -> bool;
}

impl Beneath {
    /// Lists what is beneath a directory.
    pub fn list(&self, walk: &Walk, findings: &mut dyn Findings) -> Result<Walked, Error> {
        self.walk(walk, findings, &Matcher::Everything)
    }

    /// Finds the lines that match beneath a directory.
    pub fn search(
        &self,
        walk: &Walk,
        pattern: &Pattern,
        findings: &mut dyn Findings,
    ) -> Result<Walked, Error> {
        self.walk(walk, findings, &Matcher::new(pattern)?)
    }

    fn walk(&self, walk: &Walk, findings: &mut dyn Findings, matcher: &Matcher) -> Result<Walked, Error> {
        let start: Vec<&[u8]> = Place::directory(&walk.path)?.parts().collect();
        let directory = self.descend(&start.join(&b'/'))?;
        let mut walker = Walker {
            walk,
            matcher,
            findings,
            entries: Vec::new(),
            matches: Vec::new(),
            left: walk.findings,
            skipped: 0,
        };
        let path = start.join(&b'/');
        let is_complete = walker.enter(&directory, &path, 1)?;
        walker.flush();
        Ok(Walked {
            is_complete,
            skipped: walker.skipped,
        })
    }
}

/// What is looked for.
enum Matcher {
    Everything,
    Literal(Box<memchr::memmem::Finder<'static>>),
    Regex(Box<regex_lite::Regex>),
}

impl Matcher {
    fn new(pattern: &Pattern) -> Result<Self, Refusal> {
        match pattern {
            Pattern::Literal(bytes) if bytes.is_empty() => {
                Err(Refusal::Invalid("the text to search is empty".into()))
            }
            Pattern::Literal(bytes) => Ok(Self::Literal(Box::new(
                memchr::memmem::Finder::new(bytes).into_owned(),
            ))),
            Pattern::Regex(text) => regex_lite::Regex::new(text)
                .map(|regex| Self::Regex(Box::new(regex)))
                .map_err(|why| Refusal::Invalid(format!("the pattern is not understood: {why}"))),
        }
    }

    fn is_in(&self, line: &[u8]) -> bool {
        match self {
            Self::Everything => true,
            Self::Literal(finder) => finder.find(line).is_some(),
            Self::Regex(regex) => regex.is_match(&String::from_utf8_lossy(line)),
        }
    }
}

struct Walker<'a> {
    walk: &'a Walk,
    matcher: &'a Matcher,
    findings: &'a mut dyn Findings,
    entries: Vec<Entry>,
    matches: Vec<Match>,
    left: u32,
    skipped: u32,
}

impl Walker<'_> {
    /// Looks at a directory and what is in it; false when a limit ended the walk.
    fn enter(&mut self, directory: &OwnedFd, path: &[u8], depth: u16) -> Result<bool, Error> {
        let (names, all) = names(directory)?;
        let mut is_complete = all;
        for name in names {
            if self.findings.is_late() {
                return Ok(false);
            }
            let path = join(path, &name);
            let Ok(stat) = rustix::fs::statat(directory, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW) else {
                // It went away since the directory was read.
                continue;
            };
            let kind = kind(FileType::from_raw_mode(stat.st_mode));
            let goes_on = match self.matcher {
                Matcher::Everything => self.note(&path, kind, u64::try_from(stat.st_size).unwrap_or(0)),
                Matcher::Literal(_) | Matcher::Regex(_) if kind == Kind::File => {
                    self.read(directory, &name, &path)
                }
                Matcher::Literal(_) | Matcher::Regex(_) => true,
            };
            if !goes_on {
                return Ok(false);
            }
            if kind == Kind::Directory && depth < self.walk.depth && !self.is_skipped(&name) {
                is_complete &= self.descend(directory, &name, &path, depth + 1)?;
                if self.left == 0 || self.findings.is_late() {
                    return Ok(false);
                }
            }
        }
        Ok(is_complete)
    }

    fn is_skipped(&self, name: &[u8]) -> bool {
        self.walk.skip.iter().any(|skip| skip.as_bytes() == name)
    }

    fn descend(&mut self, directory: &OwnedFd, name: &[u8], path: &[u8], depth: u16) -> Result<bool, Error> {
        if depth > MAX_DEPTH {
            return Ok(false);
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        match resolve_at(directory, name, flags, RESOLVE) {
            Ok(inner) => match self.enter(&inner, path, depth) {
                Err(Error::Refused(_)) => Ok(self.skip()),
                result => result,
            },
            Err(Error::Refused(_)) => Ok(self.skip()),
            Err(fault @ Error::Fault { .. }) => Err(fault),
        }
    }

    /// Counts what could not be looked at; the walk goes on.
    fn skip(&mut self) -> bool {
        self.skipped = self.skipped.saturating_add(1);
        true
    }

    fn note(&mut self, path: &[u8], kind: Kind, size: u64) -> bool {
        if path.len() > MAX_REPORTED {
            return self.skip();
        }
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        self.entries.push(Entry {
            path: PathBuf::from(OsStr::from_bytes(path)),
            kind,
            size: if kind == Kind::File { size } else { 0 },
        });
        if self.entries.len() == BATCH {
            self.flush();
        }
        true
    }

    fn read(&mut self, directory: &OwnedFd, name: &[u8], path: &[u8]) -> bool {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let opened = resolve_at(directory, name, flags, RESOLVE);
        let Ok((bytes, _)) = opened.and_then(|file| read_file(&file)) else {
            return self.skip();
        };
        if path.len() > MAX_REPORTED || bytes[..bytes.len().min(SAMPLE)].contains(&0) {
            return self.skip();
        }
        if let Matcher::Literal(finder) = self.matcher
            && finder.find(&bytes).is_none()
        {
            return true;
        }
        for (line, text) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
            if !self.matcher.is_in(text) {
                continue;
            }
            if self.left == 0 {
                return false;
            }
            self.left -= 1;
            self.matches.push(Match {
                path: PathBuf::from(OsStr::from_bytes(path)),
                line,
                text: text[..text.len().min(MAX_REPORTED)].to_vec(),
            });
            if self.matches.len() == BATCH {
                self.flush();
            }
        }
        true
    }

    fn flush(&mut self) {
        if !self.entries.is_empty() {
            self.findings
                .take(Response::Entries(std::mem::take(&mut self.entries)));
        }
        if !self.matches.is_empty() {
            self.findings
                .take(Response::Matches(std::mem::take(&mut self.matches)));
        }
    }
}

/// Reads a directory's names, sorted; false when there are too many to be all read.
fn names(directory: &OwnedFd) -> Result<(Vec<Vec<u8>>, bool), Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let readable = rustix::fs::openat(directory, ".", flags, Mode::empty())
        .map_err(|errno| error("opening a directory", errno))?;
    let mut names = Vec::new();
    for entry in Dir::new(readable).map_err(|errno| error("reading a directory", errno))? {
        let entry = entry.map_err(|errno| error("reading a directory", errno))?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        if names.len() == MAX_NAMES {
            names.sort_unstable();
            return Ok((names, false));
        }
        names.push(name.to_vec());
    }
    names.sort_unstable();
    Ok((names, true))
}

fn join(path: &[u8], name: &[u8]) -> Vec<u8> {
    if path.is_empty() {
        name.to_vec()
    } else {
        [path, name].join(&b'/')
    }
}

fn kind(file_type: FileType) -> Kind {
    match file_type {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Symlink,
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => Kind::Other,
    }
}
