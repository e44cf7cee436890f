//! One engine on calm fakes, with agents of a test's choosing: for tests that look at one thing closely.
//!
//! Waits for commits, never for time. It does not know what is looked at.

use std::sync::Arc;

use conductor_domain::Run;
use conductor_domain::id::RunId;
use conductor_domain::input::{Action, Input};
use conductor_domain::instance::{InstanceInput, Registration, TestEgress};
use conductor_engine::{Engine, Options, Ports};
use conductor_port::inbox::{Accepted, Inbox as _, Seen, Submission, SubmitError};
use conductor_port::ledger::{Ledger as _, Record, StreamId};
use conductor_port::views::Views as _;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::agent::FakeAgent;
use crate::sim::{Stage, Story};

/// One engine on calm fakes.
#[derive(Debug)]
pub struct Rig {
    /// The fakes.
    pub stage: Stage,
    /// The engine.
    pub engine: Arc<Engine>,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

impl Rig {
    /// Starts an engine whose agents play this; the repository is registered.
    pub async fn start(agent: FakeAgent) -> Self {
        Self::start_with(|stage| stage.ports(agent), |_options| {}).await
    }

    /// Starts an engine whose agents play the simulation's story.
    pub async fn start_story() -> Self {
        Self::start_with(|stage| stage.ports(stage.agents()), |_options| {}).await
    }

    /// Starts an engine with ports and options of the test's making.
    pub async fn start_with(wire: impl FnOnce(&Stage) -> Ports, tune: impl FnOnce(&mut Options)) -> Self {
        let story = Story {
            runs: 3,
            slots: 3,
            ..Story::plain()
        };
        let stage = Stage::set(1, &story).await.expect("the stage can be set");
        let rig = Self::resume_with(stage, wire, tune).await;
        rig.register().await;
        rig
    }

    /// Starts another engine on what an earlier one left, and lets it recover.
    pub async fn resume(stage: Stage, agent: FakeAgent) -> Self {
        Self::resume_with(stage, |stage| stage.ports(agent), |_options| {}).await
    }

    /// Starts a process again on what another left, with its own wiring and options.
    pub async fn resume_with(
        stage: Stage,
        wire: impl FnOnce(&Stage) -> Ports,
        tune: impl FnOnce(&mut Options),
    ) -> Self {
        // A rig is the only process of its name.
        let mut options = Options {
            owns_name: true,
            ..Options::new("rig")
        };
        tune(&mut options);
        let engine = Engine::new(wire(&stage), options);
        engine.recover().await.expect("calm weather");
        let shutdown = CancellationToken::new();
        let task = tokio::spawn(engine.clone().run(shutdown.clone()));
        Self {
            stage,
            engine,
            shutdown,
            task,
        }
    }

    async fn register(&self) {
        let spec = self.stage.specs.first().expect("a story has runs");
        let by = spec.started_by.clone();
        let registration = Registration {
            project: spec.project.clone(),
            repo: self.stage.repo.clone(),
            test_command: spec.test_command.clone(),
            slots: self.stage.story.slots,
            test_egress: TestEgress::None,
            board: None,
        };
        let project = InstanceInput::AddProject {
            by: by.clone(),
            project: spec.project.clone(),
        };
        for input in [project, InstanceInput::RegisterRepo { by, registration }] {
            self.engine
                .submit_to_instance(input, "")
                .await
                .expect("calm weather");
        }
    }

    /// Starts the n-th run, from 1.
    pub async fn start_run(&self, n: usize) -> RunId {
        let spec = self
            .stage
            .specs
            .get(n - 1)
            .expect("one of the story's runs")
            .clone();
        let run = spec.run.clone();
        self.submit(&run, Input::StartRun { spec: Box::new(spec) })
            .await
            .expect("the run can start");
        run
    }

    /// Submits an input without a key.
    pub async fn submit(&self, run: &RunId, input: Input) -> Result<Accepted, SubmitError> {
        let cause = "a test".to_owned();
        self.engine
            .submit(Submission {
                run: run.clone(),
                input,
                dedupe: None,
                cause,
                seen: Seen::Anything,
            })
            .await
    }

    /// Acts as an operator.
    pub async fn operate(&self, run: &RunId, action: Action) -> Result<Accepted, SubmitError> {
        let by = self
            .stage
            .specs
            .first()
            .expect("a story has runs")
            .started_by
            .clone();
        self.submit(run, Input::Operate { by, action }).await
    }

    /// Approves whatever gate is open.
    pub async fn approve(&self, run: &RunId) {
        let state = self.until(run, |run| run.gate().is_some()).await;
        let gate = state.gate().expect("just seen").clone();
        let action = Action::Approve {
            gate: gate.kind,
            subject: gate.subject,
            comment: None,
        };
        self.operate(run, action).await.expect("the gate is open");
    }

    /// Waits until a run is as wanted; looks at every commit.
    pub async fn until(&self, run: &RunId, wanted: impl Fn(&Run) -> bool) -> Run {
        let mut commits = self.engine.committed();
        loop {
            let state = self.run(run).await;
            if wanted(&state) {
                return state;
            }
            let next = tokio::time::timeout(std::time::Duration::from_hours(1), commits.recv()).await;
            match next {
                Ok(Ok(_) | Err(RecvError::Lagged(_))) => {}
                Ok(Err(RecvError::Closed)) => panic!("the engine is gone"),
                Err(elapsed) => panic!("run {run} never came to what was wanted ({elapsed}): {state:?}"),
            }
        }
    }

    /// Reads a run.
    pub async fn run(&self, run: &RunId) -> Run {
        let row = self
            .stage
            .memory
            .run(run)
            .await
            .expect("calm weather")
            .expect("the run is there");
        serde_json::from_str(&row.state).expect("a readable state")
    }

    /// Reads the records of a run.
    pub async fn records(&self, run: &RunId) -> Vec<Record> {
        self.stage
            .memory
            .read(&StreamId::Run(run.clone()), 0, 100_000)
            .await
            .expect("calm weather")
    }

    /// Ends the engine and waits until it has.
    pub async fn end(self) -> Stage {
        self.shutdown.cancel();
        self.task.await.expect("the engine ends well");
        self.stage
    }

    /// Kills the engine; what it had under way is left as a dead process leaves it.
    pub async fn die(self) -> Stage {
        self.stage.world.set_dying(true);
        self.task.abort();
        // The task was aborted, so its end is no news.
        let _aborted = self.task.await;
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
        self.stage.world.set_dying(false);
        self.stage
    }
}
