//! Serves an invocation's tools over the Model Context Protocol, by the official SDK (TOOL-1).
//!
//! [`offers`] says which tools there are and how their arguments read, [`server`] answers a client's messages, and
//! [`door`] carries them over pipes, a unix socket or loopback, each to the holder of one lease. What a call means, whether
//! it may be made and where it is logged is decided behind the [`Tools`](conductor_port::agent::Tools) that is served.
//! This crate does not know policies, sandboxes or runs.

pub mod offers;
mod arguments;
pub mod server;
mod seats;
mod pipes;
pub mod listen;
pub mod door;

pub use door::Lease;
pub use offers::Offers;
pub use server::{Server, Shelf};
