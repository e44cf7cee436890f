//! The client against the embedded forge, over real HTTP and real git.
//!
//! What the client promises to the engine is checked here from the outside; how the forge keeps its side is
//! checked in its own crate.

#![allow(
    clippy::unwrap_used,
    reason = "a test ends where something is not as it should be"
)]

mod site;
mod repositories;
mod issues;
mod comments;
mod pull_requests;
mod boards;
mod checks;
mod credentials;
mod limits;
mod git;
mod webhooks;
