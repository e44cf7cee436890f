//! Merging by policy: off by default, exactly what was tested, once, and never against anybody (RUN-14).

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use conductor_domain::Run;
use conductor_domain::effect::EffectKind;
use conductor_domain::forge::PullRequestState;
use conductor_domain::hold::HoldKind;
use conductor_domain::id::{CommitId, RunId};
use conductor_domain::input::{Action, Input};
use conductor_domain::phase::Phase;
use conductor_domain::plan::PlanDraft;
use conductor_domain::refusal::Refusal;
use conductor_engine::{Engine, Fate, Options, on_this_thread};
use conductor_port::agent::{AgentEnd, ToolRequest};
use conductor_port::inbox::{Inbox as _, Seen, Submission, SubmitError};
use conductor_testkit::agent::FakeAgent;
use conductor_testkit::rig::Rig;

use crate::policies::{locked, set, start};

const MERGE: &str = "@id(\"merge-what-is-sure\") @reason(\"sure enough\")\n\
                     permit (principal is Orchestrator, action == Action::\"merge\", resource is Repository)\n\
                     when { context.confidence >= 60 };\n";

/// Starts a run under what is stored and a text of its own, and approves whatever it asks until it has its pull request.
async fn proposed(rig: &Rig, own: &str) -> RunId {
    let spec = locked(rig, 1, own).await;
    let run = start(rig, spec).await.expect("it may start");
    loop {
        let waits = |run: &Run| run.gate().is_some() || has_pull_request(run);
        let state = rig.until(&run, waits).await;
        if has_pull_request(&state) {
            return run;
        }
        rig.approve(&run).await;
    }
}

fn has_pull_request(run: &Run) -> bool {
    matches!(run.phase, Phase::AwaitingMerge(_)) || run.phase.is_terminal()
}

fn merges(rig: &Rig) -> usize {
    let archive = rig.stage.forge.archive();
    archive
        .writes
        .iter()
        .filter(|write| write.starts_with("merge "))
        .count()
}

/// Lets every look and every retry come.
async fn a_while(rig: &Rig, run: &RunId) -> Run {
    tokio::time::sleep(Duration::from_mins(5)).await;
    rig.run(run).await
}

/// RUN-14: nobody wrote a merge policy, or not for this: a person merges.
#[tokio::test(start_paused = true)]
async fn nothing_is_merged_by_default_nor_by_the_word_of_whoever_started_the_run() {
    let surer = MERGE.replace("60", "101");
    let asks = MERGE.replace("@reason", "@decision(\"require_approval\") @reason");
    let elsewhere = MERGE.replace("context.confidence >= 60", "resource.name == \"acme/other\"");
    let documentation = MERGE.replace(
        "context.confidence >= 60",
        "context.changeClass == \"documentation\"",
    );
    for (case, stored, own) in [
        ("no policy", "", ""),
        ("of the starter alone", "", MERGE),
        ("for surer changes", surer.as_str(), ""),
        ("for another repository", elsewhere.as_str(), ""),
        ("for another class", documentation.as_str(), ""),
        ("that asks a person", asks.as_str(), ""),
    ] {
        let rig = Rig::start_story().await;
        if !stored.is_empty() {
            set(&rig, stored).await;
        }
        let run = proposed(&rig, own).await;
        let state = a_while(&rig, &run).await;
        assert!(
            matches!(state.phase, Phase::AwaitingMerge(_)),
            "{case}: {}",
            state.status()
        );
        assert_eq!(merges(&rig), 0, "{case}");
    }
}

/// RUN-14: with a policy exactly the commit that was tested is merged, once, and the run completes by what was read.
#[tokio::test(start_paused = true)]
async fn a_policy_merges_what_was_tested_once() {
    let rig = Rig::start_story().await;
    set(&rig, MERGE).await;
    let run = proposed(&rig, "").await;
    let state = rig.until(&run, |run| run.phase.is_terminal()).await;
    assert_eq!(
        (&state.phase, &state.heard.merged_other),
        (&Phase::Completed, &None)
    );
    assert_eq!(merges(&rig), 1);
    let kinds: Vec<String> = rig
        .records(&run)
        .await
        .into_iter()
        .map(|record| record.kind)
        .collect();
    for kind in [
        "merge_began",
        "merge_ended",
        "pull_request_merged",
        "run_completed",
    ] {
        assert_eq!(kinds.iter().filter(|known| *known == kind).count(), 1, "{kind}");
    }
}

/// RUN-14: a text of the run's own can forbid what the project allows.
#[tokio::test(start_paused = true)]
async fn whoever_starts_a_run_may_forbid_its_merge() {
    let rig = Rig::start_story().await;
    set(&rig, MERGE).await;
    let forbids = "@id(\"not-this-one\") @reason(\"I look first\")\n\
                   forbid (principal is Orchestrator, action == Action::\"merge\", resource is Repository);\n";
    let run = proposed(&rig, forbids).await;
    let state = a_while(&rig, &run).await;
    assert!(
        matches!(state.phase, Phase::AwaitingMerge(_)),
        "{}",
        state.status()
    );
    assert_eq!(merges(&rig), 0);
}

/// RUN-14, S-53: at another head nothing is merged, whatever the policy says.
#[tokio::test(start_paused = true)]
async fn another_head_is_never_merged() {
    let rig = Rig::start_story().await;
    set(&rig, MERGE).await;
    rig.stage.forge.archive().pending_checks.push("ci".to_owned());
    let run = proposed(&rig, "").await;
    let state = a_while(&rig, &run).await;
    assert!(
        matches!(state.phase, Phase::AwaitingMerge(_)),
        "a check has not ended"
    );
    assert_eq!(merges(&rig), 0);
    // Somebody pushes to the run's branch; then the check ends well.
    let stranger = CommitId::parse("d".repeat(40)).expect("hex");
    {
        let mut archive = rig.stage.forge.archive();
        let key = (rig.stage.repo.id, state.spec.branch());
        archive.branches.insert(key, stranger);
        archive.pending_checks.clear();
    }
    a_while(&rig, &run).await;
    assert_eq!(merges(&rig), 0);
    assert!(
        rig.stage
            .forge
            .archive()
            .pull_requests
            .values()
            .all(|pull_request| pull_request.state == PullRequestState::Open)
    );
}

/// RUN-14, RUN-4: the process may die at every point on the way to a merge and out of it again; it is merged once, and the run
/// completes by what was read.
#[tokio::test(start_paused = true)]
async fn a_merge_outlives_its_process() {
    let mut deaths = 0;
    // Nobody calls a tool any more.
    let points = Engine::crash_points()
        .iter()
        .filter(|point| !point.starts_with("tool."));
    for point in points {
        for nth in 1..=2 {
            let rig = Rig::start_story().await;
            set(&rig, MERGE).await;
            rig.stage.forge.archive().pending_checks.push("ci".to_owned());
            let run = proposed(&rig, "").await;
            let is_dead = Rc::new(Cell::new(false));
            let mut left = nth;
            on_this_thread(Some(Box::new({
                let is_dead = is_dead.clone();
                move |reached| {
                    left -= u32::from(reached == *point && left > 0);
                    is_dead.set(left == 0);
                    if is_dead.get() { Fate::Hangs } else { Fate::GoesOn }
                }
            })));
            rig.stage.forge.archive().pending_checks.clear();
            for _ in 0..60 {
                if !is_dead.get() {
                    tokio::time::sleep(Duration::from_secs(5)).await;
                }
            }
            deaths += u32::from(is_dead.get());
            on_this_thread(None);
            let left_behind = rig.die().await;
            let agents = left_behind.agents();
            let rig = Rig::resume(left_behind, agents).await;
            let done = rig.until(&run, |run| run.phase.is_terminal()).await;
            assert_eq!(done.phase, Phase::Completed, "{point} {nth}");
            assert_eq!(merges(&rig), 1, "{point} {nth}");
        }
    }
    assert_eq!(deaths, 16, "a point is not reached");
}

/// RUN-14, RUN-1a: a run that is paused is not merged until it goes on.
#[tokio::test(start_paused = true)]
async fn a_paused_run_is_not_merged() {
    let rig = Rig::start_story().await;
    set(&rig, MERGE).await;
    rig.stage.forge.archive().pending_checks.push("ci".to_owned());
    let run = proposed(&rig, "").await;
    rig.operate(&run, Action::Pause).await.expect("it may pause");
    rig.stage.forge.archive().pending_checks.clear();
    let held = a_while(&rig, &run).await;
    assert!(held.holds.get(HoldKind::Operator).is_some());
    assert_eq!(merges(&rig), 0);
    rig.operate(&run, Action::Resume).await.expect("it is paused");
    rig.until(&run, |run| run.phase.is_terminal()).await;
    assert_eq!(merges(&rig), 1);
}

/// RUN-14, RUN-11: a cancel that is accepted while the merge's last reading hangs is not followed by the merge, whether this
/// process was told of it or another, from which this one has not heard yet.
#[tokio::test(start_paused = true)]
async fn a_merge_never_begins_after_a_cancel() {
    for by_another in [false, true] {
        let rig = Rig::start_story().await;
        set(&rig, MERGE).await;
        rig.stage.forge.archive().pending_checks.push("ci".to_owned());
        let run = proposed(&rig, "").await;
        // The look that finds the check ended, the reading that it leads to, and then the merge's own.
        let reading = rig.stage.world.hold_up("read a pull request", 2);
        rig.stage.forge.archive().pending_checks.clear();
        reading.came().await;
        let merging = rig.run(&run).await;
        let is_merging = merging
            .in_flight
            .values()
            .any(|effect| effect.kind == EffectKind::MergePullRequest);
        assert!(is_merging, "another reading was held up: {merging:?}");
        let other = Engine::new(rig.stage.ports(rig.stage.agents()), Options::new("other"));
        let submission = Submission {
            run: run.clone(),
            input: Input::Operate {
                by: rig.stage.specs[0].started_by.clone(),
                action: Action::Cancel { comment: None },
            },
            dedupe: None,
            cause: String::new(),
            seen: Seen::Anything,
        };
        let told = if by_another { &other } else { &rig.engine };
        told.submit(submission).await.expect("can be cancelled");
        reading.let_go();
        let over = rig.until(&run, |run| run.cleaned_up).await;
        assert!(
            matches!(over.phase, Phase::Cancelled { .. }),
            "{by_another}: {}",
            over.status()
        );
        assert_eq!(merges(&rig), 0, "{by_another}");
    }
}

const NOTHING: &str = "@id(\"nothing\") @reason(\"nobody does anything\")\n\
                       forbid (principal, action, resource);\n";

/// SEC-1, RUN-12: policies that deny everything let no run begin; one's own hold the run, and both say why.
#[tokio::test(start_paused = true)]
async fn policies_that_deny_everything_say_so() {
    let agent = FakeAgent::new(move |_task, tools| {
        Box::pin(async move {
            let plan = PlanDraft {
                summary: "s".into(),
                approach: "a".into(),
                files: vec!["f".into()],
                risks: vec![],
            };
            tools.call(ToolRequest::SubmitPlan(plan)).await?;
            Ok(AgentEnd::Finished { tokens: 1 })
        })
    });
    let rig = Rig::start(agent).await;
    let spec = locked(&rig, 1, NOTHING).await;
    let run = start(&rig, spec).await.expect("its own text has no say in that");
    let held = rig
        .until(&run, |run| run.holds.get(HoldKind::Failure).is_some())
        .await;
    let why = held.status();
    assert!(why.contains("nothing: nobody does anything"), "{why}");
    assert!(held.issue.is_some_and(|issue| issue.untrusted.is_some()));

    set(&rig, NOTHING).await;
    let spec = locked(&rig, 2, "").await;
    match start(&rig, spec).await {
        Err(SubmitError::Refused(Refusal::DeniedByPolicy { reason })) => {
            assert_eq!(reason, "nothing: nobody does anything");
        }
        other => panic!("{other:?}"),
    }
}
