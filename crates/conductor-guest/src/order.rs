//! What the host tells the guest: requests, each with exactly one result, and what steers one under way.
//!
//! Paths are bytes, because a repository may hold names that are not text. File content travels as bytes, never inside
//! a shell string. This module does not know how anything is carried out.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::file::MAX_FILE;
use crate::frame::sealed::Body;
use crate::frame::wire::{Malformed, Put, Take};

/// The most words of an argv, variables of an environment, or names to skip.
const MAX_WORDS: u32 = 64 * 1024;

/// What travels from host to guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Begins a request.
    Ask(Request),
    /// Ends the command of this request, with its whole tree. It still gets its one result.
    Kill,
    /// Lets the command of this request print further bytes.
    Credit {
        /// How many.
        bytes: u32,
    },
}

/// Something that the guest does; answered by any number of parts and exactly one result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Runs a command. Parts: `Output`. Result: `Exited`.
    Run(Run),
    /// Reads a file. Parts: `FileBytes`. Result: `Done`.
    View {
        /// Beneath the root.
        path: PathBuf,
        /// What of it.
        range: Range,
    },
    /// Writes a new file and the directories that it needs. Result: `Done`.
    CreateFile {
        /// Beneath the root.
        path: PathBuf,
        /// What is in it.
        content: Vec<u8>,
    },
    /// Replaces the one occurrence of a text. Result: `Done`.
    StrReplace {
        /// Beneath the root.
        path: PathBuf,
        /// What must occur exactly once.
        old: Vec<u8>,
        /// What stands there instead.
        new: Vec<u8>,
    },
    /// Lists what is beneath a directory. Parts: `Entries`. Result: `Walked`.
    List(Walk),
    /// Finds lines beneath a directory. Parts: `Matches`. Result: `Walked`.
    Search {
        /// Where.
        walk: Walk,
        /// What.
        pattern: Pattern,
    },
    /// Listens on a loopback port and carries every connection to a unix socket. Result: `Listening`.
    Forward {
        /// The port; 0 lets the kernel choose.
        port: u16,
        /// Where the socket is, in the sandbox.
        socket: PathBuf,
    },
    /// Asks whether the guest is there. Result: `Ready`.
    Ping,
    /// Ends everything in the sandbox. Result: `Done`, then the end of the channel.
    Shutdown,
}

/// A command and its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The program, looked up in the `PATH` of `environment`, and its arguments.
    pub argv: Vec<OsString>,
    /// The whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The directory that it starts in, beneath the root; empty is the root.
    pub directory: PathBuf,
    /// How long it may take.
    pub time_ms: u64,
    /// The most bytes of output that are sent; the rest is counted and dropped.
    pub output: u64,
    /// How many bytes it may print before the first `Credit`.
    pub credit: u32,
    /// How its two output streams come.
    pub streams: Streams,
}

/// How a command's two output streams come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// Through one pipe: exactly in the order in which they were written, not told apart.
    Together,
    /// Through a pipe each: told apart, in the order in which the guest found them.
    Apart,
}

/// What of a file is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range {
    /// All of it.
    Whole,
    /// These lines, counted from 1, both included.
    Lines {
        /// The first.
        first: u32,
        /// The last; beyond the end of the file is its end.
        last: u32,
    },
}

/// A directory to walk, and when to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walk {
    /// Beneath the root; empty is the root.
    pub path: PathBuf,
    /// How deep; 1 is the directory's own entries.
    pub depth: u16,
    /// The most findings.
    pub findings: u32,
    /// How long it may take.
    pub time_ms: u32,
    /// Names of directories that are not entered.
    pub skip: Vec<OsString>,
}

/// What is searched for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// These bytes.
    Literal(Vec<u8>),
    /// This regular expression, matched against each line in time linear in its length.
    Regex(String),
}

impl Body for Order {
    /// Both texts of a replacement may be as long as a file.
    const LONGEST: usize = 2 * MAX_FILE + 1024 * 1024;

    fn kind(&self) -> u8 {
        match self {
            Self::Ask(Request::Run(_)) => 1,
            Self::Kill => 2,
            Self::Credit { .. } => 3,
            Self::Ask(Request::View { .. }) => 4,
            Self::Ask(Request::CreateFile { .. }) => 5,
            Self::Ask(Request::StrReplace { .. }) => 6,
            Self::Ask(Request::List(_)) => 7,
            Self::Ask(Request::Search { .. }) => 8,
            Self::Ask(Request::Forward { .. }) => 9,
            Self::Ask(Request::Ping) => 10,
            Self::Ask(Request::Shutdown) => 11,
        }
    }

    fn put(&self, put: &mut Put<'_>) {
        match self {
            Self::Ask(Request::Run(run)) => put_run(put, run),
            Self::Kill | Self::Ask(Request::Ping | Request::Shutdown) => {}
            Self::Credit { bytes } => put.u32(*bytes),
            Self::Ask(Request::View { path, range }) => {
                put.path(path);
                put_range(put, *range);
            }
            Self::Ask(Request::CreateFile { path, content }) => {
                put.path(path);
                put.rest(content);
            }
            Self::Ask(Request::StrReplace { path, old, new }) => {
                put.path(path);
                put.bytes(old);
                put.rest(new);
            }
            Self::Ask(Request::List(walk)) => put_walk(put, walk),
            Self::Ask(Request::Search { walk, pattern }) => {
                put_walk(put, walk);
                put_pattern(put, pattern);
            }
            Self::Ask(Request::Forward { port, socket }) => {
                put.u16(*port);
                put.path(socket);
            }
        }
    }

    fn take(kind: u8, take: &mut Take<'_>) -> Result<Self, Malformed> {
        Ok(match kind {
            1 => Self::Ask(Request::Run(take_run(take)?)),
            2 => Self::Kill,
            3 => Self::Credit { bytes: take.u32()? },
            4 => Self::Ask(Request::View {
                path: take.path()?,
                range: take_range(take)?,
            }),
            5 => Self::Ask(Request::CreateFile {
                path: take.path()?,
                content: take.rest(),
            }),
            6 => Self::Ask(Request::StrReplace {
                path: take.path()?,
                old: take.bytes()?,
                new: take.rest(),
            }),
            7 => Self::Ask(Request::List(take_walk(take)?)),
            8 => Self::Ask(Request::Search {
                walk: take_walk(take)?,
                pattern: take_pattern(take)?,
            }),
            9 => Self::Ask(Request::Forward {
                port: take.u16()?,
                socket: take.path()?,
            }),
            10 => Self::Ask(Request::Ping),
            11 => Self::Ask(Request::Shutdown),
            _ => return Err(Malformed::Kind),
        })
    }
}

fn put_run(put: &mut Put<'_>, run: &Run) {
    put.list(&run.argv, |put, word| put.word(word));
    put.list(&run.environment, |put, (key, value)| {
        put.word(key);
        put.word(value);
    });
    put.path(&run.directory);
    put.u64(run.time_ms);
    put.u64(run.output);
    put.u32(run.credit);
    put.u8(match run.streams {
        Streams::Together => 0,
        Streams::Apart => 1,
    });
}

fn take_run(take: &mut Take<'_>) -> Result<Run, Malformed> {
    Ok(Run {
        argv: take.list(MAX_WORDS, Take::word)?,
        environment: take.list(MAX_WORDS, |take| Ok((take.word()?, take.word()?)))?,
        directory: take.path()?,
        time_ms: take.u64()?,
        output: take.u64()?,
        credit: take.u32()?,
        streams: match take.u8()? {
            0 => Streams::Together,
            1 => Streams::Apart,
            other => return Err(Malformed::Variant(other)),
        },
    })
}

fn put_range(put: &mut Put<'_>, range: Range) {
    match range {
        Range::Whole => put.u8(0),
        Range::Lines { first, last } => {
            put.u8(1);
            put.u32(first);
            put.u32(last);
        }
    }
}

fn take_range(take: &mut Take<'_>) -> Result<Range, Malformed> {
    match take.u8()? {
        0 => Ok(Range::Whole),
        1 => Ok(Range::Lines {
            first: take.u32()?,
            last: take.u32()?,
        }),
        other => Err(Malformed::Variant(other)),
    }
}

fn put_walk(put: &mut Put<'_>, walk: &Walk) {
    put.path(&walk.path);
    put.u16(walk.depth);
    put.u32(walk.findings);
    put.u32(walk.time_ms);
    put.list(&walk.skip, |put, name| put.word(name));
}

fn take_walk(take: &mut Take<'_>) -> Result<Walk, Malformed> {
    Ok(Walk {
        path: take.path()?,
        depth: take.u16()?,
        findings: take.u32()?,
        time_ms: take.u32()?,
        skip: take.list(MAX_WORDS, Take::word)?,
    })
}

fn put_pattern(put: &mut Put<'_>, pattern: &Pattern) {
    match pattern {
        Pattern::Literal(bytes) => {
            put.u8(0);
            put.bytes(bytes);
        }
        Pattern::Regex(text) => {
            put.u8(1);
            put.text(text);
        }
    }
}

fn take_pattern(take: &mut Take<'_>) -> Result<Pattern, Malformed> {
    match take.u8()? {
        0 => Ok(Pattern::Literal(take.bytes()?)),
        1 => Ok(Pattern::Regex(take.text()?)),
        other => Err(Malformed::Variant(other)),
    }
}
