//! Counts failed attempts to come in, so that nobody can go on guessing (SEC-7).
//!
//! Counted by name and address together, by address alone, and by name alone with more patience: whoever guesses from many
//! places is slowed down, and cannot keep the one whose name it is outside for long. Names that nobody can have count as
//! one, so that nothing of a stranger's making is remembered. In this process's memory. This module does not know
//! passwords.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use conductor_domain::id::OperatorName;
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

/// What failures are counted by; no name is one that nobody can have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Counted {
    Both(Option<OperatorName>, Option<IpAddr>),
    Address(Option<IpAddr>),
    Name(Option<OperatorName>),
}

#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    since: Timestamp,
}

impl Counted {
    fn of(name: &str, address: Option<IpAddr>) -> [(Self, u32); 3] {
        let name = OperatorName::parse(name).ok();
        [
            (Self::Both(name.clone(), address), BY_BOTH),
            (Self::Address(address), BY_ADDRESS),
            (Self::Name(name), BY_NAME),
        ]
    }

    /// Tells whether it is about this name.
    fn is_about(&self, operator: &OperatorName) -> bool {
        match self {
            Self::Both(name, _) | Self::Name(name) => name.as_ref() == Some(operator),
            Self::Address(_) => false,
        }
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
        let name = OperatorName::parse(name).ok();
        book.remove(&Counted::Both(name.clone(), address));
        for other in [Counted::Address(address), Counted::Name(name)] {
            if let Some(failures) = book.get_mut(&other) {
                failures.count = failures.count.saturating_sub(1);
            }
        }
    }

    /// Forgets all failures of a name, wherever they came from: what was guessed at is not its password any more.
    pub(crate) fn forget(&self, operator: &OperatorName) {
        let mut book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        book.retain(|what, _| !what.is_about(operator));
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

    /// SEC-7: whose password is set anew comes in at once, from everywhere; nobody else does.
    #[test]
    fn a_new_password_begins_anew_for_its_name_alone() {
        let attempts = Attempts::default();
        for name in ["ann", "bob"] {
            for last in 1..=2 {
                for _ in 0..BY_BOTH {
                    assert_eq!(attempts.begin(name, Some(from(last)), NOW), Ok(()));
                }
                assert_eq!(attempts.begin(name, Some(from(last)), NOW), Err(WINDOW));
            }
        }
        attempts.forget(&OperatorName::parse("ann").expect("a name"));
        for last in 1..=2 {
            assert_eq!(attempts.begin("ann", Some(from(last)), NOW), Ok(()));
            assert_eq!(attempts.begin("bob", Some(from(last)), NOW), Err(WINDOW));
        }
    }

    /// SEC-7: names that nobody can have are one, and none of them is remembered.
    #[test]
    fn names_that_nobody_can_have_count_as_one() {
        let attempts = Attempts::default();
        let large = "x".repeat(256 * 1024);
        for name in ["", "a b", "<ann>", "änn", large.as_str()] {
            assert_eq!(attempts.begin(name, Some(from(1)), NOW), Ok(()));
        }
        assert_eq!(attempts.begin("another one", Some(from(1)), NOW), Err(WINDOW));
        assert_eq!(attempts.begin("ann", Some(from(1)), NOW), Ok(()));
        let book = attempts.book.lock().expect("no panic");
        let kept: usize = book.keys().map(|what| format!("{what:?}").len()).sum();
        assert!(book.len() == 5 && kept < 1024, "{book:?}");
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
