//! Rules whose edge a story does not show: exact pauses, exact names, answers and wishes that name something else.

use std::collections::BTreeMap;

use conductor_domain::artifact::ArtifactKind;
use conductor_domain::diff::MOST_FINDINGS;
use conductor_domain::digest::Digest;
use conductor_domain::effect::{Effect, EffectKind};
use conductor_domain::event::Event;
use conductor_domain::fault::Fault;
use conductor_domain::hold::HoldKind;
use conductor_domain::input::{Action, Input, Report};
use conductor_domain::invariant::{BrokenLaw, broken_law};
use conductor_domain::invocation::{Purpose, Remains, ToolLogHead};
use conductor_domain::message::{Body, CommentPlace, CommentRequest, render};
use conductor_domain::phase::Phase;
use conductor_domain::role::Role;
use conductor_domain::run::{Counters, InFlight};
use conductor_domain::time::Timestamp;
use conductor_domain::{Refusal, Run, evolve};

use crate::scenarios::way;
use crate::script::{Came, play};
use crate::world::{World, commit, effect_id, kept, operator};

fn lived(lines: &[&str]) -> World {
    let mut world = World::new();
    for step in lines.iter().flat_map(|line| way(line)) {
        play(&mut world, step).unwrap_or_else(|| panic!("cannot play `{step}`"));
    }
    world
}

/// How long after a fault in the attempt the next one comes, in milliseconds.
fn waits(lines: &[&str], fault: &str, attempt: u32) -> u64 {
    let mut world = lived(lines);
    let now = world.now;
    let Some(Came::To(Ok(decision))) = play(&mut world, &format!("{fault} attempt {attempt}")) else {
        panic!("cannot play `{fault}`");
    };
    match decision.events.first() {
        Some(Event::EffectRetryScheduled { at, .. }) => at.since(now).0,
        other => panic!("not repeated: {other:?}"),
    }
}

/// RUN-12, ARCHITECTURE invariant 5: pauses double up to a minute with a small spread, then, for what is owed, from
/// an hour up to a day; what the world itself announces goes first.
#[test]
fn pauses_grow_and_end_growing() {
    let short = |attempt| waits(&["start"], "fault transient in read_issue", attempt);
    let spread = short(1) - 1_000;
    assert!(0 < spread && spread < 250, "{spread}");
    for (attempt, pause) in [(2, 2_000), (3, 4_000), (6, 32_000), (7, 60_000), (8, 60_000)] {
        assert_eq!(short(attempt), pause + spread, "attempt {attempt}");
    }
    assert_eq!(waits(&["start"], "fault limited in read_issue", 1), 90_000);
    let long = |attempt| waits(&["to plan gate"], "fault transient in post_comment", attempt);
    for (attempt, hours) in [(9, 1), (10, 2), (12, 8), (13, 16), (14, 24), (15, 24), (90, 24)] {
        assert_eq!(long(attempt), hours * 3_600_000, "attempt {attempt}");
    }
}

/// RUN-13, ENV-3: a run keeps its place until its clean-up is done, long overdue, or a person's.
#[test]
fn a_run_is_in_the_way_until_its_clean_up_is_done_or_hopeless() {
    let rejected = ["to plan gate", "ann rejects"];
    let after = |step: &str| {
        lived(&[&rejected[..], &[step]].concat())
            .run()
            .is_out_of_the_way()
    };
    assert!(!lived(&["to plan gate"]).run().is_out_of_the_way());
    assert!(!lived(&rejected).run().is_out_of_the_way());
    assert!(!after("fault transient in clean_up attempt 8"));
    assert!(after("fault transient in clean_up attempt 9"));
    assert!(after("fault permanent in clean_up"));
    assert!(after("cleaned up"));
    // Something else may be overdue for as long as it likes.
    let comment = "fault transient in post_comment attempt 9";
    assert!(!lived(&["to plan gate", comment]).run().is_out_of_the_way());
}

/// RUN-7, RUN-11, ENV-3: a person is asked at a gate, by a question, and for a clean-up that cannot work; not otherwise.
#[test]
fn a_person_is_needed_where_nothing_else_helps() {
    let needs = |lines: &[&str]| lived(lines).run().needs_human();
    assert!(!needs(&["to planning"]));
    assert!(needs(&["to planning", "planner asks why"]));
    assert!(needs(&["to plan gate"]));
    assert!(!needs(&["to executing"]));
    assert!(!needs(&["to plan gate", "ann rejects"]));
    assert!(needs(&[
        "to plan gate",
        "ann rejects",
        "fault permanent in clean_up"
    ]));
}

/// BEY-4: an answer to another question releases nothing.
#[test]
fn an_answer_to_another_question_is_refused() {
    let mut world = lived(&["to planning", "planner asks why"]);
    let action = Action::Answer {
        question: effect_id("r1.1.0"),
        answer: kept(ArtifactKind::Feedback, "yes"),
    };
    let by = operator("ann");
    assert_eq!(
        world.give(Input::Operate { by, action }),
        Err(Refusal::NoSuchQuestion)
    );
    assert!(world.run().holds.get(HoldKind::Question).is_some());
}

/// TOOL-4a: only an agent that is at work may speak, and only under its own name.
#[test]
fn only_a_running_invocation_may_ask_for_a_comment() {
    let wish = |world: &mut World, kind| {
        let invocation = world.waiting(kind).expect("it is under way").id;
        let comment = CommentRequest {
            role: Role::Planner,
            text: kept(ArtifactKind::Feedback, "hi"),
            place: CommentPlace::Issue,
        };
        world
            .give(Input::RequestComment { invocation, comment })
            .map(|_| ())
    };
    let mut world = lived(&["to planning"]);
    assert_eq!(
        wish(&mut world, EffectKind::PostComment),
        Err(Refusal::InvocationIsOver)
    );
    assert_eq!(wish(&mut world, EffectKind::Invoke), Ok(()));
    let mut stopping = lived(&["to planning", "kill switch on"]);
    assert_eq!(
        wish(&mut stopping, EffectKind::Invoke),
        Err(Refusal::InvocationIsOver)
    );
}

fn with_work(run: &mut Run, kind: EffectKind) {
    let more = InFlight {
        kind,
        stopping: false,
        must_be_heard: false,
        overdue: None,
    };
    run.in_flight.insert(effect_id("r1.99.0"), more);
}

/// Every law notices its breach; one that cannot be broken would watch over nothing.
#[test]
fn every_law_can_be_broken() {
    type Breach = (&'static [&'static str], BrokenLaw, fn(&mut Run));
    let breaches: &[Breach] = &[
        (&["to planning"], BrokenLaw::OneWorkAtATime, |run| {
            with_work(run, EffectKind::CommitWork);
        }),
        (&["to planning"], BrokenLaw::NeverStuck, |run| {
            run.in_flight.clear();
        }),
        (&["to planning"], BrokenLaw::EndsClean, |run| {
            run.cleaned_up = true;
        }),
        (&["to plan gate", "ann rejects"], BrokenLaw::EndsClean, |run| {
            run.in_flight.clear();
        }),
        (
            &["to plan gate", "ann rejects", "cleaned up"],
            BrokenLaw::EndsClean,
            |run| run.holds = lived(&["to planning", "ann pauses"]).run().holds.clone(),
        ),
        (&["to plan gate"], BrokenLaw::GatesAreBound, |run| {
            if let Phase::AwaitingPlanApproval(waiting) = &mut run.phase {
                waiting.gate.opened_at = Timestamp(1);
            }
        }),
        (&["to planning"], BrokenLaw::HasGround, |run| run.issue = None),
        (&["to planning"], BrokenLaw::HasGround, |run| run.workspace = None),
        (&["to proposing"], BrokenLaw::ProposesWhatWasTested, |run| {
            if let Some(workspace) = &mut run.workspace {
                workspace.head = commit(77);
            }
        }),
        (&["to merge gate"], BrokenLaw::ProposesWhatWasTested, |run| {
            if let Some(workspace) = &mut run.workspace {
                workspace.head = commit(77);
                workspace.pushed = Some(commit(77));
            }
        }),
        (&["to merge gate"], BrokenLaw::ProposesWhatWasTested, |run| {
            if let Some(workspace) = &mut run.workspace {
                workspace.pushed = None;
            }
        }),
        (
            &["to plan gate", "ann rejects", "cleaned up"],
            BrokenLaw::NothingAfterCleanUp,
            |run| with_work(run, EffectKind::Push),
        ),
    ];
    for (lines, law, breach) in breaches {
        let mut run = lived(lines).run().clone();
        assert_eq!(broken_law(&run), None, "{lines:?}");
        breach(&mut run);
        assert_eq!(broken_law(&run), Some(*law), "{lines:?}");
    }
}

/// RUN-12: failures of one phase do not count in the next; the numbers of invocations go on.
#[test]
fn a_new_phase_counts_anew() {
    let mut run = lived(&["to plan gate"]).run().clone();
    let invocations = run.counters.invocations.clone();
    assert!(!invocations.is_empty());
    run.counters = Counters {
        agent_failures: 2,
        interruptions: 1,
        environment_recreated: true,
        ..run.counters
    };
    let began = Event::PlanningBegan { feedback: vec![] };
    let run = evolve(Some(run), &began).expect("a run");
    let expected = Counters {
        invocations,
        ..Counters::default()
    };
    assert_eq!(run.counters, expected);
}

fn asked(world: &World, kind: EffectKind) -> Effect {
    let asked = world.asked.iter().rev().find(|asked| asked.effect.kind() == kind);
    asked.expect("it was asked for").effect.clone()
}

/// SEC-2, S-48, RUN-7: names and summaries of agents and people neither call, close, hide nor break out.
#[test]
fn hostile_names_are_harmless_in_commits_titles_and_texts() {
    let mut world = lived(&["to planning"]);
    let plan = "planner plans Fix`@eve`#7\u{202e}GH-8[skip-ci]***NO_CI*** src/`@eve`\u{200b}.rs";
    play(&mut world, plan).expect("it can be played");
    for step in [
        "reviewer approves",
        "issue read",
        "ann approves nice",
        "implementer is done",
    ] {
        play(&mut world, step).expect("it can be played");
    }
    let Effect::CommitWork { message, .. } = asked(&world, EffectKind::CommitWork) else {
        panic!("not a commit");
    };
    let title = "Plan Fix`(at)eve`no. 7\u{27e8}U+202E\u{27e9}GH- 8(skip-ci)* * *NO_CI* * *";
    assert_eq!(message, format!("{title}\n\nIssue: o/n#7\nConductor-Run: r1\n"));
    for step in [
        "committed",
        "tests exit 0",
        "tester says passed",
        "reviewer approves",
        "diff touches src/`@eve`\u{200b}.rs",
        "ann approves",
        "pushed",
    ] {
        play(&mut world, step).expect("it can be played");
    }
    let Effect::OpenPullRequest {
        title: proposed,
        message,
        ..
    } = asked(&world, EffectKind::OpenPullRequest)
    else {
        panic!("not a pull request");
    };
    assert_eq!(proposed, format!("{title} (#7)"));
    let Body::Own { text } = message.body else {
        panic!("not our words");
    };
    assert!(text.contains("approved by `ann`"), "{text}");
    assert!(
        text.contains("- `src/'(at)eve'\u{27e8}U+200B\u{27e9}.rs`\n"),
        "{text}"
    );
    let said = world.asked.iter().find_map(|asked| match &asked.effect {
        Effect::PostComment { message, .. } if message.headline == "ann approved the plan" => {
            Some(message.body.clone())
        }
        _other => None,
    });
    let text = "Actor: `@ann`\n\nnice".to_owned();
    assert_eq!(said, Some(Body::Own { text }));
}

/// S-49, S-51: as many files outside the plan as nobody judges are refused, not put before a person.
#[test]
fn more_files_outside_the_plan_than_a_person_can_judge_stop_the_run() {
    let inspected = |others: usize| lived(&["to proposing", &format!("diff touches {others} others")]);
    let world = inspected(MOST_FINDINGS);
    let gate = world.run().gate().expect("a person is asked");
    assert_eq!(gate.findings.len(), MOST_FINDINGS);

    let world = inspected(MOST_FINDINGS + 1);
    let held = format!("{:?}", world.run().holds.get(HoldKind::Policy));
    assert!(held.contains("the change (too many findings)"), "{held}");
    assert_eq!(world.run().gate(), None);
}

/// RUN-7, BEY-4: whoever sends a plan back or answers is named as whoever approves is, above their words.
#[test]
fn whoever_decides_with_words_is_named_above_them() {
    for (lines, headline) in [
        (["to plan gate", "ann revises use @eve"], "ann sent the plan back"),
        (
            ["to proposing", "diff touches b.rs, ann revises use @eve"],
            "ann sent the diff back",
        ),
        (
            ["to planning", "planner asks why, ann answers use @eve"],
            "ann answered",
        ),
    ] {
        let lines: Vec<&str> = lines.iter().flat_map(|line| line.split(", ")).collect();
        let world = lived(&lines);
        let said = world.asked.iter().find_map(|asked| match &asked.effect {
            Effect::PostComment { message, .. } if message.headline == headline => Some((asked, message)),
            _other => None,
        });
        let (asked, message) = said.expect("it is said");
        let words = kept(ArtifactKind::Feedback, "use @eve");
        assert_eq!(message.kept(), [&words]);
        let kept = BTreeMap::from([(words.digest, "use @eve".to_owned())]);
        let text = render(
            message,
            &asked.run,
            "http://c/r1",
            &asked.id,
            &kept,
            &str::to_owned,
        );
        let expected = format!(
            "[Conductor | Orchestrator | run:r1] {headline}\n\nActor: `@ann`\n\nuse (at)eve\n\n\
             [run r1](http://c/r1)\n<!-- conductor:write {} -->\n",
            asked.id
        );
        assert_eq!(text, expected);
    }
}

/// GH-4, TOOL-4a: what waited is told with the words that were kept, and with no details of the last one.
#[test]
fn what_waited_is_told_whole() {
    let mut world = lived(&["to planning"]);
    for n in 0..4 {
        play(&mut world, &format!("planner comments remark {n}")).expect("it can be played");
    }
    play(&mut world, "deadline").expect("something waits");
    let Effect::PostComment { message, .. } = asked(&world, EffectKind::PostComment) else {
        panic!("not a comment");
    };
    let expected = [
        kept(ArtifactKind::Feedback, "remark 2"),
        kept(ArtifactKind::Feedback, "remark 3"),
    ];
    assert_eq!(message.kept(), expected.iter().collect::<Vec<_>>());
    assert!(message.details.is_empty());
}

/// GH-5: a check says who approved the plan, what the tests came to, and where to read on.
#[test]
fn a_check_says_what_it_rests_on() {
    let world = lived(&["to merge gate"]);
    let Effect::PublishCheck { summary, .. } = asked(&world, EffectKind::PublishCheck) else {
        panic!("not a check");
    };
    let spec = &world.run().spec;
    let read_on = format!("[run {}]({})", spec.run, spec.page);
    for words in [
        "plan approved by `ann`",
        "exited 0",
        "reviewed by the Reviewer agent",
        &read_on,
    ] {
        assert!(summary.contains(words), "{words}: {summary}");
    }
}

/// RUN-8: whoever reads the Tester's words at the forge is told when they contradict what was seen.
#[test]
fn words_that_contradict_what_was_seen_are_marked() {
    let mind = "the Tester says otherwise; the exit code counts";
    for (claim, marks) in [("failed", vec![mind]), ("passed", vec![])] {
        let tester = format!("tester says {claim}");
        let world = lived(&["to testing", "tests exit 0", &tester]);
        let Effect::PostComment { message, .. } = asked(&world, EffectKind::PostComment) else {
            panic!("a comment");
        };
        let minded = message.details.iter().filter(|(key, _)| key == "mind");
        let minded: Vec<&str> = minded.map(|(_, value)| value.as_str()).collect();
        assert_eq!(minded, marks, "{claim}");
    }
}

/// RUN-3: an answer to something else is no answer.
#[test]
fn a_report_of_another_kind_is_refused() {
    let mut world = lived(&["to planning"]);
    let invocation = world.waiting(EffectKind::Invoke).expect("it works");
    let refused = world.give(Input::Performed {
        effect: invocation.id,
        report: Box::new(Report::CheckPublished),
    });
    assert!(
        matches!(refused, Err(Refusal::ReportDoesNotFit { .. })),
        "{refused:?}"
    );
}

/// TOOL-4, INV-1a: what an invocation did before it met a fault is anchored, and was no chance of its agent.
#[test]
fn what_is_left_of_an_invocation_is_anchored() {
    let mut world = lived(&["to planning"]);
    let invocation = world.waiting(EffectKind::Invoke).expect("it works");
    let tools = ToolLogHead {
        calls: 3,
        head: Digest::of(b"log"),
    };
    let decision = world.give(Input::Faulted {
        effect: invocation.id.clone(),
        attempt: 1,
        fault: Fault::transient("gone"),
        remains: Some(Box::new(Remains {
            purpose: Purpose::Plan,
            tools: tools.clone(),
            papers: None,
        })),
    });
    let anchored = Event::InvocationEnded {
        effect: invocation.id,
        purpose: Purpose::Plan,
        counts: false,
        tools,
        papers: None,
    };
    assert!(decision.expect("taken").events.contains(&anchored));
}
