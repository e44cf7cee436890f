//! Tells a run's story from its records: when it was in which phase, what the tests did, how often agents tried.
//!
//! Folds the events with the domain's own `evolve`, so that it cannot disagree with it. This module does not know where
//! records are kept.

use std::collections::BTreeMap;

use conductor_domain::artifact::Artifact;
use conductor_domain::egress::EgressDenial;
use conductor_domain::event::Event;
use conductor_domain::gate::Gate;
use conductor_domain::hold::HoldKind;
use conductor_domain::id::{CommitId, EffectId};
use conductor_domain::invocation::Purpose;
use conductor_domain::plan::Plan;
use conductor_domain::run::Run;
use conductor_domain::testing::{Ending, TestRun};
use conductor_domain::time::Timestamp;
use conductor_port::ledger::Record;

use crate::api::{PhaseSpan, TestView};

/// A run's story so far.
#[derive(Debug, Default)]
pub(crate) struct History {
    run: Option<Run>,
    spans: Vec<(&'static str, Timestamp)>,
    last: Timestamp,
    pub(crate) tests: Vec<TestView>,
    pub(crate) plan: Option<Plan>,
    pub(crate) plans: u32,
    pub(crate) attempts: u32,
    pub(crate) saved: Option<String>,
    pub(crate) denials: Vec<(Timestamp, EffectId, EgressDenial)>,
    pub(crate) change: Option<Change>,
    asked: Vec<Asked>,
    /// Since when it stands still, by cause; a cause that is told anew is no younger.
    held: BTreeMap<HoldKind, Timestamp>,
}

/// What the newest commit changes in all.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) base: CommitId,
    pub(crate) head: CommitId,
    pub(crate) text: Artifact,
}

/// A question that a person was asked.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) gate: Gate,
    pub(crate) shown: Vec<Artifact>,
}

/// Reads the event that a decision record holds; a fact holds none.
fn event_of(record: &Record) -> Option<Event> {
    (record.class == "decision")
        .then(|| serde_json::from_str(&record.payload).ok())
        .flatten()
}

impl History {
    /// Takes the next record in.
    pub(crate) fn add(&mut self, record: &Record) {
        self.last = record.at;
        let Some(event) = event_of(record) else { return };
        if let Event::TestsRan { tests, .. } = &event {
            self.tests.push(test_view(tests));
        } else if let Event::PlanDrafted { plan } = &event {
            self.plans += 1;
            self.plan = Some(plan.clone());
        } else if let Event::InvocationEnded {
            purpose: Purpose::Implement,
            counts: true,
            ..
        } = &event
        {
            self.attempts += 1;
        } else if let Event::CleanedUp { saved: Some(saved) }
        | Event::Interrupted {
            saved: Some(saved), ..
        } = &event
        {
            self.saved = Some(saved.clone());
        } else if let Event::EgressDenied { effect, denial } = &event {
            self.denials.push((record.at, effect.clone(), denial.clone()));
        }
        self.run = conductor_domain::evolve(self.run.take(), &event);
        let Some(run) = &self.run else { return };
        if let (Some(text), Some(workspace)) = (change_in(&event), &run.workspace) {
            self.change = Some(Change {
                base: workspace.base.clone(),
                head: workspace.head.clone(),
                text: text.clone(),
            });
        }
        let is_known = |gate: &Gate| {
            self.asked
                .last()
                .is_some_and(|last| last.gate.subject == gate.subject)
        };
        if let Some(gate) = run.gate().filter(|gate| !is_known(gate)) {
            self.asked.push(Asked {
                gate: gate.clone(),
                shown: run.asked().into_iter().cloned().collect(),
            });
        }
        self.held.retain(|kind, _| run.holds.get(*kind).is_some());
        for hold in run.holds.iter() {
            self.held.entry(hold.kind()).or_insert(record.at);
        }
        let name = run.phase.name().as_str();
        if self.spans.last().is_none_or(|(last, _)| *last != name) {
            self.spans.push((name, record.at));
        }
    }

    /// The last time that a person was asked the same before the question with this subject.
    pub(crate) fn asked_before(&self, gate: &Gate) -> Option<&Asked> {
        let earlier = self
            .asked
            .iter()
            .rev()
            .skip_while(|asked| asked.gate.subject != gate.subject);
        earlier.skip(1).find(|asked| asked.gate.kind == gate.kind)
    }

    /// Since when a person is asked about the run as it stands: the oldest of all that is open.
    pub(crate) fn asked_at(&self, run: &Run) -> Option<Timestamp> {
        if run.phase.is_terminal() {
            return None;
        }
        let gate = run.gate().map(|gate| gate.opened_at);
        let holds = run.holds.iter().filter(|hold| hold.needs_human());
        let held = holds.filter_map(|hold| self.held.get(&hold.kind()).copied());
        gate.into_iter().chain(held).min()
    }

    /// Where the time went; the last stay is counted up to the last record.
    pub(crate) fn phases(&self) -> Vec<PhaseSpan> {
        let ends = self
            .spans
            .iter()
            .skip(1)
            .map(|(_, from)| *from)
            .chain([self.last]);
        self.spans
            .iter()
            .zip(ends)
            .map(|((name, from), to)| PhaseSpan {
                name: (*name).to_owned(),
                from: *from,
                ms: to.since(*from).0,
            })
            .collect()
    }
}

/// The rendered change that an event brings; of early logs only the one that was inspected is there.
fn change_in(event: &Event) -> Option<&Artifact> {
    if let Event::WorkCommitted { change, .. } | Event::WorkRebased { change, .. } = event {
        return change.as_ref();
    }
    if let Event::DiffInspected { inspection } = event {
        return Some(&inspection.rendered);
    }
    None
}

fn test_view(tests: &TestRun) -> TestView {
    TestView {
        passed: tests.has_passed(),
        ran: !matches!(tests.ending, Ending::NotRun { .. }),
        said: tests.describe(),
        output: tests.output.digest.clone(),
        time: tests.time,
    }
}
