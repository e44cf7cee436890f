//! Home: what needs a person now, what is running, what went wrong.
//!
//! This module does not know how any of it came about.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Html;
use conductor_port::views::RunFilter;

use crate::actor::Actor;
use crate::door::Door;
use crate::page::frame::{Frame, Section, page};
use crate::page::line::Line;
use crate::page::trouble::Trouble;

/// How many runs one part of the page shows; the list of runs shows the rest.
const SHOWN: u32 = 20;

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage {
    frame: Frame,
    waiting: Vec<Line>,
    running: Vec<Line>,
    failed: Vec<Line>,
    is_new: bool,
}

/// Shows Home.
pub(crate) async fn show(State(door): State<Arc<Door>>, actor: Actor) -> Result<Html<String>, Trouble> {
    let now = door.settings.clock.now();
    let list = async |filter: RunFilter| -> Result<Vec<Line>, Trouble> {
        let runs = door
            .reader
            .runs(RunFilter {
                limit: SHOWN,
                ..filter
            })
            .await?
            .runs;
        Ok(Line::all(&runs, now))
    };
    let open = RunFilter {
        open: true,
        ..RunFilter::default()
    };
    let waiting = list(RunFilter {
        needs_human: true,
        ..open.clone()
    })
    .await?;
    let mut running = list(open).await?;
    running.retain(|line| waiting.iter().all(|other| other.id != line.id));
    let failed = list(RunFilter {
        phase: Some("failed".to_owned()),
        ..RunFilter::default()
    })
    .await?;
    let is_new = door.reader.instance().await?.repos.is_empty();
    Ok(page(&HomePage {
        frame: Frame::of(&door, &actor, Section::Home, "Home").await?,
        waiting,
        running,
        failed,
        is_new,
    }))
}
