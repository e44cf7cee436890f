//! What is left when somebody leaves in the middle: nothing.

use std::sync::Arc;
use std::time::Duration;

use conductor_domain::fault::FaultKind;

use super::Subject;
use super::disk::mounts_of;
use super::given::{effect, mark, open, open_with, printed, processes_with, script, spec, until, until_gone};

/// Daemonised grandchildren and zombies live until the sandbox ends, and no longer.
pub(super) async fn what_outlives_its_command_ends_with_the_sandbox(subject: &Subject) {
    let sandbox = open(subject).await;
    let mark = mark();
    printed(
        sandbox.as_ref(),
        &format!("(setsid sleep {mark} > /dev/null 2>&1 &); bash -c 'true & exec sleep 0.01'; echo done"),
    )
    .await;
    until("the daemon runs", || processes_with(&mark) == 1).await;
    let zombies = printed(
        sandbox.as_ref(),
        "cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z ' || true",
    )
    .await;
    assert_eq!(zombies, "0\n");
    sandbox.close().await.expect("it closes");
    assert_eq!(processes_with(&mark), 0, "closing waits until all are gone");
}

/// RUN-11: a caller that leaves takes its command's tree with it, and only that.
pub(super) async fn a_command_that_nobody_waits_for_is_ended(subject: &Subject) {
    let sandbox: Arc<dyn conductor_port::executor::Sandbox> = Arc::from(open(subject).await);
    let (stays, goes) = (mark(), mark());
    let waiting = {
        let sandbox = Arc::clone(&sandbox);
        let text = format!("sleep {stays}");
        tokio::spawn(async move { sandbox.bash(script(&text)).await })
    };
    until("the one runs", || processes_with(&stays) == 1).await;
    let text = format!("(setsid sleep {goes} &); sleep {goes}");
    let left = tokio::time::timeout(Duration::from_millis(500), sandbox.bash(script(&text)));
    assert!(left.await.is_err(), "it was still running");
    until_gone(&goes).await;
    assert_eq!(processes_with(&stays), 1, "another command is not touched");
    waiting.abort();
}

/// RUN-12a: dropped without a word.
pub(super) async fn a_sandbox_that_nobody_holds_is_ended(subject: &Subject) {
    let sandbox = open(subject).await;
    let mark = mark();
    printed(
        sandbox.as_ref(),
        &format!("(setsid sleep {mark} > /dev/null 2>&1 &); echo"),
    )
    .await;
    until("the daemon runs", || processes_with(&mark) == 1).await;
    drop(sandbox);
    until_gone(&mark).await;
}

/// S-16, S-18: the container was removed, the engine stopped, the process killed: a fault, never a success.
pub(super) async fn a_sandbox_that_vanishes_is_told_and_leaves_nothing(subject: &Subject) {
    let dir = super::given::workdir(subject, "work");
    let sandbox: Arc<dyn conductor_port::executor::Sandbox> = Arc::from(open_with(subject, spec(&dir)).await);
    let mark = mark();
    let waiting = {
        let sandbox = Arc::clone(&sandbox);
        let text = format!("sleep {mark}");
        tokio::spawn(async move { sandbox.bash(script(&text)).await })
    };
    until("the command runs", || processes_with(&mark) == 1).await;
    (subject.vanish)(&effect());
    let fault = waiting.await.expect("no panic").expect_err("nothing ended well");
    assert!(fault.what.contains("guest is lost"), "{fault}");
    assert_eq!(
        fault.kind,
        FaultKind::EnvironmentLost,
        "RUN-12: another one is made once"
    );
    let again = sandbox.bash(script("true")).await;
    let again = again.expect_err("nothing is started in it again");
    assert_eq!(again.kind, FaultKind::EnvironmentLost, "{again}");
    assert!(sandbox.view("f").await.is_err());
    until_gone(&mark).await;
    let sandbox = open_with(subject, spec(&dir)).await;
    assert_eq!(printed(sandbox.as_ref(), "echo anew").await, "anew\n");
    sandbox.close().await.expect("it closes");
}

/// ENV-3: whether a sandbox is closed, dropped or ended behind everybody's back, nothing of its directory stays mounted.
pub(super) async fn no_mount_outlives_its_sandbox(subject: &Subject) {
    for (name, end) in [
        ("closed", End::Closed),
        ("dropped", End::Dropped),
        ("vanished", End::Vanished),
    ] {
        let dir = super::given::workdir(subject, name);
        let before = mounts_of(&dir);
        let sandbox = open_with(subject, spec(&dir)).await;
        printed(sandbox.as_ref(), "(setsid sleep 1000 > /dev/null 2>&1 &); true").await;
        match end {
            End::Closed => sandbox.close().await.expect("it closes"),
            End::Dropped => drop(sandbox),
            End::Vanished => {
                (subject.vanish)(&effect());
                // What is being killed may still answer at once; it cannot wait for long.
                let never = sandbox.bash(script("sleep 1000")).await;
                assert!(never.is_err(), "nothing ended well: {never:?}");
                // It may say that there is nothing to close any more.
                let _ = sandbox.close().await;
            }
        }
        until("its mounts are gone", || mounts_of(&dir) == before).await;
    }
}

/// How a sandbox ends.
#[derive(Clone, Copy)]
enum End {
    Closed,
    Dropped,
    Vanished,
}

/// RUN-12a. If repeated: nothing is left.
pub(super) async fn reaping_what_is_not_there_is_no_fault(subject: &Subject) {
    let sandbox = open(subject).await;
    subject.executor.reap(&effect()).await.expect("nothing to do");
    assert_eq!(
        printed(sandbox.as_ref(), "echo untouched").await,
        "untouched\n",
        "an open sandbox is not left behind"
    );
    sandbox.close().await.expect("it closes");
    subject.executor.reap(&effect()).await.expect("nothing to do");
}
