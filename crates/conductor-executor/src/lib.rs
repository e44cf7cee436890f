//! Where commands and file tools run: behind one port, chosen by name, never by default (EXEC-1).
//!
//! A sandbox is a process on the host that carries frames to a guest inside: `launcher` starts it, `channel` speaks
//! frames, `sandbox` is the port over both, and each executor adds what only it knows, namely how its sandbox is built,
//! what it used, and how it is ended from outside (`sandbox::Outside`). [`UnsafePlain`] is no sandbox.
//! This crate does not know who asks, nor what the output means.

pub mod choice;
pub mod toolchain;
mod output;
mod launcher;
mod channel;
mod sandbox;
mod walk;
mod guest;
mod limits;
mod identity;
mod home;
mod given;
mod process;
pub mod local;
pub mod docker;
pub mod plain;

pub use docker::Docker;
pub use limits::Limits;
pub use local::Local;
pub use plain::{Consent, Reason, UnsafePlain};
pub use toolchain::Toolchain;
