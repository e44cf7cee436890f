//! What the door sees of the engine besides its inbox: what was just committed, what agents say, audits and replays.
//!
//! The binary's `wire.rs` implements it, so that this crate needs no engine. This module does not know what an audit looks at.

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::id::{EffectId, RunId};
use conductor_domain::skill::SkillLock;
use futures_util::stream::BoxStream;

use crate::api::{AuditView, ReplayView, TroubleView};

/// Something was committed; read the ledger to see what.
///
/// `None` is what concerns more than one run, or that the listener was too slow and missed some: it must look again,
/// whatever its run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Which run.
    pub run: Option<RunId>,
}

/// Words of an agent at work; held in memory for a while, and never stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Talk {
    /// Which run.
    pub run: RunId,
    /// Which invocation.
    pub effect: EffectId,
    /// The words, redacted.
    pub text: String,
}

/// What the door sees of the engine besides its inbox.
#[async_trait]
pub trait Backstage: Send + Sync + std::fmt::Debug {
    /// Follows what is committed from now on.
    fn changes(&self) -> BoxStream<'static, Change>;

    /// Tells the newest of what the agent of a run that spoke last has said so far, and follows what its agents say from
    /// then on: no word is in both, and none between them is lost but to a listener that is too slow.
    fn talk(&self, run: &RunId) -> (Option<Talk>, BoxStream<'static, Talk>);

    /// Tells what keeps the engine from its work now; nothing most of the time.
    fn trouble(&self) -> Option<TroubleView>;

    /// Locks the skills of every role as they are now, for a run that starts (SKILL-5).
    async fn skills(&self) -> Result<Vec<SkillLock>, Fault>;

    /// Checks every stream against its chain and the recorded heads (SEC-8).
    async fn verify(&self) -> Result<AuditView, Fault>;

    /// Recomputes every decision of a run (RUN-2).
    async fn replay(&self, run: &RunId) -> Result<ReplayView, Fault>;
}
