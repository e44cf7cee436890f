//! Repositories and working directories of runs, by the `git` program, safe against what agents write.
//!
//! Each repository has one cached base clone (`base`). Each run has a bare repository with alternates to it
//! (`run_repo`) and a working directory (`workdir`) that is the agent's from the moment it is handed over:
//! after that the host only ever reads a `snapshot` of it, checks that as hostile input (`import`) and makes
//! the `commit` itself. Every git process is built by `call`, which no other crate can reach.
//!
//! This crate does not know the forge's API, the run machine, or why anything is asked of it.

mod error;
mod object;
mod call;
mod lock;
mod layout;
mod address;
mod askpass;
mod remote;
mod base;
mod run_repo;
mod fill;
mod workdir;
mod checkout;
mod snapshot;
mod paths;
mod import;
mod commit;
mod record;
mod aside;
mod save;
mod sweep;
mod diff;
mod rebase;
mod push;
mod port;
mod upstream;

pub use address::Address;
pub use call::{Git, OLDEST_GIT, Protocol};
pub use commit::Identity;
#[doc(hidden)]
pub use diff::read_raw_diff;
pub use diff::{Change, Diff, Entry, EntryKind, Mark};
pub use error::Error;
pub use import::Limits;
pub use layout::Layout;
pub use object::ObjectId;
pub use port::GitWorkspace;
pub use snapshot::{ProcessSnapshotter, Purpose, Request, SandboxSnapshotter, Snapshot, Snapshotter};
pub use sweep::{Mode, Unknown};
pub use upstream::GitUpstream;
pub use workdir::VisibleObjects;
