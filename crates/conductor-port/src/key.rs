//! What opens the door to people: one-time links, sessions, and the hashes of passwords (SEC-7, S-55).
//!
//! A secret itself is never kept, only its hash. What somebody may do is not kept here either: the instance's staff says
//! so, at every request anew. This port does not know cookies or pages.

use async_trait::async_trait;
use conductor_domain::digest::Digest;
use conductor_domain::fault::Fault;
use conductor_domain::id::OperatorName;
use conductor_domain::time::Timestamp;

pub use conductor_domain::staff::Holder;

/// What a key is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyKind {
    /// Opens one session.
    Link,
    /// Is a browser that came in.
    Session,
}

impl KeyKind {
    /// The name under which it is kept.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Session => "session",
        }
    }
}

/// A key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// What it is good for.
    pub kind: KeyKind,
    /// The hash of its secret.
    pub hash: Digest,
    /// Whose it is.
    pub holder: Holder,
    /// Since when.
    pub since: Timestamp,
    /// Until when.
    pub ends_at: Timestamp,
}

/// Keeps keys and the hashes of passwords. Callable from any task.
#[async_trait]
pub trait Keys: Send + Sync + std::fmt::Debug {
    /// Keeps a key, and forgets those whose time is over. If repeated: the later time counts.
    async fn keep(&self, key: &Key, now: Timestamp) -> Result<(), Fault>;

    /// Lets a key that is there last until then, and tells whether it is: one that was taken away stays away, whoever found
    /// it before. Does not look whether its time is over; whoever calls has just found it. If repeated: the later time
    /// counts.
    async fn lengthen(&self, kind: KeyKind, hash: &Digest, ends_at: Timestamp) -> Result<bool, Fault>;

    /// Finds a key whose time is not over.
    async fn find(&self, kind: KeyKind, hash: &Digest, now: Timestamp) -> Result<Option<Key>, Fault>;

    /// Takes a key away and returns it, to one caller only; nothing when its time is over. If repeated: nothing.
    async fn take(&self, kind: KeyKind, hash: &Digest, now: Timestamp) -> Result<Option<Key>, Fault>;

    /// Takes all keys of somebody away. An operator of the staff and an owner of the same name are two; owners are one, under
    /// whatever name they came. If repeated: nothing changes.
    async fn take_all(&self, holder: &Holder) -> Result<(), Fault>;

    /// Keeps the hash of an operator's password in the place of the one before; `None` forgets it.
    async fn set_password(&self, operator: &OperatorName, hash: Option<&str>) -> Result<(), Fault>;

    /// Reads the hash of an operator's password.
    async fn password(&self, operator: &OperatorName) -> Result<Option<String>, Fault>;
}
