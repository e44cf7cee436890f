//! The emergency stop: one switch for all agent execution (SEC-6).
//!
//! This module does not know what is stopped.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{Html, Redirect};
use serde::Deserialize;

use crate::actor::Actor;
use crate::api::KillSwitch;
use crate::door::Door;
use crate::error::Error;
use crate::extract::Filled;
use crate::handle;
use crate::page::frame::{Frame, Section, page};
use crate::page::trouble::Trouble;

/// What must be typed to let everything go on; stopping is not slowed down by a question.
const WORD: &str = "go on";

#[derive(Template)]
#[template(path = "stop.html")]
struct StopPage {
    frame: Frame,
    word: &'static str,
}

/// The fields of the form.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StopForm {
    on: bool,
    #[serde(default)]
    confirm: String,
}

/// Shows the switch.
pub(crate) async fn show(State(door): State<Arc<Door>>, actor: Actor) -> Result<Html<String>, Trouble> {
    Ok(page(&StopPage {
        frame: Frame::of(&door, &actor, Section::Stop, "Emergency stop").await?,
        word: WORD,
    }))
}

/// Turns the switch.
pub(crate) async fn turn(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Filled(form): Filled<StopForm>,
) -> Result<Redirect, Trouble> {
    if !form.on && form.confirm.trim() != WORD {
        return Err(Error::Unconfirmed {
            expected: WORD.to_owned(),
        }
        .into());
    }
    handle::instance::turn(&door, &actor, KillSwitch { on: form.on }).await?;
    Ok(Redirect::to("/stop"))
}
