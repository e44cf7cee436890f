//! Starts a run from an issue.
//!
//! This module does not know what is checked before a run begins.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{Html, Redirect};
use serde::Deserialize;

use crate::actor::Actor;
use crate::api::StartRun;
use crate::door::Door;
use crate::extract::{self, Filled};
use crate::page::frame::{Frame, Section, page};
use crate::page::trouble::Trouble;

#[derive(Template)]
#[template(path = "start.html")]
struct StartPage {
    frame: Frame,
    repos: Vec<String>,
}

/// The fields of the form.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StartForm {
    repo: String,
    #[serde(deserialize_with = "extract::countable")]
    issue: u64,
    #[serde(default, deserialize_with = "extract::or_empty")]
    priority: Option<u8>,
}

/// Shows the form.
pub(crate) async fn show(State(door): State<Arc<Door>>, actor: Actor) -> Result<Html<String>, Trouble> {
    let repos = door.reader.instance().await?.repos;
    Ok(page(&StartPage {
        frame: Frame::of(&door, &actor, Section::Runs, "Start a run").await?,
        repos: repos.into_iter().map(|known| known.repo).collect(),
    }))
}

/// Starts a run.
pub(crate) async fn start(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Filled(form): Filled<StartForm>,
) -> Result<Redirect, Trouble> {
    let wish = StartRun {
        repo: form.repo,
        issue: form.issue,
        priority: form.priority,
        scenario: None,
        policy: None,
    };
    let started = crate::start::start(&door, &actor, wish).await?;
    Ok(Redirect::to(&format!("/runs/{}", started.run)))
}
