//! Where reading commands read from: the running server, or the database itself when there is none.
//!
//! Both give the same answers in the same words. This module does not know how they are shown.

use conductor_domain::digest::Digest;
use conductor_domain::id::RunId;
use conductor_domain::time::Timestamp;
use conductor_port::views::RunFilter;
use conductor_web::api::{
    Approvals, AuditView, CallList, ChangeView, EventList, ExpectedView, InstanceView, MetricsView,
    PolicyExpectations, PolicyList, PolicyPlace, PolicyQuestion, PolicyTexts, RecordList, ReplayView,
    RulingView, RunDetail, RunList, VersionList, WriteList,
};
use conductor_web::{CallsWanted, Format, MetricsQuery, Reader, RecordQuery, Rules as _, Sight};
use futures_util::stream::{BoxStream, StreamExt as _};
use serde::Serialize;

use crate::client::Client;
use crate::data_dir::DataDir;
use crate::exit::Failure;
use crate::wire::{self, Records};

/// Where to read from.
#[derive(Debug)]
pub(crate) enum Source {
    /// The running server.
    Server(Client),
    /// The database, for reading only.
    Database(Reader, Records),
}

/// Which runs to list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) project: Option<String>,
    pub(crate) repo: Option<String>,
    pub(crate) phase: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) open: bool,
    pub(crate) needs_human: bool,
    pub(crate) after: Option<RunId>,
    pub(crate) limit: u32,
}

impl Source {
    /// Opens the database of a data directory for reading.
    pub(crate) async fn open_database(data_dir: &DataDir) -> Result<Self, Failure> {
        let records = wire::open_for_reading(data_dir).await?;
        Ok(Self::Database(records.reader(), records))
    }

    /// Lists runs.
    pub(crate) async fn runs(&self, wanted: Wanted) -> Result<RunList, Failure> {
        match self {
            Self::Server(client) => client.get(&format!("/runs?{}", query(&wanted))).await,
            Self::Database(reader, _) => {
                let repo = match &wanted.repo {
                    None => None,
                    Some(name) => {
                        let repos = reader.instance().await?.repos;
                        let Some(known) = repos.iter().find(|known| known.repo.eq_ignore_ascii_case(name))
                        else {
                            return Ok(RunList {
                                runs: vec![],
                                next: None,
                            });
                        };
                        Some(known.id)
                    }
                };
                let filter = RunFilter {
                    project: wanted.project,
                    repo,
                    phase: wanted.phase,
                    text: wanted.text,
                    needs_human: wanted.needs_human,
                    open: wanted.open,
                    after: wanted.after,
                    limit: wanted.limit,
                    ..RunFilter::default()
                };
                Ok(reader.runs(filter).await?)
            }
        }
    }

    /// Tells everything about one run.
    pub(crate) async fn run(&self, id: &RunId) -> Result<RunDetail, Failure> {
        match self {
            Self::Server(client) => client.get(&format!("/runs/{id}")).await,
            Self::Database(reader, _) => Ok(reader.run(id).await?),
        }
    }

    /// Reads records of a run.
    pub(crate) async fn events(&self, id: &RunId, after: u64) -> Result<EventList, Failure> {
        match self {
            Self::Server(client) => client.get(&format!("/runs/{id}/events?after={after}")).await,
            Self::Database(reader, _) => Ok(reader.events(id, after, 1_000).await?),
        }
    }

    /// Lists calls of tools.
    pub(crate) async fn calls(&self, id: &RunId, wanted: &CallsWanted) -> Result<CallList, Failure> {
        match self {
            Self::Server(client) => {
                let after = wanted.after.as_deref().map(encode);
                let after = after.map_or_else(String::new, |after| format!("&after={after}"));
                let (stopped, limit) = (wanted.stopped, wanted.limit);
                client
                    .get(&format!(
                        "/runs/{id}/calls?stopped={stopped}&limit={limit}{after}"
                    ))
                    .await
            }
            Self::Database(reader, _) => Ok(reader.calls(id, wanted).await?),
        }
    }

    /// Lists what was written at the forge.
    pub(crate) async fn writes(&self, id: &RunId) -> Result<WriteList, Failure> {
        match self {
            Self::Server(client) => client.get(&format!("/runs/{id}/writes")).await,
            Self::Database(reader, _) => Ok(reader.writes(id).await?),
        }
    }

    /// Tells what a run's newest commit changes.
    pub(crate) async fn change(&self, id: &RunId) -> Result<ChangeView, Failure> {
        match self {
            Self::Server(client) => client.get(&format!("/runs/{id}/change")).await,
            Self::Database(reader, _) => {
                let change = reader.change(id, None).await?;
                Ok(change.ok_or_else(|| conductor_web::Error::NotFound {
                    what: format!("commit of run {id} yet"),
                })?)
            }
        }
    }

    /// Reads kept bytes.
    pub(crate) async fn artifact(&self, digest: &Digest) -> Result<Vec<u8>, Failure> {
        match self {
            Self::Server(client) => client.artifact(digest).await,
            Self::Database(reader, _) => Ok(reader.artifact(digest).await?),
        }
    }

    /// Lists what waits for a person.
    pub(crate) async fn approvals(&self) -> Result<Approvals, Failure> {
        match self {
            Self::Server(client) => client.get("/approvals").await,
            Self::Database(reader, _) => Ok(reader.approvals(None).await?),
        }
    }

    /// Reads the instance.
    pub(crate) async fn instance(&self) -> Result<InstanceView, Failure> {
        match self {
            Self::Server(client) => client.get("/instance").await,
            Self::Database(reader, _) => Ok(reader.instance().await?),
        }
    }

    /// Lists stored policies.
    pub(crate) async fn policies(&self) -> Result<PolicyList, Failure> {
        match self {
            Self::Server(client) => client.get("/policies").await,
            Self::Database(reader, _) => Ok(reader.policies().await?),
        }
    }

    /// Reads texts of policies.
    pub(crate) async fn policy_texts(&self, place: &PolicyPlace) -> Result<PolicyTexts, Failure> {
        match self {
            Self::Server(client) => {
                client
                    .get(&format!("/policies/texts?{}", place_query(place)))
                    .await
            }
            Self::Database(reader, records) => {
                let of = reader.policies_shown(place).await?;
                Ok(PolicyTexts {
                    texts: records.rules().texts(&of).await?,
                })
            }
        }
    }

    /// Lists versions of policies.
    pub(crate) async fn policy_versions(&self, place: &PolicyPlace) -> Result<VersionList, Failure> {
        match self {
            Self::Server(client) => {
                let query = place_query(place);
                client.get(&format!("/policies/versions?{query}")).await
            }
            Self::Database(reader, _) => Ok(reader.policy_versions(place).await?),
        }
    }

    /// Asks policies a question.
    pub(crate) async fn judge(&self, of: PolicyPlace, question: String) -> Result<RulingView, Failure> {
        match self {
            Self::Server(client) => {
                client
                    .post("/policies/check", &PolicyQuestion { of, question })
                    .await
            }
            Self::Database(reader, records) => {
                let of = reader.policies_counting(&of).await?;
                let ruling = records.rules().judge(&of, &question).await?;
                Ok(ruling.map_err(|what| conductor_web::Error::Invalid { what })?)
            }
        }
    }

    /// Checks expectations of policies.
    pub(crate) async fn expect(&self, of: PolicyPlace, text: String) -> Result<ExpectedView, Failure> {
        match self {
            Self::Server(client) => {
                client
                    .post("/policies/test", &PolicyExpectations { of, text })
                    .await
            }
            Self::Database(reader, records) => {
                let of = reader.policies_counting(&of).await?;
                Ok(records.rules().expect(&of, &text).await?)
            }
        }
    }

    /// Checks every stream.
    pub(crate) async fn verify(&self) -> Result<AuditView, Failure> {
        match self {
            Self::Server(client) => client.get("/audit").await,
            Self::Database(_, records) => Ok(records.verify().await?),
        }
    }

    /// Finds records.
    pub(crate) async fn records(&self, query: &RecordQuery) -> Result<RecordList, Failure> {
        match self {
            Self::Server(client) => client.get(&format!("/audit/records?{}", written(query))).await,
            Self::Database(reader, _) => Ok(reader.records(query, Sight::Everything).await?),
        }
    }

    /// Writes records as a file, piece by piece.
    pub(crate) async fn export(
        &self,
        query: &RecordQuery,
        format: Format,
    ) -> Result<BoxStream<'static, Result<Vec<u8>, Failure>>, Failure> {
        match self {
            Self::Server(client) => {
                let path = format!("/audit/export/{}?{}", format.as_str(), written(query));
                client.file(&path).await
            }
            Self::Database(reader, _) => {
                let file = reader.export(query, Sight::Everything, format).await?;
                Ok(file.map(|piece| Ok(piece?.to_vec())).boxed())
            }
        }
    }

    /// Counts runs.
    pub(crate) async fn metrics(&self, query: &MetricsQuery, now: Timestamp) -> Result<MetricsView, Failure> {
        match self {
            Self::Server(client) => client.get(&format!("/metrics?{}", written(query))).await,
            Self::Database(reader, _) => Ok(reader.metrics(query, now).await?),
        }
    }

    /// Recomputes a run.
    pub(crate) async fn replay(&self, id: &RunId) -> Result<ReplayView, Failure> {
        match self {
            Self::Server(client) => client.get(&format!("/runs/{id}/replay")).await,
            Self::Database(reader, records) => {
                reader.run(id).await?;
                Ok(records.replay(id).await?)
            }
        }
    }
}

fn query(wanted: &Wanted) -> String {
    let mut pairs = vec![
        ("open", wanted.open.to_string()),
        ("needs_human", wanted.needs_human.to_string()),
    ];
    let texts = [
        ("project", &wanted.project),
        ("repo", &wanted.repo),
        ("phase", &wanted.phase),
        ("text", &wanted.text),
    ];
    pairs.extend(
        texts
            .into_iter()
            .filter_map(|(name, value)| Some((name, encode(value.as_ref()?)))),
    );
    pairs.extend(wanted.after.as_ref().map(|after| ("after", after.to_string())));
    pairs.push(("limit", wanted.limit.to_string()));
    pairs
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect::<Vec<_>>()
        .join("&")
}

fn written(query: &impl Serialize) -> String {
    let given = serde_json::to_value(query).unwrap_or_default();
    let pairs = given.as_object().into_iter().flatten().map(|(name, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{name}={}", encode(&value))
    });
    pairs.collect::<Vec<_>>().join("&")
}

fn place_query(place: &PolicyPlace) -> String {
    let pairs = [
        ("project", place.project.clone()),
        ("repo", place.repo.clone()),
        ("run", place.run.as_ref().map(ToString::to_string)),
        ("version", place.version.map(|version| version.to_string())),
    ];
    let pairs = pairs.into_iter().filter_map(|(name, value)| Some((name, value?)));
    pairs
        .map(|(name, value)| format!("{name}={}", encode(&value)))
        .collect::<Vec<_>>()
        .join("&")
}

fn encode(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_cannot_be_broken_out_of() {
        let wanted = Wanted {
            repo: Some("o/r&open=true#é".into()),
            limit: 3,
            ..Wanted::default()
        };
        assert_eq!(
            query(&wanted),
            "open=false&needs_human=false&repo=o%2Fr%26open%3Dtrue%23%C3%A9&limit=3"
        );
    }
}
