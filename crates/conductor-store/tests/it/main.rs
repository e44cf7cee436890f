//! The store's tests: the contract on every implementation, then what only a file on a disk or a server can meet.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod contract;
mod given;
#[allow(dead_code, reason = "stories use the rest of it")]
mod postgres;
mod model;
mod open;
mod disk;
mod crash;
mod golden;
mod schema;
mod server;
mod strain;
mod tls;
