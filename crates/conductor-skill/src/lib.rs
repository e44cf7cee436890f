//! Skills: what they are, where they come from, and how they reach the place where an agent works.
//!
//! A skill is a directory with a `manifest` (SKILL.md) and a `tree` of files under one digest. `config` says which ones
//! are wanted where, `resolve` finds their exact content, `local` and `docker` put it into place behind one port,
//! `plan` decides what would have to be done, `work` does it and remembers it in the `lock`.
//!
//! This crate does not know runs or the command line, and starts no git: that comes in behind a port.

pub mod name;
pub mod manifest;
pub mod prompt;
pub mod tree;
mod platform;
pub mod label;
pub mod source;
pub mod registry;
pub mod discover;
pub mod environment;
pub mod agent;
pub mod config;
pub mod edit;
pub mod lock;
pub mod store;
mod concurrent;
pub mod resolve;
mod marker;
pub mod local;
pub mod docker;
pub mod targets;
pub mod plan;
pub mod work;
