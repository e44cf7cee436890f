//! Who sits before the pages: one-time links that sign a browser in, and the sessions that come of them (S-55).
//!
//! Both are secrets of 256 bits of which only the hash is kept, in memory: a server that starts anew asks everybody to
//! come in again. This module does not know cookies or pages.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use conductor_domain::time::{Millis, Timestamp};
use sha2::{Digest as _, Sha256};

/// How long a link can be used.
pub(crate) const LINK_LIFE: Millis = Millis::minutes(10);
/// How long a session lasts after its last request.
pub(crate) const SESSION_LIFE: Millis = Millis::hours(12);
/// The most of either; the one that ends first makes room.
const MOST: usize = 256;

type Hash = [u8; 32];

/// The links and sessions of this process.
#[derive(Default)]
pub(crate) struct Sessions {
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    links: BTreeMap<Hash, Timestamp>,
    sessions: BTreeMap<Hash, Timestamp>,
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}

impl Sessions {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a link until it is used or `LINK_LIFE` has passed.
    pub(crate) fn keep_link(&self, code: &str, now: Timestamp) {
        keep(&mut self.book().links, code, now, LINK_LIFE);
    }

    /// Uses a link up; true once, and only in time.
    pub(crate) fn use_link(&self, code: &str, now: Timestamp) -> bool {
        let ends = self.book().links.remove(&hash(code));
        ends.is_some_and(|ends| now < ends)
    }

    /// Opens a session.
    pub(crate) fn open(&self, secret: &str, now: Timestamp) {
        keep(&mut self.book().sessions, secret, now, SESSION_LIFE);
    }

    /// Tells whether a session is open, and lets it last from now on.
    pub(crate) fn is_open(&self, secret: &str, now: Timestamp) -> bool {
        let mut book = self.book();
        match book.sessions.get_mut(&hash(secret)) {
            Some(ends) if now < *ends => {
                *ends = now.after(SESSION_LIFE);
                true
            }
            Some(_) | None => false,
        }
    }

    /// Ends a session.
    pub(crate) fn close(&self, secret: &str) {
        self.book().sessions.remove(&hash(secret));
    }
}

// Looking up by hash takes a time that depends on the hash alone, which whoever guesses cannot steer.
fn hash(secret: &str) -> Hash {
    Sha256::digest(secret.as_bytes()).into()
}

fn keep(kept: &mut BTreeMap<Hash, Timestamp>, secret: &str, now: Timestamp, life: Millis) {
    kept.retain(|_, ends| now < *ends);
    while kept.len() >= MOST {
        let first = kept.iter().min_by_key(|(_, ends)| **ends).map(|(hash, _)| *hash);
        if let Some(first) = first {
            kept.remove(&first);
        }
    }
    kept.insert(hash(secret), now.after(life));
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000);

    /// S-55: a link lets one browser in, once, and not after its time.
    #[test]
    fn a_link_works_once_and_in_time() {
        let sessions = Sessions::default();
        sessions.keep_link("code", NOW);
        assert!(!sessions.use_link("other", NOW));
        assert!(sessions.use_link("code", NOW));
        assert!(!sessions.use_link("code", NOW), "a link is used up");
        sessions.keep_link("late", NOW);
        assert!(!sessions.use_link("late", NOW.after(LINK_LIFE)));
    }

    /// SEC-7: a session lasts while it is used; a link is no session, and a session no link.
    #[test]
    fn a_session_ends_when_nobody_uses_it_or_when_it_is_closed() {
        let sessions = Sessions::default();
        sessions.open("secret", NOW);
        assert!(!sessions.use_link("secret", NOW));
        let mut later = NOW;
        for _ in 0..3 {
            later = later.after(Millis(SESSION_LIFE.0 - 1));
            assert!(sessions.is_open("secret", later));
        }
        assert!(!sessions.is_open("secret", later.after(SESSION_LIFE)));
        sessions.open("other", NOW);
        sessions.close("other");
        assert!(!sessions.is_open("other", NOW));
        sessions.keep_link("code", NOW);
        assert!(!sessions.is_open("code", NOW));
    }

    #[test]
    fn too_many_make_room_by_dropping_the_oldest() {
        let sessions = Sessions::default();
        for number in 0..=MOST {
            let at = NOW.after(Millis(u64::try_from(number).expect("small")));
            sessions.open(&number.to_string(), at);
        }
        assert!(!sessions.is_open("0", NOW));
        assert!(sessions.is_open("1", NOW));
        assert_eq!(sessions.book().sessions.len(), MOST);
    }
}
