//! Stories as text: each file of `scenarios/` is played line by line and its outcomes compared.
//!
//! `UPDATE_SCENARIOS=1` writes what happens into the files; the change is then read like any other.

#![allow(
    clippy::disallowed_methods,
    reason = "reads the scenario files and the update switch"
)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use conductor_domain::effect::{CommentTarget, Effect};
use conductor_domain::event::Event;
use conductor_domain::invocation::{Invocation, Source};
use conductor_domain::{Decision, Run};

use crate::script::{Came, play};
use crate::world::World;

#[test]
fn every_scenario_ends_as_written() {
    let files = files();
    assert!(files.len() >= 50, "only {} scenarios", files.len());
    let update = std::env::var("UPDATE_SCENARIOS").is_ok();
    let mut wrong = String::new();
    for file in &files {
        let text = std::fs::read_to_string(file).expect("a readable scenario");
        let (played, _world) = play_file(&text, &file.display().to_string());
        if played != text {
            if update {
                std::fs::write(file, &played).expect("a writable scenario");
            } else {
                let _ = writeln!(wrong, "--- {}\n{played}", file.display());
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "these scenarios end differently (UPDATE_SCENARIOS=1 accepts it):\n{wrong}"
    );
}

/// Where the scenarios are.
pub(crate) fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios")
}

/// Every scenario, by name.
pub(crate) fn files() -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(home())
        .expect("the scenarios are there")
        .map(|entry| entry.expect("a readable entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    files.sort();
    files
}

/// Plays a scenario and returns its text with the outcomes that happened, and the world at its end.
pub(crate) fn play_file(text: &str, name: &str) -> (String, World) {
    let mut world = World::new();
    let mut out = String::new();
    for (n, line) in text.lines().enumerate() {
        if line.starts_with("  ") {
            continue;
        }
        if line.is_empty() || line.starts_with('#') {
            let _ = writeln!(out, "{line}");
            continue;
        }
        let _ = writeln!(out, "{line}");
        // A line in parentheses is part of the way there; its outcome is told elsewhere.
        let inner = line.strip_prefix('(').and_then(|line| line.strip_suffix(')'));
        let silent = inner.is_some();
        let steps: Vec<&str> = inner.unwrap_or(line).split(", ").flat_map(way).collect();
        for step in steps {
            let came =
                play(&mut world, step).unwrap_or_else(|| panic!("{name}:{}: cannot play `{step}`", n + 1));
            match came {
                Came::To(Err(refusal)) => {
                    let _ = writeln!(out, "  refused {} {refusal}", refusal.code());
                }
                Came::To(Ok(decision)) if !silent => tell(&mut out, &decision, world.run()),
                Came::To(Ok(_)) | Came::Nothing => {}
            }
        }
    }
    replayed_equally(&world, name);
    (out, world)
}

/// The well-trodden ways to a phase, so that a story begins where it becomes interesting.
pub(crate) fn way(step: &str) -> Vec<&str> {
    const STAGES: [(&str, &[&str]); 9] = [
        ("to set-up", &["start", "issue read"]),
        ("to planning", &["workspace ready"]),
        (
            "to plan gate",
            &["planner plans A", "reviewer approves", "issue read"],
        ),
        ("to executing", &["ann approves"]),
        ("to testing", &["implementer is done", "committed"]),
        ("to review", &["tests exit 0", "tester says passed"]),
        ("to proposing", &["reviewer approves"]),
        ("to pushing", &["diff clean"]),
        ("to merge gate", &["pushed", "pr opened", "check published"]),
    ];
    match STAGES.iter().position(|(name, _)| *name == step) {
        Some(last) => STAGES[..=last]
            .iter()
            .flat_map(|(_, steps)| steps.iter().copied())
            .collect(),
        None => vec![step],
    }
}

/// RUN-2: the same inputs give the same events and effects, byte for byte.
fn replayed_equally(world: &World, name: &str) {
    let mut run: Option<Run> = None;
    for (input, at, decision) in &world.history {
        let again = conductor_domain::decide(run.as_ref(), input, at).expect("it was accepted before");
        let bytes = |decision: &Decision| {
            serde_json::to_string(&(&decision.events, &decision.effects)).expect("plain data")
        };
        assert_eq!(bytes(decision), bytes(&again), "{name}: a replay differs");
        for event in &again.events {
            run = conductor_domain::evolve(run, event);
        }
    }
    assert_eq!(run, world.run, "{name}: the replayed state differs");
}

fn tell(out: &mut String, decision: &Decision, run: &Run) {
    for event in &decision.events {
        let told = match event {
            Event::EffectRequested { .. } | Event::EffectSettled { .. } | Event::MessageSent { .. } => {
                continue;
            }
            Event::HoldPlaced { hold } => format!("hold_placed: {hold}"),
            Event::HoldReleased { kind } => format!("hold_released: {kind:?}"),
            Event::AttemptFailed { retries, .. } => format!("attempt_failed: retry {retries}"),
            Event::AgentFailed { failures, reason, .. } => format!("agent_failed: {failures}, {reason}"),
            Event::Interrupted { interruptions, .. } => format!("interrupted: {interruptions}"),
            Event::TestsInterpreted { contradicts, .. } if *contradicts => {
                "tests_interpreted: contradicts what was seen".into()
            }
            Event::EffectStopRequested { effect } => format!("effect_stop_requested: {effect}"),
            Event::EffectRetryScheduled { attempt, .. } => {
                format!("effect_retry_scheduled: after attempt {attempt}")
            }
            Event::PlanProposed { gate, .. } | Event::GateReopened { gate, .. }
                if !gate.findings.is_empty() =>
            {
                let told: Vec<String> = gate.findings.iter().map(ToString::to_string).collect();
                format!("{}, mind {}", event.name(), told.join("; "))
            }
            Event::MergeBegan { reason, .. } => format!("merge_began: {reason}"),
            Event::MergeEnded {
                refused: Some(why), ..
            } => format!("merge_ended: refused, {why}"),
            Event::ReliefGranted { relief } => format!("relief_granted: {}", relief.scope),
            Event::ReliefRevoked { number, by } => format!("relief_revoked: {number} by {by}"),
            Event::EgressDenied { denial, .. } => format!("egress_denied: {denial}"),
            Event::Noted { what } => format!("noted: {what}"),
            Event::CommentDenied { reason, .. } => format!("comment_denied: {reason}"),
            Event::MessageDeferred { message } => format!("message_deferred: {}", message.headline),
            Event::RunCancelled { reason } => format!("run_cancelled: {reason}"),
            Event::RunFailed { reason } => format!("run_failed: {reason}"),
            other => other.name().to_owned(),
        };
        let _ = writeln!(out, "  {told}");
    }
    for asked in &decision.effects {
        let told = match &asked.effect {
            Effect::Invoke { invocation } => format!(
                "invoke {} to {:?}, attempt {}, reads {}",
                invocation.role,
                invocation.purpose,
                invocation.attempt,
                reads(invocation)
            ),
            Effect::PostComment {
                target: CommentTarget::PullRequest(_),
                message,
            } => format!("post_comment on the pull request: {}", message.headline),
            Effect::PostComment { message, .. } => format!("post_comment: {}", message.headline),
            Effect::PublishCheck { notes, .. } if !notes.is_empty() => {
                format!("publish_check with {} notes", notes.len())
            }
            Effect::UpdateFields { fields, .. } => format!("update_fields {:?}", fields.values()),
            Effect::CleanUp {
                delete_branch: Some(branch),
                pushed: Some(commit),
            } => format!("clean_up, delete {branch} at {}", &commit.as_str()[..7]),
            Effect::CommitWork { onto: Some(onto), .. } => {
                format!("commit_work onto {}", &onto.as_str()[..7])
            }
            other => other.kind().to_string(),
        };
        let _ = writeln!(out, "  -> {told}");
    }
    let _ = writeln!(out, "  = {}", run.status());
}

/// What an agent is given to read: what is named, then what is made.
fn reads(invocation: &Invocation) -> String {
    let named = invocation
        .context
        .iter()
        .map(|artifact| artifact.kind.as_str().to_owned());
    let made = invocation.sources.iter().map(|source| match source {
        Source::Diff { .. } => "diff".to_owned(),
        Source::Files { .. } => "files".to_owned(),
        Source::PastPullRequests => "past_pull_requests".to_owned(),
        Source::Skills => "skills".to_owned(),
        Source::Barred { reason } => format!("barred ({reason})"),
    });
    let all: Vec<String> = named.chain(made).collect();
    all.join(", ")
}
