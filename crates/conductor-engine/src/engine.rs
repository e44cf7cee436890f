//! The engine as doors see it: an inbox, two streams to watch, and one task that carries everything.
//!
//! It holds what the stages share and starts them; each stage is a module of its own. It does not know how any stage
//! does its work.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::id::{EffectId, RunId};
use conductor_domain::instance::InstanceInput;
use conductor_domain::time::Millis;
use conductor_policy::authority::Authority;
use conductor_policy::inspect::{self, Inspector};
use conductor_policy::secret::live::LiveSecrets;
use conductor_port::inbox::{Accepted, Inbox, Submission, SubmitError};
use conductor_port::ledger::StreamId;
use tokio::sync::{Notify, broadcast};
use tokio_util::sync::CancellationToken;

use crate::anchor::Anchored;
use crate::laws::Laws;
use crate::ports::Ports;
use crate::recover::Recovered;
use crate::redact::{KnownForms, Redact};
use crate::rules::Compiled;
use crate::tell::Telling;
use crate::trouble::{Trouble, Troubles, Watched};
use crate::{anchor, commit, crash, dispatch, duty, intake, look, recover, telemetry, tell, timer};

/// How the engine behaves in this process.
#[derive(Debug, Clone)]
pub struct Options {
    /// Names this process in leases.
    pub worker: String,
    /// How many effects are performed at once of those that execute foreign code, and how many of the others.
    pub concurrency: usize,
    /// How long a lease holds without being renewed; an effect of a dead process waits this long.
    pub lease: Millis,
    /// Whether no other living process has this name; then nobody waits at the start for leases that its dead left.
    pub owns_name: bool,
    /// How often the dispatcher and the timer look without being woken.
    pub tick: Millis,
    /// After so many events the chains are anchored (OWN-5a).
    pub anchor_every_events: u64,
    /// After this time the chains are anchored.
    pub anchor_every: Millis,
    /// How long effects under way may take to finish at shutdown.
    pub grace: Millis,
    /// Takes secrets out of text.
    pub redactor: Arc<dyn Redact>,
    /// Decides which tools an agent may call on what.
    pub authority: Arc<Authority>,
    /// Judges what a change adds before it is pushed.
    pub inspector: Arc<Inspector>,
    /// Which ports on loopback runs may have for their own.
    pub ports: PortRange,
    /// Whom to tell what a person should know of; nobody where absent.
    pub telling: Option<Telling>,
}

/// Ports on loopback, from which each run gets its own (ENV-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortRange {
    /// The first.
    pub first: u16,
    /// The last.
    pub last: u16,
    /// How many each run gets.
    pub per_run: u16,
}

impl PortRange {
    /// Below the ports that systems hand out by themselves, and enough for many runs at once.
    pub const USUAL: Self = Self {
        first: 21_000,
        last: 21_511,
        per_run: 2,
    };
}

impl Options {
    /// The usual behaviour, for the process of this name.
    pub fn new(worker: impl Into<String>) -> Self {
        Self {
            worker: worker.into(),
            concurrency: 16,
            lease: Millis::seconds(30),
            owns_name: false,
            tick: Millis(500),
            anchor_every_events: 1000,
            anchor_every: Millis::seconds(60),
            grace: Millis::seconds(5),
            redactor: Arc::new(KnownForms::default()),
            authority: Authority::shipped(),
            inspector: Arc::new(Inspector::new(
                inspect::Limits::default(),
                vec![],
                LiveSecrets::new([]),
            )),
            ports: PortRange::USUAL,
            telling: None,
        }
    }
}

/// Something that was committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// Where.
    pub stream: StreamId,
    /// The stream's last sequence number.
    pub seq: u64,
    /// The kinds of the records, the fact first; empty when another process committed them.
    pub kinds: Vec<String>,
}

/// Something that an agent said; shown, never kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Live {
    /// The run.
    pub run: RunId,
    /// The invocation.
    pub effect: EffectId,
    /// The words, redacted.
    pub text: String,
}

/// Carries runs.
#[derive(Debug)]
pub struct Engine {
    pub(crate) ports: Ports,
    pub(crate) options: Options,
    /// Wakes the dispatcher.
    pub(crate) wake: Notify,
    /// Wakes the anchorer.
    pub(crate) anchor_due: Notify,
    /// Events since the chains were anchored last.
    pub(crate) unanchored: AtomicU64,
    pub(crate) committed: broadcast::Sender<Committed>,
    pub(crate) live: broadcast::Sender<Live>,
    /// The effects that this process performs now, and how each is told to stop.
    running: Mutex<BTreeMap<EffectId, CancellationToken>>,
    /// Effects whose report nobody takes; repeating them would go round for ever.
    aside: Mutex<BTreeSet<EffectId>>,
    /// Streams for which something that follows a commit could not be done yet.
    owed: Mutex<BTreeSet<StreamId>>,
    /// What the anchorer has read already.
    anchored: Mutex<Anchored>,
    /// The policies that runs are held to.
    pub(crate) compiled: Compiled,
    /// Watches the laws of runs.
    pub(crate) laws: Laws,
    /// What keeps this process from its work.
    pub(crate) troubles: Arc<Troubles>,
    /// Comments that stood twice at the forge and were removed.
    repeats: AtomicU64,
}

impl Engine {
    /// Makes an engine; nothing happens before [`Engine::run`] but what is submitted.
    pub fn new(ports: Ports, options: Options) -> Arc<Self> {
        let troubles = Arc::new(Troubles::new(ports.clock.clone()));
        let ports = Ports {
            ledger: Arc::new(Watched {
                ledger: ports.ledger,
                troubles: troubles.clone(),
            }),
            ..ports
        };
        Arc::new(Self {
            ports,
            options,
            wake: Notify::new(),
            anchor_due: Notify::new(),
            unanchored: AtomicU64::new(0),
            committed: broadcast::channel(4096).0,
            live: broadcast::channel(4096).0,
            running: Mutex::default(),
            aside: Mutex::default(),
            owed: Mutex::default(),
            anchored: Mutex::default(),
            compiled: Compiled::default(),
            laws: Laws::default(),
            troubles,
            repeats: AtomicU64::new(0),
        })
    }

    /// Puts right what an earlier process left half done. Called once, before [`Engine::run`]. If repeated: nothing is left.
    pub async fn recover(&self) -> Result<Recovered, Fault> {
        // Everything that an input can lead to is part of this future, and callers should not carry that.
        Box::pin(recover::recover(self)).await
    }

    /// Dispatches effects, watches deadlines and anchors chains until `shutdown`; ends when all of its tasks have.
    pub async fn run(self: Arc<Self>, shutdown: CancellationToken) {
        tokio::join!(
            dispatch::run(&self, &shutdown),
            timer::run(&self, &shutdown),
            look::run(&self, &shutdown),
            anchor::run(&self, &shutdown),
            tell::run(&self, &shutdown),
        );
        // The last effects may have reported after the anchorer had stopped.
        anchor::anchor_or_complain(&self).await;
        duty::lay_down_all(&self).await;
    }

    /// Watches what is committed. A watcher that is too slow misses some and is told so.
    pub fn committed(&self) -> broadcast::Receiver<Committed> {
        self.committed.subscribe()
    }

    /// Watches what agents say. A watcher that is too slow misses some and is told so.
    pub fn live(&self) -> broadcast::Receiver<Live> {
        self.live.subscribe()
    }

    /// Counts the commits after which a run broke a law; 0 in an engine without defects.
    pub fn broken_laws(&self) -> u64 {
        self.laws.broken()
    }

    /// Tells what keeps the engine from its work now, such as a full disk; nothing most of the time.
    pub fn trouble(&self) -> Option<Trouble> {
        self.troubles.trouble()
    }

    /// Hears that another process committed to a stream, which now ends at `seq` after `records` new ones.
    pub fn hear(&self, stream: StreamId, seq: u64, records: u64) {
        commit::announce(
            self,
            Committed {
                stream,
                seq,
                kinds: vec![],
            },
            records,
        );
    }

    /// Looks for work at once, because something may have been missed.
    pub fn look_again(&self) {
        self.wake.notify_one();
    }

    /// Counts the comments that stood twice at the forge, because a process went on after it had lost its lease, and
    /// that this process removed.
    pub fn repeats_removed(&self) -> u64 {
        self.repeats.load(Ordering::Relaxed)
    }

    /// Counts removed repeats of an effect's write.
    pub(crate) fn count_repeats(&self, effect: &EffectId, removed: u32) {
        if removed > 0 {
            self.repeats.fetch_add(u64::from(removed), Ordering::Relaxed);
            tracing::warn!(%effect, removed, "{}", telemetry::REPEATS_REMOVED);
        }
    }

    /// Lists the places where a test build can be told to die; see `CONDUCTOR_CRASH_AT`.
    pub fn crash_points() -> &'static [&'static str] {
        &crash::POINTS
    }

    /// Remembers that this process performs an effect, until the guard goes.
    pub(crate) fn begin(&self, effect: &EffectId) -> Running<'_> {
        let stop = CancellationToken::new();
        self.running_now().insert(effect.clone(), stop.clone());
        Running {
            engine: self,
            effect: effect.clone(),
            stop,
        }
    }

    pub(crate) fn is_running(&self, effect: &EffectId) -> bool {
        self.running_now().contains_key(effect)
    }

    /// Tells an effect of this process to stop at once, without waiting for its next renewal.
    pub(crate) fn stop(&self, effect: &EffectId) {
        if let Some(stop) = self.running_now().get(effect) {
            stop.cancel();
        }
    }

    /// Lets an effect lie until the next start.
    pub(crate) fn set_aside(&self, effect: &EffectId) {
        self.aside
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(effect.clone());
    }

    pub(crate) fn is_set_aside(&self, effect: &EffectId) -> bool {
        self.aside
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(effect)
    }

    /// Remembers that something may still have to be done after a commit to a stream.
    pub(crate) fn owe(&self, stream: StreamId) {
        self.owed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(stream);
    }

    /// Hands out what was remembered, to be done now.
    pub(crate) fn take_owed(&self) -> BTreeSet<StreamId> {
        std::mem::take(&mut *self.owed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn anchored(&self) -> Anchored {
        self.anchored
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn remember_anchored(&self, anchored: Anchored) {
        *self.anchored.lock().unwrap_or_else(PoisonError::into_inner) = anchored;
    }

    fn running_now(&self) -> std::sync::MutexGuard<'_, BTreeMap<EffectId, CancellationToken>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An effect under way in this process.
#[derive(Debug)]
pub(crate) struct Running<'a> {
    engine: &'a Engine,
    effect: EffectId,
    /// Fires when the effect is told to stop.
    pub(crate) stop: CancellationToken,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.engine.running_now().remove(&self.effect);
    }
}

#[async_trait]
impl Inbox for Engine {
    async fn submit(&self, submission: Submission) -> Result<Accepted, SubmitError> {
        intake::submit(self, submission).await
    }

    async fn submit_to_instance(&self, input: InstanceInput, cause: &str) -> Result<Accepted, SubmitError> {
        intake::submit_to_instance(self, input, cause).await
    }
}
