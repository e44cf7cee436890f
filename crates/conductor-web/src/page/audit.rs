//! Audit: who did what from where, over all runs and what concerns more than one; the address holds what is asked for.
//!
//! This module does not know how records are found.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{Html, Response};

use crate::actor::Actor;
use crate::api::{EventView, RecordView};
use crate::door::Door;
use crate::extract::Asked;
use crate::handle::audit::{NamedFormat, file};
use crate::page::frame::{Frame, Section, page};
use crate::page::trouble::Trouble;
use crate::search::RecordQuery;
use crate::visible;
use crate::words::{sentence, time};

/// How many records one page shows.
const SHOWN: u32 = 100;

const CLASSES: [&str; 2] = ["fact", "decision"];
const TYPES: [&str; 3] = ["operator", "agent", "system"];

#[derive(Template)]
#[template(path = "audit.html")]
struct AuditPage {
    frame: Frame,
    query: RecordQuery,
    /// Whether more than words is asked for.
    is_filtered: bool,
    is_asked: bool,
    projects: Vec<String>,
    repos: Vec<String>,
    records: Vec<Shown>,
    /// The address that asks the same, to which something can be added.
    same: String,
    older: Option<String>,
    sees_staff: bool,
}

struct Shown {
    kind: String,
    said: String,
    actor: String,
    from: String,
    ago: String,
    exact: String,
    class: String,
    payload: String,
    hash: String,
    event_id: String,
    /// Where it stands among its neighbours.
    place: String,
    link: String,
}

/// Shows records.
pub(crate) async fn show(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Asked(query): Asked<RecordQuery>,
) -> Result<Html<String>, Trouble> {
    let now = door.settings.clock.now();
    let query = RecordQuery { limit: None, ..query };
    let asked = RecordQuery {
        limit: Some(SHOWN),
        ..query.clone()
    };
    let list = door.reader.records(&asked, actor.rank.into()).await?;
    let instance = door.reader.instance().await?;
    let mut repos: Vec<String> = instance.repos.into_iter().map(|known| known.repo).collect();
    repos.sort();
    let older = list.next.map(|next| RecordQuery {
        before: Some(next),
        ..query.clone()
    });
    let only_words = RecordQuery {
        words: query.words.clone(),
        before: query.before,
        ..RecordQuery::default()
    };
    let newest = RecordQuery {
        before: None,
        ..query.clone()
    };
    let frame = Frame::of(&door, &actor, Section::Audit, "Audit").await?;
    Ok(page(&AuditPage {
        sees_staff: frame.may_administer(),
        frame,
        is_filtered: query != only_words,
        is_asked: newest != RecordQuery::default(),
        projects: instance.projects.iter().map(ToString::to_string).collect(),
        repos,
        records: list
            .records
            .into_iter()
            .map(|record| shown(record, now))
            .collect(),
        same: written(&newest),
        older: older.as_ref().map(written),
        query,
    }))
}

/// Hands everything that is found out as a file.
pub(crate) async fn export(
    State(door): State<Arc<Door>>,
    actor: Actor,
    NamedFormat(format): NamedFormat,
    Asked(query): Asked<RecordQuery>,
) -> Result<Response, Trouble> {
    Ok(file(&door, &actor, format, &query).await?)
}

fn written(query: &RecordQuery) -> String {
    serde_urlencoded::to_string(query).unwrap_or_default()
}

fn shown(record: RecordView, now: conductor_domain::time::Timestamp) -> Shown {
    let is_fact = record.class == "fact";
    let event = EventView {
        seq: record.seq,
        class: record.class.clone(),
        kind: record.kind.clone(),
        at: record.at,
        actor: record.actor.clone(),
        actor_type: record.actor_type.clone(),
        payload: record.payload,
        hash: record.hash.clone(),
    };
    let (place, link) = match &record.run {
        Some(run) => (
            format!("{run} #{}", record.seq),
            format!(
                "/runs/{run}/log?after={}#r{}",
                record.seq.saturating_sub(1),
                record.seq
            ),
        ),
        None => (
            format!("instance #{}", record.seq),
            "/audit?run=instance".to_owned(),
        ),
    };
    Shown {
        kind: visible::line(&record.kind.replace('_', " ")),
        said: sentence::of(&event).unwrap_or_default(),
        actor: visible::line(&record.actor),
        // What caused a decision is its neighbour; of a fact it is where it came from.
        from: if is_fact {
            visible::line(&record.cause)
        } else {
            String::new()
        },
        ago: time::ago(record.at, now),
        exact: time::precise(record.at),
        class: visible::line(&format!("{} by {}", record.class, record.actor_type)),
        payload: visible::text(&format!("{:#}", event.payload)).text,
        hash: visible::line(&record.hash),
        event_id: visible::line(&record.event_id),
        place,
        link,
    }
}
