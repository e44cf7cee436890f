//! Who plans, implements, reviews and tests: the back ends behind the one agent port.
//!
//! For now there is one, [`scripted`], which plays a scenario word for word; what a real model would be told is put
//! together in [`prompt`] for all of them. Whatever the back end, an agent acts only through the tools it is given.
//! This crate does not know what became of what an agent did.

pub mod agents;
pub mod prompt;
pub mod scenario;
pub mod scripted;
pub mod stories;

pub use agents::Agents;
pub use scenario::Scenario;
