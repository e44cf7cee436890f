//! Watches that every run keeps the laws after every commit, and counts when one does not.
//!
//! A broken law is a defect of ours: a debug build ends there, a release build says so once per law and goes on, because
//! people can still act on the run. This module does not know the laws.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use conductor_domain::Run;
use conductor_domain::invariant::broken_law;

/// Watches the laws in one process.
#[derive(Debug, Default)]
pub(crate) struct Laws {
    broken: AtomicU64,
    said: Mutex<BTreeSet<String>>,
}

impl Laws {
    /// Looks at a run as it is about to be kept.
    pub(crate) fn watch(&self, run: &Run) {
        let Some(law) = broken_law(run) else { return };
        let broken = self.broken.fetch_add(1, Ordering::Relaxed) + 1;
        let is_new = self
            .said
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(law.to_string());
        if is_new {
            tracing::error!(run = %run.id(), %law, broken, "a run breaks a law; this is a defect");
        }
        debug_assert!(false, "run {} breaks {law}", run.id());
    }

    /// Counts how often a law was seen broken.
    pub(crate) fn broken(&self) -> u64 {
        self.broken.load(Ordering::Relaxed)
    }
}
