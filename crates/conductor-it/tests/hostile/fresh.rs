//! Nothing that an agent left beside its commit reaches the tests (S-17).
//!
//! Each story looks twice: where tests would run if nobody cared, and where they do run.

use std::path::Path;

use conductor_domain::id::EffectId;
use conductor_domain::testing::Ending;
use conductor_domain::time::Millis;
use conductor_executor::Limits;
use conductor_port::executor::{Command, Executor as _, Profile, Sandbox, SandboxSpec};
use conductor_port::workspace::Workspace as _;

use crate::ground::{Ground, Reading, local};
use crate::world::write;

async fn run(sandbox: &dyn Sandbox, script: &str) -> (Ending, String) {
    let argv = ["bash", "-c", script].map(str::to_owned).to_vec();
    let result = sandbox
        .bash(Command {
            argv,
            environment: vec![],
            time: Millis::seconds(60),
            output: 10_000,
            listener: None,
        })
        .await
        .unwrap();
    (
        result.ending,
        String::from_utf8_lossy(&result.output).into_owned(),
    )
}

/// S-17: a file that the repository ignores is no part of a commit, so the tests do not find it; in the worktree they would,
/// and would find a git directory as well.
#[tokio::test]
async fn what_is_not_committed_does_not_reach_the_tests() {
    let ground = Ground::new(Reading::Sandboxed).await;
    let base = ground.world.begin().await;
    write(&ground.workdir().join(".gitignore"), "cache/\n");
    write(&ground.workdir().join("cache/planted"), "exit 0\n");
    let commit = ground.world.commit(1, &base).await;
    let checkout = ground
        .world
        .workspace
        .checkout(&ground.world.run, &commit)
        .await
        .unwrap();
    let finds = |dir: &Path| ["cache/planted", ".git"].map(|name| dir.join(name).exists());
    assert_eq!(finds(&ground.workdir()), [true, true], "the trap does not work");
    assert_eq!(finds(&checkout.dir), [false, false]);
    assert!(
        checkout.dir.join(".gitignore").exists(),
        "what is committed is there"
    );
}

/// S-17: what tools leave in HOME, in the temporary directories or running is there for the next tool, and not for the tests.
#[tokio::test]
async fn nothing_of_the_tools_sandbox_reaches_the_tests() {
    const LEAVE: &str = "echo 'exit 0' | tee $HOME/.bashrc /tmp/planted > /dev/shm/planted; \
                         (exec -a planted-daemon sleep 1000 > /dev/null 2>&1 &)";
    const LOOK: &str = "ls -A $HOME /tmp /dev/shm; cat /proc/[0-9]*/cmdline | tr '\\0' '\\n'";
    let ground = Ground::new(Reading::Sandboxed).await;
    let base = ground.world.begin().await;
    let workspace = &ground.world.workspace;
    let checkout = workspace.checkout(&ground.world.run, &base).await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let executor = local(place.path(), Limits::default());
    let open = async |profile, number, dir| {
        let run = ground.world.run.clone();
        let effect = EffectId::derive(&run, number, 0);
        let spec = SandboxSpec::new(effect, run, profile, dir);
        executor.open(spec).await.unwrap()
    };
    let tools = open(Profile::Tool, 1, ground.workdir()).await;
    run(tools.as_ref(), LEAVE).await;
    let (_, left) = run(tools.as_ref(), LOOK).await;
    assert_eq!(
        left.matches("planted").count(),
        3,
        "the trap does not work: {left}"
    );
    // Though the tools' sandbox is still open: it never is, when tests run.
    let tests = open(Profile::Test, 2, checkout.dir.clone()).await;
    let (ending, found) = run(tests.as_ref(), LOOK).await;
    assert_eq!(ending, Ending::Exited { code: 0 });
    assert!(
        !found.contains("planted") && !found.contains(".bashrc"),
        "{found}"
    );
    tests.close().await.unwrap();
    tools.close().await.unwrap();
}
