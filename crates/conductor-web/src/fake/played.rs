//! Plays a run with the domain's own functions and keeps what the engine would keep of it.
//!
//! It does not know the door.

use conductor_domain::artifact::{Artifact, ArtifactKind};
use conductor_domain::digest::Digest;
use conductor_domain::effect::EffectKind;
use conductor_domain::fault::Fault;
use conductor_domain::forge::IssueSnapshot;
use conductor_domain::gate::GateKind;
use conductor_domain::id::{CommitId, EffectId, IssueNumber, OperatorName};
use conductor_domain::input::{Action, Input, PolicyVerdict, Report};
use conductor_domain::invocation::{InvocationReport, Outcome, ToolLogHead, Usage};
use conductor_domain::plan::{Plan, Review, Verdict};
use conductor_domain::run::Run;
use conductor_domain::time::Timestamp;
use conductor_domain::{Context, decide, evolve};
use conductor_port::ledger::{Record, RunRow, StreamId};

use super::{Fake, row};

/// A run that is being played in a world.
pub(crate) struct Played {
    fake: Fake,
    run: Option<Run>,
    seq: u64,
}

impl Played {
    /// Starts run `r-1` on issue 1.
    pub(crate) fn start(fake: &Fake) -> Self {
        let born: Run = serde_json::from_str(&row("r-1", 1, None).state).expect("a run");
        let mut played = Self {
            fake: fake.clone(),
            run: None,
            seq: 0,
        };
        played.feed(&Input::StartRun {
            spec: Box::new(born.spec),
        });
        played
    }

    /// Plays it to where its working directory is asked for.
    pub(crate) fn until_workspace(mut self) -> Self {
        self.read_issue();
        self
    }

    fn read_issue(&mut self) {
        let issue = IssueSnapshot {
            number: IssueNumber(1),
            title: "T".into(),
            artifact: self.keep(ArtifactKind::Issue, "the issue"),
            open: true,
            author: "ann".into(),
            untrusted: None,
        };
        self.report(EffectKind::ReadIssue, Report::IssueRead { issue });
    }

    /// Plays it to the gate where a person judges the plan.
    pub(crate) fn until_plan_gate(self, plan: &str) -> Self {
        let mut played = self.until_workspace();
        let base = CommitId::parse("b".repeat(40)).expect("hex");
        played.report(EffectKind::PrepareWorkspace, Report::WorkspacePrepared { base });
        played.propose(plan);
        played
    }

    fn propose(&mut self, plan: &str) {
        let artifact = self.keep(ArtifactKind::Plan, plan);
        let plan = Plan {
            artifact,
            summary: "S".into(),
            files: vec!["a".into()],
        };
        self.invoked(Outcome::Planned { plan });
        let artifact = self.keep(ArtifactKind::Review, "fine");
        self.invoked(Outcome::Reviewed {
            review: Review {
                verdict: Verdict::Approve,
                artifact,
            },
        });
        self.read_issue();
    }

    /// Sends the plan back, and plays to where another stands before the person.
    pub(crate) fn until_revised(mut self, plan: &str) -> Self {
        let (gate, subject) = self.asked();
        let feedback = self.keep(ArtifactKind::Feedback, "not so");
        self.operate(Action::Revise {
            gate,
            subject,
            feedback,
        });
        self.propose(plan);
        self
    }

    /// Approves the plan, and plays to where the work is committed.
    pub(crate) fn until_committed(mut self, change: &str) -> Self {
        let (gate, subject) = self.asked();
        self.operate(Action::Approve {
            gate,
            subject,
            comment: None,
        });
        self.invoked(Outcome::Implemented);
        let change = Some(self.keep(ArtifactKind::Diff, change));
        let commit = CommitId::parse("c".repeat(40)).expect("hex");
        let tree = CommitId::parse("d".repeat(40)).expect("hex");
        self.report(
            EffectKind::CommitWork,
            Report::WorkCommitted { commit, tree, change },
        );
        self
    }

    /// Calls the run off, and lets its clean-up fail for good.
    pub(crate) fn until_left_behind(mut self, why: &str) -> Self {
        self.operate(Action::Cancel { comment: None });
        let effect = self.under_way(EffectKind::CleanUp);
        self.feed(&Input::Faulted {
            effect,
            attempt: 1,
            fault: Fault::permanent(why),
            remains: None,
        });
        self
    }

    fn asked(&self) -> (GateKind, Digest) {
        let gate = self.run.as_ref().and_then(Run::gate).expect("a gate is open");
        (gate.kind, gate.subject.clone())
    }

    fn operate(&mut self, action: Action) {
        let by = OperatorName::parse("ann").expect("a name");
        self.feed(&Input::Operate { by, action });
    }

    /// Takes an input in, as the engine would.
    pub(crate) fn feed(&mut self, input: &Input) {
        let now = Timestamp(1_000_000 * i64::try_from(self.seq + 1).expect("a short story"));
        let at = Context {
            now,
            seq: self.seq + 1,
            policy: PolicyVerdict::Allow,
            merge: None,
        };
        let decision = decide(self.run.as_ref(), input, &at).expect("the story fits the machine");
        self.record("fact", "input", "{}".to_owned(), now);
        for event in &decision.events {
            self.run = evolve(self.run.take(), event);
            self.record(
                "decision",
                event.name(),
                serde_json::to_string(event).expect("plain data"),
                now,
            );
        }
        let run = self.run.as_ref().expect("the run was started");
        let row = RunRow {
            phase: run.phase.name().to_string(),
            held: run.is_held(),
            needs_human: run.needs_human(),
            terminal: run.phase.is_terminal(),
            state: serde_json::to_string(run).expect("plain data"),
            seq: self.seq,
            updated_at: now,
            ..row("r-1", 1, None)
        };
        self.fake.world().rows = vec![row];
    }

    fn under_way(&self, kind: EffectKind) -> EffectId {
        let run = self.run.as_ref().expect("the run was started");
        let in_flight = run.in_flight.iter().find(|(_, effect)| effect.kind == kind);
        in_flight
            .unwrap_or_else(|| panic!("{kind} is not under way"))
            .0
            .clone()
    }

    fn report(&mut self, kind: EffectKind, report: Report) {
        let effect = self.under_way(kind);
        self.feed(&Input::Performed {
            effect,
            report: Box::new(report),
        });
    }

    fn invoked(&mut self, outcome: Outcome) {
        let tools = ToolLogHead {
            calls: 0,
            head: Digest::of(b""),
        };
        let report = InvocationReport {
            outcome,
            tools,
            usage: Usage::default(),
            papers: None,
            purpose: None,
            saved: None,
        };
        self.report(EffectKind::Invoke, Report::Invoked { report });
    }

    fn keep(&self, kind: ArtifactKind, text: &str) -> Artifact {
        let artifact = Artifact::of(kind, text.as_bytes());
        self.fake
            .world()
            .blobs
            .insert(artifact.digest.clone(), text.as_bytes().to_vec());
        artifact
    }

    fn record(&mut self, class: &str, kind: &str, payload: String, at: Timestamp) {
        self.seq += 1;
        let run = self
            .run
            .as_ref()
            .map_or_else(|| row("r-1", 1, None).run, |run| run.id().clone());
        self.fake.world().records.push(Record {
            stream: StreamId::Run(run).as_key(),
            seq: self.seq,
            event_id: format!("e{}", self.seq),
            schema_version: 1,
            class: class.to_owned(),
            kind: kind.to_owned(),
            payload,
            payload_hash: String::new(),
            actor_type: "system".to_owned(),
            actor: "test".to_owned(),
            cause: String::new(),
            at,
            hash: String::new(),
        });
    }
}
