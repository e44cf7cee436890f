//! Checks webhook deliveries and reads the little that a hint needs (GH-2, S-52).
//!
//! The signature covers the body alone: event name and delivery id are claims, so a hint never causes more
//! than a look. Bodies are parsed only after their signature held. It does not know what a hint leads to.

use conductor_domain::forge::NoticeSubject;
use conductor_domain::id::{IssueNumber, PullRequestNumber, RepoId};
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use sha2::{Digest, Sha256};

/// GitHub never sends more.
pub const LARGEST_BODY: usize = 25 * 1024 * 1024;

/// The headers of a delivery that matter, as received.
#[derive(Debug, Clone, Copy, Default)]
pub struct Headers<'a> {
    /// `X-GitHub-Event`.
    pub event: Option<&'a str>,
    /// `X-GitHub-Delivery`.
    pub delivery: Option<&'a str>,
    /// `X-Hub-Signature-256`.
    pub signature: Option<&'a str>,
}

/// Something may have changed; look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    /// The delivery's GUID; the same for a redelivery, and not covered by the signature.
    pub delivery: String,
    /// SHA-256 of the body in hex; what a replay under another GUID is recognised by (S-52).
    pub body_digest: String,
    /// The event's name.
    pub event: String,
    /// The repository's numeric id (S-53).
    pub repo: RepoId,
    /// What it is about; a check may concern several pull requests, or none that GitHub names.
    pub subjects: Vec<NoticeSubject>,
    /// The branch that was pushed to.
    pub pushed_branch: Option<String>,
}

/// Why a delivery is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    #[error("the delivery is larger than any that GitHub sends")]
    TooLarge,
    #[error("the delivery is not signed")]
    Unsigned,
    #[error("the delivery's signature does not match")]
    Forged,
    #[error("the delivery lacks its event or its id")]
    Incomplete,
}

/// Checks a delivery. `None` is a sound delivery that says nothing we listen to, or nothing we understand.
pub fn receive(secret: &SecretString, headers: Headers<'_>, body: &[u8]) -> Result<Option<Hint>, Rejected> {
    if body.len() > LARGEST_BODY {
        return Err(Rejected::TooLarge);
    }
    verify(secret, headers.signature, body)?;
    let (Some(event), Some(delivery)) = (headers.event, headers.delivery) else {
        return Err(Rejected::Incomplete);
    };
    let is_token = |text: &str, longest: usize| {
        !text.is_empty()
            && text.len() <= longest
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    if !is_token(event, 64) || !is_token(delivery, 128) {
        return Err(Rejected::Incomplete);
    }
    let Ok(payload) = serde_json::from_slice::<Payload>(body) else {
        return Ok(None);
    };
    let Some(repository) = payload.repository else {
        return Ok(None);
    };
    let pushed_branch = payload
        .git_ref
        .as_deref()
        .and_then(|name| name.strip_prefix("refs/heads/"));
    let subjects = match event {
        "issues" => issue(payload.issue),
        "issue_comment" => match payload.issue {
            Some(Numbered {
                number,
                pull_request: Some(_),
            }) => vec![pull_request(number)],
            other => issue(other),
        },
        "pull_request" | "pull_request_review" => payload
            .pull_request
            .into_iter()
            .map(|it| pull_request(it.number))
            .collect(),
        "check_suite" => checked(payload.check_suite),
        "check_run" => checked(payload.check_run),
        "push" if pushed_branch.is_some() => vec![NoticeSubject::Base],
        _ => return Ok(None),
    };
    Ok(Some(Hint {
        delivery: delivery.to_owned(),
        body_digest: hex::encode(Sha256::digest(body)),
        event: event.to_owned(),
        repo: RepoId(repository.id),
        subjects,
        pushed_branch: pushed_branch.map(str::to_owned),
    }))
}

/// Compares in constant time: how long it takes tells nothing about how much of a guess was right.
fn verify(secret: &SecretString, signature: Option<&str>, body: &[u8]) -> Result<(), Rejected> {
    let signature = signature
        .and_then(|text| text.strip_prefix("sha256="))
        .ok_or(Rejected::Unsigned)?;
    let claimed = hex::decode(signature).map_err(|_| Rejected::Forged)?;
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.expose_secret().as_bytes())
        .expect("HMAC takes a key of any length");
    mac.update(body);
    mac.verify_slice(&claimed).map_err(|_| Rejected::Forged)
}

#[derive(Deserialize)]
struct Payload {
    repository: Option<Identified>,
    issue: Option<Numbered>,
    pull_request: Option<Numbered>,
    check_suite: Option<Checked>,
    check_run: Option<Checked>,
    #[serde(rename = "ref")]
    git_ref: Option<String>,
}

#[derive(Deserialize)]
struct Identified {
    id: u64,
}

#[derive(Deserialize)]
struct Numbered {
    number: u64,
    pull_request: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Checked {
    #[serde(default)]
    pull_requests: Vec<Numbered>,
}

fn issue(issue: Option<Numbered>) -> Vec<NoticeSubject> {
    issue
        .into_iter()
        .map(|it| NoticeSubject::Issue {
            number: IssueNumber(it.number),
        })
        .collect()
}

fn pull_request(number: u64) -> NoticeSubject {
    NoticeSubject::PullRequest {
        number: PullRequestNumber(number),
    }
}

fn checked(check: Option<Checked>) -> Vec<NoticeSubject> {
    check
        .into_iter()
        .flat_map(|it| it.pull_requests)
        .map(|it| pull_request(it.number))
        .collect()
}
