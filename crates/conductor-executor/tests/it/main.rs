//! The plain executor against hostile commands and hostile paths, with real processes and real files.

#![allow(
    clippy::unwrap_used,
    clippy::format_collect,
    reason = "a test that cannot go on says where"
)]

mod kit;
mod commands;
mod trees;
mod reaping;
mod files;
mod toolchains;
