//! The records of a run as they are kept, for whoever wants to know exactly.
//!
//! This module does not know what a record means.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Html;
use serde::Deserialize;

use crate::actor::Actor;
use crate::door::Door;
use crate::extract::{Asked, NamedRun};
use crate::page::frame::{Frame, Section, page};
use crate::page::trouble::Trouble;
use crate::visible;
use crate::words::time;

/// How many records one page shows.
const SHOWN: u32 = 200;

/// Where to begin.
#[derive(Debug, Deserialize)]
pub(crate) struct LogQuery {
    #[serde(default)]
    after: u64,
}

#[derive(Template)]
#[template(path = "log.html")]
struct LogPage {
    frame: Frame,
    run: String,
    records: Vec<Kept>,
    newer: Option<u64>,
    first: bool,
}

struct Kept {
    seq: u64,
    class: String,
    kind: String,
    at: String,
    actor: String,
    payload: String,
    hash: String,
}

/// Shows the records of a run.
pub(crate) async fn show(
    State(door): State<Arc<Door>>,
    actor: Actor,
    NamedRun(id): NamedRun,
    Asked(query): Asked<LogQuery>,
) -> Result<Html<String>, Trouble> {
    let list = door.reader.events(&id, query.after, SHOWN).await?;
    let newer = list.next;
    let records = list
        .events
        .into_iter()
        .map(|event| Kept {
            seq: event.seq,
            class: event.class,
            kind: visible::line(&event.kind.replace('_', " ")),
            at: time::exact(event.at),
            actor: visible::line(&format!("{} {}", event.actor_type, event.actor)),
            payload: visible::text(&format!("{:#}", event.payload)).text,
            hash: visible::line(&event.hash),
        })
        .collect();
    Ok(page(&LogPage {
        frame: Frame::of(&door, &actor, Section::Runs, format!("Log of run {id}")).await?,
        run: id.to_string(),
        records,
        newer,
        first: query.after == 0,
    }))
}
