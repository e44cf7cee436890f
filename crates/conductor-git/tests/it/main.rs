//! Stories of repositories and working directories, on real git.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests start git as people and agents do, and fail at once"
)]

mod world;
mod server;
mod story;
mod fault;
mod lost;
mod crash;
mod hostile;
mod import;
mod diff;
mod push;
mod rebase;
mod seeds;
