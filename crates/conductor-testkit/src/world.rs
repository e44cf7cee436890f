//! What the fakes share: the weather (delays and faults), and whether Conductor is dying right now.
//!
//! This module does not know what is being done in which weather.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use conductor_domain::fault::Fault;
use tokio::sync::Notify;

use crate::chance::Chance;

/// How rough the world is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Climate {
    /// How many calls in a thousand fail before they did anything.
    pub fails_before: u64,
    /// How many calls in a thousand do it and fail all the same.
    pub fails_after: u64,
    /// The longest time that a call takes, in milliseconds.
    pub slowness: u64,
}

impl Climate {
    /// Nothing fails and nothing takes time.
    pub const CALM: Self = Self {
        fails_before: 0,
        fails_after: 0,
        slowness: 0,
    };
    /// One call in thirty fails, half of those after having done it.
    pub const ROUGH: Self = Self {
        fails_before: 17,
        fails_after: 17,
        slowness: 400,
    };
}

/// What the fakes share.
#[derive(Debug)]
pub struct World {
    /// Where every random choice comes from.
    pub chance: Chance,
    climate: Climate,
    is_dying: AtomicBool,
    faults: AtomicU64,
    to_be_lost: Mutex<Option<&'static str>>,
    to_hang: Mutex<Option<&'static str>>,
    to_be_held_up: Mutex<Option<Delay>>,
}

/// What will hold a call up.
#[derive(Debug)]
struct Delay {
    what: &'static str,
    /// How many calls of this name go before it.
    before: u32,
    held_up: Arc<HeldUp>,
}

/// A call that waits until a test lets it go.
#[derive(Debug, Default)]
pub struct HeldUp {
    came: Notify,
    may_go: Notify,
}

impl HeldUp {
    /// Waits until the call has come.
    pub async fn came(&self) {
        self.came.notified().await;
    }

    /// Lets the call go on.
    pub fn let_go(&self) {
        self.may_go.notify_one();
    }
}

impl World {
    /// Makes a world.
    pub fn new(seed: u64, climate: Climate) -> Self {
        Self {
            chance: Chance::new(seed),
            climate,
            is_dying: AtomicBool::new(false),
            faults: AtomicU64::new(0),
            to_be_lost: Mutex::new(None),
            to_hang: Mutex::new(None),
            to_be_held_up: Mutex::new(None),
        }
    }

    /// Lets the next call of this name do what it does and fail all the same, whatever the climate.
    pub fn lose_the_answer_to(&self, what: &'static str) {
        *self.to_be_lost.lock().expect("nobody panics with it") = Some(what);
    }

    /// Lets the next call of this name never come to an end.
    pub fn hang(&self, what: &'static str) {
        *self.to_hang.lock().expect("nobody panics with it") = Some(what);
    }

    /// Holds up the call of this name that comes after `before` others, until it is let go.
    pub fn hold_up(&self, what: &'static str, before: u32) -> Arc<HeldUp> {
        let held_up = Arc::new(HeldUp::default());
        *self.to_be_held_up.lock().expect("nobody panics with it") = Some(Delay {
            what,
            before,
            held_up: held_up.clone(),
        });
        held_up
    }

    /// Takes a call's delay, if its turn has come.
    fn delay(&self, what: &'static str) -> Option<Arc<HeldUp>> {
        let mut foretold = self.to_be_held_up.lock().expect("nobody panics with it");
        let delay = foretold.as_mut().filter(|delay| delay.what == what)?;
        if delay.before > 0 {
            delay.before -= 1;
            return None;
        }
        foretold.take().map(|delay| delay.held_up)
    }

    /// Lets a call take its time, and decides whether it will fail.
    pub async fn weather(&self, what: &'static str) -> Weather {
        if is_due(&self.to_hang, what) {
            std::future::pending::<()>().await;
        }
        if let Some(held_up) = self.delay(what) {
            held_up.came.notify_one();
            held_up.may_go.notified().await;
        }
        let delay = self.chance.below(self.climate.slowness + 1);
        if delay > 0 {
            tokio::time::sleep(Duration::from_millis(delay)).await;
        }
        let weather = if self.chance.strikes(self.climate.fails_before) {
            Weather {
                what,
                before: true,
                after: false,
            }
        } else {
            Weather {
                what,
                before: false,
                after: self.chance.strikes(self.climate.fails_after) || is_due(&self.to_be_lost, what),
            }
        };
        if weather.before || weather.after {
            self.faults.fetch_add(1, Ordering::Relaxed);
        }
        weather
    }

    /// How many faults there were.
    pub fn faults(&self) -> u64 {
        self.faults.load(Ordering::Relaxed)
    }

    /// Says whether Conductor is dying: what it drops now, it leaves behind.
    pub fn set_dying(&self, is_dying: bool) {
        self.is_dying.store(is_dying, Ordering::Relaxed);
    }

    /// Tells whether Conductor is dying.
    pub fn is_dying(&self) -> bool {
        self.is_dying.load(Ordering::Relaxed)
    }
}

/// Tells whether a call was foretold something; that happens once.
fn is_due(foretold: &Mutex<Option<&'static str>>, what: &'static str) -> bool {
    let mut foretold = foretold.lock().expect("nobody panics with it");
    foretold.take_if(|foretold| *foretold == what).is_some()
}

/// What becomes of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Weather {
    what: &'static str,
    before: bool,
    after: bool,
}

impl Weather {
    /// Fails before anything was done.
    pub fn before(self) -> Result<(), Fault> {
        if self.before {
            Err(Fault::transient(format!(
                "{}: injected, nothing was done",
                self.what
            )))
        } else {
            Ok(())
        }
    }

    /// Fails although it was done; nobody can tell the two apart.
    pub fn after<T>(self, done: T) -> Result<T, Fault> {
        if self.after {
            Err(Fault::transient(format!(
                "{}: injected, but it was done",
                self.what
            )))
        } else {
            Ok(done)
        }
    }
}
