//! Whole trees end: by time-out, by drop, by close, whatever their processes do about it.

use conductor_domain::testing::Ending;
use tokio::task::JoinSet;

use crate::kit::{Bench, PASSED, PLENTY, SHORT, bash, script, text};

/// Ways to start something that does not want to end; each reports its number through `pids` first.
const STUBBORN: [&str; 8] = [
    "trap '' TERM HUP INT; echo $BASHPID > pids; while :; do read -r -t 1000 x <> pids2; done",
    "bash -c 'trap \"\" TERM HUP INT; echo $$ > pids; while :; do sleep 1000; done' & wait",
    "setsid bash -c 'echo $$ > pids; exec sleep 1000' & wait",
    "nohup setsid bash -c 'echo $$ > pids; exec sleep 1000' >/dev/null 2>&1 & wait",
    "env -i bash -c 'echo $$ > pids; exec sleep 1000' & wait",
    "(setsid bash -c 'echo $$ > pids; exec sleep 1000' &) ; sleep 1000",
    "env -i setsid bash -c 'echo $$ > pids; exec sleep 1000' & wait",
    "(env -i bash -c 'echo $$ > pids; exec sleep 1000' &) ; sleep 1000",
];

/// EXEC-7: a time-out kills the whole tree.
#[tokio::test]
async fn a_time_out_ends_every_process_of_the_command() {
    let mut cases = JoinSet::new();
    for stubborn in STUBBORN {
        cases.spawn(async move {
            let bench = Bench::new();
            let sandbox = bench.open().await;
            let mut pids = bench.reports("pids");
            bench.reports("pids2");
            let (result, process) = tokio::join!(sandbox.bash(script(stubborn, SHORT)), pids.process());
            assert_eq!(result.unwrap().ending, Ending::TimedOut, "{stubborn}");
            assert!(!process.is_alive(), "{stubborn}");
            sandbox.close().await.unwrap();
        });
    }
    assert_eq!(cases.join_all().await.len(), STUBBORN.len());
}

#[tokio::test]
async fn a_dropped_call_ends_every_process_of_the_command() {
    for stubborn in STUBBORN {
        let bench = Bench::new();
        let sandbox = bench.open().await;
        let mut pids = bench.reports("pids");
        bench.reports("pids2");
        let process = tokio::select! {
            result = sandbox.bash(script(stubborn, PLENTY)) => panic!("{stubborn}: {result:?}"),
            process = pids.process() => process,
        };
        process.ended().await;
        sandbox.close().await.unwrap();
    }
}

/// A process in the background may go on after its command, keeps nobody waiting, and ends with the sandbox.
#[tokio::test]
async fn what_outlives_its_command_is_not_waited_for_and_ends_with_the_sandbox() {
    let background = [
        "sleep 1000 & echo $! > pids; echo done",
        "setsid sleep 1000 & echo $! > pids; echo done",
        "(setsid bash -c 'echo $$ > pids; exec sleep 1000' &); echo done",
        "env -i sleep 1000 & echo $! > pids; echo done",
        "bash -c 'trap \"\" TERM HUP; while :; do sleep 1000; done' & echo $! > pids; echo done",
    ];
    for daemon in background {
        let bench = Bench::new();
        let sandbox = bench.open().await;
        let mut pids = bench.reports("pids");
        let (result, process) = tokio::join!(bash(&*sandbox, daemon), pids.process());
        assert_eq!(
            (text(&result).as_str(), result.ending),
            ("done\n", PASSED),
            "{daemon}"
        );
        assert!(process.is_alive(), "{daemon}");
        sandbox.close().await.unwrap();
        assert!(!process.is_alive(), "{daemon}");
        assert_eq!(bench.homes().len(), 0, "{daemon}");
    }
}

#[tokio::test]
async fn a_background_process_that_prints_for_ever_keeps_nobody_waiting() {
    let bench = Bench::new();
    let sandbox = bench.open().await;
    let result = bash(&*sandbox, "echo first; yes & exit 3").await;
    assert_eq!(result.ending, Ending::Exited { code: 3 });
    assert!(text(&result).starts_with("first\n"));
    sandbox.close().await.unwrap();
}

#[tokio::test]
async fn a_time_out_leaves_other_commands_alone() {
    let bench = Bench::new();
    let sandbox = bench.open().await;
    let mut go = bench.reports("go");
    let (cut, other) = tokio::join!(
        async {
            let cut = sandbox
                .bash(script("setsid sleep 1000 & wait", SHORT))
                .await
                .unwrap();
            let path = bench.work().join("more");
            std::fs::write(path, "").unwrap();
            cut
        },
        bash(
            &*sandbox,
            "setsid bash -c 'until [ -e more ]; do sleep 0.02; done; echo went on > go' & wait; echo end"
        ),
    );
    assert_eq!(cut.ending, Ending::TimedOut);
    assert_eq!((text(&other).as_str(), other.ending), ("end\n", PASSED));
    assert_eq!(go.line().await, "went on");
    sandbox.close().await.unwrap();
}

#[tokio::test]
async fn a_storm_of_daemons_ends() {
    let bench = Bench::new();
    let sandbox = bench.open().await;
    let storm =
        "for i in {1..150}; do (setsid bash -c 'echo $$ >> all; exec sleep 1000' &); done; sleep 1000";
    let result = sandbox.bash(script(storm, SHORT)).await.unwrap();
    assert_eq!(result.ending, Ending::TimedOut);
    let started = std::fs::read_to_string(bench.work().join("all")).unwrap();
    assert!(started.lines().count() > 10, "{started}");
    for pid in started.lines() {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        assert!(!line.contains("sleep\u{0}1000"), "{pid} lives");
    }
    sandbox.close().await.unwrap();
}

#[tokio::test]
async fn a_killed_command_leaves_no_zombie() {
    let bench = Bench::new();
    let sandbox = bench.open().await;
    let mut pids = bench.reports("pids");
    let (result, process) = tokio::join!(
        sandbox.bash(script("echo $$ > pids; sleep 1000", SHORT)),
        pids.line()
    );
    assert_eq!(result.unwrap().ending, Ending::TimedOut);
    assert!(!std::path::Path::new(&format!("/proc/{}", process.trim())).exists());
    sandbox.close().await.unwrap();
}

#[tokio::test]
async fn a_dropped_sandbox_ends_its_processes() {
    let bench = Bench::new();
    let sandbox = bench.open().await;
    let mut pids = bench.reports("pids");
    let (_, process) = tokio::join!(
        bash(&*sandbox, "setsid sleep 1000 & echo $! > pids"),
        pids.process()
    );
    drop(sandbox);
    process.ended().await;
}
