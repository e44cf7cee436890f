//! Lets work go on only while the lease under which it is done surely holds.
//!
//! Every step of the work is preceded by a look at the clock, so that a process which was frozen, or which cannot reach
//! the ledger, takes no further step after the lease's end, and none in the last part of it, which is left for ending
//! what it began. What was under way in the kernel or at the forge at that moment is beyond any fence; markers find it.
//! This module does not know what the work is, nor how a lease is renewed.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::Poll;

use conductor_domain::time::{Millis, Timestamp};
use conductor_port::clock::Clock;

/// The end of a lease, as far as this process knows.
#[derive(Debug)]
pub(crate) struct Fence {
    until: AtomicI64,
    /// How long before the end nothing is begun any more.
    margin: Millis,
}

impl Fence {
    /// Stands at the end of a lease of this length.
    pub(crate) fn at(until: Timestamp, lease: Millis) -> Self {
        Self {
            until: AtomicI64::new(until.0),
            margin: Millis(lease.0 / 5),
        }
    }

    /// Moves with a renewed lease.
    pub(crate) fn move_to(&self, until: Timestamp) {
        self.until.fetch_max(until.0, Ordering::AcqRel);
    }

    /// Closes for good: another process has the lease.
    pub(crate) fn tear_down(&self) {
        self.until.store(i64::MIN, Ordering::Release);
    }

    /// Tells for how long work may still go on.
    pub(crate) fn left(&self, now: Timestamp) -> Millis {
        let left = Timestamp(self.until.load(Ordering::Acquire)).since(now);
        Millis(left.0.saturating_sub(self.margin.0))
    }

    /// Tells whether the lease itself still holds, for ending what was begun.
    pub(crate) fn holds(&self, now: Timestamp) -> bool {
        now.0 < self.until.load(Ordering::Acquire)
    }

    /// Does the work; `None` when the fence was reached first. The work is then dropped where it stood.
    pub(crate) async fn guard<T>(&self, clock: &dyn Clock, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        poll_fn(|context| {
            if self.left(clock.now()) == Millis(0) {
                return Poll::Ready(None);
            }
            work.as_mut().poll(context).map(Some)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[derive(Debug, Default)]
    struct Hand(AtomicI64);

    impl Clock for Hand {
        fn now(&self) -> Timestamp {
            Timestamp(self.0.load(Ordering::Relaxed))
        }
    }

    const LEASE: Millis = Millis(10);

    /// DEP-3: a process that was frozen between two steps takes none of those that were still to come.
    #[tokio::test]
    async fn work_that_was_frozen_past_its_lease_takes_no_further_step() {
        let clock = Hand::default();
        let fence = Fence::at(Timestamp(0).after(LEASE), LEASE);
        let steps = AtomicU32::new(0);
        let work = async {
            steps.fetch_add(1, Ordering::Relaxed);
            // The process is stopped here and goes on in the last part of its lease.
            clock.0.store(8_000, Ordering::Relaxed);
            tokio::task::yield_now().await;
            steps.fetch_add(1, Ordering::Relaxed);
        };
        assert_eq!(fence.guard(&clock, work).await, None);
        assert_eq!(steps.load(Ordering::Relaxed), 1);
        assert!(
            fence.holds(clock.now()),
            "there is time left to end what was begun"
        );
    }

    #[tokio::test]
    async fn a_renewed_lease_moves_the_fence_and_a_late_answer_does_not_move_it_back() {
        let clock = Hand::default();
        let fence = Fence::at(Timestamp(0).after(LEASE), LEASE);
        fence.move_to(Timestamp(0).after(Millis(30)));
        fence.move_to(Timestamp(0).after(Millis(20)));
        clock.0.store(27_000, Ordering::Relaxed);
        assert_eq!(fence.guard(&clock, async { 7 }).await, Some(7));
        clock.0.store(28_000, Ordering::Relaxed);
        assert_eq!(fence.guard(&clock, async { 7 }).await, None);
    }
}
