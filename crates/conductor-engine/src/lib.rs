//! Carries runs: takes inputs in, has them decided, commits what follows, performs it, and reports back.
//!
//! One file per stage, in the order in which data flows through them: [`intake`](Engine) → decide (in
//! `conductor-domain`) → `commit` → `dispatch` → `perform` → `report`, and from there into intake again. Beside the
//! flow stand the clock (`timer`), the eye on the forge (`look`), the start (`recover`), the anchors, and three readers of the log: [`audit`],
//! [`replay`] and [`rebuild`].
//!
//! This crate knows no database, no git, no HTTP and no process: only ports.

mod crash;
pub mod engine;
pub mod ports;
pub mod redact;
pub mod telemetry;
pub mod record;
pub mod chain;
pub mod rules;
mod trust;
mod intake;
mod laws;
mod trouble;
mod commit;
mod fence;
mod dispatch;
mod perform;
mod toolhost;
mod report;
mod duty;
mod timer;
mod look;
mod recover;
mod anchor;
mod tell;
pub mod audit;
pub mod replay;
pub mod rebuild;

#[cfg(feature = "crash-points")]
pub use crash::{Fate, on_this_thread};
pub use engine::{Committed, Engine, Live, Options, PortRange};
pub use ports::{Executors, Ports};
pub use recover::Recovered;
pub use tell::Telling;
pub use toolhost::{Alone, Without};
pub use trouble::Trouble;
