//! What a run took: time in each phase, time that people let it wait, attempts and repeats; counted as events happen.
//!
//! Nothing is decided by these figures, so they stand beside the run and not in it. This module does not know what time it
//! is: whoever folds says when.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::event::Event;
use crate::evolve::evolve;
use crate::invocation::Purpose;
use crate::phase::PhaseName;
use crate::run::Run;
use crate::time::{Millis, Timestamp};

/// What a run took so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// Up to when time was counted.
    pub counted_to: Timestamp,
    /// The time in each phase, over all stays.
    #[serde(default)]
    pub phases: BTreeMap<PhaseName, Millis>,
    /// The time that it waited for a person, here or at its pull request.
    #[serde(default)]
    pub waited: Millis,
    /// How often the Implementer got its chance.
    #[serde(default)]
    pub attempts: u32,
    /// How often an effect was repeated, a phase or an attempt started over.
    #[serde(default)]
    pub retries: u32,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}

/// Folds events that happened at one time into a run and its figures. A run whose figures are not known from its beginning
/// has none.
pub fn fold<'a>(
    run: Option<Run>,
    figures: Option<Figures>,
    events: impl IntoIterator<Item = &'a Event>,
    at: Timestamp,
) -> (Option<Run>, Option<Figures>) {
    let (mut run, mut figures) = (run, figures);
    for event in events {
        if run.is_none() {
            figures = Some(Figures {
                counted_to: at,
                ..Figures::default()
            });
        }
        if let (Some(figures), Some(run)) = (&mut figures, &run) {
            figures.pass(run, at);
        }
        run = evolve(run, event);
        if let (Some(figures), Some(run)) = (&mut figures, &run) {
            figures.count(event);
            if run.phase.is_terminal() {
                figures.ended_at.get_or_insert(at);
            }
        }
    }
    (run, figures)
}

impl Figures {
    /// Lets time pass for a run as it stood.
    fn pass(&mut self, run: &Run, at: Timestamp) {
        let passed = at.since(self.counted_to);
        self.counted_to = self.counted_to.max(at);
        if run.phase.is_terminal() {
            return;
        }
        self.phases.entry(run.phase.name()).or_default().0 += passed.0;
        // A pull request that stands there waits for whoever merges it.
        if run.needs_human() || run.phase.name() == PhaseName::AwaitingMerge {
            self.waited.0 += passed.0;
        }
    }

    fn count(&mut self, event: &Event) {
        if let Event::InvocationEnded {
            purpose: Purpose::Implement,
            counts: true,
            ..
        } = event
        {
            self.attempts += 1;
        } else if matches!(
            event,
            Event::EffectRetryScheduled { .. } | Event::PhaseRetried { .. } | Event::AttemptFailed { .. }
        ) {
            self.retries += 1;
        }
    }
}
