//! Tells pages that something changed, and nothing more: a page that hears it looks again.
//!
//! A page that lost its connection looks again when it is back, so nothing needs to be remembered for it. This module
//! does not know what changed.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{Stream, StreamExt as _};

use crate::door::Door;

/// Follows what is committed, until the server stops.
pub(crate) async fn follow(
    State(door): State<Arc<Door>>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let changes = door
        .backstage
        .changes()
        .map(|_| Ok(Event::default().event("changed").data("")));
    let shutdown = door.settings.shutdown.clone();
    Sse::new(changes.take_until(shutdown.cancelled_owned())).keep_alive(KeepAlive::default())
}
