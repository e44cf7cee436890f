//! `conductor demo`: plays one issue to a merged pull request on this machine, with everything real but the forge and the
//! agents' minds.
//!
//! It does not know how the stage is built.

use std::path::PathBuf;

use crate::demo;
use crate::exit::{Exit, Failure};
use crate::session::Session;
use crate::settings::DatabaseUrl;

/// Plays a whole run on this machine: no account, no key, no network
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Approves and merges without asking; also without a terminal nothing is asked
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,
    /// Leaves everything running at the end, until Ctrl-C
    #[arg(long)]
    pub(crate) keep: bool,
    /// Where commands run: `local` in a sandbox, `docker` in a container, `unsafe-plain` without either [default: local]
    #[arg(long, value_name = "NAME")]
    pub(crate) executor: Option<String>,
    /// The image for `docker`; it must hold what the story's tests need, and git [default: debian:12]
    #[arg(long, value_name = "IMAGE", requires = "executor")]
    pub(crate) image: Option<String>,
    /// Keeps the records in this PostgreSQL database, in a schema of their own that goes with the demo
    #[arg(long, value_name = "URL")]
    pub(crate) database_url: Option<DatabaseUrl>,
    /// Which built-in story to play: rust, python or node [default: rust]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["scenario", "repo"])]
    pub(crate) story: Option<String>,
    /// Plays this scenario instead of a built-in story
    #[arg(long, value_name = "FILE", requires = "repo")]
    pub(crate) scenario: Option<PathBuf>,
    /// Works on a copy of this git directory; the original is never touched
    #[arg(long, value_name = "DIR", requires = "scenario")]
    pub(crate) repo: Option<PathBuf>,
    /// The command that decides whether work is right; needed with --repo
    #[arg(long, value_name = "COMMAND", requires = "repo")]
    pub(crate) test: Option<String>,
    /// Title of the issue, with --repo
    #[arg(long, value_name = "TEXT", requires = "repo")]
    pub(crate) title: Option<String>,
    /// Text of the issue, with --repo
    #[arg(long, value_name = "TEXT", requires = "repo")]
    pub(crate) body: Option<String>,
}

/// Runs the command; ends well only if the pull request was merged, the audit holds and the replay is the log.
pub(crate) async fn demo(session: &Session, args: DemoArgs) -> Result<Exit, Failure> {
    Box::pin(demo::play(session, args)).await
}
