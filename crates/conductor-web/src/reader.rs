//! Reads what is kept and answers in the words of the wire; the same for the server and for a database without one.
//!
//! Changes nothing: of the ledger it uses `read` alone. This module does not know HTTP.

mod inbox;
mod policy;
mod work;

pub use work::CallsWanted;

use std::sync::Arc;

use conductor_domain::artifact::Artifact;
use conductor_domain::digest::Digest;
use conductor_domain::effect::EffectKind;
use conductor_domain::egress::{EgressDenial, EgressWay, Grant};
use conductor_domain::fault::Fault;
use conductor_domain::id::{EffectId, OperatorName, ProjectId, RunId};
use conductor_domain::instance::{Instance, Registration};
use conductor_domain::phase::{Phase, SetUp};
use conductor_domain::refusal::Refusal;
use conductor_domain::run::Run;
use conductor_domain::staff::Staff;
use conductor_domain::time::Timestamp;
use conductor_port::blobs::{Blobs, ToolLog};
use conductor_port::known;
use conductor_port::lease::{Leases, ResourceKind};
use conductor_port::ledger::{Ledger, Record, RunRow, StreamId};
use conductor_port::search::Search;
use conductor_port::tally::Tally;
use conductor_port::views::{RunFilter, Views};

use crate::api::{
    DenialView, EffectList, EffectView, EventList, EventView, GateView, GrantView, InstanceView,
    PullRequestView, RepoView, RunDetail, RunList, RunView, StateChange, SuspensionView, TextView, WriteList,
    WriteView,
};
use crate::detail;
use crate::error::Error;
use crate::history::History;

/// The most records that one call returns.
pub(crate) const MAX_EVENTS: u32 = 1_000;
/// The most runs that one call returns.
const MAX_RUNS: u32 = 500;

/// Reads what is kept.
#[derive(Debug, Clone)]
pub struct Reader {
    views: Arc<dyn Views>,
    ledger: Arc<dyn Ledger>,
    blobs: Arc<dyn Blobs>,
    leases: Arc<dyn Leases>,
    pub(crate) search: Arc<dyn Search>,
    pub(crate) tally: Arc<dyn Tally>,
    calls: Arc<dyn ToolLog>,
}

impl Reader {
    /// Makes a reader over several views of one store.
    pub fn new(
        views: Arc<dyn Views>,
        ledger: Arc<dyn Ledger>,
        blobs: Arc<dyn Blobs>,
        leases: Arc<dyn Leases>,
        search: Arc<dyn Search>,
        tally: Arc<dyn Tally>,
        calls: Arc<dyn ToolLog>,
    ) -> Self {
        Self {
            views,
            ledger,
            blobs,
            leases,
            search,
            tally,
            calls,
        }
    }

    /// Reads who works here.
    pub(crate) async fn staff(&self) -> Result<Staff, Error> {
        Ok(self.views.instance().await?.0.staff)
    }

    /// Reads a run's row and state; a run that is not there is a refusal with a code.
    pub(crate) async fn state(&self, id: &RunId) -> Result<(RunRow, Run), Error> {
        let row = self.views.run(id).await?.ok_or(Refusal::NoSuchRun)?;
        let run = row.parse()?;
        Ok((row, run))
    }

    /// Tells whether a run is there and of that project.
    pub(crate) async fn is_of(&self, id: &RunId, project: &ProjectId) -> Result<bool, Error> {
        let row = self.views.run(id).await?;
        Ok(row.is_some_and(|row| row.project == project.as_str()))
    }

    /// Lists runs, newest first.
    pub async fn runs(&self, mut filter: RunFilter) -> Result<RunList, Error> {
        filter.limit = if filter.limit == 0 {
            100
        } else {
            filter.limit.min(MAX_RUNS)
        };
        let rows = self.views.runs(&filter).await?;
        let full = rows.len() == usize::try_from(filter.limit).unwrap_or(usize::MAX);
        let next = rows.last().filter(|_| full).map(|row| row.run.clone());
        let mut runs = Vec::with_capacity(rows.len());
        for row in &rows {
            runs.push(match row.parse() {
                Ok(run) => detail::run_view(row, &run),
                Err(fault) => damaged(row, fault),
            });
        }
        Ok(RunList { runs, next })
    }

    /// Reads the rows of runs; for the door's own questions.
    pub(crate) async fn rows(&self, filter: &RunFilter) -> Result<Vec<RunRow>, Error> {
        Ok(self.views.runs(filter).await?)
    }

    /// Reads a page of rows and moves the filter behind it, for whoever must leave none out; after the last one it is empty.
    pub(crate) async fn next_rows(&self, filter: &mut RunFilter) -> Result<Vec<RunRow>, Error> {
        let rows = self.views.runs(filter).await?;
        if let Some(last) = rows.last() {
            filter.after = Some(last.run.clone());
        }
        Ok(rows)
    }

    /// Counts runs, up to the filter's limit.
    pub(crate) async fn count(&self, filter: &RunFilter) -> Result<u32, Error> {
        Ok(self.views.count(filter).await?)
    }

    /// Tells everything about one run.
    pub async fn run(&self, id: &RunId) -> Result<RunDetail, Error> {
        let (row, run) = self.state(id).await?;
        self.detail(&row, &run).await
    }

    /// Tells where a run stands, briefly.
    pub(crate) async fn state_change(&self, id: &RunId) -> Result<StateChange, Error> {
        let (row, run) = self.state(id).await?;
        let waits_for = match self.queued(&row, &run).await? {
            Some(queued) => queued,
            None => detail::waits_for(&run),
        };
        Ok(StateChange {
            run: detail::run_view(&row, &run),
            waits_for,
            cleaned_up: run.cleaned_up,
        })
    }

    /// Says which slot a run waits for, where all are taken by others; it would look busy otherwise.
    async fn queued(&self, row: &RunRow, run: &Run) -> Result<Option<String>, Error> {
        if run.is_held() || !self.is_before_its_slot(run).await? {
            return Ok(None);
        }
        let (instance, _) = self.views.instance().await?;
        let Some(registration) = instance.repos.get(&row.repo) else {
            return Ok(None);
        };
        let filter = RunFilter {
            repo: Some(row.repo),
            unfinished: true,
            limit: MAX_RUNS,
            ..RunFilter::default()
        };
        let mut taken = 0;
        for other in self.views.runs(&filter).await? {
            let Ok(other) = other.parse() else { continue };
            let holds_one = !other.is_out_of_the_way()
                && !matches!(other.phase, Phase::Pending(SetUp::ReadingIssue))
                && !self.is_before_its_slot(&other).await?;
            taken += u32::from(holds_one);
        }
        let slots = registration.slots;
        Ok((taken >= slots)
            .then(|| format!("a free slot of {} ({taken} of {slots} taken)", registration.repo)))
    }

    /// Tells whether a run asked for its working directory and nobody began to make it; the slot is taken with that.
    async fn is_before_its_slot(&self, run: &Run) -> Result<bool, Error> {
        if !matches!(run.phase, Phase::Pending(SetUp::PreparingWorkspace)) {
            return Ok(false);
        }
        let effects = self.views.effects(run.id()).await?;
        let mut asked = effects
            .iter()
            .filter(|effect| effect.kind == EffectKind::PrepareWorkspace);
        Ok(asked.all(|effect| effect.attempts == 0))
    }

    /// Reads a run's whole story.
    async fn history(&self, run: &RunId) -> Result<History, Error> {
        let mut history = History::default();
        let stream = StreamId::Run(run.clone());
        let mut after = 0;
        loop {
            let records = self.ledger.read(&stream, after, MAX_EVENTS).await?;
            let Some(last) = records.last() else { break };
            after = last.seq;
            for record in &records {
                history.add(record);
            }
        }
        Ok(history)
    }

    async fn detail(&self, row: &RunRow, run: &Run) -> Result<RunDetail, Error> {
        let history = self.history(&row.run).await?;
        // Who asks does not change what the machine accepts today; the name only has to be one.
        let anyone = OperatorName::parse("operator").expect("a plain word is an operator name");
        let allowed = detail::allowed(run, row, &anyone);
        let plan = match &history.plan {
            Some(plan) => Some(self.text(&plan.artifact).await?),
            None => None,
        };
        let queued = self.queued(row, run).await?;
        let is_under_way = |kind: EffectKind| queued.is_none() || kind != EffectKind::PrepareWorkspace;
        let under_way = run
            .in_flight
            .values()
            .filter(|effect| is_under_way(effect.kind))
            .map(|effect| effect.kind.to_string())
            .collect();
        Ok(RunDetail {
            run: detail::run_view(row, run),
            branch: run.spec.branch(),
            ports: self.ports(&row.run).await?,
            skills: run.spec.skills.iter().map(detail::skill_view).collect(),
            waits_for: queued.unwrap_or_else(|| detail::waits_for(run)),
            next: detail::next_steps(run, &allowed),
            allowed: allowed.into_iter().map(str::to_owned).collect(),
            holds: detail::holds(run),
            gate: self.gate(run, &history).await?,
            asked_at: history.asked_at(run),
            plan,
            phases: history.phases(),
            tests: history.tests,
            denials: self.denials(run, &history.denials).await?,
            overrides: run.reliefs.iter().map(detail::override_view).collect(),
            pull_request: run.pull_request.as_ref().map(|pull_request| PullRequestView {
                number: pull_request.number.0,
                url: pull_request.url.clone(),
                head: pull_request.head.to_string(),
            }),
            attempts: history.attempts,
            plans: history.plans,
            under_way,
            cleaned_up: run.cleaned_up,
            saved: history.saved,
        })
    }

    async fn denials(
        &self,
        run: &Run,
        denials: &[(Timestamp, EffectId, EgressDenial)],
    ) -> Result<Vec<DenialView>, Error> {
        if denials.is_empty() {
            return Ok(vec![]);
        }
        let (instance, _) = self.views.instance().await?;
        let project = &run.spec.project;
        let granted = instance.egress_of(project);
        let views = denials.iter();
        Ok(views
            .map(|(at, effect, denial)| detail::denial_view(*at, effect, denial, project, granted))
            .collect())
    }

    async fn ports(&self, run: &RunId) -> Result<Vec<String>, Error> {
        let held = self.leases.held(Some(run)).await?.into_iter();
        let ports = held.filter(|lease| lease.kind == ResourceKind::Port);
        Ok(ports.map(|lease| lease.name).collect())
    }

    async fn gate(&self, run: &Run, history: &History) -> Result<Option<GateView>, Error> {
        let Some(gate) = run.gate() else {
            return Ok(None);
        };
        let mut shown = Vec::new();
        for artifact in run.asked() {
            shown.push(self.text(artifact).await?);
        }
        let findings = gate.findings.iter().map(ToString::to_string).collect();
        Ok(Some(GateView {
            kind: gate.kind,
            subject: gate.subject.clone(),
            opened_at: gate.opened_at,
            findings,
            since: self.since(gate, history, &shown).await?,
            shown,
        }))
    }

    async fn text(&self, artifact: &Artifact) -> Result<TextView, Error> {
        let bytes = self.blobs.get(&artifact.digest).await?.ok_or_else(|| {
            Fault::permanent(format!(
                "{} {} {}",
                artifact.kind.as_str(),
                artifact.digest,
                known::NOT_KEPT
            ))
        })?;
        Ok(TextView {
            kind: artifact.kind.as_str().to_owned(),
            digest: artifact.digest.clone(),
            truncated: artifact.truncated,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        })
    }

    /// Reads kept bytes.
    pub async fn artifact(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        self.blobs.get(digest).await?.ok_or_else(|| Error::NotFound {
            what: format!("artifact {digest}"),
        })
    }

    /// Reads records of a run after `after`, in order.
    pub async fn events(&self, id: &RunId, after: u64, limit: u32) -> Result<EventList, Error> {
        let limit = limit.clamp(1, MAX_EVENTS);
        let records = self.ledger.read(&StreamId::Run(id.clone()), after, limit).await?;
        if records.is_empty() {
            self.state(id).await?;
        }
        let is_full = u32::try_from(records.len()).is_ok_and(|count| count == limit);
        Ok(EventList {
            next: records.last().filter(|_| is_full).map(|last| last.seq),
            events: records.into_iter().map(event_view).collect(),
        })
    }

    /// Lists the effects of a run.
    pub async fn effects(&self, id: &RunId) -> Result<EffectList, Error> {
        self.state(id).await?;
        let rows = self.views.effects(id).await?;
        let effects = rows
            .into_iter()
            .map(|row| EffectView {
                id: row.id,
                kind: row.kind.to_string(),
                status: row.status.as_str().to_owned(),
                attempts: row.attempts,
                stop: row.stop,
                created_at: row.created_at,
            })
            .collect();
        Ok(EffectList { effects })
    }

    /// Lists the writes of a run at the forge.
    pub async fn writes(&self, id: &RunId) -> Result<WriteList, Error> {
        self.state(id).await?;
        let writes = self.views.writes(id).await?;
        let writes = writes
            .into_iter()
            .map(|write| WriteView {
                effect: write.effect,
                kind: write.kind,
                actor_type: write.actor_type,
                target: write.target,
                payload_hash: write.payload_hash,
                decision: write.decision,
                reason: write.reason,
                result: write.result,
                at: write.at,
            })
            .collect();
        Ok(WriteList { writes })
    }

    /// Reads the instance.
    pub async fn instance(&self) -> Result<InstanceView, Error> {
        let (instance, head) = self.views.instance().await?;
        Ok(InstanceView {
            kill_switch: instance.kill_switch,
            repos: instance.repos.values().map(repo_view).collect(),
            suspensions: instance
                .suspensions
                .iter()
                .map(|(account, until)| SuspensionView {
                    account: account.clone(),
                    until: *until,
                })
                .collect(),
            egress: grants(&instance),
            projects: instance.projects,
            events: head.seq,
            head: head.hash,
        })
    }

    /// Finds a registered repository by `owner/name`; the forge ignores case, so do we.
    pub(crate) async fn registration(&self, name: &str) -> Result<Option<Registration>, Error> {
        let (instance, _) = self.views.instance().await?;
        Ok(find_registration(instance, name))
    }
}

fn grants(instance: &Instance) -> Vec<GrantView> {
    let all = instance.egress.iter();
    all.flat_map(|(project, grants)| {
        let written = grants.iter().flat_map(Grant::written);
        written.map(|grant| GrantView {
            project: project.clone(),
            grant,
            risk: EgressWay::RISK.to_owned(),
        })
    })
    .collect()
}

fn find_registration(instance: Instance, name: &str) -> Option<Registration> {
    instance
        .repos
        .into_values()
        .find(|known| known.repo.to_string().eq_ignore_ascii_case(name))
}

fn damaged(row: &RunRow, fault: Fault) -> RunView {
    detail::damaged_view(row, &Error::Fault(fault).problem())
}

pub(crate) fn repo_view(registration: &Registration) -> RepoView {
    RepoView {
        id: registration.repo.id,
        repo: registration.repo.to_string(),
        project: registration.project.clone(),
        base_branch: registration.repo.base_branch.clone(),
        test_command: registration.test_command.clone(),
        slots: registration.slots,
        clone_url: registration.repo.clone_url.clone(),
        test_egress: registration.test_egress,
        board: registration.board.map(|board| board.0),
    }
}

pub(crate) fn event_view(record: Record) -> EventView {
    EventView {
        seq: record.seq,
        class: record.class,
        kind: record.kind,
        at: record.at,
        actor: record.actor,
        actor_type: record.actor_type,
        payload: serde_json::from_str(&record.payload).unwrap_or(serde_json::Value::String(record.payload)),
        hash: record.hash,
    }
}

#[cfg(test)]
mod tests {
    use conductor_domain::gate::GateKind;
    use conductor_domain::id::OperatorName;
    use conductor_domain::input::{Action, Input};

    use super::*;
    use crate::api::{ActionRequest, NextStep};
    use crate::fake::played::Played;
    use crate::fake::{Fake, request, row};

    fn reader(fake: &Fake) -> Reader {
        fake.reader()
    }

    fn run() -> RunId {
        RunId::parse("r-1").expect("a slug")
    }

    /// BEY-1, S-47, S-49: what is to be approved is shown whole, and the command that approves it names its digest.
    #[tokio::test]
    async fn a_run_at_its_gate_shows_what_is_approved_and_the_exact_command() {
        let fake = Fake::with_repo();
        let plan = format!("the plan {}", "x".repeat(40_000));
        let _played = Played::start(&fake).until_plan_gate(&plan);
        let detail = reader(&fake).run(&run()).await.expect("the run is there");
        let gate = detail.gate.expect("a gate is open");
        let shown: Vec<&str> = gate.shown.iter().map(|text| text.text.as_str()).collect();
        assert_eq!(shown, ["the issue", plan.as_str(), "fine"]);
        assert_eq!(
            detail.allowed,
            ["approve", "revise", "reject", "pause", "cancel", "reprioritize"]
        );
        let approve = NextStep {
            what: "carry this plan out".into(),
            command: format!("conductor run approve r-1 --subject {}", gate.subject),
        };
        assert_eq!(detail.next.first(), Some(&approve));
        let phases: Vec<&str> = detail.phases.iter().map(|span| span.name.as_str()).collect();
        assert_eq!(phases, ["pending", "planning", "awaiting_plan_approval"]);
        assert_eq!((detail.plans, detail.attempts, detail.tests.len()), (1, 0, 0));
        assert_eq!(detail.waits_for, "a person: approve, revise or reject the plan");
    }

    /// RUN-1a: what is offered is what the run machine would accept, no more.
    #[tokio::test]
    async fn a_paused_run_offers_to_go_on() {
        let fake = Fake::with_repo();
        let mut played = Played::start(&fake);
        let by = OperatorName::parse("ann").expect("a name");
        played.feed(&Input::Operate {
            by,
            action: Action::Pause,
        });
        let detail = reader(&fake).run(&run()).await.expect("the run is there");
        assert!(
            detail.allowed.iter().any(|action| action == "resume"),
            "{:?}",
            detail.allowed
        );
        assert!(
            !detail.allowed.iter().any(|action| action == "pause"),
            "{:?}",
            detail.allowed
        );
        assert_eq!(detail.waits_for, "paused by ann");
        assert_eq!(detail.holds.len(), 1);
    }

    /// RUN-1a: people see that a run is paused, why, and whether it waits for them.
    #[test]
    fn a_held_run_reads_as_paused_with_its_reasons() {
        let mut state: serde_json::Value = serde_json::from_str(&row("r-1", 1, None).state).expect("JSON");
        for (holds, said) in [
            (
                serde_json::json!({ "failure": { "hold": "failure", "reason": "push: refused" } }),
                "paused: push: refused; a person must act",
            ),
            (
                serde_json::json!({ "kill_switch": { "hold": "kill_switch" } }),
                "paused: the kill switch is on",
            ),
            (
                serde_json::json!({
                    "operator": { "hold": "operator", "by": "ann" },
                    "policy": { "hold": "policy", "reason": "no" },
                }),
                "paused: by ann; policy: no; a person must act",
            ),
        ] {
            state["holds"] = holds;
            let run: Run = serde_json::from_value(state.clone()).expect("a run");
            assert_eq!(detail::waits_for(&run), said);
        }
    }

    /// A run in the queue does not look busy, and says what it is queued behind.
    #[tokio::test]
    async fn a_run_behind_others_says_that_it_waits_for_a_slot() {
        let fake = Fake::with_repo();
        let _played = Played::start(&fake).until_workspace();
        let alone = reader(&fake).run(&run()).await.expect("the run is there");
        assert_eq!(alone.waits_for, "its working directory");
        assert_eq!(alone.under_way, ["prepare_workspace"]);
        let mut other = row("r-2", 2, None);
        other.state = other
            .state
            .replace("\"reading_issue\"", "\"preparing_workspace\"");
        fake.world().rows.push(other);
        let both_queued = reader(&fake).run(&run()).await.expect("the run is there");
        assert_eq!(both_queued.waits_for, "its working directory");
        fake.world().begun.push(RunId::parse("r-2").expect("a slug"));
        let queued = reader(&fake).run(&run()).await.expect("the run is there");
        assert_eq!(queued.waits_for, "a free slot of o/r (1 of 1 taken)");
        assert_eq!(queued.under_way, Vec::<String>::new());
        let change = reader(&fake)
            .state_change(&run())
            .await
            .expect("the run is there");
        assert_eq!(change.waits_for, queued.waits_for);
        fake.world().begun.push(run());
        let begun = reader(&fake).run(&run()).await.expect("the run is there");
        assert_eq!(begun.waits_for, "its working directory");
    }

    /// RUN-12: a run that ended early says by whom and why, in its line and in its whole.
    #[tokio::test]
    async fn a_run_that_ended_early_says_why() {
        let fake = Fake::with_repo();
        let mut played = Played::start(&fake).until_plan_gate("the plan");
        let because = |list: RunList| list.runs[0].ended_because.clone();
        let open = reader(&fake).runs(RunFilter::default()).await.expect("read");
        assert_eq!(because(open), None);
        let by = OperatorName::parse("ann").expect("a name");
        let comment = Some("not this year".to_owned());
        played.feed(&Input::Operate {
            by,
            action: Action::Cancel { comment },
        });
        let said = Some("by ann: not this year".to_owned());
        let detail = reader(&fake).run(&run()).await.expect("the run is there");
        assert_eq!(detail.run.ended_because, said);
        let change = reader(&fake)
            .state_change(&run())
            .await
            .expect("the run is there");
        assert_eq!(change.run.ended_because, said);
        let ended = reader(&fake).runs(RunFilter::default()).await.expect("read");
        assert_eq!(because(ended), said);
    }

    /// BEY-1: an approval over the wire carries the digest that was seen, and the gate that is open.
    #[tokio::test]
    async fn an_approval_is_submitted_with_what_was_seen() {
        let fake = Fake::with_repo();
        let _played = Played::start(&fake).until_plan_gate("the plan");
        let seen = Digest::of(b"what was seen");
        let action = ActionRequest::Approve {
            gate: None,
            subject: seen.clone(),
            comment: None,
        };
        let body = serde_json::to_string(&action).expect("plain data");
        assert_eq!(
            fake.ask(request("POST", "/api/v1/runs/r-1/actions", body))
                .await
                .0,
            200
        );
        let submitted = fake.world().submitted.pop().expect("submitted").input;
        let by = OperatorName::parse("ann").expect("a name");
        let action = Action::Approve {
            gate: GateKind::Plan,
            subject: seen,
            comment: None,
        };
        assert_eq!(submitted, Input::Operate { by, action });
    }
}
