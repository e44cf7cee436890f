//! The words on the wire, for both ends: what is asked, and what is answered.
//!
//! Times are microseconds since the epoch, as in the records. A field may be added; none changes its meaning.
//! This module does not know HTTP.

mod run;
mod work;
mod action;
mod instance;
mod policy;
mod bulk;
mod audit;
mod metrics;
mod staff;
mod problem;

pub use action::{ActionRequest, StartRun};
pub use audit::{AuditView, FindingView, RecordList, RecordView, ReplayDifference, ReplayView};
pub use bulk::{
    ApproveSeveral, BulkView, CancelAll, PlanRisk, PlanRisks, Reprioritize, ResultView, SeenPlan,
};
pub use instance::{
    AddProject, GrantEgress, GrantList, GrantView, Health, InstanceView, KillSwitch, LinkView, Nothing,
    ProjectList, RegisterRepo, RepoList, RepoView, SuspensionView, TroubleView,
};
pub use metrics::{DayFigures, MetricsView, PhaseFigures, SpreadView};
pub use policy::{
    ExpectedView, FlawList, FlawView, GrantOverride, MismatchView, OverrideView, PolicyExpectations,
    PolicyList, PolicyPlace, PolicyQuestion, PolicyText, PolicyTexts, PolicyView, RevokeOverride, RuleView,
    RulingView, SetPolicy, VersionList, VersionView,
};
pub use problem::Problem;
pub use run::{
    AcceptedView, Approvals, DamageView, DenialView, EffectList, EffectView, EventList, EventView, GateView,
    GrantRequest, HoldView, NextStep, PhaseSpan, PullRequestView, RunDetail, RunList, RunView, SinceView,
    SkillView, Started, StateChange, TalkView, TestView, TextView, WriteList, WriteView,
};
pub use staff::{
    AddOperator, ChangeRank, IssueToken, IssuedToken, OperatorList, OperatorView, SetPassword, SignOut,
    TokenList, TokenView,
};
pub use work::{CallList, CallView, ChangeView, ChangedFile};
