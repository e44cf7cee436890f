//! Where commands and file tools run (EXEC-1).
//!
//! One sandbox is opened per use (an agent, its tools, tests) and closed after it; everything inside is hostile. The
//! open sandbox is the execution context: `open` makes it from a [`SandboxSpec`], every call goes through it, `close`
//! ends it. Which executor opens it is said by name, per run and per call, and never by default.
//! This port does not know who asks.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::id::{EffectId, RunId};
use conductor_domain::time::Millis;

/// What a sandbox is opened for; decides what it can see (EXEC-3a).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// The agent's own program: a directory of its own and never the worktree.
    Agent,
    /// The worktree, read and write.
    Tool,
    /// A fresh checkout, for the test command.
    Test,
    /// The worktree, for the host's own reader of what an agent left there (S-7): it can write nothing, and can read
    /// what the agent closed to itself. No command of an agent ever runs in one.
    Snapshot,
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
    /// What else it may read, seen inside under the same path: object directories (S-5).
    pub readable: Vec<PathBuf>,
    /// Files that it may read and never write, each folder at its place inside; they go with the sandbox.
    pub given: Vec<Given>,
    /// Variables of every command, on top of the executor's own few; they travel by frame (S-44).
    pub environment: Vec<(String, String)>,
    /// The only ways out (EXEC-3); none, and nothing inside reaches anything.
    pub ways: Vec<Way>,
}

impl SandboxSpec {
    /// Names a sandbox that sees its directory and nothing else.
    pub fn new(effect: EffectId, run: RunId, profile: Profile, dir: PathBuf) -> Self {
        Self {
            effect,
            run,
            profile,
            dir,
            readable: Vec::new(),
            given: Vec::new(),
            environment: Vec::new(),
            ways: Vec::new(),
        }
    }
}

/// A folder of files that a sandbox is given to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// Where it stands inside; absolute and plain.
    pub inside: PathBuf,
    /// What is in it.
    pub files: Vec<GivenFile>,
}

/// One file that a sandbox is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenFile {
    /// Its path below the folder; plain, or the sandbox is not opened.
    pub path: String,
    /// Whether it may be executed.
    pub executable: bool,
    /// Its content.
    pub content: Vec<u8>,
}

/// A loopback port inside that leads to a unix socket outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// The port inside.
    pub port: u16,
    /// The socket outside.
    pub socket: PathBuf,
}

/// Hears output while it comes, all of it, before anything is cut (EXEC-7). It must not block.
#[derive(Clone)]
pub struct Listener(pub Arc<Hear>);

/// What a [`Listener`] does with each piece.
pub type Hear = dyn Fn(&[u8]) + Send + Sync;

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Listener(…)")
    }
}

/// A command to run.
#[derive(Debug, Clone)]
pub struct Command {
    /// The argv; never a shell string that we built.
    pub argv: Vec<String>,
    /// Its own variables, on top of the sandbox's; they travel by frame (S-44).
    pub environment: Vec<(String, String)>,
    /// How long it may take.
    pub time: Millis,
    /// The most bytes of output kept; the rest is dropped and marked.
    pub output: usize,
    /// Who hears the output while it comes.
    pub listener: Option<Listener>,
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
    /// It is a symbolic link, or the path leads through one: policies judge the name that is given, so it must be its own.
    #[error("`{0}` is a symbolic link or leads through one; name the real path")]
    Link(String),
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

/// What a search looks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// This text.
    Literal(String),
    /// This regular expression, matched line by line in linear time.
    Regex(String),
}

/// What is beneath a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Relative to the worktree; what is not UTF-8 is shown as such.
    pub path: String,
    /// What it is.
    pub kind: EntryKind,
    /// In bytes; 0 for what is no file.
    pub size: u64,
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link; never followed.
    Symlink,
    /// A FIFO, a socket, a device.
    Other,
}

/// A line that was looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// Relative to the worktree.
    pub path: String,
    /// Counted from 1.
    pub line: u32,
    /// The line, cut where it is very long.
    pub text: Vec<u8>,
}

/// What a walk through directories found, in the order of the names' bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found<T> {
    /// The findings.
    pub findings: Vec<T>,
    /// Whether everything was looked at; otherwise a limit ended it.
    pub is_complete: bool,
    /// How many files or directories could not be looked at: too large, binary, unreadable.
    pub skipped: u32,
}

/// The most that one walk finds.
pub const MAX_FINDINGS: u32 = 2000;

/// Opens sandboxes.
#[async_trait]
pub trait Executor: Send + Sync + std::fmt::Debug {
    /// Opens a sandbox. It ends with `Sandbox::close`, with its drop, or with this process.
    async fn open(&self, spec: SandboxSpec) -> Result<Box<dyn Sandbox>, Fault>;

    /// Ends everything that an earlier process left behind for this effect (RUN-12a). If repeated: nothing is left.
    async fn reap(&self, effect: &EffectId) -> Result<(), Fault>;
}

/// An open sandbox. Calls may be made at once. No file tool passes through a symbolic link, wherever it leads.
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

    /// Lists what is beneath a directory, all the way down but for git's own; at most [`MAX_FINDINGS`].
    async fn list(&self, path: &str) -> Result<Result<Found<Entry>, FileRefusal>, Fault>;

    /// Finds the lines that match in the files beneath a directory; at most [`MAX_FINDINGS`].
    async fn search(&self, path: &str, pattern: &Pattern)
    -> Result<Result<Found<Match>, FileRefusal>, Fault>;

    /// Ends every process in it and waits until they are gone.
    async fn close(self: Box<Self>) -> Result<(), Fault>;
}
