//! The words themselves: what they parse, how they read, and which kinds they belong to, as tables.

use std::collections::BTreeSet;

use conductor_domain::artifact::ArtifactKind;
use conductor_domain::deadline::{Deadline, next_deadline};
use conductor_domain::diff::FindingKind;
use conductor_domain::digest::Digest;
use conductor_domain::effect::EffectKind;
use conductor_domain::fault::{Fault, FaultKind};
use conductor_domain::forge::IssueProblem;
use conductor_domain::gate::GateKind;
use conductor_domain::hold::{Hold, HoldKind};
use conductor_domain::id::{CommitId, EffectId, IssueNumber, OperatorName, PullRequestNumber, RepoId, RunId};
use conductor_domain::instance::InstanceRefusal;
use conductor_domain::invocation::{AgentFailure, InvocationLimit, Purpose};
use conductor_domain::message::{MessageKind, is_hidden};
use conductor_domain::phase::{EndReason, PhaseName};
use conductor_domain::plan::{MAX_FILES, MAX_TEXT, PlanDraft, ReviewDraft, TestReportDraft, Verdict};
use conductor_domain::refusal::Refusal;
use conductor_domain::role::{Role, Speaker};
use conductor_domain::spec::{ExecutorName, Limits, Priority};
use conductor_domain::testing::Ending;
use conductor_domain::time::{Millis, Timestamp};

use crate::scenarios::way;
use crate::script::play;
use crate::world::{World, operator, spec};

#[test]
fn time_adds_up() {
    assert_eq!(
        (Millis::seconds(3).0, Millis::minutes(3).0, Millis::hours(3).0),
        (3_000, 180_000, 10_800_000)
    );
    assert_eq!(Timestamp(5_000_000).after(Millis(7)), Timestamp(5_007_000));
    assert_eq!(Timestamp(5_007_900).since(Timestamp(5_000_000)), Millis(7));
    assert_eq!(
        Timestamp(1).since(Timestamp(5_000_000)),
        Millis(0),
        "time does not run backwards"
    );
    assert_eq!(Timestamp(1).after(Millis(u64::MAX)), Timestamp(i64::MAX));
}

#[test]
fn digests_are_strict() {
    let digest = Digest::of(b"abc");
    assert_eq!(
        digest.as_str(),
        "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
    assert_eq!(
        (digest.short(), digest.to_string()),
        ("ba7816bf8f01", digest.as_str().to_owned())
    );
    assert_eq!(Digest::parse(digest.as_str()), Ok(digest.clone()));
    assert_eq!(
        serde_json::from_str::<Digest>(&serde_json::to_string(&digest).expect("text")).ok(),
        Some(digest)
    );
    for bad in [
        "",
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "sha256:ba78",
        "sha256:BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD",
        "sha256:zz7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "md5:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    ] {
        assert!(
            Digest::parse(bad).is_err() && bad.parse::<Digest>().is_err(),
            "{bad}"
        );
    }
}

#[test]
fn ids_read_as_people_write_them() {
    assert_eq!(
        (
            RepoId(7).to_string(),
            IssueNumber(7).to_string(),
            PullRequestNumber(8).to_string()
        ),
        ("7".into(), "#7".into(), "#8".into())
    );
    assert_eq!(RunId::parse("a-1").expect("a slug").to_string(), "a-1");
    assert_eq!("a-1".parse::<RunId>().map(String::from), Ok("a-1".to_owned()));
    assert!(RunId::parse("x".repeat(40)).is_ok());
    assert_eq!(
        RunId::parse("A b").expect_err("not a slug").to_string(),
        "`A b` is not a run id (lowercase letters, digits and hyphens, at most 40)"
    );
    for good in ["ann", "a.b-c_d@e", "X9"] {
        assert!(OperatorName::parse(good).is_ok(), "{good}");
    }
    for bad in ["", "a b", "a\n", "ä", &"x".repeat(65)] {
        assert!(OperatorName::parse(bad).is_err(), "{bad:?}");
    }
    for good in ["a".repeat(40), "0".repeat(64)] {
        assert!(CommitId::parse(good).is_ok());
    }
    for bad in [
        "a".repeat(41),
        "a".repeat(63),
        "A".repeat(40),
        format!("{}g", "a".repeat(39)),
    ] {
        assert!(CommitId::parse(bad.clone()).is_err(), "{bad}");
    }
    for bad in ["r1", "r1.1", "r1.a.0", "r1.0.b", "R1.0.0", ".0.0"] {
        assert!(EffectId::parse(bad).is_err(), "{bad}");
    }
    assert_eq!(
        EffectId::parse("r.1.2").map(|id| id.run().to_string()),
        Ok("r".to_owned())
    );
}

#[test]
fn priorities_lie_between_one_and_ten() {
    let valid: Vec<u8> = (0..=20).filter_map(Priority::new).map(Priority::value).collect();
    assert_eq!(valid, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    assert_eq!(Priority::NORMAL.value(), 5);
    assert!(serde_json::from_str::<Priority>("11").is_err());
    assert_eq!(
        serde_json::to_string(&Priority::NORMAL).ok(),
        Some("5".to_owned())
    );
}

/// RUN-13: the defaults are part of the contract.
#[test]
fn the_default_limits_are_these() {
    let limits = Limits::default();
    assert_eq!(
        (
            limits.plan_revisions,
            limits.implementation_retries,
            limits.agent_retries,
            limits.interruptions,
            limits.effect_retries
        ),
        (3, 3, 2, 3, 8)
    );
    assert_eq!(limits.invocation.time, Millis(1_800_000));
    assert_eq!(
        (limits.test_time, limits.reminder, limits.poll),
        (Millis(900_000), Millis(86_400_000), Millis(60_000))
    );
}

#[test]
fn roles_and_speakers() {
    let written: Vec<String> = Role::ALL
        .into_iter()
        .filter(|role| role.may_write())
        .map(|role| role.to_string())
        .collect();
    assert_eq!(written, ["Implementer"]);
    assert_eq!(
        Role::ALL.map(|role| role.to_string()),
        ["Planner", "Reviewer", "Implementer", "Tester"]
    );
    assert_eq!(
        (
            Speaker::Orchestrator.to_string(),
            Speaker::Agent(Role::Tester).to_string()
        ),
        ("Orchestrator".into(), "Tester".into())
    );
    let purposes = [
        (Purpose::Plan, Role::Planner),
        (Purpose::ReviewPlan, Role::Reviewer),
        (Purpose::Implement, Role::Implementer),
        (Purpose::InterpretTests, Role::Tester),
        (Purpose::ReviewImplementation, Role::Reviewer),
    ];
    for (purpose, role) in purposes {
        assert_eq!(purpose.role(), role);
    }
}

/// GH-5: who may say what.
#[test]
fn who_may_say_what() {
    let speakers = [
        Speaker::Orchestrator,
        Speaker::Agent(Role::Planner),
        Speaker::Agent(Role::Reviewer),
        Speaker::Agent(Role::Implementer),
        Speaker::Agent(Role::Tester),
    ];
    let table = [
        (MessageKind::Transition, [true, false, false, false, false], false),
        (MessageKind::Gate, [true, false, false, false, false], true),
        (
            MessageKind::OperatorAction,
            [true, false, false, false, false],
            true,
        ),
        (MessageKind::Plan, [true, true, false, false, false], false),
        (MessageKind::Review, [false, false, true, false, false], false),
        (MessageKind::TestReport, [false, false, false, false, true], false),
        (MessageKind::Failure, [true, false, false, false, false], true),
        (MessageKind::Question, [true, true, true, true, true], true),
        (MessageKind::Remark, [false, true, true, true, true], false),
        (
            MessageKind::PullRequestRemark,
            [false, true, true, true, true],
            false,
        ),
        (MessageKind::Digest, [true, false, false, false, false], false),
    ];
    for (kind, may, passes) in table {
        assert_eq!(
            speakers.map(|speaker| kind.may_be_said_by(speaker)),
            may,
            "{kind:?}"
        );
        assert_eq!(kind.passes_throttle(), passes, "{kind:?}");
    }
}

/// RUN-11, SEC-6, GH-6: which effects are work, can be stopped, run foreign code, write at the forge.
#[test]
fn what_effects_are() {
    let told: Vec<String> = EffectKind::ALL
        .into_iter()
        .map(|kind| {
            let flag = |is: bool, letter: &str| if is { letter.to_owned() } else { "-".to_owned() };
            format!(
                "{kind} {}{}{}{}",
                flag(kind.is_work(), "w"),
                flag(kind.is_stoppable(), "s"),
                flag(kind.executes_foreign_code(), "x"),
                flag(kind.writes_to_forge(), "f")
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            "read_issue ws--",
            "prepare_workspace ws--",
            "invoke wsx-",
            "commit_work ws--",
            "run_tests wsx-",
            "check_red_first wsx-",
            "rebase ws--",
            "inspect_diff ws--",
            "push w--f",
            "open_pull_request w--f",
            "publish_check w--f",
            "merge_pull_request w--f",
            "read_pull_request ----",
            "close_pull_request ---f",
            "post_comment ---f",
            "update_fields ---f",
            "clean_up ----",
        ]
    );
}

#[test]
fn phases_have_names_and_ends() {
    for name in PhaseName::ALL {
        assert_eq!(PhaseName::parse(name.as_str()), Some(name));
        assert_eq!(name.to_string(), name.as_str());
    }
    assert_eq!(PhaseName::parse("paused"), None, "a hold is not a phase");
    let ends: Vec<&str> = PhaseName::ALL
        .into_iter()
        .filter(|name| name.is_terminal())
        .map(PhaseName::as_str)
        .collect();
    assert_eq!(ends, ["completed", "cancelled", "failed"]);
}

#[test]
fn holds_read_as_sentences_and_some_need_a_human() {
    let question = EffectId::parse("r.1.0").expect("an id");
    let holds = [
        (Hold::Operator { by: operator("ann") }, "paused by ann", false),
        (
            Hold::Question {
                id: question,
                text: "why?".into(),
                asked_at: Timestamp(0),
            },
            "a question waits for an answer: why?",
            true,
        ),
        (
            Hold::ProviderLimit {
                account: "acme".into(),
                until: Timestamp(0),
            },
            "the provider refuses more work on account acme",
            false,
        ),
        (Hold::Failure { reason: "x".into() }, "failed: x", true),
        (Hold::Policy { reason: "x".into() }, "policy: x", true),
        (Hold::KillSwitch, "the kill switch is on", false),
    ];
    for (hold, text, needs_human) in holds {
        assert_eq!(
            (hold.to_string().as_str(), hold.needs_human()),
            (text, needs_human)
        );
    }
}

#[test]
fn faults_say_what_a_repeat_can_bring() {
    assert_eq!(
        Fault::transient("x").kind,
        FaultKind::Transient { retry_after: None }
    );
    assert_eq!(
        Fault::transient_for(Millis(9), "x").kind,
        FaultKind::Transient {
            retry_after: Some(Millis(9))
        }
    );
    assert_eq!(Fault::conflict("x").kind, FaultKind::Conflict);
    assert_eq!(Fault::environment_lost("x").kind, FaultKind::EnvironmentLost);
    assert_eq!(
        (Fault::permanent("x").kind, Fault::permanent("x").to_string()),
        (FaultKind::Permanent, "x".to_owned())
    );
}

#[test]
fn small_words_read_as_sentences() {
    let by = operator("ann");
    let told = [
        EndReason::Operator {
            by: by.clone(),
            comment: None,
        }
        .to_string(),
        EndReason::Operator {
            by: by.clone(),
            comment: Some("no".into()),
        }
        .to_string(),
        EndReason::PlanRejected { by: by.clone() }.to_string(),
        EndReason::DiffRejected { by: by.clone() }.to_string(),
        EndReason::CallRejected { by }.to_string(),
        EndReason::PullRequestClosed.to_string(),
        EndReason::SetUpImpossible { why: "gone".into() }.to_string(),
        AgentFailure::NoResult.to_string(),
        AgentFailure::InvalidResult { reason: "x".into() }.to_string(),
        AgentFailure::Crashed { reason: "x".into() }.to_string(),
        AgentFailure::LimitExceeded {
            limit: InvocationLimit::Tokens,
        }
        .to_string(),
        AgentFailure::LimitExceeded {
            limit: InvocationLimit::Time,
        }
        .to_string(),
        AgentFailure::LimitExceeded {
            limit: InvocationLimit::ToolCalls,
        }
        .to_string(),
        format!("{} {} {}", GateKind::Plan, GateKind::Diff, GateKind::Call),
        [
            IssueProblem::Deleted,
            IssueProblem::NotFound,
            IssueProblem::Moved,
            IssueProblem::IsPullRequest,
        ]
        .map(|problem| problem.to_string())
        .join(", "),
        [
            FindingKind::OutsidePlan,
            FindingKind::Gitlink,
            FindingKind::GitSettings,
            FindingKind::EscapingSymlink,
            FindingKind::CollidingName,
            FindingKind::ForbiddenPath,
            FindingKind::Secret,
            FindingKind::EnvironmentFile,
            FindingKind::Harness,
            FindingKind::LargeBinary,
            FindingKind::LargeFile,
            FindingKind::LongLine,
            FindingKind::HiddenText,
            FindingKind::MixedScripts,
            FindingKind::Pattern,
            FindingKind::ManyFiles,
            FindingKind::NewDependency,
            FindingKind::DependencyChange,
            FindingKind::ManyFindings,
            FindingKind::UntrustedIssue,
            FindingKind::Unshown,
            FindingKind::Policy,
        ]
        .map(|kind| kind.to_string())
        .join(", "),
        [
            ArtifactKind::Issue,
            ArtifactKind::Plan,
            ArtifactKind::Review,
            ArtifactKind::TestOutput,
            ArtifactKind::TestReport,
            ArtifactKind::Feedback,
            ArtifactKind::Diff,
            ArtifactKind::Envelope,
            ArtifactKind::Receipt,
            ArtifactKind::Scenario,
            ArtifactKind::Skill,
            ArtifactKind::Dependencies,
            ArtifactKind::Skills,
            ArtifactKind::Policy,
            ArtifactKind::Call,
        ]
        .map(ArtifactKind::as_str)
        .join(" "),
        [
            ExecutorName::Local,
            ExecutorName::Docker,
            ExecutorName::UnsafePlain,
        ]
        .map(ExecutorName::as_str)
        .join(" "),
        spec().repo.to_string(),
        spec().branch(),
    ];
    assert_eq!(
        told.join("\n"),
        "by ann\nby ann: no\nann rejected the plan\nann rejected the change\nann rejected a call of a tool\n\
         the pull request was closed without a merge\ngone\nended without a result\n\
         submitted an invalid result: x\nended with an error: x\nused up its tokens\nused up its time\n\
         used up its tool calls\nplan diff call\n\
         the issue was deleted, there is no such issue, the issue was moved to another repository, \
         the number belongs to a pull request\n\
         outside the approved plan, link to another repository, changes how git behaves, \
         symbolic link out of the tree, name that collides on some file systems, path that agents may not change, \
         secret, file for an environment, test harness changed, large binary file, large file, line too long to read, \
         hidden characters, name that mixes scripts, matches a pattern of the policy, many files, new dependency, \
         dependencies changed, too many findings, written by somebody whose words do not count as trusted, not shown whole, \
         decides about what leaves\n\
         issue plan review test_output test_report feedback diff envelope receipt scenario skill dependencies skills policy call\nlocal docker unsafe-plain\no/n\nconductor/run-r1"
    );
}

#[test]
fn every_refusal_has_its_own_code_and_a_hint() {
    let refusals = [
        Refusal::NoSuchRun,
        Refusal::RunExists,
        Refusal::WrongPhase {
            phase: PhaseName::Planning,
            attempted: "x",
        },
        Refusal::RunIsOver {
            phase: PhaseName::Failed,
        },
        Refusal::RunIsPaused {
            holds: vec![
                HoldKind::Operator,
                HoldKind::Question,
                HoldKind::ProviderLimit,
                HoldKind::Failure,
                HoldKind::Policy,
                HoldKind::KillSwitch,
            ],
        },
        Refusal::NotHeld,
        Refusal::AlreadyPaused,
        Refusal::ApprovalIsStale {
            gate: GateKind::Plan,
            seen: Digest::of(b"a"),
            current: Digest::of(b"b"),
        },
        Refusal::NoSuchQuestion,
        Refusal::CommentRequired,
        Refusal::DeniedByPolicy { reason: "x".into() },
        Refusal::KillSwitchIsOn,
        Refusal::NoTestCommand,
        Refusal::UnknownEffect,
        Refusal::ReportDoesNotFit { effect: "push" },
        Refusal::InvocationIsOver,
        Refusal::NotDue,
        Refusal::JustificationUnfit { why: "is empty" },
        Refusal::ReliefEndUnfit,
        Refusal::NoSuchRelief,
        Refusal::NotShownWhole,
    ];
    let codes: Vec<&str> = refusals.iter().map(Refusal::code).collect();
    let expected: Vec<String> = (101..122).map(|n| format!("CDR0{n}")).collect();
    assert_eq!(codes, expected);
    assert!(
        refusals
            .iter()
            .all(|refusal| refusal.hint().len() > 10 && !refusal.to_string().ends_with('.'))
    );
    assert_eq!(
        refusals[4].to_string(),
        "the run is paused (operator, question, provider limit, failure, policy, kill switch)"
    );
    let project = spec().project;
    let refusals = [
        InstanceRefusal::ProjectExists(project.clone()),
        InstanceRefusal::NoSuchProject(project.clone()),
        InstanceRefusal::RepoElsewhere {
            repo: "o/n".into(),
            project,
        },
        InstanceRefusal::NoTestCommand,
        InstanceRefusal::NoSlot,
        InstanceRefusal::SwitchStands(true),
        InstanceRefusal::NoSuchRepo(RepoId(42)),
        InstanceRefusal::PolicyTooLong,
        InstanceRefusal::PolicyInvalid {
            flaws: vec!["1:2: x".into(), "3:4: y".into()],
        },
    ];
    let codes: Vec<&str> = refusals.iter().map(InstanceRefusal::code).collect();
    assert_eq!(
        codes,
        [
            "CDR0201", "CDR0202", "CDR0203", "CDR0204", "CDR0205", "CDR0206", "CDR0210", "CDR0211", "CDR0212"
        ]
    );
    assert_eq!(
        refusals[8].to_string(),
        "the policies cannot be used: 1:2: x; 3:4: y"
    );
    assert!(refusals.iter().all(|refusal| refusal.hint().len() > 10));
    assert_eq!(
        InstanceRefusal::SwitchStands(false).to_string(),
        "the kill switch is off already"
    );
}

/// S-48: the classes that must be seen.
#[test]
fn hidden_characters_are_known() {
    let hidden = [
        '\u{0}',
        '\u{7f}',
        '\u{85}',
        '\u{ad}',
        '\u{34f}',
        '\u{61c}',
        '\u{115f}',
        '\u{1160}',
        '\u{17b4}',
        '\u{17b5}',
        '\u{180b}',
        '\u{180c}',
        '\u{180d}',
        '\u{180e}',
        '\u{180f}',
        '\u{200b}',
        '\u{200e}',
        '\u{202e}',
        '\u{2028}',
        '\u{2029}',
        '\u{2066}',
        '\u{2069}',
        '\u{2800}',
        '\u{3164}',
        '\u{e000}',
        '\u{fe0f}',
        '\u{feff}',
        '\u{ffa0}',
        '\u{fff0}',
        '\u{fff8}',
        '\u{fffb}',
        '\u{e0041}',
        '\u{e0100}',
        '\u{10ffff}',
    ];
    for c in hidden {
        assert!(is_hidden(c), "{:x}", u32::from(c));
    }
    for c in [
        '\n', '\t', ' ', 'a', 'é', '中', '🙂', '\u{301}', '\u{1161}', '\u{1780}', '\u{2801}', '\u{3163}',
        '\u{fffd}',
    ] {
        assert!(!is_hidden(c), "{c}");
    }
}

/// S-49: at the limit is shown whole, one more is refused.
#[test]
fn submissions_at_their_limits() {
    let plan = |approach: usize, files: usize| PlanDraft {
        summary: "s".into(),
        approach: "x".repeat(approach),
        files: (0..files).map(|n| format!("f{n}")).collect(),
        risks: vec!["r".into()],
    };
    let frame = plan(1, 1).render().expect("valid").len() - 1;
    assert_eq!(
        plan(MAX_TEXT - frame, 1).render().map(|text| text.len()),
        Ok(MAX_TEXT)
    );
    assert!(plan(MAX_TEXT - frame + 1, 1).render().is_err());
    assert!(plan(1, MAX_FILES).render().is_ok());
    assert!(plan(1, MAX_FILES + 1).render().is_err());
    let long = "d/".repeat(511) + "ff";
    let mut at_the_edge = plan(1, 0);
    at_the_edge.files = vec![long.clone()];
    assert_eq!((long.len(), at_the_edge.render().is_ok()), (1024, true));
    at_the_edge.files = vec![long + "f"];
    assert!(at_the_edge.render().is_err());

    let review = |summary: &str, findings: usize| ReviewDraft {
        verdict: Verdict::Reject,
        summary: summary.into(),
        findings: vec!["x".repeat(findings)],
    };
    assert_eq!(review("no", 1).render().as_deref(), Ok("no\n- x\n"));
    assert!(review(" ", 1).render().is_err());
    let frame = "no\n- \n".len();
    assert!(review("no", MAX_TEXT - frame).render().is_ok());
    assert!(review("no", MAX_TEXT - frame + 1).render().is_err());

    let report = |length: usize| TestReportDraft {
        passed: true,
        interpretation: "x".repeat(length),
    };
    assert_eq!(report(1).render().as_deref(), Ok("x\n"));
    assert!(
        report(0).render().is_err()
            && report(MAX_TEXT - 1).render().is_ok()
            && report(MAX_TEXT).render().is_err()
    );
}

/// BEY-4, BEY-5, GH-2, GH-4: what a run waits for by the clock.
#[test]
fn the_next_deadline_is_the_earliest() {
    let lived = |lines: &[&str]| {
        let mut world = World::new();
        for step in lines.iter().flat_map(|line| way(line)) {
            play(&mut world, step).unwrap_or_else(|| panic!("cannot play `{step}`"));
        }
        let now = world.now;
        next_deadline(world.run()).map(|(at, deadline)| (at.since(now).0, deadline))
    };
    assert_eq!(lived(&["start"]), None);
    assert_eq!(lived(&["to plan gate"]), Some((86_400_000, Deadline::Reminder)));
    assert_eq!(
        lived(&["to plan gate", "deadline"]),
        Some((86_400_000, Deadline::Reminder)),
        "reminded, then again"
    );
    assert_eq!(lived(&["to merge gate"]), Some((30_000, Deadline::Flush)));
    assert_eq!(
        lived(&["to merge gate", "deadline"]),
        None,
        "looking is no deadline"
    );
    assert_eq!(
        lived(&["to planning", "planner is limited 1m"]),
        Some((60_000, Deadline::ProviderReset))
    );
    assert_eq!(
        lived(&["to planning", "planner asks why"]),
        Some((86_400_000, Deadline::Reminder))
    );
    assert_eq!(lived(&["to plan gate", "ann rejects", "cleaned up"]), None);
}

#[test]
fn every_event_has_its_own_name() {
    let mut names = BTreeSet::new();
    for lines in [
        &[
            "to merge gate",
            "forge announces review",
            "pr changes requested 1",
            "implementer asks why",
        ][..],
        &["to proposing", "diff touches b.rs", "ann revises x"],
        &[
            "to plan gate",
            "ann revises x",
            "planner crashes",
            "ann cancels",
            "planner is stopped",
            "cleaned up",
        ],
    ] {
        let mut world = World::new();
        for step in lines.iter().flat_map(|line| way(line)) {
            play(&mut world, step);
        }
        for event in world.history.iter().flat_map(|(_, _, decision)| &decision.events) {
            names.insert(event.name());
            let written = serde_json::to_value(event).expect("plain data");
            assert_eq!(
                written["event"],
                event.name(),
                "the name in the record is the name on the page"
            );
        }
    }
    assert!(names.len() > 25);
}

/// S-21: how a command ended is said, and no more.
#[test]
fn endings_say_what_was_seen() {
    let told = [
        Ending::Exited { code: 3 },
        Ending::Signalled { signal: 9 },
        Ending::TimedOut,
        Ending::LimitExceeded {
            limit: "memory".into(),
        },
        Ending::Lost,
        Ending::NotRun {
            reason: "none registered".into(),
        },
    ]
    .map(|ending| ending.to_string());
    let expected = [
        "exited 3",
        "ended by signal 9",
        "timed out",
        "limit exceeded: memory",
        "lost",
        "not run: none registered",
    ];
    assert_eq!(told, expected);
}
