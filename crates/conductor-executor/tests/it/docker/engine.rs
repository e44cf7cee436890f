//! An engine that is too old, is not there, or goes away in the middle.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conductor_domain::fault::FaultKind;
use conductor_executor::Docker;
use conductor_executor::docker::{MayBeOld, Unusable};
use conductor_port::executor::{Executor as _, Sandbox};
use tokio::io::copy_bidirectional;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{AbortHandle, JoinSet};

use super::kit::{containers, records, settings};
use crate::kit::{bash, script, spec};

/// S-45.
#[tokio::test]
async fn an_old_engine_is_refused_unless_the_operator_says_so() {
    let base = tempfile::tempdir().unwrap();
    let program = base.path().join("docker");
    let said = r#"{"Server":{"Version":"19.03.1","Components":[{"Name":"runc","Version":"1.0.0"}]}}"#;
    std::fs::write(&program, format!("#!/bin/sh\necho '{said}'\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut settings = settings(base.path());
    settings.program = program;
    let refused = Docker::new(settings.clone()).await.unwrap_err();
    assert!(matches!(refused, Unusable::TooOld { .. }), "{refused}");
    settings.may_be_old = MayBeOld::OperatorSaysSo;
    Docker::new(settings).await.unwrap();
}

/// EXEC-2: a machine without an engine is told so, not served otherwise.
#[tokio::test]
async fn no_engine_is_an_error_that_names_the_program() {
    let base = tempfile::tempdir().unwrap();
    let mut settings = settings(base.path());
    settings.program = base.path().join("no-such-program");
    let refused = Docker::new(settings.clone()).await.unwrap_err();
    assert!(refused.to_string().contains("no-such-program"), "{refused}");
    settings.program = "docker".into();
    let nowhere = format!("unix://{}/no.sock", base.path().display());
    settings.environment = vec![("DOCKER_HOST".into(), nowhere.into())];
    let refused = Docker::new(settings).await.unwrap_err();
    assert!(matches!(refused, Unusable::NoEngine { .. }), "{refused}");
}

/// The way to the engine, which a test can cut: for whoever uses it the engine has stopped.
struct Line {
    socket: PathBuf,
    carrying: AbortHandle,
}

impl Line {
    fn lay(socket: &Path) -> Self {
        let listener = UnixListener::bind(socket).unwrap();
        let carrying = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut client, _)) = listener.accept().await {
                connections.spawn(async move {
                    let mut engine = UnixStream::connect("/var/run/docker.sock").await?;
                    copy_bidirectional(&mut client, &mut engine).await
                });
            }
        });
        Self {
            socket: socket.to_owned(),
            carrying: carrying.abort_handle(),
        }
    }

    /// Cuts every connection and lets nobody in again.
    fn cut(self) {
        self.carrying.abort();
        std::fs::remove_file(self.socket).unwrap();
    }
}

/// ENV-2, S-16, RUN-12a: an engine that stops in the middle is told as a fault, and what it may have left is on record
/// until it answers again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_that_stops_in_the_middle_is_told_and_reaped_when_it_is_back() {
    let base = tempfile::tempdir().unwrap();
    let (work, socket) = (base.path().join("work"), base.path().join("engine.sock"));
    std::fs::create_dir(&work).unwrap();
    let line = Line::lay(&socket);
    let mut settings = settings(base.path());
    settings.environment = vec![(
        "DOCKER_HOST".into(),
        format!("unix://{}", socket.display()).into(),
    )];
    let executor = Docker::new(settings).await.unwrap();
    let sandbox = executor.open(spec("r1.1.0", work.clone())).await.unwrap();
    bash(sandbox.as_ref(), "touch begun").await;
    let sandbox: Arc<dyn Sandbox> = Arc::from(sandbox);
    let running = {
        let sandbox = Arc::clone(&sandbox);
        tokio::spawn(async move { sandbox.bash(script("sleep 1000", 100_000)).await })
    };
    line.cut();
    let fault = running.await.unwrap().unwrap_err();
    assert!(fault.what.contains("guest is lost"), "{fault}");
    drop(sandbox);

    let effect = spec("r1.1.0", work.clone()).effect;
    assert_eq!(records(base.path()).len(), 1);
    let fault = executor.open(spec("r1.2.0", work.clone())).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Transient { retry_after: None }, "{fault}");

    let _line = Line::lay(&socket);
    for effect in [effect, spec("r1.2.0", work.clone()).effect] {
        // The drop above may still be looking for the engine; then the record is not left behind yet.
        while !records(base.path())
            .iter()
            .all(|record| !record.starts_with(effect.as_str()))
        {
            executor.reap(&effect).await.unwrap();
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(containers(base.path()), Vec::<String>::new());
    assert_eq!(records(base.path()), Vec::<String>::new());
    let sandbox = executor.open(spec("r1.1.0", work)).await.unwrap();
    assert!(sandbox.view("begun").await.unwrap().is_ok());
    sandbox.close().await.unwrap();
}

/// A client of this name that keeps every call, and answers to `version` for itself where told to. Like Podman, it does nothing
/// without the configuration that it was promised.
fn logged(base: &Path, name: &str, version: &str) -> PathBuf {
    let program = base.join(name);
    let calls = base.join("calls");
    // Two calls at once must not stand in each other's line, so each is kept by one write.
    let script = format!(
        "#!/bin/sh\ntest -f \"$DOCKER_CONFIG/config.json\" || exit 125\n\
         {{ printf '%s\\0' \"$@\"; printf '\\n'; }} > '{calls}.'$$; cat '{calls}.'$$ >> '{calls}'\n\
         [ \"$1\" = version ] && [ -n '{version}' ] && echo '{version}' && exit\nexec docker \"$@\"\n",
        calls = calls.display()
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    program
}

/// The calls that were kept, each as its words.
fn calls(base: &Path) -> Vec<Vec<String>> {
    let kept = std::fs::read_to_string(base.join("calls")).unwrap();
    let words = |line: &str| line.split_terminator('\0').map(str::to_owned).collect();
    kept.lines().map(words).collect()
}

/// A whole life: opened, used, dropped in the middle, opened anew, closed, reaped.
async fn lead_a_life(base: &Path, program: PathBuf) {
    let work = base.join("work");
    std::fs::create_dir(&work).unwrap();
    let mut settings = settings(base);
    settings.program = program;
    let executor = Docker::new(settings).await.unwrap();
    let sandbox = executor.open(spec("r1.1.0", work.clone())).await.unwrap();
    sandbox.create_file("a", b"1").await.unwrap().unwrap();
    bash(sandbox.as_ref(), "cat a; echo 2 > b").await;
    assert!(sandbox.bash(script("sleep 1000", 300)).await.is_ok());
    assert_eq!(sandbox.view("b").await.unwrap(), Ok(b"2\n".to_vec()));
    sandbox.close().await.unwrap();
    executor.reap(&spec("r1.1.0", work).effect).await.unwrap();
    assert_eq!(containers(base), Vec::<String>::new());
}

/// S-16, S-45: an absence. Whatever is done in a sandbox, the engine is asked to start, to look, to kill and to remove; never
/// to execute anything in a container where foreign code has run, and never to copy anything out of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_executed_in_or_copied_out_of_a_container() {
    let base = tempfile::tempdir().unwrap();
    lead_a_life(base.path(), logged(base.path(), "docker", "")).await;
    let verbs: Vec<String> = calls(base.path())
        .into_iter()
        .map(|call| call[0].clone())
        .collect();
    assert_eq!(verbs.iter().filter(|verb| *verb == "run").count(), 1);
    for verb in verbs {
        assert!(
            ["version", "run", "inspect", "kill", "rm"].contains(&verb.as_str()),
            "{verb}"
        );
    }
}

/// The options of `podman run` that we use; its manual has them all.
const OF_PODMAN: [&str; 21] = [
    "--cap-drop",
    "--cpus",
    "--entrypoint",
    "--hostname",
    "--interactive",
    "--label",
    "--log-driver",
    "--memory",
    "--memory-swap",
    "--mount",
    "--name",
    "--network",
    "--pids-limit",
    "--pull",
    "--read-only",
    "--security-opt",
    "--shm-size",
    "--tmpfs",
    "--ulimit",
    "--user",
    "--workdir",
];

/// EXEC-2: Podman by name. It tells its version without a server, is the only program that is ever called, and is asked for
/// nothing that it does not know.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn podman_is_called_by_its_name_and_with_options_that_it_has() {
    let base = tempfile::tempdir().unwrap();
    let said = r#"{"Client":{"APIVersion":"5.2.1","Version":"5.2.1","Os":"linux"}}"#;
    lead_a_life(base.path(), logged(base.path(), "podman", said)).await;
    let calls = calls(base.path());
    let run = calls.iter().find(|call| call[0] == "run").unwrap();
    let image = run.iter().position(|word| word == super::kit::IMAGE).unwrap();
    for option in run[..image].iter().filter(|word| word.starts_with("--")) {
        assert!(OF_PODMAN.contains(&option.as_str()), "{option}");
    }

    let base = tempfile::tempdir().unwrap();
    let old = r#"{"Client":{"Version":"4.3.1"}}"#;
    let mut settings = settings(base.path());
    settings.program = logged(base.path(), "podman", old);
    let refused = Docker::new(settings).await.unwrap_err();
    assert!(
        matches!(refused, Unusable::TooOld { part: "Podman", .. }),
        "{refused}"
    );
}
