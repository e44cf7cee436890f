//! Shows a run while it works: a moving line on a terminal, plain lines elsewhere.
//!
//! The moving line is all that is ever redrawn; everything worth keeping stands above it as text. This module does not
//! know how a run is followed.

use std::time::Duration;

use conductor_domain::phase::PhaseName;
use conductor_web::api::{EventView, RunView, StateChange, TalkView};
use conductor_web::visible;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::out::Out;
use crate::show::{sentence, state};

/// What the bar counts: the phases of a run that goes well, in order.
fn phases() -> impl Iterator<Item = PhaseName> {
    PhaseName::ALL
        .into_iter()
        .filter(|phase| !phase.is_terminal() || *phase == PhaseName::Completed)
}

/// Shows a run while it works.
#[derive(Debug)]
pub(crate) struct Progress {
    out: Out,
    bar: Option<ProgressBar>,
    phase: String,
    waits_for: String,
}

impl Progress {
    /// Begins to show.
    pub(crate) fn new(out: Out) -> Self {
        let bar = out.is_watched().then(|| {
            let bar =
                ProgressBar::with_draw_target(Some(phases().count() as u64), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{spinner} {bar:14} {elapsed:>4} {wide_msg}");
            bar.set_style(
                style
                    .unwrap_or_else(|_| ProgressStyle::default_bar())
                    .progress_chars("━╸─"),
            );
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Self {
            out,
            bar,
            phase: String::new(),
            waits_for: String::new(),
        }
    }

    /// Says something that stays.
    pub(crate) fn line(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None => self.out.talk(line),
        }
    }

    /// Shows a record.
    pub(crate) fn record(&self, record: &EventView) {
        if let Some(sentence) = sentence::of(record) {
            self.line(&format!("  {sentence}"));
        }
    }

    /// Shows where the run stands.
    pub(crate) fn state(&mut self, change: &StateChange) {
        if change.run.phase != self.phase {
            self.phase.clone_from(&change.run.phase);
            self.line(&state::state(&change.run));
        }
        if change.waits_for != self.waits_for {
            self.waits_for.clone_from(&change.waits_for);
            self.message(&change.run);
        }
    }

    fn message(&self, run: &RunView) {
        if let Some(bar) = &self.bar {
            let done = phases()
                .position(|phase| phase.as_str() == run.phase)
                .unwrap_or(phases().count());
            bar.set_position(done as u64 + 1);
            bar.set_message(format!("{} · {}", run.id, visible::line(&self.waits_for)));
        }
    }

    /// Shows what an agent says; on a terminal only, because it is kept by nobody and would fill a log.
    pub(crate) fn talk(&self, talk: &TalkView) {
        if let Some(bar) = &self.bar {
            let words: String = visible::line(&talk.text).chars().take(60).collect();
            bar.set_message(words);
        }
    }

    /// Lets a question stand on the terminal undisturbed.
    pub(crate) fn pause(&self) {
        if let Some(bar) = &self.bar {
            bar.disable_steady_tick();
            bar.finish_and_clear();
        }
    }

    /// Goes on after a question.
    pub(crate) fn go_on(&mut self) {
        let (phase, waits_for) = (
            std::mem::take(&mut self.phase),
            std::mem::take(&mut self.waits_for),
        );
        *self = Self {
            phase,
            waits_for,
            ..Self::new(self.out)
        };
    }

    /// Takes the moving line away.
    pub(crate) fn finish(&self) {
        self.pause();
    }
}
