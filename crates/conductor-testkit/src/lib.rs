//! Stands in for the world in tests: a forge, a workspace, an executor, agents and a clock that do as they are told.
//!
//! The fakes keep what a real world would keep when Conductor dies, count what is written to them, and break on
//! demand. [`sim`] plays whole stories on them, seeded, with crashes. This crate is used by tests only.

pub mod chance;
pub mod clock;
pub mod world;
pub mod forge;
pub mod workspace;
pub mod executor;
pub mod egress;
pub mod agent;
pub mod ledger;
pub mod rig;
pub mod sim;
