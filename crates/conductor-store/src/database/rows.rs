//! Turns rows into what the ports speak of, and numbers into what the database keeps.
//!
//! It does not know which statement a row comes from beyond the order of its columns (`sql.rs`).

use conductor_domain::digest::Digest;
use conductor_domain::effect::EffectKind;
use conductor_domain::id::{EffectId, RepoId, RunId};
use conductor_domain::time::Timestamp;
use conductor_port::blobs::{KeptBytes, ToolCall};
use conductor_port::lease::{ResourceKind, ResourceLease};
use conductor_port::ledger::{EffectRow, EffectStatus, ForgeWrite, Record, RunRow, StreamId};
use conductor_port::search::Found;
use conductor_port::tally::Took;
use conductor_port::views::StreamHead;

use super::conn::Row;

type Read<T> = Result<T, sqlx::Error>;

/// The kept form of a number: sequence numbers, repository ids and counts stay far below the limit, and one that does
/// not is refused rather than wrapped.
pub(super) fn number(number: u64) -> Result<i64, sqlx::Error> {
    i64::try_from(number).map_err(|_| sqlx::Error::Encode(format!("{number} is too large to be kept").into()))
}

/// A page of records: an array of arrays, in the order of their columns.
pub(super) fn records(row: &Row) -> Read<Vec<Record>> {
    let page: Vec<RecordColumns> =
        serde_json::from_str(&row.json(0)?).map_err(|error| sqlx::Error::Decode(error.into()))?;
    let mut records: Vec<Record> = page.into_iter().map(record).collect();
    // An aggregate promises no order, though it keeps the one that it is given.
    records.sort_by_key(|record| record.seq);
    Ok(records)
}

type RecordColumns = (
    String,
    u64,
    String,
    u32,
    String,
    String,
    String,
    String,
    String,
    String,
    String,
    Timestamp,
    String,
);

fn record(columns: RecordColumns) -> Record {
    let (
        stream,
        seq,
        event_id,
        schema_version,
        class,
        kind,
        payload,
        payload_hash,
        actor_type,
        actor,
        cause,
        at,
        hash,
    ) = columns;
    Record {
        stream,
        seq,
        event_id,
        schema_version,
        class,
        kind,
        payload,
        payload_hash,
        actor_type,
        actor,
        cause,
        at,
        hash,
    }
}

/// A record that was found, after its place.
pub(super) fn found(row: &Row) -> Read<Found> {
    let record = Record {
        stream: row.text(1)?,
        seq: row.count(2)?,
        event_id: row.text(3)?,
        schema_version: row.count(4)?,
        class: row.text(5)?,
        kind: row.text(6)?,
        payload: row.text(7)?,
        payload_hash: row.text(8)?,
        actor_type: row.text(9)?,
        actor: row.text(10)?,
        cause: row.text(11)?,
        at: Timestamp(row.int(12)?),
        hash: row.text(13)?,
    };
    Ok(Found {
        place: row.count(0)?,
        record,
    })
}

pub(super) fn head(row: &Row) -> Read<StreamHead> {
    Ok(StreamHead {
        stream: row.parsed(0, StreamId::from_key)?,
        seq: row.count(1)?,
        hash: row.text(2)?,
    })
}

pub(super) fn effect(row: &Row) -> Read<EffectRow> {
    Ok(EffectRow {
        id: effect_id(row, 0)?,
        run: run_id(row, 1)?,
        repo: RepoId(row.count(2)?),
        kind: row.parsed(3, |text| {
            EffectKind::ALL.into_iter().find(|kind| kind.as_str() == text)
        })?,
        payload: row.text(4)?,
        status: row.parsed(5, EffectStatus::parse)?,
        attempts: row.count(6)?,
        stop: row.flag(7)?,
        created_at: Timestamp(row.int(8)?),
    })
}

/// Reads a run. One that is damaged in part must not hide the others: of it comes its name, and a state that no
/// reader takes for one.
pub(super) fn run(row: &Row) -> Read<RunRow> {
    let run = run_id(row, 0)?;
    Ok(whole_run(row, run.clone()).unwrap_or_else(|_damaged| RunRow::unreadable(run)))
}

fn whole_run(row: &Row, run: RunId) -> Read<RunRow> {
    Ok(RunRow {
        run,
        project: row.text(1)?,
        repo: RepoId(row.count(2)?),
        repo_name: row.text(3)?,
        issue: row.count(4)?,
        title: row.text(5)?,
        phase: row.text(6)?,
        held: row.flag(7)?,
        needs_human: row.flag(8)?,
        terminal: row.flag(9)?,
        cleaned_up: row.flag(10)?,
        priority: row.count(11)?,
        pull_request: row.opt_int(12)?.map(|_| row.count(12)).transpose()?,
        deadline: row.opt_int(13)?.map(Timestamp),
        state: row.text(14)?,
        seq: row.count(15)?,
        head: row.text(16)?,
        created_at: Timestamp(row.int(17)?),
        updated_at: Timestamp(row.int(18)?),
        figures: row.text(19)?,
        ended_at: row.opt_int(20)?.map(Timestamp),
    })
}

/// What runs took: an array of arrays. Figures that are not there, or cannot be read, are none.
pub(super) fn took(row: &Row) -> Read<Vec<Took>> {
    let page: Vec<(Timestamp, String, String)> =
        serde_json::from_str(&row.json(0)?).map_err(|error| sqlx::Error::Decode(error.into()))?;
    let took = page.into_iter().map(|(started_at, phase, figures)| Took {
        started_at,
        phase,
        figures: serde_json::from_str(&figures).ok(),
    });
    Ok(took.collect())
}

pub(super) fn only_run_id(row: &Row) -> Read<RunId> {
    run_id(row, 0)
}

pub(super) fn kept_bytes(row: &Row) -> Read<KeptBytes> {
    Ok(KeptBytes {
        address: row.text(0)?,
        bytes: row.bytes(1)?,
    })
}

pub(super) fn only_bytes(row: &Row) -> Read<Vec<u8>> {
    row.bytes(0)
}

/// State, last sequence number and last hash of the instance.
pub(super) fn instance(row: &Row) -> Read<(String, u64, String)> {
    Ok((row.text(0)?, row.count(1)?, row.text(2)?))
}

pub(super) fn write(row: &Row) -> Read<ForgeWrite> {
    Ok(ForgeWrite {
        effect: effect_id(row, 0)?,
        run: run_id(row, 1)?,
        kind: row.text(2)?,
        actor_type: row.text(3)?,
        target: row.text(4)?,
        payload_hash: row.text(5)?,
        decision: row.text(6)?,
        reason: row.text(7)?,
        result: row.text(8)?,
        at: Timestamp(row.int(9)?),
    })
}

pub(super) fn call(row: &Row) -> Read<ToolCall> {
    Ok(ToolCall {
        invocation: effect_id(row, 0)?,
        run: run_id(row, 1)?,
        n: row.count(2)?,
        tool: row.text(3)?,
        target: row.text(4)?,
        payload_hash: row.text(5)?,
        decision: row.text(6)?,
        reason: row.text(7)?,
        result: row.text(8)?,
        at: Timestamp(row.int(9)?),
        hash: row.text(10)?,
    })
}

pub(super) fn resource(row: &Row) -> Read<ResourceLease> {
    Ok(ResourceLease {
        kind: row.parsed(0, resource_kind)?,
        name: row.text(1)?,
        run: run_id(row, 2)?,
        taken_at: Timestamp(row.int(3)?),
        heartbeat: Timestamp(row.int(4)?),
    })
}

/// Version, name and checksum of a migration.
pub(super) fn migration(row: &Row) -> Read<(i64, String, Digest)> {
    Ok((
        row.int(0)?,
        row.text(1)?,
        row.parsed(2, |text| Digest::parse(text).ok())?,
    ))
}

pub(super) fn run_id(row: &Row, column: usize) -> Read<RunId> {
    row.parsed(column, |text| RunId::parse(text).ok())
}

fn effect_id(row: &Row, column: usize) -> Read<EffectId> {
    row.parsed(column, |text| EffectId::parse(text).ok())
}

fn resource_kind(text: &str) -> Option<ResourceKind> {
    [
        ResourceKind::Worktree,
        ResourceKind::Port,
        ResourceKind::ProcessGroup,
        ResourceKind::Branch,
        ResourceKind::Container,
    ]
    .into_iter()
    .find(|kind| kind.as_str() == text)
}

pub(super) fn mark(row: &Row) -> Result<(String, String), sqlx::Error> {
    Ok((row.text(0)?, row.text(1)?))
}
