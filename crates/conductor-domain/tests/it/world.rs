//! A run under test: applies inputs, checks the laws after each, and keeps the whole history for replays.

use conductor_domain::artifact::{Artifact, ArtifactKind};
use conductor_domain::digest::Digest;
use conductor_domain::effect::{Effect, EffectKind};
use conductor_domain::id::{CommitId, EffectId, IssueNumber, OperatorName, ProjectId, RepoId, RunId};
use conductor_domain::input::PolicyVerdict;
use conductor_domain::invariant::broken_law;
use conductor_domain::role::Role;
use conductor_domain::skill::{SkillFolder, SkillLock, SkillManifest};
use conductor_domain::spec::{
    AgentBackend, AgentSpec, ExecutorName, Limits, Mode, PolicyVersion, Priority, RepoRef, RunSpec,
};
use conductor_domain::time::{Millis, Timestamp};
use conductor_domain::{Context, Decision, EffectRequest, Input, Refusal, Run, decide, evolve};

/// A run under test.
pub(crate) struct World {
    pub(crate) run: Option<Run>,
    pub(crate) now: Timestamp,
    pub(crate) seq: u64,
    pub(crate) asked: Vec<EffectRequest>,
    pub(crate) history: Vec<(Input, Context, Decision)>,
    pub(crate) commits: u64,
    /// Which policy allows a merge.
    pub(crate) merge: Option<String>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            run: None,
            now: Timestamp(1_800_000_000_000_000),
            seq: 0,
            asked: vec![],
            history: vec![],
            commits: 0,
            merge: None,
        }
    }

    /// Gives the run an input, as `commit` would: decides, folds, checks the laws.
    pub(crate) fn give(&mut self, input: Input) -> Result<Decision, Refusal> {
        self.give_under(input, PolicyVerdict::Allow)
    }

    pub(crate) fn give_under(&mut self, input: Input, policy: PolicyVerdict) -> Result<Decision, Refusal> {
        let at = Context {
            now: self.now,
            seq: self.seq + 1,
            policy,
            merge: self.merge.clone(),
        };
        let decision = decide(self.run.as_ref(), &input, &at)?;
        for event in &decision.events {
            self.run = evolve(self.run.take(), event);
        }
        self.seq += 1 + decision.events.len() as u64;
        self.asked.extend(decision.effects.iter().cloned());
        if let Some(law) = self.run.as_ref().and_then(broken_law) {
            panic!("{law}\nafter {input:?}\n{:#?}", self.run);
        }
        self.history.push((input, at, decision.clone()));
        Ok(decision)
    }

    pub(crate) fn run(&self) -> &Run {
        self.run.as_ref().expect("the run was started")
    }

    /// The newest effect of a kind that has not been heard of.
    pub(crate) fn waiting(&self, kind: EffectKind) -> Option<EffectRequest> {
        let in_flight = &self.run.as_ref()?.in_flight;
        self.asked
            .iter()
            .rev()
            .find(|asked| asked.effect.kind() == kind && in_flight.contains_key(&asked.id))
            .cloned()
    }

    pub(crate) fn pass(&mut self, time: Millis) {
        self.now = self.now.after(time);
    }

    /// The commit that the newest effect names, whatever it calls it.
    pub(crate) fn commit_of(effect: &Effect) -> Option<CommitId> {
        match effect {
            Effect::RunTests { commit, .. } | Effect::Push { commit, .. } => Some(commit.clone()),
            _other => None,
        }
    }
}

pub(crate) fn spec() -> RunSpec {
    RunSpec {
        run: RunId::parse("r1").expect("a slug"),
        project: ProjectId::parse("p").expect("a slug"),
        repo: RepoRef {
            id: RepoId(42),
            host: "forge.test".into(),
            owner: "o".into(),
            name: "n".into(),
            clone_url: "http://forge.test/o/n.git".into(),
            base_branch: "main".into(),
        },
        issue: IssueNumber(7),
        started_by: operator("ann"),
        starter_rank: conductor_domain::staff::Rank::Operator,
        priority: Priority::NORMAL,
        test_command: vec!["make".into(), "test".into()],
        agents: AgentSpec {
            backend: AgentBackend::Scripted {
                scenario: Digest::of(b"scenario"),
            },
            mode: Mode::Mock,
        },
        executor: ExecutorName::UnsafePlain,
        limits: Limits {
            plan_revisions: 2,
            implementation_retries: 2,
            agent_retries: 1,
            interruptions: 3,
            ..Limits::default()
        },
        policy: PolicyVersion("builtin-1".into()),
        page: "http://c.test/runs/r1".into(),
        skills: vec![],
        policies: vec![],
        board: None,
    }
}

/// A skill of the Implementer, locked and told.
pub(crate) fn skill() -> SkillLock {
    SkillLock {
        name: SkillFolder::parse("pdf").expect("a plain name"),
        roles: vec![Role::Implementer],
        source: "/skills/pdf".into(),
        commit: None,
        content: Digest::of(b"content"),
        parts: vec![Artifact::of(ArtifactKind::Skill, b"[]")],
        manifest: Some(SkillManifest {
            file: "SKILL.md".into(),
            description: "Reads <PDF> & more.".into(),
        }),
    }
}

pub(crate) fn operator(name: &str) -> OperatorName {
    OperatorName::parse(name).expect("a name")
}

/// A commit id made from a number.
pub(crate) fn commit(n: u64) -> CommitId {
    CommitId::parse(format!("{n:040x}")).expect("hex digits")
}

pub(crate) fn kept(kind: ArtifactKind, text: &str) -> Artifact {
    Artifact::of(kind, text.as_bytes())
}

pub(crate) fn effect_id(text: &str) -> EffectId {
    EffectId::parse(text).expect("an effect id")
}
