//! Runs: a board by phase for what is open, and a dense list of everything; the address holds the filters.
//!
//! This module does not know what a run is doing.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Html;
use conductor_domain::id::{RepoId, RunId};
use conductor_domain::phase::PhaseName;
use conductor_port::views::RunFilter;
use serde::Deserialize;

use crate::actor::Actor;
use crate::door::Door;
use crate::error::Error;
use crate::extract::Asked;
use crate::metrics::open_phases;
use crate::page::frame::{Frame, Section, page};
use crate::page::line::Line;
use crate::page::trouble::Trouble;

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
    project: String,
    #[serde(default)]
    repo: String,
    #[serde(default)]
    phase: String,
    /// `me` for those that a person must act on.
    #[serde(default)]
    needs: String,
    #[serde(default)]
    text: String,
    after: Option<RunId>,
}

impl RunsQuery {
    /// The filters as they stand in an address, without the place in the list.
    fn kept(&self) -> String {
        let pairs = [
            ("project", &self.project),
            ("repo", &self.repo),
            ("phase", &self.phase),
            ("needs", &self.needs),
            ("text", &self.text),
        ];
        let pairs: Vec<_> = pairs.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        serde_urlencoded::to_string(pairs).unwrap_or_default()
    }

    fn filter(&self, repo: Option<RepoId>) -> RunFilter {
        let given = |text: &String| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        RunFilter {
            project: given(&self.project),
            repo,
            phase: given(&self.phase),
            needs_human: self.needs == "me",
            text: given(&self.text),
            ..RunFilter::default()
        }
    }
}

#[derive(Template)]
#[template(path = "runs.html")]
struct RunsPage {
    frame: Frame,
    is_board: bool,
    projects: Vec<Choice>,
    repos: Vec<Choice>,
    phases: Vec<Choice>,
    query: RunsQuery,
    kept: String,
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
        for phase in open_phases() {
            let filter = RunFilter {
                phase: Some(phase.as_str().to_owned()),
                open: true,
                limit: CARDS,
                ..query.filter(repo)
            };
            let list = door.reader.runs(filter).await?;
            columns.push(Column {
                name: phase.as_str().replace('_', " "),
                more: list.next.is_some(),
                lines: Line::all(&list.runs, now),
            });
        }
    } else {
        let filter = RunFilter {
            after: query.after.clone(),
            limit: LINES,
            ..query.filter(repo)
        };
        let list = door.reader.runs(filter).await?;
        lines = Line::all(&list.runs, now);
        older = list.next.map(|next| next.to_string());
    }
    let instance = door.reader.instance().await?;
    let projects = instance.projects.iter().map(|project| Choice {
        value: project.to_string(),
        name: project.to_string(),
        is_chosen: project.as_str() == query.project,
    });
    let projects = projects.collect();
    let mut repos: Vec<Choice> = instance
        .repos
        .into_iter()
        .map(|known| Choice {
            is_chosen: known.repo.eq_ignore_ascii_case(&query.repo),
            name: known.repo.clone(),
            value: known.repo,
        })
        .collect();
    repos.sort_by(|one, other| one.name.cmp(&other.name));
    let phases = PhaseName::ALL
        .map(PhaseName::as_str)
        .into_iter()
        .map(|phase| Choice {
            value: phase.to_owned(),
            name: phase.replace('_', " "),
            is_chosen: phase == query.phase,
        })
        .collect();
    Ok(page(&RunsPage {
        frame: Frame::of(&door, &actor, Section::Runs, "Runs").await?,
        is_board,
        projects,
        repos,
        phases,
        kept: query.kept(),
        query,
        columns,
        lines,
        older,
    }))
}
