//! The system's clock, and chance: the one place of this program that asks the machine for either.
//!
//! The clock never goes backwards within one process, whatever the machine's does. This module does not know what ids are for.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use conductor_domain::id::RunId;
use conductor_domain::time::{Millis, Timestamp};
use conductor_port::clock::Clock;
use rand::Rng as _;

/// The machine's clock.
#[derive(Debug, Default)]
pub(crate) struct SystemClock {
    latest: AtomicI64,
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let now = machine_now().0;
        Timestamp(self.latest.fetch_max(now, Ordering::Relaxed).max(now))
    }
}

/// What the machine says that it is.
#[allow(clippy::disallowed_methods, reason = "the one home of the clock")]
pub(crate) fn machine_now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// The clock of a server that several processes share, kept by each with its own: it goes as the machine's does and is
/// set right again and again, so that all processes agree on when a lease ends, whatever their machines say.
#[derive(Debug)]
pub(crate) struct SharedClock {
    begun: Instant,
    /// The server's time when the clock was begun, as it is known by now.
    origin: AtomicI64,
    latest: AtomicI64,
}

impl SharedClock {
    /// Begins with what the machine says, and `ahead` of it.
    #[allow(clippy::disallowed_methods, reason = "the one home of the clock")]
    pub(crate) fn begin(ahead: Millis) -> Self {
        Self {
            begun: Instant::now(),
            origin: AtomicI64::new(machine_now().after(ahead).0),
            latest: AtomicI64::new(i64::MIN),
        }
    }

    /// Sets the clock right by what the server said when it was asked; returns by how much. An answer that took too long
    /// says too little and changes nothing.
    pub(crate) fn set(&self, asked: Reading, server: Timestamp) -> Option<i64> {
        const LONGEST: i64 = 250_000;
        let now = self.waited();
        let took = now - asked.0;
        if took > LONGEST {
            return None;
        }
        let origin = server.0 - (asked.0 + took / 2);
        let before = self.origin.swap(origin, Ordering::AcqRel);
        // Only the first setting may go back: before it nothing was timed by this clock.
        Some(origin - before)
    }

    /// Begins the first setting anew, so that a machine whose clock was ahead is not kept there.
    pub(crate) fn forget_latest(&self) {
        self.latest.store(i64::MIN, Ordering::Release);
    }

    /// Remembers when the server is asked.
    pub(crate) fn reading(&self) -> Reading {
        Reading(self.waited())
    }

    fn waited(&self) -> i64 {
        i64::try_from(self.begun.elapsed().as_micros()).unwrap_or(i64::MAX)
    }
}

/// When a server was asked for its time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading(i64);

impl Clock for SharedClock {
    fn now(&self) -> Timestamp {
        let now = self.origin.load(Ordering::Acquire).saturating_add(self.waited());
        Timestamp(self.latest.fetch_max(now, Ordering::Relaxed).max(now))
    }
}

/// Measures a length of time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts measuring.
    #[allow(clippy::disallowed_methods, reason = "the one home of the clock")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// How long it has been, exactly.
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    /// How long it has been.
    pub(crate) fn millis(self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Mints the id of a new run; short enough to be typed, and without letters that look alike.
pub(crate) fn mint_run() -> RunId {
    const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let mut id = String::from("r-");
    for byte in chance::<8>() {
        id.push(char::from(LETTERS[usize::from(byte % 32)]));
    }
    RunId::parse(id).expect("letters and digits after `r-` are a slug")
}

/// Mints a secret of 256 bits.
pub(crate) fn mint_secret() -> String {
    hex::encode(chance::<32>())
}

#[allow(clippy::disallowed_methods, reason = "the one home of chance")]
fn chance<const N: usize>() -> [u8; N] {
    rand::rng().random()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_never_goes_backwards() {
        let clock = SystemClock {
            latest: AtomicI64::new(i64::MAX - 1),
        };
        assert_eq!(clock.now(), Timestamp(i64::MAX - 1));
    }

    /// DEP-3: the server's clock decides, however wrong the machine's is.
    #[test]
    fn a_shared_clock_follows_the_server_and_not_the_machine() {
        let server = Timestamp(1_767_225_600_000_000);
        for ahead in [Millis(0), Millis::hours(24 * 365)] {
            let clock = SharedClock::begin(ahead);
            clock.set(clock.reading(), server).expect("a quick answer");
            clock.forget_latest();
            let now = clock.now();
            assert!(now >= server && now.since(server) < Millis::minutes(5), "{now:?}");
            clock.set(clock.reading(), Timestamp(server.0 - 50_000_000));
            assert!(clock.now() >= now, "it never goes backwards once it was read");
        }
    }

    #[test]
    fn an_answer_that_took_long_sets_nothing() {
        let clock = SharedClock::begin(Millis(0));
        let before = clock.now();
        let long_ago = Reading(clock.reading().0 - 1_000_000);
        assert_eq!(clock.set(long_ago, Timestamp(0)), None);
        assert!(clock.now() >= before);
    }

    #[test]
    fn minted_ids_and_secrets_differ() {
        assert_ne!(mint_run(), mint_run());
        assert_ne!(mint_secret(), mint_secret());
        assert_eq!((mint_run().as_str().len(), mint_secret().len()), (10, 64));
    }
}
