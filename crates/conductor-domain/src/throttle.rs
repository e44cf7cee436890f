//! How often a run may speak at the forge: one message per 30 seconds with a burst of three (GH-4).
//!
//! What must be heard passes at once; the rest waits here and is sent as one message.
//! This module does not know what the messages say.

use serde::{Deserialize, Serialize};

use crate::message::Message;
use crate::time::{Millis, Timestamp};

/// One message is earned in this time.
pub const INTERVAL: Millis = Millis::seconds(30);
/// So many may be sent at once after a silence.
pub const BURST: u32 = 3;

/// The state of a run's throttle: a bucket that fills with time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Throttle {
    /// The times at which the last [`BURST`] messages were sent, in terms of the bucket: the time from which on the
    /// bucket is full again.
    pub full_at: Timestamp,
    /// What waits to be sent.
    pub deferred: Vec<Message>,
}

impl Throttle {
    /// Tells whether a message may be sent at `now`.
    pub fn is_open(&self, now: Timestamp) -> bool {
        self.opens_at() <= now
    }

    /// The time from which on a message may be sent.
    pub fn opens_at(&self) -> Timestamp {
        let slack = Millis(INTERVAL.0 * u64::from(BURST - 1));
        Timestamp(self.full_at.0 - i64::try_from(slack.0 * 1000).unwrap_or(0))
    }

    /// Remembers that a message was sent at `now`.
    pub(crate) fn charge(&mut self, now: Timestamp) {
        self.full_at = self.full_at.max(now).after(INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// GH-4.
    #[test]
    fn three_at_once_then_one_per_thirty_seconds() {
        let start = Timestamp(1_000_000_000_000);
        let mut throttle = Throttle::default();
        for _ in 0..BURST {
            assert!(throttle.is_open(start));
            throttle.charge(start);
        }
        assert!(!throttle.is_open(start));
        assert_eq!(throttle.opens_at(), start.after(INTERVAL));
        let later = start.after(INTERVAL);
        throttle.charge(later);
        assert!(!throttle.is_open(later));
        let long_after = start.after(Millis::hours(1));
        for _ in 0..BURST {
            assert!(throttle.is_open(long_after));
            throttle.charge(long_after);
        }
        assert!(!throttle.is_open(long_after));
    }
}
