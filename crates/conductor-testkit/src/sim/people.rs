//! The people of a story: they start runs, answer what they are asked, merge what is proposed, and try again when told
//! that something broke.
//!
//! They only see what a person could see, and repeat what got no answer. This module does not know the engine's inside.

use std::collections::BTreeSet;
use std::time::Duration;

use conductor_domain::Run;
use conductor_domain::artifact::ArtifactKind;
use conductor_domain::forge::{Notice, NoticeSubject, PullRequestState};
use conductor_domain::hold::{Hold, HoldKind};
use conductor_domain::id::{OperatorName, PullRequestNumber, RunId};
use conductor_domain::input::{Action, Input};
use conductor_domain::instance::{InstanceInput, Registration, TestEgress};
use conductor_domain::phase::Phase;
use conductor_engine::Engine;
use conductor_port::blobs::Blobs as _;
use conductor_port::inbox::{Inbox as _, Seen, Submission, SubmitError};
use conductor_port::views::{RunFilter, Views as _};

use super::{Stage, Twist};
use crate::world::Climate;

/// What people look at again and again.
const GLANCE: Duration = Duration::from_secs(1);

/// What people remember, whatever happens to Conductor.
#[derive(Debug, Default)]
pub(super) struct Memories {
    /// How often a person looked.
    pub(super) glances: u64,
    /// How often a run had to be told to try again.
    pub(super) retries: u32,
    /// Whether a person has cancelled a run.
    pub(super) cancelled: bool,
    /// The most runs that had a workspace at once.
    pub(super) most_at_once: usize,
    merged: BTreeSet<u64>,
}

/// Does what people do, until every run is over and cleaned up.
pub(super) async fn act_until_done(stage: &Stage, door: &Engine) {
    set_up(stage, door).await;
    loop {
        stage.remember(|memories| memories.glances += 1);
        for spec in &stage.specs {
            let input = Input::StartRun {
                spec: Box::new(spec.clone()),
            };
            submit(stage, door, &spec.run, input, format!("start/{}", spec.run)).await;
        }
        turn_the_switch(stage, door).await;
        let mut all_done = true;
        for run in runs(stage).await {
            all_done &= run.cleaned_up && run.in_flight.is_empty();
            act_on(stage, door, &run).await;
        }
        let at_once = stage.workspace.disk().repos.len();
        stage.remember(|memories| memories.most_at_once = memories.most_at_once.max(at_once));
        if all_done {
            return;
        }
        tokio::time::sleep(GLANCE).await;
    }
}

async fn set_up(stage: &Stage, door: &Engine) {
    let Some(spec) = stage.specs.first() else { return };
    let by = spec.started_by.clone();
    let registration = Registration {
        project: spec.project.clone(),
        repo: stage.repo.clone(),
        test_command: spec.test_command.clone(),
        slots: stage.story.slots,
        test_egress: TestEgress::None,
        board: None,
    };
    tell_instance(
        door,
        InstanceInput::AddProject {
            by: by.clone(),
            project: spec.project.clone(),
        },
    )
    .await;
    tell_instance(door, InstanceInput::RegisterRepo { by, registration }).await;
}

async fn tell_instance(door: &Engine, input: InstanceInput) {
    while let Err(SubmitError::Fault(_)) = door.submit_to_instance(input.clone(), "").await {
        tokio::time::sleep(GLANCE).await;
    }
}

/// Submits until it is in or refused; a person who got no answer asks again with the same key.
async fn submit(stage: &Stage, door: &Engine, run: &RunId, input: Input, key: String) {
    let known = stage.memory.run(run).await.is_ok_and(|row| row.is_some());
    if known && matches!(input, Input::StartRun { .. }) {
        return;
    }
    let submission = Submission {
        run: run.clone(),
        input,
        dedupe: Some(key),
        cause: "a person".to_owned(),
        seen: Seen::Anything,
    };
    while let Err(SubmitError::Fault(_)) = door.submit(submission.clone()).await {
        tokio::time::sleep(GLANCE).await;
    }
}

async fn runs(stage: &Stage) -> Vec<Run> {
    let filter = RunFilter {
        limit: 1000,
        ..RunFilter::default()
    };
    let rows = stage.memory.runs(&filter).await.unwrap_or_default();
    rows.iter()
        .filter_map(|row| serde_json::from_str(&row.state).ok())
        .collect()
}

async fn act_on(stage: &Stage, door: &Engine, run: &Run) {
    let Some(by) = stage.specs.first().map(|spec| spec.started_by.clone()) else {
        return;
    };
    let glances = stage.remember(|memories| memories.glances);
    if stage.story.has(Twist::Cancel) && Some(run.id()) == stage.specs.last().map(|spec| &spec.run) {
        cancel_once(stage, door, run, &by, glances).await;
    }
    if let Some(Hold::Question { id, .. }) = run.holds.get(HoldKind::Question) {
        let Ok(answer) = stage.memory.put(ArtifactKind::Feedback, b"Blue.").await else {
            return;
        };
        let action = Action::Answer {
            question: id.clone(),
            answer,
        };
        submit(
            stage,
            door,
            run.id(),
            Input::Operate { by, action },
            format!("answer/{id}"),
        )
        .await;
    } else if run.holds.get(HoldKind::Failure).is_some() && !run.phase.is_terminal() {
        stage.remember(|memories| memories.retries += 1);
        let key = format!("retry/{}/{glances}", run.id());
        submit(
            stage,
            door,
            run.id(),
            Input::Operate {
                by,
                action: Action::Retry,
            },
            key,
        )
        .await;
    } else if let Some(gate) = run.gate() {
        let (gate, subject) = (gate.kind, gate.subject.clone());
        let key = format!("approve/{}/{subject}/{glances}", run.id());
        let action = Action::Approve {
            gate,
            subject,
            comment: None,
        };
        submit(stage, door, run.id(), Input::Operate { by, action }, key).await;
    } else if let Phase::AwaitingMerge(waiting) = &run.phase {
        merge_once(stage, door, run, waiting.pull_request.number).await;
    }
}

async fn cancel_once(stage: &Stage, door: &Engine, run: &Run, by: &OperatorName, glances: u64) {
    if stage.remember(|memories| memories.cancelled) || glances < 5 + stage.world.chance.below(60) {
        return;
    }
    stage.remember(|memories| memories.cancelled = true);
    let input = Input::Operate {
        by: by.clone(),
        action: Action::Cancel { comment: None },
    };
    submit(stage, door, run.id(), input, format!("cancel/{}", run.id())).await;
}

/// Merges a pull request as the forge does it, after a while: the base branch takes its files, so that others which
/// wait must follow it. Half of the time the forge says so.
async fn merge_once(stage: &Stage, door: &Engine, run: &Run, number: PullRequestNumber) {
    if stage.remember(|memories| memories.merged.contains(&number.0)) || stage.world.chance.strikes(960) {
        return;
    }
    let head = stage
        .forge
        .archive()
        .branches
        .get(&(stage.repo.id, run.spec.branch()))
        .cloned();
    let base = stage
        .forge
        .archive()
        .branches
        .get(&(stage.repo.id, stage.repo.base_branch.clone()))
        .cloned();
    let tree = {
        let disk = stage.workspace.disk();
        let tree_of = |commit: Option<&conductor_domain::id::CommitId>| {
            commit
                .and_then(|commit| disk.commits.get(commit))
                .map(|commit| commit.tree.clone())
                .unwrap_or_default()
        };
        let mut tree = tree_of(base.as_ref());
        tree.extend(tree_of(head.as_ref()));
        tree
    };
    stage.workspace.push_to_base(&stage.repo, tree);
    if let Some(pull_request) = stage
        .forge
        .archive()
        .pull_requests
        .get_mut(&(stage.repo.id, number.0))
    {
        pull_request.state = PullRequestState::Merged {
            by: Some("ada".to_owned()),
        };
    }
    stage.remember(|memories| memories.merged.insert(number.0));
    if stage.world.chance.strikes(500) {
        let delivery = format!("delivery-{number}");
        let subject = NoticeSubject::PullRequest { number };
        let notice = Notice {
            delivery: delivery.clone(),
            event: "pull_request".to_owned(),
            subject,
        };
        submit(stage, door, run.id(), Input::ForgeNoticed { notice }, delivery).await;
    }
}

async fn turn_the_switch(stage: &Stage, door: &Engine) {
    let Some(by) = stage.specs.first().map(|spec| spec.started_by.clone()) else {
        return;
    };
    if !stage.story.has(Twist::KillSwitch) {
        return;
    }
    // A person who got no answer looks at the switch and turns it again.
    let Ok((instance, _head)) = stage.memory.instance().await else {
        return;
    };
    let wanted = (12..25).contains(&stage.remember(|memories| memories.glances));
    if instance.kill_switch != wanted {
        tell_instance(door, InstanceInput::TurnKillSwitch { by, on: wanted }).await;
    }
}

impl Stage {
    /// Looks at, or adds to, what people remember.
    pub(super) fn remember<T>(&self, act: impl FnOnce(&mut Memories) -> T) -> T {
        act(&mut self.memories.borrow_mut())
    }

    /// Tells whether nothing in this story can fail by itself.
    pub(super) fn is_calm(&self) -> bool {
        self.story.climate == Climate::CALM
    }
}
