//! Ends what is left of an effect whose lease was lost, and takes back what it may have done a second time (RUN-4).
//!
//! Nothing here begins anything: processes are ended only while the lease still holds, because later ones are another's;
//! a repeated comment is removed whenever it is seen, and everyone keeps the same one. This module does not know why the
//! lease was lost.

use conductor_domain::effect::Effect;
use conductor_domain::message::marker;

use super::foreign;
use crate::dispatch::Job;
use crate::engine::Engine;

/// Sees to an effect that this process must not go on with.
pub(crate) async fn abandon(engine: &Engine, job: &Job, lease_holds: bool) {
    let effect = &job.request.effect;
    let executor = foreign(effect).map(|foreign| foreign.executor());
    if let Some(executor) = executor.filter(|_| lease_holds) {
        let reaped = match engine.ports.executors.get(executor) {
            Ok(executor) => executor.reap(&job.request.id).await,
            Err(fault) => Err(fault),
        };
        if let Err(fault) = reaped {
            tracing::warn!(%fault, effect = %job.request.id, "could not end the processes of an effect; its next holder will");
        }
    }
    if let Effect::PostComment { target, .. } = effect {
        let marker = marker(&job.request.id);
        let forge = engine.ports.forge.as_ref();
        match forge.remove_repeats(&job.request.repo, *target, &marker).await {
            Ok(removed) => engine.count_repeats(&job.request.id, removed),
            Err(fault) => {
                tracing::warn!(%fault, effect = %job.request.id, "could not look for repeated comments; the clean-up will");
            }
        }
    }
}
