//! Finds records by their words, and keeps the words with the records: FTS5 in a file, a text vector on a server.
//!
//! Which words a record has is decided in `words.rs`; the databases only keep and compare them. It does not know what a
//! record means.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use async_trait::async_trait;
use conductor_domain::id::RepoId;
use conductor_domain::time::Timestamp;
use conductor_port::Fault;
use conductor_port::ledger::{Batch, Projection, Record};
use conductor_port::search::{Found, RecordFilter, Search};
use serde_json::{Value, json};

use super::conn::Arg::{Int, Text};
use super::conn::{Conn, Row};
use super::rows::{self, number};
use super::{Database, fault::fault, sql};
use crate::words::{self, Asked, Home, Term};

/// How many records are given their words at a time when all are.
const AT_A_TIME: i64 = 500;

/// Keeps the words of a batch's records, after the records themselves.
pub(super) async fn keep_words(conn: &mut Conn, batch: &Batch) -> Result<(), sqlx::Error> {
    if batch.records.is_empty() {
        return Ok(());
    }
    let home = match &batch.projection {
        Projection::Run(row) => Some(Home::of(row)),
        Projection::Instance { .. } => None,
    };
    let told = batch.records.iter().map(|record| {
        let words = joined(&words::of(record, home.as_ref()));
        json!([record.stream, record.seq, record.at, words])
    });
    let rows = told.collect::<Value>().to_string();
    for statement in conn.keep_words() {
        conn.execute(statement, &[Text(&rows)]).await?;
    }
    Ok(())
}

/// Gives every record its words anew, the oldest first.
pub(super) async fn keep_all_words(conn: &mut Conn) -> Result<(), sqlx::Error> {
    for statement in conn.forget_words() {
        conn.execute(statement, &[]).await?;
    }
    conn.execute(sql::PLACE_ALL_RECORDS, &[]).await?;
    let mut after = i64::MIN;
    loop {
        let rows = conn
            .fetch(sql::RECORDS_TO_INDEX, &[Int(after), Int(AT_A_TIME)])
            .await?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = last.int(0)?;
        // One that cannot be read is found by nothing; an audit names it.
        let told: Value = rows.iter().filter_map(|row| told(row).ok()).collect();
        let told = told.to_string();
        let statement = conn.give_words();
        conn.execute(statement, &[Text(&told)]).await?;
    }
}

/// A record's place and words.
fn told(row: &Row) -> Result<Value, sqlx::Error> {
    let record = Record {
        stream: row.text(1)?,
        class: row.text(2)?,
        kind: row.text(3)?,
        payload: row.text(4)?,
        actor_type: row.text(5)?,
        actor: row.text(6)?,
        cause: row.text(7)?,
        at: Timestamp(row.int(8)?),
        seq: 0,
        event_id: String::new(),
        schema_version: 0,
        payload_hash: String::new(),
        hash: String::new(),
    };
    let home = match row.opt_int(10)? {
        Some(_) => Some(Home {
            project: row.text(9)?,
            repo: RepoId(row.count(10)?),
        }),
        None => None,
    };
    let words = joined(&words::of(&record, home.as_ref()));
    Ok(json!([row.int(0)?, words]))
}

fn joined(words: &BTreeSet<String>) -> String {
    let mut all = String::new();
    for word in words {
        all.push_str(word);
        all.push(' ');
    }
    all.truncate(all.trim_end().len());
    all
}

/// A question in the words of FTS5. Words hold nothing that could end the quotes.
pub(super) fn fts5(groups: &[Vec<Term>]) -> String {
    question(
        groups,
        " AND ",
        " OR ",
        |word, end| format!("\"{word}\"{end}"),
        "*",
    )
}

/// The same in the words of PostgreSQL.
pub(super) fn tsquery(groups: &[Vec<Term>]) -> String {
    question(groups, " & ", " | ", |word, end| format!("'{word}'{end}"), ":*")
}

fn question(
    groups: &[Vec<Term>],
    and: &str,
    or: &str,
    quoted: impl Fn(&str, &str) -> String,
    beginning: &str,
) -> String {
    let mut question = String::new();
    for group in groups {
        let terms: Vec<String> = group
            .iter()
            .map(|term| quoted(&term.word, if term.is_beginning { beginning } else { "" }))
            .collect();
        let and = if question.is_empty() { "" } else { and };
        let _never = write!(question, "{and}({})", terms.join(or));
    }
    question
}

#[async_trait]
impl Search for Database {
    async fn records(&self, filter: &RecordFilter) -> Result<Vec<Found>, Fault> {
        let attempted = "search the records";
        let (statement, question) = match words::asked(filter) {
            Asked::Nothing => return Ok(Vec::new()),
            Asked::Everything => (sql::LATEST_RECORDS, String::new()),
            Asked::Terms(groups) => self.db.find_records(&groups),
        };
        let hidden = format!(" {} ", filter.hidden.join(" "));
        let mut before = match filter.before {
            Some(place) => number(place).map_err(|error| fault(attempted, &error))?,
            None => i64::MAX,
        };
        let mut found = Vec::new();
        loop {
            let left = (filter.limit as usize).saturating_sub(found.len());
            let args = [
                Text(&question),
                Int(before),
                Int(filter.from.map_or(i64::MIN, |from| from.0)),
                Int(filter.until.map_or(i64::MAX, |until| until.0)),
                Text(&hidden),
                Int(i64::try_from(left).unwrap_or(i64::MAX)),
            ];
            let rows = self.fetch(attempted, statement, &args).await?;
            found.extend(rows.iter().filter_map(|row| rows::found(row).ok()));
            // What cannot be read is made up from what follows, so that a page that is not full is the last one.
            let last = rows.last().and_then(|row| row.int(0).ok());
            let is_last = rows.len() < left || found.len() >= filter.limit as usize;
            let (false, Some(last)) = (is_last, last) else {
                return Ok(found);
            };
            before = last;
        }
    }
}
