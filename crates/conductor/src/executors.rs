//! Where agents' commands run: makes the executor that was named, and shows its sandboxes what their runs may read.
//!
//! Nothing falls back to anything: what was named and cannot be made is an error (EXEC-1). This module does not know what
//! runs there.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::id::EffectId;
use conductor_domain::spec::ExecutorName;
use conductor_engine::Executors;
use conductor_executor::local::{self, Limits, MayMiss};
use conductor_executor::{Consent, Docker, Local, Toolchain, UnsafePlain, docker};
use conductor_git::GitWorkspace;
use conductor_port::executor::{Executor, Profile, Sandbox, SandboxSpec};

use crate::environment;
use crate::exit::{Exit, Failure};
use crate::storage::Storage;

/// The executor that was named, with what it needs.
#[derive(Debug)]
pub(crate) enum Named {
    /// A sandbox of namespaces.
    Local {
        /// What one sandbox may use up.
        limits: Limits,
        /// Limits that the operator allows to be missing.
        may_miss: MayMiss,
        /// A guest to use instead of the embedded one.
        guest: Option<PathBuf>,
    },
    /// A container per sandbox.
    Docker(Containers),
    /// No sandbox, with the consent that this takes.
    UnsafePlain(Consent),
}

/// What containers are made with.
#[derive(Debug, Clone)]
pub(crate) struct Containers {
    /// `docker`, or `podman`.
    pub(crate) engine: PathBuf,
    /// The image.
    pub(crate) image: String,
    /// What one sandbox may use up.
    pub(crate) limits: Limits,
    /// Limits that the operator allows to be missing where no container is used, namely for reading worktrees.
    pub(crate) may_miss: MayMiss,
    /// Whether the operator accepts an engine that is too old.
    pub(crate) may_be_old: docker::MayBeOld,
}

impl Named {
    /// Its name.
    pub(crate) fn name(&self) -> ExecutorName {
        match self {
            Self::Local { .. } => ExecutorName::Local,
            Self::Docker(_) => ExecutorName::Docker,
            Self::UnsafePlain(_) => ExecutorName::UnsafePlain,
        }
    }

    /// Makes what reads the worktrees that agents wrote (S-7): always a local sandbox, because a container's image need
    /// not have our git; none where the operator has consented to no sandbox at all.
    pub(crate) fn reader(&self, storage: &Storage) -> Result<Option<Arc<dyn Executor>>, Failure> {
        let (guest, may_miss) = match self {
            Self::Local { guest, may_miss, .. } => (guest.clone(), may_miss.clone()),
            Self::Docker(containers) => (environment::guest(), containers.may_miss.clone()),
            Self::UnsafePlain(_) => return Ok(None),
        };
        let made = Local::new(local::Settings {
            root: storage.reader(),
            guest,
            toolchain: Toolchain::system(),
            limits: Limits::default(),
            may_miss,
        });
        let reader = made.map_err(|error| {
            Failure::coded(
                "CDR0429",
                format!(
                    "what agents write cannot be read in a sandbox here: {}",
                    crate::exit::chain(&error)
                ),
                "install bubblewrap and run Conductor as root, or name the missing limit in `may-miss` of [sandbox]",
            )
            .exiting(Exit::Refused)
        })?;
        Ok(Some(Arc::new(reader)))
    }

    /// Makes it.
    pub(crate) async fn make(
        self,
        storage: &Storage,
        toolchain: Toolchain,
        workspace: &GitWorkspace,
    ) -> Result<Executors, Failure> {
        let name = self.name();
        let executor: Arc<dyn Executor> = match self {
            Self::Local {
                limits,
                may_miss,
                guest,
            } => Arc::new(WithObjects {
                inner: Box::new(local(local::Settings {
                    root: storage.local_executor(),
                    guest,
                    toolchain,
                    limits,
                    may_miss,
                })?),
                workspace: workspace.clone(),
            }),
            Self::Docker(containers) => Arc::new(WithObjects {
                inner: Box::new(containers.make(storage.docker_executor()).await?),
                workspace: workspace.clone(),
            }),
            Self::UnsafePlain(consent) => Arc::new(UnsafePlain::for_demo_and_tests(
                consent,
                storage.sandboxes(),
                toolchain,
            )),
        };
        Ok(Executors::default().with(name, executor))
    }
}

/// Makes the local executor, or says what this machine lacks.
pub(crate) fn local(settings: local::Settings) -> Result<Local, Failure> {
    Local::new(settings).map_err(|error| {
        Failure::coded(
            "CDR0419",
            format!("executor `local` cannot be used here: {}", crate::exit::chain(&error)),
            "install bubblewrap and run Conductor as root, or name the missing limit in `may-miss` of [sandbox]",
        )
        .exiting(Exit::Refused)
    })
}

impl Containers {
    /// Makes the docker executor, or says why no container can be trusted here.
    pub(crate) async fn make(self, root: PathBuf) -> Result<Docker, Failure> {
        let made = Docker::new(docker::Settings {
            root,
            guest: environment::guest(),
            program: self.engine,
            environment: environment::engine(),
            image: self.image,
            path: None,
            limits: self.limits,
            may_be_old: self.may_be_old,
        });
        made.await.map_err(|error| {
            Failure::coded(
                "CDR0420",
                format!(
                    "executor `docker` cannot be used here: {}",
                    crate::exit::chain(&error)
                ),
                "start the engine, update it, or accept it: `--old-engine`, or `old-engine = true` in [sandbox] for the server",
            )
            .exiting(Exit::Refused)
        })
    }
}

/// An executor whose tool sandboxes may read the objects that their working directory borrows from (S-5).
#[derive(Debug)]
struct WithObjects {
    inner: Box<dyn Executor>,
    workspace: GitWorkspace,
}

#[async_trait]
impl Executor for WithObjects {
    async fn open(&self, mut spec: SandboxSpec) -> Result<Box<dyn Sandbox>, Fault> {
        match spec.profile {
            Profile::Tool => spec.readable.extend(self.workspace.borrowed_objects(&spec.run)?),
            // Neither has a repository: an agent's program sees no worktree, a test sees a tree without `.git`.
            // And whoever reads a worktree names its objects itself.
            Profile::Agent | Profile::Test | Profile::Snapshot => {}
        }
        self.inner.open(spec).await
    }

    async fn reap(&self, effect: &EffectId) -> Result<(), Fault> {
        self.inner.reap(effect).await
    }
}
