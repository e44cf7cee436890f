//! What time it is; the one way in for clocks, so that a simulation can turn it.

use conductor_domain::time::Timestamp;

/// A clock. Cheap, callable from any thread, never goes backwards within one process.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Returns the current time.
    fn now(&self) -> Timestamp;
}
