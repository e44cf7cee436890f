//! Recomputes every decision of a run from its stored facts and compares, byte for byte (RUN-2).
//!
//! A fact holds its input and its context, so the same decider must make the same events and the same effects of it.
//! This module reads; it does not know how a difference came about.

use std::collections::BTreeSet;

use conductor_domain::fault::Fault;
use conductor_domain::figures::{self, Figures};
use conductor_domain::id::{EffectId, RunId};
use conductor_domain::input::Input;
use conductor_domain::{DECIDER_VERSION, EffectRequest, Event, Run, decide};
use conductor_port::ledger::{EffectRow, Ledger, Record, RunRow, StreamId};
use conductor_port::views::Views;
use serde::Serialize;

use crate::anchor::PAGE;
use crate::commit::run_row;
use crate::record::{self, FACT, Fact};

/// What a replay found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReplayReport {
    /// The run.
    pub run: RunId,
    /// How many facts were decided again.
    pub facts: u64,
    /// How many events were compared.
    pub events: u64,
    /// How many effects were compared.
    pub effects: u64,
    /// How many facts were decided by another version of the rules; they cannot be compared.
    pub other_rules: u64,
    /// Where the replay and the log differ; empty when they do not.
    pub differences: Vec<Difference>,
}

impl ReplayReport {
    /// Tells whether the replay is the log, as far as it can be compared.
    pub fn is_equal(&self) -> bool {
        self.differences.is_empty()
    }
}

/// One place where a replay and the log differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "difference")]
pub enum Difference {
    /// The fact is refused now.
    Refused {
        /// The fact's place.
        seq: u64,
        /// Why.
        refusal: String,
    },
    /// The event at this place is another one.
    Event {
        /// The place.
        seq: u64,
        /// What the log holds; empty when it holds less.
        stored: String,
        /// What the replay made; empty when it made less.
        replayed: String,
    },
    /// The effect is another one, or not there.
    Effect {
        /// Which.
        effect: EffectId,
        /// What is kept; empty when nothing is.
        stored: String,
        /// What the replay made; empty when it made none.
        replayed: String,
    },
    /// What readers see is not what the events tell.
    State,
}

/// Replays a run, as it stands at one moment.
pub async fn replay(ledger: &dyn Ledger, views: &dyn Views, run: &RunId) -> Result<ReplayReport, Fault> {
    let Moment {
        shown,
        effects,
        records,
    } = Moment::read(ledger, views, run).await?;
    let mut replay = Replay {
        state: None,
        figures: None,
        effects: vec![],
        not_compared: BTreeSet::new(),
        report: ReplayReport {
            run: run.clone(),
            facts: 0,
            events: 0,
            effects: 0,
            other_rules: 0,
            differences: vec![],
        },
    };
    let mut rest = records.as_slice();
    while let Some((fact, after)) = rest.split_first() {
        let decisions = after.iter().take_while(|record| record.class != FACT).count();
        let (decisions, next) = after.split_at(decisions);
        replay.decide_again(fact, decisions)?;
        rest = next;
    }
    replay.compare_effects(effects)?;
    replay.compare_row(shown, &records)?;
    Ok(replay.report)
}

/// A run at one moment; a server may be at work meanwhile.
struct Moment {
    shown: Option<RunRow>,
    effects: Vec<EffectRow>,
    records: Vec<Record>,
}

impl Moment {
    /// Reads a run. What is read later stands at least as far as what was read before, since one transaction moves all
    /// three; so whatever a run that moves on has beyond the row that was read first is left for the next replay. A row
    /// that stays behind its records while nothing moves is left as it is, to be found different.
    async fn read(ledger: &dyn Ledger, views: &dyn Views, run: &RunId) -> Result<Self, Fault> {
        let mut before = views.run(run).await?;
        loop {
            let effects = views.effects(run).await?;
            let records = read_all(ledger, &StreamId::Run(run.clone())).await?;
            let after = views.run(run).await?;
            let moment = Self {
                shown: before,
                effects,
                records,
            };
            match (&moment.shown, after) {
                // It began just now; a row that is there stays, so this happens once.
                (None, Some(began)) => before = Some(began),
                (Some(row), Some(after)) if after.seq > row.seq => {
                    let seq = row.seq;
                    return moment.until(seq);
                }
                (_, _stood_still) => return Ok(moment),
            }
        }
    }

    /// Leaves out what came after this place.
    fn until(mut self, seq: u64) -> Result<Self, Fault> {
        let settled = self.records.iter().take_while(|record| record.seq <= seq).count();
        let mut later = BTreeSet::new();
        for record in self
            .records
            .drain(settled..)
            .filter(|record| record.class != FACT)
        {
            if let Event::EffectRequested { effect, .. } = record::decode::<Event>(&record)? {
                later.insert(effect);
            }
        }
        self.effects.retain(|row| !later.contains(&row.id));
        Ok(self)
    }
}

/// Reads a whole stream.
pub(crate) async fn read_all(ledger: &dyn Ledger, stream: &StreamId) -> Result<Vec<Record>, Fault> {
    let mut records: Vec<Record> = vec![];
    loop {
        let page = ledger
            .read(stream, records.last().map_or(0, |record| record.seq), PAGE)
            .await?;
        if page.is_empty() {
            return Ok(records);
        }
        records.extend(page);
    }
}

/// Compares two rows; the state by its meaning, because a row of an older version may spell it otherwise.
fn is_same(shown: Option<RunRow>, told: Option<RunRow>, state: Option<&Run>) -> Result<bool, Fault> {
    let (Some(shown), Some(told)) = (&shown, &told) else {
        return Ok(shown.is_none() && told.is_none());
    };
    let state_is_same = Some(&shown.parse()?) == state;
    let respelled = RunRow {
        state: told.state.clone(),
        ..shown.clone()
    };
    Ok(state_is_same && respelled == *told)
}

struct Replay {
    state: Option<Run>,
    figures: Option<Figures>,
    effects: Vec<EffectRequest>,
    /// What other rules asked for.
    not_compared: BTreeSet<EffectId>,
    report: ReplayReport,
}

impl Replay {
    fn decide_again(&mut self, fact: &Record, stored: &[Record]) -> Result<(), Fault> {
        let seq = fact.seq;
        let Fact {
            decider,
            input,
            context,
            instance: _,
        } = record::decode::<Fact<Input>>(fact)?;
        if decider == DECIDER_VERSION {
            self.report.facts += 1;
            match decide(self.state.as_ref(), &input, &context) {
                Ok(decision) => {
                    self.compare_events(seq, stored, &decision.events);
                    self.effects.extend(decision.effects);
                }
                Err(refusal) => {
                    self.report.differences.push(Difference::Refused {
                        seq,
                        refusal: refusal.to_string(),
                    });
                }
            }
        } else {
            self.report.other_rules += 1;
        }
        // What happened is what the log says; one difference must not make everything after it look different.
        for record in stored {
            let event = record::decode::<Event>(record)?;
            if let Event::EffectRequested { effect, .. } = &event
                && decider != DECIDER_VERSION
            {
                self.not_compared.insert(effect.clone());
            }
            (self.state, self.figures) =
                figures::fold(self.state.take(), self.figures.take(), [&event], record.at);
        }
        Ok(())
    }

    fn compare_events(&mut self, fact: u64, stored: &[Record], replayed: &[Event]) {
        for n in 0..stored.len().max(replayed.len()) {
            let stored = stored
                .get(n)
                .map(|record| record.payload.clone())
                .unwrap_or_default();
            let replayed = replayed.get(n).map(record::canonical).unwrap_or_default();
            self.report.events += 1;
            if stored != replayed {
                let seq = fact + 1 + n as u64;
                self.report.differences.push(Difference::Event {
                    seq,
                    stored,
                    replayed,
                });
            }
        }
    }

    fn compare_effects(&mut self, rows: Vec<EffectRow>) -> Result<(), Fault> {
        let mut stored: std::collections::BTreeMap<EffectId, String> =
            rows.into_iter().map(|row| (row.id, row.payload)).collect();
        stored.retain(|effect, _| !self.not_compared.contains(effect));
        for request in &self.effects {
            self.report.effects += 1;
            let replayed = serde_json::to_string(request)
                .map_err(|error| Fault::permanent(format!("cannot write effect {}: {error}", request.id)))?;
            let stored = stored.remove(&request.id).unwrap_or_default();
            if stored != replayed {
                let effect = request.id.clone();
                self.report.differences.push(Difference::Effect {
                    effect,
                    stored,
                    replayed,
                });
            }
        }
        let extra = stored.into_iter();
        self.report
            .differences
            .extend(extra.map(|(effect, stored)| Difference::Effect {
                effect,
                stored,
                replayed: String::new(),
            }));
        Ok(())
    }

    fn compare_row(&mut self, shown: Option<RunRow>, records: &[Record]) -> Result<(), Fault> {
        let told = match (&self.state, records.first(), records.last()) {
            (Some(state), Some(first), Some(last)) => {
                let (seq, head) = (last.seq, last.hash.clone());
                // What was not counted from the beginning is not counted now either.
                let is_counted = shown.as_ref().is_none_or(|row| !row.figures.is_empty());
                let figures = self.figures.as_ref().filter(|_| is_counted);
                Some(run_row(state, seq, head, first.at, last.at, figures)?)
            }
            _nothing_was_told => None,
        };
        if !is_same(shown, told, self.state.as_ref())? {
            self.report.differences.push(Difference::State);
        }
        Ok(())
    }
}
