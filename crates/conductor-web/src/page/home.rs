//! Home: what needs a person now, what is running, what went wrong.
//!
//! This module does not know how any of it came about.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Html;
use conductor_domain::time::Timestamp;
use conductor_port::views::RunFilter;

use crate::actor::Actor;
use crate::door::Door;
use crate::error::Error;
use crate::page::frame::{Frame, Section, page};
use crate::page::line::Line;
use crate::page::trouble::Trouble;

/// How many runs one part of the page shows; it says how many more there are, and where.
const SHOWN: u32 = 20;
/// So many of those are counted.
const COUNTED: u32 = 1_000;

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage {
    frame: Frame,
    waiting: Part,
    running: Part,
    failed: Part,
    is_new: bool,
}

/// Runs of one kind, newest first.
struct Part {
    lines: Vec<Line>,
    /// How many there are besides; absent where these are all.
    more: Option<String>,
}

impl Part {
    async fn of(door: &Door, now: Timestamp, filter: RunFilter) -> Result<Self, Error> {
        let filter = RunFilter {
            limit: SHOWN,
            ..filter
        };
        let list = door.reader.runs(filter.clone()).await?;
        let more = match list.next {
            None => 0,
            Some(end) => {
                let besides = RunFilter {
                    after: Some(end),
                    limit: COUNTED,
                    ..filter
                };
                door.reader.count(&besides).await?
            }
        };
        Ok(Self {
            lines: Line::all(&list.runs, now),
            more: match more {
                0 => None,
                COUNTED => Some(format!("{COUNTED}+")),
                more => Some(more.to_string()),
            },
        })
    }
}

/// Shows Home.
pub(crate) async fn show(State(door): State<Arc<Door>>, actor: Actor) -> Result<Html<String>, Trouble> {
    let now = door.settings.clock.now();
    let waiting = RunFilter {
        needs_human: true,
        ..RunFilter::default()
    };
    let running = RunFilter {
        needs_nobody: true,
        open: true,
        ..RunFilter::default()
    };
    let failed = RunFilter {
        phase: Some("failed".to_owned()),
        ..RunFilter::default()
    };
    let is_new = door.reader.instance().await?.repos.is_empty();
    Ok(page(&HomePage {
        frame: Frame::of(&door, &actor, Section::Home, "Home").await?,
        waiting: Part::of(&door, now, waiting).await?,
        running: Part::of(&door, now, running).await?,
        failed: Part::of(&door, now, failed).await?,
        is_new,
    }))
}
