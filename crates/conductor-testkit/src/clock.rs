//! A clock that goes with the runtime's own time, so that a paused runtime turns it.
//!
//! It does not know real time.

use std::sync::atomic::{AtomicI64, Ordering};

use conductor_domain::time::{Millis, Timestamp};
use conductor_port::clock::Clock;
use tokio::time::Instant;

/// The time at which every test begins: 2026-01-01, UTC.
pub const BEGIN: Timestamp = Timestamp(1_767_225_600_000_000);

/// A clock that begins at [`BEGIN`] and goes with the runtime.
#[derive(Debug)]
pub struct VirtualClock {
    begun: Instant,
    turned: AtomicI64,
}

impl VirtualClock {
    /// Starts a clock; must be called inside a runtime.
    #[allow(clippy::disallowed_methods, reason = "the home of virtual time")]
    pub fn start() -> Self {
        Self {
            begun: Instant::now(),
            turned: AtomicI64::new(0),
        }
    }

    /// Turns the clock forward without anyone having waited.
    pub fn turn(&self, length: Millis) {
        let micros = i64::try_from(length.0.saturating_mul(1000)).unwrap_or(i64::MAX);
        self.turned.fetch_add(micros, Ordering::Relaxed);
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        let waited = i64::try_from(self.begun.elapsed().as_micros()).unwrap_or(i64::MAX);
        Timestamp(BEGIN.0 + waited + self.turned.load(Ordering::Relaxed))
    }
}
