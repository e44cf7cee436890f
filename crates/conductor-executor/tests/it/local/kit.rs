//! Makes local executors with the contract's limits, and looks at what stands on the host.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use conductor_contract::executor::{MEMORY, PROCESSES, Subject, TEMPORARY};
use conductor_domain::id::EffectId;
use conductor_executor::local::{Limits, MayMiss, Protection, Settings, Switch};
use conductor_executor::{Local, Toolchain};
use conductor_port::executor::{Executor as _, Sandbox};
use tempfile::TempDir;

use crate::kit::{bash, spec, text};

pub(super) struct Ground {
    pub(super) base: TempDir,
    pub(super) executor: Local,
}

impl Ground {
    pub(super) fn new() -> Self {
        Self::with(Toolchain::system(), &[])
    }

    /// One that lacks these protections.
    pub(super) fn without(switches: &[Switch]) -> Self {
        Self::with(Toolchain::system(), switches)
    }

    pub(super) fn with(toolchain: Toolchain, switches: &[Switch]) -> Self {
        let base = tempfile::tempdir().unwrap();
        std::fs::create_dir(base.path().join("work")).unwrap();
        let mut executor = local(base.path(), toolchain);
        for switch in switches {
            executor = executor.without(*switch);
        }
        Self { base, executor }
    }

    /// One with other limits than the contract's.
    pub(super) fn limited(limits: Limits, switches: &[Switch]) -> Self {
        let base = tempfile::tempdir().unwrap();
        std::fs::create_dir(base.path().join("work")).unwrap();
        let mut executor = local_with(base.path(), Toolchain::system(), limits);
        for switch in switches {
            executor = executor.without(*switch);
        }
        Self { base, executor }
    }

    /// One whose sandboxes have another guest.
    pub(super) fn with_guest(make: fn(&Path) -> PathBuf, switches: &[Switch]) -> Self {
        let base = tempfile::tempdir().unwrap();
        std::fs::create_dir(base.path().join("work")).unwrap();
        let guest = make(base.path());
        let settings = settings(base.path(), Toolchain::system(), Limits::default());
        let mut executor = made(Settings {
            guest: Some(guest),
            ..settings
        });
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

pub(super) fn local(base: &Path, toolchain: Toolchain) -> Local {
    let limits = Limits {
        memory: MEMORY,
        processes: PROCESSES,
        temporary: TEMPORARY,
        ..Limits::default()
    };
    local_with(base, toolchain, limits)
}

fn local_with(base: &Path, toolchain: Toolchain, limits: Limits) -> Local {
    made(settings(base, toolchain, limits))
}

fn made(settings: Settings) -> Local {
    Local::new(settings).expect("bubblewrap is here (cargo xtask setup bubblewrap)")
}

fn settings(base: &Path, toolchain: Toolchain, limits: Limits) -> Settings {
    let is_root = rustix::process::geteuid().is_root();
    Settings {
        root: base.join("executor"),
        guest: None,
        toolchain,
        limits,
        // Only root can make cgroups; the cases that need one then say so.
        may_miss: if is_root {
            MayMiss::default()
        } else {
            MayMiss::these(Protection::ALL)
        },
    }
}

/// Fails for anybody but root, where nobody else can show what a test is about: one that showed nothing has not passed.
#[track_caller]
pub(super) fn needs_root() {
    assert!(
        rustix::process::geteuid().is_root(),
        "needs root: nobody else has other users or cgroups to give"
    );
}

/// The records of the sandboxes that stand.
pub(super) fn records(base: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(base.join("executor/open"));
    let entries = entries.into_iter().flatten();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

/// The host's processes that stand in a sandbox's cgroup.
pub(super) fn members(record: &str) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap() {
        let path = entry.unwrap().path();
        let groups = std::fs::read_to_string(path.join("cgroup")).unwrap_or_default();
        if groups.lines().any(|line| line.ends_with(&format!("/{record}"))) {
            found.extend(path.file_name().unwrap().to_str().unwrap().parse::<i32>());
        }
    }
    found
}

pub(super) async fn subject() -> Subject {
    let base = tempfile::tempdir().unwrap();
    let place = base.path().join("place");
    std::fs::create_dir(&place).unwrap();
    let executor = Arc::new(local(base.path(), Toolchain::system()));
    let root = base.path().to_owned();
    Subject {
        executor,
        place,
        vanish: Arc::new(move |effect: &EffectId| {
            let prefix = format!("{effect}-");
            for record in records(&root).iter().filter(|name| name.starts_with(&prefix)) {
                for pid in members(record) {
                    let pid = rustix::process::Pid::from_raw(pid).unwrap();
                    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                }
            }
        }),
        guard: Box::new(base),
    }
}
