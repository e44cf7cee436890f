//! Asks the policies that a run is held to about what arrives: its start, and what would lift one of them (SEC-1, BEY-10).
//!
//! This module does not know what an input leads to.

use conductor_domain::fault::Fault;
use conductor_domain::id::RunId;
use conductor_domain::input::{Action, Input, PolicyVerdict};
use conductor_domain::refusal::Refusal;
use conductor_domain::relief::ReliefScope;
use conductor_domain::spec::RunSpec;
use conductor_policy::authority::{self, Actor, Level, Request, Ruling, Target};

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
            level: Level::Operator,
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
