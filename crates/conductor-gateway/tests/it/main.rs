//! The ways out, tried by hostile visitors first. Names resolve and addresses connect on a stage, whose servers are on
//! loopback; every check of names and addresses is the real one.
#![allow(clippy::disallowed_methods, reason = "tests start processes and read clocks")]

mod kit;
mod hosts;
mod addresses;
mod doors;
mod requests;
mod plain;
mod tunnels;
mod denials;
mod outlets;
mod curl;
