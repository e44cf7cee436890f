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
