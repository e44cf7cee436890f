//! Searches the records of all streams for people: what they ask for, what they may see of it, and the same as a file.
//!
//! Who is not an admin sees no record about who works here, as everywhere else. A file is written page by page, however
//! much is found. This module does not know how records are found.

use axum::body::Bytes;
use conductor_domain::id::RunId;
use conductor_domain::staff::Rank;
use conductor_port::ledger::StreamId;
use conductor_port::search::{Found, RecordFilter};
use futures_util::stream::{self, BoxStream, StreamExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{RecordList, RecordView};
use crate::error::Error;
use crate::reader::Reader;
use crate::words::time;

/// The most records of one answer.
const MOST: u32 = 500;
/// How many records stand in one answer where nothing is said.
const USUAL: u32 = 100;
/// What tells of tokens, passwords and who comes in.
const ABOUT_STAFF: [&str; 2] = ["change_staff", "staff_changed"];

/// Which records to find; what is empty does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RecordQuery {
    /// Words that a record must have, all of them; `plan*` stands for all words that begin so.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub words: String,
    /// Only of this run; `instance` for what concerns more than one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub run: String,
    /// Only of runs of this project.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub project: String,
    /// Only of runs of this repository, `owner/name`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub repo: String,
    /// Only by this operator, role or part.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub actor: String,
    /// Only by this type of actor: `agent`, `operator` or `system`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub actor_type: String,
    /// Only of this kind, the name of an input or an event.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Only of this class: `fact` or `decision`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub class: String,
    /// Only from this day or time on, in UTC: `2026-01-31`, `2026-01-31T09:05`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// Only until the end of this day, or before this time.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub until: String,
    /// Only records that were kept before this one: the cursor, `next` of the answer before.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::extract::countable_or_none"
    )]
    pub before: Option<u64>,
    /// At most so many, up to 500; 100 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// The form of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One line per record, for tables.
    Csv,
    /// A list of records, each whole, with its link in the chain.
    Json,
}

impl Format {
    /// Every form.
    pub const ALL: [Self; 2] = [Self::Csv, Self::Json];

    /// The name, also of such files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Json => "json",
        }
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv; charset=utf-8",
            Self::Json => "application/json",
        }
    }
}

/// How much somebody may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// All there is.
    Everything,
    /// All but what tells of who works here.
    NoStaff,
}

impl From<Rank> for Sight {
    fn from(rank: Rank) -> Self {
        match rank {
            Rank::Admin => Self::Everything,
            Rank::Operator | Rank::Viewer => Self::NoStaff,
        }
    }
}

impl Reader {
    /// Finds records, newest first.
    pub async fn records(&self, query: &RecordQuery, sight: Sight) -> Result<RecordList, Error> {
        let limit = query.limit.filter(|limit| *limit > 0).unwrap_or(USUAL).min(MOST);
        let Some(filter) = self.filter(query, sight, limit).await? else {
            return Ok(RecordList::default());
        };
        let found = self.search.records(&filter).await?;
        let is_full = found.len() >= limit as usize;
        let next = found.last().filter(|_| is_full).map(|last| last.place);
        let records = found.into_iter().map(view).collect();
        Ok(RecordList { records, next })
    }

    /// Writes everything that is found as a file, newest first. A fault ends it early, and whoever reads notices.
    pub async fn export(
        &self,
        query: &RecordQuery,
        sight: Sight,
        format: Format,
    ) -> Result<BoxStream<'static, Result<Bytes, Error>>, Error> {
        let filter = self.filter(query, sight, MOST).await?;
        let begun = Writing {
            reader: self.clone(),
            filter,
            format,
            is_first: true,
        };
        let head = match format {
            Format::Csv => format!("{}\r\n", COLUMNS.join(",")),
            Format::Json => "[".to_owned(),
        };
        let tail = match format {
            Format::Csv => "",
            Format::Json => "\n]\n",
        };
        let pages = stream::try_unfold(begun, Writing::next);
        let file = stream::iter([Ok(Bytes::from(head))])
            .chain(pages)
            .chain(stream::iter([Ok(Bytes::from_static(tail.as_bytes()))]));
        // After a fault nothing follows, so that half a file does not end like a whole one.
        let file = file.scan(false, |is_over, piece| {
            let goes_on = !std::mem::replace(is_over, piece.is_err());
            std::future::ready(goes_on.then_some(piece))
        });
        Ok(file.boxed())
    }

    /// What the store is asked; nothing where a name is asked for that nothing here has.
    async fn filter(
        &self,
        query: &RecordQuery,
        sight: Sight,
        limit: u32,
    ) -> Result<Option<RecordFilter>, Error> {
        let some = |text: &str| (!text.trim().is_empty()).then(|| text.trim().to_owned());
        let repo = match some(&query.repo) {
            None => None,
            Some(name) => match self.registration(&name).await? {
                Some(registration) => Some(registration.repo.id),
                None => return Ok(None),
            },
        };
        let stream = match some(&query.run).as_deref() {
            None => None,
            Some("instance") => Some(StreamId::Instance),
            Some(run) => Some(StreamId::Run(RunId::parse(run).map_err(|error| {
                Error::Invalid {
                    what: error.to_string(),
                }
            })?)),
        };
        Ok(Some(RecordFilter {
            words: query.words.trim().to_owned(),
            stream,
            project: some(&query.project),
            repo,
            actor: some(&query.actor),
            actor_type: some(&query.actor_type),
            kind: some(&query.kind),
            class: some(&query.class),
            from: some(&query.from).map(|from| time::parse(&from)).transpose()?,
            until: some(&query.until)
                .map(|until| time::parse_end(&until))
                .transpose()?,
            hidden: match sight {
                Sight::Everything => vec![],
                Sight::NoStaff => ABOUT_STAFF.to_vec(),
            },
            before: query.before,
            limit,
        }))
    }
}

/// A file that is being written.
struct Writing {
    reader: Reader,
    /// What to ask next; absent when nothing is left.
    filter: Option<RecordFilter>,
    format: Format,
    is_first: bool,
}

impl Writing {
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, Error> {
        let Some(mut filter) = self.filter.take() else {
            return Ok(None);
        };
        let found = self.reader.search.records(&filter).await?;
        if found.len() >= filter.limit as usize {
            filter.before = found.last().map(|last| last.place);
            self.filter = Some(filter);
        }
        let mut page = String::new();
        for found in found {
            let record = view(found);
            match self.format {
                Format::Csv => line(&record, &mut page),
                Format::Json => {
                    page.push_str(if self.is_first { "\n" } else { ",\n" });
                    page.push_str(
                        &serde_json::to_string(&record).expect("the words on the wire are plain data"),
                    );
                }
            }
            self.is_first = false;
        }
        Ok(Some((Bytes::from(page), self)))
    }
}

fn view(found: Found) -> RecordView {
    let Found { place, record } = found;
    RecordView {
        place,
        run: match StreamId::from_key(&record.stream) {
            Some(StreamId::Run(run)) => Some(run),
            Some(StreamId::Instance) | None => None,
        },
        stream: record.stream,
        seq: record.seq,
        event_id: record.event_id,
        schema_version: record.schema_version,
        class: record.class,
        kind: record.kind,
        at: record.at,
        actor_type: record.actor_type,
        actor: record.actor,
        cause: record.cause,
        payload: serde_json::from_str(&record.payload).unwrap_or(serde_json::Value::String(record.payload)),
        payload_hash: record.payload_hash,
        hash: record.hash,
    }
}

const COLUMNS: [&str; 11] = [
    "at",
    "stream",
    "seq",
    "class",
    "kind",
    "actor_type",
    "actor",
    "cause",
    "payload",
    "payload_hash",
    "hash",
];

fn line(record: &RecordView, page: &mut String) {
    let cells = [
        time::precise(record.at),
        record.stream.clone(),
        record.seq.to_string(),
        record.class.clone(),
        record.kind.clone(),
        record.actor_type.clone(),
        record.actor.clone(),
        record.cause.clone(),
        record.payload.to_string(),
        record.payload_hash.clone(),
        record.hash.clone(),
    ];
    page.push_str(&cells.map(|text| cell(&text)).join(","));
    page.push_str("\r\n");
}

/// A cell that holds its text and nothing else: tables take some beginnings for a formula, and a formula reads and sends
/// what it likes. A quote before it makes it text.
fn cell(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    let guard = if is_formula { "'" } else { "" };
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use conductor_domain::time::Timestamp;
    use conductor_port::ledger::Record;

    use super::*;
    use crate::fake::{Fake, request};

    fn record(stream: &str, seq: u64, kind: &str, actor: &str, payload: &str) -> Record {
        Record {
            stream: stream.to_owned(),
            seq,
            event_id: format!("{stream}#{seq}"),
            schema_version: 1,
            class: "fact".to_owned(),
            kind: kind.to_owned(),
            payload: payload.to_owned(),
            payload_hash: "sha256:0".to_owned(),
            actor_type: "operator".to_owned(),
            actor: actor.to_owned(),
            cause: "page from 192.0.2.7".to_owned(),
            at: Timestamp(1),
            hash: "sha256:1".to_owned(),
        }
    }

    /// SEC-7: no cell of a table is a formula, whoever wrote it; none breaks out of its place.
    #[test]
    fn a_cell_never_becomes_a_formula() {
        for (text, expected) in [
            ("plain", "\"plain\""),
            ("=HYPERLINK(\"x\")", "\"'=HYPERLINK(\"\"x\"\")\""),
            ("+1", "\"'+1\""),
            ("-1", "\"'-1\""),
            ("@SUM(A1)", "\"'@SUM(A1)\""),
            ("\t=1", "\"'\t=1\""),
            ("\r\n=1", "\"'\r\n=1\""),
            ("a,b\n\"c\"", "\"a,b\n\"\"c\"\"\""),
            ("", "\"\""),
        ] {
            assert_eq!(cell(text), expected);
        }
    }

    /// SEC-7, S-55: who did what from where is found by every rank, but who comes and goes here by admins alone.
    #[tokio::test]
    async fn what_tells_of_staff_is_for_admins() {
        let fake = Fake::with_repo();
        fake.world().records = vec![
            record("run/r-1", 1, "operate", "eve", r#"{"action":"approve"}"#),
            record("instance", 1, "change_staff", "eve", r#"{"token":"sha256:7"}"#),
        ];
        let reader = fake.reader();
        for (sight, expected) in [
            (Sight::from(Rank::Viewer), vec!["operate"]),
            (Sight::from(Rank::Operator), vec!["operate"]),
            (Sight::from(Rank::Admin), vec!["change_staff", "operate"]),
        ] {
            let list = reader
                .records(&RecordQuery::default(), sight)
                .await
                .expect("found");
            let kinds: Vec<&str> = list.records.iter().map(|record| record.kind.as_str()).collect();
            assert_eq!(kinds, expected, "{sight:?}");
            for format in [Format::Csv, Format::Json] {
                let query = RecordQuery::default();
                let file = reader.export(&query, sight, format).await.expect("begun");
                let pieces: Vec<_> = file.map(|piece| piece.expect("a piece")).collect().await;
                let file = String::from_utf8(pieces.concat()).expect("text");
                assert_eq!(
                    file.contains("change_staff"),
                    sight == Sight::Everything,
                    "{file}"
                );
                assert!(file.contains("192.0.2.7"), "{file}");
            }
        }
    }

    /// UI-4: pages by their cursor, a file without end, and words that are not understood are named as such.
    #[tokio::test]
    async fn records_are_listed_in_pages_and_written_whole() {
        let fake = Fake::with_repo();
        let many = (1..=1_203).map(|seq| record("run/r-1", seq, "operate", "=eve", r#"{"n":1}"#));
        fake.world().records = many.collect();
        let (status, page) = fake
            .ask(request("GET", "/api/v1/audit/records?limit=2&actor==eve", ""))
            .await;
        assert_eq!(status, StatusCode::OK, "{page}");
        assert_eq!(
            (page["records"][0]["seq"].as_u64(), page["next"].as_u64()),
            (Some(1_203), Some(1_202))
        );
        let (_, page) = fake
            .ask(request("GET", "/api/v1/audit/records?limit=2&before=3", ""))
            .await;
        assert_eq!(
            (page["records"][1]["seq"].as_u64(), page["next"].as_u64()),
            (Some(1), Some(1))
        );
        let (_, page) = fake
            .ask(request("GET", "/api/v1/audit/records?before=1", ""))
            .await;
        assert_eq!(
            (page["records"].as_array().map(Vec::len), page["next"].as_u64()),
            (Some(0), None)
        );
        let (_, all) = fake.ask(request("GET", "/api/v1/audit/export/json", "")).await;
        assert_eq!(all.as_array().map(Vec::len), Some(1_203));
        for hostile in [
            "from=yesterday",
            "until=2026-13-01",
            "run=..%2F..",
            "format=xml",
            "unknown=1",
            "before=x",
            "limit=-1",
        ] {
            for path in ["records", "export/csv", "export/json"] {
                let path = format!("/api/v1/audit/{path}?{hostile}");
                let (status, problem) = fake.ask(request("GET", &path, "")).await;
                assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{path}: {problem}");
            }
        }
        let (status, _) = fake.ask(request("GET", "/api/v1/audit/export/xml", "")).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
        let (_, none) = fake
            .ask(request("GET", "/api/v1/audit/records?repo=no/such", ""))
            .await;
        assert_eq!(none["records"].as_array().map(Vec::len), Some(0));
    }
}
