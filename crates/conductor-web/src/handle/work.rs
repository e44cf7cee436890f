//! Answers about what a run's agents did.
//!
//! This module does not know what a tool does.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::api::{CallList, ChangeView};
use crate::door::Door;
use crate::error::Error;
use crate::extract::{Asked, NamedRun};
use crate::reader::CallsWanted;

/// Which calls to list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallsQuery {
    /// Only those that were denied or wait for an approval.
    #[serde(default)]
    stopped: bool,
    /// Only older ones than this: the cursor, `next` of the answer before.
    after: Option<String>,
    /// At most so many, up to 500; 100 when absent.
    #[serde(default)]
    limit: u32,
}

/// Which part of a change to tell.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeQuery {
    /// The lines of this file only, by its place from 0.
    file: Option<usize>,
}

/// Lists calls of tools.
pub(crate) async fn calls(
    State(door): State<Arc<Door>>,
    NamedRun(id): NamedRun,
    Asked(query): Asked<CallsQuery>,
) -> Result<Json<CallList>, Error> {
    let wanted = CallsWanted {
        stopped: query.stopped,
        after: query.after,
        limit: query.limit,
    };
    Ok(Json(door.reader.calls(&id, &wanted).await?))
}

/// Tells what the newest commit changes.
pub(crate) async fn change(
    State(door): State<Arc<Door>>,
    NamedRun(id): NamedRun,
    Asked(query): Asked<ChangeQuery>,
) -> Result<Json<ChangeView>, Error> {
    let change = door.reader.change(&id, query.file).await?;
    Ok(Json(change.ok_or_else(|| Error::NotFound {
        what: format!("commit of run {id} yet"),
    })?))
}
