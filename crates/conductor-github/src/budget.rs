//! Keeps each identity within GitHub's limits: rests after a limit was hit, spaces writes before one is (GH-4).
//!
//! A call that must not be made now is answered with a transient fault that says when it may, each waiting write with
//! a time of its own; nothing here waits. It does not know what the calls are, nor who makes them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use conductor_domain::time::{Millis, Timestamp};

const MINUTE: Millis = Millis::minutes(1);
const HOUR: Millis = Millis::hours(1);
/// How long a slot is kept for whoever was promised it; a dispatcher under load needs seconds to come back.
const GRACE: Millis = Millis::seconds(10);
/// How many slots are promised at most, a day's writes; whoever comes beyond them is told when to ask again, no more.
const MOST_PROMISED: usize = 10_000;

/// How many writes an installation may make; GitHub's own limits are 80 a minute and 500 an hour, people's
/// clicks included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteBudget {
    /// Writes in any minute.
    pub per_minute: usize,
    /// Writes in any hour.
    pub per_hour: usize,
}

impl Default for WriteBudget {
    fn default() -> Self {
        Self {
            per_minute: 60,
            per_hour: 450,
        }
    }
}

impl WriteBudget {
    /// No limit of our own, for a forge on loopback.
    pub const UNLIMITED: Self = Self {
        per_minute: usize::MAX,
        per_hour: usize::MAX,
    };
}

/// Whose budget a call is counted against; a limit on one call rests the whole identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Identity {
    App,
    Installation(u64),
}

#[derive(Debug, Default)]
struct Account {
    rests_until: Timestamp,
    /// The writes of the last hour, oldest first.
    writes: VecDeque<Timestamp>,
    /// The slots that were promised and not claimed yet, earliest first.
    promised: VecDeque<Timestamp>,
}

#[derive(Debug)]
pub(crate) struct Budget {
    writes: WriteBudget,
    accounts: Mutex<HashMap<Identity, Account>>,
}

impl Budget {
    pub(crate) fn new(writes: WriteBudget) -> Self {
        Self {
            writes,
            accounts: Mutex::default(),
        }
    }

    /// Lets a call pass, or says how long it has to wait.
    ///
    /// Whoever must wait with a write is promised a slot of its own, behind all that are promised already; a newcomer
    /// passes at once only where nobody waits. A slot is a seat without a name: the first to come once it is due takes
    /// it, and [`GRACE`] later it lapses. What this guarantees: the limits hold, however late anyone comes. Those who
    /// come back within the grace pass at the second try, unless a newcomer came between the slot and them; then they
    /// are promised another. As each such newcomer was spared a wait, refusals never outnumber the writes, the lapsed
    /// slots and those still waiting. Names were rejected: a repeat may come from another process, whose budget knows
    /// none of our promises.
    pub(crate) fn admit(&self, identity: Identity, is_write: bool, now: Timestamp) -> Result<(), Millis> {
        let mut accounts = self.lock();
        let account = accounts.entry(identity).or_default();
        if is_write {
            account.admit_write(self.writes, now)
        } else if now < account.rests_until {
            Err(wait(now, account.rests_until))
        } else {
            Ok(())
        }
    }

    /// Rests an identity after GitHub said so.
    pub(crate) fn rest(&self, identity: Identity, until: Timestamp) {
        let mut accounts = self.lock();
        let account = accounts.entry(identity).or_default();
        account.rests_until = account.rests_until.max(until);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Identity, Account>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Account {
    fn admit_write(&mut self, limits: WriteBudget, now: Timestamp) -> Result<(), Millis> {
        self.forget(now);
        let from = now.max(self.rests_until);
        let slot = if from == now && self.promised.front().is_some_and(|first| *first <= now) {
            self.promised.pop_front();
            now
        } else {
            self.next_slot(limits, from)
        };
        if slot == now {
            self.writes.push_back(now);
            return Ok(());
        }
        if self.promised.len() < MOST_PROMISED {
            self.promised.push_back(slot);
        }
        Err(wait(now, slot))
    }

    /// Forgets the writes that have left the longest window, and the slots that nobody claimed in time.
    fn forget(&mut self, now: Timestamp) {
        let left = self.writes.partition_point(|write| now >= write.after(HOUR));
        self.writes.drain(..left);
        let lapsed = self.promised.partition_point(|slot| now > slot.after(GRACE));
        self.promised.drain(..lapsed);
    }

    /// The first time at which one more write keeps to both windows, behind all slots that are promised already.
    ///
    /// A window is full when the write that is made `most` writes before still lies in it. A promised one counts as
    /// made at the end of its grace: made at its slot, it would exceed the limit with the next whenever it is late.
    fn next_slot(&self, limits: WriteBudget, from: Timestamp) -> Timestamp {
        let free_at = |(most, length): (usize, Millis)| {
            let promised = self.promised.iter().map(|slot| slot.after(GRACE));
            let position = (self.writes.len() + self.promised.len()).checked_sub(most.max(1))?;
            let before = self.writes.iter().copied().chain(promised).nth(position)?;
            Some(before.after(length))
        };
        let windows = [(limits.per_minute, MINUTE), (limits.per_hour, HOUR)];
        let free = windows.into_iter().filter_map(free_at);
        free.chain(self.promised.back().copied())
            .fold(from, Timestamp::max)
    }
}

/// How long it is until then, rounded up: who comes a part of a millisecond too early has come in vain.
fn wait(now: Timestamp, until: Timestamp) -> Millis {
    let whole = until.since(now);
    if now.after(whole) < until {
        Millis(whole.0 + 1)
    } else {
        whole
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    use conductor_domain::time::{Millis, Timestamp};

    use super::{Account, Budget, HOUR, Identity, MINUTE, MOST_PROMISED, WriteBudget};

    const OURS: Identity = Identity::Installation(1);

    fn at(second: u64) -> Timestamp {
        Timestamp(0).after(Millis::seconds(second))
    }

    /// GH-4.
    #[test]
    fn a_full_minute_of_writes_waits_for_its_first_to_leave_while_reads_pass() {
        let budget = Budget::new(WriteBudget {
            per_minute: 2,
            per_hour: 100,
        });
        assert_eq!(budget.admit(OURS, true, at(0)), Ok(()));
        assert_eq!(budget.admit(OURS, true, at(10)), Ok(()));
        assert_eq!(budget.admit(OURS, true, at(20)), Err(Millis::seconds(40)));
        assert_eq!(budget.admit(OURS, false, at(20)), Ok(()));
        assert_eq!(budget.admit(Identity::Installation(2), true, at(20)), Ok(()));
        assert_eq!(budget.admit(OURS, true, at(60)), Ok(()));
        assert_eq!(budget.admit(OURS, true, at(61)), Err(Millis::seconds(9)));
    }

    /// GH-4.
    #[test]
    fn a_full_hour_of_writes_waits_even_when_the_minute_is_free() {
        let budget = Budget::new(WriteBudget {
            per_minute: 100,
            per_hour: 2,
        });
        assert_eq!(budget.admit(OURS, true, at(0)), Ok(()));
        assert_eq!(budget.admit(OURS, true, at(600)), Ok(()));
        assert_eq!(budget.admit(OURS, true, at(1200)), Err(Millis::seconds(2400)));
        assert_eq!(budget.admit(OURS, true, at(3600)), Ok(()));
    }

    /// GH-4: continuing while limited may get an App banned, so the whole identity rests.
    #[test]
    fn a_resting_identity_makes_no_call_of_any_kind() {
        let budget = Budget::new(WriteBudget::default());
        budget.rest(OURS, at(90));
        budget.rest(OURS, at(30));
        assert_eq!(budget.admit(OURS, false, at(40)), Err(Millis::seconds(50)));
        assert_eq!(budget.admit(Identity::App, false, at(40)), Ok(()));
        assert_eq!(budget.admit(OURS, false, at(90)), Ok(()));
    }

    /// Lets callers come, each again when it was told and as late as it is, until all have passed. Returns the most
    /// tries that one of them took.
    fn check(writes: WriteBudget, callers: impl IntoIterator<Item = (Timestamp, Millis)>) -> u32 {
        let budget = Budget::new(writes);
        let mut coming: BinaryHeap<_> = callers
            .into_iter()
            .map(|(first, late)| Reverse((first, 1, late)))
            .collect();
        let (mut passed, mut most_tries) = (Vec::new(), 0);
        while let Some(Reverse((now, tries, late))) = coming.pop() {
            assert!(tries < 100, "one never passes");
            match budget.admit(OURS, true, now) {
                Ok(()) => {
                    passed.push(now);
                    most_tries = most_tries.max(tries);
                }
                // A run sleeps for a day at most, whoever tells it to.
                Err(wait) => {
                    let wait = wait.min(Millis::hours(24));
                    coming.push(Reverse((now.after(wait).after(late), tries + 1, late)));
                }
            }
        }
        for (length, most) in [(MINUTE, writes.per_minute), (HOUR, writes.per_hour)] {
            for (earlier, later) in passed.iter().zip(passed.iter().skip(most)) {
                assert!(*later >= earlier.after(length), "more than {most}: {passed:?}");
            }
        }
        most_tries
    }

    const TIGHT: WriteBudget = WriteBudget {
        per_minute: 2,
        per_hour: 1000,
    };

    /// GH-4, RUN-12: nine tries are all that a run has, so waiting must not use them up.
    #[test]
    fn everyone_who_comes_back_when_told_passes_at_the_second_try() {
        let odd = Timestamp(1_234_567);
        assert_eq!(check(TIGHT, [(odd, Millis(0)); 30]), 2);
        let both = WriteBudget {
            per_minute: 3,
            per_hour: 10,
        };
        assert_eq!(check(both, [(odd, Millis(0)); 30]), 2);
        let one_by_one = (0..30).map(|it| (Timestamp(it * 1_000_333), Millis(0)));
        assert_eq!(
            check(TIGHT, one_by_one),
            2,
            "none comes a part of a millisecond too early"
        );
    }

    /// GH-4: nobody comes back to the millisecond.
    #[test]
    fn everyone_who_comes_back_a_little_late_passes_at_the_second_try() {
        let late = |it: u64| Millis(it * 1709 % 10_000);
        assert_eq!(check(TIGHT, (0..30).map(|it| (at(0), late(it)))), 2);
    }

    /// GH-4: without names, whoever comes may take the slot of someone who is late, but nobody starves.
    #[test]
    fn waiting_ends_although_others_keep_coming() {
        let late = |it: u64| Millis(it * 1709 % 3000);
        let crowd = (0..30).map(|it| (at(0), late(it)));
        let newcomers = (0..60).map(|it| (at(7 * it), late(it)));
        let most_tries = check(TIGHT, crowd.chain(newcomers));
        assert!(most_tries < 9, "{most_tries} tries");
    }

    /// GH-4.
    #[test]
    fn a_newcomer_waits_behind_those_who_were_promised_a_slot() {
        let budget = Budget::new(TIGHT);
        assert_eq!(budget.admit(OURS, true, at(0)), Ok(()));
        assert_eq!(budget.admit(OURS, true, at(0)), Ok(()));
        assert_eq!(budget.admit(OURS, true, at(10)), Err(Millis::seconds(50)));
        assert_eq!(budget.admit(OURS, true, at(20)), Err(Millis::seconds(40)));
        assert_eq!(budget.admit(OURS, true, at(59)), Err(Millis::seconds(71)));
        assert_eq!(budget.admit(OURS, true, at(60)), Ok(()));
        assert_eq!(budget.admit(OURS, true, at(60)), Ok(()));
    }

    /// GH-4: a run that was cancelled meanwhile never comes back for its slot.
    #[test]
    fn a_promise_that_nobody_claims_lapses() {
        let budget = Budget::new(TIGHT);
        assert_eq!(budget.admit(OURS, true, at(0)), Ok(()));
        assert_eq!(budget.admit(OURS, true, at(0)), Ok(()));
        for _ in 0..2 {
            assert_eq!(budget.admit(OURS, true, at(10)), Err(Millis::seconds(50)));
        }
        assert_eq!(budget.admit(OURS, true, at(71)), Ok(()));
        assert_eq!(budget.admit(OURS, true, at(71)), Ok(()));
        assert_eq!(budget.admit(OURS, true, at(71)), Err(Millis::seconds(60)));
    }

    /// GH-4: whoever asks without end does not fill the memory.
    #[test]
    fn no_more_slots_are_promised_than_can_be_kept() {
        let mut account = Account::default();
        for _ in 0..MOST_PROMISED + 2 {
            account.admit_write(TIGHT, at(0)).ok();
        }
        let last = account.admit_write(TIGHT, at(0));
        assert_eq!(account.admit_write(TIGHT, at(0)), last);
        assert_eq!(account.promised.len(), MOST_PROMISED);
    }

    /// GH-4: what waits for the end of a rest is spread over the time after it.
    #[test]
    fn writes_that_wait_for_the_end_of_a_rest_do_not_all_come_back_at_once() {
        let budget = Budget::new(TIGHT);
        budget.rest(OURS, at(90));
        let waits = [90, 90, 160, 160].map(Millis::seconds);
        for wait in waits {
            assert_eq!(budget.admit(OURS, true, at(0)), Err(wait));
        }
        for back in [90, 90, 160, 160] {
            assert_eq!(budget.admit(OURS, true, at(back)), Ok(()));
        }
    }
}
