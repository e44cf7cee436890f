//! The forge is away for minutes of virtual time; runs wait for it, nobody has to act, and nothing is done twice.

use std::time::Duration;

use conductor_domain::forge::PullRequestState;
use conductor_domain::phase::Phase;
use conductor_testkit::rig::Rig;

/// GH-4, RUN-4, RUN-12: down from the approval on, so that comments and the pull request meet nothing for two minutes.
#[tokio::test(start_paused = true)]
async fn a_forge_that_is_down_for_minutes_is_waited_for() {
    let rig = Rig::start_story().await;
    let run = rig.start_run(1).await;
    rig.until(&run, |run| run.phase.gate().is_some()).await;
    rig.stage.forge.set_down(true);
    rig.approve(&run).await;
    rig.until(&run, |run| matches!(run.phase, Phase::Proposing(_)))
        .await;
    tokio::time::sleep(Duration::from_mins(2)).await;
    let waiting = rig.run(&run).await;
    assert!(
        !waiting.is_held() && matches!(waiting.phase, Phase::Proposing(_)),
        "{waiting:?}"
    );
    assert!(rig.stage.forge.archive().pull_requests.is_empty());

    rig.stage.forge.set_down(false);
    rig.until(&run, |run| matches!(run.phase, Phase::AwaitingMerge(_)))
        .await;
    rig.until(&run, |run| run.in_flight.is_empty()).await;
    let retries = rig
        .records(&run)
        .await
        .iter()
        .filter(|record| record.kind == "effect_retry_scheduled")
        .count();
    assert!(retries >= 6, "only {retries} repeats are on record");
    let archive = rig.stage.forge.archive();
    let states: Vec<_> = archive.pull_requests.values().map(|pull| &pull.state).collect();
    assert_eq!(states, [&PullRequestState::Open]);
    let mut said: Vec<&str> = archive
        .comments
        .iter()
        .map(|comment| comment.body.as_str())
        .collect();
    let all = said.len();
    said.sort_unstable();
    said.dedup();
    assert_eq!(said.len(), all, "something was said twice");
}
