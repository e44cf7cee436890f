//! Decides how many calls are under way at once, how many more may wait for that, and how many have neither.
//!
//! Whoever has no seat and may not wait is refused by whoever asked; here it is only counted, until it is told in the log.
//! This module does not know what is called, nor who calls.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Mutex, MutexGuard, Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;

/// How many calls may be under way at once; an agent that waits for its answers has far fewer.
pub(crate) const CALLS: usize = 16;

/// How many there may be together with those that wait for a seat. A client on pipes is not read on while it has so many,
/// and all connections over HTTP have fewer; only clients that share a lease, or never wait for an answer, come to more.
pub(crate) const MAX_UNDER_WAY: usize = 64;

/// The seats of one lease.
pub(crate) struct Seats {
    room: Semaphore,
    seats: Semaphore,
    /// How many had none, and stand in no line of the log yet.
    refused: AtomicUsize,
    /// Whoever has it writes the next line.
    line: Mutex<()>,
}

/// A call has one until it is done, also where nobody waits for its answer any more.
pub(crate) struct Seat<'a> {
    _room: SemaphorePermit<'a>,
    _seat: SemaphorePermit<'a>,
}

/// The right to write one line about all that were refused and stand in none.
pub(crate) struct Line<'a> {
    seats: &'a Seats,
    pub(crate) refused: usize,
    _line: MutexGuard<'a, ()>,
}

impl Default for Seats {
    fn default() -> Self {
        Self {
            room: Semaphore::new(MAX_UNDER_WAY),
            seats: Semaphore::new(CALLS),
            refused: AtomicUsize::default(),
            line: Mutex::default(),
        }
    }
}

impl Seats {
    /// Returns a seat if one is free right now.
    pub(crate) fn at_once(&self) -> Option<Seat<'_>> {
        let room = self.room.try_acquire().ok()?;
        let seat = self.seats.try_acquire().ok()?;
        Some(Seat {
            _room: room,
            _seat: seat,
        })
    }

    /// Waits for a seat. There is none for a call that is taken back while it waits, whether by its client, by the client's
    /// leaving or by the end of the lease, and none where too many wait already.
    pub(crate) async fn wait(&self, taken_back: &CancellationToken) -> Option<Seat<'_>> {
        if let Some(seat) = self.at_once() {
            return Some(seat);
        }
        let room = self.room.try_acquire().ok()?;
        let seat = tokio::select! {
            biased;
            () = taken_back.cancelled() => return None,
            seat = self.seats.acquire() => seat.ok()?,
        };
        Some(Seat {
            _room: room,
            _seat: seat,
        })
    }

    /// Counts a call that has no seat, and waits until it is its turn to tell. `None` when another told of it: those that come
    /// while a line is written share the next one, or the log would take the flood instead.
    pub(crate) async fn refuse(&self) -> Option<Line<'_>> {
        self.refused.fetch_add(1, Ordering::Relaxed);
        let line = self.line.lock().await;
        let refused = self.refused.load(Ordering::Relaxed);
        (refused > 0).then_some(Line {
            seats: self,
            refused,
            _line: line,
        })
    }
}

impl Line<'_> {
    /// Says that the line was written. One that was not is left to the next: better told twice than not at all.
    pub(crate) fn written(self) {
        self.seats.refused.fetch_sub(self.refused, Ordering::Relaxed);
    }
}
