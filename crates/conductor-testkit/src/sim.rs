//! Plays whole stories on the fakes: several runs, rough weather, a dying Conductor, the same ending every time.
//!
//! One thread, virtual time, one seed: the same seed plays the same story to the microsecond. Conductor dies at a
//! crash point and starts again on what the world kept. This module does not know the rules of a run; it only knows
//! what must be true at the end, whatever happened on the way.

mod stage;
mod script;
mod death;
mod people;
mod verdict;

use std::collections::BTreeMap;
use std::time::Duration;

use conductor_domain::id::RunId;
use conductor_engine::Engine;
use tokio_util::sync::CancellationToken;

pub use death::Deaths;
pub use stage::Stage;
pub use verdict::Ending;

use crate::world::Climate;

/// What is to be played.
#[derive(Debug, Clone)]
pub struct Story {
    /// How many runs there are, all on one repository.
    pub runs: usize,
    /// How many of them may work at once.
    pub slots: u32,
    /// How many effects a process performs at once, of those that execute foreign code and of the others.
    pub concurrency: usize,
    /// How many processes share the work.
    pub processes: usize,
    /// How rough the world is.
    pub climate: Climate,
    /// When Conductor dies.
    pub deaths: Deaths,
    /// What else happens on the way.
    pub twists: &'static [Twist],
}

impl Story {
    /// Tells whether something happens in it.
    pub fn has(&self, twist: Twist) -> bool {
        self.twists.contains(&twist)
    }

    /// One run, calm weather, nobody dies.
    pub fn plain() -> Self {
        Self {
            runs: 1,
            slots: 1,
            concurrency: 4,
            processes: 1,
            climate: Climate::CALM,
            deaths: Deaths::None,
            twists: &[],
        }
    }
}

/// Something that happens in a story.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Twist {
    /// The first Planner asks a human before it plans.
    Question,
    /// The kill switch is turned on and off again.
    KillSwitch,
    /// An operator cancels the last run.
    Cancel,
    /// Conductor is alone on its ledger, and takes up at once what it left when it died.
    OwnsName,
    /// The forge's adapter breaks its promise to look for a comment first; such a story must end badly.
    ForgetfulForge,
}

/// How long a story may take in virtual time before it counts as stuck.
const PATIENCE: Duration = Duration::from_hours(2);

/// Plays a story to its end and checks everything that must be true there; `Err` says what is not.
pub fn play(seed: u64, story: &Story) -> Result<Ending, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|error| format!("cannot build a runtime: {error}"))?;
    let ending = runtime.block_on(async {
        let stage = Stage::set(seed, story).await?;
        let lives = tokio::time::timeout(PATIENCE, live_until_done(&stage));
        match lives.await {
            Ok(()) => verdict::judge(&stage).await,
            Err(_) => Err(format!("stuck: {}", verdict::state_of(&stage).await)),
        }
    });
    conductor_engine::on_this_thread(None);
    ending.map_err(|wrong| format!("seed {seed}: {wrong}"))
}

/// Lives, dies and lives again, until the story is over.
async fn live_until_done(stage: &Stage) {
    loop {
        let died = stage.deaths.arm(stage.world.clone());
        tokio::select! {
            biased;
            () = died.notified() => {}
            () = live(stage) => return,
        }
        // The life was dropped with everything it had under way; let the runtime see to that before the next begins.
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
        stage.world.set_dying(false);
    }
}

/// One life of Conductor, with people at its door.
async fn live(stage: &Stage) {
    let shutdown = CancellationToken::new();
    let engines: Vec<_> = (0..stage.story.processes).map(|n| stage.engine(n)).collect();
    for engine in &engines {
        while engine.recover().await.is_err() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
    let Some(door) = engines.first().cloned() else {
        return;
    };
    let carry = futures_util::future::join_all(
        engines
            .into_iter()
            .map(|engine| Engine::run(engine, shutdown.clone())),
    );
    let people = async {
        people::act_until_done(stage, &door).await;
        shutdown.cancel();
    };
    tokio::join!(carry, people);
}

/// What is known of each run.
type ByRun<T> = BTreeMap<RunId, T>;
