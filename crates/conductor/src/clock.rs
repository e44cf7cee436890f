//! The system's clock, and chance: the one place of this program that asks the machine for either.
//!
//! The clock never goes backwards within one process, whatever the machine's does. This module does not know what ids are for.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use conductor_domain::id::RunId;
use conductor_domain::time::Timestamp;
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

/// Measures a length of time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts measuring.
    #[allow(clippy::disallowed_methods, reason = "the one home of the clock")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
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

    #[test]
    fn minted_ids_and_secrets_differ() {
        assert_ne!(mint_run(), mint_run());
        assert_ne!(mint_secret(), mint_secret());
        assert_eq!((mint_run().as_str().len(), mint_secret().len()), (10, 64));
    }
}
