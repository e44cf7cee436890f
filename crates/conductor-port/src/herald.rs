//! Tells somebody outside what a person should know of, and remembers how far that was told.
//!
//! A notice holds names and numbers, no words of an issue, an agent or a person. This port does not know who listens.

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::id::RunId;
use conductor_domain::time::Timestamp;
use serde::Serialize;

/// What is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// A run waits for a person.
    NeedsHuman,
    /// A run was given up.
    Failed,
    /// A run is done.
    Completed,
    /// The kill switch was turned on.
    KillSwitchOn,
    /// The kill switch was turned off.
    KillSwitchOff,
}

impl NoticeKind {
    /// The name that listeners see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NeedsHuman => "needs_human",
            Self::Failed => "failed",
            Self::Completed => "completed",
            Self::KillSwitchOn => "kill_switch_on",
            Self::KillSwitchOff => "kill_switch_off",
        }
    }
}

/// Something that is told, once or more often; its id stays the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Notice {
    /// Names it for ever: made of the record that it is about.
    pub delivery: String,
    /// What it is.
    pub event: NoticeKind,
    /// When it happened, in microseconds since the epoch.
    pub at: Timestamp,
    /// Which run it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<NoticedRun>,
}

/// The run that a notice is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NoticedRun {
    /// Its id.
    pub id: RunId,
    /// Its project.
    pub project: String,
    /// `owner/name`.
    pub repo: String,
    /// The issue's number.
    pub issue: u64,
    /// Its page.
    pub page: String,
}

/// Tells notices. If repeated: the same notice arrives again, with the same id.
#[async_trait]
pub trait Herald: Send + Sync + std::fmt::Debug {
    /// Tells a notice; returns when it was taken. A permanent fault is a listener's no to this notice; it is not told again.
    /// Never follows the listener anywhere else.
    async fn tell(&self, notice: &Notice) -> Result<(), Fault>;
}

/// Keeps words under names, durably before it returns. One writer per name.
#[async_trait]
pub trait Marks: Send + Sync + std::fmt::Debug {
    /// Lists the marks whose names begin so, in the order of their names.
    async fn marks(&self, beginning: &str) -> Result<Vec<(String, String)>, Fault>;

    /// Puts a mark, over the one that stands there.
    async fn mark(&self, name: &str, value: &str) -> Result<(), Fault>;
}
