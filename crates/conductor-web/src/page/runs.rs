//! Runs: a board by phase for what is open, and a dense list of everything; the address holds the filters.
//!
//! This module does not know what a run is doing.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Html;
use conductor_domain::id::RunId;
use conductor_port::views::RunFilter;
use serde::Deserialize;

use crate::actor::Actor;
use crate::door::Door;
use crate::error::Error;
use crate::extract::Asked;
use crate::page::frame::{Frame, Section, page};
use crate::page::line::Line;
use crate::page::trouble::Trouble;

/// The open phases, in the order of a run's life.
const PHASES: [&str; 6] = [
    "pending",
    "planning",
    "awaiting_plan_approval",
    "executing",
    "proposing",
    "awaiting_merge",
];
/// How a run can have ended.
const ENDS: [&str; 3] = ["completed", "cancelled", "failed"];
/// The most cards of one column.
const CARDS: u32 = 50;
/// The most lines of one list.
const LINES: u32 = 100;

/// What the address asks for; an empty field is one that a form left out.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct RunsQuery {
    #[serde(default)]
    view: String,
    #[serde(default)]
    repo: String,
    #[serde(default)]
    phase: String,
    after: Option<RunId>,
}

#[derive(Template)]
#[template(path = "runs.html")]
struct RunsPage {
    frame: Frame,
    is_board: bool,
    repos: Vec<Choice>,
    phases: Vec<Choice>,
    repo: String,
    columns: Vec<Column>,
    lines: Vec<Line>,
    older: Option<String>,
}

struct Choice {
    value: String,
    name: String,
    is_chosen: bool,
}

struct Column {
    name: String,
    more: bool,
    lines: Vec<Line>,
}

/// Shows the runs.
pub(crate) async fn show(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Asked(query): Asked<RunsQuery>,
) -> Result<Html<String>, Trouble> {
    let now = door.settings.clock.now();
    let is_board = query.view != "list";
    let repo = match query.repo.as_str() {
        "" => None,
        name => Some(
            door.reader
                .registration(name)
                .await?
                .ok_or_else(|| Error::NotFound {
                    what: format!("repository `{name}` registered here"),
                })?
                .repo
                .id,
        ),
    };
    let mut columns = Vec::new();
    let (mut lines, mut older) = (Vec::new(), None);
    if is_board {
        for phase in PHASES {
            let filter = RunFilter {
                repo,
                phase: Some(phase.to_owned()),
                limit: CARDS,
                ..RunFilter::default()
            };
            let list = door.reader.runs(filter).await?;
            columns.push(Column {
                name: phase.replace('_', " "),
                more: list.next.is_some(),
                lines: Line::all(&list.runs, now),
            });
        }
    } else {
        let filter = RunFilter {
            repo,
            phase: (!query.phase.is_empty()).then(|| query.phase.clone()),
            after: query.after.clone(),
            limit: LINES,
            ..RunFilter::default()
        };
        let list = door.reader.runs(filter).await?;
        lines = Line::all(&list.runs, now);
        older = list.next.map(|next| next.to_string());
    }
    let mut repos: Vec<Choice> = door
        .reader
        .instance()
        .await?
        .repos
        .into_iter()
        .map(|known| Choice {
            is_chosen: known.repo.eq_ignore_ascii_case(&query.repo),
            name: known.repo.clone(),
            value: known.repo,
        })
        .collect();
    repos.sort_by(|one, other| one.name.cmp(&other.name));
    let phases = PHASES
        .into_iter()
        .chain(ENDS)
        .map(|phase| Choice {
            value: phase.to_owned(),
            name: phase.replace('_', " "),
            is_chosen: phase == query.phase,
        })
        .collect();
    Ok(page(&RunsPage {
        frame: Frame::of(&door, &actor, Section::Runs, "Runs").await?,
        is_board,
        repos,
        phases,
        repo: query.repo,
        columns,
        lines,
        older,
    }))
}
