//! stub
use serde::{Deserialize, Serialize};
use crate::{Event, EffectRequest, Input, Refusal, Run};
use crate::input::PolicyVerdict;
use crate::time::Timestamp;
/// The version.
pub const DECIDER_VERSION: u32 = 1;
/// Context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// When the input arrived.
    pub now: Timestamp,
    /// The sequence number that the input gets in its stream.
    pub seq: u64,
    /// What the policy engine said.
    pub policy: PolicyVerdict,
}
/// Decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What is now true.
    pub events: Vec<Event>,
    /// What is asked.
    pub effects: Vec<EffectRequest>,
}
/// Decides.
pub fn decide(_run: Option<&Run>, _input: &Input, _at: &Context) -> Result<Decision, Refusal> { Err(Refusal::NoSuchRun) }
