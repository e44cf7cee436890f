//! Brings what the egress proxy denied to the engine, which is made after the proxy because the proxy is one of its ports.
//!
//! It holds the engine weakly: an engine that is gone hears of nothing any more. It does not know what is denied, or why.

use std::sync::{Arc, OnceLock, Weak};

use async_trait::async_trait;
use conductor_domain::egress::EgressDenial;
use conductor_domain::id::{EffectId, RunId};
use conductor_engine::Engine;
use conductor_gateway::egress::{Denials, ToInbox};

/// Where denials go, once there is an engine.
#[derive(Debug, Default)]
pub(crate) struct ToEngine(OnceLock<Weak<Engine>>);

impl ToEngine {
    /// Says which engine it is. If repeated: the first stays.
    pub(crate) fn connect(&self, engine: &Arc<Engine>) {
        let _the_first_stays = self.0.set(Arc::downgrade(engine));
    }
}

#[async_trait]
impl Denials for ToEngine {
    async fn denied(&self, run: &RunId, effect: &EffectId, denial: EgressDenial) {
        if let Some(engine) = self.0.get().and_then(Weak::upgrade) {
            ToInbox(engine).denied(run, effect, denial).await;
        }
    }
}
