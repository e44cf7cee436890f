//! What each sandbox of a run is opened with: one mechanism, and a profile that decides what it may have.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use conductor_domain::egress::Grant;
use conductor_domain::id::{EffectId, ProjectId, RunId};
use conductor_domain::input::Action;
use conductor_domain::instance::{InstanceInput, Registration, TestEgress};
use conductor_domain::phase::Phase;
use conductor_domain::spec::ExecutorName;
use conductor_domain::time::Timestamp;
use conductor_engine::Executors;
use conductor_port::Fault;
use conductor_port::egress::OutletSpec;
use conductor_port::executor::{
    Command, CommandResult, Entry, Executor, FileRefusal, Found, Match, Pattern, Profile, Sandbox,
    SandboxSpec,
};
use conductor_port::inbox::Inbox as _;
use conductor_port::lease::{Leases, ResourceKind, ResourceLease};
use conductor_port::ledger::EffectStatus;
use conductor_port::views::Views as _;
use conductor_testkit::egress::FakeEgress;
use conductor_testkit::rig::Rig;

/// A sandbox as it was opened, and the leases that its run held then.
#[derive(Debug, Clone)]
struct Opened {
    spec: SandboxSpec,
    leases: Vec<(ResourceKind, String)>,
}

/// Notes what an executor is asked for, and passes it on.
#[derive(Debug)]
struct Noting {
    inner: Arc<dyn Executor>,
    leases: Arc<dyn Leases>,
    opened: Arc<Mutex<Vec<Opened>>>,
    commands: Arc<Mutex<Vec<(EffectId, Command)>>>,
}

#[async_trait]
impl Executor for Noting {
    async fn open(&self, spec: SandboxSpec) -> Result<Box<dyn Sandbox>, Fault> {
        let held = self.leases.held(Some(&spec.run)).await?;
        let leases = held.into_iter().map(|lease| (lease.kind, lease.name)).collect();
        let effect = spec.effect.clone();
        let inner = self.inner.open(spec.clone()).await?;
        self.opened
            .lock()
            .expect("no panic")
            .push(Opened { spec, leases });
        Ok(Box::new(Noted {
            inner,
            effect,
            commands: Arc::clone(&self.commands),
        }))
    }

    async fn reap(&self, effect: &EffectId) -> Result<(), Fault> {
        self.inner.reap(effect).await
    }
}

#[derive(Debug)]
struct Noted {
    inner: Box<dyn Sandbox>,
    effect: EffectId,
    commands: Arc<Mutex<Vec<(EffectId, Command)>>>,
}

#[async_trait]
impl Sandbox for Noted {
    async fn bash(&self, command: Command) -> Result<CommandResult, Fault> {
        let noted = (self.effect.clone(), command.clone());
        self.commands.lock().expect("no panic").push(noted);
        self.inner.bash(command).await
    }

    async fn view(&self, path: &str) -> Result<Result<Vec<u8>, FileRefusal>, Fault> {
        self.inner.view(path).await
    }

    async fn create_file(&self, path: &str, content: &[u8]) -> Result<Result<(), FileRefusal>, Fault> {
        self.inner.create_file(path, content).await
    }

    async fn str_replace(&self, path: &str, old: &str, new: &str) -> Result<Result<(), FileRefusal>, Fault> {
        self.inner.str_replace(path, old, new).await
    }

    async fn list(&self, path: &str) -> Result<Result<Found<Entry>, FileRefusal>, Fault> {
        self.inner.list(path).await
    }

    async fn search(
        &self,
        path: &str,
        pattern: &Pattern,
    ) -> Result<Result<Found<Match>, FileRefusal>, Fault> {
        self.inner.search(path, pattern).await
    }

    async fn close(self: Box<Self>) -> Result<(), Fault> {
        self.inner.close().await
    }
}

/// What was seen of a whole run.
struct Seen {
    opened: Vec<Opened>,
    outlets: Vec<OutletSpec>,
    commands: Vec<(EffectId, Command)>,
}

impl Seen {
    fn of(&self, profile: Profile) -> Vec<&Opened> {
        let all = self.opened.iter();
        all.filter(|opened| opened.spec.profile == profile).collect()
    }

    fn outlets_of(&self, profile: Profile) -> Vec<&OutletSpec> {
        let owners: BTreeSet<_> = self
            .of(profile)
            .iter()
            .map(|opened| opened.spec.effect.clone())
            .collect();
        let all = self.outlets.iter();
        all.filter(|outlet| owners.contains(&outlet.effect)).collect()
    }
}

/// Plays a run to its pull request and to its end, in sandboxes that are noted.
async fn play(test_egress: TestEgress, grants: &[&str]) -> Seen {
    play_in(ExecutorName::Local, test_egress, grants).await
}

async fn play_in(executor: ExecutorName, test_egress: TestEgress, grants: &[&str]) -> Seen {
    let (opened, commands) = (Arc::default(), Arc::default());
    let egress = FakeEgress::default();
    let wire = |stage: &conductor_testkit::sim::Stage| {
        let noting = Noting {
            inner: stage.executor.clone(),
            leases: stage.memory.clone(),
            opened: Arc::clone(&opened),
            commands: Arc::clone(&commands),
        };
        conductor_engine::Ports {
            executors: Executors::default().with(executor, Arc::new(noting)),
            egress: Arc::new(egress.clone()),
            ..stage.ports(stage.agents())
        }
    };
    let mut rig = Rig::start_with(wire, |_options| {}).await;
    rig.stage.specs[0].executor = executor;
    let spec = rig.stage.specs[0].clone();
    let by = spec.started_by.clone();
    let registration = Registration {
        project: spec.project.clone(),
        repo: rig.stage.repo.clone(),
        test_command: spec.test_command.clone(),
        slots: 3,
        test_egress,
        board: None,
    };
    let mut inputs = vec![InstanceInput::RegisterRepo {
        by: by.clone(),
        registration,
    }];
    let elsewhere = ProjectId::parse("elsewhere").expect("a slug");
    inputs.push(InstanceInput::AddProject {
        by: by.clone(),
        project: elsewhere.clone(),
    });
    inputs.push(InstanceInput::GrantEgress {
        by: by.clone(),
        project: elsewhere,
        grant: grant("not-ours.example"),
    });
    inputs.extend(grants.iter().map(|text| InstanceInput::GrantEgress {
        by: by.clone(),
        project: spec.project.clone(),
        grant: grant(text),
    }));
    for input in inputs {
        rig.engine.submit_to_instance(input, "").await.expect("accepted");
    }
    let run = rig.start_run(1).await;
    rig.approve(&run).await;
    rig.until(&run, |run| matches!(run.phase, Phase::AwaitingMerge(_)))
        .await;
    nothing_is_held(&rig, &run, &egress).await;
    rig.operate(&run, Action::Cancel { comment: None })
        .await
        .expect("it can be called off");
    rig.until(&run, |run| run.cleaned_up).await;
    let held = rig.stage.memory.held(Some(&run)).await.expect("calm weather");
    assert_eq!(held, [], "everything is given back");
    Seen {
        opened: opened.lock().expect("no panic").clone(),
        outlets: egress.opened(),
        commands: commands.lock().expect("no panic").clone(),
    }
}

/// ENV-2: no process group, sandbox or outlet outlives its effect.
async fn nothing_is_held(rig: &Rig, run: &RunId, egress: &FakeEgress) {
    let held = rig.stage.memory.held(Some(run)).await.expect("calm weather");
    let groups: Vec<_> = held
        .iter()
        .filter(|lease| matches!(lease.kind, ResourceKind::ProcessGroup | ResourceKind::Container))
        .collect();
    assert!(groups.is_empty(), "{groups:?}");
    assert_eq!(rig.stage.executor.open_sandboxes(), BTreeSet::new());
    assert_eq!(egress.open_outlets(), BTreeSet::new());
}

fn grant(text: &str) -> Grant {
    Grant::parse(text).expect("a grant")
}

/// EXEC-3a, ENV-2, BEY-6: tools work on the worktree with one way out and the grants of their own project; tests work on a
/// directory of their own, with none; each has its lease before it is opened.
#[tokio::test(start_paused = true)]
async fn each_profile_has_what_it_may_have_and_a_lease() {
    let seen = play(TestEgress::None, &["files.example"]).await;
    let (tools, tests) = (seen.of(Profile::Tool), seen.of(Profile::Test));
    assert!(!tools.is_empty() && !tests.is_empty());
    assert!(
        seen.of(Profile::Agent).is_empty(),
        "no agent has a program of its own yet"
    );
    for opened in tools.iter().chain(&tests) {
        let group = format!("rig/{}", opened.spec.effect);
        assert!(
            opened.leases.contains(&(ResourceKind::ProcessGroup, group)),
            "{opened:?}"
        );
    }
    for tool in &tools {
        assert_eq!(tool.spec.ways.len(), 1, "{tool:?}");
    }
    for test in &tests {
        assert_eq!(test.spec.ways, [], "{test:?}");
        assert!(
            tools.iter().all(|tool| tool.spec.dir != test.spec.dir),
            "{test:?}"
        );
    }
    let outlets = seen.outlets_of(Profile::Tool);
    assert_eq!(outlets.len(), tools.len());
    for outlet in outlets {
        assert_eq!(outlet.grants, [grant("files.example")]);
    }
    assert_eq!(seen.outlets_of(Profile::Test), Vec::<&OutletSpec>::new());
    for test in &tests {
        let mut own = seen
            .commands
            .iter()
            .filter(|(effect, _)| *effect == test.spec.effect);
        assert!(own.all(|(_, command)| command.environment.is_empty()));
    }
}

/// EXEC-3a: tests have a way out where the registration says so; every command is told of it, in its own words.
#[tokio::test(start_paused = true)]
async fn tests_leave_where_the_registration_says_so() {
    let seen = play(TestEgress::AsProject, &[]).await;
    let tests = seen.of(Profile::Test);
    assert_eq!(seen.outlets_of(Profile::Test).len(), tests.len());
    for test in tests {
        assert_eq!(test.spec.ways.len(), 1);
        let mut own = seen
            .commands
            .iter()
            .filter(|(effect, _)| *effect == test.spec.effect);
        let (effect, command) = own.next().expect("a test command");
        let words = command.argv.join(" ");
        assert_eq!(
            command.environment,
            [("FAKE_PROXY".to_owned(), format!("{effect}/{words}"))]
        );
    }
}

/// ENV-2: a container is a resource of its own kind, on record before it exists.
#[tokio::test(start_paused = true)]
async fn containers_are_leased_as_such() {
    let seen = play_in(ExecutorName::Docker, TestEgress::None, &[]).await;
    assert!(!seen.opened.is_empty());
    for opened in &seen.opened {
        let container = (ResourceKind::Container, format!("rig/{}", opened.spec.effect));
        assert!(opened.leases.contains(&container), "{opened:?}");
        assert!(
            !opened
                .leases
                .iter()
                .any(|(kind, _)| *kind == ResourceKind::ProcessGroup),
            "{opened:?}"
        );
    }
}

/// ENV-2, RUN-12a: what is on record at start for an effect that nobody performs any more is ended and given back: process group
/// or container, and the sandbox of an agent's program like any other.
#[tokio::test(start_paused = true)]
async fn recovery_ends_whatever_is_on_record_for_effects_that_are_over() {
    let rig = Rig::start_story().await;
    let run = rig.start_run(1).await;
    rig.until(&run, |run| run.phase.gate().is_some()).await;
    let rows = rig.stage.memory.effects(&run).await.expect("calm weather");
    let over = rows
        .iter()
        .find(|row| row.status == EffectStatus::Done && row.kind.executes_foreign_code())
        .expect("an agent was invoked")
        .id
        .clone();
    let stage = rig.end().await;
    let spec = SandboxSpec::new(
        over.clone(),
        run.clone(),
        Profile::Agent,
        format!("/fake/run-{run}").into(),
    );
    // The process that held it died.
    std::mem::forget(stage.executor.open(spec).await.expect("calm weather"));
    assert!(stage.executor.open_sandboxes().contains(&over));
    for kind in [ResourceKind::ProcessGroup, ResourceKind::Container] {
        let lease = ResourceLease {
            kind,
            name: format!("rig/{over}"),
            run: run.clone(),
            taken_at: Timestamp::default(),
            heartbeat: Timestamp::default(),
        };
        stage.memory.take(&lease).await.expect("calm weather");
    }
    let agents = stage.agents();
    let rig = Rig::resume(stage, agents).await;
    assert!(!rig.stage.executor.open_sandboxes().contains(&over));
    let held = rig.stage.memory.held(Some(&run)).await.expect("calm weather");
    assert!(
        held.iter().all(|lease| !lease.name.ends_with(over.as_str())),
        "{held:?}"
    );
}
