//! What is told to stop stops, soon; what lost its lease says nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use conductor_domain::digest::Digest;
use conductor_domain::effect::EffectKind;
use conductor_domain::fault::Fault;
use conductor_domain::forge::PullRequestState;
use conductor_domain::hold::HoldKind;
use conductor_domain::id::RunId;
use conductor_domain::input::{Action, Input};
use conductor_domain::instance::InstanceInput;
use conductor_domain::phase::Phase;
use conductor_domain::spec::ExecutorName;
use conductor_domain::time::Millis;
use conductor_engine::{Engine, Options, audit};
use conductor_port::agent::ToolRequest;
use conductor_port::blobs::Blobs as _;
use conductor_port::clock::Clock as _;
use conductor_port::inbox::{Inbox as _, Seen, Submission, SubmitError};
use conductor_port::ledger::{EffectStatus, LeaseWish, Leased, Ledger as _};
use conductor_port::views::Views as _;
use conductor_testkit::agent::FakeAgent;
use conductor_testkit::rig::Rig;
use tokio::sync::Notify;

/// An agent that works until it is ended, and tells when it begins and when it is gone.
#[derive(Debug, Clone, Default)]
struct Endless {
    begun: Arc<Notify>,
    ended: Arc<Notify>,
    times: Arc<AtomicU32>,
}

struct Tells(Arc<Notify>);

impl Drop for Tells {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl Endless {
    fn agent(&self) -> FakeAgent {
        let this = self.clone();
        FakeAgent::new(move |_task, _tools| {
            let this = this.clone();
            Box::pin(async move {
                let _tells = Tells(this.ended.clone());
                this.times.fetch_add(1, Ordering::Relaxed);
                this.begun.notify_one();
                std::future::pending().await
            })
        })
    }
}

/// RUN-11: within five seconds, and then everything is given back.
#[tokio::test(start_paused = true)]
async fn a_cancelled_run_ends_its_agent_within_five_seconds() {
    let endless = Endless::default();
    let rig = Rig::start(endless.agent()).await;
    let run = rig.start_run(1).await;
    endless.begun.notified().await;
    let told = rig.stage.clock.now();
    rig.operate(&run, Action::Cancel { comment: None })
        .await
        .expect("can be cancelled");
    endless.ended.notified().await;
    let took = rig.stage.clock.now().since(told);
    assert!(took <= Millis::seconds(5), "{took:?}");
    rig.until(&run, |run| run.cleaned_up).await;
    assert!(rig.stage.executor.open_sandboxes().is_empty());
    assert!(rig.stage.workspace.disk().dirs.is_empty());
}

/// RUN-11, DEP-3: the process that hears of it is not the one that performs.
#[tokio::test(start_paused = true)]
async fn a_stop_reaches_an_agent_in_another_process_within_five_seconds() {
    let endless = Endless::default();
    let rig = Rig::start(endless.agent()).await;
    let run = rig.start_run(1).await;
    endless.begun.notified().await;
    let other = Engine::new(rig.stage.ports(endless.agent()), Options::new("other"));
    let told = rig.stage.clock.now();
    let by = rig.stage.specs[0].started_by.clone();
    let input = Input::Operate {
        by,
        action: Action::Cancel { comment: None },
    };
    let submission = Submission {
        run: run.clone(),
        input,
        dedupe: None,
        cause: String::new(),
        seen: Seen::Anything,
    };
    other.submit(submission).await.expect("can be cancelled");
    endless.ended.notified().await;
    let took = rig.stage.clock.now().since(told);
    assert!(took <= Millis::seconds(5), "{took:?}");
}

/// SEC-6: all agents end, nothing new begins, and the same work is taken up when the switch is off.
#[tokio::test(start_paused = true)]
async fn the_kill_switch_ends_agents_and_lets_them_begin_again() {
    let endless = Endless::default();
    let rig = Rig::start(endless.agent()).await;
    let run = rig.start_run(1).await;
    endless.begun.notified().await;
    let by = rig.stage.specs[0].started_by.clone();
    let turn = |on| {
        rig.engine
            .submit_to_instance(InstanceInput::TurnKillSwitch { by: by.clone(), on }, "")
    };
    turn(true).await.expect("it was off");
    endless.ended.notified().await;
    rig.until(&run, |run| {
        run.holds.get(HoldKind::KillSwitch).is_some() && run.in_flight.values().all(|e| !e.stopping)
    })
    .await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(endless.times.load(Ordering::Relaxed), 1);
    turn(false).await.expect("it was on");
    endless.begun.notified().await;
    assert_eq!(endless.times.load(Ordering::Relaxed), 2);
}

/// Two runs with an agent at work each.
async fn two_at_work(rig: &Rig, endless: &Endless) -> [RunId; 2] {
    let runs = [rig.start_run(1).await, rig.start_run(2).await];
    while endless.times.load(Ordering::Relaxed) < 2 {
        endless.begun.notified().await;
    }
    // Whoever takes a duty up looks for debts at once; that is over here.
    tokio::time::sleep(Duration::from_secs(10)).await;
    runs
}

/// Turns the switch on and goes away when the first run is to hear of it, as a client that hangs up does.
async fn turn_and_leave(rig: &Rig, engine: &Engine) {
    rig.stage.world.hang("append to a run");
    let by = rig.stage.specs[0].started_by.clone();
    let turn = engine.submit_to_instance(InstanceInput::TurnKillSwitch { by, on: true }, "");
    let left = tokio::time::timeout(Duration::from_secs(1), turn).await;
    assert!(left.is_err(), "it came to an end: {left:?}");
}

/// Insists that all of them hear of the switch in time.
async fn hear_of_it(rig: &Rig, runs: &[RunId], within: Duration) {
    let all = async {
        for run in runs {
            rig.until(run, |run| run.holds.get(HoldKind::KillSwitch).is_some())
                .await;
        }
    };
    tokio::time::timeout(within, all)
        .await
        .expect("every run hears of it");
}

/// SEC-6: whoever turns the switch and hangs up has turned it for every run.
#[tokio::test(start_paused = true)]
async fn the_kill_switch_reaches_every_run_though_whoever_turned_it_hung_up() {
    let endless = Endless::default();
    let rig = Rig::start(endless.agent()).await;
    let runs = two_at_work(&rig, &endless).await;
    turn_and_leave(&rig, &rig.engine).await;
    hear_of_it(&rig, &runs, Duration::from_secs(5)).await;
}

/// SEC-6, DEP-3: and though the whole process died in between, while another one had the duty all along.
#[tokio::test(start_paused = true)]
async fn the_kill_switch_reaches_every_run_though_the_process_died() {
    let endless = Endless::default();
    let rig = Rig::start(endless.agent()).await;
    let runs = two_at_work(&rig, &endless).await;
    let other = Engine::new(rig.stage.ports(endless.agent()), Options::new("other"));
    turn_and_leave(&rig, &other).await;
    drop(other);
    hear_of_it(&rig, &runs, Duration::from_mins(2)).await;
}

/// SEC-6: turning it once more is refused, and still reaches whoever did not hear of it.
#[tokio::test(start_paused = true)]
async fn turning_the_kill_switch_again_tells_whoever_did_not_hear() {
    let endless = Endless::default();
    let rig = Rig::start(endless.agent()).await;
    let runs = two_at_work(&rig, &endless).await;
    let other = Engine::new(rig.stage.ports(endless.agent()), Options::new("other"));
    turn_and_leave(&rig, &other).await;
    let by = rig.stage.specs[0].started_by.clone();
    let again = other.submit_to_instance(InstanceInput::TurnKillSwitch { by, on: true }, "");
    let refused = again.await.expect_err("it is on");
    assert!(matches!(refused, SubmitError::InstanceRefused(_)), "{refused:?}");
    for run in &runs {
        let state = rig.run(run).await;
        assert!(
            state.holds.get(HoldKind::KillSwitch).is_some(),
            "{}",
            state.status()
        );
    }
}

/// DEP-3, RUN-4: whoever lost the lease drops the work and leaves the report to the one who has it now.
#[tokio::test(start_paused = true)]
async fn a_lost_lease_ends_the_work_and_reports_nothing() {
    let endless = Endless::default();
    let rig = Rig::start(endless.agent()).await;
    let run = rig.start_run(1).await;
    endless.begun.notified().await;
    let effects = rig.stage.memory.effects(&run).await.expect("calm");
    let invocation = effects
        .into_iter()
        .find(|row| row.kind.as_str() == "invoke")
        .expect("invoked")
        .id;
    let later = rig.stage.clock.now().after(Millis::hours(1));
    let wish = LeaseWish {
        id: invocation,
        worker: "thief".into(),
        now: later,
        until: later.after(Millis::hours(1)),
        slot: None,
    };
    let before = rig.records(&run).await.len();
    assert!(matches!(
        rig.stage.memory.lease(wish).await,
        Ok(Leased::Granted { .. })
    ));
    endless.ended.notified().await;
    tokio::time::sleep(Duration::from_mins(30)).await;
    assert_eq!(rig.records(&run).await.len(), before);
}

/// SEC-6, RUN-12a: what a dead process left running is ended although the switch forbids to begin anything.
#[tokio::test(start_paused = true)]
async fn the_kill_switch_does_not_protect_what_a_dead_process_left() {
    let endless = Endless::default();
    let rig = Rig::start(endless.agent()).await;
    let run = rig.start_run(1).await;
    endless.begun.notified().await;
    let stage = rig.die().await;
    assert_eq!(
        stage.executor.open_sandboxes().len(),
        1,
        "the agent outlived its conductor"
    );
    let rig = Rig::resume(stage, endless.agent()).await;
    let by = rig.stage.specs[0].started_by.clone();
    let turn = InstanceInput::TurnKillSwitch { by, on: true };
    rig.engine.submit_to_instance(turn, "").await.expect("it was off");
    rig.until(&run, |run| run.in_flight.values().all(|effect| !effect.stopping))
        .await;
    assert!(rig.stage.executor.open_sandboxes().is_empty());
    assert_eq!(endless.times.load(Ordering::Relaxed), 1, "and nothing new began");
}

/// RUN-12a: a crash during an invocation is an interruption, not an agent's failure, and its work is saved.
#[tokio::test(start_paused = true)]
async fn an_interrupted_agent_starts_over_from_the_same_commit() {
    let endless = Endless::default();
    let rig = Rig::start(endless.agent()).await;
    let run = rig.start_run(1).await;
    endless.begun.notified().await;
    let start = rig.run(&run).await.workspace.expect("prepared").head;
    let stage = rig.die().await;
    let dir = stage
        .workspace
        .disk()
        .dirs
        .keys()
        .next()
        .cloned()
        .expect("a working directory");
    stage
        .workspace
        .disk()
        .dirs
        .entry(dir.clone())
        .or_default()
        .insert("half.txt".into(), b"half".to_vec());
    let died = stage.clock.now();
    let rig = Rig::resume(stage, endless.agent()).await;
    endless.begun.notified().await;
    let took = rig.stage.clock.now().since(died);
    assert!(
        took <= Millis::seconds(1),
        "whoever owns the ledger does not wait for the dead: {took:?}"
    );
    let again = rig.run(&run).await;
    assert_eq!(
        (again.counters.interruptions, again.counters.agent_failures),
        (1, 0)
    );
    assert_eq!(again.workspace.expect("prepared").head, start);
    let disk = rig.stage.workspace.disk();
    assert!(
        !disk.dirs[&dir].contains_key("half.txt"),
        "it starts over from its commit"
    );
    let saved: Vec<bool> = disk
        .saved
        .values()
        .map(|tree| tree.contains_key("half.txt"))
        .collect();
    assert_eq!(saved, [true], "what it left is not lost");
}

/// RUN-12a: tests are a stranger's code as an agent is; those that take the host down do so a few times and not for ever.
#[tokio::test(start_paused = true)]
async fn interrupted_tests_start_over_until_a_person_must_look() {
    let mut rig = Rig::start_story().await;
    let run = rig.start_run(1).await;
    rig.approve(&run).await;
    let is_testing = |run: &conductor_domain::Run| {
        let mut under_way = run.in_flight.values();
        under_way.any(|effect| effect.kind == EffectKind::RunTests)
    };
    let most = rig.stage.specs[0].limits.interruptions;
    rig.stage.world.hang("check a commit out");
    for n in 0..=most {
        let testing = rig.until(&run, is_testing).await;
        assert_eq!(testing.counters.interruptions, n);
        // Long enough for it to begin, and it never ends.
        tokio::time::sleep(Duration::from_secs(5)).await;
        let stage = rig.die().await;
        stage.world.hang("check a commit out");
        rig = Rig::resume_with(stage, |stage| stage.ports(stage.agents()), |_options| {}).await;
        rig.until(&run, |run| run.counters.interruptions > n).await;
    }
    let held = rig.run(&run).await;
    assert!(held.holds.get(HoldKind::Failure).is_some(), "{held:?}");
    assert!(rig.stage.executor.open_sandboxes().is_empty());
}

/// RUN-11: however many agents are at work, short work goes on, and so does what only ends something.
#[tokio::test(start_paused = true)]
async fn agents_at_work_keep_nothing_but_agents_waiting() {
    let endless = Endless::default();
    let tune = |options: &mut Options| options.concurrency = 1;
    let rig = Rig::start_with(|stage| stage.ports(endless.agent()), tune).await;
    let first = rig.start_run(1).await;
    endless.begun.notified().await;
    let second = rig.start_run(2).await;
    let waits_for_an_agent = |run: &conductor_domain::Run| {
        let mut under_way = run.in_flight.values();
        under_way.any(|effect| effect.kind == EffectKind::Invoke)
    };
    rig.until(&second, waits_for_an_agent).await;
    let third = rig.start_run(3).await;
    rig.until(&third, waits_for_an_agent).await;
    rig.operate(&second, Action::Cancel { comment: None })
        .await
        .expect("can be cancelled");
    rig.until(&second, |run| run.cleaned_up).await;
    let times = || endless.times.load(Ordering::Relaxed);
    assert_eq!(times(), 1, "there is room for one agent");
    rig.operate(&first, Action::Cancel { comment: None })
        .await
        .expect("can be cancelled");
    endless.begun.notified().await;
    assert_eq!(times(), 2, "and now for the next");
}

/// Reads the envelopes of the invocations of a run that ended, and checks that each has its receipt.
async fn envelopes(rig: &Rig, run: &RunId) -> Vec<serde_json::Value> {
    let mut envelopes = vec![];
    for record in rig.records(run).await {
        let event: serde_json::Value = serde_json::from_str(&record.payload).expect("a record is JSON");
        if event["event"] != "invocation_ended" {
            continue;
        }
        let kept = async |paper: &str| -> serde_json::Value {
            let digest = event["papers"][paper]["digest"]
                .as_str()
                .expect("the paper is named");
            let digest = Digest::parse(digest).expect("a digest");
            let bytes = rig
                .stage
                .memory
                .get(&digest)
                .await
                .expect("calm weather")
                .expect("kept");
            serde_json::from_slice(&bytes).expect("papers are JSON")
        };
        assert_eq!(kept("receipt").await["processor_ref"], "agent/planner@1");
        envelopes.push(kept("envelope").await);
    }
    envelopes
}

/// INV-1a, INV-7: whatever becomes of an invocation, it leaves an envelope and a receipt, anchored in the run's chain.
#[tokio::test(start_paused = true)]
async fn stopped_and_interrupted_agents_leave_their_papers() {
    let endless = Endless::default();
    let rig = Rig::start(endless.agent()).await;
    let run = rig.start_run(1).await;
    endless.begun.notified().await;
    let stage = rig.die().await;
    let rig = Rig::resume(stage, endless.agent()).await;
    endless.begun.notified().await;
    rig.operate(&run, Action::Cancel { comment: None })
        .await
        .expect("can be cancelled");
    rig.until(&run, |run| run.cleaned_up).await;
    let errors: Vec<_> = envelopes(&rig, &run)
        .await
        .into_iter()
        .map(|envelope| (envelope["status"].clone(), envelope["error"].clone()))
        .collect();
    let error = |why: &str| {
        let message = format!("processor execution failed: {why}");
        let error = serde_json::json!({ "code": "ERR_PROCESSOR", "message": message });
        ("error".into(), error)
    };
    assert_eq!(
        errors,
        [error("it was interrupted"), error("it was told to stop")]
    );
}

/// INV-1a, TOOL-4: an environment that fails takes neither the papers nor the tool log with it; each try leaves its own,
/// and the log goes on from try to try.
#[tokio::test(start_paused = true)]
async fn agents_whose_environment_fails_leave_their_papers() {
    let agent = FakeAgent::new(|_task, tools| {
        Box::pin(async move {
            let path = "README.md".to_owned();
            tools.call(ToolRequest::View { path }).await?;
            Err(Fault::transient("the sandbox broke"))
        })
    });
    let mut rig = Rig::start(agent).await;
    rig.stage.specs[0].limits.effect_retries = 1;
    let run = rig.start_run(1).await;
    rig.until(&run, |run| run.holds.get(HoldKind::Failure).is_some())
        .await;
    // Two tries, and two in the environment that was made anew (RUN-12).
    let message = "processor execution failed: its environment failed: the sandbox broke";
    let error = serde_json::json!({ "code": "ERR_PROCESSOR", "message": message });
    let errors: Vec<_> = envelopes(&rig, &run)
        .await
        .into_iter()
        .map(|envelope| envelope["error"].clone())
        .collect();
    assert_eq!(errors, [error.clone(), error.clone(), error.clone(), error]);
    let memory = rig.stage.memory.as_ref();
    let kept = audit::Kept {
        views: memory,
        ledger: memory,
        tool_log: memory,
        blobs: memory,
    };
    assert_eq!(audit::verify(kept).await.expect("readable").problems, []);
}

/// INV-1a: so does one that never began, because what it should run in is not there.
#[tokio::test(start_paused = true)]
async fn agents_without_an_executor_leave_their_papers() {
    let endless = Endless::default();
    let mut rig = Rig::start(endless.agent()).await;
    rig.stage.specs[0].executor = ExecutorName::Docker;
    let run = rig.start_run(1).await;
    rig.until(&run, |run| run.holds.get(HoldKind::Failure).is_some())
        .await;
    let messages: Vec<String> = envelopes(&rig, &run)
        .await
        .into_iter()
        .map(|envelope| envelope["error"]["message"].to_string())
        .collect();
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(
        messages.iter().all(|message| message.contains("docker")),
        "{messages:?}"
    );
    assert_eq!(endless.times.load(Ordering::Relaxed), 0);
}

/// Waits until an effect of this kind waits for another try.
async fn until_tried(rig: &Rig, run: &RunId, kind: EffectKind) {
    let mut commits = rig.engine.committed();
    loop {
        let effects = rig.stage.memory.effects(run).await.expect("calm weather");
        if effects
            .iter()
            .any(|row| row.kind == kind && row.status == EffectStatus::Pending && row.attempts > 0)
        {
            return;
        }
        commits.recv().await.expect("the engine is there");
    }
}

/// RUN-4, RUN-11: a cancelled run undoes what it did at the forge, though the answer to it was lost.
#[tokio::test(start_paused = true)]
async fn what_was_done_without_an_answer_is_undone_after_a_cancel() {
    let rig = Rig::start_story().await;
    rig.stage.world.lose_the_answer_to("open a pull request");
    let run = rig.start_run(1).await;
    rig.approve(&run).await;
    until_tried(&rig, &run, EffectKind::OpenPullRequest).await;
    rig.operate(&run, Action::Cancel { comment: None })
        .await
        .expect("can be cancelled");
    rig.until(&run, |run| run.cleaned_up).await;
    let archive = rig.stage.forge.archive();
    let states: Vec<_> = archive
        .pull_requests
        .values()
        .map(|it| it.state.clone())
        .collect();
    assert_eq!(states, [PullRequestState::Closed]);
}

/// RUN-11: a run goes on after a retry, though a commit that nobody heard of had moved its branch.
#[tokio::test(start_paused = true)]
async fn a_retry_goes_on_though_an_unheard_commit_moved_the_branch() {
    let rig = Rig::start_story().await;
    rig.stage.world.lose_the_answer_to("commit");
    let run = rig.start_run(1).await;
    rig.approve(&run).await;
    until_tried(&rig, &run, EffectKind::CommitWork).await;
    rig.operate(&run, Action::Retry).await.expect("can be retried");
    rig.until(&run, |run| matches!(run.phase, Phase::AwaitingMerge(_)))
        .await;
}
