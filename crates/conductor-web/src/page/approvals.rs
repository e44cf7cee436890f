//! The inbox: every gate, question and hold that waits for a person, oldest first, with what exactly is being asked.
//!
//! This module does not know who should answer.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Html;

use crate::actor::Actor;
use crate::api::Approvals;
use crate::door::Door;
use crate::page::frame::{Frame, Section, page};
use crate::page::line::Line;
use crate::page::run::Shown;
use crate::page::trouble::Trouble;

#[derive(Template)]
#[template(path = "approvals.html")]
struct ApprovalsPage {
    frame: Frame,
    waiting: Vec<Shown>,
    damaged: Vec<Line>,
}

/// Shows the inbox.
pub(crate) async fn show(State(door): State<Arc<Door>>, actor: Actor) -> Result<Html<String>, Trouble> {
    let now = door.settings.clock.now();
    let Approvals { waiting, damaged } = door.reader.approvals(None).await?;
    Ok(page(&ApprovalsPage {
        frame: Frame::of(&door, &actor, Section::Approvals, "Approvals").await?,
        waiting: waiting
            .into_iter()
            .map(|detail| Shown::of(detail, now).to(actor.rank))
            .collect(),
        damaged: Line::all(&damaged, now),
    }))
}
