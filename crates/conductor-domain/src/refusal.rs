//! Answers that say no: each has a stable code, a sentence, and a hint about what to do instead.
//!
//! A refusal changes nothing and is not recorded in the run. This module does not know how it is shown.

use crate::digest::Digest;
use crate::gate::GateKind;
use crate::hold::HoldKind;
use crate::phase::PhaseName;

/// Why an input was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such run.
    #[error("there is no such run")]
    NoSuchRun,
    /// The id is taken.
    #[error("this run exists already")]
    RunExists,
    /// The phase does not allow it.
    #[error("the run is {phase}, and {attempted} is not possible then")]
    WrongPhase {
        /// Where the run stands.
        phase: PhaseName,
        /// What was attempted.
        attempted: &'static str,
    },
    /// The run has ended.
    #[error("the run is over ({phase})")]
    RunIsOver {
        /// How it ended.
        phase: PhaseName,
    },
    /// The run stands still, and this would move it.
    #[error("the run is paused ({})", .holds.iter().copied().map(hold_name).collect::<Vec<_>>().join(", "))]
    RunIsPaused {
        /// What holds it.
        holds: Vec<HoldKind>,
    },
    /// There is no such hold.
    #[error("the run is not held for that reason")]
    NotHeld,
    /// It is paused already.
    #[error("the run is paused already")]
    AlreadyPaused,
    /// What was looked at is not what stands there now (BEY-1).
    #[error("what you looked at ({}) has changed; it is now {}", .seen.short(), .current.short())]
    ApprovalIsStale {
        /// Which gate.
        gate: GateKind,
        /// What the answer names.
        seen: Digest,
        /// What stands there.
        current: Digest,
    },
    /// No such question is open.
    #[error("no such question is open")]
    NoSuchQuestion,
    /// A comment is required and missing.
    #[error("a comment is required")]
    CommentRequired,
    /// A policy forbids it.
    #[error("denied by policy: {reason}")]
    DeniedByPolicy {
        /// Which and why.
        reason: String,
    },
    /// All agent execution is switched off.
    #[error("the kill switch is on")]
    KillSwitchIsOn,
    /// No test command was given.
    #[error("the repository has no test command")]
    NoTestCommand,
    /// The effect is not one that the run waits for.
    #[error("the run does not wait for this effect")]
    UnknownEffect,
    /// The report does not answer the effect.
    #[error("the report does not answer a {effect} effect")]
    ReportDoesNotFit {
        /// What was asked.
        effect: &'static str,
    },
    /// The invocation is not running.
    #[error("the invocation is not running")]
    InvocationIsOver,
    /// The run does not wait for this time, or it has not come.
    #[error("the run does not wait for this time")]
    NotDue,
    /// Nobody could judge the override later, or it would be kept with a secret in it.
    #[error("the justification {why}")]
    JustificationUnfit {
        /// What is wrong with it.
        why: &'static str,
    },
    /// An override ends, and soon.
    #[error("an override must end in the future, at most 24 hours from now")]
    ReliefEndUnfit,
    /// No such override is in force.
    #[error("the run has no such override in force")]
    NoSuchRelief,
    /// What is to be approved was cut when it was kept (S-49).
    #[error("what is to be approved is longer than can be shown whole")]
    NotShownWhole,
}

fn hold_name(kind: HoldKind) -> &'static str {
    match kind {
        HoldKind::Operator => "operator",
        HoldKind::Question => "question",
        HoldKind::ProviderLimit => "provider limit",
        HoldKind::Failure => "failure",
        HoldKind::Policy => "policy",
        HoldKind::KillSwitch => "kill switch",
    }
}

impl Refusal {
    /// The stable code; a page in `docs/error/` explains it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoSuchRun => "CDR0101",
            Self::RunExists => "CDR0102",
            Self::WrongPhase { .. } => "CDR0103",
            Self::RunIsOver { .. } => "CDR0104",
            Self::RunIsPaused { .. } => "CDR0105",
            Self::NotHeld => "CDR0106",
            Self::AlreadyPaused => "CDR0107",
            Self::ApprovalIsStale { .. } => "CDR0108",
            Self::NoSuchQuestion => "CDR0109",
            Self::CommentRequired => "CDR0110",
            Self::DeniedByPolicy { .. } => "CDR0111",
            Self::KillSwitchIsOn => "CDR0112",
            Self::NoTestCommand => "CDR0113",
            Self::UnknownEffect => "CDR0114",
            Self::ReportDoesNotFit { .. } => "CDR0115",
            Self::InvocationIsOver => "CDR0116",
            Self::NotDue => "CDR0117",
            Self::JustificationUnfit { .. } => "CDR0118",
            Self::ReliefEndUnfit => "CDR0119",
            Self::NoSuchRelief => "CDR0120",
            Self::NotShownWhole => "CDR0121",
        }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoSuchRun => "`conductor run list` shows the runs there are",
            Self::RunExists => "start it again to get a new id",
            Self::WrongPhase { .. } => {
                "`conductor run show <id>` shows where the run stands and what it waits for"
            }
            Self::RunIsOver { .. } => "start a new run with `conductor run start`",
            Self::RunIsPaused { .. } => {
                "`conductor run show <id>` shows what holds it; resume, answer or retry releases each hold"
            }
            Self::NotHeld => "`conductor run show <id>` shows what holds the run",
            Self::AlreadyPaused => "`conductor run resume <id>` lets it go on",
            Self::ApprovalIsStale { .. } => {
                "look at it again with `conductor approvals` and decide on what is there now"
            }
            Self::NoSuchQuestion => "`conductor approvals` lists open questions",
            Self::CommentRequired => "say what should change with --comment",
            Self::DeniedByPolicy { .. } => "ask whoever keeps the policy",
            Self::KillSwitchIsOn => "turn it off first",
            Self::NoTestCommand => "give one with `conductor repo add … --test '<command>'`",
            Self::JustificationUnfit { .. } => {
                "say in a sentence why this call is right, without any secret: it is kept and shown"
            }
            Self::ReliefEndUnfit => {
                "give it minutes with --for; what must last is a policy (`conductor policy set`)"
            }
            Self::NoSuchRelief => "`conductor policy overrides <run>` lists them",
            Self::NotShownWhole => "send it back with `conductor run revise`, or cancel the run",
            Self::UnknownEffect | Self::ReportDoesNotFit { .. } | Self::InvocationIsOver | Self::NotDue => {
                "this comes from inside Conductor; if you see it, please report it"
            }
        }
    }
}
