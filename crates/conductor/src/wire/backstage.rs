//! What the door sees of the engine besides its inbox: what changes, what agents say, what is wrong, and the checks.
//!
//! It turns the engine's words into the door's and decides nothing. The newest of what agents said stays in memory for
//! whoever comes late. It does not know how anything is opened.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::id::RunId;
use conductor_domain::skill::SkillLock;
use conductor_engine::{Committed, Engine, Live};
use conductor_port::ledger::StreamId;
use conductor_web::api::{AuditView, ReplayView, TroubleView};
use conductor_web::{Backstage, Change, Talk};
use futures_util::stream::{self, BoxStream, StreamExt as _};
use tokio::sync::broadcast::{self, Receiver, Sender, error::RecvError};

use super::{Listening, Records, RoleSkills};

/// So many bytes of what an agent said are told to whoever comes late: more than a screen shows.
const TAIL: usize = 16 * 1024;
/// Of so many runs; the one that was silent the longest is forgotten first.
const RUNS: usize = 64;
/// So many times may be spoken before a slow listener misses something.
const AHEAD: usize = 1024;

/// What the door sees of the engine besides its inbox.
#[derive(Debug)]
pub(crate) struct BehindTheDoor {
    engine: Arc<Engine>,
    records: Records,
    skills: RoleSkills,
    spoken: Arc<Mutex<Spoken>>,
    _listening: Listening,
}

impl BehindTheDoor {
    /// Stands behind the door and listens to agents from now on, until it is dropped.
    pub(crate) fn new(engine: Arc<Engine>, records: Records, skills: RoleSkills) -> Self {
        let talk = |Live { run, effect, text }: Live| Some(Talk { run, effect, text });
        let mut live = follow(engine.live(), talk, || None);
        let spoken = Arc::new(Mutex::new(Spoken::default()));
        let listening = tokio::spawn({
            let spoken = spoken.clone();
            async move {
                while let Some(talk) = live.next().await {
                    lock(&spoken).hear(talk);
                }
            }
        });
        Self {
            engine,
            records,
            skills,
            spoken,
            _listening: Listening(listening),
        }
    }
}

#[async_trait]
impl Backstage for BehindTheDoor {
    fn changes(&self) -> BoxStream<'static, Change> {
        let change = |committed: Committed| match committed.stream {
            StreamId::Run(run) => Some(Change { run: Some(run) }),
            StreamId::Instance => Some(Change { run: None }),
        };
        follow(self.engine.committed(), change, || Some(Change { run: None }))
    }

    fn talk(&self, run: &RunId) -> (Option<Talk>, BoxStream<'static, Talk>) {
        let (said, told) = lock(&self.spoken).tell(run);
        let run = run.clone();
        let theirs = follow(told, Some, || None).filter(move |talk| std::future::ready(talk.run == run));
        (said, theirs.boxed())
    }

    fn trouble(&self) -> Option<TroubleView> {
        let trouble = self.engine.trouble()?;
        let problem = conductor_web::Error::Fault(Fault::transient(trouble.what)).problem();
        Some(TroubleView {
            since: trouble.since,
            code: problem.code,
            what: problem.detail,
            hint: problem.hint,
        })
    }

    async fn skills(&self) -> Result<Vec<SkillLock>, Fault> {
        self.skills.lock(&self.records.blobs()).await
    }

    async fn verify(&self) -> Result<AuditView, Fault> {
        self.records.verify().await
    }

    async fn replay(&self, run: &RunId) -> Result<ReplayView, Fault> {
        self.records.replay(run).await
    }
}

fn lock(spoken: &Mutex<Spoken>) -> MutexGuard<'_, Spoken> {
    spoken.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The newest of what agents said, and whoever listens.
#[derive(Debug)]
struct Spoken {
    /// One of each run; the run that spoke last stands last.
    tails: Vec<Talk>,
    told: Sender<Talk>,
}

impl Default for Spoken {
    fn default() -> Self {
        Self {
            tails: vec![],
            told: broadcast::channel(AHEAD).0,
        }
    }
}

impl Spoken {
    /// Keeps the newest words of an invocation, and tells them on.
    fn hear(&mut self, talk: Talk) {
        let known = self.tails.iter().position(|tail| tail.run == talk.run);
        let before = known.map(|place| self.tails.remove(place));
        let before = before.filter(|tail| tail.effect == talk.effect);
        let mut text = before.map(|tail| tail.text).unwrap_or_default();
        text.push_str(&talk.text);
        let mut surplus = text.len().saturating_sub(TAIL);
        while !text.is_char_boundary(surplus) {
            surplus += 1;
        }
        text.drain(..surplus);
        if self.tails.len() == RUNS {
            self.tails.remove(0);
        }
        self.tails.push(Talk {
            run: talk.run.clone(),
            effect: talk.effect.clone(),
            text,
        });
        // Nobody may be watching; that is no fault.
        let _watchers = self.told.send(talk);
    }

    /// Tells what was said so far in a run; all that follows is heard by the receiver.
    fn tell(&self, run: &RunId) -> (Option<Talk>, Receiver<Talk>) {
        let said = self.tails.iter().find(|tail| tail.run == *run);
        (said.cloned(), self.told.subscribe())
    }
}

/// Follows a broadcast; what a slow listener missed becomes `missed`.
fn follow<T: Clone + Send + 'static, U: Send + 'static>(
    receiver: Receiver<T>,
    heard: impl Fn(T) -> Option<U> + Send + Copy + 'static,
    missed: impl Fn() -> Option<U> + Send + Copy + 'static,
) -> BoxStream<'static, U> {
    stream::unfold(receiver, move |mut receiver| async move {
        match receiver.recv().await {
            Ok(value) => Some((heard(value), receiver)),
            Err(RecvError::Lagged(_)) => Some((missed(), receiver)),
            Err(RecvError::Closed) => None,
        }
    })
    .filter_map(std::future::ready)
    .boxed()
}

#[cfg(test)]
mod tests {
    use conductor_domain::id::EffectId;

    use super::*;

    fn talk(run: &str, sequence: u64, text: &str) -> Talk {
        Talk {
            run: RunId::parse(run).expect("a slug"),
            effect: EffectId::parse(format!("{run}.{sequence}.0")).expect("a name"),
            text: text.to_owned(),
        }
    }

    fn said(spoken: &Spoken, run: &str) -> Option<String> {
        let run = RunId::parse(run).expect("a slug");
        spoken.tell(&run).0.map(|talk| talk.text)
    }

    /// UI-2: who comes late hears what was said, and then each word once.
    #[test]
    fn a_late_listener_misses_nothing_and_hears_nothing_twice() {
        let mut spoken = Spoken::default();
        spoken.hear(talk("r-1", 1, "one "));
        spoken.hear(talk("r-2", 1, "aside"));
        spoken.hear(talk("r-1", 1, "two"));
        let (before, mut after) = spoken.tell(&RunId::parse("r-1").expect("a slug"));
        assert_eq!(before, Some(talk("r-1", 1, "one two")));
        spoken.hear(talk("r-1", 1, " three"));
        assert_eq!(after.try_recv(), Ok(talk("r-1", 1, " three")));
        assert!(after.try_recv().is_err());
    }

    #[test]
    fn the_words_of_the_invocation_before_are_forgotten() {
        let mut spoken = Spoken::default();
        spoken.hear(talk("r-1", 1, "the plan"));
        spoken.hear(talk("r-1", 2, "the review"));
        assert_eq!(said(&spoken, "r-1").as_deref(), Some("the review"));
    }

    /// However long agents talk, and however many, little is kept; the newest words count.
    #[test]
    fn what_is_kept_of_their_words_is_bounded() {
        let mut spoken = Spoken::default();
        spoken.hear(talk("r-1", 1, &"é".repeat(TAIL)));
        spoken.hear(talk("r-1", 1, "!"));
        let kept = said(&spoken, "r-1").expect("it spoke");
        assert_eq!((kept.len(), kept.ends_with("é!")), (TAIL - 1, true));
        for run in 0..RUNS {
            spoken.hear(talk(&format!("q-{run}"), 1, "x"));
        }
        assert_eq!(spoken.tails.len(), RUNS);
        assert_eq!(said(&spoken, "r-1"), None, "it was silent the longest");
        assert_eq!(said(&spoken, "q-0").as_deref(), Some("x"));
    }
}
