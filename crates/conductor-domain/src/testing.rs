//! What a test run proved: the command, the exact tree, and how the process ended.
//!
//! Only a normal exit with 0 passes (S-18), and even that is shown as "command exited 0 on tree X" (S-21).
//! This module does not know what the tests test.

use serde::{Deserialize, Serialize};

use crate::artifact::Artifact;
use crate::id::CommitId;
use crate::time::Millis;

/// One run of the test command on one committed tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestRun {
    /// The commit whose tree was checked out (S-17).
    pub commit: CommitId,
    /// The tree itself.
    pub tree: CommitId,
    /// The argv.
    pub command: Vec<String>,
    /// How it ended.
    pub ending: Ending,
    /// What it printed.
    pub output: Artifact,
    /// How long it took.
    pub time: Millis,
}

/// How a test process ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "ending")]
pub enum Ending {
    /// It ended by itself.
    Exited {
        /// With this code.
        code: i32,
    },
    /// A signal ended it.
    Signalled {
        /// This one.
        signal: i32,
    },
    /// It took too long and was killed.
    TimedOut,
    /// It broke a limit and was killed.
    LimitExceeded {
        /// Which one.
        limit: String,
    },
    /// Its end was not seen.
    Lost,
    /// It was never started.
    NotRun {
        /// Why.
        reason: String,
    },
}

impl TestRun {
    /// Tells whether this counts as passed (S-18).
    pub fn has_passed(&self) -> bool {
        matches!(self.ending, Ending::Exited { code: 0 })
    }

    /// Says what was seen, and no more (S-21).
    pub fn describe(&self) -> String {
        self.ending.of(&self.command, &self.tree)
    }
}

impl Ending {
    /// Says how a command ended on a tree, and no more (S-21).
    pub fn of(&self, command: &[String], tree: &CommitId) -> String {
        let tree = tree.as_str().get(..12).unwrap_or_default();
        let ending = match self {
            Self::Exited { code } => format!("exited {code}"),
            Self::Signalled { signal } => format!("was ended by signal {signal}"),
            Self::TimedOut => "took too long and was ended".to_owned(),
            Self::LimitExceeded { limit } => format!("was ended at its limit ({limit})"),
            Self::Lost => "was lost before its end was seen".to_owned(),
            Self::NotRun { reason } => return format!("tests not run: {reason}"),
        };
        format!("`{}` {ending} on tree {tree}", command.join(" "))
    }
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited { code } => write!(f, "exited {code}"),
            Self::Signalled { signal } => write!(f, "ended by signal {signal}"),
            Self::TimedOut => f.write_str("timed out"),
            Self::LimitExceeded { limit } => write!(f, "limit exceeded: {limit}"),
            Self::Lost => f.write_str("lost"),
            Self::NotRun { reason } => write!(f, "not run: {reason}"),
        }
    }
}

/// What tests that the run added or changed did on the base (BEY-2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "red_first")]
pub enum RedFirstOutcome {
    /// They failed there, as they should.
    FailedOnBase,
    /// They passed there too, so they prove nothing.
    PassedOnBase,
    /// No test was added or changed.
    NoNewTests,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::ArtifactKind;

    /// S-18, S-21.
    #[test]
    fn only_exit_zero_passes_and_nothing_is_called_passed() {
        let endings = [
            (Ending::Exited { code: 0 }, true),
            (Ending::Exited { code: 1 }, false),
            (Ending::Signalled { signal: 9 }, false),
            (Ending::TimedOut, false),
            (
                Ending::LimitExceeded {
                    limit: "memory".into(),
                },
                false,
            ),
            (Ending::Lost, false),
            (
                Ending::NotRun {
                    reason: "no command".into(),
                },
                false,
            ),
        ];
        for (ending, passes) in endings {
            let run = TestRun {
                commit: CommitId::parse("a".repeat(40)).expect("hex"),
                tree: CommitId::parse("b".repeat(40)).expect("hex"),
                command: vec!["make".into()],
                ending: ending.clone(),
                output: Artifact::of(ArtifactKind::TestOutput, b""),
                time: Millis(1),
            };
            assert_eq!(run.has_passed(), passes, "{ending:?}");
            assert!(!run.describe().contains("passed"));
        }
    }
}
