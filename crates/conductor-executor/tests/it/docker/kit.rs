//! Makes docker executors with the contract's limits, and asks the engine what stands.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use conductor_contract::executor::{MEMORY, PROCESSES, Subject, TEMPORARY};
use conductor_domain::id::EffectId;
use conductor_executor::Docker;
use conductor_executor::Limits;
use conductor_executor::docker::{MayBeOld, Settings, Switch, Unusable};
use conductor_port::executor::{Executor as _, Sandbox};
use tempfile::TempDir;

use crate::kit::{bash, spec, text};

/// What `cargo xtask setup docker` provides.
pub(super) const IMAGE: &str = "debian:12";

/// The engine that is examined: `docker`, unless somebody names another, such as `podman`, to see how it does.
#[allow(
    clippy::disallowed_methods,
    reason = "a person names an engine in the environment"
)]
pub(super) fn program() -> String {
    std::env::var("CONDUCTOR_TEST_ENGINE").unwrap_or_else(|_| "docker".to_owned())
}

pub(super) struct Ground {
    pub(super) base: TempDir,
    pub(super) executor: Docker,
}

impl Ground {
    pub(super) async fn new() -> Self {
        Self::without(&[]).await
    }

    /// One that lacks these protections.
    pub(super) async fn without(switches: &[Switch]) -> Self {
        let base = tempfile::tempdir().unwrap();
        std::fs::create_dir(base.path().join("work")).unwrap();
        let mut executor = docker(base.path()).await;
        for switch in switches {
            executor = executor.without(*switch);
        }
        Self { base, executor }
    }

    /// One whose sandboxes have another guest.
    pub(super) async fn with_guest(make: fn(&Path) -> PathBuf, switches: &[Switch]) -> Self {
        let base = tempfile::tempdir().unwrap();
        std::fs::create_dir(base.path().join("work")).unwrap();
        let settings = Settings {
            guest: Some(make(base.path())),
            ..settings(base.path())
        };
        let mut executor = Docker::new(settings).await.unwrap();
        for switch in switches {
            executor = executor.without(*switch);
        }
        Self { base, executor }
    }

    pub(super) fn work(&self) -> PathBuf {
        self.base.path().join("work")
    }

    pub(super) async fn open(&self) -> Box<dyn Sandbox> {
        self.executor.open(spec("r1.1.0", self.work())).await.unwrap()
    }

    /// Runs one script in a sandbox of its own, and returns what it printed.
    pub(super) async fn said(&self, script: &str) -> String {
        let sandbox = self.open().await;
        let result = bash(sandbox.as_ref(), script).await;
        sandbox.close().await.unwrap();
        text(&result)
    }
}

pub(super) fn settings(base: &Path) -> Settings {
    Settings {
        root: base.join("executor"),
        guest: None,
        program: program().into(),
        environment: Vec::new(),
        image: IMAGE.to_owned(),
        path: None,
        limits: Limits {
            memory: MEMORY,
            processes: PROCESSES,
            temporary: TEMPORARY,
            ..Limits::default()
        },
        // Whoever names another engine knows which one.
        may_be_old: if program() == "docker" {
            MayBeOld::No
        } else {
            MayBeOld::OperatorSaysSo
        },
    }
}

pub(super) async fn docker(base: &Path) -> Docker {
    match Docker::new(settings(base)).await {
        Ok(docker) => docker,
        Err(unusable @ Unusable::NoEngine { .. }) => panic!("{unusable}\nrun `cargo xtask setup docker`"),
        Err(unusable) => panic!("{unusable:?}"),
    }
}

/// Asks the engine directly.
#[allow(clippy::disallowed_methods, reason = "a test looks at the engine for itself")]
pub(super) fn engine(arguments: &[&str]) -> String {
    let output = Command::new(program()).args(arguments).output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat())
        .trim()
        .to_owned()
}

/// The containers of one executor, running or not.
pub(super) fn containers(base: &Path) -> Vec<String> {
    let root = base.join("executor/open");
    let filter = format!("label=conductor.root={}", root.display());
    let names = engine(&["ps", "--all", "--filter", &filter, "--format", "{{.Names}}"]);
    names.lines().map(str::to_owned).collect()
}

/// The records of the sandboxes that stand.
pub(super) fn records(base: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(base.join("executor/open"));
    let entries = entries.into_iter().flatten();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

/// Leaves no container behind when a case fails in the middle.
struct Swept(TempDir);

impl Drop for Swept {
    fn drop(&mut self) {
        for name in containers(self.0.path()) {
            engine(&["rm", "--force", &name]);
        }
    }
}

pub(super) async fn subject() -> Subject {
    let base = tempfile::tempdir().unwrap();
    let place = base.path().join("place");
    std::fs::create_dir(&place).unwrap();
    let executor = Arc::new(docker(base.path()).await);
    let root = base.path().to_owned();
    Subject {
        executor,
        place,
        vanish: Arc::new(move |effect: &EffectId| {
            let prefix = format!("conductor-{effect}-");
            for name in containers(&root).iter().filter(|name| name.starts_with(&prefix)) {
                engine(&["rm", "--force", name]);
            }
        }),
        guard: Box::new(Swept(base)),
    }
}
