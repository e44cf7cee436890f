//! Makes the one batch that keeps a decision whole: records, effects, changes of effects, projection, forge writes.
//!
//! The only place that writes events (ARCHITECTURE invariant 2). After the append it tells whoever watches, wakes the
//! dispatcher, and stops what this process was told to stop. This module does not know why anything was decided.

use std::sync::atomic::Ordering;

use conductor_domain::deadline::next_deadline;
use conductor_domain::digest::Digest;
use conductor_domain::event::Event;
use conductor_domain::fault::Fault;
use conductor_domain::figures::{self, Figures};
use conductor_domain::input::Input;
use conductor_domain::instance::{ChainHead, Instance, InstanceEvent, InstanceInput, evolve_instance};
use conductor_domain::time::Timestamp;
use conductor_domain::{Context, Decision, EffectRequest, Run};
use conductor_port::ledger::{
    AppendError, Batch, EffectChange, IssueClaim, NewEffect, Projection, Record, RunRow, StreamId,
};
use conductor_port::views::StreamHead;
use tracing::Instrument as _;

use crate::crash::crash_point;
use crate::engine::{Committed, Engine};
use crate::intake::{Arrival, Standing};
use crate::record::{self, Actor, Arrives, Decided, Fact};
use crate::{chain, telemetry};

pub(crate) mod writes;

/// A decision about a run, with everything it was based on.
#[derive(Debug)]
pub(crate) struct RunOrder<'a> {
    pub(crate) arrival: &'a Arrival,
    pub(crate) standing: Standing,
    /// The arrival's input, redacted.
    pub(crate) input: Input,
    pub(crate) context: Context,
    pub(crate) decision: Decision,
}

/// A decision about the instance, with everything it was based on.
#[derive(Debug)]
pub(crate) struct InstanceOrder {
    pub(crate) instance: Instance,
    pub(crate) head: StreamHead,
    pub(crate) input: InstanceInput,
    /// Where it came from.
    pub(crate) cause: String,
    pub(crate) context: Context,
    pub(crate) events: Vec<InstanceEvent>,
}

/// Keeps a decision about a run; returns the stream's last sequence number.
pub(crate) async fn commit_run(engine: &Engine, order: RunOrder<'_>) -> Result<u64, AppendError> {
    let stops: Vec<_> = order
        .decision
        .events
        .iter()
        .filter_map(stopped)
        .cloned()
        .collect();
    let batch = run_batch(engine, order).await?;
    let seq = append(engine, batch).await?;
    for effect in &stops {
        engine.stop(effect);
    }
    Ok(seq)
}

/// Keeps a decision about the instance; returns the stream's last sequence number.
pub(crate) async fn commit_instance(engine: &Engine, order: InstanceOrder) -> Result<u64, AppendError> {
    append(engine, instance_batch(order)?).await
}

async fn append(engine: &Engine, batch: Batch) -> Result<u64, AppendError> {
    let stream = batch.stream.clone();
    let kinds: Vec<String> = batch.records.iter().map(|record| record.kind.clone()).collect();
    let seq = batch.expected_seq + batch.records.len() as u64;
    let span = tracing::debug_span!(telemetry::COMMIT, %stream, seq);
    async {
        crash_point!("commit.before");
        engine.ports.ledger.append(batch).await?;
        crash_point!("commit.after");
        Ok::<(), AppendError>(())
    }
    .instrument(span)
    .await?;
    let events = kinds.len() as u64;
    announce(engine, Committed { stream, seq, kinds }, events);
    Ok(seq)
}

/// Tells whoever watches, and wakes those who may have something to do now.
pub(crate) fn announce(engine: &Engine, committed: Committed, events: u64) {
    let is_anchor = committed.stream == StreamId::Instance;
    if !is_anchor
        && engine.unanchored.fetch_add(events, Ordering::Relaxed) + events
            >= engine.options.anchor_every_events
    {
        engine.anchor_due.notify_one();
    }
    // Nobody may be watching; that is no fault.
    let _watchers = engine.committed.send(committed);
    engine.wake.notify_one();
}

async fn run_batch(engine: &Engine, order: RunOrder<'_>) -> Result<Batch, Fault> {
    let RunOrder {
        arrival,
        standing,
        input,
        context,
        decision,
    } = order;
    let Decision { events, effects } = decision;
    let now = context.now;
    let before = standing.run;
    let stream = StreamId::Run(arrival.run.clone());
    let writes = writes::of(
        engine.ports.views.as_ref(),
        &arrival.run,
        before.as_ref(),
        &input,
        &effects,
        now,
    )
    .await?;

    let mut links = Links::after(stream.clone(), standing.seq, standing.head);
    let fact = Fact::new(input, context).beside(instance_head(engine).await?);
    links.fact(&fact.input, &fact, &arrival.cause, now)?;
    for event in &events {
        links.decision(event, now)?;
    }
    let was_out_of_the_way = before.as_ref().is_some_and(Run::is_out_of_the_way);
    let (after, figures) = figures::fold(before, standing.figures, &events, now);
    let after = after.ok_or_else(|| {
        Fault::permanent(format!(
            "an input to run {} was accepted, but there is no run after it",
            arrival.run
        ))
    })?;
    engine.laws.watch(&after);
    let priority = after.priority.value();
    let created_at = standing.created_at.unwrap_or(now);
    let records = links.records;
    let row = run_row(
        &after,
        last_seq(standing.seq, &records),
        last_hash(&records),
        created_at,
        now,
        figures.as_ref(),
    )?;
    Ok(Batch {
        stream,
        expected_seq: standing.seq,
        effects: effects
            .iter()
            .map(|effect| new_effect(effect, priority, now))
            .collect::<Result<_, _>>()?,
        effect_changes: events.iter().filter_map(effect_change).collect(),
        settles: arrival.settles.clone(),
        dedupe: arrival.dedupe.clone(),
        projection: Projection::Run(Box::new(row)),
        writes,
        frees_slot: after.is_out_of_the_way() && !was_out_of_the_way,
        issue: issue_claim(&after, standing.seq),
        records,
    })
}

/// A run has its issue from its first record until it has ended.
fn issue_claim(after: &Run, seq_before: u64) -> IssueClaim {
    if after.phase.is_terminal() {
        IssueClaim::GivenBack
    } else if seq_before == 0 {
        IssueClaim::Taken {
            repo: after.spec.repo.id,
            number: after.spec.issue.0,
        }
    } else {
        IssueClaim::Unchanged
    }
}

/// Reads where the instance's chain ends; nothing while it is empty.
async fn instance_head(engine: &Engine) -> Result<Option<ChainHead>, Fault> {
    let (_instance, head) = engine.ports.views.instance().await?;
    if head.seq == 0 {
        return Ok(None);
    }
    let hash = Digest::parse(head.hash)
        .map_err(|error| Fault::permanent(format!("the instance's chain does not end in a hash: {error}")))?;
    Ok(Some(ChainHead { seq: head.seq, hash }))
}

fn instance_batch(order: InstanceOrder) -> Result<Batch, Fault> {
    let InstanceOrder {
        instance,
        head,
        input,
        cause,
        context,
        events,
    } = order;
    let now = context.now;
    let before = if head.seq == 0 {
        chain::genesis(&StreamId::Instance)
    } else {
        head.hash
    };
    let mut links = Links::after(StreamId::Instance, head.seq, before);
    let fact = Fact::new(input, context);
    links.fact(&fact.input, &fact, &cause, now)?;
    for event in &events {
        links.decision(event, now)?;
    }
    let after = events.iter().fold(instance, evolve_instance);
    let records = links.records;
    let projection = instance_projection(&after, last_seq(head.seq, &records), last_hash(&records))?;
    Ok(Batch {
        stream: StreamId::Instance,
        expected_seq: head.seq,
        records,
        effects: vec![],
        effect_changes: vec![],
        settles: None,
        dedupe: None,
        projection,
        writes: vec![],
        frees_slot: false,
        issue: IssueClaim::Unchanged,
    })
}

/// Builds the records of one decision, each chained to the one before it.
#[derive(Debug)]
struct Links {
    stream: StreamId,
    seq: u64,
    head: String,
    fact_id: String,
    records: Vec<Record>,
}

impl Links {
    fn after(stream: StreamId, seq: u64, head: String) -> Self {
        Self {
            fact_id: record::event_id(&stream, seq + 1),
            stream,
            seq,
            head,
            records: vec![],
        }
    }

    fn fact<I: Arrives>(
        &mut self,
        input: &I,
        fact: &Fact<I>,
        cause: &str,
        at: Timestamp,
    ) -> Result<(), Fault> {
        let payload = record::encode(input.name(), fact)?;
        self.push(
            record::FACT,
            input.name(),
            payload,
            input.actor(),
            cause.to_owned(),
            at,
        );
        Ok(())
    }

    fn decision(&mut self, event: &impl Decided, at: Timestamp) -> Result<(), Fault> {
        let payload = record::encode(event.name(), event)?;
        let cause = self.fact_id.clone();
        self.push(
            record::DECISION,
            event.name(),
            payload,
            Actor::system("decide"),
            cause,
            at,
        );
        Ok(())
    }

    fn push(&mut self, class: &str, kind: &str, payload: String, actor: Actor, cause: String, at: Timestamp) {
        self.seq += 1;
        let mut record = Record {
            stream: self.stream.as_key(),
            seq: self.seq,
            event_id: record::event_id(&self.stream, self.seq),
            schema_version: record::SCHEMA_VERSION,
            class: class.to_owned(),
            kind: kind.to_owned(),
            payload_hash: record::payload_hash(&payload),
            payload,
            actor_type: actor.kind.to_owned(),
            actor: actor.name,
            cause,
            at,
            hash: String::new(),
        };
        record.hash = chain::link(&self.head, &record);
        self.head.clone_from(&record.hash);
        self.records.push(record);
    }
}

fn last_seq(before: u64, records: &[Record]) -> u64 {
    records.last().map_or(before, |record| record.seq)
}

fn last_hash(records: &[Record]) -> String {
    records
        .last()
        .map(|record| record.hash.clone())
        .unwrap_or_default()
}

fn new_effect(request: &EffectRequest, priority: u8, now: Timestamp) -> Result<NewEffect, Fault> {
    Ok(NewEffect {
        id: request.id.clone(),
        run: request.run.clone(),
        repo: request.repo.id,
        kind: request.effect.kind(),
        payload: json(request)?,
        priority,
        not_before: now,
    })
}

fn stopped(event: &Event) -> Option<&conductor_domain::id::EffectId> {
    if let Event::EffectStopRequested { effect } = event {
        Some(effect)
    } else {
        None
    }
}

fn effect_change(event: &Event) -> Option<EffectChange> {
    if let Event::EffectRetryScheduled { effect, at, .. } = event {
        Some(EffectChange::Retry {
            id: effect.clone(),
            not_before: *at,
        })
    } else if let Event::Reprioritized { priority } = event {
        Some(EffectChange::Reprioritize {
            priority: priority.value(),
        })
    } else {
        stopped(event).map(|effect| EffectChange::Stop { id: effect.clone() })
    }
}

/// Shows a run to readers.
pub(crate) fn run_row(
    run: &Run,
    seq: u64,
    head: String,
    created_at: Timestamp,
    updated_at: Timestamp,
    figures: Option<&Figures>,
) -> Result<RunRow, Fault> {
    Ok(RunRow {
        run: run.id().clone(),
        project: run.spec.project.to_string(),
        repo: run.spec.repo.id,
        repo_name: run.spec.repo.to_string(),
        issue: run.spec.issue.0,
        title: run
            .issue
            .as_ref()
            .map(|issue| issue.title.clone())
            .unwrap_or_default(),
        phase: run.phase.name().as_str().to_owned(),
        held: run.is_held(),
        needs_human: run.needs_human(),
        terminal: run.phase.is_terminal(),
        cleaned_up: run.cleaned_up,
        priority: run.priority.value(),
        pull_request: run
            .pull_request
            .as_ref()
            .map(|pull_request| pull_request.number.0),
        deadline: next_deadline(run).map(|(at, _deadline)| at),
        state: json(run)?,
        figures: figures.map(json).transpose()?.unwrap_or_default(),
        ended_at: figures.and_then(|figures| figures.ended_at),
        seq,
        head,
        created_at,
        updated_at,
    })
}

/// Shows the instance to readers.
pub(crate) fn instance_projection(instance: &Instance, seq: u64, head: String) -> Result<Projection, Fault> {
    Ok(Projection::Instance {
        state: json(instance)?,
        seq,
        head,
    })
}

fn json(value: &impl serde::Serialize) -> Result<String, Fault> {
    serde_json::to_string(value)
        .map_err(|error| Fault::permanent(format!("cannot write a state as JSON: {error}")))
}
