//! Overrides: granted for one call of one run, honoured where calls are judged, over when they end or are taken back.

use std::sync::{Arc, Mutex};

use conductor_domain::hold::HoldKind;
use conductor_domain::id::RunId;
use conductor_domain::input::Action;
use conductor_domain::refusal::Refusal;
use conductor_domain::relief::ReliefScope;
use conductor_domain::role::Role;
use conductor_domain::time::Millis;
use conductor_port::agent::ToolAnswer;
use conductor_port::blobs::ToolLog as _;
use conductor_port::clock::Clock as _;
use conductor_port::inbox::SubmitError;
use conductor_port::views::Views as _;
use conductor_testkit::rig::Rig;

use crate::policies::{NO_READING, locked, looker, start};

fn scope(policy: &str, tool: &str, target: &str) -> ReliefScope {
    ReliefScope {
        policy: policy.to_owned(),
        role: Role::Planner,
        tool: tool.to_owned(),
        target: target.to_owned(),
    }
}

/// Asks for an override that lasts ten minutes.
async fn grant(rig: &Rig, run: &RunId, scope: ReliefScope, why: &str) -> Result<(), SubmitError> {
    let action = Action::GrantRelief {
        scope,
        justification: why.to_owned(),
        until: rig.stage.clock.now().after(Millis::minutes(10)),
    };
    rig.operate(run, action).await.map(drop)
}

/// Lets the Planner try until it is given up on, and returns what its calls were answered.
async fn tried(rig: &Rig, run: &RunId, answers: &Arc<Mutex<Vec<ToolAnswer>>>) -> Vec<ToolAnswer> {
    rig.until(run, |run| run.holds.get(HoldKind::Failure).is_some())
        .await;
    std::mem::take(&mut *answers.lock().expect("no panic"))
}

fn were_done(answers: &[ToolAnswer]) -> bool {
    assert!(!answers.is_empty());
    let done = answers
        .iter()
        .filter(|answer| matches!(answer, ToolAnswer::Done { .. }))
        .count();
    assert!(done == 0 || done == answers.len(), "{answers:?}");
    done > 0
}

/// SEC-1, TOOL-4: an override lets the denied call through, in its run alone, until it is taken back or ends; the tool log
/// says by whom and why.
#[tokio::test(start_paused = true)]
async fn an_override_is_honoured_until_it_is_revoked_or_ends() {
    let (agent, answers) = looker();
    let rig = Rig::start(agent).await;
    let spec = locked(&rig, 1, NO_READING).await;
    let run = start(&rig, spec).await.expect("it may start");
    assert!(!were_done(&tried(&rig, &run, &answers).await));
    let reading = scope("no-reading", "view", "worktree:./README.md");
    let why = "the plan cannot be made without it";

    grant(&rig, &run, reading.clone(), why).await.expect("granted");
    rig.operate(&run, Action::Retry).await.expect("it is held");
    assert!(were_done(&tried(&rig, &run, &answers).await));
    let mut reasons = vec![];
    for effect in rig.stage.memory.effects(&run).await.expect("calm") {
        let calls = rig.stage.memory.read(&effect.id).await.expect("calm");
        reasons.extend(calls.into_iter().map(|call| (call.decision, call.reason)));
    }
    let by = rig.stage.specs[0].started_by.clone();
    assert_eq!(
        reasons.last(),
        Some(&(
            "allow".to_owned(),
            format!("no-reading: override 1 by {by}: {why}")
        ))
    );

    // Another run of the same repository and the same policies has nothing of it.
    let spec = locked(&rig, 2, NO_READING).await;
    let other = start(&rig, spec).await.expect("it may start");
    assert!(!were_done(&tried(&rig, &other, &answers).await));

    rig.operate(&run, Action::RevokeRelief { number: 1 })
        .await
        .expect("it is in force");
    rig.operate(&run, Action::Retry).await.expect("it is held");
    assert!(!were_done(&tried(&rig, &run, &answers).await), "revoked");

    grant(&rig, &run, reading, why).await.expect("granted");
    rig.stage.clock.turn(Millis::minutes(11));
    rig.operate(&run, Action::Retry).await.expect("it is held");
    assert!(!were_done(&tried(&rig, &run, &answers).await), "ended");
}

/// SEC-1, SEC-3: what is final, what decides nothing, what is no call, and what nobody could judge later is refused, and
/// leaves no trace in the run.
#[tokio::test(start_paused = true)]
async fn an_override_that_may_not_be_is_refused() {
    let (agent, _answers) = looker();
    let rig = Rig::start(agent).await;
    let final_one = NO_READING.replace("@reason", "@final(\"true\") @reason");
    let spec = locked(&rig, 1, &final_one).await;
    let run = start(&rig, spec).await.expect("it may start");
    rig.until(&run, |run| run.holds.get(HoldKind::Failure).is_some())
        .await;
    let before = rig.records(&run).await.len();
    let why = "the plan cannot be made without it";
    let reading = scope("no-reading", "view", "worktree:README.md");
    let writing = scope("deny-by-default", "create_file", "worktree:README.md");
    for (case, scope, why, expected) in [
        (
            "final",
            reading,
            why,
            "denied by policy: `no-reading` is final; nobody lifts it",
        ),
        (
            "another policy",
            scope("git-directory", "create_file", "worktree:README.md"),
            why,
            "denied by policy: it is not `git-directory` that decides but `deny-by-default` (no policy permits it)",
        ),
        (
            "no call",
            scope("deny-by-default", "merge", "repository:acme/thing"),
            why,
            "denied by policy: only calls of tools have overrides, and `merge` is none",
        ),
        (
            "no reason",
            writing.clone(),
            "please",
            "the justification has fewer than 10 characters",
        ),
        (
            "a secret",
            writing,
            &["because gh", "p_0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R said so"].concat(),
            "the justification holds a secret",
        ),
    ] {
        match grant(&rig, &run, scope, why).await {
            Err(SubmitError::Refused(refusal)) => assert_eq!(refusal.to_string(), expected, "{case}"),
            other => panic!("{case}: {other:?}"),
        }
    }
    let unknown = rig.operate(&run, Action::RevokeRelief { number: 1 }).await;
    assert!(
        matches!(unknown, Err(SubmitError::Refused(Refusal::NoSuchRelief))),
        "{unknown:?}"
    );
    assert_eq!(rig.records(&run).await.len(), before);
}
