//! Keeps everything that must survive: streams of records, effects and their leases, projections, bytes, tool calls.
//!
//! Two implementations stand behind the same ports and the same contract suite (ARCHITECTURE invariant 7): [`Memory`],
//! the plain reference, and [`Database`], on SQLite or PostgreSQL. Neither knows what a record means.

mod shape;
mod cut;
mod lost;
mod words;
mod memory;
mod database;

pub use database::{Claim, Database, Ear, Examined, Heard, OpenError, Place, Reading, Scratch, Settings};
pub use memory::Memory;
