//! How a command ends: an exit code that scripts can rely on, and for people what was attempted, what is wrong, and what
//! to do next.
//!
//! The codes are documented in `docs/cli.md`. This module does not know who prints a failure.

use std::process::ExitCode;

use conductor_domain::fault::Fault;
use conductor_web::api::Problem;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Ok,
    /// It was tried and did not work.
    Failed,
    /// It was asked wrongly.
    Usage,
    /// There is no server.
    NoServer,
    /// Conductor said no.
    Refused,
    /// A person must act before it can go on.
    NeedsHuman,
    /// There is a server, and it has not answered in time; ends with 1, as whatever was tried and did not work.
    NoAnswer,
    /// What is there differs from what is wanted, and that was to be strict; ends with 3, as skills have it everywhere.
    Differs,
}

impl Exit {
    /// The worse of two ends of the same command: whoever has no server can do least, whoever was refused has lost nothing.
    pub(crate) fn worse(self, other: Self) -> Self {
        let badness = |exit: Self| match exit {
            Self::Ok => 0,
            Self::NeedsHuman => 1,
            Self::Differs => 2,
            Self::Refused => 3,
            Self::Usage => 4,
            Self::Failed => 5,
            Self::NoAnswer => 6,
            Self::NoServer => 7,
        };
        if badness(other) > badness(self) {
            other
        } else {
            self
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Ok => 0_u8,
            Exit::Failed | Exit::NoAnswer => 1,
            Exit::Usage => 2,
            Exit::NoServer | Exit::Differs => 3,
            Exit::Refused => 4,
            Exit::NeedsHuman => 5,
        })
    }
}

/// Why a command did not end well.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) exit: Exit,
    /// The stable code; absent for what nobody but us can act on.
    pub(crate) code: Option<String>,
    /// What was attempted and what is wrong.
    pub(crate) what: String,
    /// What to do next.
    pub(crate) hint: Option<String>,
}

impl Failure {
    /// Something was tried and did not work.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self {
            exit: Exit::Failed,
            code: None,
            what: what.into(),
            hint: None,
        }
    }

    /// A failure that has a page.
    pub(crate) fn coded(code: &str, what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            exit: Exit::Failed,
            code: Some(code.to_owned()),
            what: what.into(),
            hint: Some(hint.into()),
        }
    }

    /// The same with another exit code.
    pub(crate) fn exiting(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    /// Wraps what went wrong, with all its causes, into what was attempted.
    pub(crate) fn because(attempted: impl std::fmt::Display, error: &dyn std::error::Error) -> Self {
        Self::new(format!("{attempted}: {}", chain(error)))
    }
}

/// An error with all its causes, on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        conductor_web::Error::Fault(fault).into()
    }
}

impl From<conductor_web::Error> for Failure {
    fn from(error: conductor_web::Error) -> Self {
        error.problem().into()
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        let exit = match problem.status {
            403 | 404 | 409 => Exit::Refused,
            422 => Exit::Usage,
            _ => Exit::Failed,
        };
        Self {
            exit,
            code: Some(problem.code),
            what: problem.detail,
            hint: Some(problem.hint),
        }
    }
}

#[cfg(test)]
mod tests {
    use conductor_domain::id::ProjectId;
    use conductor_domain::refusal::Refusal;
    use conductor_domain::staff::Rank;

    use super::*;

    #[test]
    fn the_worse_end_counts_whichever_came_first() {
        let order = [
            Exit::Ok,
            Exit::NeedsHuman,
            Exit::Differs,
            Exit::Refused,
            Exit::Usage,
            Exit::Failed,
            Exit::NoAnswer,
            Exit::NoServer,
        ];
        for (n, better) in order.into_iter().enumerate() {
            for worse in order.into_iter().skip(n) {
                assert_eq!(better.worse(worse), worse);
                assert_eq!(worse.worse(better), worse);
            }
        }
    }

    #[test]
    fn refusals_faults_and_nonsense_have_their_own_exit_codes() {
        let exit = |error: conductor_web::Error| Failure::from(error).exit;
        assert_eq!(exit(Refusal::NoSuchRun.into()), Exit::Refused);
        assert_eq!(exit(Refusal::AlreadyPaused.into()), Exit::Refused);
        let forbidden = conductor_web::Error::Forbidden {
            needed: Rank::Admin,
            rank: Rank::Viewer,
        };
        assert_eq!(exit(forbidden), Exit::Refused);
        let project = ProjectId::parse("acme").expect("a name");
        assert_eq!(
            exit(conductor_web::Error::OtherProject { project }),
            Exit::Refused
        );
        assert_eq!(
            exit(conductor_web::Error::Invalid { what: "x".into() }),
            Exit::Usage
        );
        assert_eq!(exit(Fault::transient("x").into()), Exit::Failed);
        assert_eq!(exit(conductor_web::Error::NoToken), Exit::Failed);
    }
}
