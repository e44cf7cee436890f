//! The small traits between the engine and the world: plain data in, plain data or a classified [`Fault`] out.
//!
//! An adapter implements one of them and knows none of the others; they meet in the binary's `wire.rs`.
//! No method here has a default body, none exposes a database, an HTTP library or a process.

pub mod clock;
pub mod known;
pub mod ledger;
pub mod blobs;
pub mod views;
pub mod search;
pub mod tally;
pub mod workspace;
pub mod executor;
pub mod egress;
pub mod agent;
pub mod forge;
pub mod target;
pub mod upstream;
pub mod lease;
pub mod duty;
pub mod key;
pub mod herald;
pub mod answer;
pub mod inbox;
mod switch;

pub use conductor_domain::fault::{Fault, FaultKind};
