//! Asks the policies that a run is held to about what arrives: its start, what would lift one of them, and
//! what could lead to a merge (SEC-1, BEY-10, RUN-14).
//!
//! This module does not know what an input leads to.

use conductor_domain::Run;
use conductor_domain::fault::Fault;
use conductor_domain::id::RunId;
use conductor_domain::input::{Action, Input, PolicyVerdict, Report};
use conductor_domain::refusal::Refusal;
use conductor_domain::relief::ReliefScope;
use conductor_domain::spec::RunSpec;
use conductor_policy::authority::{self, Actor, Change, Request, Ruling, Target};

use super::{NotTaken, standing};
use crate::engine::Engine;
use crate::rules;

/// Reaches the verdict on an input. A start: registered repositories may be worked on while the kill switch is off, by
/// whom the policies allow that the run is held to (BEY-10). An override: see [`may_lift`]. The rest is for the run.
pub(super) async fn reach(engine: &Engine, run: &RunId, input: &Input) -> Result<PolicyVerdict, NotTaken> {
    let spec = match input {
        Input::StartRun { spec } => spec,
        Input::Operate {
            action: Action::GrantRelief { scope, .. },
            ..
        } => return may_lift(engine, run, scope).await,
        Input::Operate { .. }
        | Input::KillSwitchTurned { .. }
        | Input::Performed { .. }
        | Input::Faulted { .. }
        | Input::RequestComment { .. }
        | Input::RequestFields { .. }
        | Input::EgressDenied { .. }
        | Input::ForgeNoticed { .. }
        | Input::DeadlinePassed { .. } => return Ok(PolicyVerdict::Allow),
    };
    if spec.run != *run {
        return Err(Fault::permanent(format!("run {} was submitted under the name {run}", spec.run)).into());
    }
    let (instance, _head) = engine.ports.views.instance().await?;
    if instance.kill_switch {
        return Err(Refusal::KillSwitchIsOn.into());
    }
    Ok(match instance.repos.get(&spec.repo.id) {
        Some(registration) if registration.project == spec.project => {
            if !rules::are_current(spec, &instance) {
                return Ok(PolicyVerdict::Deny {
                    reason: format!("other policies count for {} now; start it again", spec.repo),
                });
            }
            may_start(engine, spec).await?
        }
        Some(registration) => PolicyVerdict::Deny {
            reason: format!("{} belongs to project `{}`", spec.repo, registration.project),
        },
        None => PolicyVerdict::Deny {
            reason: format!("{} is not registered", spec.repo),
        },
    })
}

/// Asks the policies that the run is held to whether an override would lift one of them, and may (SEC-1).
async fn may_lift(engine: &Engine, run: &RunId, scope: &ReliefScope) -> Result<PolicyVerdict, NotTaken> {
    let standing = standing(engine.ports.views.as_ref(), run).await?;
    let Some(state) = standing.run else {
        return Err(Refusal::NoSuchRun.into());
    };
    let authority = rules::of_run(engine, &state.spec).await?;
    Ok(match authority.may_lift(scope) {
        Ok(()) => PolicyVerdict::Allow,
        Err(reason) => PolicyVerdict::Deny { reason },
    })
}

/// Refuses a justification with a secret in it: it would be kept without, and nobody could judge it (SEC-3).
pub(super) fn refuse_secret(given: &Input, redacted: &Input) -> Result<(), Refusal> {
    let is_relief = matches!(
        given,
        Input::Operate {
            action: Action::GrantRelief { .. },
            ..
        }
    );
    if is_relief && given != redacted {
        return Err(Refusal::JustificationUnfit {
            why: "holds a secret",
        });
    }
    Ok(())
}

/// Asks the policies that the run is held to whether its starter may start it; what the starter wrote has no say.
async fn may_start(engine: &Engine, spec: &RunSpec) -> Result<PolicyVerdict, Fault> {
    let authority = rules::of_start(engine, spec).await?;
    let verdict = authority.judge(&Request::new(
        Actor::Operator {
            name: spec.started_by.to_string(),
            level: spec.starter_rank,
        },
        authority::Action::StartRun,
        Target::Repository {
            name: spec.repo.to_string(),
            change: None,
        },
    ));
    let reason = format!("{}: {}", verdict.policy, verdict.reason);
    Ok(match verdict.ruling {
        Ruling::Allow => PolicyVerdict::Allow,
        Ruling::RequireApproval | Ruling::Deny => PolicyVerdict::Deny { reason },
    })
}

/// Asks the policies about a merge where an input could lead to one.
pub(super) async fn merge_of(engine: &Engine, run: Option<&Run>, input: &Input) -> Option<String> {
    let Input::Performed { report, .. } = input else {
        return None;
    };
    let leads_there = matches!(
        report.as_ref(),
        Report::CheckPublished | Report::PullRequestRead { .. }
    );
    may_merge(engine, run.filter(|_| leads_there)?).await
}

/// Asks the policies whether Conductor may merge what a run proposes, and says which allows it (RUN-14).
///
/// Whoever started the run may have written a text of its own: it can forbid the merge and never allow it. Policies that
/// cannot be read allow nothing.
pub(crate) async fn may_merge(engine: &Engine, run: &Run) -> Option<String> {
    let weighed = run.weighed()?;
    let request = Request::new(
        Actor::Orchestrator,
        authority::Action::Merge,
        Target::Repository {
            name: run.spec.repo.to_string(),
            change: Some(Change {
                class: weighed.class.as_str().to_owned(),
                confidence: weighed.confidence(),
            }),
        },
    );
    let mut reason = None;
    for layers in [
        rules::of_run(engine, &run.spec).await,
        rules::of_start(engine, &run.spec).await,
    ] {
        let authority = match layers {
            Ok(authority) => authority,
            Err(fault) => {
                tracing::warn!(run = %run.id(), %fault, "cannot ask policies about a merge; it waits for a person");
                return None;
            }
        };
        let verdict = authority.judge(&request);
        if verdict.ruling != Ruling::Allow {
            return None;
        }
        reason = Some(format!("{}: {}", verdict.policy, verdict.reason));
    }
    reason
}
