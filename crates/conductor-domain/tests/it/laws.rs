//! Laws over random histories: whatever happens in whatever order, the invariants hold, a replay is equal, nothing
//! follows a clean-up, and people can always bring a run to its end.

use conductor_domain::decide::look::{Sight, is_news, worth_a_look};
use conductor_domain::effect::EffectKind;
use conductor_domain::forge::NoticeSubject;
use conductor_domain::hold::HoldKind;
use conductor_domain::input::Report;
use conductor_domain::{Decision, Input, Run, decide, evolve};
use proptest::prelude::*;

use crate::scenarios::way;
use crate::script::{Came, play};
use crate::world::World;

const WAYS: [&str; 9] = [
    "start",
    "to set-up",
    "to planning",
    "to plan gate",
    "to executing",
    "to testing",
    "to review",
    "to proposing",
    "to merge gate",
];

/// Everything that can happen; what makes no sense where a run stands is refused or cannot be played.
const HAPPENINGS: &[&str] = &[
    "issue read",
    "issue edited",
    "issue closed",
    "issue deleted",
    "issue commented",
    "workspace ready",
    "workspace impossible: x",
    "planner plans A",
    "planner plans B b.rs",
    "planner asks why",
    "planner wants to call make",
    "implementer wants to call make",
    "planner crashes",
    "reviewer approves",
    "reviewer rejects x",
    "reviewer gives nothing",
    "implementer is done",
    "implementer is limited 1h",
    "implementer is stopped",
    "implementer is interrupted",
    "implementer breaks a rule",
    "implementer runs out of time",
    "implementer comments hi",
    "sandbox wants a.example",
    "tester says passed",
    "tester says failed",
    "tester crashes",
    "committed",
    "nothing committed",
    "tests exit 0",
    "tests exit 1",
    "tests signal 9",
    "tests lost",
    "tests not run",
    "rebased",
    "rebased to nothing",
    "rebase conflicts",
    "diff clean",
    "diff touches b.rs",
    "diff touches forbidden x",
    "pushed",
    "pr opened",
    "check published",
    "policy allows merging",
    "policy allows nothing",
    "merge done",
    "merge refused no",
    "fault permanent in merge_pull_request",
    "fault transient in merge_pull_request",
    "comment posted",
    "implementer sets Conductor note to busy",
    "planner sets Conductor note to thinking",
    "fields updated",
    "cleaned up",
    "pr open",
    "pr merged",
    "pr unmerged",
    "pr changes requested 1",
    "pr changes requested 2",
    "pr checks failed ci",
    "pr base moved",
    "pr merged from a fork",
    "pr merged at another commit",
    "pr changes requested 3 on another commit",
    "pr checks failed on another commit",
    "pr closed again",
    "forge announces pr 9",
    "forge announces pr 8",
    "forge announces issue",
    "forge announces push",
    "deadline",
    "wait 31s",
    "wait 2h",
    "kill switch on",
    "kill switch off",
    "again",
    "ann approves",
    "ann approves something else",
    "ann revises x",
    "ann rejects",
    "ann answers x",
    "ann pauses",
    "ann resumes",
    "ann cancels",
    "ann retries",
    "ann gives up",
    "ann prioritizes 9",
    "stopped run_tests",
    "stopped commit_work",
    "stopped inspect_diff",
    "interrupted commit_work",
    "interrupted push",
    "fault transient in push",
    "fault transient in push attempt 9",
    "fault conflict in push",
    "fault refused in push",
    "fault permanent in invoke",
    "fault environment in invoke",
    "fault environment in run_tests",
    "fault environment in commit_work",
    "fault permanent in prepare_workspace",
    "fault transient in clean_up attempt 20",
    "fault transient in clean_up attempt 17",
    "fault permanent in clean_up",
    "fault permanent in post_comment",
    "fault transient in post_comment attempt 9",
    "fault permanent in close_pull_request",
    "fault transient in open_pull_request",
    "fault permanent in read_issue",
    "fault permanent in read_pull_request",
    "fault permanent in open_pull_request",
];

fn go(world: &mut World, line: &str) -> Option<Decision> {
    match play(world, line)? {
        Came::To(Ok(decision)) => Some(decision),
        Came::To(Err(_)) | Came::Nothing => None,
    }
}

fn lived(way_there: usize, happenings: &[usize]) -> World {
    let mut world = World::new();
    for step in way(WAYS[way_there]) {
        go(&mut world, step);
    }
    for index in happenings {
        let was_cleaned_up = world.run().cleaned_up;
        let before = world.run().clone();
        if let Some(decision) = go(&mut world, HAPPENINGS[*index])
            && was_cleaned_up
        {
            assert!(
                decision.effects.is_empty(),
                "an effect after CleanedUp: {decision:?}"
            );
        }
        a_reading_is_news_once(&world, &before);
    }
    world
}

/// GH-2: what a run has read brings nothing new when it is looked at again, so that no look repeats itself for ever.
fn a_reading_is_news_once(world: &World, before: &Run) {
    let Some((Input::Performed { effect, report }, at, _)) = world.history.last() else {
        return;
    };
    let sight = match report.as_ref() {
        Report::IssueRead { issue } => Sight::Issue(issue.clone()),
        Report::IssueUnavailable { problem } => Sight::NoIssue(*problem),
        Report::PullRequestRead { pull_request } => Sight::PullRequest(pull_request.clone()),
        _other => return,
    };
    let was_heard = before
        .in_flight
        .get(effect)
        .is_some_and(|effect| !effect.stopping);
    let is_of_the_kind_looked_for = match worth_a_look(world.run()) {
        Some(NoticeSubject::Issue { .. }) => !matches!(sight, Sight::PullRequest(_)),
        Some(NoticeSubject::PullRequest { .. }) => matches!(sight, Sight::PullRequest(_)),
        Some(NoticeSubject::Base) | None => false,
    };
    if was_heard && is_of_the_kind_looked_for {
        assert!(!is_news(world.run(), &sight, at), "{sight:?} is news for ever");
    }
}

/// What a patient person would do next to bring the run to its end.
fn help(world: &mut World) {
    let run = world.run().clone();
    if run.clean_up_failed.is_some() {
        go(world, "ann retries");
        return;
    }
    let releases = [
        (HoldKind::KillSwitch, "kill switch off"),
        (HoldKind::Operator, "ann resumes"),
        (HoldKind::Question, "ann answers yes"),
        (HoldKind::Failure, "ann retries"),
        (HoldKind::Policy, "ann retries"),
    ];
    if let Some((_, line)) = releases
        .into_iter()
        .find(|(kind, _)| run.holds.get(*kind).is_some())
        && go(world, line).is_some()
    {
        return;
    }
    if run.holds.get(HoldKind::ProviderLimit).is_some() {
        go(world, "deadline");
        return;
    }
    if let Some((_, effect)) = run.work_in_flight() {
        // Of a held run nobody begins anything; only what was told to stop comes to an end by itself.
        if run.is_held() && !effect.stopping {
            return;
        }
        if effect.stopping && effect.kind != EffectKind::Invoke {
            go(world, &format!("stopped {}", effect.kind));
            return;
        }
        let lines: &[&str] = match effect.kind {
            EffectKind::ReadIssue => &["issue read"],
            EffectKind::PrepareWorkspace => &["workspace ready"],
            EffectKind::Invoke if effect.stopping => &["planner is stopped"],
            EffectKind::Invoke => &[
                "planner plans A",
                "reviewer approves",
                "implementer is done",
                "tester says passed",
            ],
            EffectKind::CommitWork => &["committed"],
            EffectKind::RunTests => &["tests exit 0"],
            EffectKind::Rebase => &["rebased"],
            EffectKind::InspectDiff => &["diff clean"],
            EffectKind::Push => &["pushed"],
            EffectKind::OpenPullRequest => &["pr opened"],
            EffectKind::PublishCheck => &["check published"],
            EffectKind::MergePullRequest => &["merge done"],
            EffectKind::CheckRedFirst
            | EffectKind::ReadPullRequest
            | EffectKind::ClosePullRequest
            | EffectKind::PostComment
            | EffectKind::UpdateFields
            | EffectKind::CleanUp => &[],
        };
        let line = match (effect.kind, effect.stopping) {
            (EffectKind::Invoke, false) => lines[role_at_work(&run)],
            _other => lines[0],
        };
        go(world, line);
        return;
    }
    if go(world, "cleaned up").is_some() || go(world, "ann approves").is_some() {
        return;
    }
    if world.waiting(EffectKind::ReadPullRequest).is_some() {
        go(world, "pr merged");
    } else {
        go(world, "forge announces pr 9");
    }
}

fn role_at_work(run: &Run) -> usize {
    let state = serde_json::to_value(run).expect("plain data");
    match state["phase"]["step"]["step"].as_str() {
        Some("drafting") => 0,
        Some("reviewing") => 1,
        Some("implementing") => 2,
        _other => 3,
    }
}

fn bytes(decision: &Decision) -> String {
    serde_json::to_string(&(&decision.events, &decision.effects)).expect("plain data")
}

/// How many histories are lived; `PROPTEST_CASES` asks for more or fewer.
fn cases() -> u32 {
    #[allow(clippy::disallowed_methods, reason = "a test's own switch")]
    std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(1000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    /// RUN-1, RUN-1a, RUN-2: the laws of `invariant` are checked by the world after every input.
    #[test]
    fn whatever_happens_the_laws_hold_and_a_replay_is_equal(
        way_there in 0..WAYS.len(),
        happenings in prop::collection::vec(0..HAPPENINGS.len(), 0..80),
    ) {
        let world = lived(way_there, &happenings);
        let mut run: Option<Run> = None;
        for (input, at, decision) in &world.history {
            let again = decide(run.as_ref(), input, at).expect("accepted before");
            prop_assert_eq!(bytes(decision), bytes(&again));
            for event in &again.events {
                let written = serde_json::to_string(event).expect("plain data");
                let read = serde_json::from_str(&written).expect("what was written can be read");
                run = evolve(run, &read);
            }
        }
        prop_assert_eq!(run.as_ref(), world.run.as_ref());
        let state = serde_json::to_string(&run).expect("plain data");
        prop_assert_eq!(serde_json::from_str::<Option<Run>>(&state).expect("readable"), run);
    }

    /// RUN-1: no run is ever stuck; people can bring every one to its end.
    #[test]
    fn people_can_bring_every_run_to_its_end(
        way_there in 0..WAYS.len(),
        happenings in prop::collection::vec(0..HAPPENINGS.len(), 0..60),
    ) {
        let mut world = lived(way_there, &happenings);
        for _ in 0..200 {
            if world.run().cleaned_up {
                break;
            }
            help(&mut world);
        }
        prop_assert!(world.run().cleaned_up, "still {:#?}", world.run());
    }
}
