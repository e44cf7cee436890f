//! Decides what an answer that is no success means: wait, look again, or give up (STYLE: faults).
//!
//! GitHub says "rate limited" and "forbidden" with the same status; the headers come first, then the words.
//! It does not know what was asked.

use conductor_domain::fault::{Fault, FaultKind};
use conductor_domain::time::Millis;
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};

use crate::model::ErrorBody;

/// What GitHub asks for when it names no time: at least a minute.
const UNNAMED_WAIT: Millis = Millis::seconds(60);
/// A limit that claims to last longer than its own window is not believed.
const LONGEST_WAIT_SECONDS: u64 = 2 * 3600;
const LONGEST_MESSAGE: usize = 300;

/// An answer, read whole.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// How long GitHub wants to be left alone, if this is a limit. `server_now` is GitHub's clock.
    pub(crate) fn limit(&self, server_now: i64) -> Option<Millis> {
        if !matches!(self.status, StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS) {
            return None;
        }
        if let Some(seconds) = self.retry_after() {
            return Some(believed(seconds));
        }
        if self.number("x-ratelimit-remaining") == Some(0) {
            let left = self
                .number("x-ratelimit-reset")
                .map_or(0, |reset| reset.saturating_sub(server_now));
            // The reset is told in whole seconds; one more makes sure that it has passed.
            let left = u64::try_from(left).unwrap_or(0).saturating_add(1);
            return Some(believed(left));
        }
        let words = self.message().to_lowercase();
        let is_limit = ["rate limit", "abuse detection"]
            .iter()
            .any(|limit| words.contains(limit));
        (is_limit || self.status == StatusCode::TOO_MANY_REQUESTS).then_some(UNNAMED_WAIT)
    }

    /// Turns an answer that is no success into a fault.
    pub(crate) fn fault(&self, attempt: &str, server_now: i64) -> Fault {
        let what = format!(
            "could not {attempt}: GitHub answered {}: {}",
            self.status.as_u16(),
            self.message()
        );
        if let Some(wait) = self.limit(server_now) {
            return Fault::transient_for(wait, what);
        }
        let kind = match self.status.as_u16() {
            408 | 500.. => FaultKind::Transient {
                retry_after: self.retry_after().map(believed),
            },
            409 => FaultKind::Conflict,
            _ => FaultKind::Permanent,
        };
        Fault { kind, what }
    }

    /// What GitHub said, on one line and not too long; it is shown to people.
    pub(crate) fn message(&self) -> String {
        let body: ErrorBody = serde_json::from_slice(&self.body).unwrap_or_default();
        let details = body
            .errors
            .iter()
            .filter_map(|error| error.message.clone().or(error.code.clone()));
        let words: Vec<String> = body.message.into_iter().chain(details).collect();
        let line: String = words
            .join("; ")
            .chars()
            .map(|character| if character.is_control() { ' ' } else { character })
            .take(LONGEST_MESSAGE)
            .collect();
        if line.is_empty() {
            "no message".to_owned()
        } else {
            line
        }
    }

    /// Seconds since the epoch by GitHub's clock when it answered.
    pub(crate) fn date(&self) -> Option<i64> {
        let text = self.headers.get(reqwest::header::DATE)?.to_str().ok()?;
        jiff::fmt::rfc2822::parse(text)
            .ok()
            .map(|zoned| zoned.timestamp().as_second())
    }

    fn retry_after(&self) -> Option<u64> {
        self.headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()
    }

    fn number(&self, header: &str) -> Option<i64> {
        self.headers.get(header)?.to_str().ok()?.trim().parse().ok()
    }
}

fn believed(seconds: u64) -> Millis {
    Millis::seconds(seconds.min(LONGEST_WAIT_SECONDS))
}

#[cfg(test)]
mod tests {
    use conductor_domain::fault::FaultKind;
    use conductor_domain::time::Millis;
    use reqwest::StatusCode;
    use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

    use super::Reply;

    const NOW: i64 = 1_800_000_000;

    fn kind(status: u16, headers: &[(&str, &str)], message: &str) -> FaultKind {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            map.insert(name, HeaderValue::from_str(value).unwrap());
        }
        let body = serde_json::json!({ "message": message }).to_string().into_bytes();
        let reply = Reply {
            status: StatusCode::from_u16(status).unwrap(),
            headers: map,
            body,
        };
        reply.fault("do it", NOW).kind
    }

    fn wait(seconds: u64) -> FaultKind {
        FaultKind::Transient {
            retry_after: Some(Millis::seconds(seconds)),
        }
    }

    /// GH-4: `retry-after` first, then the reset of an empty budget, then a minute.
    #[test]
    fn limits_are_told_from_refusals_and_say_how_long_to_wait() {
        let reset = (NOW + 120).to_string();
        let empty = [
            ("x-ratelimit-remaining", "0"),
            ("x-ratelimit-reset", reset.as_str()),
        ];
        assert_eq!(
            kind(403, &empty, "API rate limit exceeded for installation ID 1."),
            wait(121)
        );
        assert_eq!(kind(429, &empty, "API rate limit exceeded"), wait(121));
        let both = [("retry-after", "7"), empty[0], empty[1]];
        assert_eq!(kind(403, &both, "API rate limit exceeded"), wait(7));
        let left = [("x-ratelimit-remaining", "4000")];
        assert_eq!(
            kind(403, &left, "You have exceeded a secondary rate limit."),
            wait(60)
        );
        assert_eq!(kind(429, &left, ""), wait(60));
        assert_eq!(
            kind(403, &left, "Resource not accessible by integration"),
            FaultKind::Permanent
        );
    }

    /// GH-4: a lying or broken header must not silence us for a year.
    #[test]
    fn no_limit_is_believed_for_more_than_two_hours() {
        assert_eq!(kind(403, &[("retry-after", "99999999")], ""), wait(7200));
        let far = [
            ("x-ratelimit-remaining", "0"),
            ("x-ratelimit-reset", "9223372036854775807"),
        ];
        assert_eq!(kind(403, &far, ""), wait(7200));
        let past = [
            ("x-ratelimit-remaining", "0"),
            ("x-ratelimit-reset", "-9223372036854775808"),
        ];
        assert_eq!(kind(403, &past, ""), wait(1));
    }

    #[test]
    fn other_answers_are_final_except_those_of_a_failing_server() {
        for status in [500, 502, 503, 504, 408] {
            assert_eq!(
                kind(status, &[], ""),
                FaultKind::Transient { retry_after: None },
                "{status}"
            );
        }
        for status in [301, 307, 400, 401, 404, 405, 410, 422] {
            assert_eq!(kind(status, &[], ""), FaultKind::Permanent, "{status}");
        }
        assert_eq!(kind(409, &[], ""), FaultKind::Conflict);
    }
}
