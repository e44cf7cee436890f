//! The phase × input matrix, printed into `docs/state-machine.md` and kept fresh.

#![allow(
    clippy::disallowed_methods,
    reason = "reads the document and the update switch"
)]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use conductor_domain::Input;
use conductor_domain::forge::{Notice, NoticeSubject};
use conductor_domain::input::Action;
use conductor_domain::phase::{
    Executing, ExecutingStep, Phase, PhaseName, Planning, PlanningStep, Proposing, ProposingStep, SetUp,
};

use crate::scenarios::way;
use crate::script::{Came, play};
use crate::world::World;

/// Names values by a match on every variant, and lists the names, so that a new variant cannot be left out.
macro_rules! names {
    ($function:ident($type:ty), $every:ident { $($pattern:pat => $name:literal),* $(,)? }) => {
        fn $function(value: &$type) -> &'static str {
            match value { $($pattern => $name,)* }
        }
        const $every: &[&str] = &[$($name),*];
    };
}

names! {
    place_of(Phase), EVERY_PLACE {
        Phase::Pending(SetUp::ReadingIssue) => "pending: reading the issue",
        Phase::Pending(SetUp::PreparingWorkspace) => "pending: preparing",
        Phase::Planning(Planning { step: PlanningStep::Drafting, .. }) => "planning: drafting",
        Phase::Planning(Planning { step: PlanningStep::Reviewing { .. }, .. }) => "planning: reviewing",
        Phase::Planning(Planning { step: PlanningStep::Confirming { .. }, .. }) => "planning: confirming",
        Phase::AwaitingPlanApproval(_) => "awaiting_plan_approval",
        Phase::Executing(Executing { step: ExecutingStep::Implementing, .. }) => "executing: implementing",
        Phase::Executing(Executing { step: ExecutingStep::Committing, .. }) => "executing: committing",
        Phase::Executing(Executing { step: ExecutingStep::Rebasing, .. }) => "executing: rebasing",
        Phase::Executing(Executing { step: ExecutingStep::Testing { .. }, .. }) => "executing: testing",
        Phase::Executing(Executing { step: ExecutingStep::CheckingRedFirst { .. }, .. }) => "executing: red first",
        Phase::Executing(Executing { step: ExecutingStep::Interpreting { .. }, .. }) => "executing: interpreting",
        Phase::Executing(Executing { step: ExecutingStep::Reviewing { .. }, .. }) => "executing: reviewing",
        Phase::Proposing(Proposing { step: ProposingStep::Inspecting, .. }) => "proposing: inspecting",
        Phase::Proposing(Proposing { step: ProposingStep::AwaitingApproval { .. }, .. }) =>
            "proposing: awaiting approval",
        Phase::Proposing(Proposing { step: ProposingStep::Pushing, .. }) => "proposing: pushing",
        Phase::Proposing(Proposing { step: ProposingStep::OpeningPullRequest, .. }) => "proposing: opening",
        Phase::Proposing(Proposing { step: ProposingStep::PublishingCheck, .. }) => "proposing: publishing the check",
        Phase::AwaitingMerge(_) => "awaiting_merge",
        Phase::Completed => "completed",
        Phase::Cancelled { .. } => "cancelled",
        Phase::Failed { .. } => "failed",
    }
}

names! {
    kind_of(Input), EVERY_INPUT {
        Input::StartRun { .. } => "start_run",
        Input::Operate { action: Action::Approve { .. }, .. } => "approve",
        Input::Operate { action: Action::Revise { .. }, .. } => "revise",
        Input::Operate { action: Action::Reject { .. }, .. } => "reject",
        Input::Operate { action: Action::Answer { .. }, .. } => "answer",
        Input::Operate { action: Action::Pause, .. } => "pause",
        Input::Operate { action: Action::Resume, .. } => "resume",
        Input::Operate { action: Action::Cancel { .. }, .. } => "cancel",
        Input::Operate { action: Action::Retry, .. } => "retry",
        Input::Operate { action: Action::Fail { .. }, .. } => "fail",
        Input::Operate { action: Action::Reprioritize { .. }, .. } => "reprioritize",
        Input::Operate { action: Action::GrantRelief { .. }, .. } => "grant_relief",
        Input::Operate { action: Action::RevokeRelief { .. }, .. } => "revoke_relief",
        Input::KillSwitchTurned { on: true } => "kill_switch_on",
        Input::KillSwitchTurned { on: false } => "kill_switch_off",
        Input::Performed { .. } => "performed",
        Input::Faulted { .. } => "faulted",
        Input::RequestComment { .. } => "request_comment",
        Input::RequestFields { .. } => "request_fields",
        Input::EgressDenied { .. } => "egress_denied",
        Input::ForgeNoticed { notice: Notice { subject: NoticeSubject::PullRequest { .. }, .. } } => "pull_request",
        Input::ForgeNoticed { notice: Notice { subject: NoticeSubject::Issue { .. }, .. } } => "issue",
        Input::ForgeNoticed { notice: Notice { subject: NoticeSubject::Base, .. } } => "base",
        Input::DeadlinePassed { .. } => "deadline_passed",
    }
}

/// A way to each place where a run can stand.
const PLACES: [(&str, &[&str]); 22] = [
    ("pending: reading the issue", &["start"]),
    ("pending: preparing", &["to set-up"]),
    ("planning: drafting", &["to planning"]),
    ("planning: reviewing", &["to planning", "planner plans A"]),
    (
        "planning: confirming",
        &["to planning", "planner plans A", "reviewer approves"],
    ),
    ("awaiting_plan_approval", &["to plan gate"]),
    ("executing: implementing", &["to executing"]),
    ("executing: committing", &["to executing", "implementer is done"]),
    (
        "executing: rebasing",
        &["to merge gate", "forge announces push", "pr base moved"],
    ),
    ("executing: testing", &["to testing"]),
    (
        "executing: red first",
        &[
            "start red-first record",
            "issue read",
            "workspace ready",
            "planner plans A",
            "reviewer approves",
            "issue read",
            "ann approves",
            "implementer is done",
            "committed",
            "tests exit 0",
        ],
    ),
    ("executing: interpreting", &["to testing", "tests exit 0"]),
    ("executing: reviewing", &["to review"]),
    ("proposing: inspecting", &["to proposing"]),
    (
        "proposing: awaiting approval",
        &["to proposing", "diff touches b.rs"],
    ),
    ("proposing: pushing", &["to pushing"]),
    ("proposing: opening", &["to pushing", "pushed"]),
    (
        "proposing: publishing the check",
        &["to pushing", "pushed", "pr opened"],
    ),
    ("awaiting_merge", &["to merge gate"]),
    (
        "completed",
        &["to merge gate", "forge announces pr 9", "pr merged"],
    ),
    ("cancelled", &["to plan gate", "ann rejects"]),
    ("failed", &["start", "issue deleted"]),
];

/// One representative of each input.
const INPUTS: [&str; 42] = [
    "start",
    "ann approves",
    "ann approves something else",
    "ann revises x",
    "ann rejects",
    "ann answers x",
    "planner asks why, then ann answers x",
    "ann pauses",
    "ann resumes",
    "ann pauses, then ann resumes",
    "ann cancels",
    "ann retries",
    "ann gives up",
    "ann pauses, then ann gives up",
    "ann prioritizes 9",
    "ann overrides p bash worktree for 5 because the owner asked for it",
    "ann overrides p bash worktree for 5 because the owner asked for it, then ann revokes 1",
    "kill switch on",
    "kill switch on, then kill switch off",
    "deadline",
    "forge announces pr 9",
    "forge announces pr 9, then pr merged",
    "forge announces pr 9, then pr unmerged",
    "forge announces review, then pr changes requested 1",
    "forge announces checks, then pr checks failed ci",
    "forge announces issue",
    "forge announces push",
    "forge announces push, then pr base moved",
    "sandbox wants a.example",
    "implementer comments x",
    "implementer sets Conductor note to x",
    "planner plans B",
    "reviewer approves",
    "reviewer rejects x",
    "implementer is done",
    "implementer crashes",
    "tests exit 1",
    "red first: passed",
    "rebased",
    "rebase conflicts",
    "fault transient in work",
    "fault permanent in work",
];

/// Plays an input, or one after the other; what comes of the last one, or of the first that is refused.
fn play_all(world: &mut World, inputs: &str) -> Option<Came> {
    let mut came = None;
    for input in inputs.split(", then ") {
        came = Some(play(world, input)?);
        if matches!(came, Some(Came::To(Err(_)))) {
            break;
        }
    }
    came
}

/// A run that stands at a place.
fn standing(place: &[&str]) -> World {
    let mut world = World::new();
    for step in place.iter().flat_map(|step| way(step)) {
        play(&mut world, step).unwrap_or_else(|| panic!("cannot play `{step}`"));
    }
    world
}

/// What an input comes to at a place, in a few words.
fn outcome(place: &[&str], input: &str) -> String {
    let mut world = standing(place);
    let before = world.run().phase.name();
    match play_all(&mut world, input) {
        None => "·".to_owned(),
        Some(Came::Nothing) => "nothing".to_owned(),
        Some(Came::To(Err(refusal))) => refusal.code().to_owned(),
        Some(Came::To(Ok(_))) => {
            let after = world.run().phase.name();
            let held = if world.run().is_held() { " ⏸" } else { "" };
            if before == after {
                format!("stays{held}")
            } else {
                format!("→ {after}{held}")
            }
        }
    }
}

fn document() -> String {
    let mut out = String::from(
        "# The run machine\n\n\
         Generated by `UPDATE_SCENARIOS=1 cargo test -p conductor-domain`; a test keeps it fresh.\n\n\
         ## Phases\n\n```mermaid\nstateDiagram-v2\n  [*] --> pending\n",
    );
    let mut edges = BTreeSet::new();
    for (_, place) in PLACES {
        for input in INPUTS {
            let mut world = standing(place);
            let before = world.run().phase.name();
            if let Some(Came::To(Ok(_))) = play_all(&mut world, input) {
                edges.insert((before, world.run().phase.name()));
            }
        }
    }
    // The edges that only reports of effects bring, from the longest story.
    let mut world = World::new();
    for step in [
        "to merge gate",
        "forge announces review",
        "pr changes requested 1",
    ]
    .iter()
    .flat_map(|step| way(step))
    {
        let before = world.run.as_ref().map(|run| run.phase.name());
        play(&mut world, step);
        edges.extend(before.map(|before| (before, world.run().phase.name())));
    }
    for (_, place) in PLACES {
        let mut world = World::new();
        for step in place.iter().flat_map(|step| way(step)) {
            let before = world.run.as_ref().map(|run| run.phase.name());
            play(&mut world, step);
            edges.extend(before.map(|before| (before, world.run().phase.name())));
        }
    }
    for (from, to) in edges.iter().filter(|(from, to)| from != to) {
        let _ = writeln!(out, "  {from} --> {to}");
    }
    for name in PhaseName::ALL.into_iter().filter(|name| name.is_terminal()) {
        let _ = writeln!(out, "  {name} --> [*]");
    }
    out.push_str(
        "```\n\nHolds stand beside the phase (`operator`, `question`, `provider_limit`, `failure`, `policy`, \
         `kill_switch`); a held run is shown as paused, with its reasons.\n\n\
         ## Phase × input\n\nOne representative of each input. `stays` is accepted without a change of phase, `⏸` is \
         held afterwards, `·` cannot arise there, a code is a refusal (see `docs/error/`).\n\n| input |",
    );
    for (name, _) in PLACES {
        let _ = write!(out, " {name} |");
    }
    out.push_str("\n| --- |");
    out.push_str(&" --- |".repeat(PLACES.len()));
    out.push('\n');
    for input in INPUTS {
        let _ = write!(out, "| {input} |");
        for (_, place) in PLACES {
            let _ = write!(out, " {} |", outcome(place, input));
        }
        out.push('\n');
    }
    out
}

/// RUN-1: the machine as it is, not as it was meant.
#[test]
fn the_document_shows_the_machine_as_it_is() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/state-machine.md");
    let fresh = document();
    if std::env::var("UPDATE_SCENARIOS").is_ok() {
        std::fs::write(&path, &fresh).expect("a writable document");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == fresh,
        "docs/state-machine.md is stale: UPDATE_SCENARIOS=1 cargo test -p conductor-domain"
    );
}

/// RUN-1: no place and no kind of input is missing from the document.
#[test]
fn the_document_knows_every_place_and_every_input() {
    let shown: Vec<&str> = PLACES.iter().map(|(name, _)| *name).collect();
    assert_eq!(shown, EVERY_PLACE);
    // A run that exists is never started; the row shows the refusal.
    let mut taken = BTreeSet::from(["start_run"]);
    for (name, place) in PLACES {
        assert_eq!(place_of(&standing(place).run().phase), name);
        for input in INPUTS {
            let mut world = standing(place);
            let lived = world.history.len();
            play_all(&mut world, input);
            taken.extend(
                world
                    .history
                    .iter()
                    .skip(lived)
                    .map(|(input, _, _)| kind_of(input)),
            );
        }
    }
    let every: BTreeSet<&str> = EVERY_INPUT.iter().copied().collect();
    assert_eq!(taken, every);
}
