//! Points in time and lengths of time as plain numbers, so that records stay readable by any tool.
//!
//! This module does not know what time it is.

use serde::{Deserialize, Serialize};

/// Microseconds since the Unix epoch, UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

/// A length of time in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Millis {
    /// Makes a length of whole seconds.
    pub const fn seconds(seconds: u64) -> Self {
        Self(seconds * 1000)
    }

    /// Makes a length of whole minutes.
    pub const fn minutes(minutes: u64) -> Self {
        Self::seconds(minutes * 60)
    }

    /// Makes a length of whole hours.
    pub const fn hours(hours: u64) -> Self {
        Self::minutes(hours * 60)
    }
}

impl Timestamp {
    /// Returns the time `length` after this one.
    pub fn after(self, length: Millis) -> Self {
        Self(
            self.0
                .saturating_add(i64::try_from(length.0).unwrap_or(i64::MAX).saturating_mul(1000)),
        )
    }

    /// Returns how much time has passed since `earlier`, zero if none has.
    pub fn since(self, earlier: Self) -> Millis {
        Millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0) / 1000)
    }
}
