//! A run in one line of a page, and the moments that stand in it.
//!
//! This module does not know which page.

use conductor_domain::time::Timestamp;

use crate::api::RunView;
use crate::visible;
use crate::words::{state, time};

/// A run in one line; foreign text in it hides nothing.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) id: String,
    pub(crate) repo: String,
    pub(crate) issue: u64,
    pub(crate) title: String,
    pub(crate) state: State,
    pub(crate) because: String,
    pub(crate) priority: u8,
    pub(crate) pull_request: Option<u64>,
    pub(crate) changed: Moment,
}

/// A state as symbol, word and class of colour; never colour alone.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) symbol: &'static str,
    pub(crate) word: String,
    pub(crate) class: &'static str,
}

/// A point in time, relative for reading and exact for asking.
#[derive(Debug, Clone)]
pub(crate) struct Moment {
    pub(crate) ago: String,
    pub(crate) exact: String,
}

impl Moment {
    pub(crate) fn of(then: Timestamp, now: Timestamp) -> Self {
        Self {
            ago: time::ago(then, now),
            exact: time::exact(then),
        }
    }
}

impl Line {
    pub(crate) fn of(run: &RunView, now: Timestamp) -> Self {
        Self {
            id: run.id.to_string(),
            repo: visible::line(&run.repo),
            issue: run.issue,
            title: visible::line(&run.title),
            state: state_of(run),
            because: run
                .ended_because
                .as_deref()
                .map(visible::line)
                .unwrap_or_default(),
            priority: run.priority,
            pull_request: run.pull_request,
            changed: Moment::of(run.updated_at, now),
        }
    }

    pub(crate) fn all(runs: &[RunView], now: Timestamp) -> Vec<Self> {
        runs.iter().map(|run| Self::of(run, now)).collect()
    }
}

pub(crate) fn state_of(run: &RunView) -> State {
    let class = match run.phase.as_str() {
        "completed" => "good",
        "failed" => "bad",
        "cancelled" => "quiet",
        _ if run.needs_human => "loud",
        _ if run.held => "held",
        _ => "busy",
    };
    State {
        symbol: state::symbol(run),
        word: state::word(run),
        class,
    }
}
