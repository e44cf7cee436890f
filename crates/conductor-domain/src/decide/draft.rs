//! A decision in the making: events are folded into a copy of the run as they are recorded, so that each next line
//! of a rule sees what the line before made true.
//!
//! This module does not know any rule.

use crate::decide::{Context, Decision, speech, step};
use crate::effect::{CommentTarget, Effect, EffectKind, EffectRequest};
use crate::event::Event;
use crate::evolve::evolve;
use crate::hold::Hold;
use crate::id::EffectId;
use crate::message::Message;
use crate::run::Run;
use crate::time::Timestamp;

/// A decision in the making.
pub(super) struct Draft<'a> {
    run: Run,
    at: &'a Context,
    events: Vec<Event>,
    effects: Vec<EffectRequest>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(run: Run, at: &'a Context) -> Self {
        Self {
            run,
            at,
            events: vec![],
            effects: vec![],
        }
    }

    /// Begins with the event that makes the run.
    pub(super) fn born(run: Run, birth: Event, at: &'a Context) -> Self {
        Self {
            run,
            at,
            events: vec![birth],
            effects: vec![],
        }
    }

    /// The run as it stands after all that was recorded.
    pub(super) fn run(&self) -> &Run {
        &self.run
    }

    pub(super) fn now(&self) -> Timestamp {
        self.at.now
    }

    /// Which policy allows a merge of what is proposed, if one does.
    pub(super) fn may_merge(&self) -> Option<&str> {
        self.at.merge.as_deref()
    }

    /// Makes an event true.
    pub(super) fn record(&mut self, event: Event) {
        let run = evolve(Some(self.run.clone()), &event);
        self.run = run.expect("a run that exists never ceases to");
        self.events.push(event);
    }

    /// Records something that changes nothing.
    pub(super) fn note(&mut self, what: impl Into<String>) {
        self.record(Event::Noted { what: what.into() });
    }

    /// Asks something of the world.
    pub(super) fn ask(&mut self, effect: Effect) {
        let id = EffectId::derive(self.run.id(), self.at.seq, self.effects.len());
        let kind = effect.kind();
        let must_be_heard =
            matches!(&effect, Effect::PostComment { message, .. } if message.kind.passes_throttle());
        let request = EffectRequest {
            id: id.clone(),
            run: self.run.id().clone(),
            repo: self.run.spec.repo.clone(),
            effect,
        };
        self.record(Event::EffectRequested {
            effect: id,
            kind,
            digest: request.digest(),
            must_be_heard,
        });
        self.effects.push(request);
    }

    /// Asks for what the run's own work needs next, unless it is under way, or a hold must be released first.
    pub(super) fn proceed(&mut self) {
        if self.run.work_in_flight().is_some() || self.run.is_parked() {
            return;
        }
        if let Some(effect) = step::next_effect(&self.run) {
            self.ask(effect);
        }
    }

    /// Places a hold and tells people why the run stands still.
    pub(super) fn hold(&mut self, hold: Hold) {
        let message = speech::held(&hold);
        self.record(Event::HoldPlaced { hold });
        if let Some(message) = message {
            self.say(message);
        }
    }

    /// Tells effects of some kinds to stop; one that nobody has begun is then never begun, and one that writes at the
    /// forge already finishes all the same.
    pub(super) fn stop(&mut self, which: impl Fn(EffectKind) -> bool) {
        let stopping: Vec<EffectId> = self
            .run
            .in_flight
            .iter()
            .filter(|(_, effect)| !effect.stopping && which(effect.kind))
            .map(|(id, _)| id.clone())
            .collect();
        for effect in stopping {
            self.record(Event::EffectStopRequested { effect });
        }
    }

    /// Says something at the forge, now or when the throttle allows (GH-4).
    pub(super) fn say(&mut self, message: Message) {
        if message.kind.passes_throttle() {
            self.post(message);
        } else if self.run.throttle.deferred.is_empty() && self.run.throttle.is_open(self.at.now) {
            self.record(Event::MessageSent { at: self.at.now });
            self.post(message);
        } else {
            self.record(Event::MessageDeferred {
                message: Box::new(message),
            });
        }
    }

    /// Sends what waited as one message, with `last` at its end.
    ///
    /// What belongs on the pull request is a message of its own: without a last word only the place that waited longest
    /// has its turn, because one message is earned at a time.
    pub(super) fn flush(&mut self, last: Option<Message>) {
        let waiting = self.run.throttle.deferred.clone();
        let is_first_for_pull_request = waiting.first().is_some_and(Message::is_for_pull_request);
        let count = u32::try_from(waiting.len()).unwrap_or(u32::MAX);
        let (on_pull_request, mut on_issue): (Vec<_>, Vec<_>) =
            waiting.into_iter().partition(Message::is_for_pull_request);
        if count > 0 {
            self.record(Event::MessagesFlushed { count });
        }
        if let Some(last) = last {
            on_issue.push(last);
            self.send(on_pull_request);
            self.send(on_issue);
            return;
        }
        let (now, later) = if is_first_for_pull_request {
            (on_pull_request, on_issue)
        } else {
            (on_issue, on_pull_request)
        };
        self.send(now);
        for message in later {
            self.record(Event::MessageDeferred {
                message: Box::new(message),
            });
        }
    }

    /// Sends messages for one place as one.
    fn send(&mut self, messages: Vec<Message>) {
        if let Some(message) = speech::coalesced(messages) {
            self.record(Event::MessageSent { at: self.at.now });
            self.post(message);
        }
    }

    fn post(&mut self, message: Message) {
        let target = match &self.run.pull_request {
            Some(pull_request) if message.is_for_pull_request() => {
                CommentTarget::PullRequest(pull_request.number)
            }
            Some(_) | None => CommentTarget::Issue(self.run.spec.issue),
        };
        self.ask(Effect::PostComment {
            target,
            message: Box::new(message),
        });
    }

    /// Tells whether anything was recorded but remarks.
    pub(super) fn has_news(&self) -> bool {
        self.events
            .iter()
            .any(|event| !matches!(event, Event::Noted { .. }))
    }

    pub(super) fn finish(self) -> Decision {
        Decision {
            events: self.events,
            effects: self.effects,
        }
    }
}
