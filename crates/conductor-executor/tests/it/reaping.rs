//! What a dead Conductor process left behind is ended by the next one (RUN-12a).

use std::io::Write as _;
use std::process::Stdio;

use conductor_domain::id::EffectId;
use conductor_port::executor::Executor as _;

use crate::kit::{self, Bench, PLENTY, Watched, bash, script};

fn effect(id: &str) -> EffectId {
    EffectId::parse(id).unwrap()
}

/// RUN-12a.
#[tokio::test]
async fn processes_of_a_dead_conductor_are_ended_by_the_next_one() {
    let left_behind = [
        "setsid sleep 1000 & echo $! > pids",
        "env -i sleep 1000 & echo $! > pids",
        "bash -c 'trap \"\" TERM; echo $$ > pids; while :; do sleep 1000; done' &",
    ];
    for daemon in left_behind {
        let bench = Bench::new();
        let sandbox = bench.open_for("r1.7.0").await;
        let mut pids = bench.reports("pids");
        let (_, process) = tokio::join!(bash(&*sandbox, daemon), pids.process());
        // What SIGKILL leaves of a Conductor process: no destructor runs.
        std::mem::forget(sandbox);

        let next = kit::executor(bench.base.path());
        next.reap(&effect("r1.7.1")).await.unwrap();
        next.reap(&effect("r1.70.0")).await.unwrap();
        assert!(process.is_alive(), "another effect's reaping ended {daemon}");
        next.reap(&effect("r1.7.0")).await.unwrap();
        assert!(!process.is_alive(), "{daemon}");
        assert_eq!(bench.homes().len(), 0);
        next.reap(&effect("r1.7.0")).await.unwrap();
    }
}

/// RUN-12a: a command that was under way is ended too.
#[tokio::test]
async fn a_command_under_way_is_reaped() {
    let bench = Bench::new();
    let sandbox = bench.open().await;
    let mut pids = bench.reports("pids");
    let mut call = sandbox.bash(script("echo $$ > pids; sleep 1000", PLENTY));
    let process = tokio::select! {
        result = &mut call => panic!("{result:?}"),
        process = pids.process() => process,
    };
    std::mem::forget(call);
    kit::executor(bench.base.path())
        .reap(&effect("r1.1.0"))
        .await
        .unwrap();
    assert!(!process.is_alive());
    std::mem::forget(sandbox);
}

#[tokio::test]
async fn reaping_leaves_open_sandboxes_alone() {
    let bench = Bench::new();
    let sandbox = bench.open().await;
    let mut pids = bench.reports("pids");
    let (_, process) = tokio::join!(bash(&*sandbox, "sleep 1000 & echo $! > pids"), pids.process());
    bench.executor.reap(&effect("r1.1.0")).await.unwrap();
    assert!(process.is_alive());
    sandbox.close().await.unwrap();
    assert!(!process.is_alive());
}

/// A record that names a number which was given away again must not end a stranger.
#[tokio::test]
#[allow(
    clippy::disallowed_methods,
    reason = "a stranger is started by nobody of ours"
)]
async fn a_stranger_with_a_noted_number_lives_on() {
    let bench = Bench::new();
    std::mem::forget(bench.open().await);
    let mut stranger = tokio::process::Command::new("sleep")
        .arg("1000")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let watched = Watched::new(stranger.id().unwrap().try_into().unwrap());
    let [home] = bench.homes().try_into().unwrap();
    let mut record = std::fs::File::options()
        .append(true)
        .open(home.join("processes"))
        .unwrap();
    writeln!(
        record,
        "{} 12345\nrubbish\n-1 -1\n{}",
        stranger.id().unwrap(),
        "9".repeat(50)
    )
    .unwrap();
    kit::executor(bench.base.path())
        .reap(&effect("r1.1.0"))
        .await
        .unwrap();
    assert!(watched.is_alive());
    assert_eq!(bench.homes().len(), 0);
    watched.end();
    stranger.wait().await.unwrap();
}

#[tokio::test]
async fn reaping_where_nothing_ever_ran_does_nothing() {
    let bench = Bench::new();
    bench.executor.reap(&effect("r1.1.0")).await.unwrap();
    assert!(!bench.base.path().join("homes").exists());
}
