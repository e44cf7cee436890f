//! What the reader of a worktree left open when its server died: it goes by the worktree's lease, and before the worktree.

use std::fs;

use conductor_domain::id::EffectId;
use conductor_executor::local::Limits;
use conductor_port::executor::{Command, Executor as _, Profile, SandboxSpec};
use conductor_port::workspace::Workspace as _;

use crate::ground::{Ground, Reading, local};

/// ENV-2, RUN-12a, S-43: the next reader of the same worktree ends it, and who gives a worktree back reads it first.
#[tokio::test]
async fn a_reader_that_was_left_ends_before_its_worktree_is_given_back() {
    let ground = Ground::new(Reading::Sandboxed).await;
    let world = &ground.world;
    world.begin().await;
    let place = ground.executor.path();
    let died = local(place, Limits::default());
    let left = died
        .open(SandboxSpec::new(
            EffectId::derive(&world.run, 0, 0),
            world.run.clone(),
            Profile::Snapshot,
            ground.workdir(),
        ))
        .await
        .unwrap();
    let records = || fs::read_dir(place.join("reader/open")).unwrap().count();
    assert_eq!(records(), 1, "it is on record");

    world.workspace.clean_up(&world.run, &world.repo()).await.unwrap();
    assert_eq!(records(), 0);
    assert!(!ground.workdir().exists());
    let answer = left
        .bash(Command {
            argv: vec!["true".to_owned()],
            environment: Vec::new(),
            time: conductor_domain::time::Millis::seconds(60),
            output: 0,
            listener: None,
        })
        .await;
    assert!(answer.is_err(), "its guest is lost: {answer:?}");
}
