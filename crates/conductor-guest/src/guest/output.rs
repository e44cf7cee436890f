//! Carries what a command prints to the host, as far as it was granted, and counts what is dropped.
//!
//! Memory stays the same whatever is printed: one chunk here, and what the kernel's pipe holds. Without credit the
//! pipe fills and the command waits; past its limit, and once it is killed, its output is read and dropped, so that
//! nothing waits for a reader who left.
//! This module does not know when a command ends.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use conductor_guest::frame::RequestId;
use conductor_guest::response::{CHUNK, OUTPUT_HEADER, Stream, output_header};
use rustix::io::Errno;

use crate::channel::Outlet;

/// The most that a pipe can hold for an unprivileged writer: what a command printed before it ended is no more.
const LAST_BYTES: usize = 1024 * 1024;

/// How many chunks of one pipe are moved before others have their turn.
const TURNS: u32 = 8;

/// One chunk with room for its header before it.
pub(crate) type Buffer = Box<[u8]>;

pub(crate) fn buffer() -> Buffer {
    vec![0; OUTPUT_HEADER + CHUNK].into_boxed_slice()
}

/// A command's output.
#[derive(Debug)]
pub(crate) struct Output {
    id: RequestId,
    pipes: Vec<Pipe>,
    credit: u64,
    /// How many more bytes may be sent in all.
    left: u64,
    dropped: u64,
}

#[derive(Debug)]
struct Pipe {
    stream: Stream,
    reader: OwnedFd,
    /// How much may still be read, once the command ended.
    last_bytes: Option<usize>,
}

impl Output {
    pub(crate) fn new(id: RequestId, pipes: Vec<(Stream, OwnedFd)>, credit: u32, limit: u64) -> Self {
        let open = |(stream, reader)| Pipe {
            stream,
            reader,
            last_bytes: None,
        };
        Self {
            id,
            pipes: pipes.into_iter().map(open).collect(),
            credit: u64::from(credit),
            left: limit,
            dropped: 0,
        }
    }

    /// Lets further bytes be sent.
    pub(crate) fn grant(&mut self, bytes: u32) {
        self.credit = self.credit.saturating_add(u64::from(bytes));
    }

    /// Sends nothing more.
    pub(crate) fn mute(&mut self) {
        self.left = 0;
    }

    /// Says that the command ended: only what is in the pipes now still counts, because what it left behind may keep
    /// them open and go on printing.
    pub(crate) fn close(&mut self) {
        for pipe in &mut self.pipes {
            pipe.last_bytes.get_or_insert(LAST_BYTES);
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.pipes.is_empty()
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// What is to be polled; nothing while there is no credit.
    pub(crate) fn awaited(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let wants = self.left == 0 || self.credit > 0;
        self.pipes
            .iter()
            .filter(move |_| wants)
            .map(|pipe| pipe.reader.as_fd())
    }

    /// Moves what the pipes hold, at most a few chunks of each: to wait costs more than to look once more.
    pub(crate) fn pump(&mut self, buffer: &mut Buffer, outlet: &Outlet) -> rustix::io::Result<()> {
        let mut turns = TURNS;
        let mut at = 0;
        while let Some(pipe) = self.pipes.get_mut(at) {
            let is_muted = self.left == 0;
            let granted = if is_muted {
                u64::MAX
            } else {
                self.left.min(self.credit)
            };
            let most = CHUNK
                .min(usize::try_from(granted).unwrap_or(CHUNK))
                .min(pipe.last_bytes.unwrap_or(CHUNK));
            if most == 0 && granted == 0 {
                return Ok(());
            }
            let read = rustix::io::read(&pipe.reader, &mut buffer[OUTPUT_HEADER..OUTPUT_HEADER + most]);
            let count = match read {
                Ok(count) => count,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) if pipe.last_bytes.is_none() => {
                    at += 1;
                    continue;
                }
                Err(_) => 0,
            };
            if count == 0 {
                self.pipes.remove(at);
                continue;
            }
            if let Some(last) = &mut pipe.last_bytes {
                *last -= count;
            }
            let bytes = count as u64;
            if is_muted {
                self.dropped += bytes;
            } else {
                self.credit -= bytes;
                self.left -= bytes;
                buffer[..OUTPUT_HEADER].copy_from_slice(&output_header(self.id, pipe.stream, count));
                outlet.send_framed(&buffer[..OUTPUT_HEADER + count])?;
            }
            turns -= 1;
            if turns == 0 {
                turns = TURNS;
                at += 1;
            }
        }
        Ok(())
    }
}
