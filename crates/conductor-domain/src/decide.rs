//! Decides what follows from an input: events that are now true, effects that are asked for, or a refusal.
//!
//! Pure: depends on its arguments only, so that every decision can be recomputed from the log (RUN-2, RUN-3).
//! Each submodule is one chapter of a run's life. This module does not know how anything is stored or done.

mod draft;
mod step;
mod speech;
mod start;
mod operator;
mod report;
mod agent;
mod execution;
mod proposal;
mod merge;
mod fault;
mod clock;
mod ending;
pub mod look;

use serde::{Deserialize, Serialize};

use crate::effect::{EffectKind, EffectRequest};
use crate::event::Event;
use crate::hold::{Hold, HoldKind};
use crate::input::{Input, PolicyVerdict};
use crate::refusal::Refusal;
use crate::run::Run;
use crate::time::Timestamp;

use draft::Draft;

/// The version of the rules; stored with every decision. A change of any outcome is a new version, which
/// `scenarios/outcomes.lock` sees to.
pub const DECIDER_VERSION: u32 = 8;

/// All that a decision may depend on beside run and input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// When the input arrived.
    pub now: Timestamp,
    /// The sequence number that the input gets in its stream.
    pub seq: u64,
    /// What the policy engine said about the input.
    pub policy: PolicyVerdict,
    /// Which policy allows a merge of what is proposed, and why; absent where none does, or none was asked (RUN-14).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<String>,
}

/// What follows from an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What is now true.
    pub events: Vec<Event>,
    /// What is asked of the world.
    pub effects: Vec<EffectRequest>,
}

/// Decides what follows from an input.
pub fn decide(run: Option<&Run>, input: &Input, at: &Context) -> Result<Decision, Refusal> {
    if let PolicyVerdict::Deny { reason } = &at.policy {
        return Err(Refusal::DeniedByPolicy {
            reason: reason.clone(),
        });
    }
    if let Input::StartRun { spec } = input {
        return start::start(run, spec, at);
    }
    let run = run.ok_or(Refusal::NoSuchRun)?;
    let mut draft = Draft::new(run.clone(), at);
    match input {
        Input::StartRun { .. } => return Err(Refusal::RunExists),
        Input::Operate { by, action } => operator::operate(&mut draft, by, action)?,
        Input::KillSwitchTurned { on } => kill_switch_turned(&mut draft, *on),
        Input::Performed { effect, report } => report::performed(&mut draft, effect, report)?,
        Input::Faulted {
            effect,
            attempt,
            fault,
            remains,
        } => fault::faulted(&mut draft, effect, *attempt, fault, remains.as_deref())?,
        Input::RequestComment { invocation, comment } => agent::comment(&mut draft, invocation, comment)?,
        Input::RequestFields {
            invocation,
            role,
            fields,
        } => agent::fields(&mut draft, invocation, *role, fields)?,
        Input::EgressDenied { effect, denial } => agent::denied_egress(&mut draft, effect, denial)?,
        Input::ForgeNoticed { notice } => merge::noticed(&mut draft, notice),
        Input::DeadlinePassed { deadline } => clock::passed(&mut draft, *deadline)?,
    }
    Ok(draft.finish())
}

/// Stops what runs foreign code at once; the rest waits in the queue until the switch is off (SEC-6).
fn kill_switch_turned(draft: &mut Draft<'_>, on: bool) {
    let is_held = draft.run().holds.get(HoldKind::KillSwitch).is_some();
    if draft.run().phase.is_terminal() || is_held == on {
        draft.note("the kill switch changes nothing here");
        return;
    }
    if on {
        draft.record(Event::HoldPlaced {
            hold: Hold::KillSwitch,
        });
        draft.stop(EffectKind::executes_foreign_code);
    } else {
        draft.record(Event::HoldReleased {
            kind: HoldKind::KillSwitch,
        });
        draft.proceed();
    }
}
