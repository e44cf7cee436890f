//! Decides who may do what to which target, and says what in a text or a change must not pass, always with a reason.
//!
//! The corpus of planted secrets and decoys that the rules are judged by stands in `corpus/`; it is older than they are.
//!
//! This crate knows no clock, no file, no network and no database: its callers bring text, trees, policies and time.

pub mod secret;
pub mod redact;
pub mod hidden;
pub mod inspect;
pub mod supply;
#[cfg(feature = "authority")]
pub mod authority;
