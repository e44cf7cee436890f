//! Stories of repositories and working directories, on real git.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests start git as people and agents do, and fail at once"
)]

mod world;
mod story;
