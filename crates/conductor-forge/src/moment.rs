//! Tells the time as GitHub writes it: whole seconds, UTC, and shiftable so that tests can skew the site.
//!
//! It knows nothing of who asks or why.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A point in time with second precision; milliseconds would be rejected by strict GitHub clients.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(i64);

impl Moment {
    pub fn from_second(second: i64) -> Self {
        Self(second)
    }

    pub fn as_second(self) -> i64 {
        self.0
    }

    pub fn plus_seconds(self, seconds: i64) -> Self {
        Self(self.0.saturating_add(seconds))
    }

    /// Parses what a client sends as `since`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        text.parse::<Timestamp>()
            .ok()
            .map(|timestamp| Self(timestamp.as_second()))
    }

    /// The form of the HTTP `Date` header.
    pub(crate) fn http_date(self) -> String {
        self.timestamp().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
    }

    fn timestamp(self) -> Timestamp {
        Timestamp::from_second(self.0).unwrap_or(Timestamp::MAX)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.timestamp())
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom(format!("{text:?} is not a timestamp")))
    }
}

/// The site's clock: the machine's, plus an offset that a test may set.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    offset_seconds: AtomicI64,
}

impl Clock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one home of the clock in this crate"
    )]
    pub(crate) fn now(&self) -> Moment {
        Moment(Timestamp::now().as_second()).plus_seconds(self.offset_seconds.load(Ordering::Relaxed))
    }

    pub(crate) fn shift(&self, seconds: i64) {
        self.offset_seconds.store(seconds, Ordering::Relaxed);
    }
}

/// Measures how long something took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one home of measuring in this crate"
    )]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}
