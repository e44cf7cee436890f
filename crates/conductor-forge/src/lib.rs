//! An embedded stand-in for GitHub: REST, git over HTTP and signed webhooks over bare repositories.
//!
//! It serves the demo and the tests. A [`Forge`] is the running site; a [`Human`] is a person acting on
//! it through the control interface, as people do in a browser; [`Faults`] makes the site misbehave the
//! way the real one does. Everything it knows is on disk after each write, so that a restarted forge
//! continues where a killed one stopped.
//!
//! It knows HTTP and git, and nothing of Conductor.

mod moment;
mod chance;
pub mod state;
mod refusal;
mod change;
mod site;
mod act;
mod git;
mod key;
mod auth;
mod fault;
mod hook;
mod view;
mod answer;
mod rest;
mod backend;
mod page;
mod server;
mod forge;
mod arrange;
mod human;

pub use fault::{Fault, Faults, Injection, When};
pub use forge::{Forge, Options, Webhook};
pub use hook::Delivery;
pub use human::{Edit, Human, MergeMethod};
pub use moment::Moment;
pub use refusal::Refusal;
