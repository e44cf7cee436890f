//! Sets the stage of a story: the fakes, what stands in the repository, and how a process is wired to them.
//!
//! This module does not know what is played on it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use conductor_domain::artifact::ArtifactKind;
use conductor_domain::forge::Standing;
use conductor_domain::id::{IssueNumber, OperatorName, ProjectId, RepoId, RunId};
use conductor_domain::spec::{
    AgentBackend, AgentSpec, ExecutorName, Limits, Mode, PolicyVersion, Priority, RepoRef, RunSpec,
};
use conductor_engine::{Engine, Executors, Options, Ports};
use conductor_port::blobs::Blobs as _;
use conductor_port::forge::Issue;
use conductor_store::Memory;

use super::death::Reaper;
use super::people::Memories;
use super::{Story, Twist, script};
use crate::agent::FakeAgent;
use crate::clock::VirtualClock;
use crate::egress::FakeEgress;
use crate::executor::FakeExecutor;
use crate::forge::FakeForge;
use crate::ledger::RoughLedger;
use crate::workspace::FakeWorkspace;
use crate::world::World;

/// Everything that outlives a process, and what the story needs to be played on it.
#[derive(Debug)]
pub struct Stage {
    /// What is played.
    pub story: Story,
    /// The weather.
    pub world: Arc<World>,
    /// What Conductor keeps.
    pub memory: Arc<Memory>,
    /// The forge.
    pub forge: Arc<FakeForge>,
    /// The disk.
    pub workspace: Arc<FakeWorkspace>,
    /// The processes.
    pub executor: Arc<FakeExecutor>,
    /// The time.
    pub clock: Arc<VirtualClock>,
    /// The repository.
    pub repo: RepoRef,
    /// What each run is started with, in the order in which they are.
    pub specs: Vec<RunSpec>,
    pub(super) deaths: Rc<Reaper>,
    pub(super) memories: RefCell<Memories>,
}

impl Stage {
    /// Sets the stage.
    pub async fn set(seed: u64, story: &Story) -> Result<Self, String> {
        let world = Arc::new(World::new(seed, story.climate));
        let memory = Arc::new(Memory::new());
        let forge = if story.has(Twist::ForgetfulForge) {
            FakeForge::forgetful
        } else {
            FakeForge::new
        };
        let forge = Arc::new(forge(world.clone()));
        let workspace = Arc::new(FakeWorkspace::new(world.clone(), forge.clone()));
        let executor = Arc::new(FakeExecutor::new(
            world.clone(),
            workspace.share(),
            script::run_command,
        ));
        let repo = repo();
        workspace.push_to_base(
            &repo,
            BTreeMap::from([("README.md".to_owned(), b"hello\n".to_vec())]),
        );
        let scenario = memory
            .put(ArtifactKind::Feedback, b"scenario")
            .await
            .map_err(|fault| fault.to_string())?;
        let mut specs = vec![];
        for n in 1..=story.runs as u64 {
            let issue = Issue {
                title: format!("Make thing {n}"),
                body: format!("Thing {n} is missing."),
                open: true,
                author: "someone".to_owned(),
                standing: Standing::Owner,
                comments: vec![],
            };
            forge.archive().issues.insert((repo.id, n), issue);
            specs.push(spec(n, &repo, scenario.digest.clone()).map_err(|error| error.to_string())?);
        }
        Ok(Self {
            story: story.clone(),
            world,
            memory,
            forge,
            workspace,
            executor,
            clock: Arc::new(VirtualClock::start()),
            repo,
            specs,
            deaths: Reaper::new(story.deaths),
            memories: RefCell::default(),
        })
    }

    /// Wires one process of the story.
    pub fn engine(&self, n: usize) -> Arc<Engine> {
        let owns_name = self.story.has(Twist::OwnsName);
        let name = if owns_name {
            "process".to_owned()
        } else {
            format!("process-{n}")
        };
        let options = Options {
            concurrency: self.story.concurrency,
            owns_name,
            ..Options::new(name)
        };
        Engine::new(self.ports(self.agents()), options)
    }

    /// Wires everything to an agent.
    pub fn ports(&self, agent: FakeAgent) -> Ports {
        Ports {
            ledger: Arc::new(RoughLedger::new(self.world.clone(), self.memory.clone())),
            views: self.memory.clone(),
            blobs: self.memory.clone(),
            tool_log: self.memory.clone(),
            leases: self.memory.clone(),
            duties: self.memory.clone(),
            workspace: self.workspace.clone(),
            executors: Executors::default().with(ExecutorName::UnsafePlain, self.executor.clone()),
            egress: Arc::new(FakeEgress::default()),
            agent: Arc::new(agent),
            forge: self.forge.clone(),
            merges: self.forge.clone(),
            clock: self.clock.clone(),
        }
    }

    /// The agents of the story.
    pub fn agents(&self) -> FakeAgent {
        script::agent(self.world.clone(), self.story.has(Twist::Question))
    }
}

fn repo() -> RepoRef {
    RepoRef {
        id: RepoId(7),
        host: "forge.test".to_owned(),
        owner: "acme".to_owned(),
        name: "thing".to_owned(),
        clone_url: "https://forge.test/acme/thing.git".to_owned(),
        base_branch: "main".to_owned(),
    }
}

fn spec(
    n: u64,
    repo: &RepoRef,
    scenario: conductor_domain::digest::Digest,
) -> Result<RunSpec, conductor_domain::id::InvalidId> {
    Ok(RunSpec {
        run: RunId::parse(format!("r{n}"))?,
        project: ProjectId::parse("demo")?,
        repo: repo.clone(),
        issue: IssueNumber(n),
        started_by: OperatorName::parse("ada")?,
        starter_rank: conductor_domain::staff::Rank::Operator,
        priority: Priority::NORMAL,
        test_command: vec!["check".to_owned()],
        agents: AgentSpec {
            backend: AgentBackend::Scripted { scenario },
            mode: Mode::Mock,
        },
        executor: ExecutorName::UnsafePlain,
        limits: Limits::default(),
        policy: PolicyVersion("builtin-1".to_owned()),
        page: format!("http://localhost/runs/r{n}"),
        skills: vec![],
        policies: vec![],
        board: None,
    })
}
