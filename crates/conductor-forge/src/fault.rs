//! Makes the site misbehave on request: error answers, lost connections, silence, rate limits, downtime.
//!
//! An injection is used up by the requests it matches, in the order of injection. It knows methods and
//! paths only, not what a request means.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::http::Method;

/// Whether the site does what it was asked before it misbehaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    BeforeTheWrite,
    AfterTheWrite,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Answers with this status and GitHub's usual error body.
    Status { status: u16, when: When },
    /// Closes the connection without an answer.
    Drop(When),
    /// Never answers.
    Hang(When),
    /// Does what it was asked, and answers, only after this long: a request that was under way when its sender froze.
    Late(std::time::Duration),
    /// The hourly budget is used up and comes back after so many seconds.
    PrimaryLimit { resets_in: i64 },
    /// The abuse limit, whose answer may or may not say how long to wait.
    SecondaryLimit { retry_after: Option<u64> },
    /// Redirects to another address, as a hostile or misconfigured proxy would.
    Redirect { location: String },
}

/// A fault for the next `times` requests of a method (or any) below a path.
#[derive(Debug, Clone)]
pub struct Injection {
    pub method: Option<Method>,
    pub path_prefix: String,
    pub times: u32,
    pub fault: Fault,
}

/// The faults that wait to happen.
#[derive(Debug, Default)]
pub struct Faults {
    waiting: Mutex<VecDeque<Injection>>,
    down: AtomicBool,
    fresh_token_refusals: AtomicU32,
}

impl Faults {
    pub fn inject(&self, injection: Injection) {
        self.lock().push_back(injection);
    }

    /// Lets the next request of `method` below `path_prefix` meet `fault`.
    pub fn next(&self, method: Method, path_prefix: &str, fault: Fault) {
        self.inject(Injection {
            method: Some(method),
            path_prefix: path_prefix.into(),
            times: 1,
            fault,
        });
    }

    /// Takes the site down or brings it back; while down, every connection is closed unanswered.
    pub fn set_down(&self, down: bool) {
        self.down.store(down, Ordering::SeqCst);
    }

    /// Tokens minted from now on are refused with 401 for their first uses.
    pub fn refuse_fresh_tokens(&self, uses: u32) {
        self.fresh_token_refusals.store(uses, Ordering::SeqCst);
    }

    pub fn clear(&self) {
        self.lock().clear();
        self.set_down(false);
        self.refuse_fresh_tokens(0);
    }

    /// Tells whether an injected fault has met no request yet.
    pub fn is_waiting(&self) -> bool {
        !self.lock().is_empty()
    }

    pub(crate) fn is_down(&self) -> bool {
        self.down.load(Ordering::SeqCst)
    }

    pub(crate) fn fresh_token_refusals(&self) -> u32 {
        self.fresh_token_refusals.load(Ordering::SeqCst)
    }

    pub(crate) fn take(&self, method: &Method, path: &str) -> Option<Fault> {
        let path = path.strip_prefix("/api/v3").unwrap_or(path);
        let mut waiting = self.lock();
        let position = waiting.iter().position(|injection| {
            injection.method.as_ref().is_none_or(|wanted| wanted == method)
                && path.starts_with(&injection.path_prefix)
        })?;
        let injection = &mut waiting[position];
        let fault = injection.fault.clone();
        injection.times = injection.times.saturating_sub(1);
        if injection.times == 0 {
            waiting.remove(position);
        }
        Some(fault)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Injection>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
