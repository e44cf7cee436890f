//! Shows people what an agent says, without secrets, also where one is spread over several pieces (SEC-3).
//!
//! Words wait for the end of their line, a pause, or the end of the invocation; until then they may turn out to be part
//! of a secret. This module does not know who is watching.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use conductor_domain::id::{EffectId, RunId};
use tokio::sync::Notify;

use crate::engine::{Engine, Live};
use crate::redact::Passing;

/// How long words wait for more that may belong to them.
const PAUSE: Duration = Duration::from_secs(1);

/// What one agent says; what is left of it is shown when it is dropped.
#[derive(Debug)]
pub(super) struct Speech<'a> {
    engine: &'a Engine,
    run: RunId,
    effect: EffectId,
    passing: Mutex<Box<dyn Passing + 'a>>,
    /// Fires when something was said.
    spoke: Notify,
}

impl<'a> Speech<'a> {
    pub(super) fn new(engine: &'a Engine, run: RunId, effect: EffectId) -> Self {
        Self {
            engine,
            run,
            effect,
            passing: Mutex::new(engine.options.redactor.passing()),
            spoke: Notify::new(),
        }
    }

    /// Takes words in, and shows those that can be shown by now.
    pub(super) fn say(&self, text: &str) {
        // One after the other, so that what is shown keeps its order.
        let mut passing = self.passing();
        self.show(passing.push(text));
        self.spoke.notify_one();
    }

    /// Shows words that nothing more came after for a while; never ends.
    pub(super) async fn let_out<T>(&self) -> T {
        loop {
            self.spoke.notified().await;
            while tokio::time::timeout(PAUSE, self.spoke.notified()).await.is_ok() {}
            let mut passing = self.passing();
            self.show(passing.flush());
        }
    }

    fn show(&self, text: String) {
        if text.is_empty() {
            return;
        }
        let live = Live {
            run: self.run.clone(),
            effect: self.effect.clone(),
            text,
        };
        // Nobody may be watching; that is no fault.
        let _watchers = self.engine.live.send(live);
    }

    fn passing(&self) -> MutexGuard<'_, Box<dyn Passing + 'a>> {
        self.passing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Speech<'_> {
    fn drop(&mut self) {
        let rest = self.passing().flush();
        self.show(rest);
    }
}
