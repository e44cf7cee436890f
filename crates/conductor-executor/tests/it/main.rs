//! The executors against hostile commands and hostile paths, with real processes, namespaces and files.

#![allow(
    clippy::unwrap_used,
    clippy::format_collect,
    reason = "a test that cannot go on says where"
)]

mod kit;
mod matrix;
mod artifact;
mod commands;
mod trees;
mod reaping;
mod files;
mod toolchains;
mod local;
mod docker;
