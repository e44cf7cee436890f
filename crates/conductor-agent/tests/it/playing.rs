//! What a scenario says is what is asked of the tools, in order, and every answer is held against what was expected.

use conductor_domain::digest::Digest;
use conductor_domain::fault::{Fault, FaultKind};
use conductor_domain::invocation::Purpose;
use conductor_domain::plan::{PlanDraft, ReviewDraft, TestReportDraft, Verdict};
use conductor_domain::spec::{AgentBackend, Mode};
use conductor_domain::time::Timestamp;
use conductor_port::agent::{Agent as _, AgentEnd, GithubCall, ToolAnswer, ToolRequest};

use crate::kit::{ListedTools, agents, done, invoke, play, refused, task};

const FINISHED: AgentEnd = AgentEnd::Finished { tokens: 0 };

#[tokio::test]
async fn every_kind_of_call_reaches_the_tools_word_for_word() {
    let tools = ListedTools::default();
    let steps = r#"
tokens = 42
step = [
  { say = "hello \u001b[31m\u202e" },
  { view = "../x" },
  { create_file = { path = "a", content = "b" } },
  { str_replace = { path = "a", old = "b", new = "" } },
  { bash = "true", times = 2 },
  { comment = "hm" },
  { sleep_ms = 1 },
  { submit_plan = { summary = "", approach = "", files = ["/etc"] } },
  { submit_review = { verdict = "reject", summary = "s" } },
  { submit_test_report = { passed = true, interpretation = "i" } },
]
"#;
    assert_eq!(play(steps, &tools).await, Ok(AgentEnd::Finished { tokens: 42 }));
    assert_eq!(tools.said(), ["hello \u{1b}[31m\u{202e}"]);
    let bash = ToolRequest::Bash {
        command: "true".into(),
    };
    let expected = [
        ToolRequest::View { path: "../x".into() },
        ToolRequest::CreateFile {
            path: "a".into(),
            content: b"b".to_vec(),
        },
        ToolRequest::StrReplace {
            path: "a".into(),
            old: "b".into(),
            new: String::new(),
        },
        bash.clone(),
        bash,
        ToolRequest::Github(GithubCall::CommentIssue {
            number: None,
            text: "hm".into(),
        }),
        ToolRequest::SubmitPlan(PlanDraft {
            summary: String::new(),
            approach: String::new(),
            files: vec!["/etc".into()],
            risks: vec![],
        }),
        ToolRequest::SubmitReview(ReviewDraft {
            verdict: Verdict::Reject,
            summary: "s".into(),
            findings: vec![],
        }),
        ToolRequest::SubmitTestReport(TestReportDraft {
            passed: true,
            interpretation: "i".into(),
        }),
    ];
    assert_eq!(tools.asked(), expected);
}

#[tokio::test]
async fn an_answer_that_was_not_expected_stops_the_story() {
    let table = [
        ("'done'", done("x"), true),
        ("'done'", refused("no"), false),
        ("'done'", ToolAnswer::Stop, false),
        ("{ output = 'x' }", done("axb"), true),
        ("{ output = 'x' }", done("y"), false),
        ("{ output = 'x' }", refused("x"), false),
        ("{ output_lacks = 'x' }", done("y"), true),
        ("{ output_lacks = 'x' }", done("axb"), false),
        ("{ refused = 'outside' }", refused("it is outside"), true),
        ("{ refused = 'outside' }", refused("no"), false),
        ("{ refused = '' }", done("outside"), false),
        ("{ refused = '' }", ToolAnswer::Stop, false),
        ("'stop'", ToolAnswer::Stop, true),
        ("'stop'", done(""), false),
        ("'anything'", refused("no"), true),
        ("'anything'", ToolAnswer::Stop, true),
    ];
    for (expect, answer, is_met) in table {
        let tools = ListedTools::answering([answer.clone()]);
        let played = play(
            &format!("[[implement.step]]\nview = 'f'\nexpect = {expect}\n"),
            &tools,
        )
        .await;
        if is_met {
            assert_eq!(played, Ok(FINISHED), "{expect} {answer:?}");
        } else {
            let fault = played.unwrap_err();
            assert_eq!(fault.kind, FaultKind::Permanent);
            assert!(
                fault
                    .what
                    .starts_with("the scenario was not met at line 3: expected "),
                "{fault}"
            );
        }
    }
}

#[tokio::test]
async fn a_refusal_that_nobody_expected_is_never_passed_over() {
    let tools = ListedTools::answering([refused("`../x` is outside the worktree")]);
    let fault = play("step = [{ view = '../x' }, { bash = 'true' }]", &tools)
        .await
        .unwrap_err();
    assert_eq!(
        fault.what,
        "the scenario was not met at line 3: expected Done, was refused: \"`../x` is outside the worktree\""
    );
    assert_eq!(tools.asked().len(), 1);
}

/// TOOL-4b: an agent that is told to stop ends; a hostile one goes on.
#[tokio::test]
async fn an_agent_that_is_told_to_stop_ends_unless_it_ignores_that() {
    let steps = "step = [{ ask_human = 'why?' }, { bash = 'true' }]";
    for (ignores, calls) in [("", 1), ("ignores_stop = true\n", 2)] {
        let tools = ListedTools::answering([ToolAnswer::Stop]);
        assert_eq!(play(&format!("{ignores}{steps}"), &tools).await, Ok(FINISHED));
        assert_eq!(tools.asked().len(), calls);
    }
}

#[tokio::test]
async fn an_agent_can_end_in_every_way() {
    let fault = |kind| {
        Err(Fault {
            kind,
            what: "no disk".into(),
        })
    };
    let table = [
        ("", Ok(FINISHED)),
        ("step = [{ exit = true }, { bash = 'true' }]", Ok(FINISHED)),
        (
            "tokens = 9\nstep = [{ crash = 'boom' }]",
            Ok(AgentEnd::Crashed {
                reason: "boom".into(),
                tokens: 9,
            }),
        ),
        (
            "step = [{ fault = { kind = 'transient', what = 'no disk' } }]",
            fault(FaultKind::Transient { retry_after: None }),
        ),
        (
            "step = [{ fault = { kind = 'conflict', what = 'no disk' } }]",
            fault(FaultKind::Conflict),
        ),
        (
            "step = [{ fault = { kind = 'permanent', what = 'no disk' } }]",
            fault(FaultKind::Permanent),
        ),
    ];
    for (steps, expected) in table {
        let tools = ListedTools::default();
        assert_eq!(play(steps, &tools).await, expected, "{steps}");
        assert_eq!(tools.asked(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_hangs_is_ended_by_others() {
    let tools = ListedTools::default();
    let hour = std::time::Duration::from_hours(1);
    let played = tokio::time::timeout(hour, play("step = [{ say = 'hm' }, { hang = true }]", &tools)).await;
    assert!(played.is_err());
    assert_eq!(tools.said(), ["hm"]);
}

/// BEY-5: the invocation that met the limit comes again with the same number, and then goes on.
#[tokio::test]
async fn a_provider_limit_holds_until_it_is_over() {
    let (agents, clock) = agents();
    let scenario = "schema = 1\n[[plan]]\nstep = [{ provider_limit = { account = 'main', seconds = 60 } }, \
                    { say = 'on' }]\n";
    let limited = AgentEnd::ProviderLimited {
        account: "main".into(),
        until: Timestamp(160_000_000),
    };
    let tools = ListedTools::default();
    for (now, expected) in [
        (100, limited.clone()),
        (159, limited),
        (160, FINISHED),
        (500, FINISHED),
    ] {
        clock.set(now);
        let ended = invoke(&agents, task(scenario, Purpose::Plan, 1, &[]), &tools).await;
        assert_eq!(ended, Ok(expected), "at {now}");
    }
    assert_eq!(tools.said(), ["on", "on"]);
}

/// RUN-12a: which part is played depends on the invocation alone, so a restarted Conductor plays the same.
#[tokio::test]
async fn a_restart_plays_the_same_part() {
    let scenario = "schema = 1\nexhausted = 'fail'\n[[plan]]\nstep = [{ say = 'one' }]\n[[plan]]\nstep = [{ say = \
                    'two' }]\n[[review_plan]]\nstep = [{ say = 'review' }]\n";
    for (purpose, attempt, expected) in [
        (Purpose::Plan, 2, "two"),
        (Purpose::Plan, 1, "one"),
        (Purpose::Plan, 2, "two"),
        (Purpose::ReviewPlan, 1, "review"),
    ] {
        let tools = ListedTools::default();
        invoke(&agents().0, task(scenario, purpose, attempt, &[]), &tools)
            .await
            .unwrap();
        assert_eq!(tools.said(), [expected]);
    }
    for (purpose, attempt, name) in [(Purpose::Plan, 3, "Plan"), (Purpose::Implement, 1, "Implement")] {
        let task = task(scenario, purpose, attempt, &[]);
        let played = invoke(&agents().0, task, &ListedTools::default()).await;
        let what = format!("the scenario has no part for invocation {attempt} of {name}");
        assert_eq!(played, Err(Fault::permanent(what)));
    }
}

#[tokio::test]
async fn a_file_is_written_whether_it_is_there_or_not() {
    let write = "step = [{ write = { path = 'f', content = 'new' } }]";
    let view = ToolRequest::View { path: "f".into() };
    let create = ToolRequest::CreateFile {
        path: "f".into(),
        content: b"new".to_vec(),
    };
    let replace = ToolRequest::StrReplace {
        path: "f".into(),
        old: "old".into(),
        new: "new".into(),
    };
    let table = [
        (refused("`f` does not exist"), vec![view.clone(), create]),
        (done("old"), vec![view.clone(), replace]),
        (done("new"), vec![view]),
    ];
    for (answer, expected) in table {
        let tools = ListedTools::answering([answer]);
        assert_eq!(play(write, &tools).await, Ok(FINISHED));
        assert_eq!(tools.asked(), expected);
    }
}

/// INV-2: a scripted endpoint is `mock`. The scenario is the one that the run was started with, and it is understood.
#[tokio::test]
async fn a_scenario_that_does_not_fit_is_refused_before_anything_is_done() {
    let good = "schema = 1\n[[plan]]\nstep = [{ say = 'x' }]\n";
    let fitting = task(good, Purpose::Plan, 1, &[]);
    let mut real = fitting.clone();
    real.invocation.agents.mode = Mode::Real;
    let mut none = fitting.clone();
    none.scenario = None;
    let mut other = fitting.clone();
    other.scenario = Some(good.replace('x', "y").into_bytes());
    let mut binary = fitting.clone();
    binary.scenario = Some(vec![0xff]);
    binary.invocation.agents.backend = AgentBackend::Scripted {
        scenario: Digest::of(&[0xff]),
    };
    let broken = task(
        "schema = 1\n[[plan]]\nstep = [{ sya = 'x' }]\n",
        Purpose::Plan,
        1,
        &[],
    );
    for (task, what) in [
        (real, "in mode `real` is refused"),
        (none, "was given no scenario"),
        (other, "the run was started with sha256:"),
        (binary, "is not text"),
        (
            broken,
            "reading the scenario: line 3, column 11: unknown field `sya`",
        ),
    ] {
        let tools = ListedTools::default();
        let fault = invoke(&agents().0, task, &tools).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Permanent);
        assert!(fault.what.contains(what), "{fault}");
        assert_eq!(tools.said(), [] as [&str; 0]);
    }
}

/// INV-1a: the receipt's digest changes with the scenario and with nothing else.
#[test]
fn the_image_digest_names_the_scenario() {
    let (agents, _) = agents();
    let digest = |scenario: &str, attempt| agents.image_digest(&task(scenario, Purpose::Plan, attempt, &[]));
    assert_eq!(digest("a", 1), digest("a", 2));
    assert_ne!(digest("a", 1), digest("b", 1));
    assert!(digest("a", 1).starts_with("sha256:"));
}
