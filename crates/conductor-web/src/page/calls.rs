//! The calls of tools that a run's agents made, with what policy decided of each: what was stopped first, all of them in
//! parts.
//!
//! This module does not know what a tool does.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Html;
use conductor_domain::time::Timestamp;
use serde::Deserialize;

use crate::actor::Actor;
use crate::api::{CallList, CallView};
use crate::door::Door;
use crate::extract::{Asked, NamedRun};
use crate::page::frame::{Frame, Section, page};
use crate::page::line::Moment;
use crate::page::trouble::Trouble;
use crate::reader::CallsWanted;
use crate::visible;

/// How many calls one page shows.
const SHOWN: u32 = 200;
/// How many the run's own page shows, of those that were stopped and of all.
pub(crate) const LAST: u32 = 10;

/// Which calls.
#[derive(Debug, Deserialize)]
pub(crate) struct CallsQuery {
    #[serde(default)]
    only: String,
    after: Option<String>,
}

#[derive(Template)]
#[template(path = "calls.html")]
struct CallsPage {
    frame: Frame,
    run: String,
    title: String,
    repo: String,
    calls: Vec<Call>,
    is_stopped: bool,
    is_first: bool,
    older: Option<String>,
}

/// One call; foreign text in it hides nothing.
pub(crate) struct Call {
    pub(crate) at: Moment,
    pub(crate) who: String,
    pub(crate) tool: String,
    pub(crate) target: String,
    pub(crate) decision: Decision,
    pub(crate) policy: String,
    pub(crate) reason: String,
    pub(crate) result: String,
}

/// A decision as symbol, word and class of colour.
pub(crate) struct Decision {
    pub(crate) symbol: &'static str,
    pub(crate) word: String,
    pub(crate) class: &'static str,
}

impl Decision {
    /// Shows what policy decided.
    pub(crate) fn of(decision: &str) -> Self {
        let (symbol, class) = match decision {
            "allow" => ("✔", "good"),
            "require_approval" => ("◆", "loud"),
            _ => ("✘", "bad"),
        };
        Self {
            symbol,
            word: visible::line(&decision.replace('_', " ")),
            class,
        }
    }
}

impl Call {
    fn of(call: CallView, now: Timestamp) -> Self {
        Self {
            at: Moment::of(call.at, now),
            who: call.role.map(|role| role.to_string()).unwrap_or_default(),
            tool: visible::line(&call.tool),
            target: visible::line(&call.target),
            decision: Decision::of(&call.decision),
            policy: visible::line(&call.policy),
            reason: visible::line(&call.reason),
            result: visible::line(&call.result),
        }
    }

    pub(crate) fn all(list: CallList, now: Timestamp) -> Vec<Self> {
        list.calls.into_iter().map(|call| Self::of(call, now)).collect()
    }
}

/// Shows calls of a run.
pub(crate) async fn show(
    State(door): State<Arc<Door>>,
    actor: Actor,
    NamedRun(id): NamedRun,
    Asked(query): Asked<CallsQuery>,
) -> Result<Html<String>, Trouble> {
    let is_stopped = query.only == "stopped";
    let wanted = CallsWanted {
        stopped: is_stopped,
        after: query.after.clone(),
        limit: SHOWN,
    };
    let (row, _) = door.reader.state(&id).await?;
    let list = door.reader.calls(&id, &wanted).await?;
    let older = list.next.clone();
    Ok(page(&CallsPage {
        frame: Frame::of(&door, &actor, Section::Runs, format!("Tool calls of run {id}")).await?,
        run: id.to_string(),
        title: visible::line(&row.title),
        repo: visible::line(&row.repo_name),
        calls: Call::all(list, door.settings.clock.now()),
        is_stopped,
        is_first: query.after.is_none(),
        older,
    }))
}
