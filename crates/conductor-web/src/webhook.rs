//! Takes signed deliveries of the forge in and tells the runs that they may concern.
//!
//! A delivery is only a hint to look: its signature covers the body, but neither its id nor the event's name, so a
//! replay is recognised by the body's hash and every transition rests on a reading of our own (S-52). A run is found by
//! the repository's numeric id and the number of its pull request or issue (S-53). The answer comes after the hint is
//! durable. This module does not know what a run makes of a hint.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use conductor_domain::digest::Digest;
use conductor_domain::forge::{Notice, NoticeSubject};
use conductor_domain::id::{IssueNumber, PullRequestNumber, RepoId};
use conductor_domain::input::Input;
use conductor_port::inbox::{Submission, SubmitError};
use conductor_port::ledger::RunRow;
use conductor_port::views::RunFilter;
use serde::{Deserialize, Serialize};

use crate::door::Door;
use crate::error::Error;
use crate::guard::only;
use crate::reader::parse_state;

/// The largest body that the forge sends; a larger one is not from it.
pub(crate) const MAX_DELIVERY: usize = 25 * 1024 * 1024;
/// So many unverified bodies may be in memory at once (S-54).
pub(crate) const AT_ONCE: usize = 4;
/// The most runs that one delivery can concern.
const MAX_RUNS: u32 = 500;

static SIGNATURE: HeaderName = HeaderName::from_static("x-hub-signature-256");
static DELIVERY: HeaderName = HeaderName::from_static("x-github-delivery");
static EVENT: HeaderName = HeaderName::from_static("x-github-event");

/// What came of a delivery.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Receipt {
    /// Runs that were told.
    told: u32,
    /// Runs that had been told of the same body before.
    duplicates: u32,
}

/// Takes a delivery in.
pub(crate) async fn receive(
    State(door): State<Arc<Door>>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<Receipt>), Error> {
    let check = door.settings.signature.as_ref().ok_or(Error::NoWebhooks)?;
    let _permit = door.deliveries.try_acquire().map_err(|_| Error::Busy)?;
    let body = axum::body::to_bytes(body, MAX_DELIVERY)
        .await
        .map_err(|_| Error::TooLarge { limit: MAX_DELIVERY })?;
    let signature = only(&headers, &SIGNATURE).ok_or(Error::BadSignature)?;
    if !check(&body, signature) {
        return Err(Error::BadSignature);
    }
    let event = only(&headers, &EVENT).unwrap_or_default();
    let delivery = only(&headers, &DELIVERY).unwrap_or_default();
    let mut receipt = Receipt {
        told: 0,
        duplicates: 0,
    };
    // A body that we do not understand is not ours to judge: it concerns nobody, and the forge need not repeat it.
    let Ok(payload) = serde_json::from_slice::<Payload>(&body) else {
        return Ok((StatusCode::ACCEPTED, Json(receipt)));
    };
    let hash = Digest::of(&body);
    for (row, subject) in concerned(&door, event, &payload).await? {
        let notice = Notice {
            delivery: short(delivery),
            event: short(event),
            subject,
        };
        let submission = Submission {
            dedupe: Some(format!("delivery/{}/{hash}", row.run)),
            cause: format!("delivery {}", short(delivery)),
            run: row.run,
            input: Input::ForgeNoticed { notice },
        };
        match door.inbox.submit(submission).await {
            Ok(accepted) if accepted.duplicate => receipt.duplicates += 1,
            Ok(_) => receipt.told += 1,
            // The run has ended meanwhile, or has no use for it: then it concerns nobody.
            Err(SubmitError::Refused(_) | SubmitError::InstanceRefused(_)) => {}
            Err(SubmitError::Fault(fault)) => return Err(fault.into()),
        }
    }
    Ok((StatusCode::ACCEPTED, Json(receipt)))
}

/// Header values are not signed; what is kept of them is short and plain.
fn short(value: &str) -> String {
    value.chars().filter(char::is_ascii_graphic).take(64).collect()
}

/// The parts of a payload that we read; everything may be missing, and other things may be there.
#[derive(Debug, Deserialize)]
struct Payload {
    repository: Option<Repository>,
    pull_request: Option<Numbered>,
    issue: Option<Issue>,
    check_suite: Option<Check>,
    check_run: Option<Check>,
    #[serde(rename = "ref")]
    git_ref: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Repository {
    id: u64,
}

#[derive(Debug, Deserialize)]
struct Numbered {
    number: u64,
}

#[derive(Debug, Deserialize)]
struct Issue {
    number: u64,
    pull_request: Option<serde_json::Value>,
}

#[derive(Debug, Deserialize)]
struct Check {
    head_sha: Option<String>,
}

/// Finds the open runs that a payload is about.
async fn concerned(
    door: &Door,
    event: &str,
    payload: &Payload,
) -> Result<Vec<(RunRow, NoticeSubject)>, Error> {
    let Some(repo) = payload
        .repository
        .as_ref()
        .map(|repository| RepoId(repository.id))
    else {
        return Ok(vec![]);
    };
    let open = RunFilter {
        repo: Some(repo),
        open: true,
        limit: MAX_RUNS,
        ..RunFilter::default()
    };
    let mut found = Vec::new();
    let is_comment_on_pull_request = |issue: &&Issue| issue.pull_request.is_some();
    let pull_request = payload
        .pull_request
        .as_ref()
        .map(|pull_request| pull_request.number)
        .or(payload
            .issue
            .as_ref()
            .filter(is_comment_on_pull_request)
            .map(|issue| issue.number));
    if let Some(number) = pull_request {
        let filter = RunFilter {
            pull_request: Some(number),
            ..open.clone()
        };
        let subject = NoticeSubject::PullRequest {
            number: PullRequestNumber(number),
        };
        found.extend(
            door.reader
                .rows(&filter)
                .await?
                .into_iter()
                .map(|row| (row, subject.clone())),
        );
    } else if let Some(issue) = &payload.issue {
        let filter = RunFilter {
            issue: Some(issue.number),
            ..open.clone()
        };
        let subject = NoticeSubject::Issue {
            number: IssueNumber(issue.number),
        };
        found.extend(
            door.reader
                .rows(&filter)
                .await?
                .into_iter()
                .map(|row| (row, subject.clone())),
        );
    } else if let Some(check) = payload.check_suite.as_ref().or(payload.check_run.as_ref()) {
        // Checks of a fork name no pull request, and those of ours may; the head commit always tells.
        for row in door.reader.rows(&open).await? {
            let run = parse_state(&row)?;
            let Some(pull_request) = run.pull_request else {
                continue;
            };
            if check.head_sha.as_deref() == Some(pull_request.head.as_str()) {
                found.push((
                    row,
                    NoticeSubject::PullRequest {
                        number: pull_request.number,
                    },
                ));
            }
        }
    } else if let Some(branch) = payload
        .git_ref
        .as_deref()
        .and_then(|name| name.strip_prefix("refs/heads/"))
        && event == "push"
    {
        for row in door.reader.rows(&open).await? {
            if parse_state(&row)?.spec.repo.base_branch == branch {
                found.push((row, NoticeSubject::Base));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Fake, delivery, row};

    const CLOSED: &str = r#"{"action":"closed","repository":{"id":7},"pull_request":{"number":4}}"#;

    fn world() -> Fake {
        let fake = Fake::with_repo();
        fake.world().rows = vec![
            row("r-1", 1, Some(4)),
            row("r-2", 2, Some(5)),
            row("r-3", 3, None),
        ];
        fake
    }

    fn subjects(fake: &Fake) -> Vec<(String, NoticeSubject)> {
        let told = |submission: &Submission| {
            let Input::ForgeNoticed { notice } = &submission.input else {
                return None;
            };
            Some((submission.run.to_string(), notice.subject.clone()))
        };
        fake.world().submitted.iter().filter_map(told).collect()
    }

    /// GH-2, S-54: nothing unsigned is believed, whatever it says.
    #[tokio::test]
    async fn a_delivery_that_is_not_signed_with_our_secret_is_refused() {
        let fake = world();
        for wrong in [
            "",
            "sha256=",
            "sha256=00",
            "sha1=abc",
            &format!("sha256={}", "0".repeat(64)),
        ] {
            let mut request = delivery("d", "pull_request", CLOSED);
            request
                .headers_mut()
                .insert(&SIGNATURE, wrong.parse().expect("a header"));
            let (status, problem) = fake.ask(request).await;
            assert_eq!(
                (status.as_u16(), problem["code"].as_str()),
                (401, Some("CDR0315")),
                "{wrong}"
            );
        }
        let mut unsigned = delivery("d", "pull_request", CLOSED);
        unsigned.headers_mut().remove(&SIGNATURE);
        assert_eq!(fake.ask(unsigned).await.0, 401);
        let mut other_body = delivery("d", "pull_request", CLOSED);
        *other_body.body_mut() = CLOSED.replace('4', "5").into();
        assert_eq!(fake.ask(other_body).await.0, 401);
        assert_eq!(subjects(&fake), []);
    }

    #[tokio::test]
    async fn a_delivery_larger_than_the_forge_sends_is_refused() {
        let mut request = delivery("d", "pull_request", CLOSED);
        *request.body_mut() = vec![b' '; MAX_DELIVERY + 1].into();
        let (status, problem) = world().ask(request).await;
        assert_eq!(
            (status.as_u16(), problem["code"].as_str()),
            (413, Some("CDR0303"))
        );
    }

    /// S-52: the same body counts once, under its old delivery id and under a new one.
    #[tokio::test]
    async fn a_repeated_delivery_counts_once() {
        let fake = world();
        for (id, told, duplicates) in [("d1", 1, 0), ("d1", 0, 1), ("d2", 0, 1)] {
            let (status, receipt) = fake.ask(delivery(id, "pull_request", CLOSED)).await;
            let expected = serde_json::json!({"told": told, "duplicates": duplicates});
            assert_eq!((status.as_u16(), receipt), (202, expected), "{id}");
        }
        let number = PullRequestNumber(4);
        assert_eq!(
            subjects(&fake),
            [("r-1".to_owned(), NoticeSubject::PullRequest { number })]
        );
    }

    /// S-53: found by the repository's numeric id, and by pull request, issue, head commit or base branch.
    #[tokio::test]
    async fn a_delivery_reaches_the_runs_that_it_concerns() {
        let head = "a".repeat(40);
        let pull = |number| NoticeSubject::PullRequest {
            number: PullRequestNumber(number),
        };
        let cases = [
            ("pull_request", CLOSED.to_owned(), vec![("r-1", pull(4))]),
            ("pull_request", CLOSED.replace("\"id\":7", "\"id\":8"), vec![]),
            (
                "issues",
                r#"{"repository":{"id":7},"issue":{"number":3}}"#.to_owned(),
                vec![(
                    "r-3",
                    NoticeSubject::Issue {
                        number: IssueNumber(3),
                    },
                )],
            ),
            (
                "issue_comment",
                r#"{"repository":{"id":7},"issue":{"number":5,"pull_request":{}}}"#.to_owned(),
                vec![("r-2", pull(5))],
            ),
            (
                "check_suite",
                format!(
                    r#"{{"repository":{{"id":7}},"check_suite":{{"head_sha":"{head}","pull_requests":[]}}}}"#
                ),
                vec![("r-1", pull(4)), ("r-2", pull(5))],
            ),
            (
                "check_run",
                r#"{"repository":{"id":7},"check_run":{"head_sha":"b"}}"#.to_owned(),
                vec![],
            ),
            (
                "push",
                r#"{"repository":{"id":7},"ref":"refs/heads/main"}"#.to_owned(),
                ["r-1", "r-2", "r-3"]
                    .map(|run| (run, NoticeSubject::Base))
                    .to_vec(),
            ),
            (
                "push",
                r#"{"repository":{"id":7},"ref":"refs/heads/other"}"#.to_owned(),
                vec![],
            ),
        ];
        for (event, body, expected) in cases {
            let fake = world();
            assert_eq!(fake.ask(delivery("d", event, &body)).await.0, 202, "{body}");
            let expected: Vec<_> = expected
                .into_iter()
                .map(|(run, subject)| (run.to_owned(), subject))
                .collect();
            assert_eq!(subjects(&fake), expected, "{event} {body}");
        }
    }

    #[tokio::test]
    async fn a_well_signed_delivery_that_concerns_nobody_is_accepted() {
        for body in [
            "{}",
            "[]",
            "not json",
            r#"{"repository":{"id":"x"}}"#,
            r#"{"zen":"Design for failure."}"#,
        ] {
            let (status, receipt) = world().ask(delivery("d", "ping", body)).await;
            let nobody = serde_json::json!({"told": 0, "duplicates": 0});
            assert_eq!((status.as_u16(), receipt), (202, nobody), "{body}");
        }
    }

    /// GH-2: what is not durable is not answered with success, so that the forge shows it as failed.
    #[tokio::test]
    async fn a_delivery_that_could_not_be_kept_is_not_accepted() {
        let fake = world();
        fake.world().down = true;
        let (status, problem) = fake.ask(delivery("d", "pull_request", CLOSED)).await;
        assert_eq!(
            (status.as_u16(), problem["code"].as_str()),
            (503, Some("CDR0313"))
        );
    }
}
