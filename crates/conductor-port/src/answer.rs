//! Answers to writes that named themselves, so that a write that is sent twice is done once, whichever server is asked and
//! whether or not one was started anew in between (UI-4).
//!
//! Who asked and what they named it is kept as a hash alone. This port does not know HTTP beyond a status.

use async_trait::async_trait;
use conductor_domain::digest::Digest;
use conductor_domain::fault::Fault;
use conductor_domain::time::Timestamp;

/// A write that named itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedWrite {
    /// The hash of who asks and what they named it.
    pub name: Digest,
    /// The hash of what is asked.
    pub request: Digest,
    /// When it is begun.
    pub now: Timestamp,
    /// A write that was begun before this and has no answer is believed to be over: whoever did it is gone.
    pub lost_before: Timestamp,
    /// Until when its answer is kept.
    pub ends_at: Timestamp,
    /// The most answers that are kept; those that end first make room.
    pub most: u32,
}

/// An answer as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptAnswer {
    /// The status.
    pub status: u16,
    /// The type of the body; empty where there was none.
    pub kind: String,
    /// The body.
    pub body: Vec<u8>,
}

/// What is known of a write's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// Nothing: whoever asked may go on, and nobody else until there is an answer.
    New,
    /// It is being done.
    UnderWay,
    /// It was done.
    Answered(KeptAnswer),
    /// The name was given to another request.
    Taken,
}

/// Keeps answers. Callable from any task.
#[async_trait]
pub trait Answers: Send + Sync + std::fmt::Debug {
    /// Takes a name for a write, to one caller only, and forgets answers whose time is over.
    async fn begin(&self, write: &NamedWrite) -> Result<Begun, Fault>;

    /// Keeps the answer to a write that was begun. If repeated: the later one counts; of a name that is gone, nothing is kept.
    async fn keep(&self, name: &Digest, answer: &KeptAnswer) -> Result<(), Fault>;

    /// Forgets a write that was begun and came to no answer; one that has an answer keeps it. If repeated: nothing changes.
    async fn forget(&self, name: &Digest) -> Result<(), Fault>;
}
