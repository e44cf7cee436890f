//! Where commands and file tools run.
//!
//! One sandbox is opened per use (agent's tools, tests) and closed after it; everything inside is hostile. The
//! executors issue adds the real sandboxes behind this trait. This port does not know who asks.

use std::path::PathBuf;

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::id::{EffectId, RunId};
use conductor_domain::time::Millis;

/// What a sandbox is opened for; decides what it can see (EXEC-3a).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// The worktree, read and write.
    Tool,
    /// A fresh checkout, for the test command.
    Test,
}

/// What a sandbox is opened with.
#[derive(Debug, Clone)]
pub struct SandboxSpec {
    /// The effect that owns it.
    pub effect: EffectId,
    /// The run.
    pub run: RunId,
    /// What it is for.
    pub profile: Profile,
    /// The one directory it works in.
    pub dir: PathBuf,
}

/// A command to run.
#[derive(Debug, Clone)]
pub struct Command {
    /// The argv; never a shell string that we built.
    pub argv: Vec<String>,
    /// How long it may take.
    pub time: Millis,
    /// The most bytes of output kept; the rest is dropped and marked.
    pub output: usize,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandResult {
    /// The end.
    pub ending: conductor_domain::testing::Ending,
    /// What it printed, both streams in the order they came.
    pub output: Vec<u8>,
    /// Whether output was dropped.
    pub truncated: bool,
    /// How long it took.
    pub time: Millis,
}

/// Why a file tool did not do it; an answer for the agent, not a fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileRefusal {
    /// The path leaves the worktree.
    #[error("`{0}` is outside the worktree")]
    Outside(String),
    /// There is none.
    #[error("`{0}` does not exist")]
    NotFound(String),
    /// It is not a regular file.
    #[error("`{0}` is not a regular file")]
    NotAFile(String),
    /// It exists already.
    #[error("`{0}` exists already")]
    Exists(String),
    /// It is too large.
    #[error("`{path}` is larger than {limit} bytes")]
    TooLarge {
        /// The path.
        path: String,
        /// The limit.
        limit: u64,
    },
    /// The text to replace is not there.
    #[error("the text to replace does not occur in `{0}`")]
    NoMatch(String),
    /// The text to replace is there more than once.
    #[error("the text to replace occurs {} times in `{path}` (lines {})", .lines.len(), .lines.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Ambiguous {
        /// The path.
        path: String,
        /// Where it begins, each time.
        lines: Vec<usize>,
    },
    /// Anything else that the agent can act on.
    #[error("{0}")]
    Other(String),
}

/// Opens sandboxes.
#[async_trait]
pub trait Executor: Send + Sync + std::fmt::Debug {
    /// Opens a sandbox. It ends with `Sandbox::close`, with its drop, or with this process.
    async fn open(&self, spec: SandboxSpec) -> Result<Box<dyn Sandbox>, Fault>;

    /// Ends everything that an earlier process left behind for this effect (RUN-12a). If repeated: nothing is left.
    async fn reap(&self, effect: &EffectId) -> Result<(), Fault>;
}

/// An open sandbox. Calls may be made at once.
#[async_trait]
pub trait Sandbox: Send + Sync + std::fmt::Debug {
    /// Runs a command to its end; kills its whole tree when time runs out or this future is dropped.
    async fn bash(&self, command: Command) -> Result<CommandResult, Fault>;

    /// Reads a file.
    async fn view(&self, path: &str) -> Result<Result<Vec<u8>, FileRefusal>, Fault>;

    /// Writes a new file, with its directories.
    async fn create_file(&self, path: &str, content: &[u8]) -> Result<Result<(), FileRefusal>, Fault>;

    /// Replaces the one occurrence of a text.
    async fn str_replace(&self, path: &str, old: &str, new: &str) -> Result<Result<(), FileRefusal>, Fault>;

    /// Ends every process in it and waits until they are gone.
    async fn close(self: Box<Self>) -> Result<(), Fault>;
}
