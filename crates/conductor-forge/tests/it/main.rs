//! The forge from the outside, as a program, a person and a hostile client see it.
//!
//! The client of this workspace has its own tests against the forge; here plain HTTP and git speak.

#![allow(
    clippy::unwrap_used,
    reason = "a test ends where something is not as it should be"
)]

mod rig;
mod signing_in;
mod answers;
mod conversations;
mod pull_requests;
mod checks;
mod deliveries;
mod restarts;
mod pages;
