//! Picks effects that may be performed now, leases them, and carries each to its report while keeping the lease.
//!
//! Woken by commits, with a tick as fallback for what other processes commit. Which effect may go is decided by the
//! pure `admit`; repository slots are taken in the leasing transaction. Agents and tests take hours and everything else
//! moments, so each has room of its own. Work ends before its lease does (DEP-3). This module does not know how an
//! effect is performed.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use conductor_domain::EffectRequest;
use conductor_domain::effect::{Effect, EffectKind};
use conductor_domain::fault::Fault;
use conductor_domain::id::RepoId;
use conductor_domain::instance::{Admission, Instance, admit};
use conductor_domain::spec::AgentBackend;
use conductor_domain::time::{Millis, Timestamp};
use conductor_port::ledger::{Candidates, EffectRow, EffectStatus, LeaseWish, Leased, Renewal, Settlement};
use futures_util::FutureExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::crash::crash_point;
use crate::engine::Engine;
use crate::fence::Fence;
use crate::report::Reported;
use crate::trouble::Part;
use crate::{perform, report, telemetry};

/// How many candidates are looked at in one go; those that must wait do not hide the others.
const PAGE: u32 = 500;

/// A stop is seen by whichever process holds the effect within this time, however long its lease is (RUN-11).
const LONGEST_RENEWAL: Millis = Millis(2000);

/// An effect that is ours to perform.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) request: EffectRequest,
    pub(crate) settlement: Settlement,
    /// How often it has been leased, this time included.
    pub(crate) attempt: u32,
    /// When it was asked for.
    pub(crate) created_at: Timestamp,
    /// Whether an earlier process held it and died.
    pub(crate) interrupted: bool,
    /// Whether it was told to stop before we got it.
    pub(crate) stop: bool,
    /// When the lease ends unless it is renewed.
    pub(crate) until: Timestamp,
}

impl Job {
    /// Tells whether it may have been performed before, in part or whole.
    pub(crate) fn is_repeated(&self) -> bool {
        self.attempt > 1
    }
}

/// Room for effects under way in this process.
#[derive(Debug)]
struct Room {
    /// For agents and tests, which may take hours.
    long: Arc<Semaphore>,
    /// For everything else; never taken by what is long, so that nobody waits for an agent but the next agent.
    short: Arc<Semaphore>,
}

impl Room {
    fn of(each: usize) -> Self {
        Self {
            long: Arc::new(Semaphore::new(each)),
            short: Arc::new(Semaphore::new(each)),
        }
    }

    fn is_full(&self) -> bool {
        self.long.available_permits() == 0 && self.short.available_permits() == 0
    }

    /// Takes a place for an effect, if there is one.
    fn take(&self, row: &EffectRow) -> Option<OwnedSemaphorePermit> {
        let room = if row.kind.executes_foreign_code() && !is_only_ended(row) {
            &self.long
        } else {
            &self.short
        };
        // The room is never closed, so that there is no other reason than its being full.
        room.clone().try_acquire_owned().ok()
    }
}

/// Dispatches until shutdown, then waits for what is under way and drops what does not end in time.
pub(crate) async fn run(engine: &Arc<Engine>, shutdown: &CancellationToken) {
    let mut tasks = JoinSet::new();
    let room = Room::of(engine.options.concurrency);
    loop {
        let span = tracing::debug_span!(telemetry::DISPATCH);
        let filled = fill(engine, &mut tasks, &room).instrument(span).await;
        engine.troubles.note(Part::Dispatch, filled);
        tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            () = engine.wake.notified() => {}
            Some(ended) = tasks.join_next(), if !tasks.is_empty() => complain(ended),
            () = tokio::time::sleep(duration(engine.options.tick)) => {}
        }
    }
    let finish = async {
        while let Some(ended) = tasks.join_next().await {
            complain(ended);
        }
    };
    if tokio::time::timeout(duration(engine.options.grace), finish)
        .await
        .is_err()
    {
        tracing::info!(
            effects = tasks.len(),
            "effects under way are dropped; the next process takes them up"
        );
        tasks.shutdown().await;
    }
}

fn complain(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a task that carries an effect ended badly");
    }
}

/// Leases as many effects as this process may still perform.
async fn fill(engine: &Arc<Engine>, tasks: &mut JoinSet<()>, room: &Room) -> Result<(), Fault> {
    if room.is_full() {
        return Ok(());
    }
    let now = engine.ports.clock.now();
    let (instance, _head) = engine.ports.views.instance().await?;
    let mut full = BTreeSet::new();
    let mut candidates = Candidates {
        now,
        after: None,
        limit: PAGE,
    };
    loop {
        let page = engine.ports.ledger.dispatchable(&candidates).await?;
        let is_last = page.len() < PAGE as usize;
        candidates.after = page.last().map(|row| row.id.clone());
        lease_some(engine, tasks, room, page, &instance, now, &mut full).await?;
        if is_last || room.is_full() {
            return Ok(());
        }
    }
}

/// Leases what may go of one page; repositories without a free slot are remembered in `full`.
async fn lease_some(
    engine: &Arc<Engine>,
    tasks: &mut JoinSet<()>,
    room: &Room,
    page: Vec<EffectRow>,
    instance: &Instance,
    now: Timestamp,
    full: &mut BTreeSet<RepoId>,
) -> Result<(), Fault> {
    for row in page {
        if engine.is_running(&row.id) || engine.is_set_aside(&row.id) {
            continue;
        }
        let Some(place) = room.take(&row) else {
            continue;
        };
        let request = match row.parse() {
            Ok(request) => request,
            Err(fault) => {
                engine.troubles.pass_over(&row.run, fault)?;
                continue;
            }
        };
        let Admission::Admitted { slot } = admission(&row, &request, instance, now) else {
            continue;
        };
        if slot.is_some_and(|(repo, _slots)| full.contains(&repo)) {
            continue;
        }
        // The list may be long, and a lease is to be whole when it is had.
        let now = engine.ports.clock.now();
        let until = now.after(engine.options.lease);
        let wish = LeaseWish {
            id: row.id.clone(),
            worker: engine.options.worker.clone(),
            now,
            until,
            slot,
        };
        crash_point!("lease.before");
        let leased = engine.ports.ledger.lease(wish).await?;
        crash_point!("lease.after");
        match leased {
            Leased::Granted { token, attempt } => {
                let carried = carry_out(engine.clone(), job(row, request, token, attempt, until));
                tasks.spawn(async move {
                    carried.await;
                    drop(place);
                });
            }
            Leased::Gone => {}
            Leased::NoSlot => {
                full.extend(slot.map(|(repo, _slots)| repo));
            }
        }
    }
    Ok(())
}

/// Decides whether an effect may go now. One that will only be ended may always go: its processes may still run, and
/// neither the kill switch nor a full repository is a reason to leave them alone.
fn admission(row: &EffectRow, request: &EffectRequest, instance: &Instance, now: Timestamp) -> Admission {
    if is_only_ended(row) {
        return Admission::Admitted { slot: None };
    }
    let admission = admit(row.kind, row.repo, account(&request.effect), instance, now);
    if let Admission::Waits { why, .. } = &admission {
        tracing::trace!(effect = %request.id, why, "an effect waits");
    }
    admission
}

/// Tells whether nothing of an effect will begin: it was told to stop, or nothing that was begun of it is resumed.
fn is_only_ended(row: &EffectRow) -> bool {
    row.stop || (is_abandoned(row) && matches!(row.kind, EffectKind::Invoke | EffectKind::RunTests))
}

/// Tells whether an effect that is listed as dispatchable was held by a process that died.
fn is_abandoned(row: &EffectRow) -> bool {
    row.status == EffectStatus::Leased
}

/// The account at a provider that an effect draws on.
fn account(effect: &Effect) -> Option<&'static str> {
    let Effect::Invoke { invocation } = effect else {
        return None;
    };
    match invocation.agents.backend {
        AgentBackend::Scripted { .. } => Some("scripted"),
    }
}

fn job(row: EffectRow, request: EffectRequest, token: u64, attempt: u32, until: Timestamp) -> Job {
    // A lease that nobody settled, seen in the list or taken and lost since the list was made: its holder died.
    let interrupted = is_abandoned(&row) || attempt != row.attempts + 1;
    Job {
        request,
        settlement: Settlement { id: row.id, token },
        attempt,
        created_at: row.created_at,
        interrupted,
        stop: row.stop,
        until,
    }
}

/// Performs an effect and reports what came of it, for as long as its lease holds.
async fn carry_out(engine: Arc<Engine>, job: Job) {
    let running = engine.begin(&job.settlement.id);
    if job.stop {
        running.stop.cancel();
    }
    let span = tracing::info_span!(
        telemetry::PERFORM,
        run = %job.request.run,
        effect = %job.request.id,
        kind = %job.request.effect.kind(),
        attempt = job.attempt,
    );
    let work = async {
        let performed = AssertUnwindSafe(perform::perform(&engine, &job, &running.stop))
            .catch_unwind()
            .await;
        let result = performed
            .unwrap_or_else(|_panic| Err(Fault::permanent("the performer panicked; see the log").into()));
        // Everything that a report leads to is part of this future, and the task should not carry that.
        Box::pin(report::report(&engine, &job, result)).await
    };
    let fence = Fence::at(job.until, engine.options.lease);
    let clock = engine.ports.clock.as_ref();
    let reported = tokio::select! {
        biased;
        () = keep_lease(&engine, &job, &fence, &running.stop) => None,
        reported = fence.guard(clock, work.instrument(span)) => reported,
    };
    match reported {
        Some(Reported::Settled) => {}
        Some(Reported::TooLate) => perform::abandon(&engine, &job, false).await,
        None => {
            tracing::warn!(effect = %job.request.id, "the lease is lost; its work is dropped and not reported");
            perform::abandon(&engine, &job, fence.holds(clock.now())).await;
        }
    }
    drop(running);
    engine.wake.notify_one();
}

/// Renews the lease, passes a stop on, and returns when the lease is lost or its last part has begun.
async fn keep_lease(engine: &Engine, job: &Job, fence: &Fence, stop: &CancellationToken) {
    let lease = engine.options.lease;
    let every = Millis((lease.0 / 3).clamp(1, LONGEST_RENEWAL.0));
    loop {
        let left = fence.left(engine.ports.clock.now());
        if left == Millis(0) {
            tracing::warn!(effect = %job.request.id, "could not renew a lease in time");
            return;
        }
        tokio::time::sleep(duration(every.min(left))).await;
        let wanted = engine.ports.clock.now().after(lease);
        // A database that does not answer must not keep us from seeing that time is up.
        let asked = engine.ports.ledger.renew(&job.settlement, wanted);
        match tokio::time::timeout(duration(every), asked).await {
            Ok(Ok(Renewal::Holds)) => fence.move_to(wanted),
            Ok(Ok(Renewal::Stop)) => {
                fence.move_to(wanted);
                stop.cancel();
            }
            Ok(Ok(Renewal::Lost)) => {
                fence.tear_down();
                return;
            }
            Ok(Err(fault)) => {
                tracing::debug!(%fault, effect = %job.request.id, "could not renew a lease; trying again");
            }
            Err(_elapsed) => {
                tracing::warn!(effect = %job.request.id, "the ledger does not answer; trying again to renew a lease");
            }
        }
    }
}

/// Turns a length of time into what the runtime waits for.
pub(crate) fn duration(length: Millis) -> Duration {
    Duration::from_millis(length.0)
}
