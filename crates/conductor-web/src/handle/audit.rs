//! Answers about proofs: audits, replays, and the kept bytes themselves.
//!
//! Kept bytes come from agents: they leave as an attachment that no browser opens, guesses at or runs (S-57).
//! This module does not know how an audit works.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use bytes::Bytes;
use conductor_domain::digest::Digest;

use crate::actor::Actor;
use crate::api::{AuditView, MetricsView, RecordList, ReplayView};
use crate::door::Door;
use crate::error::Error;
use crate::extract::{Asked, NamedRun};
use crate::guard::only;
use crate::metrics::MetricsQuery;
use crate::once;
use crate::search::{Format, RecordQuery};

/// Checks every stream.
pub(crate) async fn verify(State(door): State<Arc<Door>>) -> Result<Json<AuditView>, Error> {
    Ok(Json(door.backstage.verify().await?))
}

/// The form of a file that an address names.
pub(crate) struct NamedFormat(pub(crate) Format);

impl<S: Send + Sync> FromRequestParts<S> for NamedFormat {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let Path(name): Path<String> = Path::from_request_parts(parts, state)
            .await
            .map_err(|rejection| Error::Invalid {
                what: rejection.body_text(),
            })?;
        let found = Format::ALL.into_iter().find(|format| format.as_str() == name);
        found.map(Self).ok_or_else(|| Error::Invalid {
            what: format!("there is no file of the form `{name}`; there are csv and json"),
        })
    }
}

/// Finds records.
pub(crate) async fn records(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Asked(query): Asked<RecordQuery>,
) -> Result<Json<RecordList>, Error> {
    Ok(Json(door.reader.records(&query, actor.rank.into()).await?))
}

/// Counts runs.
pub(crate) async fn metrics(
    State(door): State<Arc<Door>>,
    Asked(query): Asked<MetricsQuery>,
) -> Result<Json<MetricsView>, Error> {
    let now = door.settings.clock.now();
    Ok(Json(door.reader.metrics(&query, now).await?))
}

/// Hands everything that is found out as a file.
pub(crate) async fn export(
    State(door): State<Arc<Door>>,
    actor: Actor,
    NamedFormat(format): NamedFormat,
    Asked(query): Asked<RecordQuery>,
) -> Result<Response, Error> {
    file(&door, &actor, format, &query).await
}

/// Writes a file of records, piece by piece.
pub(crate) async fn file(
    door: &Door,
    actor: &Actor,
    format: Format,
    query: &RecordQuery,
) -> Result<Response, Error> {
    let file = door.reader.export(query, actor.rank.into(), format).await?;
    let headers = [
        (header::CONTENT_TYPE, format.content_type().to_owned()),
        (
            header::CONTENT_DISPOSITION,
            format!("attachment; filename=\"conductor-audit.{}\"", format.as_str()),
        ),
    ];
    Ok((headers, Extension(once::Endless), Body::from_stream(file)).into_response())
}

/// Recomputes a run.
pub(crate) async fn replay(
    State(door): State<Arc<Door>>,
    NamedRun(id): NamedRun,
) -> Result<Json<ReplayView>, Error> {
    door.reader.state(&id).await?;
    Ok(Json(door.backstage.replay(&id).await?))
}

/// Hands kept bytes out.
pub(crate) async fn artifact(
    State(door): State<Arc<Door>>,
    Path(digest): Path<String>,
    asked: HeaderMap,
) -> Result<Response, Error> {
    let digest = Digest::parse(digest).map_err(|error| Error::Invalid {
        what: error.to_string(),
    })?;
    let bytes = Bytes::from(door.reader.artifact(&digest).await?);
    // The address is the content's, so the tag never changes.
    let tag = format!("\"{digest}\"");
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (
            header::CONTENT_DISPOSITION,
            format!("attachment; filename=\"{}.bin\"", digest.short()),
        ),
        (
            header::CONTENT_SECURITY_POLICY,
            "sandbox; default-src 'none'".to_owned(),
        ),
        (header::ETAG, tag.clone()),
        (header::ACCEPT_RANGES, "bytes".to_owned()),
    ];
    if only(&asked, &header::IF_NONE_MATCH).is_some_and(|known| once::names(known, &tag)) {
        return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
    }
    // A part is for whoever has the rest of the same bytes; everybody else gets them all (RFC 9110, 13.1.5).
    let is_same = !asked.contains_key(header::IF_RANGE) || only(&asked, &header::IF_RANGE) == Some(&tag);
    let range = only(&asked, &header::RANGE).filter(|_| is_same);
    Ok(
        match range.map_or(Part::Whole, |range| Part::named(range, bytes.len())) {
            Part::Whole => (headers, bytes).into_response(),
            Part::Bytes { first, last } => {
                let place = format!("bytes {first}-{last}/{}", bytes.len());
                let part = bytes.slice(first..=last);
                let place = [(header::CONTENT_RANGE, place)];
                (StatusCode::PARTIAL_CONTENT, headers, place, part).into_response()
            }
            Part::Beyond => {
                let place = [(header::CONTENT_RANGE, format!("bytes */{}", bytes.len()))];
                (StatusCode::RANGE_NOT_SATISFIABLE, headers, place).into_response()
            }
        },
    )
}

/// What a range asks for.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    /// Everything; also where the words say nothing that is understood here (RFC 9110, 14.2).
    Whole,
    /// These bytes, the last one too; they are there.
    Bytes { first: usize, last: usize },
    /// Bytes of which none is there.
    Beyond,
}

impl Part {
    fn named(range: &str, size: usize) -> Self {
        let Some((first, last)) = range.strip_prefix("bytes=").and_then(|rest| rest.split_once('-')) else {
            return Self::Whole;
        };
        let number = |word: &str| {
            let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| word.parse::<usize>().unwrap_or(usize::MAX))
        };
        let (first, last) = match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => (first, last),
            (Some(first), None) if last.is_empty() => (first, usize::MAX),
            (None, Some(count)) if first.is_empty() => (size.saturating_sub(count), usize::MAX),
            (Some(_) | None, Some(_) | None) => return Self::Whole,
        };
        match size.checked_sub(1) {
            Some(end) if first <= end => Self::Bytes {
                first,
                last: last.min(end),
            },
            Some(_) | None => Self::Beyond,
        }
    }
}

#[cfg(test)]
mod tests {
    use conductor_domain::artifact::ArtifactKind;
    use conductor_port::blobs::Blobs as _;
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;

    use super::*;
    use crate::fake::{Fake, request};

    /// Headers; then status, body and place of the answer.
    type Case<'a> = (&'a [(&'a str, &'a str)], u16, &'a str, Option<&'a str>);

    /// S-57, UI-1: a part of kept bytes is given as it was asked for, under the same protections as the whole; whoever has
    /// other bytes, or asks for nothing sensible, gets the whole.
    #[tokio::test]
    async fn a_part_of_kept_bytes_is_given_and_no_other() {
        let fake = Fake::with_repo();
        let text = b"<script>0123456789</script>";
        let kept = fake.put(ArtifactKind::TestOutput, text).await.expect("kept");
        let tag = format!("\"{}\"", kept.digest);
        let other = format!("\"{}\"", Digest::of(b"other"));
        let weak = format!("W/{tag}");
        let path = format!("/api/v1/artifacts/{}", kept.digest);
        let cases: [Case<'_>; 12] = [
            (&[], 200, "<script>0123456789</script>", None),
            (&[("range", "bytes=8-11")], 206, "0123", Some("bytes 8-11/27")),
            (&[("range", "bytes=-9")], 206, "</script>", Some("bytes 18-26/27")),
            (
                &[("range", "bytes=0-999")],
                206,
                "<script>0123456789</script>",
                Some("bytes 0-26/27"),
            ),
            (&[("range", "bytes=27-")], 416, "", Some("bytes */27")),
            (
                &[("range", "bytes=0-0,2-3")],
                200,
                "<script>0123456789</script>",
                None,
            ),
            (
                &[("range", "bytes=0-0"), ("range", "bytes=1-1")],
                200,
                "<script>0123456789</script>",
                None,
            ),
            (
                &[("range", "bytes=0-0"), ("if-range", &tag)],
                206,
                "<",
                Some("bytes 0-0/27"),
            ),
            (
                &[("range", "bytes=0-0"), ("if-range", &other)],
                200,
                "<script>0123456789</script>",
                None,
            ),
            (
                &[("range", "bytes=0-0"), ("if-range", &weak)],
                200,
                "<script>0123456789</script>",
                None,
            ),
            (
                &[
                    ("range", "bytes=0-0"),
                    ("if-range", "Tue, 17 Nov 2026 00:00:00 GMT"),
                ],
                200,
                "<script>0123456789</script>",
                None,
            ),
            (&[("if-none-match", &tag)], 304, "", None),
        ];
        for (headers, status, body, place) in cases {
            let mut asked = request("GET", &path, "");
            for (name, value) in headers {
                let name: header::HeaderName = name.parse().expect("a name");
                asked.headers_mut().append(name, value.parse().expect("a value"));
            }
            let response = fake.router().oneshot(asked).await.expect("a router never fails");
            assert_eq!(response.status().as_u16(), status, "{headers:?}");
            let said = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
            assert_eq!(said(header::CONTENT_RANGE), place, "{headers:?}");
            assert_eq!(said(header::ETAG), Some(tag.as_str()), "{headers:?}");
            assert!(said(header::CONTENT_DISPOSITION).is_some_and(|how| how.starts_with("attachment;")));
            assert_eq!(said(header::X_CONTENT_TYPE_OPTIONS), Some("nosniff"));
            assert!(said(header::CONTENT_SECURITY_POLICY).is_some_and(|policy| policy.contains("sandbox")));
            let bytes = response.into_body().collect().await.expect("a body").to_bytes();
            assert_eq!(bytes, body.as_bytes(), "{headers:?}");
        }
    }

    #[test]
    fn a_range_names_bytes_that_are_there() {
        let bytes = |first, last| Part::Bytes { first, last };
        for (range, size, expected) in [
            ("bytes=0-4", 10, bytes(0, 4)),
            ("bytes=5-", 10, bytes(5, 9)),
            ("bytes=-3", 10, bytes(7, 9)),
            ("bytes=-30", 10, bytes(0, 9)),
            ("bytes=0-99999999999999999999999", 10, bytes(0, 9)),
            ("bytes=10-", 10, Part::Beyond),
            ("bytes=-0", 10, Part::Beyond),
            ("bytes=0-", 0, Part::Beyond),
            ("bytes=4-2", 10, Part::Whole),
            ("bytes=0-1,3-4", 10, Part::Whole),
            ("bytes=-", 10, Part::Whole),
            ("bytes=a-b", 10, Part::Whole),
            ("bytes=+1-2", 10, Part::Whole),
            ("lines=1-2", 10, Part::Whole),
            ("", 10, Part::Whole),
        ] {
            assert_eq!(Part::named(range, size), expected, "{range} of {size}");
        }
    }
}
