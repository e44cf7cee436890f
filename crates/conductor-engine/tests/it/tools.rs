//! What an agent can and cannot do through its tools, and what is kept of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use conductor_domain::effect::EffectKind;
use conductor_domain::event::Event;
use conductor_domain::hold::{Hold, HoldKind};
use conductor_domain::id::{EffectId, RunId};
use conductor_domain::input::Input;
use conductor_domain::invocation::Purpose;
use conductor_domain::phase::Phase;
use conductor_domain::plan::PlanDraft;
use conductor_domain::time::Millis;
use conductor_engine::audit::{self, Problem};
use conductor_engine::redact::KnownForms;
use conductor_engine::{chain, record};
use conductor_port::Fault;
use conductor_port::agent::{AgentEnd, GithubCall, Misfit, Task, ToolAnswer, ToolRequest, Tools};
use conductor_port::blobs::{Blobs as _, CallPage, ToolCall, ToolLog};
use conductor_port::clock::Clock as _;
use conductor_port::ledger::{Record, Settlement};
use conductor_port::views::Views as _;
use conductor_testkit::agent::FakeAgent;
use conductor_testkit::rig::Rig;
use futures_util::future::BoxFuture;

pub(crate) type Answers = Arc<Mutex<Vec<ToolAnswer>>>;

/// An agent that makes these calls and ends.
pub(crate) fn calls(requests: Vec<ToolRequest>) -> (FakeAgent, Answers) {
    let answers = Answers::default();
    let kept = answers.clone();
    let agent = FakeAgent::new(move |_task, tools| {
        let (requests, kept) = (requests.clone(), kept.clone());
        Box::pin(async move {
            for request in requests {
                let answer = tools.call(request).await?;
                kept.lock().expect("no panic").push(answer);
            }
            Ok(AgentEnd::Finished { tokens: 1 })
        })
    });
    (agent, answers)
}

fn plan(summary: &str) -> ToolRequest {
    ToolRequest::SubmitPlan(PlanDraft {
        summary: summary.into(),
        approach: "Carefully.".into(),
        files: vec!["a.txt".into()],
        risks: vec![],
    })
}

fn view() -> ToolRequest {
    ToolRequest::View {
        path: "README.md".into(),
    }
}

pub(crate) async fn tool_log(rig: &Rig, run: &RunId) -> Vec<ToolCall> {
    let effects = rig.stage.memory.effects(run).await.expect("calm");
    let invocation = effects
        .iter()
        .find(|row| row.kind.as_str() == "invoke")
        .expect("an agent was invoked");
    rig.stage.memory.read(&invocation.id).await.expect("calm")
}

fn event(records: &[Record], kind: &str) -> Event {
    let found = records
        .iter()
        .find(|record| record.kind == kind)
        .unwrap_or_else(|| panic!("there is no {kind}"));
    record::decode(found).expect("readable")
}

/// TOOL-3, TOOL-4: the Planner changes nothing; what it tried is in the log.
#[tokio::test(start_paused = true)]
async fn a_planner_that_tries_to_write_is_denied_and_logged() {
    let (agent, answers) = calls(vec![
        ToolRequest::CreateFile {
            path: "evil.txt".into(),
            content: b"x".to_vec(),
        },
        ToolRequest::Bash {
            command: "touch evil.txt".into(),
        },
        ToolRequest::View {
            path: "../secrets".into(),
        },
        plan("a plan"),
    ]);
    let rig = Rig::start(agent).await;
    let run = rig.start_run(1).await;
    rig.until(&run, |run| {
        matches!(&run.phase, Phase::Planning(planning) if planning.revisions == 0)
            && run.counters.invocations.contains_key(&Purpose::Plan)
    })
    .await;
    let answers: Vec<bool> = answers
        .lock()
        .expect("no panic")
        .iter()
        .map(|answer| matches!(answer, ToolAnswer::Done { .. }))
        .take(4)
        .collect();
    assert_eq!(answers, [false, false, false, true]);
    let log: Vec<(u64, String, String, String)> = tool_log(&rig, &run)
        .await
        .into_iter()
        .map(|call| (call.n, call.tool, call.decision, call.result))
        .collect();
    let log: Vec<(u64, &str, &str, &str)> = log
        .iter()
        .map(|(n, tool, decision, result)| (*n, tool.as_str(), decision.as_str(), result.as_str()))
        .collect();
    assert_eq!(
        log,
        [
            (1, "create_file", "deny", "not done"),
            (2, "bash", "deny", "not done"),
            (3, "view", "allow", "`../secrets` is outside the worktree"),
            (4, "submit_plan", "allow", "ok"),
        ]
    );
    assert!(!format!("{:?}", rig.stage.workspace.disk().dirs).contains("evil"));
}

/// TOOL-4: the log is a chain, and the run's chain holds its length and its head.
#[tokio::test(start_paused = true)]
async fn the_tool_log_is_chained_and_anchored() {
    let (agent, _answers) = calls(vec![view(), view(), plan("a plan")]);
    let rig = Rig::start(agent).await;
    let run = rig.start_run(1).await;
    rig.until(&run, |run| run.counters.invocations.contains_key(&Purpose::Plan))
        .await;
    let log = tool_log(&rig, &run).await;
    let mut before = chain::tool_genesis(&log[0].invocation);
    for call in &log {
        assert_eq!(chain::link_tool(&before, call), call.hash);
        before.clone_from(&call.hash);
    }
    let Event::InvocationEnded { tools, papers, .. } = event(&rig.records(&run).await, "invocation_ended")
    else {
        panic!("the invocation ended");
    };
    assert_eq!((tools.calls, tools.head.as_str()), (3, before.as_str()));
    let memory = rig.stage.memory.as_ref();
    let kept = audit::Kept {
        views: memory,
        ledger: memory,
        tool_log: memory,
        blobs: memory,
    };
    assert_eq!(audit::verify(kept).await.expect("readable").problems, []);
    let cut = CutLog(rig.stage.memory.clone());
    let named = Problem::ToolLogChanged {
        invocation: log[0].invocation.clone(),
    };
    let tampered = audit::Kept {
        tool_log: &cut,
        ..kept
    };
    let problems = audit::verify(tampered).await.expect("readable").problems;
    assert!(problems.contains(&named), "{problems:?}");
    let papers = papers.expect("an invocation has papers");
    let read = async |digest| -> serde_json::Value {
        let bytes = rig.stage.memory.get(digest).await.expect("calm").expect("kept");
        serde_json::from_slice(&bytes).expect("JSON")
    };
    let (envelope, receipt) = (
        read(&papers.envelope.digest).await,
        read(&papers.receipt.digest).await,
    );
    check_papers(&envelope, &receipt);
}

/// A log whose last call somebody removed.
#[derive(Debug)]
struct CutLog<L>(Arc<L>);

#[async_trait]
impl<L: ToolLog> ToolLog for CutLog<L> {
    async fn append(&self, _lease: Option<&Settlement>, _calls: &[ToolCall]) -> Result<(), Fault> {
        Err(Fault::permanent("for reading only"))
    }

    async fn read(&self, invocation: &EffectId) -> Result<Vec<ToolCall>, Fault> {
        let mut calls = self.0.read(invocation).await?;
        calls.pop();
        Ok(calls)
    }

    async fn page(&self, invocation: &EffectId, part: &CallPage) -> Result<Vec<ToolCall>, Fault> {
        self.0.page(invocation, part).await
    }
}

/// INV-1, INV-1a, INV-2, INV-5.
fn check_papers(envelope: &serde_json::Value, receipt: &serde_json::Value) {
    let keys = |value: &serde_json::Value| -> Vec<String> {
        value.as_object().expect("an object").keys().cloned().collect()
    };
    assert_eq!(
        keys(envelope),
        ["execution_id", "index_path", "meta", "outputs", "status"]
    );
    assert_eq!(
        keys(&envelope["meta"]),
        ["duration_ms", "env_fingerprint", "image_digest"]
    );
    assert_eq!(
        keys(&envelope["outputs"][0]),
        ["cid", "mime", "path", "size_bytes"]
    );
    assert_eq!(
        keys(receipt),
        [
            "duration_ms",
            "env_fingerprint",
            "execution_id",
            "hash_schema",
            "image_digest",
            "inputs_hash",
            "mode",
            "outputs_index",
            "processor_info",
            "processor_ref",
            "timestamp_utc",
            "usage"
        ]
    );
    assert_eq!(
        (&envelope["status"], &receipt["mode"]),
        (&"success".into(), &"mock".into())
    );
    assert_eq!(receipt["processor_ref"], "agent/planner@1");
    let fingerprint = receipt["env_fingerprint"].as_str().expect("text");
    let mut pairs: Vec<&str> = fingerprint.split(';').collect();
    pairs.sort_unstable();
    assert_eq!(pairs.join(";"), fingerprint);
}

/// TOOL-6: the first valid submission counts; a second and an invalid one are answers, not results.
#[tokio::test(start_paused = true)]
async fn the_first_valid_submission_counts() {
    let (agent, answers) = calls(vec![plan(" "), plan("the first"), plan("the second")]);
    let rig = Rig::start(agent).await;
    let run = rig.start_run(1).await;
    rig.until(&run, |run| run.counters.invocations.contains_key(&Purpose::Plan))
        .await;
    let answers = answers.lock().expect("no panic").clone();
    assert_eq!(
        answers[0],
        ToolAnswer::Refused {
            reason: "`summary` is empty".into()
        }
    );
    assert!(matches!(answers[1], ToolAnswer::Done { .. }));
    assert!(matches!(answers[2], ToolAnswer::Refused { .. }));
    let Event::PlanDrafted { plan } = event(&rig.records(&run).await, "plan_drafted") else {
        panic!("a plan")
    };
    assert_eq!(plan.summary, "the first");
}

/// RUN-12, invariant 10: an agent that only says it is done has done nothing.
#[tokio::test(start_paused = true)]
async fn an_agent_without_a_valid_result_has_failed() {
    for (request, reason) in [
        (
            plan(" "),
            "the Planner submitted an invalid result: `summary` is empty",
        ),
        (view(), "the Planner ended without a result"),
    ] {
        let (agent, _answers) = calls(vec![request]);
        let rig = Rig::start(agent).await;
        let run = rig.start_run(1).await;
        let held = rig
            .until(&run, |run| run.holds.get(HoldKind::Failure).is_some())
            .await;
        let Some(Hold::Failure { reason: said }) = held.holds.get(HoldKind::Failure) else {
            panic!("held")
        };
        assert!(said.contains(reason), "{said}");
    }
}

/// RUN-13: tool calls are counted here, whatever the agent makes of the answer.
#[tokio::test(start_paused = true)]
async fn an_agent_that_uses_up_its_tool_calls_is_ended() {
    let agent = FakeAgent::new(|_task, tools| {
        Box::pin(async move {
            loop {
                tools.call(view()).await?;
            }
        })
    });
    let mut rig = Rig::start(agent).await;
    rig.stage.specs[0].limits.invocation.tool_calls = 5;
    let run = rig.start_run(1).await;
    let held = rig
        .until(&run, |run| run.holds.get(HoldKind::Failure).is_some())
        .await;
    assert!(
        format!("{:?}", held.holds).contains("used up its tool calls"),
        "{:?}",
        held.holds
    );
    let log = tool_log(&rig, &run).await;
    assert_eq!(log.iter().filter(|call| call.decision == "allow").count(), 5);
    assert_eq!(log.last().map(|call| call.decision.as_str()), Some("deny"));
}

/// RUN-13, TOOL-4: ten thousand calls at once, as if by several clients on one lease: as many as are allowed are made and no
/// more, in whichever order they come, and no number is given twice.
#[tokio::test(start_paused = true)]
async fn of_ten_thousand_calls_at_once_only_the_allowed_are_made() {
    let agent = FakeAgent::new(|_task, tools| {
        Box::pin(async move {
            let all = (0..10_000).map(|_| tools.call(view()));
            let answers = futures_util::future::join_all(all).await;
            assert!(answers.len() == 10_000, "each is answered");
            std::future::pending().await
        })
    });
    let mut rig = Rig::start(agent).await;
    rig.stage.specs[0].limits.invocation.tool_calls = 20;
    let run = rig.start_run(1).await;
    let held = rig
        .until(&run, |run| run.holds.get(HoldKind::Failure).is_some())
        .await;
    assert!(format!("{:?}", held.holds).contains("used up its tool calls"));
    let log = tool_log(&rig, &run).await;
    assert_eq!(log.iter().filter(|call| call.decision == "allow").count(), 20);
    assert!(
        log.iter().any(|call| call.decision == "deny"),
        "the first too many is told"
    );
    let mut numbers: Vec<u64> = log.iter().map(|call| call.n).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), log.len());
}

/// RUN-12, RUN-13: time is measured here, and running out of it is for a human at once.
#[tokio::test(start_paused = true)]
async fn an_agent_that_uses_up_its_time_is_ended() {
    let agent = FakeAgent::new(|_task, _tools| Box::pin(std::future::pending()));
    let mut rig = Rig::start(agent).await;
    rig.stage.specs[0].limits.invocation.time = Millis::minutes(5);
    let run = rig.start_run(1).await;
    let begun = rig.stage.clock.now();
    let held = rig
        .until(&run, |run| run.holds.get(HoldKind::Failure).is_some())
        .await;
    assert!(
        format!("{:?}", held.holds).contains("used up its time"),
        "{:?}",
        held.holds
    );
    let took = rig.stage.clock.now().since(begun);
    assert!((300_000..302_000).contains(&took.0), "{took:?}");
    assert!(rig.stage.executor.open_sandboxes().is_empty());
}

/// TOOL-4: what an agent called stands in the log though it broke right after, and is anchored.
#[tokio::test(start_paused = true)]
async fn calls_before_a_fault_stand_in_the_log() {
    let agent = FakeAgent::new(|_task, tools| {
        Box::pin(async move {
            tools.call(view()).await?;
            Err(Fault::permanent("the agent's host is gone"))
        })
    });
    let rig = Rig::start(agent).await;
    let run = rig.start_run(1).await;
    rig.until(&run, |run| run.holds.get(HoldKind::Failure).is_some())
        .await;
    let log = tool_log(&rig, &run).await;
    let calls: Vec<&str> = log.iter().map(|call| call.tool.as_str()).collect();
    assert_eq!(calls, ["view"]);
    let Event::InvocationEnded { tools, .. } = event(&rig.records(&run).await, "invocation_ended") else {
        panic!("the invocation ended");
    };
    assert_eq!((tools.calls, tools.head.as_str()), (1, log[0].hash.as_str()));
}

async fn log_of_the_implementer(rig: &Rig, run: &RunId) -> Vec<ToolCall> {
    let effects = rig.stage.memory.effects(run).await.expect("calm weather");
    let implementing = effects.iter().rfind(|row| row.kind == EffectKind::Invoke);
    let implementing = &implementing.expect("the Implementer was invoked").id;
    ToolLog::read(rig.stage.memory.as_ref(), implementing)
        .await
        .expect("calm weather")
}

/// TOOL-4: a command can leave by its sandbox's outlet, so it stands in the log before it acts; one that the end of its
/// invocation cuts off is told to be, and the log is anchored with it.
#[tokio::test(start_paused = true)]
async fn a_command_stands_in_the_log_before_it_acts_and_when_it_is_cut_off() {
    let rig = Rig::start_story().await;
    rig.stage.world.hang("run a command");
    let run = rig.start_run(1).await;
    rig.approve(&run).await;
    rig.until(&run, |run| matches!(run.phase, Phase::Executing(_)))
        .await;
    // It hangs from here on, for as long as its invocation may take.
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    let result = |call: &ToolCall| {
        let told = [&call.tool, &call.decision, &call.result];
        told.map(ToOwned::to_owned)
    };
    let log = log_of_the_implementer(&rig, &run).await;
    let last = log.last().expect("it called tools");
    assert_eq!(result(last), ["bash", "allow", "begun"]);

    rig.until(&run, |run| run.holds.get(HoldKind::Failure).is_some())
        .await;
    let log = log_of_the_implementer(&rig, &run).await;
    let last = log.last().expect("it called tools");
    assert_eq!(
        result(last),
        ["bash", "allow", "begun, and cut off before it ended"]
    );
    let records = rig.records(&run).await;
    let anchored = records.iter().rfind(|record| record.kind == "invocation_ended");
    assert!(anchored.expect("it ended").payload.contains(&last.hash));
}

/// RUN-13: what was submitted does not buy off the limit.
#[tokio::test(start_paused = true)]
async fn a_submission_does_not_excuse_too_many_tokens() {
    let agent = FakeAgent::new(|_task, tools| {
        Box::pin(async move {
            tools.call(plan("a dear plan")).await?;
            Ok(AgentEnd::Finished { tokens: 11 })
        })
    });
    let mut rig = Rig::start(agent).await;
    rig.stage.specs[0].limits.invocation.tokens = 10;
    let run = rig.start_run(1).await;
    let held = rig.until(&run, |run| !run.holds.is_empty()).await;
    assert!(
        format!("{:?}", held.holds).contains("used up its tokens"),
        "{:?}",
        held.holds
    );
}

/// RUN-4: the world is waited for as long as it asks, but not for ever.
#[tokio::test(start_paused = true)]
async fn a_wait_that_the_world_announces_is_bounded() {
    let agent = FakeAgent::new(|_task, _tools| {
        Box::pin(async {
            Err(Fault::transient_for(
                Millis(u64::from(u32::MAX) * 1000),
                "come back later",
            ))
        })
    });
    let rig = Rig::start(agent).await;
    let run = rig.start_run(1).await;
    let faulted = |records: &[Record]| records.iter().find(|record| record.kind == "faulted").cloned();
    let mut commits = rig.engine.committed();
    let fact = loop {
        match faulted(&rig.records(&run).await) {
            Some(fact) => break fact,
            None => drop(commits.recv().await),
        }
    };
    let fact: record::Fact<Input> = record::decode(&fact).expect("readable");
    let Input::Faulted { fault, .. } = fact.input else {
        panic!("a fault was reported");
    };
    assert_eq!(fault, Fault::transient_for(Millis::hours(24), "come back later"));
}

/// RUN-13: tokens too.
#[tokio::test(start_paused = true)]
async fn an_agent_that_uses_up_its_tokens_has_failed() {
    let agent = FakeAgent::new(|_task, _tools| Box::pin(async { Ok(AgentEnd::Finished { tokens: 11 }) }));
    let mut rig = Rig::start(agent).await;
    rig.stage.specs[0].limits.invocation.tokens = 10;
    let run = rig.start_run(1).await;
    let held = rig
        .until(&run, |run| run.holds.get(HoldKind::Failure).is_some())
        .await;
    assert!(
        format!("{:?}", held.holds).contains("used up its tokens"),
        "{:?}",
        held.holds
    );
}

/// TOOL-4b, BEY-4: a question ends the invocation within ten seconds, even if the agent does not.
#[tokio::test(start_paused = true)]
async fn a_question_ends_an_agent_that_goes_on() {
    fn play(_task: Task, tools: &dyn Tools) -> BoxFuture<'_, Result<AgentEnd, Fault>> {
        Box::pin(async move {
            let answer = tools
                .call(ToolRequest::AskHuman {
                    question: "Which colour?".into(),
                })
                .await?;
            assert_eq!(answer, ToolAnswer::Stop);
            // It goes on all the same, and nothing comes of it.
            assert_eq!(tools.call(plan("on my own")).await?, ToolAnswer::Stop);
            std::future::pending().await
        })
    }
    let rig = Rig::start(FakeAgent::new(play)).await;
    let run = rig.start_run(1).await;
    let begun = rig.stage.clock.now();
    let held = rig
        .until(&run, |run| run.holds.get(HoldKind::Question).is_some())
        .await;
    let took = rig.stage.clock.now().since(begun);
    assert!((10_000..11_000).contains(&took.0), "{took:?}");
    let Some(Hold::Question { text, .. }) = held.holds.get(HoldKind::Question) else {
        panic!("held")
    };
    assert_eq!(text, "Which colour?");
    assert!(rig.stage.executor.open_sandboxes().is_empty());
}

/// SEC-3: a secret that an agent repeats reaches no record, no artifact, no log, no stream and no comment.
#[tokio::test(start_paused = true)]
async fn a_secret_goes_nowhere() {
    const SECRET: &str = "hunter2-hunter2";
    let (agent, _answers) = {
        let answers = Answers::default();
        let agent = FakeAgent::new(|_task, tools| {
            Box::pin(async move {
                tools.say(&format!("the key is {SECRET}")).await;
                tools.call(ToolRequest::View { path: SECRET.into() }).await?;
                tools
                    .call(ToolRequest::Github(GithubCall::CommentIssue {
                        number: None,
                        text: format!("look: {SECRET}"),
                    }))
                    .await?;
                // What a person approves must be what was planned, so a plan is taken without its secrets only by its author.
                let refused = tools.call(plan(&format!("use {SECRET}"))).await?;
                assert_eq!(
                    refused,
                    ToolAnswer::Refused {
                        reason: "the plan holds what looks like a secret in its summary; take it out and submit again"
                            .into()
                    }
                );
                tools.call(plan("use [redacted]")).await?;
                Ok(AgentEnd::Finished { tokens: 1 })
            })
        });
        (agent, answers)
    };
    let rig = Rig::start_with(
        |stage| stage.ports(agent),
        |options| options.redactor = Arc::new(KnownForms::with_secrets([SECRET.to_owned()])),
    )
    .await;
    let mut live = rig.engine.live();
    let run = rig.start_run(1).await;
    rig.until(&run, |run| {
        run.counters.invocations.contains_key(&Purpose::Plan)
            && run.in_flight.values().all(|e| e.kind.is_work())
    })
    .await;
    let said = live.recv().await.expect("the agent spoke").text;
    assert_eq!(said, "the key is [redacted]");
    let records = format!("{:?}", rig.records(&run).await);
    let log = format!("{:?}", tool_log(&rig, &run).await);
    let comments = format!("{:?}", rig.stage.forge.archive().comments);
    let Event::PlanDrafted { plan } = event(&rig.records(&run).await, "plan_drafted") else {
        panic!("a plan")
    };
    let kept = rig
        .stage
        .memory
        .get(&plan.artifact.digest)
        .await
        .expect("calm")
        .expect("kept");
    for (place, text) in [
        ("records", records),
        ("tool log", log),
        ("comments", comments),
        ("plan", String::from_utf8_lossy(&kept).into_owned()),
    ] {
        assert!(!text.contains(SECRET), "the secret is in the {place}: {text}");
        assert!(
            text.contains("[redacted]"),
            "the {place} show that something was there: {text}"
        );
    }
}

/// SEC-3: a secret is hidden from whoever watches also where it is said in two pieces; words wait for the end of their line, a
/// pause, or the end, and no longer.
#[tokio::test(start_paused = true)]
async fn a_secret_in_two_pieces_is_not_shown() {
    const SECRET: &str = "hunter2-hunter2";
    let agent = FakeAgent::new(|_task, tools| {
        Box::pin(async move {
            tools.say("the key is hunter2").await;
            tools.say("-hunter2, I hear\nand").await;
            tokio::time::sleep(Duration::from_secs(3)).await;
            tools.say(" the end").await;
            tools.call(plan("a plan")).await?;
            Ok(AgentEnd::Finished { tokens: 1 })
        })
    });
    let rig = Rig::start_with(
        |stage| stage.ports(agent),
        |options| options.redactor = Arc::new(KnownForms::with_secrets([SECRET.to_owned()])),
    )
    .await;
    let mut live = rig.engine.live();
    let run = rig.start_run(1).await;
    rig.until(&run, |run| run.counters.invocations.contains_key(&Purpose::Plan))
        .await;
    let mut said = vec![];
    while let Ok(next) = live.try_recv() {
        said.push(next.text);
    }
    said.truncate(3);
    assert_eq!(said, ["the key is [redacted], I hear\n", "and", " the end"]);
}

/// GH-5, SEC-3: no question can hide the link and the marker of its comment, by which a repeat finds it.
#[tokio::test(start_paused = true)]
async fn a_question_that_looks_like_a_key_keeps_its_link_and_marker() {
    let (agent, _answers) = calls(vec![ToolRequest::AskHuman {
        question: "-----BEGIN\nPRIVATE KEY-----".into(),
    }]);
    let rig = Rig::start(agent).await;
    let run = rig.start_run(1).await;
    rig.until(&run, |run| {
        run.holds.get(HoldKind::Question).is_some() && run.in_flight.values().all(|e| e.kind.is_work())
    })
    .await;
    let comments = rig.stage.forge.archive().comments.clone();
    let asked: Vec<&str> = comments
        .iter()
        .map(|comment| comment.body.as_str())
        .filter(|body| body.contains("An agent asks"))
        .collect();
    assert_eq!(asked.len(), 1, "{comments:?}");
    assert!(asked[0].contains("[redacted]"), "{asked:?}");
    assert!(
        asked[0].contains(&format!(
            "\n[run {run}](http://localhost/runs/{run})\n<!-- conductor:write {run}."
        )),
        "{asked:?}"
    );
}

/// TOOL-4, RUN-13: what came to no call is logged as denied, without its secrets, and counts like a call.
#[tokio::test(start_paused = true)]
async fn a_call_that_does_not_fit_is_logged_and_counted() {
    let agent = FakeAgent::new(|_task, tools| {
        Box::pin(async move {
            for n in 0..3 {
                let misfit = Misfit {
                    tool: "bash",
                    arguments: format!("{{\"password\":\"s3same-{n}\"}}"),
                    reason: "the arguments do not fit".to_owned(),
                };
                let answer = tools.misfit(misfit).await?;
                assert_eq!(matches!(answer, ToolAnswer::Stop), n == 2);
            }
            std::future::pending().await
        })
    });
    let mut rig = Rig::start(agent).await;
    rig.stage.specs[0].limits.invocation.tool_calls = 2;
    let run = rig.start_run(1).await;
    rig.until(&run, |run| run.holds.get(HoldKind::Failure).is_some())
        .await;
    let log = tool_log(&rig, &run).await;
    let seen: Vec<(&str, &str, &str, &str)> = log
        .iter()
        .map(|call| {
            let (tool, target) = (call.tool.as_str(), call.target.as_str());
            (tool, target, call.decision.as_str(), call.reason.as_str())
        })
        .collect();
    let hidden = "{\"password\":\"[redacted]\"}";
    let unfit = "the arguments do not fit";
    assert_eq!(
        seen,
        [
            ("bash", hidden, "deny", unfit),
            ("bash", hidden, "deny", unfit),
            (
                "bash",
                hidden,
                "deny",
                "the invocation has used up its tool calls"
            ),
        ]
    );
}

/// TOOL-4a: a comment is answered once it is committed, and never waits for the forge.
#[tokio::test(start_paused = true)]
async fn a_comment_is_accepted_deferred_or_denied() {
    let comment = |text: &str| {
        ToolRequest::Github(GithubCall::CommentIssue {
            number: None,
            text: text.into(),
        })
    };
    let mut requests = vec![comment(" ")];
    requests.extend((0..5).map(|n| comment(&format!("remark {n}"))));
    requests.push(plan("a plan"));
    let (agent, answers) = calls(requests);
    let rig = Rig::start(agent).await;
    let run = rig.start_run(1).await;
    rig.until(&run, |run| run.counters.invocations.contains_key(&Purpose::Plan))
        .await;
    let verdicts: Vec<String> = answers
        .lock()
        .expect("no panic")
        .iter()
        .take(6)
        .map(|answer| match answer {
            ToolAnswer::Done { output } => String::from_utf8_lossy(output)
                .split(' ')
                .next()
                .unwrap_or_default()
                .to_owned(),
            ToolAnswer::Refused { .. } => "refused".to_owned(),
            ToolAnswer::Stop => "stop".to_owned(),
        })
        .collect();
    // The run's own first comment has used up one of the burst of three.
    assert_eq!(
        verdicts,
        [
            "refused", "accepted", "accepted", "deferred", "deferred", "deferred"
        ]
    );
}

/// TOOL-4: calls reach the log within 50 ms although nobody waits for them.
#[tokio::test(start_paused = true)]
async fn a_call_is_durable_soon() {
    let agent = FakeAgent::new(|_task, tools| {
        Box::pin(async move {
            tools.call(view()).await?;
            std::future::pending().await
        })
    });
    let rig = Rig::start(agent).await;
    let run = rig.start_run(1).await;
    rig.until(&run, |run| run.workspace.is_some()).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    let invocation = rig
        .stage
        .memory
        .effects(&run)
        .await
        .expect("calm")
        .into_iter()
        .find(|row| row.kind.as_str() == "invoke");
    let invocation = invocation.expect("an agent was invoked").id;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(rig.stage.memory.read(&invocation).await.expect("calm").len(), 1);
}
