//! Keeps a batch: compares, settles, changes, inserts and projects, in that order, in one transaction.
//!
//! It does not know what a record means.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use conductor_domain::id::EffectId;
use conductor_port::Fault;
use conductor_port::ledger::{
    AppendError, Batch, EffectChange, EffectStatus, ForgeWrite, IssueClaim, NewEffect, Projection, Record,
    RunRow, StreamId,
};

use super::conn::{Arg, Conn, Lock};
use super::fault::{Class, class};
use super::rows::{number, run_id};
use super::writer::{Failed, Write};
use super::{listen, search, sql};
use crate::shape;

use Arg::{Int, OptInt, Text};

/// Keeps one batch.
pub(super) struct Append {
    pub(super) batch: Batch,
    pub(super) voice: Arc<OnceLock<String>>,
}

type Outcome<T = ()> = Result<T, Failed<AppendError>>;

#[async_trait]
impl Write for Append {
    type Done = ();
    type Refused = AppendError;

    fn attempted(&self) -> String {
        format!(
            "append to stream {} after {}",
            self.batch.stream, self.batch.expected_seq
        )
    }

    async fn apply(&self, conn: &mut Conn) -> Outcome {
        let Self { batch, voice } = self;
        let stream = batch.stream.as_key();
        // Before all else, so that whoever waits for the stream holds nothing that its owner may want.
        conn.hold(Lock::Stream(&stream)).await?;
        remember(conn, batch, &stream).await?;
        settle(conn, batch).await?;
        compare(conn, batch, &stream).await?;
        claim_issue(conn, batch).await?;
        for change in &batch.effect_changes {
            self.change(conn, change).await?;
        }
        for record in &batch.records {
            insert_record(conn, record)
                .await
                .map_err(|error| self.taken(error, &record.event_id))?;
        }
        search::keep_words(conn, batch).await?;
        for (ordinal, effect) in (0..).zip(&batch.effects) {
            let inserted = insert_effect(conn, batch, effect, ordinal).await;
            inserted.map_err(|error| self.taken(error, effect.id.as_str()))?;
        }
        upsert_writes(conn, batch.expected_seq, &batch.writes).await?;
        if let (true, StreamId::Run(run)) = (batch.frees_slot, &batch.stream) {
            conn.execute(sql::FREE_SLOT, &[Text(run.as_str())]).await?;
        }
        project(conn, &batch.projection).await?;
        let seq = batch.expected_seq + batch.records.len() as u64;
        let voice = voice.get().map_or("somebody", String::as_str);
        conn.tell(&listen::words(voice, &stream, seq, batch.records.len()))
            .await?;
        Ok(())
    }
}

/// First of all: an input that was accepted before is not looked at any further.
async fn remember(conn: &mut Conn, batch: &Batch, stream: &str) -> Outcome {
    let Some(key) = &batch.dedupe else { return Ok(()) };
    match conn.execute(sql::INSERT_SEEN, &[Text(key), Text(stream)]).await? {
        0 => Err(Failed::Refused(AppendError::Duplicate)),
        _ => Ok(()),
    }
}

/// Before the comparison: who lost its lease must not decide again.
async fn settle(conn: &mut Conn, batch: &Batch) -> Outcome {
    let Some(settlement) = &batch.settles else {
        return Ok(());
    };
    match conn
        .execute(
            sql::SETTLE,
            &[Text(settlement.id.as_str()), Int(number(settlement.token)?)],
        )
        .await?
    {
        0 => Err(Failed::Refused(AppendError::LeaseLost)),
        _ => Ok(()),
    }
}

/// After the comparison: a run that is there already has its issue.
async fn claim_issue(conn: &mut Conn, batch: &Batch) -> Outcome {
    let StreamId::Run(run) = &batch.stream else {
        return Ok(());
    };
    let (repo, number) = match batch.issue {
        IssueClaim::Unchanged => return Ok(()),
        IssueClaim::GivenBack => {
            conn.execute(sql::GIVE_BACK_ISSUE, &[Text(run.as_str())]).await?;
            return Ok(());
        }
        IssueClaim::Taken { repo, number: issue } => (Int(number(repo.0)?), Int(number(issue)?)),
    };
    if conn
        .execute(sql::TAKE_ISSUE, &[repo, number, Text(run.as_str())])
        .await?
        > 0
    {
        return Ok(());
    }
    Err(Failed::Refused(
        match conn.first(sql::ISSUE_HOLDER, &[repo, number]).await? {
            Some(row) => AppendError::IssueTaken {
                run: run_id(&row, 0)?,
            },
            None => Fault::conflict("the run that had the issue gave it back just now").into(),
        },
    ))
}

async fn compare(conn: &mut Conn, batch: &Batch, stream: &str) -> Outcome {
    let actual: u64 = match conn.first(sql::HEAD, &[Text(stream)]).await? {
        Some(row) => row.count(0)?,
        None => 0,
    };
    if actual == batch.expected_seq {
        Ok(())
    } else {
        Err(Failed::Refused(AppendError::Moved { actual }))
    }
}

impl Append {
    async fn change(&self, conn: &mut Conn, change: &EffectChange) -> Outcome {
        match change {
            EffectChange::Retry { id, not_before } => {
                let is_settled = self
                    .batch
                    .settles
                    .as_ref()
                    .is_some_and(|settlement| settlement.id == *id);
                match self.status(conn, id).await? {
                    EffectStatus::Leased => return Err(Failed::Refused(AppendError::LeaseLost)),
                    EffectStatus::Done if !is_settled => {
                        return Err(self.refused(&format!("effect {id} is done and cannot be repeated")));
                    }
                    EffectStatus::Pending | EffectStatus::Done => {
                        conn.execute(sql::RETRY, &[Text(id.as_str()), Int(not_before.0)])
                            .await?;
                    }
                }
            }
            EffectChange::Stop { id } => {
                self.status(conn, id).await?;
                conn.execute(sql::STOP, &[Text(id.as_str())]).await?;
            }
            EffectChange::Reprioritize { priority } => {
                if let StreamId::Run(run) = &self.batch.stream {
                    conn.execute(
                        sql::REPRIORITIZE,
                        &[Text(run.as_str()), Int(i64::from(*priority))],
                    )
                    .await?;
                }
            }
        }
        Ok(())
    }

    async fn status(&self, conn: &mut Conn, id: &EffectId) -> Outcome<EffectStatus> {
        conn.hold(Lock::Effect(id.as_str())).await?;
        match conn.first(sql::EFFECT_STATUS, &[Text(id.as_str())]).await? {
            Some(row) => Ok(row.parsed(0, EffectStatus::parse)?),
            None => Err(self.refused(&format!("there is no effect {id} to change"))),
        }
    }

    fn refused(&self, why: &str) -> Failed<AppendError> {
        Failed::Refused(Fault::permanent(format!("{}: {why}", self.attempted())).into())
    }

    /// Names what is there already. The comparison above and the lock of the stream leave one other way to break a
    /// unique key: a process that appends without that lock, as another version might.
    fn taken(&self, error: sqlx::Error, id: &str) -> Failed<AppendError> {
        match class(&error) {
            Class::UniquePlace => Failed::Refused(AppendError::Moved {
                actual: self.batch.expected_seq + 1,
            }),
            Class::Unique => self.refused(&format!("{id} is there already")),
            Class::Busy
            | Class::Full
            | Class::Io
            | Class::CannotOpen
            | Class::Unreachable
            | Class::Denied
            | Class::Corrupt
            | Class::NotADatabase
            | Class::NoConnection
            | Class::Other => Failed::Database(error),
        }
    }
}

async fn insert_record(conn: &mut Conn, record: &Record) -> Result<(), sqlx::Error> {
    let args = [
        Text(&record.stream),
        Int(number(record.seq)?),
        Text(&record.event_id),
        Int(i64::from(record.schema_version)),
        Text(&record.class),
        Text(&record.kind),
        Text(&record.payload),
        Text(&record.payload_hash),
        Text(&record.actor_type),
        Text(&record.actor),
        Text(&record.cause),
        Int(record.at.0),
        Text(&record.hash),
    ];
    conn.execute(sql::INSERT_RECORD, &args).await.map(drop)
}

async fn insert_effect(
    conn: &mut Conn,
    batch: &Batch,
    effect: &NewEffect,
    ordinal: i64,
) -> Result<(), sqlx::Error> {
    let args = [
        Text(effect.id.as_str()),
        Text(effect.run.as_str()),
        Int(number(effect.repo.0)?),
        Text(effect.kind.as_str()),
        Int(i64::from(effect.kind.is_work())),
        Text(&effect.payload),
        Int(i64::from(effect.priority)),
        Int(effect.not_before.0),
        Int(shape::asked_at(batch, effect.not_before).0),
        Int(number(batch.expected_seq)?),
        Int(ordinal),
    ];
    conn.execute(sql::INSERT_EFFECT, &args).await.map(drop)
}

pub(super) async fn upsert_writes(
    conn: &mut Conn,
    seq: u64,
    writes: &[ForgeWrite],
) -> Result<(), sqlx::Error> {
    for (ordinal, write) in (0..).zip(writes) {
        upsert_write(conn, seq, write, ordinal).await?;
    }
    Ok(())
}

async fn upsert_write(
    conn: &mut Conn,
    seq: u64,
    write: &ForgeWrite,
    ordinal: i64,
) -> Result<(), sqlx::Error> {
    let args = [
        Text(write.effect.as_str()),
        Text(write.run.as_str()),
        Text(&write.kind),
        Text(&write.actor_type),
        Text(&write.target),
        Text(&write.payload_hash),
        Text(&write.decision),
        Text(&write.reason),
        Text(&write.result),
        Int(write.at.0),
        Int(number(seq)?),
        Int(ordinal),
    ];
    conn.execute(sql::UPSERT_WRITE, &args).await.map(drop)
}

pub(super) async fn project(conn: &mut Conn, projection: &Projection) -> Result<(), sqlx::Error> {
    match projection {
        Projection::Instance { state, seq, head } => {
            let args = [Text(state), Int(number(*seq)?), Text(head)];
            conn.execute(sql::UPSERT_INSTANCE, &args).await.map(drop)
        }
        Projection::Run(row) => upsert_run(conn, row).await,
    }
}

async fn upsert_run(conn: &mut Conn, row: &RunRow) -> Result<(), sqlx::Error> {
    let args = [
        Text(row.run.as_str()),
        Text(&row.project),
        Int(number(row.repo.0)?),
        Text(&row.repo_name),
        Int(number(row.issue)?),
        Text(&row.title),
        Text(&row.phase),
        Int(i64::from(row.held)),
        Int(i64::from(row.needs_human)),
        Int(i64::from(row.terminal)),
        Int(i64::from(row.cleaned_up)),
        Int(i64::from(row.priority)),
        OptInt(row.pull_request.map(number).transpose()?),
        OptInt(row.deadline.map(|deadline| deadline.0)),
        Text(&row.state),
        Int(number(row.seq)?),
        Text(&row.head),
        Int(row.created_at.0),
        Int(row.updated_at.0),
        Text(&row.figures),
        OptInt(row.ended_at.map(|ended_at| ended_at.0)),
    ];
    conn.execute(sql::UPSERT_RUN, &args).await.map(drop)
}
