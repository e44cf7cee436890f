//! Counts failed attempts to come in, so that nobody can go on guessing (SEC-7).
//!
//! Counted by name and address together, by address alone, and by name alone with more patience: whoever guesses from many
//! places is slowed down, and cannot keep the one whose name it is outside for long. In this process's memory. This module
//! does not know passwords.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use conductor_domain::time::{Millis, Timestamp};

/// For how long a failure counts.
const WINDOW: Millis = Millis::minutes(15);
/// How many failures one name may have from one address.
const BY_BOTH: u32 = 5;
/// How many failures one address may have.
const BY_ADDRESS: u32 = 30;
/// How many failures one name may have.
const BY_NAME: u32 = 50;
/// The most that is remembered; the oldest makes room.
const MOST: usize = 1024;

/// What failed so far.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    book: Mutex<BTreeMap<Counted, Failures>>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Counted {
    Both(String, Option<IpAddr>),
    Address(Option<IpAddr>),
    Name(String),
}

#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    since: Timestamp,
}

impl Counted {
    fn of(name: &str, address: Option<IpAddr>) -> [(Self, u32); 3] {
        [
            (Self::Both(name.to_owned(), address), BY_BOTH),
            (Self::Address(address), BY_ADDRESS),
            (Self::Name(name.to_owned()), BY_NAME),
        ]
    }
}

impl Attempts {
    /// Counts an attempt before it is judged, or tells how long to wait. What is counted first cannot be tried twice at
    /// the same time.
    pub(crate) fn begin(&self, name: &str, address: Option<IpAddr>, now: Timestamp) -> Result<(), Millis> {
        let mut book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        book.retain(|_, failures| now < failures.since.after(WINDOW));
        let counted = Counted::of(name, address);
        for (what, most) in &counted {
            if let Some(failures) = book.get(what).filter(|failures| failures.count >= *most) {
                return Err(failures.since.after(WINDOW).since(now));
            }
        }
        while book.len() + counted.len() > MOST {
            let oldest = book.iter().min_by_key(|(_, failures)| failures.since);
            if let Some(oldest) = oldest.map(|(what, _)| what.clone()) {
                book.remove(&oldest);
            }
        }
        for (what, _) in counted {
            let failures = book.entry(what).or_insert(Failures { count: 0, since: now });
            failures.count += 1;
        }
        Ok(())
    }

    /// Forgets the failures of a name from where it came in.
    pub(crate) fn succeeded(&self, name: &str, address: Option<IpAddr>) {
        let mut book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        book.remove(&Counted::Both(name.to_owned(), address));
        for other in [Counted::Address(address), Counted::Name(name.to_owned())] {
            if let Some(failures) = book.get_mut(&other) {
                failures.count = failures.count.saturating_sub(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000);

    fn from(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    /// SEC-7: guessing ends after a few attempts, wherever it comes from, and begins anew only after a while.
    #[test]
    fn guessing_ends() {
        let attempts = Attempts::default();
        for _ in 0..BY_BOTH {
            assert_eq!(attempts.begin("ann", Some(from(1)), NOW), Ok(()));
        }
        assert_eq!(attempts.begin("ann", Some(from(1)), NOW), Err(WINDOW));
        assert_eq!(
            attempts.begin("ann", Some(from(2)), NOW),
            Ok(()),
            "from elsewhere she comes in"
        );
        assert_eq!(
            attempts.begin("bob", Some(from(1)), NOW),
            Ok(()),
            "others come in from there"
        );
        assert_eq!(attempts.begin("ann", Some(from(1)), NOW.after(WINDOW)), Ok(()));
        let spread = Attempts::default();
        let mut let_in = 0;
        for guess in 0..200_u8 {
            let_in += u32::from(spread.begin("ann", Some(from(guess)), NOW).is_ok());
        }
        assert_eq!(let_in, BY_NAME, "many places are slowed down");
        let names = Attempts::default();
        let mut let_in = 0;
        for guess in 0..200 {
            let_in += u32::from(names.begin(&format!("n{guess}"), Some(from(1)), NOW).is_ok());
        }
        assert_eq!(let_in, BY_ADDRESS, "many names are slowed down");
    }

    #[test]
    fn whoever_comes_in_is_not_counted() {
        let attempts = Attempts::default();
        for _ in 0..100 {
            assert_eq!(attempts.begin("ann", Some(from(1)), NOW), Ok(()));
            attempts.succeeded("ann", Some(from(1)));
        }
    }

    #[test]
    fn memory_is_bounded() {
        let attempts = Attempts::default();
        for guess in 0..u32::try_from(MOST).expect("small") * 2 {
            let address = Some(IpAddr::from(guess.to_be_bytes()));
            let _counted = attempts.begin(&guess.to_string(), address, NOW);
        }
        assert!(attempts.book.lock().expect("no panic").len() <= MOST);
    }
}
