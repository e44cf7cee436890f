//! Follows one run live: its records as they are committed, where it stands after them, and what agents say.
//!
//! A record's sequence number is the event's id, so a client that lost its connection asks for the rest with
//! `Last-Event-ID` and misses nothing; what agents say is shown once and kept by nobody. The stream ends when the run
//! has given everything back, or when the server stops. This module does not know who watches.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName};
use axum::response::sse::{Event, KeepAlive, Sse};
use conductor_domain::id::RunId;
use futures_util::stream::{self, BoxStream, Stream, StreamExt};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::api::TalkView;
use crate::backstage::{Change, Talk};
use crate::door::Door;
use crate::error::Error;
use crate::extract::{Asked, NamedRun};
use crate::guard::only;
use crate::reader::{MAX_EVENTS, Reader};

static LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Where to begin.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FollowQuery {
    #[serde(default)]
    after: u64,
}

/// Follows a run.
pub(crate) async fn follow(
    State(door): State<Arc<Door>>,
    NamedRun(run): NamedRun,
    Asked(query): Asked<FollowQuery>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Error> {
    let seen = match only(&headers, &LAST_EVENT_ID) {
        None => query.after,
        Some(id) => id.parse().map_err(|_| Error::Invalid {
            what: format!("`{id}` is not a sequence number"),
        })?,
    };
    // Listening starts before the first look, so that nothing committed in between is missed.
    let (changes, talk) = (door.backstage.changes(), door.backstage.talk());
    door.reader.state(&run).await?;
    let follower = Follower {
        reader: door.reader.clone(),
        run,
        seen,
        changes,
        talk,
        shutdown: door.settings.shutdown.clone(),
        step: Step::Look,
    };
    let events =
        stream::unfold(follower, Follower::next).flat_map(|batch| stream::iter(batch.into_iter().map(Ok)));
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

struct Follower {
    reader: Reader,
    run: RunId,
    seen: u64,
    changes: BoxStream<'static, Change>,
    talk: BoxStream<'static, Talk>,
    shutdown: CancellationToken,
    step: Step,
}

enum Step {
    Look,
    Listen,
    End,
}

impl Follower {
    async fn next(mut self) -> Option<(Vec<Event>, Self)> {
        match self.step {
            Step::Look => {
                let events = self.look().await;
                Some((events, self))
            }
            Step::Listen => {
                let events = self.listen().await;
                Some((events, self))
            }
            Step::End => None,
        }
    }

    /// Sends what was committed since the last look, then where the run stands.
    async fn look(&mut self) -> Vec<Event> {
        self.step = Step::Listen;
        match self.read().await {
            Ok(events) => events,
            Err(error) => {
                self.step = Step::End;
                vec![event("problem", &error.problem())]
            }
        }
    }

    async fn read(&mut self) -> Result<Vec<Event>, Error> {
        let mut sent = Vec::new();
        let records = self.reader.events(&self.run, self.seen, MAX_EVENTS).await?.events;
        let is_full = u32::try_from(records.len()).is_ok_and(|count| count == MAX_EVENTS);
        for record in records {
            self.seen = record.seq;
            sent.push(event("record", &record).id(record.seq.to_string()));
        }
        if is_full {
            self.step = Step::Look;
            return Ok(sent);
        }
        let state = self.reader.state_change(&self.run).await?;
        if state.cleaned_up {
            self.step = Step::End;
        }
        sent.push(event("state", &state));
        Ok(sent)
    }

    async fn listen(&mut self) -> Vec<Event> {
        tokio::select! {
            change = self.changes.next() => match change {
                Some(Change { run }) => {
                    if run.is_none_or(|run| run == self.run) {
                        self.step = Step::Look;
                    }
                }
                None => self.step = Step::End,
            },
            Some(talk) = self.talk.next() => {
                if talk.run == self.run {
                    return vec![event("talk", &TalkView { effect: talk.effect, text: talk.text })];
                }
            }
            () = self.shutdown.cancelled() => self.step = Step::End,
        }
        vec![]
    }
}

fn event<T: serde::Serialize>(name: &str, data: &T) -> Event {
    let json = serde_json::to_string(data).expect("the words on the wire are plain data");
    Event::default().event(name).data(json)
}
