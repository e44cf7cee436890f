//! The `docker` executor: the contract that every executor keeps, and what only a container can show.
//!
//! Needs an engine and its test image: `cargo xtask setup docker`.

mod contract;
mod kit;
mod leases;
mod protections;
mod engine;
