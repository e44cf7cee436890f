//! The guest against a hostile sandbox, with real processes and real files.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "whatever a test does not expect fails it"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests play the host: they start the guest and measure time"
)]

mod kit;
#[path = "../../../conductor-executor/tests/it/matrix.rs"]
mod matrix;
mod frames;
mod commands;
mod output;
mod trees;
mod files;
mod races;
mod refusals;
mod walks;
mod forwards;
mod filter;
mod sandbox;
mod seeds;
