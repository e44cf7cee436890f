//! Follows one run live: its records as they are committed, where it stands after them, and what agents say.
//!
//! A record's sequence number is the event's id, so a client that lost its connection asks for the rest with
//! `Last-Event-ID` and misses nothing. What agents say has no number: whoever comes hears the newest of what the one at
//! work has said so far as the first `talk`, then each word as it is said; when it is done, its words are gone. All of them
//! are shown with nothing hidden in them (S-48). The stream ends when the run has given everything back, when whoever
//! watches is outside again, or when the server stops. This module does not know who watches.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName};
use axum::response::sse::{Event, KeepAlive, Sse};
use conductor_domain::id::RunId;
use futures_util::stream::{self, BoxStream, Stream, StreamExt};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::actor::{Actor, Watcher};
use crate::api::TalkView;
use crate::backstage::{Change, Talk};
use crate::door::Door;
use crate::error::Error;
use crate::extract::{Asked, NamedRun};
use crate::guard::only;
use crate::reader::{MAX_EVENTS, Reader};
use crate::visible;

static LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Where to begin.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FollowQuery {
    /// Only what comes after this record.
    #[serde(default)]
    after: u64,
}

/// Follows a run.
pub(crate) async fn follow(
    State(door): State<Arc<Door>>,
    actor: Actor,
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
    let (changes, (said, talk)) = (door.backstage.changes(), door.backstage.talk(&run));
    let (_, state) = door.reader.state(&run).await?;
    let follower = Follower {
        reader: door.reader.clone(),
        run,
        seen,
        changes,
        said: said.filter(|talk| state.in_flight.contains_key(&talk.effect)),
        talk,
        shutdown: door.settings.shutdown.clone(),
        watcher: Watcher::new(door, actor),
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
    /// What was said before, until it was told.
    said: Option<Talk>,
    talk: BoxStream<'static, Talk>,
    shutdown: CancellationToken,
    watcher: Watcher,
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
        if let Some(said) = self.said.take() {
            return vec![words(said)];
        }
        tokio::select! {
            change = self.changes.next() => match change {
                Some(Change { run }) => {
                    if !self.watcher.may_hear(run.as_ref()).await {
                        self.step = Step::End;
                    } else if run.is_none_or(|run| run == self.run) {
                        self.step = Step::Look;
                    }
                }
                None => self.step = Step::End,
            },
            Some(talk) = self.talk.next() => {
                if self.watcher.may_hear(Some(&talk.run)).await {
                    return vec![words(talk)];
                }
                self.step = Step::End;
            }
            () = self.shutdown.cancelled() => self.step = Step::End,
        }
        vec![]
    }
}

/// What an agent said: neither a terminal nor a page obeys it.
fn words(talk: Talk) -> Event {
    let text = visible::text(&talk.text).text;
    event(
        "talk",
        &TalkView {
            effect: talk.effect,
            text,
        },
    )
}

fn event<T: serde::Serialize>(name: &str, data: &T) -> Event {
    let json = serde_json::to_string(data).expect("the words on the wire are plain data");
    Event::default().event(name).data(json)
}

#[cfg(test)]
mod tests {
    use conductor_domain::id::EffectId;
    use conductor_domain::run::Run;
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;

    use super::*;
    use crate::fake::played::Played;
    use crate::fake::{Fake, request};

    async fn followed(fake: &Fake, path: &str, last: Option<&str>) -> Vec<String> {
        let mut asked = request("GET", path, "");
        if let Some(last) = last {
            asked
                .headers_mut()
                .insert(&LAST_EVENT_ID, last.parse().expect("a header"));
        }
        let response = fake.router().oneshot(asked).await.expect("a router never fails");
        // Nothing more is committed in this world, so the stream ends after the first look.
        let bytes = response
            .into_body()
            .collect()
            .await
            .expect("a body in memory")
            .to_bytes();
        let text = String::from_utf8(bytes.to_vec()).expect("text");
        let of = |line: &str| {
            line.strip_prefix("id: ")
                .or(line.strip_prefix("event: "))
                .map(str::to_owned)
        };
        text.lines().filter_map(of).collect()
    }

    /// Reads a stream that goes on until so many events of talk came, and tells their words.
    async fn heard(fake: &Fake, path: &str, number: usize) -> Vec<String> {
        let (tell, _) = tokio::sync::broadcast::channel(8);
        fake.world().changes = Some(tell);
        let response = fake
            .router()
            .oneshot(request("GET", path, ""))
            .await
            .expect("a router never fails");
        let mut body = response.into_body();
        let mut text = String::new();
        let words = |text: &str| {
            let said = text.split("\n\n").filter_map(|one| {
                let data = one.strip_prefix("event: talk\n")?.strip_prefix("data: ")?;
                serde_json::from_str::<TalkView>(data).ok()
            });
            said.map(|talk| talk.text).collect::<Vec<_>>()
        };
        while words(&text).len() < number {
            let frame = body.frame().await.expect("the stream goes on").expect("bytes");
            let bytes = frame.into_data().expect("data");
            text.push_str(std::str::from_utf8(&bytes).expect("text"));
        }
        words(&text)
    }

    fn talk(effect: &EffectId, text: &str) -> Talk {
        Talk {
            run: RunId::parse("r-1").expect("a slug"),
            effect: effect.clone(),
            text: text.to_owned(),
        }
    }

    /// The effect that the played run waits for.
    fn under_way(fake: &Fake) -> EffectId {
        let run: Run = serde_json::from_str(&fake.world().rows[0].state).expect("a run");
        run.in_flight.into_keys().next().expect("something is under way")
    }

    /// S-48, UI-5: what an agent says commands no terminal, reorders nothing and looks like nothing else, whether it was
    /// said before or is said now; so it is for programs, too.
    #[tokio::test]
    async fn hostile_words_of_an_agent_arrive_as_codes() {
        let fake = Fake::with_repo();
        let _played = Played::start(&fake);
        let effect = under_way(&fake);
        fake.world().said = Some(talk(&effect, "\u{1b}[2Jgone\u{202e}"));
        fake.world().says = vec![talk(&effect, "r\u{43e}\u{43e}t\u{200b}\r\n<b>")];
        let said = heard(&fake, "/api/v1/runs/r-1/stream", 2).await;
        assert_eq!(
            said,
            [
                "⟨U+001B⟩[2Jgone⟨U+202E⟩",
                "r⟨U+043E⟩⟨U+043E⟩t⟨U+200B⟩⟨U+000D⟩\n<b>"
            ]
        );
    }

    /// UI-2: who comes late hears what the agent at work has said, and nothing of one that is done.
    #[tokio::test]
    async fn words_are_told_again_while_their_agent_works() {
        let fake = Fake::with_repo();
        let _played = Played::start(&fake);
        let (now, done) = (under_way(&fake), EffectId::parse("r-1.900.0").expect("a name"));
        for (effect, expected) in [(&now, vec!["before", "after"]), (&done, vec!["after"])] {
            fake.world().said = Some(talk(effect, "before"));
            fake.world().says = vec![talk(&now, "after")];
            let said = heard(&fake, "/api/v1/runs/r-1/stream", expected.len()).await;
            assert_eq!(said, expected);
        }
    }

    /// UI-2: a watcher that comes back gets what it missed, once, and then where the run stands.
    #[tokio::test]
    async fn a_watcher_resumes_after_the_last_record_it_saw() {
        let fake = Fake::with_repo();
        let _played = Played::start(&fake);
        let records = fake.world().records.len();
        assert!(records > 2, "the story has {records} records");
        let all = followed(&fake, "/api/v1/runs/r-1/stream", None).await;
        assert_eq!(all.iter().filter(|word| *word == "record").count(), records);
        assert_eq!(all.last().map(String::as_str), Some("state"));
        let last = (records - 1).to_string();
        let rest = ["record".to_owned(), records.to_string(), "state".to_owned()];
        let mut expected = rest.clone();
        expected.sort();
        for (path, header) in [
            ("/api/v1/runs/r-1/stream", Some(last.as_str())),
            (&format!("/api/v1/runs/r-1/stream?after={last}"), None),
        ] {
            let mut told = followed(&fake, path, header).await;
            told.sort();
            assert_eq!(told, expected, "{path}");
        }
    }

    #[tokio::test]
    async fn a_stream_of_no_run_or_from_nowhere_is_refused() {
        let fake = Fake::with_repo();
        assert_eq!(
            fake.ask(request("GET", "/api/v1/runs/r-9/stream", "")).await.0,
            404
        );
        let _played = Played::start(&fake);
        let mut asked = request("GET", "/api/v1/runs/r-1/stream", "");
        asked
            .headers_mut()
            .insert(&LAST_EVENT_ID, "yesterday".parse().expect("a header"));
        assert_eq!(fake.ask(asked).await.0, 422);
    }
}
