//! The way of an input through the engine: refusals, keys, priorities, suspensions, and faults that people must see.

use std::sync::{Arc, Mutex};

use conductor_domain::effect::EffectKind;
use conductor_domain::forge::{Notice, NoticeSubject};
use conductor_domain::hold::{Hold, HoldKind};
use conductor_domain::id::{EffectId, PullRequestNumber, RepoId, RunId};
use conductor_domain::input::{Action, Input};
use conductor_domain::instance::{InstanceInput, Registration, TestEgress};
use conductor_domain::invocation::Purpose;
use conductor_domain::phase::{Phase, PhaseName, SetUp};
use conductor_domain::refusal::Refusal;
use conductor_domain::spec::{ExecutorName, Priority, RedFirst};
use conductor_domain::time::{Millis, Timestamp};
use conductor_engine::redact::KnownForms;
use conductor_engine::{Executors, PortRange};
use conductor_port::agent::AgentEnd;
use conductor_port::clock::Clock as _;
use conductor_port::inbox::{Inbox as _, Seen, Submission, SubmitError};
use conductor_port::lease::{Leases as _, ResourceKind};
use conductor_port::ledger::{
    Batch, IssueClaim, Ledger as _, NewEffect, Projection, Record, RunRow, StreamId,
};
use conductor_port::views::Views as _;
use conductor_testkit::agent::FakeAgent;
use conductor_testkit::rig::Rig;

fn endless() -> FakeAgent {
    FakeAgent::new(|_task, _tools| Box::pin(std::future::pending()))
}

/// RUN-5: what is not registered is not worked on.
#[tokio::test(start_paused = true)]
async fn a_run_on_an_unknown_repository_is_refused_without_a_trace() {
    let rig = Rig::start(endless()).await;
    let mut spec = rig.stage.specs[0].clone();
    spec.repo.id.0 = 99;
    let run = spec.run.clone();
    let refused = rig.submit(&run, Input::StartRun { spec: Box::new(spec) }).await;
    let expected = Refusal::DeniedByPolicy {
        reason: "acme/thing is not registered".into(),
    };
    assert_eq!(refused, Err(SubmitError::Refused(expected)));
    assert_eq!(rig.stage.memory.run(&run).await, Ok(None));
}

/// RUN-5, SEC-6.
#[tokio::test(start_paused = true)]
async fn no_run_starts_while_the_kill_switch_is_on() {
    let rig = Rig::start(endless()).await;
    let by = rig.stage.specs[0].started_by.clone();
    rig.engine
        .submit_to_instance(InstanceInput::TurnKillSwitch { by, on: true }, "")
        .await
        .expect("it was off");
    let spec = rig.stage.specs[0].clone();
    let run = spec.run.clone();
    let refused = rig.submit(&run, Input::StartRun { spec: Box::new(spec) }).await;
    assert_eq!(refused, Err(SubmitError::Refused(Refusal::KillSwitchIsOn)));
}

/// GH-2: a delivery that comes twice counts once.
#[tokio::test(start_paused = true)]
async fn the_same_key_is_accepted_once() {
    let rig = Rig::start(endless()).await;
    let run = rig.start_run(1).await;
    let subject = NoticeSubject::PullRequest {
        number: PullRequestNumber(1),
    };
    let notice = Notice {
        delivery: "d1".into(),
        event: "pull_request".into(),
        subject,
    };
    let submission = Submission {
        run: run.clone(),
        input: Input::ForgeNoticed { notice },
        dedupe: Some("d1".into()),
        cause: "d1".into(),
        seen: Seen::Anything,
    };
    let first = rig.engine.submit(submission.clone()).await.expect("accepted");
    let second = rig.engine.submit(submission).await.expect("accepted");
    assert_eq!((first.duplicate, second.duplicate), (false, true));
    let noticed = rig
        .records(&run)
        .await
        .iter()
        .filter(|record| record.kind == "forge_noticed")
        .count();
    assert_eq!(noticed, 1);
}

/// SEC-3, RUN-3: what is kept is redacted before it is decided on.
#[tokio::test(start_paused = true)]
async fn a_secret_in_an_operators_words_is_not_kept() {
    let tune = |options: &mut conductor_engine::Options| {
        options.redactor = Arc::new(KnownForms::with_secrets(["hunter2-hunter2".to_owned()]));
    };
    let rig = Rig::start_with(|stage| stage.ports(endless()), tune).await;
    let run = rig.start_run(1).await;
    let comment = Some("because of \"hunter2-hunter2\"\n\u{202e}".to_owned());
    rig.operate(&run, Action::Cancel { comment })
        .await
        .expect("can be cancelled");
    let records = format!("{:?}", rig.records(&run).await);
    assert!(
        !records.contains("hunter2") && records.contains("[redacted]"),
        "{records}"
    );
    rig.until(&run, |run| run.cleaned_up).await;
    assert!(!format!("{:?}", rig.stage.forge.archive().comments).contains("hunter2"));
}

/// RUN-11, RUN-13: one slot, and whoever is more urgent gets it next, not who came first.
#[tokio::test(start_paused = true)]
async fn the_most_urgent_run_gets_the_next_slot() {
    let mut rig = Rig::start(endless()).await;
    let registration = conductor_domain::instance::Registration {
        project: rig.stage.specs[0].project.clone(),
        repo: rig.stage.repo.clone(),
        test_command: vec!["check".into()],
        slots: 1,
        test_egress: conductor_domain::instance::TestEgress::None,
        board: None,
    };
    let by = rig.stage.specs[0].started_by.clone();
    let input = InstanceInput::RegisterRepo { by, registration };
    rig.engine
        .submit_to_instance(input, "")
        .await
        .expect("registered anew");
    rig.stage.specs[1].priority = Priority::new(1).expect("in range");
    rig.stage.specs[2].priority = Priority::new(2).expect("in range");
    let runs: Vec<RunId> = vec![
        rig.start_run(1).await,
        rig.start_run(2).await,
        rig.start_run(3).await,
    ];
    rig.until(&runs[0], |run| run.workspace.is_some()).await;
    for run in &runs[1..] {
        rig.until(run, |run| run.issue.is_some()).await;
    }
    rig.operate(&runs[0], Action::Cancel { comment: None })
        .await
        .expect("can be cancelled");
    rig.until(&runs[2], |run| run.workspace.is_some()).await;
    assert_eq!(rig.run(&runs[1]).await.workspace, None);
    let priority = Priority::new(10).expect("in range");
    rig.operate(&runs[1], Action::Reprioritize { priority })
        .await
        .expect("can be moved");
    assert_eq!(
        rig.run(&runs[1]).await.workspace,
        None,
        "a slot is not taken away"
    );
    rig.operate(&runs[2], Action::Cancel { comment: None })
        .await
        .expect("can be cancelled");
    rig.until(&runs[1], |run| run.workspace.is_some()).await;
}

/// BEY-5: a provider's limit holds every run on that account, and all go on by themselves.
#[tokio::test(start_paused = true)]
async fn a_provider_limit_suspends_the_account_until_its_reset() {
    let asked: Arc<Mutex<Vec<i64>>> = Arc::default();
    let kept = asked.clone();
    let clock = Arc::new(Mutex::new(None::<Arc<conductor_testkit::clock::VirtualClock>>));
    let seen = clock.clone();
    let agent = FakeAgent::new(move |_task, _tools| {
        let clock = seen
            .lock()
            .expect("no panic")
            .clone()
            .expect("set before any run");
        let (kept, now) = (kept.clone(), clock.now());
        Box::pin(async move {
            let is_first = {
                let mut asked = kept.lock().expect("no panic");
                asked.push(now.0);
                asked.len() == 1
            };
            if is_first {
                let until = now.after(Millis::minutes(20));
                return Ok(AgentEnd::ProviderLimited {
                    account: "scripted".into(),
                    until,
                });
            }
            std::future::pending().await
        })
    });
    let rig = Rig::start(agent).await;
    *clock.lock().expect("no panic") = Some(rig.stage.clock.clone());
    let first = rig.start_run(1).await;
    rig.until(&first, |run| run.holds.get(HoldKind::ProviderLimit).is_some())
        .await;
    let second = rig.start_run(2).await;
    rig.until(&second, |run| run.workspace.is_some()).await;
    rig.until(&first, |run| run.holds.is_empty() && run.workspace.is_some())
        .await;
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    let asked = asked.lock().expect("no panic").clone();
    assert_eq!(asked.len(), 3, "both runs ask again, once each");
    for at in &asked[1..] {
        assert!(at - asked[0] >= 20 * 60 * 1_000_000, "{asked:?}");
    }
    let counted = rig.run(&first).await.counters;
    assert_eq!(
        (counted.agent_failures, counted.invocations.get(&Purpose::Plan)),
        (0, None)
    );
}

/// EXEC-1: an executor is named, and one that is not there is said, not replaced.
#[tokio::test(start_paused = true)]
async fn a_missing_executor_is_a_failure_that_names_the_choices() {
    let wire = |stage: &conductor_testkit::sim::Stage| {
        let mut ports = stage.ports(endless());
        ports.executors = Executors::default();
        ports
    };
    let rig = Rig::start_with(wire, |_options| {}).await;
    let run = rig.start_run(1).await;
    let held = rig
        .until(&run, |run| run.holds.get(HoldKind::Failure).is_some())
        .await;
    let Some(Hold::Failure { reason }) = held.holds.get(HoldKind::Failure) else {
        panic!("held")
    };
    assert!(
        reason.contains("there is no executor `unsafe-plain` here; there are: none"),
        "{reason}"
    );
}

/// BEY-2 is not there yet, and says so instead of passing.
#[tokio::test(start_paused = true)]
async fn red_first_is_refused_in_plain_words() {
    let mut rig = Rig::start_story().await;
    rig.stage.specs[0].limits.red_first = RedFirst::Require;
    let run = rig.start_run(1).await;
    rig.approve(&run).await;
    let held = rig
        .until(&run, |run| run.holds.get(HoldKind::Failure).is_some())
        .await;
    assert!(
        format!("{:?}", held.holds).contains("this version does not do that yet"),
        "{:?}",
        held.holds
    );
}

/// ENV-2: the record of what a run holds is there before it is used, and gone after the clean-up.
#[tokio::test(start_paused = true)]
async fn what_a_run_uses_is_leased_before_and_given_back_after() {
    let rig = Rig::start(endless()).await;
    let run = rig.start_run(1).await;
    rig.until(&run, |run| run.workspace.is_some()).await;
    while rig.stage.executor.open_sandboxes().is_empty() {
        tokio::task::yield_now().await;
    }
    let held = rig.stage.memory.held(Some(&run)).await.expect("calm");
    let kinds: Vec<ResourceKind> = held.iter().map(|lease| lease.kind).collect();
    for kind in [
        ResourceKind::Worktree,
        ResourceKind::Branch,
        ResourceKind::ProcessGroup,
    ] {
        assert!(kinds.contains(&kind), "{kind:?} is not leased: {held:?}");
    }
    rig.operate(&run, Action::Cancel { comment: None })
        .await
        .expect("can be cancelled");
    rig.until(&run, |run| run.cleaned_up).await;
    assert_eq!(rig.stage.memory.held(None).await, Ok(vec![]));
}

/// BEY-1: an answer that names something else is refused by the machine, through the whole engine.
#[tokio::test(start_paused = true)]
async fn an_approval_of_something_else_is_refused() {
    let rig = Rig::start_story().await;
    let run = rig.start_run(1).await;
    let state = rig.until(&run, |run| run.phase.gate().is_some()).await;
    let gate = state.phase.gate().expect("just seen").kind;
    let subject = conductor_domain::digest::Digest::of(b"something else");
    let refused = rig
        .operate(
            &run,
            Action::Approve {
                gate,
                subject,
                comment: None,
            },
        )
        .await;
    assert!(
        matches!(
            refused,
            Err(SubmitError::Refused(Refusal::ApprovalIsStale { .. }))
        ),
        "{refused:?}"
    );
}

async fn ports_of(rig: &Rig, run: &RunId) -> Vec<String> {
    let held = rig.stage.memory.held(Some(run)).await.expect("calm weather");
    let ports = held.into_iter().filter(|lease| lease.kind == ResourceKind::Port);
    ports.map(|lease| lease.name).collect()
}

/// ENV-1, ENV-2, ENV-3: each run has ports of its own from before its first work until its clean-up; one for which none
/// is left waits, and goes on when another run has given its own back.
#[tokio::test(start_paused = true)]
async fn every_run_has_ports_of_its_own() {
    let rig = Rig::start_with(
        |stage| stage.ports(stage.agents()),
        |options| {
            options.ports = PortRange {
                first: 5001,
                last: 5004,
                per_run: 2,
            };
        },
    )
    .await;
    let (first, second) = (rig.start_run(1).await, rig.start_run(2).await);
    for run in [&first, &second] {
        rig.until(run, |run| run.phase.gate().is_some()).await;
    }
    let mut all = [ports_of(&rig, &first).await, ports_of(&rig, &second).await].concat();
    all.sort();
    assert_eq!(all, ["5001", "5002", "5003", "5004"]);
    let third = rig.start_run(3).await;
    rig.until(&third, |run| !run.in_flight.is_empty()).await;
    assert_eq!(ports_of(&rig, &third).await, [""; 0]);
    let freed = ports_of(&rig, &first).await;
    let cancel = Action::Cancel { comment: None };
    rig.operate(&first, cancel).await.expect("it can be cancelled");
    rig.until(&first, |run| run.cleaned_up).await;
    rig.until(&third, |run| run.phase.gate().is_some()).await;
    assert_eq!(ports_of(&rig, &first).await, [""; 0]);
    assert_eq!(ports_of(&rig, &third).await, freed);
}

/// ENV-3: a directory that cannot be taken away keeps its own lease, and no other run waiting for ports.
#[tokio::test(start_paused = true)]
async fn a_clean_up_gives_ports_back_before_the_directory() {
    let rig = Rig::start_with(
        |stage| stage.ports(stage.agents()),
        |options| {
            options.ports = PortRange {
                first: 5001,
                last: 5002,
                per_run: 2,
            };
        },
    )
    .await;
    let first = rig.start_run(1).await;
    rig.until(&first, |run| run.phase.gate().is_some()).await;
    let second = rig.start_run(2).await;
    rig.stage.world.hang("clean up");
    rig.operate(&first, Action::Cancel { comment: None })
        .await
        .expect("it can be cancelled");
    rig.until(&second, |run| run.phase.gate().is_some()).await;
    let held = rig.stage.memory.held(Some(&first)).await.expect("calm weather");
    let kinds: Vec<ResourceKind> = held.into_iter().map(|lease| lease.kind).collect();
    assert_eq!(kinds, [ResourceKind::Worktree]);
}

/// RUN-13: a run that is over and whose clean-up waits for a person keeps no other run of its repository waiting.
#[tokio::test(start_paused = true)]
async fn a_clean_up_that_waits_for_a_person_blocks_nobody() {
    let mut rig = Rig::start(endless()).await;
    let by = rig.stage.specs[0].started_by.clone();
    let registration = Registration {
        project: rig.stage.specs[0].project.clone(),
        repo: rig.stage.repo.clone(),
        test_command: rig.stage.specs[0].test_command.clone(),
        slots: 1,
        test_egress: TestEgress::None,
        board: None,
    };
    rig.engine
        .submit_to_instance(InstanceInput::RegisterRepo { by, registration }, "")
        .await
        .expect("a registration can be changed");
    // What its processes run in is gone, so nobody can say that they are ended.
    rig.stage.specs[0].executor = ExecutorName::Docker;
    let first = rig.start_run(1).await;
    rig.until(&first, |run| run.holds.get(HoldKind::Failure).is_some())
        .await;
    let second = rig.start_run(2).await;
    rig.until(&second, |run| {
        run.phase == Phase::Pending(SetUp::PreparingWorkspace) && run.work_in_flight().is_some()
    })
    .await;
    rig.operate(&first, Action::Cancel { comment: None })
        .await
        .expect("can be cancelled");
    let ended = rig.until(&first, |run| run.clean_up_failed.is_some()).await;
    assert!(ended.needs_human() && !ended.cleaned_up);
    rig.until(&second, |run| run.phase.name() == PhaseName::Planning)
        .await;
}

/// A run of which nothing can be read, that is first in every list.
fn unreadable(n: u64) -> Batch {
    let run = RunId::parse(format!("bad-{n}")).expect("a slug");
    let stream = StreamId::Run(run.clone());
    let record = Record {
        stream: stream.as_key(),
        seq: 1,
        event_id: format!("{run}#1"),
        schema_version: 1,
        class: "fact".to_owned(),
        kind: "start_run".to_owned(),
        payload: "{}".to_owned(),
        payload_hash: String::new(),
        actor_type: "operator".to_owned(),
        actor: "ann".to_owned(),
        cause: String::new(),
        at: Timestamp(0),
        hash: "x".to_owned(),
    };
    let effect = NewEffect {
        id: EffectId::derive(&run, 1, 0),
        run: run.clone(),
        repo: RepoId(1),
        kind: EffectKind::ReadIssue,
        payload: "{}".to_owned(),
        priority: 99,
        not_before: Timestamp(0),
    };
    let row = RunRow {
        deadline: Some(Timestamp(1)),
        created_at: Timestamp(i64::MAX),
        seq: 1,
        head: "x".to_owned(),
        ..RunRow::unreadable(run)
    };
    Batch {
        stream,
        expected_seq: 0,
        records: vec![record],
        effects: vec![effect],
        effect_changes: vec![],
        settles: None,
        dedupe: None,
        projection: Projection::Run(Box::new(row)),
        writes: vec![],
        frees_slot: false,
        issue: IssueClaim::Unchanged,
    }
}

/// RUN-3, RUN-12a: more runs than any page of any list holds, all damaged and all first; the one behind them is started,
/// dispatched, woken at its deadline, and hears of the kill switch.
#[tokio::test(start_paused = true)]
async fn many_damaged_runs_do_not_hide_the_one_behind_them() {
    let times = Arc::new(Mutex::new(0));
    let rig = Rig::start_with(
        |stage| {
            let until = stage.clock.now().after(Millis::seconds(10));
            let agent = FakeAgent::new(move |_task, _tools| {
                let times = times.clone();
                Box::pin(async move {
                    let first = {
                        let mut times = times.lock().expect("nobody panicked");
                        *times += 1;
                        *times == 1
                    };
                    if first {
                        let account = "scripted".to_owned();
                        return Ok(AgentEnd::ProviderLimited { account, until });
                    }
                    std::future::pending().await
                })
            });
            stage.ports(agent)
        },
        |_options| {},
    )
    .await;
    for n in 0..1001 {
        rig.stage.memory.append(unreadable(n)).await.expect("kept");
    }
    let run = rig.start_run(1).await;
    rig.until(&run, |run| run.holds.get(HoldKind::ProviderLimit).is_some())
        .await;
    rig.until(&run, |run| run.holds.is_empty() && run.work_in_flight().is_some())
        .await;
    let by = rig.stage.specs[0].started_by.clone();
    rig.engine
        .submit_to_instance(InstanceInput::TurnKillSwitch { by, on: true }, "")
        .await
        .expect("it was off");
    rig.until(&run, |run| run.holds.get(HoldKind::KillSwitch).is_some())
        .await;
}
