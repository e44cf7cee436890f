//! What the guest answers: parts of an answer, and the one result that ends a request.
//!
//! This module does not know which answer fits which request: `calls` does.

use std::path::PathBuf;

use crate::frame::sealed::Body;
use crate::frame::wire::{Malformed, Put, Take};
use crate::frame::{HEADER, RequestId, header};

/// The version that both sides must share.
pub const PROTOCOL: u16 = 2;

/// The most bytes of output or of a file in one frame.
pub const CHUNK: usize = 64 * 1024;

/// The most entries or matches in one frame.
pub const BATCH: usize = 64;

/// The longest path or line that is reported; longer ones are cut or left out by the guest.
pub const MAX_REPORTED: usize = 1024;

/// The most places of an ambiguous text that are named.
pub const MAX_PLACES: u32 = 100;

/// What travels from guest to host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response {
    /// A command printed something.
    Output {
        /// Where.
        stream: Stream,
        /// What.
        bytes: Vec<u8>,
    },
    /// The next bytes of a file.
    FileBytes(Vec<u8>),
    /// Something that a list found.
    Entries(Vec<Entry>),
    /// Something that a search found.
    Matches(Vec<Match>),
    /// A command ended. A result.
    Exited(Exited),
    /// It is done. A result.
    Done,
    /// A list or a search ended. A result.
    Walked(Walked),
    /// The forwarder listens. A result.
    Listening {
        /// On this loopback port.
        port: u16,
    },
    /// The guest is there. A result.
    Ready {
        /// The version that it speaks.
        protocol: u16,
        /// Its number in its namespace: 1 where it is the sandbox's init.
        pid: u32,
    },
    /// It was not done, for a reason that the asker can act on. A result.
    Refused(Refusal),
    /// The world did not do it. A result.
    Fault(String),
}

/// Which of a command's streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Both, through one pipe.
    Merged,
    /// Standard output.
    Out,
    /// Standard error.
    Error,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exited {
    /// The end.
    pub ending: Ending,
    /// What it used.
    pub usage: Usage,
    /// How many bytes of its output were dropped.
    pub dropped: u64,
}

/// Why a command is over. Only `Code(0)` can ever count as passed (S-18).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It ended by itself.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// Its time was up and its tree was killed.
    TimedOut,
    /// The host had it killed.
    Killed,
    /// It could not be started within the sandbox's limits.
    Limit(Limit),
}

/// A limit that the guest itself met when it started a command. Others are read outside (S-42).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// No further process.
    Processes,
    /// No further memory.
    Memory,
}

/// What a command and those it waited for used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// By the clock, in microseconds.
    pub elapsed_us: u64,
    /// In user mode, in microseconds.
    pub user_us: u64,
    /// In the kernel, in microseconds.
    pub system_us: u64,
    /// The largest resident set, in KiB.
    pub max_rss_kib: u64,
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link; never followed by a walk.
    Symlink,
    /// A FIFO, a socket, a device.
    Other,
}

/// One finding of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Relative to the root.
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
    /// In bytes; 0 for what is no file.
    pub size: u64,
}

/// One finding of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// Relative to the root.
    pub path: PathBuf,
    /// Counted from 1.
    pub line: u32,
    /// The line, cut to what is reported.
    pub text: Vec<u8>,
}

/// How a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Walked {
    /// Whether everything was looked at; otherwise a limit ended it.
    pub is_complete: bool,
    /// How many files or directories could not be looked at: too large, binary, unreadable.
    pub skipped: u32,
}

/// Why something was not done; an answer, not a fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The path leaves the root.
    #[error("the path is outside the worktree")]
    Outside,
    /// There is none.
    #[error("it does not exist")]
    NotFound,
    /// It is not a regular file.
    #[error("it is not a regular file")]
    NotAFile,
    /// It is not a directory, or the path leads through something that is none.
    #[error("it is not a directory")]
    NotADirectory,
    /// It is a symbolic link, or the path leads through one.
    #[error("the path is a symbolic link or leads through one")]
    Link,
    /// It exists already.
    #[error("it exists already")]
    Exists,
    /// It is too large.
    #[error("it is larger than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: u64,
    },
    /// The text to replace is not there.
    #[error("the text to replace does not occur")]
    NoMatch,
    /// The text to replace is there more than once.
    #[error("the text to replace occurs more than once")]
    Ambiguous {
        /// The lines where it begins; at most [`MAX_PLACES`].
        lines: Vec<u32>,
        /// Whether there are further ones.
        has_more: bool,
    },
    /// The sandbox's own permissions forbid it.
    #[error("permission denied")]
    Denied,
    /// There is no space left.
    #[error("no space is left")]
    Full,
    /// Too much is under way already.
    #[error("too many requests are under way")]
    Busy,
    /// The command cannot be started.
    #[error("cannot be started: {0}")]
    CannotStart(String),
    /// The request makes no sense.
    #[error("{0}")]
    Invalid(String),
}

impl Response {
    /// Whether it ends its request.
    pub fn is_result(&self) -> bool {
        match self {
            Self::Output { .. } | Self::FileBytes(_) | Self::Entries(_) | Self::Matches(_) => false,
            Self::Exited(_)
            | Self::Done
            | Self::Walked(_)
            | Self::Listening { .. }
            | Self::Ready { .. }
            | Self::Refused(_)
            | Self::Fault(_) => true,
        }
    }
}

/// Bytes before the output in an `Output` frame.
pub const OUTPUT_HEADER: usize = HEADER + 1;

/// Writes what stands before `length` bytes of output, so that they need not be copied to be framed.
pub fn output_header(id: RequestId, stream: Stream, length: usize) -> [u8; OUTPUT_HEADER] {
    let mut out = [0; OUTPUT_HEADER];
    out[..HEADER].copy_from_slice(&header(OUTPUT, id, length + 1));
    out[HEADER] = stream_code(stream);
    out
}

const OUTPUT: u8 = 129;

impl Body for Response {
    const LONGEST: usize = 4 * CHUNK;

    fn kind(&self) -> u8 {
        match self {
            Self::Output { .. } => OUTPUT,
            Self::FileBytes(_) => 130,
            Self::Entries(_) => 131,
            Self::Matches(_) => 132,
            Self::Exited(_) => 133,
            Self::Done => 134,
            Self::Walked(_) => 135,
            Self::Listening { .. } => 136,
            Self::Ready { .. } => 137,
            Self::Refused(_) => 138,
            Self::Fault(_) => 139,
        }
    }

    fn put(&self, put: &mut Put<'_>) {
        match self {
            Self::Output { stream, bytes } => {
                put.u8(stream_code(*stream));
                put.rest(bytes);
            }
            Self::FileBytes(bytes) => put.rest(bytes),
            Self::Entries(entries) => put.list(entries, |put, entry| {
                put.path(&entry.path);
                put.u8(match entry.kind {
                    Kind::File => 0,
                    Kind::Directory => 1,
                    Kind::Symlink => 2,
                    Kind::Other => 3,
                });
                put.u64(entry.size);
            }),
            Self::Matches(matches) => put.list(matches, |put, found| {
                put.path(&found.path);
                put.u32(found.line);
                put.bytes(&found.text);
            }),
            Self::Exited(exited) => put_exited(put, exited),
            Self::Done => {}
            Self::Walked(walked) => {
                put.flag(walked.is_complete);
                put.u32(walked.skipped);
            }
            Self::Listening { port } => put.u16(*port),
            Self::Ready { protocol, pid } => {
                put.u16(*protocol);
                put.u32(*pid);
            }
            Self::Refused(refusal) => put_refusal(put, refusal),
            Self::Fault(text) => put.text(text),
        }
    }

    fn take(kind: u8, take: &mut Take<'_>) -> Result<Self, Malformed> {
        let batch = u32::try_from(BATCH).unwrap_or(u32::MAX);
        Ok(match kind {
            OUTPUT => Self::Output {
                stream: match take.u8()? {
                    0 => Stream::Merged,
                    1 => Stream::Out,
                    2 => Stream::Error,
                    other => return Err(Malformed::Variant(other)),
                },
                bytes: take.rest(),
            },
            130 => Self::FileBytes(take.rest()),
            131 => Self::Entries(take.list(batch, |take| {
                Ok(Entry {
                    path: take.path()?,
                    kind: match take.u8()? {
                        0 => Kind::File,
                        1 => Kind::Directory,
                        2 => Kind::Symlink,
                        3 => Kind::Other,
                        other => return Err(Malformed::Variant(other)),
                    },
                    size: take.u64()?,
                })
            })?),
            132 => Self::Matches(take.list(batch, |take| {
                Ok(Match {
                    path: take.path()?,
                    line: take.u32()?,
                    text: take.bytes()?,
                })
            })?),
            133 => Self::Exited(take_exited(take)?),
            134 => Self::Done,
            135 => Self::Walked(Walked {
                is_complete: take.flag()?,
                skipped: take.u32()?,
            }),
            136 => Self::Listening { port: take.u16()? },
            137 => Self::Ready {
                protocol: take.u16()?,
                pid: take.u32()?,
            },
            138 => Self::Refused(take_refusal(take)?),
            139 => Self::Fault(take.text()?),
            _ => return Err(Malformed::Kind),
        })
    }
}

fn stream_code(stream: Stream) -> u8 {
    match stream {
        Stream::Merged => 0,
        Stream::Out => 1,
        Stream::Error => 2,
    }
}

fn put_exited(put: &mut Put<'_>, exited: &Exited) {
    let (variant, value) = match exited.ending {
        Ending::Code(code) => (0, code),
        Ending::Signal(signal) => (1, signal),
        Ending::TimedOut => (2, 0),
        Ending::Killed => (3, 0),
        Ending::Limit(Limit::Processes) => (4, 0),
        Ending::Limit(Limit::Memory) => (5, 0),
    };
    put.u8(variant);
    put.i32(value);
    put.u64(exited.usage.elapsed_us);
    put.u64(exited.usage.user_us);
    put.u64(exited.usage.system_us);
    put.u64(exited.usage.max_rss_kib);
    put.u64(exited.dropped);
}

fn take_exited(take: &mut Take<'_>) -> Result<Exited, Malformed> {
    let ending = match (take.u8()?, take.i32()?) {
        (0, code) => Ending::Code(code),
        (1, signal) => Ending::Signal(signal),
        (2, 0) => Ending::TimedOut,
        (3, 0) => Ending::Killed,
        (4, 0) => Ending::Limit(Limit::Processes),
        (5, 0) => Ending::Limit(Limit::Memory),
        (variant, _) => return Err(Malformed::Variant(variant)),
    };
    let usage = Usage {
        elapsed_us: take.u64()?,
        user_us: take.u64()?,
        system_us: take.u64()?,
        max_rss_kib: take.u64()?,
    };
    Ok(Exited {
        ending,
        usage,
        dropped: take.u64()?,
    })
}

fn put_refusal(put: &mut Put<'_>, refusal: &Refusal) {
    match refusal {
        Refusal::Outside => put.u8(0),
        Refusal::NotFound => put.u8(1),
        Refusal::NotAFile => put.u8(2),
        Refusal::NotADirectory => put.u8(3),
        Refusal::Exists => put.u8(4),
        Refusal::TooLarge { limit } => {
            put.u8(5);
            put.u64(*limit);
        }
        Refusal::NoMatch => put.u8(6),
        Refusal::Ambiguous { lines, has_more } => {
            put.u8(7);
            put.list(lines, |put, line| put.u32(*line));
            put.flag(*has_more);
        }
        Refusal::Denied => put.u8(8),
        Refusal::Full => put.u8(9),
        Refusal::Busy => put.u8(10),
        Refusal::CannotStart(why) => {
            put.u8(11);
            put.text(why);
        }
        Refusal::Invalid(why) => {
            put.u8(12);
            put.text(why);
        }
        Refusal::Link => put.u8(13),
    }
}

fn take_refusal(take: &mut Take<'_>) -> Result<Refusal, Malformed> {
    Ok(match take.u8()? {
        0 => Refusal::Outside,
        1 => Refusal::NotFound,
        2 => Refusal::NotAFile,
        3 => Refusal::NotADirectory,
        4 => Refusal::Exists,
        5 => Refusal::TooLarge { limit: take.u64()? },
        6 => Refusal::NoMatch,
        7 => Refusal::Ambiguous {
            lines: take.list(MAX_PLACES, Take::u32)?,
            has_more: take.flag()?,
        },
        8 => Refusal::Denied,
        9 => Refusal::Full,
        10 => Refusal::Busy,
        11 => Refusal::CannotStart(take.text()?),
        12 => Refusal::Invalid(take.text()?),
        13 => Refusal::Link,
        other => return Err(Malformed::Variant(other)),
    })
}
