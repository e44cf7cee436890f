//! Names the places where a test may end the process, to prove that nothing depends on not ending there.
//!
//! With the feature `crash-points`, `CONDUCTOR_CRASH_AT=name:n` ends the process with `SIGKILL` when the n-th task
//! reaches `name`; a simulation instead decides per thread and lets the task hang there until it is dropped.
//! Without the feature a point compiles to nothing. This module does not know what stands around a point.

/// Every point there is.
pub(crate) const POINTS: [&str; 10] = [
    "commit.before",
    "commit.after",
    "lease.before",
    "lease.after",
    "perform.before",
    "perform.after",
    "report.before",
    "report.after",
    "tool.before",
    "tool.after",
];

/// Marks a place where a test may end the process; the enclosing function must be `async`. A name that is not listed
/// does not compile, so that no story can leave a point out.
macro_rules! crash_point {
    ($name:literal) => {
        const {
            assert!(
                $crate::crash::is_listed($name),
                "this crash point is not in POINTS"
            )
        };
        #[cfg(feature = "crash-points")]
        $crate::crash::reach($name).await;
    };
}
pub(crate) use crash_point;

/// Tells whether a name is in [`POINTS`], while compiling.
pub(crate) const fn is_listed(name: &str) -> bool {
    let mut point = 0;
    while point < POINTS.len() {
        if is_same(POINTS[point].as_bytes(), name.as_bytes()) {
            return true;
        }
        point += 1;
    }
    false
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

#[cfg(feature = "crash-points")]
pub(crate) use armed::reach;
#[cfg(feature = "crash-points")]
pub use armed::{Fate, on_this_thread};

#[cfg(feature = "crash-points")]
mod armed {
    use std::cell::RefCell;
    use std::collections::BTreeMap;
    use std::sync::{Mutex, OnceLock, PoisonError};

    /// What becomes of a task at a point.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Fate {
        /// It goes on.
        GoesOn,
        /// It goes no further; whoever simulates the process drops it.
        Hangs,
    }

    type Judge = Box<dyn FnMut(&'static str) -> Fate>;

    thread_local! {
        static JUDGE: RefCell<Option<Judge>> = const { RefCell::new(None) };
    }

    /// Decides the fate of every task of this thread at every point, until the next call; `None` lets all go on.
    pub fn on_this_thread(judge: Option<Judge>) {
        JUDGE.with_borrow_mut(|slot| *slot = judge);
    }

    pub(crate) async fn reach(name: &'static str) {
        kill_if_told_to(name);
        let fate = JUDGE.with_borrow_mut(|judge| judge.as_mut().map_or(Fate::GoesOn, |judge| judge(name)));
        if fate == Fate::Hangs {
            std::future::pending::<()>().await;
        }
    }

    fn kill_if_told_to(name: &'static str) {
        static TOLD: OnceLock<Option<(String, u64)>> = OnceLock::new();
        static REACHED: Mutex<BTreeMap<&'static str, u64>> = Mutex::new(BTreeMap::new());
        let Some((place, n)) = TOLD.get_or_init(told) else {
            return;
        };
        let mut reached = REACHED.lock().unwrap_or_else(PoisonError::into_inner);
        let count = reached.entry(name).or_default();
        *count += 1;
        if place == name && *count == *n {
            // Nothing must run after this line: no destructor, no buffered write.
            let _never_returns =
                nix::sys::signal::kill(nix::unistd::Pid::this(), nix::sys::signal::Signal::SIGKILL);
            std::process::abort();
        }
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "the one home of this variable, in test builds only"
    )]
    fn told() -> Option<(String, u64)> {
        let told = std::env::var("CONDUCTOR_CRASH_AT").ok()?;
        let (place, n) = told.split_once(':').unwrap_or((&told, "1"));
        assert!(
            super::POINTS.contains(&place),
            "CONDUCTOR_CRASH_AT names no crash point: {place}"
        );
        Some((
            place.to_owned(),
            n.parse().expect("CONDUCTOR_CRASH_AT is name:number"),
        ))
    }
}
