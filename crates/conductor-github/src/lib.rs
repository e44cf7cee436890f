//! The client for GitHub, GitHub Enterprise and everything that speaks like them (GH-1, GH-4, GH-7).
//!
//! A [`Client`] signs in as a GitHub App, mints tokens with the least permissions for each use, and answers
//! every call once: with what GitHub said, or with a classified fault. It never retries, never follows a
//! redirect, and never merges. [`webhook`] checks deliveries and turns them into hints.
//!
//! It does not know runs, policies or git.

mod config;
mod client;
mod transport;
mod classify;
mod budget;
mod credential;
mod model;
mod repository;
mod conversation;
mod pull_request;
mod board;
mod merge;
mod check;
mod port;
pub mod webhook;

pub use budget::WriteBudget;
pub use client::Client;
pub use config::{Config, ConfigError};
