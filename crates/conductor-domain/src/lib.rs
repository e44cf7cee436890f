//! The run machine: what a run is, what may happen to it, and what follows.
//!
//! Everything that happens to a run arrives as an [`Input`]. [`decide`] turns it into [`Event`]s (what is now
//! true) and [`Effect`]s (what is asked of the world), or answers with a [`Refusal`]. [`evolve`] folds events
//! into the [`Run`]. Both are pure: the same arguments give the same bytes, today and in a replay years later.
//!
//! This crate knows no clock, no randomness, no file, no network and no thread.

pub mod id;
pub mod time;
pub mod digest;
pub mod fault;
pub mod role;
pub mod artifact;
pub mod skill;
pub mod policy;
pub mod spec;
pub mod plan;
pub mod forge;
pub mod invocation;
pub mod egress;
pub mod testing;
pub mod diff;
pub mod hold;
pub mod relief;
pub mod gate;
pub mod phase;
pub mod run;
pub mod message;
pub mod board;
pub mod throttle;
pub mod input;
pub mod event;
pub mod effect;
pub mod refusal;
pub mod decide;
pub mod evolve;
pub mod figures;
pub mod deadline;
pub mod staff;
pub mod instance;
pub mod invariant;

pub use decide::{Context, DECIDER_VERSION, Decision, decide};
pub use effect::{Effect, EffectRequest};
pub use event::Event;
pub use evolve::evolve;
pub use input::Input;
pub use refusal::Refusal;
pub use run::Run;
