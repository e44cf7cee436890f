//! Where commands and file tools run: behind one port, chosen by name, never by default (EXEC-1).
//!
//! For now there is one executor, and it is no sandbox: [`UnsafePlain`]. The sandboxed ones take its place behind the
//! same port; what stays is the confinement of file tools beneath the working directory.
//! This crate does not know who asks, nor what the output means.

pub mod choice;
pub mod toolchain;
pub mod plain;
mod file;

pub use plain::{Consent, Reason, UnsafePlain};
pub use toolchain::Toolchain;
