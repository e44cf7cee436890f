//! Work that exactly one of several processes does at a time: watching deadlines, anchoring chains.
//!
//! A duty is a lease with a name. Who holds it may be frozen past its end, so what is done on duty must be harmless when
//! two do it. This port does not know what a duty is about.

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::time::Timestamp;

/// What one process does for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Duty {
    /// Tells runs of their deadlines, polls of pull requests included, and sees to what dead processes owed.
    Deadlines,
    /// Anchors the chains.
    Anchors,
    /// Tells somebody outside what a person should know of.
    Notices,
}

impl Duty {
    /// The name under which it is kept.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deadlines => "deadlines",
            Self::Anchors => "anchors",
            Self::Notices => "notices",
        }
    }
}

/// A wish to have a duty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DutyWish {
    /// Which.
    pub duty: Duty,
    /// Who asks; a process.
    pub worker: String,
    /// The current time.
    pub now: Timestamp,
    /// Until when.
    pub until: Timestamp,
}

/// Who has a duty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// The wisher, until the time that it wished for.
    Us,
    /// Another process, whose time is not over.
    Another,
}

/// Gives out duties. Callable from any task.
#[async_trait]
pub trait Duties: Send + Sync + std::fmt::Debug {
    /// Takes a duty that nobody has or whose time is over. If repeated by its holder: the time is extended.
    async fn hold(&self, wish: &DutyWish) -> Result<Holder, Fault>;

    /// Lays a duty down, so that nobody waits for its time to be over. If repeated, or not the holder: nothing changes.
    async fn lay_down(&self, duty: Duty, worker: &str) -> Result<(), Fault>;
}
