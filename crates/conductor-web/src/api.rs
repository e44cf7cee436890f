//! The words on the wire, for both ends: what is asked, and what is answered.
//!
//! Times are microseconds since the epoch, as in the records. A field may be added; none changes its meaning.
//! This module does not know HTTP.

mod run;
mod action;
mod instance;
mod audit;
mod problem;

pub use action::{ActionRequest, StartRun};
pub use audit::{AuditView, FindingView, ReplayDifference, ReplayView};
pub use instance::{
    AddProject, Health, InstanceView, KillSwitch, ProjectList, RegisterRepo, RepoList, RepoView,
    SuspensionView,
};
pub use problem::Problem;
pub use run::{
    AcceptedView, Approvals, EffectList, EffectView, EventList, EventView, GateView, HoldView, NextStep,
    PhaseSpan, PullRequestView, RunDetail, RunList, RunView, Started, StateChange, TalkView, TestView,
    TextView, WriteList, WriteView,
};
