//! Runs commands in a container per sandbox, through the `docker` command only, so that Podman does as well (EXEC-2).
//!
//! The guest is the container's entrypoint under one held `run -i`: PID 1, read-only, static (S-14). The container has
//! no network, no capability, no new privileges, our list of system calls, a read-only root and a uid of the run's own.
//! Nothing is ever executed in or copied out of a container beside its guest (S-16, S-45), and no secret stands in an
//! argument or in its environment (S-44). The engine must share the host's file system.
//! This module does not know what a command is for, nor what is in the image.

mod cli;
mod engine;
mod stage;
mod counters;
mod outside;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use conductor_domain::digest::Digest;
use conductor_domain::fault::Fault;
use conductor_domain::id::EffectId;
use conductor_guest::seccomp;
use conductor_port::executor::{Executor, Profile, Sandbox, SandboxSpec};
use conductor_port::switches;

use crate::given;
use crate::guest;
use crate::home::Home;
use crate::identity;
use crate::launcher;
use crate::limits::Limits;
use crate::sandbox::{Forward, GuestSandbox};
use cli::Cli;
use outside::DockerOutside;

pub use engine::{Engine, MayBeOld, OLDEST_ENGINE, OLDEST_RUNC};

/// Where programs are looked for inside, unless the settings say otherwise.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The public image that sandboxes start from when nothing else is said.
pub const BASE_IMAGE: &str = "debian:12";

/// Why containers cannot be used on this machine.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// The engine does not answer.
    #[error("no container engine answers to `{program}`: {said}")]
    NoEngine {
        /// The program that was asked.
        program: String,
        /// What it said.
        said: String,
    },
    /// A part of the engine is older than what is still safe (S-45).
    #[error("{part} {found} is older than {oldest}, the oldest that has every known escape mended")]
    TooOld {
        /// Which part.
        part: &'static str,
        /// Its version.
        found: String,
        /// The oldest that will do.
        oldest: String,
    },
    /// What the executor needs on disk cannot be made.
    #[error("preparing the docker executor in {}", path.display())]
    Disk {
        /// Where.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// What the docker executor is made with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// A directory of its own, where it keeps the guest and the records of its containers.
    pub root: PathBuf,
    /// A guest to use instead of the embedded one.
    pub guest: Option<PathBuf>,
    /// `docker`, or `podman`, or where one of them is.
    pub program: PathBuf,
    /// What that program needs in its own environment, such as `DOCKER_HOST`; nothing of it reaches a container.
    pub environment: Vec<(OsString, OsString)>,
    /// The image; it is never pulled.
    pub image: String,
    /// Where programs are looked for inside.
    pub path: Option<OsString>,
    /// What one sandbox may use up.
    pub limits: Limits,
    /// Whether the operator accepts an engine that is too old.
    pub may_be_old: MayBeOld,
}

/// Looks at the engine without using it (S-45).
pub async fn examine(program: &Path, environment: Vec<(OsString, OsString)>) -> Result<Engine, Unusable> {
    let config = tempfile::tempdir().map_err(|source| Unusable::Disk {
        path: std::env::temp_dir(),
        source,
    })?;
    cli::configure(config.path()).map_err(|source| Unusable::Disk {
        path: config.path().to_owned(),
        source,
    })?;
    let cli = Cli::new(program.to_owned(), config.path().to_owned(), environment);
    let engine = Engine::ask(&cli).await?;
    engine.check(MayBeOld::No)?;
    Ok(engine)
}

/// The executor with a container per sandbox.
#[derive(Debug)]
pub struct Docker {
    root: PathBuf,
    cli: Cli,
    guest: PathBuf,
    seccomp: PathBuf,
    image: String,
    path: OsString,
    limits: Limits,
    /// The sandboxes that this process has open; what is not among them was left behind.
    open: Arc<Mutex<BTreeSet<PathBuf>>>,
    /// Protections that a test left out.
    without: Vec<Switch>,
}

switches! {
    /// `--network none` (EXEC-3).
    NoNetwork,
    /// `--read-only` (S-3).
    ReadOnlyRoot,
    /// `--cap-drop ALL`.
    NoCapabilities,
    /// `--security-opt no-new-privileges`.
    NoNewPrivileges,
    /// `--security-opt seccomp=` (S-40).
    Seccomp,
    /// `--pids-limit` (EXEC-6).
    ProcessLimit,
    /// `--memory` and `--memory-swap` (EXEC-6, S-42).
    MemoryLimit,
    /// `--cpus` (EXEC-6).
    CpuLimit,
    /// `--ulimit nofile` (EXEC-6).
    OpenFiles,
    /// The sizes of `/tmp` and HOME (S-3).
    SizedTmpfs,
    /// `/sys` covered (S-3).
    HiddenSys,
    /// `--user` (S-1, S-2).
    OwnUid,
    /// The engine's log of everything that the guest sends.
    NoLog,
    /// The guest mounted read-only (S-14).
    ReadOnlyGuest,
    /// What a sandbox may read besides, read-only (S-5).
    ReadOnlyObjects,
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

impl Docker {
    /// Asks the engine for its versions, and refuses one that is too old.
    pub async fn new(settings: Settings) -> Result<Self, Unusable> {
        let disk = |source| Unusable::Disk {
            path: settings.root.clone(),
            source,
        };
        std::fs::create_dir_all(&settings.root).map_err(disk)?;
        let root = settings.root.canonicalize().map_err(disk)?;
        let config = root.join("client");
        std::fs::create_dir_all(&config).map_err(disk)?;
        cli::configure(&config).map_err(disk)?;
        let cli = Cli::new(settings.program, config, settings.environment);
        Engine::ask(&cli).await?.check(settings.may_be_old)?;
        let guest = match settings.guest {
            Some(guest) => guest,
            None => guest::install(&root).map_err(disk)?,
        };
        let profile = seccomp::docker_profile_json();
        let seccomp = root.join(format!("seccomp-{}.json", Digest::of(profile.as_bytes()).short()));
        std::fs::write(&seccomp, profile).map_err(disk)?;
        Ok(Self {
            root: root.join("open"),
            cli,
            guest,
            seccomp,
            image: settings.image,
            path: settings.path.unwrap_or_else(|| PATH.into()),
            limits: settings.limits,
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

    /// Records the container before it exists (ENV-2); the record names it.
    fn record(&self, effect: &EffectId) -> Result<Home, Fault> {
        let home = Home::make(&self.root, effect).map_err(|error| {
            Fault::transient(format!(
                "recording a container in {}: {error}",
                self.root.display()
            ))
        })?;
        self.opened().insert(home.path().to_owned());
        Ok(home)
    }

    fn opened(&self) -> std::sync::MutexGuard<'_, BTreeSet<PathBuf>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn environment(&self, spec: &SandboxSpec) -> Vec<(OsString, OsString)> {
        let own = [
            ("PATH".into(), self.path.clone()),
            ("HOME".into(), stage::HOME.into()),
            ("TMPDIR".into(), "/tmp".into()),
            ("LANG".into(), "C.UTF-8".into()),
        ];
        let given = spec.environment.iter();
        let given = given.map(|(key, value)| (OsString::from(key), OsString::from(value)));
        own.into_iter().chain(given).collect()
    }

    /// Says what a person can do about a container that did not start.
    fn explain(&self, fault: Fault) -> Fault {
        let is_missing = ["Unable to find image", "No such image", "image not known"]
            .iter()
            .any(|words| fault.what.contains(words));
        if is_missing {
            let (image, program) = (&self.image, self.cli.program());
            return Fault::permanent(format!(
                "the engine does not have the image `{image}`; images are never pulled during a run: `{program} pull {image}`"
            ));
        }
        fault
    }
}

#[async_trait]
impl Executor for Docker {
    async fn open(&self, spec: SandboxSpec) -> Result<Box<dyn Sandbox>, Fault> {
        match spec.profile {
            Profile::Agent | Profile::Tool | Profile::Test => {}
            Profile::Snapshot => {
                return Err(Fault::permanent(
                    "executor `docker` reads no worktree: its image need not have our git; `local` does (S-7)",
                ));
            }
        }
        let who = identity::of_run(&spec.run, self.has(Switch::OwnUid))?;
        let (dir, sockets): (PathBuf, Vec<PathBuf>) = (
            spec.dir.clone(),
            spec.ways.iter().map(|way| way.socket.clone()).collect(),
        );
        tokio::task::spawn_blocking(move || identity::give(&dir, &sockets, who))
            .await
            .map_err(|error| Fault::transient(format!("giving a directory to a container: {error}")))??;
        let home = self.record(&spec.effect)?;
        let name = container(home.path());
        let arguments = given::lay(&spec.given, home.path())
            .and_then(|laid| stage::arguments(self, &spec, &laid, who, &name));
        let launched = match arguments {
            Ok(arguments) => launcher::launch(self.cli.command(arguments))
                .await
                .map_err(|error| Fault::transient(format!("starting `{}`: {error}", self.cli.program()))),
            Err(fault) => Err(fault),
        };
        let launched = match launched {
            Ok(launched) => launched,
            Err(fault) => {
                outside::forget(&self.open, home.path())?;
                return Err(fault);
            }
        };
        let outside = DockerOutside::new(
            (self.cli.clone(), name, launched.process.clone()),
            home.path().to_owned(),
            Arc::clone(&self.open),
            self.without.clone(),
        );
        let forwards: Vec<Forward> = spec
            .ways
            .iter()
            .enumerate()
            .map(|(number, way)| Forward {
                port: way.port,
                socket: stage::way(number),
            })
            .collect();
        let sandbox = GuestSandbox::meet(launched, outside.clone(), self.environment(&spec), &forwards)
            .await
            .map_err(|fault| self.explain(fault))?;
        let sandbox = Box::new(sandbox);
        if let Err(fault) = outside.find_counters().await {
            sandbox.close().await?;
            return Err(fault);
        }
        Ok(sandbox)
    }

    async fn reap(&self, effect: &EffectId) -> Result<(), Fault> {
        let attempt =
            |error| Fault::transient(format!("reaping {effect} in {}: {error}", self.root.display()));
        let mut left = Home::of_effect(&self.root, effect).map_err(attempt)?;
        left.retain(|path| !self.opened().contains(path));
        for path in left {
            self.cli.remove(&container(&path)).await?;
            outside::forget(&self.open, &path)?;
        }
        Ok(())
    }
}

/// The container of a record: its name begins with the effect.
fn container(record: &Path) -> String {
    let name = record.file_name().unwrap_or_default().to_string_lossy();
    format!("conductor-{name}")
}
