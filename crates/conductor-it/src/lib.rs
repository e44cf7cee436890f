//! Sets the stage for whole stories: an embedded forge, the real program as a process of its own, and its command line.
//!
//! Stories act as people do: through the CLI and at the forge. They wait for what happens, never for a time.
//! This crate does not know what a story is about.

#![allow(
    clippy::disallowed_methods,
    reason = "starts the program under test and watches the clock for hopeless waits"
)]

pub mod stage;
pub mod program;
pub mod browser;

pub use program::{Program, Said};
pub use stage::Stage;
