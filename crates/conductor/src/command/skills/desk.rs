//! What every skills command works with: the file, its lock, the places, the sources; and one writer at a time.
//!
//! This module does not know any command.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::id::CommitId;
use conductor_git::{Git, GitUpstream, Layout, Protocol};
use conductor_port::target::Changed;
use conductor_port::upstream::Upstream;
use conductor_skill::config::{self, Config};
use conductor_skill::environment::{Environment, Unknown};
use conductor_skill::lock::Lock;
use conductor_skill::name::SkillName;
use conductor_skill::resolve::Freshness;
use conductor_skill::targets::Surroundings;
use conductor_skill::work::{self, Work};
use tokio::sync::OnceCell;

use super::{How, Scope};
use crate::environment;
use crate::exit::{Exit, Failure, chain};
use crate::out::Out;
use crate::session::Session;

/// What a command works with.
#[derive(Debug)]
pub(super) struct Desk {
    /// Where words go.
    pub(super) out: Out,
    /// The file.
    pub(super) file: PathBuf,
    /// The home directory.
    pub(super) home: Option<PathBuf>,
}

/// Whether a command may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writing {
    /// It may.
    Allowed,
    /// Not a byte.
    Nothing,
}

impl Desk {
    /// Finds the file.
    pub(super) fn new(session: &Session, config: Option<PathBuf>) -> Result<Self, Failure> {
        let file = config.unwrap_or_else(|| session.data_dir.path().join("skills/skills.toml"));
        let file = std::path::absolute(&file)
            .map_err(|error| Failure::because(format!("finding {}", file.display()), &error))?;
        Ok(Self {
            out: session.out,
            file,
            home: environment::home(),
        })
    }

    /// The text of the file, if there is one.
    pub(super) fn text(&self) -> Result<Option<String>, Failure> {
        match fs::read_to_string(&self.file) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Failure::because(
                format!("reading {}", self.file.display()),
                &error,
            )),
        }
    }

    /// Reads the file.
    pub(super) fn config(&self) -> Result<Config, Failure> {
        Config::read(&self.file, self.home.as_deref()).map_err(|error| of_config(&error))
    }

    /// Reads a text as if it stood in the file.
    pub(super) fn parse(&self, text: &str) -> Result<Config, Failure> {
        Config::parse(text, &self.file, self.home.as_deref()).map_err(|error| of_config(&error))
    }

    /// Reads the lock.
    pub(super) fn lock(&self) -> Result<Lock, Failure> {
        let (lock, warning) = Lock::read(&Lock::beside(&self.file)).map_err(|error| of_config(&error))?;
        if let Some(warning) = warning {
            self.out.talk(&format!("warning: {warning}"));
        }
        Ok(lock)
    }

    /// Brings everything together.
    pub(super) fn work(&self, config: Config, writing: Writing) -> Result<Work, Failure> {
        let lock = self.lock()?;
        let around = Surroundings {
            home: self.home.clone(),
            store: config.storage.clone(),
            environment: environment::all(),
        };
        let upstream = Arc::new(Clones::new(&config.storage, writing));
        Ok(Work {
            config,
            lock,
            around,
            upstream,
        })
    }

    /// Keeps other writers of the same file away until it is dropped.
    pub(super) fn claim(&self, config: &Config) -> Result<File, Failure> {
        let path = config.storage.join("busy");
        let cannot = |error: std::io::Error| Failure::because(format!("making {}", path.display()), &error);
        fs::create_dir_all(&config.storage).map_err(cannot)?;
        let file = File::create(&path).map_err(cannot)?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => Err(Failure::coded(
                "CDR0715",
                format!("another command works with {}", self.file.display()),
                "wait until it has ended",
            )),
            Err(TryLockError::Error(error)) => Err(cannot(error)),
        }
    }
}

/// Reads which part of the file is meant; an unknown skill is told before anything is done.
pub(super) fn scope(config: &Config, lock: &Lock, given: &Scope, how: &How) -> Result<work::Scope, Failure> {
    let known = |name: &SkillName| {
        config.skills.iter().any(|skill| skill.name == *name) || lock.skill(name).is_some()
    };
    Ok(work::Scope {
        skills: names(&given.skills, known)?,
        environments: environments(&given.targets)?,
        changed: if how.force {
            Changed::Discard
        } else {
            Changed::Keep
        },
        freshness: Freshness::Locked,
    })
}

/// Reads names of skills that must be known.
fn names(given: &[String], known: impl Fn(&SkillName) -> bool) -> Result<Vec<SkillName>, Failure> {
    given
        .iter()
        .map(|text| {
            let name = SkillName::parse(text).ok().filter(|name| known(name));
            name.ok_or_else(|| {
                Failure::coded(
                    "CDR0713",
                    format!("there is no skill `{text}`"),
                    "`conductor skills list` shows those that there are",
                )
                .exiting(Exit::Usage)
            })
        })
        .collect()
}

/// Reads environments.
pub(super) fn environments(given: &[String]) -> Result<Vec<Environment>, Failure> {
    given
        .iter()
        .map(|text| {
            Environment::parse(text).map_err(|error| {
                let code = match error {
                    Unknown::Reserved { .. } => "CDR0704",
                    Unknown::NoContainer(_) | Unknown::Nothing(_) => "CDR0703",
                };
                Failure::coded(code, error.to_string(), "use `local` or `docker:<container>`")
                    .exiting(Exit::Usage)
            })
        })
        .collect()
}

/// Tells what is wrong with the file.
pub(super) fn of_config(error: &config::Error) -> Failure {
    let what = chain(error);
    match error {
        config::Error::Missing(_) => Failure::coded(
            "CDR0702",
            what,
            "make one with `conductor skills init`, or name it with --config",
        )
        .exiting(Exit::Usage),
        config::Error::Invalid { .. } => {
            let code = if what.contains("is reserved:") {
                "CDR0704"
            } else {
                "CDR0701"
            };
            Failure::coded(code, what, "mend the file; docs/skills.md describes it").exiting(Exit::Usage)
        }
        config::Error::Io { .. } => Failure::new(what),
    }
}

/// Clones of git sources, for whoever reads skills beside the commands.
pub(crate) fn clones(storage: &Path) -> Arc<dyn Upstream> {
    Arc::new(Clones::new(storage, Writing::Allowed))
}

/// Clones of git sources, made when the first is needed; a command that writes nothing keeps them in a temporary place.
#[derive(Debug)]
struct Clones {
    root: PathBuf,
    writing: Writing,
    open: OnceCell<(GitUpstream, Option<tempfile::TempDir>)>,
}

impl Clones {
    fn new(storage: &Path, writing: Writing) -> Self {
        Self {
            root: storage.join("git"),
            writing,
            open: OnceCell::new(),
        }
    }

    async fn get(&self) -> Result<&GitUpstream, Fault> {
        let opened = self.open.get_or_try_init(|| async {
            let git = Git::find(&[Protocol::Https, Protocol::File]).await?;
            let (root, guard) = match self.writing {
                Writing::Allowed => {
                    fs::create_dir_all(&self.root).map_err(|error| {
                        Fault::permanent(format!("making {}: {error}", self.root.display()))
                    })?;
                    (self.root.clone(), None)
                }
                Writing::Nothing => {
                    let guard = tempfile::tempdir().map_err(|error| {
                        Fault::permanent(format!("making a temporary directory: {error}"))
                    })?;
                    (guard.path().to_owned(), Some(guard))
                }
            };
            Ok::<_, Fault>((GitUpstream::new(git, Layout::open(&root)?), guard))
        });
        Ok(&opened.await?.0)
    }
}

#[async_trait]
impl Upstream for Clones {
    async fn resolve(&self, url: &str, reference: Option<&str>) -> Result<CommitId, Fault> {
        self.get().await?.resolve(url, reference).await
    }

    async fn export(&self, url: &str, commit: &CommitId, directory: &Path) -> Result<(), Fault> {
        self.get().await?.export(url, commit, directory).await
    }
}
