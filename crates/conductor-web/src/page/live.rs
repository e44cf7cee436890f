//! Tells pages that something changed, and nothing more: a page that hears it looks again.
//!
//! A page that lost its connection looks again when it is back, so nothing needs to be remembered for it. This module
//! does not know what changed.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{self, Stream, StreamExt as _};

use crate::actor::{Actor, Watcher};
use crate::door::Door;

/// Follows what is committed, until the server stops or the session ends.
pub(crate) async fn follow(
    State(door): State<Arc<Door>>,
    actor: Actor,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let shutdown = door.settings.shutdown.clone();
    let listening = (door.backstage.changes(), Watcher::new(door, actor));
    let told = stream::unfold(listening, |(mut changes, mut watcher)| async move {
        let change = changes.next().await?;
        // An event without any data is one that browsers pass over.
        let event = Event::default().event("changed").data("look");
        watcher
            .may_hear(change.run.as_ref())
            .await
            .then_some((Ok(event), (changes, watcher)))
    });
    Sse::new(told.take_until(shutdown.cancelled_owned())).keep_alive(KeepAlive::default())
}
