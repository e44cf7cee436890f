//! Everything that the door answers instead of doing what was asked: status, stable code, sentence and hint.
//!
//! A refusal is 409, what is unknown 404, what cannot be understood 422, a fault of the world 503. This module does not
//! know which handler failed.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use conductor_domain::fault::{Fault, FaultKind};
use conductor_domain::forge::IssueProblem;
use conductor_domain::id::{IssueNumber, ProjectId, RunId};
use conductor_domain::instance::InstanceRefusal;
use conductor_domain::refusal::Refusal;
use conductor_domain::staff::{Rank, StaffRefusal};
use conductor_domain::time::Millis;
use conductor_port::inbox::{Seen, SubmitError};
use conductor_port::known;

use crate::api::Problem;

/// Why a request was not answered as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The token is missing or wrong.
    #[error("this request does not carry the server's token")]
    NoToken,
    /// The request was meant for another server (S-55).
    #[error("`{given}` is not a host or origin of this server")]
    WrongHost {
        /// What the request names.
        given: String,
    },
    /// The body is too large.
    #[error("the body is larger than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// The body did not end in time.
    #[error("the body did not arrive in time")]
    TooSlow,
    /// The request cannot be understood.
    #[error("{what}")]
    Invalid {
        /// What is wrong with it.
        what: String,
    },
    /// There is no such thing here.
    #[error("there is no {what}")]
    NotFound {
        /// What was asked for.
        what: String,
    },
    /// The address does not take this method.
    #[error("this address does not take this method")]
    WrongMethod,
    /// A run cannot be started.
    #[error(transparent)]
    CannotStart(#[from] StartRefusal),
    /// The run machine said no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The instance said no.
    #[error(transparent)]
    InstanceRefused(#[from] InstanceRefusal),
    /// A delivery is not signed with our secret.
    #[error("the delivery is not signed with this server's webhook secret")]
    BadSignature,
    /// No webhook secret was configured.
    #[error("this server takes no webhooks")]
    NoWebhooks,
    /// Too many deliveries are being read at once (S-54).
    #[error("too many deliveries are being read at once")]
    Busy,
    /// A form was not posted by one of our pages (SEC-7).
    #[error("this form was not sent by one of Conductor's own pages")]
    ForeignForm,
    /// Whoever asks may not (SEC-7).
    #[error("this needs the rank `{needed}`, and yours is `{rank}`")]
    Forbidden {
        /// Who may.
        needed: Rank,
        /// What whoever asks is.
        rank: Rank,
    },
    /// The token that was sent is for one project, and this is not of it alone (SEC-7).
    #[error("this token is for the project `{project}` alone, and this concerns more")]
    OtherProject {
        /// The project.
        project: ProjectId,
    },
    /// Too many attempts to come in failed (SEC-7).
    #[error("too many attempts to sign in failed")]
    TooMany {
        /// When another one is heard.
        retry_after: Millis,
    },
    /// What cannot be taken back was not confirmed.
    #[error("this needs `{expected}` typed as it stands")]
    Unconfirmed {
        /// What must be typed.
        expected: String,
    },
    /// What a page showed is not so any more.
    #[error("the run was {shown} when this page was loaded, and is {now} by now")]
    Stale {
        /// The phase that the page showed.
        shown: String,
        /// The phase that it is in.
        now: String,
    },
    /// What a request was meant for has changed.
    #[error("this is not what it was when the tag of `If-Match` was given")]
    Changed,
    /// A plan is not to be approved together with others.
    #[error("this plan is not of low risk: {because}")]
    NotOfLowRisk {
        /// Why.
        because: String,
    },
    /// The same request is still being done.
    #[error("the first request with this idempotency key is still being done")]
    UnderWay,
    /// The world did not do it.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// Why a run cannot be started, seen before it exists.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartRefusal {
    /// The repository is not registered.
    #[error("`{0}` is not registered")]
    RepoNotRegistered(String),
    /// The forge knows no such repository, or does not show it to us.
    #[error("the forge knows no repository `{0}`, or does not show it to this app")]
    RepoUnknown(String),
    /// The issue is closed.
    #[error("issue {0} is closed")]
    IssueClosed(IssueNumber),
    /// The issue cannot be worked on.
    #[error("issue {number} cannot be worked on: {problem}")]
    IssueUnavailable {
        /// Which.
        number: IssueNumber,
        /// Why.
        problem: IssueProblem,
    },
    /// One issue, one run (RUN-5).
    #[error("issue {number} is being worked on by run {run}")]
    IssueHasRun {
        /// Which.
        number: IssueNumber,
        /// By which run.
        run: RunId,
    },
    /// The server was started without agents.
    #[error("this server was started without agents")]
    NoAgents,
}

impl StartRefusal {
    /// The stable code; a page in `docs/error/` explains it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::RepoNotRegistered(_) => "CDR0305",
            Self::RepoUnknown(_) => "CDR0306",
            Self::IssueClosed(_) => "CDR0307",
            Self::IssueUnavailable { problem, .. } => match problem {
                IssueProblem::Deleted => "CDR0308",
                IssueProblem::NotFound => "CDR0309",
                IssueProblem::Moved => "CDR0310",
                IssueProblem::IsPullRequest => "CDR0311",
            },
            Self::IssueHasRun { .. } => "CDR0312",
            Self::NoAgents => "CDR0318",
        }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::RepoNotRegistered(_) => {
                "`conductor repo list` shows the repositories; `conductor repo add` registers one"
            }
            Self::RepoUnknown(_) => "check the spelling, and that the app is installed on the repository",
            Self::IssueClosed(_) => "reopen the issue, or choose another",
            Self::IssueUnavailable { problem, .. } => match problem {
                IssueProblem::Deleted => "a deleted issue cannot be brought back; open a new one",
                IssueProblem::NotFound => "check the number",
                IssueProblem::Moved => "start the run in the repository that the issue was moved to",
                IssueProblem::IsPullRequest => "give the number of an issue",
            },
            Self::IssueHasRun { .. } => "watch that run, or cancel it first",
            Self::NoAgents => "start the server with --agents scripted --scenario FILE",
        }
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::RepoNotRegistered(_)
            | Self::RepoUnknown(_)
            | Self::IssueUnavailable {
                problem: IssueProblem::NotFound,
                ..
            } => StatusCode::NOT_FOUND,
            Self::IssueClosed(_)
            | Self::IssueUnavailable { .. }
            | Self::IssueHasRun { .. }
            | Self::NoAgents => StatusCode::CONFLICT,
        }
    }
}

impl Error {
    /// The stable code; a page in `docs/error/` explains it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoToken => "CDR0301",
            Self::WrongHost { .. } => "CDR0302",
            Self::TooLarge { .. } => "CDR0303",
            Self::TooSlow => "CDR0328",
            Self::Invalid { .. } => "CDR0304",
            Self::NotFound { .. } => "CDR0314",
            Self::WrongMethod => "CDR0317",
            Self::CannotStart(refusal) => refusal.code(),
            Self::Refused(refusal) => refusal.code(),
            Self::InstanceRefused(refusal) => refusal.code(),
            Self::BadSignature => "CDR0315",
            Self::NoWebhooks => "CDR0316",
            Self::Busy => "CDR0319",
            Self::ForeignForm => "CDR0320",
            Self::Unconfirmed { .. } => "CDR0321",
            Self::Stale { .. } => "CDR0322",
            Self::Changed => "CDR0323",
            Self::UnderWay => "CDR0324",
            Self::Forbidden { .. } => "CDR0325",
            Self::OtherProject { .. } => "CDR0331",
            Self::TooMany { .. } => "CDR0326",
            Self::NotOfLowRisk { .. } => "CDR0330",
            Self::Fault(fault) => Cause::of(fault).code(),
        }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoToken => {
                "send `Authorization: Bearer <token>` with the token from server.json in the data directory"
            }
            Self::WrongHost { .. } => {
                "use the address in server.json, or name the public one with --public-url"
            }
            Self::TooLarge { .. } => "send less",
            Self::TooSlow => "send it again, all at once",
            Self::Invalid { .. } => {
                "the command's `--help`, or docs/api.md for programs, says what is expected"
            }
            Self::NotFound { .. } => "check the spelling; what is not there yet may come",
            Self::WrongMethod => "docs/api.md lists the addresses",
            Self::CannotStart(refusal) => refusal.hint(),
            Self::Refused(refusal) => refusal.hint(),
            Self::InstanceRefused(refusal) => refusal.hint(),
            Self::BadSignature => "the forge and --webhook-secret-file must hold the same secret",
            Self::NoWebhooks => "start the server with --webhook-secret-file FILE",
            Self::Busy => "try again in a moment",
            Self::ForeignForm => "open the page at Conductor's own address and send the form from there",
            Self::Unconfirmed { .. } => {
                "type it exactly so: in the field beside the button, or after `--confirm`"
            }
            Self::Stale { .. } | Self::Changed => "look at the run again and decide on what is there now",
            Self::Forbidden { .. } => {
                "ask somebody who may; `conductor operator rank` changes what you may do"
            }
            Self::OtherProject { .. } => {
                "name one of its runs, or use a token without a project: `conductor token issue`"
            }
            Self::TooMany { .. } => "wait a quarter of an hour, or let an admin set a new password",
            Self::NotOfLowRisk { .. } => "read it by itself and answer it with `conductor run approve`",
            Self::UnderWay => "ask again with the same key in a moment",
            Self::Fault(fault) => Cause::of(fault).hint(),
        }
    }

    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::NoToken | Self::BadSignature => StatusCode::UNAUTHORIZED,
            Self::WrongHost { .. } => StatusCode::MISDIRECTED_REQUEST,
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Invalid { .. } | Self::Unconfirmed { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            Self::NotFound { .. } | Self::NoWebhooks | Self::Refused(Refusal::NoSuchRun) => {
                StatusCode::NOT_FOUND
            }
            Self::WrongMethod => StatusCode::METHOD_NOT_ALLOWED,
            Self::ForeignForm | Self::Forbidden { .. } | Self::OtherProject { .. } => StatusCode::FORBIDDEN,
            Self::TooMany { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::CannotStart(refusal) => refusal.status(),
            Self::Refused(_) | Self::Stale { .. } | Self::NotOfLowRisk { .. } | Self::UnderWay => {
                StatusCode::CONFLICT
            }
            Self::Changed => StatusCode::PRECONDITION_FAILED,
            Self::InstanceRefused(refusal) => match refusal {
                InstanceRefusal::NoSuchProject(_)
                | InstanceRefusal::NoSuchRepo(_)
                | InstanceRefusal::NotGranted { .. } => StatusCode::NOT_FOUND,
                InstanceRefusal::NoTestCommand
                | InstanceRefusal::NoSlot
                | InstanceRefusal::PolicyTooLong
                | InstanceRefusal::PolicyInvalid { .. } => StatusCode::UNPROCESSABLE_ENTITY,
                InstanceRefusal::ProjectExists(_)
                | InstanceRefusal::RepoElsewhere { .. }
                | InstanceRefusal::SwitchStands(_) => StatusCode::CONFLICT,
                InstanceRefusal::Staff(refusal) => match refusal {
                    StaffRefusal::NoSuchOperator(_) | StaffRefusal::NoSuchToken(_) => StatusCode::NOT_FOUND,
                    StaffRefusal::OperatorExists(_) | StaffRefusal::TokenExists(_) => StatusCode::CONFLICT,
                },
            },
            Self::Busy | Self::Fault(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The answer's words.
    pub fn problem(&self) -> Problem {
        let status = self.status();
        Problem {
            kind: format!("urn:conductor:error:{}", self.code()),
            title: status.canonical_reason().unwrap_or("error").to_owned(),
            status: status.as_u16(),
            code: self.code().to_owned(),
            detail: self.to_string(),
            hint: self.hint().to_owned(),
        }
    }
}

/// What a fault comes from, as far as a person can act on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    NoRoom,
    Locked,
    NoServer,
    NoConnection,
    DamagedRun,
    DamagedInstance,
    Damaged,
    Passing,
    Moved,
    Other,
}

impl Cause {
    fn of(fault: &Fault) -> Self {
        let says = |words: &[&str]| words.iter().any(|word| fault.what.contains(word));
        if says(&[known::NO_ROOM, known::DISK_FULL]) {
            Self::NoRoom
        } else if says(&[known::LOCKED]) {
            Self::Locked
        } else if says(&[known::NO_SERVER]) {
            Self::NoServer
        } else if says(&[known::NO_CONNECTION]) {
            Self::NoConnection
        } else if says(&[known::RUN_UNREADABLE, known::RUN_DAMAGED]) {
            Self::DamagedRun
        } else if says(&[known::INSTANCE_UNREADABLE, known::INSTANCE_DAMAGED]) {
            Self::DamagedInstance
        } else if says(&[known::DAMAGED, known::NOT_A_DATABASE, known::NOT_KEPT]) {
            Self::Damaged
        } else {
            match fault.kind {
                FaultKind::Transient { .. } | FaultKind::EnvironmentLost => Self::Passing,
                FaultKind::Conflict => Self::Moved,
                FaultKind::Refused | FaultKind::Permanent => Self::Other,
            }
        }
    }

    fn code(self) -> &'static str {
        match self {
            Self::NoRoom => "CDR0620",
            Self::Locked => "CDR0607",
            Self::NoServer => "CDR0610",
            Self::NoConnection => "CDR0617",
            Self::DamagedRun => "CDR0621",
            Self::Damaged => "CDR0606",
            Self::DamagedInstance => "CDR0622",
            Self::Passing | Self::Moved | Self::Other => "CDR0313",
        }
    }

    fn hint(self) -> &'static str {
        match self {
            Self::NoRoom => {
                "make room on the disk that holds the data directory; what waits goes on by itself"
            }
            Self::Locked => "another program holds the database; end it, or try again when it has finished",
            Self::NoServer => {
                "see that the database server runs and can be reached from here; what waits goes on by itself"
            }
            Self::NoConnection => {
                "every `conductor serve` takes ten connections: raise `max_connections` of the database server, or end what uses them; what waits goes on by itself"
            }
            Self::DamagedRun => {
                "stop the server, then `conductor projections rebuild`; if the run stays damaged, `conductor audit verify` names the record"
            }
            Self::Damaged => {
                "`conductor audit verify` names what is damaged; bring back a copy of the database"
            }
            Self::DamagedInstance => {
                "`conductor audit verify` names what is damaged; where only the view is, stop the server, then `conductor projections rebuild`"
            }
            Self::Passing => "try again in a moment",
            Self::Moved => "look again, then repeat",
            Self::Other => {
                "a repeat will not help; `conductor audit verify` checks the log, `conductor doctor` this machine"
            }
        }
    }
}

impl From<SubmitError> for Error {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::Refused(refusal) => Self::Refused(refusal),
            SubmitError::InstanceRefused(refusal) => Self::InstanceRefused(refusal),
            SubmitError::IssueHasRun { number, run } => StartRefusal::IssueHasRun { number, run }.into(),
            SubmitError::Stale {
                seen: Seen::Phase(seen),
                now,
            } => Self::Stale {
                shown: seen.to_string().replace('_', " "),
                now: now.to_string().replace('_', " "),
            },
            SubmitError::Stale {
                seen: Seen::Anything | Seen::Record(_),
                now: _,
            } => Self::Changed,
            SubmitError::Fault(fault) => Self::Fault(fault),
        }
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        if let Self::Fault(fault) = &self {
            tracing::warn!(what = %fault.what, "a request met a fault");
        }
        let body = serde_json::to_vec(&self.problem()).expect("a problem holds strings and a number");
        let mut response = (self.status(), body).into_response();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        match &self {
            Self::NoToken => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Self::TooMany { retry_after: length }
            | Self::Fault(Fault {
                kind: FaultKind::Transient {
                    retry_after: Some(length),
                },
                ..
            }) => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from(length.0.div_ceil(1000)));
            }
            Self::WrongHost { .. }
            | Self::TooLarge { .. }
            | Self::TooSlow
            | Self::Invalid { .. }
            | Self::NotFound { .. }
            | Self::WrongMethod
            | Self::CannotStart(_)
            | Self::Refused(_)
            | Self::InstanceRefused(_)
            | Self::BadSignature
            | Self::NoWebhooks
            | Self::Busy
            | Self::ForeignForm
            | Self::Forbidden { .. }
            | Self::OtherProject { .. }
            | Self::Unconfirmed { .. }
            | Self::Stale { .. }
            | Self::Changed
            | Self::NotOfLowRisk { .. }
            | Self::UnderWay
            | Self::Fault(_) => {}
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What helps against a full disk does not help against a damaged file; words that anybody could say mean neither.
    #[test]
    fn the_hint_of_a_fault_follows_what_it_says() {
        let said = |words: &str| Fault::permanent(format!("keep: {words}: x"));
        for (fault, code, hint) in [
            (said(known::NO_ROOM), "CDR0620", "make room"),
            (said(known::DISK_FULL), "CDR0620", "make room"),
            (said(known::LOCKED), "CDR0607", "another program holds"),
            (said(known::NO_SERVER), "CDR0610", "database server runs"),
            (said(known::NO_CONNECTION), "CDR0617", "max_connections"),
            (said(known::DAMAGED), "CDR0606", "audit verify"),
            (said(known::NOT_A_DATABASE), "CDR0606", "audit verify"),
            (said(known::NOT_KEPT), "CDR0606", "audit verify"),
            (said(known::RUN_UNREADABLE), "CDR0621", "projections rebuild"),
            (said(known::RUN_DAMAGED), "CDR0621", "audit verify"),
            (said(known::INSTANCE_UNREADABLE), "CDR0622", "projections rebuild"),
            (said(known::INSTANCE_DAMAGED), "CDR0622", "audit verify"),
            (
                Fault::transient("could not read acme/projection-tool#7: GitHub answered 502"),
                "CDR0313",
                "try again in a moment",
            ),
            (
                Fault::permanent("GitHub answered 403: this repository is locked; its disk is full"),
                "CDR0313",
                "will not help",
            ),
            (
                Fault::transient("the forge answered 502"),
                "CDR0313",
                "try again in a moment",
            ),
            (Fault::conflict("moved"), "CDR0313", "look again"),
            (Fault::permanent("anything else"), "CDR0313", "will not help"),
        ] {
            let error = Error::from(fault);
            assert!(error.hint().contains(hint), "{error}: {}", error.hint());
            assert_eq!(error.code(), code, "{error}");
        }
    }
}
