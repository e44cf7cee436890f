//! A sandbox over somebody's own directory, for commands that need no server.
//!
//! The directory changes hands while the sandbox has it and is given back after it. This module does not know what is
//! done there.

use std::path::{Path, PathBuf};

use conductor_domain::id::{EffectId, RunId};
use conductor_domain::spec::ExecutorName;
use conductor_executor::choice;
use conductor_executor::docker::MayBeOld;
use conductor_executor::local::{self, MayMiss, Protection};
use conductor_port::executor::{Executor, Profile, Sandbox, SandboxSpec};
use tempfile::TempDir;

use crate::clock::mint_run;
use crate::command::serve;
use crate::environment;
use crate::executors;
use crate::exit::{Exit, Failure};
use crate::settings::ToldSandbox;

/// Where, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct PlaceArgs {
    /// Where it runs: `local` or `docker`; must be named
    #[arg(long, value_name = "NAME")]
    executor: Option<String>,
    /// The image of the sandbox; only for an executor that runs containers [default: debian:12]
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// The program that runs containers, `docker` unless named: `podman`, or where one of them is
    #[arg(long, value_name = "PROGRAM")]
    engine: Option<PathBuf>,
    /// Accepts an engine with a known way out of its containers
    #[arg(long)]
    old_engine: bool,
    /// The one directory that it works in
    #[arg(long, value_name = "DIR")]
    worktree: PathBuf,
    /// Allows a limit to be missing where no cgroup can be written: memory, processes or cpu
    #[arg(long, value_name = "LIMIT")]
    may_miss: Vec<Protection>,
}

impl PlaceArgs {
    fn is_about_containers(&self) -> bool {
        self.image.is_some() || self.engine.is_some() || self.old_engine
    }
}

/// An open sandbox and whose directory it has.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) executor: ExecutorName,
    pub(crate) run: RunId,
    pub(crate) effect: EffectId,
    pub(crate) sandbox: Box<dyn Sandbox>,
    rest: Rest,
}

/// What is given back when the sandbox is closed.
#[derive(Debug)]
pub(crate) struct Rest {
    worktree: PathBuf,
    owner: Option<local::Owner>,
    /// Ends last: sandboxes have their directories in it.
    _scratch: TempDir,
}

impl Place {
    /// Opens the sandbox.
    pub(crate) async fn open(args: &PlaceArgs) -> Result<Self, Failure> {
        let executor = choice::choose(args.executor.as_deref(), None).map_err(|refused| {
            Failure::coded(
                "CDR0405",
                refused.to_string(),
                "name it, as in `--executor local`",
            )
            .exiting(Exit::Refused)
        })?;
        match executor {
            ExecutorName::Local if args.is_about_containers() => {
                return Err(Failure::new(
                    "executor `local` runs no containers: it has neither image nor engine",
                )
                .exiting(Exit::Usage));
            }
            ExecutorName::Local | ExecutorName::Docker => {}
            ExecutorName::UnsafePlain => {
                return Err(Failure::new("there is no consent to run without a sandbox"));
            }
        }
        let worktree = args.worktree.canonicalize().map_err(|error| {
            let what = format!("finding the worktree {}", args.worktree.display());
            Failure {
                hint: Some("name a directory that is there".to_owned()),
                ..Failure::because(what, &error).exiting(Exit::Usage)
            }
        })?;
        if !worktree.is_dir() {
            let what = format!("the worktree {} is no directory", args.worktree.display());
            return Err(Failure::new(what).exiting(Exit::Usage));
        }
        let scratch = tempfile::tempdir().map_err(|error| Failure::because("making a directory", &error))?;
        let made = make(executor, args, scratch.path().to_owned()).await?;
        let run = mint_run();
        let effect = EffectId::derive(&run, 1, 0);
        let spec = SandboxSpec::new(effect.clone(), run.clone(), Profile::Tool, worktree.clone());
        let rest = Rest {
            owner: owner_of(&worktree)?,
            worktree,
            _scratch: scratch,
        };
        let sandbox = match made.open(spec).await {
            Ok(sandbox) => sandbox,
            Err(fault) => {
                // The worktree may have changed hands before it failed.
                rest.give_back()?;
                return Err(fault.into());
            }
        };
        Ok(Self {
            executor,
            run,
            effect,
            sandbox,
            rest,
        })
    }

    /// Hands the sandbox over to who closes it; the rest is given back after that.
    pub(crate) fn part(self) -> (Box<dyn Sandbox>, Rest) {
        (self.sandbox, self.rest)
    }

    /// Closes the sandbox and gives its directory back, whatever comes of the first.
    pub(crate) async fn close(self) -> Result<(), Failure> {
        let closed = self.sandbox.close().await;
        self.rest.give_back()?;
        Ok(closed?)
    }
}

impl Rest {
    /// Gives the directory back to its owner; as anybody but root it never changed hands.
    pub(crate) fn give_back(self) -> Result<(), Failure> {
        let Some(owner) = self.owner else {
            return Ok(());
        };
        local::take_back(&self.worktree, owner).map_err(|error| {
            let what = format!("giving {} back", self.worktree.display());
            let mut failure = Failure::because(what, &error);
            failure.hint = Some(format!(
                "some of it may belong to a user of the sandbox's own: `chown -R {}:{} {}`",
                owner.uid,
                owner.gid,
                self.worktree.display()
            ));
            failure
        })
    }
}

async fn make(executor: ExecutorName, args: &PlaceArgs, root: PathBuf) -> Result<Box<dyn Executor>, Failure> {
    Ok(match executor {
        ExecutorName::Docker => {
            let mut containers = ToldSandbox::default().containers();
            containers.image = args.image.clone().unwrap_or(containers.image);
            containers.engine = args.engine.clone().unwrap_or(containers.engine);
            if args.old_engine {
                containers.may_be_old = MayBeOld::OperatorSaysSo;
            }
            Box::new(containers.make(root).await?)
        }
        ExecutorName::Local | ExecutorName::UnsafePlain => Box::new(executors::local(local::Settings {
            root,
            guest: environment::guest(),
            toolchain: serve::toolchain().await,
            limits: local::Limits::default(),
            may_miss: MayMiss::these(args.may_miss.iter().copied()),
        })?),
    })
}

/// Whose the worktree is; as anybody but root it never changes hands, so nobody asks.
fn owner_of(worktree: &Path) -> Result<Option<local::Owner>, Failure> {
    if !nix::unistd::geteuid().is_root() {
        return Ok(None);
    }
    let owner = local::owner_of(worktree).map_err(|error| {
        Failure::coded(
            "CDR0423",
            format!("the worktree {} cannot be lent: {error}", worktree.display()),
            "name a directory that is one user's with all that is in it, such as a fresh clone",
        )
        .exiting(Exit::Refused)
    })?;
    Ok(Some(owner))
}
