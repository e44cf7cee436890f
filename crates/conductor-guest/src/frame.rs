//! Carries messages as length-prefixed frames, strictly and within bounds.
//!
//! ```text
//! length u32 | kind u8 | request id u32 | payload        (little endian; the length counts what follows it)
//! ```
//!
//! A frame that is longer than its direction allows, of unknown kind, or not exactly filled by its message is a
//! violation, after which the channel is worth nothing. Memory grows with the bytes that came, not with the length
//! that was claimed. Works on byte slices, so that it serves an async host and a blocking guest alike.
//! This module does not know which answers fit which request: `calls` does.

pub(crate) mod wire;

use std::marker::PhantomData;

use wire::{Malformed, Put, Take};

/// Bytes before the payload.
pub const HEADER: usize = 4 + AFTER_LENGTH;

/// Kind and request id: what the length counts besides the payload.
const AFTER_LENGTH: usize = 1 + 4;

/// How much room a reader is offered at least.
const ROOM: usize = 64 * 1024;

/// Names one request; the host issues each once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u32);

/// A message and the request that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame<M> {
    /// The request.
    pub id: RequestId,
    /// What is said.
    pub body: M,
}

/// Something that travels in a frame: an [`Order`](crate::order::Order) or a [`Response`](crate::response::Response).
pub trait Message: sealed::Body {}

impl<M: sealed::Body> Message for M {}

pub(crate) mod sealed {
    use super::wire::{Malformed, Put, Take};

    pub trait Body: Sized {
        /// The longest payload of this direction.
        const LONGEST: usize;

        fn kind(&self) -> u8;
        fn put(&self, put: &mut Put<'_>);
        fn take(kind: u8, take: &mut Take<'_>) -> Result<Self, Malformed>;
    }
}

/// A message does not fit into a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a message of {length} bytes is longer than the {longest} that its direction allows")]
pub struct TooLong {
    /// Its payload.
    pub length: usize,
    /// The limit.
    pub longest: usize,
}

/// The other side broke the protocol; nothing that it says counts any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A frame claims to be longer than its direction allows, or shorter than its header.
    #[error("a frame claims a length of {length} bytes where at most {longest} are allowed")]
    Length {
        /// What it claims.
        length: u32,
        /// The limit.
        longest: usize,
    },
    /// A frame's payload is no message.
    #[error("frame of kind {kind} for request {}: {why}", .id.0)]
    Payload {
        /// The kind that it claims.
        kind: u8,
        /// The request that it claims.
        id: RequestId,
        /// What is wrong.
        why: Malformed,
    },
}

impl<M: Message> Frame<M> {
    /// Appends the frame's bytes to `out`, or leaves it as it was.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        let start = out.len();
        out.extend_from_slice(&[0; HEADER]);
        self.body.put(&mut Put::new(out));
        let length = out.len() - start - HEADER;
        if length > M::LONGEST {
            out.truncate(start);
            return Err(TooLong {
                length,
                longest: M::LONGEST,
            });
        }
        out[start..start + HEADER].copy_from_slice(&header(self.body.kind(), self.id, length));
        Ok(())
    }
}

/// Writes a header; the caller has checked the length.
pub(crate) fn header(kind: u8, id: RequestId, payload: usize) -> [u8; HEADER] {
    let length = u32::try_from(payload + AFTER_LENGTH).expect("every direction's limit is far below 4 GiB");
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(&length.to_le_bytes());
    header[4] = kind;
    header[5..].copy_from_slice(&id.0.to_le_bytes());
    header
}

/// Cuts a stream of bytes into frames.
///
/// Read into [`Decoder::room`], say [`Decoder::filled`], then call [`Decoder::next`] until it returns `None`.
#[derive(Debug)]
pub struct Decoder<M> {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The longest payload that is taken.
    longest: usize,
    message: PhantomData<fn() -> M>,
}

impl<M: Message> Default for Decoder<M> {
    fn default() -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            end: 0,
            longest: M::LONGEST,
            message: PhantomData,
        }
    }
}

impl<M: Message> Decoder<M> {
    /// Takes frames of whatever length they claim, so that a test can show what the limit is for.
    #[doc(hidden)]
    #[cfg(debug_assertions)]
    pub fn of_any_length() -> Self {
        Self {
            longest: usize::MAX / 4,
            ..Self::default()
        }
    }

    /// Offers room to read into; never empty.
    ///
    /// The buffer at most doubles, so a claimed length alone reserves nothing.
    pub fn room(&mut self) -> &mut [u8] {
        if self.start > 0 && self.buffer.len() - self.end < ROOM {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.buffer.len() - self.end < ROOM {
            let longest = HEADER + self.longest + ROOM;
            let doubled = (self.buffer.len() * 2).clamp(4 * ROOM, longest.max(4 * ROOM));
            self.buffer.reserve_exact(doubled - self.buffer.len());
            self.buffer.resize(doubled, 0);
        }
        &mut self.buffer[self.end..]
    }

    /// Says how much of the room was filled.
    pub fn filled(&mut self, bytes: usize) {
        self.end = (self.end + bytes).min(self.buffer.len());
    }

    /// Returns the next whole frame, if there is one.
    #[allow(
        clippy::should_implement_trait,
        reason = "a violation ends the stream, which an iterator would hide"
    )]
    pub fn next(&mut self) -> Result<Option<Frame<M>>, Violation> {
        let rest = &self.buffer[self.start..self.end];
        let Some((header, payload)) = rest.split_first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let [l0, l1, l2, l3, kind, i0, i1, i2, i3] = *header;
        let claimed = u32::from_le_bytes([l0, l1, l2, l3]);
        let id = RequestId(u32::from_le_bytes([i0, i1, i2, i3]));
        let length = usize::try_from(claimed)
            .ok()
            .and_then(|length| length.checked_sub(AFTER_LENGTH))
            .filter(|length| *length <= self.longest)
            .ok_or(Violation::Length {
                length: claimed,
                longest: self.longest + AFTER_LENGTH,
            })?;
        let Some(payload) = payload.get(..length) else {
            return Ok(None);
        };
        let mut take = Take::new(payload);
        let body = M::take(kind, &mut take)
            .and_then(|body| take.finish().map(|()| body))
            .map_err(|why| Violation::Payload { kind, id, why })?;
        self.start += HEADER + length;
        if self.start == self.end {
            self.give_back();
        }
        Ok(Some(Frame { id, body }))
    }

    /// Whether the stream ends between two frames.
    pub fn is_between_frames(&self) -> bool {
        self.start == self.end
    }

    /// Frees what a long frame needed, once it has been taken.
    fn give_back(&mut self) {
        (self.start, self.end) = (0, 0);
        if self.buffer.len() > 4 * ROOM {
            self.buffer = Vec::new();
        }
    }
}
