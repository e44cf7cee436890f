//! The ways out, tried by hostile visitors first. Names resolve and addresses connect on a stage, whose servers are on
//! loopback; every check of names and addresses is the real one.
#![allow(clippy::disallowed_methods, reason = "tests start processes and read clocks")]

mod kit;
#[path = "../../../conductor-executor/tests/it/matrix.rs"]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]
mod matrix;
mod hosts;
mod addresses;
mod doors;
mod requests;
mod plain;
mod tunnels;
mod denials;
mod outlets;
mod curl;
mod protections;
