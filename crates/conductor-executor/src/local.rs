//! Runs commands in a sandbox of namespaces: bubblewrap, seccomp, cgroups, one guest as PID 1 (EXEC-2…7, S-1…S-3, S-40…S-44).
//!
//! A sandbox sees `/usr` and the toolchains read-only, generated files as `/etc`, its one directory as `/w`, a `/tmp`, a
//! HOME and a `/dev/shm` of bounded size, and no network but loopback. Conductor as root drops to a uid of the run's own
//! before bubblewrap starts; whatever the kernel refuses is an error that names it, unless the operator allowed exactly
//! that to be missing. A profile decides nothing here but what the caller put into the spec: three sandboxes are three
//! calls (EXEC-3a).
//! This module does not know what a command is for.

mod etc;
mod view;
mod stage;
mod cgroup;
mod outside;

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::id::EffectId;
use conductor_port::executor::{Executor, Sandbox, SandboxSpec};
use conductor_port::switches;

use crate::given;
use crate::guest;
use crate::home::{self, Home};
use crate::identity;
use crate::launcher;
use crate::process;
use crate::sandbox::{Forward, GuestSandbox};
use crate::toolchain::Toolchain;
use cgroup::{Cgroup, Cgroups};
use etc::Etc;
use outside::LocalOutside;
use view::View;

pub use crate::identity::{NotOnes, Owner, owner_of, take_back};
pub use crate::limits::{Limits, MayMiss, Protection};

/// Where bubblewrap is looked for.
const BWRAP: [&str; 2] = ["/usr/bin/bwrap", "/usr/local/bin/bwrap"];

/// How long a killed sandbox may take to be gone.
const LAST_MOMENTS: Duration = Duration::from_secs(10);

/// Why there is no local sandbox on this machine.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// The program that makes namespaces is not there.
    #[error("bubblewrap is not installed; install the package `bubblewrap`")]
    NoBubblewrap,
    /// A limit cannot be enforced.
    #[error(
        "no writable cgroup enforces the {0} limit; run Conductor as root, delegate a cgroup to it, or allow exactly \
         this protection to be missing"
    )]
    NoLimit(Protection),
    /// What the executor needs on disk cannot be made.
    #[error("preparing the local executor in {path}")]
    Disk {
        /// Where.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// What the local executor is made with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// A directory of its own, where it keeps the guest and the records of its sandboxes.
    pub root: PathBuf,
    /// A guest to use instead of the embedded one.
    pub guest: Option<PathBuf>,
    /// What commands may call.
    pub toolchain: Toolchain,
    /// What one sandbox may use up.
    pub limits: Limits,
    /// Limits that the operator allows to be missing on this machine.
    pub may_miss: MayMiss,
}

/// The executor with a sandbox of namespaces.
#[derive(Debug)]
pub struct Local {
    root: PathBuf,
    bwrap: PathBuf,
    guest: PathBuf,
    etc: Etc,
    toolchain: Toolchain,
    limits: Limits,
    cgroups: Cgroups,
    /// The sandboxes that this process has open; what is not among them was left behind.
    open: Arc<Mutex<BTreeSet<PathBuf>>>,
    /// Protections that a test left out.
    without: Vec<Switch>,
}

switches! {
    /// The uid of the run's own (S-1).
    OwnUid,
    /// A user namespace, in which the run's uid is the only one (S-1, S-41).
    UserNamespace,
    /// A process namespace, whose first process is the guest (S-14).
    PidNamespace,
    /// A network namespace: no network but loopback (EXEC-3).
    NoNetwork,
    /// A namespace of its own for shared memory and queues.
    IpcNamespace,
    /// A host name of its own.
    UtsNamespace,
    /// A view of cgroups of its own.
    CgroupNamespace,
    /// No capability, in whatever namespace.
    NoCapabilities,
    /// Ended with the process that started it (S-41).
    DieWithParent,
    /// A session of its own (S-41).
    NewSession,
    /// No further user namespaces (S-41).
    DisabledUserns,
    /// The list of system calls (S-40).
    Seccomp,
    /// `/` and `/dev` read-only, so that every writable tmpfs has a size (S-3).
    ReadOnlyRoot,
    /// A `/dev` of its own, with nothing of the host's in it (S-3).
    OwnDev,
    /// `/proc/sys` read-only (S-2).
    ReadOnlyProcSys,
    /// The generated `/etc` (S-3).
    GeneratedEtc,
    /// The toolchains read-only (EXEC-4).
    ReadOnlySystem,
    /// The guest read-only (S-14).
    ReadOnlyGuest,
    /// What a sandbox may read besides, read-only (S-5).
    ReadOnlyObjects,
    /// The worktree of a snapshot read-only (S-7).
    ReadOnlySnapshot,
    /// The size of `/tmp`, HOME and `/dev/shm` (S-3).
    SizedTmpfs,
    /// The memory limit (EXEC-6, S-42).
    MemoryLimit,
    /// The process limit (EXEC-6, S-42).
    ProcessLimit,
    /// The limit of processor time (EXEC-6).
    CpuLimit,
    /// The limit of open files (EXEC-6).
    OpenFiles,
    /// What a sandbox is given, such as skills, read-only (EXEC-4).
    ReadOnlyGiven,
    /// The sockets of the ways out read-only: to be knocked at, not to be changed (S-32).
    ReadOnlyWays,
    /// A lost guest ends its sandbox (S-16).
    EndsWithGuest,
    /// A limit that was met is told, whatever the command made of it (S-18, S-42).
    ToldLimits,
    /// Killing ends everything inside, and waits for it (S-43).
    KillsInside,
}

impl Local {
    /// Looks for what it needs, and refuses what the machine cannot protect against.
    pub fn new(settings: Settings) -> Result<Self, Unusable> {
        let disk = |source| Unusable::Disk {
            path: settings.root.clone(),
            source,
        };
        let bwrap = BWRAP.map(PathBuf::from).into_iter().find(|path| path.is_file());
        let bwrap = bwrap.ok_or(Unusable::NoBubblewrap)?;
        let cgroups = Cgroups::find();
        if let Some(missing) = cgroups.missing().find(|missing| !settings.may_miss.has(*missing)) {
            return Err(Unusable::NoLimit(missing));
        }
        std::fs::create_dir_all(&settings.root).map_err(disk)?;
        let root = settings.root.canonicalize().map_err(disk)?;
        let guest = match settings.guest {
            Some(guest) => guest,
            None => guest::install(&root).map_err(disk)?,
        };
        let etc = Etc::generate(&root).map_err(disk)?;
        Ok(Self {
            root: root.join("open"),
            bwrap,
            guest,
            etc,
            toolchain: settings.toolchain,
            limits: settings.limits,
            cgroups,
            open: Arc::default(),
            without: Vec::new(),
        })
    }

    /// Leaves a protection out, so that a test can show what it is for.
    #[doc(hidden)]
    #[cfg(debug_assertions)]
    #[must_use]
    pub fn without(mut self, switch: Switch) -> Self {
        self.without.push(switch);
        self
    }

    fn has(&self, switch: Switch) -> bool {
        !self.without.contains(&switch)
    }

    /// Records the sandbox before anything of it exists (ENV-2).
    fn record(&self, effect: &EffectId) -> Result<(Home, Cgroup), Fault> {
        let home = Home::make(&self.root, effect).map_err(|error| {
            Fault::transient(format!("recording a sandbox in {}: {error}", self.root.display()))
        })?;
        self.opened().insert(home.path().to_owned());
        let name = name_of(home.path());
        let cgroup = self.cgroups.make(&name, &self.effective_limits());
        match cgroup {
            Ok(cgroup) => Ok((home, cgroup)),
            Err(error) => {
                self.opened().remove(home.path());
                let _ = home::remove(home.path());
                Err(Fault::transient(format!(
                    "making the cgroup of a sandbox: {error}"
                )))
            }
        }
    }

    fn effective_limits(&self) -> Limits {
        let mut limits = self.limits;
        if !self.has(Switch::MemoryLimit) {
            limits.memory = u64::MAX / 2;
        }
        if !self.has(Switch::ProcessLimit) {
            limits.processes = 100_000;
        }
        if !self.has(Switch::CpuLimit) {
            limits.milli_cpus = 1_000_000;
        }
        limits
    }

    fn opened(&self) -> std::sync::MutexGuard<'_, BTreeSet<PathBuf>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn environment(&self, spec: &SandboxSpec) -> Vec<(OsString, OsString)> {
        let own = [
            ("PATH".into(), self.toolchain.path()),
            ("HOME".into(), view::HOME.into()),
            ("TMPDIR".into(), "/tmp".into()),
            ("LANG".into(), "C.UTF-8".into()),
        ];
        let given = spec.environment.iter();
        let given = given.map(|(key, value)| (OsString::from(key), OsString::from(value)));
        own.into_iter().chain(given).collect()
    }
}

#[async_trait]
impl Executor for Local {
    async fn open(&self, spec: SandboxSpec) -> Result<Box<dyn Sandbox>, Fault> {
        let who = identity::of_run(&spec.run, self.has(Switch::OwnUid))?;
        let (dir, sockets): (PathBuf, Vec<PathBuf>) = (
            spec.dir.clone(),
            spec.ways.iter().map(|way| way.socket.clone()).collect(),
        );
        tokio::task::spawn_blocking(move || identity::give(&dir, &sockets, who))
            .await
            .map_err(|error| Fault::transient(format!("giving a directory to a sandbox: {error}")))??;
        let (home, cgroup) = self.record(&spec.effect)?;
        let home_path = home.path().to_owned();
        let laid = match given::lay(&spec.given, &home_path) {
            Ok(laid) => laid,
            Err(fault) => {
                outside::forget(&self.open, &home_path, &cgroup).await?;
                return Err(fault);
            }
        };
        let view = View::new(self, &spec, &laid);
        let command = stage::command(self, view, &cgroup, who);
        let launched = match command {
            Ok(command) => launcher::launch(command).await,
            Err(error) => Err(error),
        };
        let launched = match launched {
            Ok(launched) => launched,
            Err(error) => {
                outside::forget(&self.open, &home_path, &cgroup).await?;
                return Err(Fault::transient(format!("starting a sandbox: {error}")));
            }
        };
        let pid = i32::try_from(launched.process.pid()).unwrap_or(0);
        // One that ended already has nothing to be ended by a later process.
        if let Ok(identity) = process::identify(pid) {
            home.note(identity)
                .map_err(|error| Fault::transient(format!("noting a sandbox: {error}")))?;
        }
        let outside = LocalOutside::new(
            launched.process.clone(),
            cgroup,
            home_path,
            Arc::clone(&self.open),
            self.without.clone(),
        );
        let forwards: Vec<Forward> = spec
            .ways
            .iter()
            .enumerate()
            .map(|(number, way)| Forward {
                port: way.port,
                socket: view::way(number),
            })
            .collect();
        let sandbox = GuestSandbox::meet(launched, outside, self.environment(&spec), &forwards).await?;
        Ok(Box::new(sandbox))
    }

    async fn reap(&self, effect: &EffectId) -> Result<(), Fault> {
        let attempt =
            |error| Fault::transient(format!("reaping {effect} in {}: {error}", self.root.display()));
        let mut left: VecDeque<PathBuf> = Home::of_effect(&self.root, effect).map_err(attempt)?.into();
        left.retain(|path| !self.opened().contains(path));
        for path in left {
            for identity in home::noted(&path) {
                process::kill(identity);
            }
            let cgroup = self.cgroups.of(&name_of(&path));
            outside::until_gone(&cgroup).await?;
            home::remove(&path).map_err(attempt)?;
        }
        Ok(())
    }
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}
