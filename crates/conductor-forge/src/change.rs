//! One write to the site: a draft of the records and the webhook events that go out once it is kept.
//!
//! A change that fails leaves neither records nor events behind. It does not know how either is stored.

use std::sync::Arc;

use serde_json::Value;

use crate::moment::Moment;
use crate::refusal::Refusal;
use crate::state::{Repo, State};
use crate::view::{Happening, Root, View};

/// A webhook event, ready to be signed and sent.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) name: &'static str,
    pub(crate) action: Option<&'static str>,
    pub(crate) repo: u64,
    pub(crate) payload: Value,
}

pub(crate) struct Change<'a> {
    pub(crate) state: State,
    pub(crate) now: Moment,
    pub(crate) root: &'a Root,
    pub(crate) events: Vec<Event>,
}

impl Change<'_> {
    pub(crate) fn repo(&self, repo: u64) -> Result<&Repo, Refusal> {
        self.state
            .repos
            .get(&repo)
            .map(Arc::as_ref)
            .ok_or_else(Refusal::not_found)
    }

    pub(crate) fn repo_mut(&mut self, repo: u64) -> Result<&mut Repo, Refusal> {
        self.state
            .repos
            .get_mut(&repo)
            .map(Arc::make_mut)
            .ok_or_else(Refusal::not_found)
    }

    /// Notes an event about the draft as it stands now.
    pub(crate) fn tell(&mut self, repo: u64, sender: &str, happening: &Happening) {
        let Some(record) = self.state.repos.get(&repo) else {
            return;
        };
        let event = View::new(&self.state, self.root).event(record, sender, happening);
        self.events.extend(event);
    }
}
