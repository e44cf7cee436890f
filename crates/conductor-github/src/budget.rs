//! Keeps each identity within GitHub's limits: rests after a limit was hit, spaces writes before one is (GH-4).
//!
//! A call that must not be made now is answered with a transient fault that says when it may; nothing here
//! waits. It does not know what the calls are.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use conductor_domain::time::{Millis, Timestamp};

const MINUTE: Millis = Millis::minutes(1);
const HOUR: Millis = Millis::hours(1);

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
    writes: VecDeque<Timestamp>,
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
    pub(crate) fn admit(&self, identity: Identity, is_write: bool, now: Timestamp) -> Result<(), Millis> {
        let mut accounts = self.lock();
        let account = accounts.entry(identity).or_default();
        if now < account.rests_until {
            return Err(account.rests_until.since(now));
        }
        if is_write {
            while account
                .writes
                .front()
                .is_some_and(|first| now >= first.after(HOUR))
            {
                account.writes.pop_front();
            }
            check_window(account, now, HOUR, self.writes.per_hour)?;
            check_window(account, now, MINUTE, self.writes.per_minute)?;
            account.writes.push_back(now);
        }
        Ok(())
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

/// The window is full when the write that was made `most` writes ago still lies in it.
fn check_window(account: &Account, now: Timestamp, length: Millis, most: usize) -> Result<(), Millis> {
    let Some(position) = account.writes.len().checked_sub(most.max(1)) else {
        return Ok(());
    };
    let free_at = account.writes[position].after(length);
    if now < free_at {
        Err(free_at.since(now))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use conductor_domain::time::{Millis, Timestamp};

    use super::{Budget, Identity, WriteBudget};

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
}
