//! What scripted agents do, read strictly from a scenario file; the format is documented in `docs/scenarios.md`.
//!
//! A scenario holds parts per purpose; the n-th invocation of a purpose plays its n-th part. The number comes with the
//! invocation, so which part is played depends on no memory and survives any restart.
//! This module does not know how a step is carried out.

mod read;

use conductor_domain::artifact::ArtifactKind;
use conductor_domain::fault::FaultKind;
use conductor_domain::invocation::Purpose;
use conductor_domain::plan::{PlanDraft, ReviewDraft, TestReportDraft};
use conductor_domain::time::Millis;
use conductor_port::agent::GithubCall;

/// Everything that scripted agents do in one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenario {
    exhausted: Exhausted,
    plan: Vec<Part>,
    review_plan: Vec<Part>,
    implement: Vec<Part>,
    interpret_tests: Vec<Part>,
    review_implementation: Vec<Part>,
}

/// What happens when a purpose is invoked more often than it has parts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Exhausted {
    /// The last part is played again.
    #[default]
    Repeat,
    /// The run is stopped by a fault.
    Fail,
}

/// What one invocation does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    /// What kinds of things it must be given to read, in this order and no others; anything, if absent.
    pub(crate) context: Option<Vec<ArtifactKind>>,
    /// What must stand in the prompt.
    pub(crate) prompt_contains: Vec<String>,
    /// What must not stand in the prompt.
    pub(crate) prompt_lacks: Vec<String>,
    /// The tokens that it claims to have used.
    pub(crate) tokens: u64,
    /// Whether it goes on although it was told to stop.
    pub(crate) ignores_stop: bool,
    /// What it does, in this order.
    pub(crate) steps: Vec<Step>,
}

/// One thing that an agent does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    /// Where it stands in the file.
    pub(crate) line: usize,
    /// How often it is done.
    pub(crate) times: u32,
    /// What is done.
    pub(crate) action: Action,
}

/// What an agent can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Calls a tool.
    Call { call: Call, expect: Expect },
    /// Says something to whoever watches.
    Say(String),
    /// Does nothing for a while.
    Sleep(Millis),
    /// Ends with an error.
    Crash(String),
    /// Never ends by itself.
    Hang,
    /// Ends, whatever was to follow.
    Exit,
    /// Meets the provider's limit, until it is over.
    ProviderLimit { account: String, length: Millis },
    /// Cannot be run at all.
    Fault { kind: FaultKind, what: String },
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Call {
    View {
        path: String,
    },
    ListFiles {
        path: String,
    },
    CreateFile {
        path: String,
        content: String,
    },
    StrReplace {
        path: String,
        old: String,
        new: String,
    },
    /// Creates a file or replaces all of it, by the three tools above.
    Write {
        path: String,
        content: String,
    },
    Bash {
        command: String,
    },
    Github(GithubCall),
    SubmitPlan(PlanDraft),
    SubmitReview(ReviewDraft),
    SubmitTestReport(TestReportDraft),
    AskHuman {
        question: String,
    },
}

/// What a tool must answer; anything else is a fault of the scenario.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Expect {
    /// It was done.
    Done,
    /// It was done, and the output holds this text.
    Output(String),
    /// It was done, and the output does not hold this text.
    OutputLacks(String),
    /// It was refused for a reason that holds this text.
    Refused(String),
    /// The agent is told to stop.
    Stop,
    /// Whatever comes.
    Anything,
}

/// Why a file is not a scenario.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct Invalid {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong there.
    pub message: String,
}

impl Scenario {
    /// Reads a scenario file; what is not understood is refused, never skipped.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        read::read(text)
    }

    /// Finds what the `attempt`-th invocation for `purpose` does, counted from 1 over the whole run.
    pub(crate) fn part(&self, purpose: Purpose, attempt: u32) -> Option<&Part> {
        let parts = self.parts(purpose);
        let index = usize::try_from(attempt.saturating_sub(1)).unwrap_or(usize::MAX);
        parts.get(index).or_else(|| match self.exhausted {
            Exhausted::Repeat => parts.last(),
            Exhausted::Fail => None,
        })
    }

    fn parts(&self, purpose: Purpose) -> &[Part] {
        match purpose {
            Purpose::Plan => &self.plan,
            Purpose::ReviewPlan => &self.review_plan,
            Purpose::Implement => &self.implement,
            Purpose::InterpretTests => &self.interpret_tests,
            Purpose::ReviewImplementation => &self.review_implementation,
        }
    }
}
