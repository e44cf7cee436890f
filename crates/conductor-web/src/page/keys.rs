//! The keys that the pages know.
//!
//! This module does not know the script that listens to them.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Html;

use crate::actor::Actor;
use crate::door::Door;
use crate::page::frame::{Frame, Section, page};
use crate::page::trouble::Trouble;

#[derive(Template)]
#[template(path = "keys.html")]
struct KeysPage {
    frame: Frame,
}

/// Shows the keys.
pub(crate) async fn show(State(door): State<Arc<Door>>, actor: Actor) -> Result<Html<String>, Trouble> {
    Ok(page(&KeysPage {
        frame: Frame::of(&door, &actor, Section::Elsewhere, "Keys").await?,
    }))
}
