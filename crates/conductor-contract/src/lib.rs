//! The contracts of the ports as tests that any implementation can run on itself: the store's, and the executor's.
//!
//! ```ignore
//! async fn subject() -> conductor_contract::Subject { … }
//! conductor_contract::store_contract!(crate::subject);
//! ```
//!
//! (and `executor_contract!` with an [`executor::Subject`]) expands to one `#[tokio::test]` per case; the crate that uses it depends on `tokio` with `macros` and
//! `rt-multi-thread`. Each case gets a fresh, empty subject. The cases know the ports and nothing behind them.

mod suite;
mod subject;
mod given;

mod append;
mod effects;
mod lease;
mod slots;
mod issues;
mod projections;
mod views;
mod search;
mod tally;
mod blobs;
mod tool_log;
mod resources;
mod duties;
mod marks;
mod keys;
mod answers;

pub mod target;
pub mod executor;
pub mod egress;

pub use subject::Subject;
pub use suite::cases;
