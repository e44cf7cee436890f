//! HTTP/1 without leniency, read and framed by ourselves, so that no two readers can disagree about a message (S-30).
//!
//! A message that can be read in two ways is refused: two lengths, a length beside chunks, folded fields, lone line
//! ends, trailers, upgrades. This module does not know what a request asks for.

mod head;
mod body;
mod wire;

pub(crate) use body::{Relayed, relay};
pub(crate) use head::{Body, Field, Request, Response};
pub(crate) use wire::Wire;

/// Why a message was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    /// It does not follow the grammar, or could be read in two ways.
    #[error("malformed: {0}")]
    Grammar(&'static str),
    /// It is longer than may be.
    #[error("the head is too long")]
    TooLong,
    /// It came too slowly.
    #[error("too slow")]
    TooSlow,
    /// The connection ended in the middle.
    #[error("the connection ended in the middle")]
    Ended,
}
