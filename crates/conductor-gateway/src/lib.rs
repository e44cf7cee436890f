//! The only ways out of a sandbox, each behind a unix socket that belongs to one invocation.
//!
//! [`door`] is where a sandbox knocks: one directory per invocation, a socket in it, a limit on visitors. `http` reads
//! requests without leniency. [`egress`] lets requests out to granted hosts only. The model gateway will be a second
//! way behind the same doors.
//!
//! This crate does not know what runs in a sandbox, who grants a host, or where denials are kept.

mod switch;
pub mod door;
mod http;
pub mod egress;

#[doc(hidden)]
pub use switch::Switch;
