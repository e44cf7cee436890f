//! Takes signed deliveries of the forge in and tells the runs that they may concern.
//!
//! A delivery is only a hint to look: its signature covers the body, but neither its id nor the event's name, so a
//! replay is recognised by the body's hash and every transition rests on a reading of our own (S-52). A run is found by
//! the repository's numeric id and the number of its pull request or issue (S-53). The answer comes after the hint is
//! durable. This module does not know how a forge signs or words its deliveries.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use conductor_domain::forge::{Notice, NoticeSubject};
use conductor_domain::id::RepoId;
use conductor_domain::input::Input;
use conductor_port::inbox::{Seen, Submission, SubmitError};
use conductor_port::ledger::RunRow;
use conductor_port::views::RunFilter;
use serde::Serialize;

use crate::door::Door;
use crate::error::Error;
use crate::guard::only;

/// The largest body that the forge sends; a larger one is not from it.
pub(crate) const MAX_DELIVERY: usize = 25 * 1024 * 1024;
/// So many unverified bodies may be in memory at once (S-54).
pub(crate) const AT_ONCE: usize = 4;
/// The most runs that one delivery can concern.
const MAX_RUNS: u32 = 500;

static SIGNATURE: HeaderName = HeaderName::from_static("x-hub-signature-256");
static DELIVERY: HeaderName = HeaderName::from_static("x-github-delivery");
static EVENT: HeaderName = HeaderName::from_static("x-github-event");

/// A delivery as it arrived; nothing of it is believed yet.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    /// The name of the event; not signed.
    pub event: Option<&'a str>,
    /// The delivery's own id; not signed.
    pub id: Option<&'a str>,
    /// The signature over the body.
    pub signature: Option<&'a str>,
    /// The exact bytes.
    pub body: &'a [u8],
}

/// What a delivery hints at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    /// The delivery's own id.
    pub delivery: String,
    /// The name of the event.
    pub event: String,
    /// The hash of the body.
    pub body_hash: String,
    /// The repository.
    pub repo: RepoId,
    /// What it is about.
    pub subjects: Vec<NoticeSubject>,
    /// The branch that was pushed to.
    pub pushed_branch: Option<String>,
}

/// Why a delivery is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejected {
    /// It is not signed with our secret.
    NotSigned,
    /// It is signed, but lacks its event or its id.
    Incomplete,
}

/// Checks a delivery in constant time and reads it; `None` is a sound one that says nothing we listen to.
pub type ReadDelivery = Arc<dyn Fn(Delivery<'_>) -> Result<Option<Hint>, Rejected> + Send + Sync>;

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
    let read = door.settings.deliveries.as_ref().ok_or(Error::NoWebhooks)?;
    let _permit = door.deliveries.try_acquire().map_err(|_| Error::Busy)?;
    let body = axum::body::to_bytes(body, MAX_DELIVERY)
        .await
        .map_err(|_| Error::TooLarge { limit: MAX_DELIVERY })?;
    let delivery = Delivery {
        event: only(&headers, &EVENT),
        id: only(&headers, &DELIVERY),
        signature: only(&headers, &SIGNATURE),
        body: &body,
    };
    let hint = read(delivery).map_err(|rejected| match rejected {
        Rejected::NotSigned => Error::BadSignature,
        Rejected::Incomplete => Error::Invalid {
            what: "the delivery lacks its event or its id".to_owned(),
        },
    })?;
    let receipt = match hint {
        None => Receipt {
            told: 0,
            duplicates: 0,
        },
        Some(hint) => tell(&door, &hint).await?,
    };
    Ok((StatusCode::ACCEPTED, Json(receipt)))
}

async fn tell(door: &Door, hint: &Hint) -> Result<Receipt, Error> {
    let mut receipt = Receipt {
        told: 0,
        duplicates: 0,
    };
    for subject in &hint.subjects {
        for row in concerned(door, hint, subject).await? {
            let notice = Notice {
                delivery: hint.delivery.clone(),
                event: hint.event.clone(),
                subject: subject.clone(),
            };
            let submission = Submission {
                dedupe: Some(format!("delivery/{}/{}", row.run, hint.body_hash)),
                cause: format!("delivery {}", hint.delivery),
                seen: Seen::Anything,
                run: row.run,
                input: Input::ForgeNoticed { notice },
            };
            match door.inbox.submit(submission).await {
                Ok(accepted) if accepted.duplicate => receipt.duplicates += 1,
                Ok(_) => receipt.told += 1,
                // The run has ended meanwhile, or has no use for it: then it concerns nobody.
                Err(
                    SubmitError::Refused(_)
                    | SubmitError::InstanceRefused(_)
                    | SubmitError::Stale { .. }
                    | SubmitError::IssueHasRun { .. },
                ) => {}
                Err(SubmitError::Fault(fault)) => return Err(fault.into()),
            }
        }
    }
    Ok(receipt)
}

/// Finds the open runs that a subject is about.
async fn concerned(door: &Door, hint: &Hint, subject: &NoticeSubject) -> Result<Vec<RunRow>, Error> {
    let open = RunFilter {
        repo: Some(hint.repo),
        open: true,
        limit: MAX_RUNS,
        ..RunFilter::default()
    };
    match subject {
        NoticeSubject::PullRequest { number } => {
            door.reader
                .rows(&RunFilter {
                    pull_request: Some(number.0),
                    ..open
                })
                .await
        }
        NoticeSubject::Issue { number } => {
            door.reader
                .rows(&RunFilter {
                    issue: Some(number.0),
                    ..open
                })
                .await
        }
        NoticeSubject::Base => {
            let mut rows = Vec::new();
            for row in door.reader.rows(&open).await? {
                // A damaged run hears nothing more; the others do.
                let Ok(state) = row.parse() else { continue };
                let base_branch = state.spec.repo.base_branch;
                if hint.pushed_branch.as_deref() == Some(base_branch.as_str()) {
                    rows.push(row);
                }
            }
            Ok(rows)
        }
    }
}

#[cfg(test)]
mod tests {
    use conductor_domain::id::{IssueNumber, PullRequestNumber};

    use tower::ServiceExt as _;

    use super::*;
    use crate::fake::{Fake, delivery, row};

    const CLOSED: &str = "pull 7 4";

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
        let pull = |number| NoticeSubject::PullRequest {
            number: PullRequestNumber(number),
        };
        let issue = NoticeSubject::Issue {
            number: IssueNumber(3),
        };
        let cases = [
            ("pull 7 4", vec![("r-1", pull(4))]),
            ("pull 7 6", vec![]),
            ("pull 8 4", vec![]),
            ("issue 7 3", vec![("r-3", issue)]),
            (
                "push 7 main",
                ["r-1", "r-2", "r-3"]
                    .map(|run| (run, NoticeSubject::Base))
                    .to_vec(),
            ),
            ("push 7 other", vec![]),
        ];
        for (body, expected) in cases {
            let fake = world();
            assert_eq!(fake.ask(delivery("d", "some_event", body)).await.0, 202, "{body}");
            let expected: Vec<_> = expected
                .into_iter()
                .map(|(run, subject)| (run.to_owned(), subject))
                .collect();
            assert_eq!(subjects(&fake), expected, "{body}");
        }
    }

    #[tokio::test]
    async fn a_well_signed_delivery_that_concerns_nobody_is_accepted() {
        for body in ["", "{}", "ping"] {
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
            (503, Some("CDR0607"))
        );
    }

    /// S-54: bodies that nobody has believed yet cannot fill the memory.
    #[tokio::test]
    async fn only_so_many_unverified_bodies_are_read_at_once() {
        let router = world().router();
        let (reading, mut readers) = tokio::sync::mpsc::unbounded_channel();
        let mut slow = Vec::new();
        for _ in 0..AT_ONCE {
            let reading = reading.clone();
            let endless = futures_util::stream::poll_fn(move |_| {
                let _test_is_over = reading.send(());
                std::task::Poll::<Option<Result<bytes::Bytes, std::io::Error>>>::Pending
            });
            let mut request = delivery("d", "pull_request", CLOSED);
            *request.body_mut() = Body::from_stream(endless);
            slow.push(tokio::spawn(router.clone().oneshot(request)));
        }
        for _ in 0..AT_ONCE {
            readers.recv().await.expect("a body is being read");
        }
        let one_more = router
            .oneshot(delivery("d", "pull_request", CLOSED))
            .await
            .expect("a router never fails");
        assert_eq!(one_more.status(), 503);
        slow.iter().for_each(tokio::task::JoinHandle::abort);
    }
}
