//! Turns what is wanted into exact content: the files of a directory, of a commit, of a chosen version.
//!
//! A locked commit is used as long as the source is written as it was then; only an update asks what is newest. Nothing
//! is staged here, so a dry run can ask too. This module does not know where the content goes.

use std::path::Path;
use std::sync::Arc;

use conductor_domain::digest::Digest;
use conductor_domain::fault::Fault;
use conductor_domain::id::CommitId;
use conductor_port::upstream::Upstream;

use crate::concurrent::each;
use crate::config::{Config, Programs, Skill};
use crate::label::{self, Labels};
use crate::lock::{Lock, Locked};
use crate::manifest::{self, Invalid, Manifest};
use crate::name::SkillName;
use crate::registry::{self, Nothing};
use crate::source::{GitSource, Source};
use crate::store::Store;
use crate::tree::{self, Tree};

/// Whether what is locked will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// It will.
    Locked,
    /// The source is asked anew.
    Newest,
}

/// One skill with its exact content.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// What was wanted.
    pub skill: Skill,
    /// Its files.
    pub tree: Arc<Tree>,
    /// Their digest.
    pub digest: Digest,
    /// The commit, where it came from git.
    pub commit: Option<String>,
    /// The version, where it came from a registry.
    pub version: Option<String>,
    /// What it says about itself.
    pub manifest: Manifest,
    /// What is said before it is installed.
    pub labels: Labels,
    /// Where it does not obey the public rules.
    pub problems: Vec<String>,
}

/// Why a skill has no content.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The repository did not give it.
    #[error("{0}")]
    Upstream(Fault),
    /// The registry did not name it.
    #[error("{0}")]
    Registry(Nothing),
    /// The directory is no skill.
    #[error("{0}")]
    Invalid(Invalid),
    /// Its files cannot be read.
    #[error("the files of the skill cannot be used")]
    Tree(#[source] tree::Error),
    /// The disk said no.
    #[error("making a temporary directory")]
    Scratch(#[source] std::io::Error),
    /// There is no such directory.
    #[error("there is no directory {0}")]
    Missing(String),
}

/// Resolves skills, several at once; the answers stand in the order of the skills.
pub async fn resolve(
    config: &Config,
    lock: &Lock,
    upstream: &Arc<dyn Upstream>,
    skills: Vec<Skill>,
    freshness: Freshness,
) -> Vec<(SkillName, Result<Resolved, Error>)> {
    let store = Store::new(config.storage.clone());
    let registries: Arc<Vec<_>> = Arc::new(config.registries.clone());
    let work: Vec<_> = skills
        .into_iter()
        .map(|skill| {
            let locked = lock.skill(&skill.name).cloned();
            let one = One {
                store: store.clone(),
                upstream: Arc::clone(upstream),
                registries: Arc::clone(&registries),
                locked: locked.filter(|locked| locked.source == skill.source.to_string()),
                freshness,
                skill,
            };
            async move { (one.skill.name.clone(), one.resolve().await) }
        })
        .collect();
    each(config.concurrency, work).await
}

struct One {
    store: Store,
    upstream: Arc<dyn Upstream>,
    registries: Arc<Vec<crate::config::Registry>>,
    locked: Option<Locked>,
    freshness: Freshness,
    skill: Skill,
}

impl One {
    async fn resolve(&self) -> Result<Resolved, Error> {
        match &self.skill.source {
            Source::Path(path) => self.content(path, None, None).await,
            Source::Git(git) => self.git(git, None).await,
            Source::Registry { version, registry } => {
                if let Some(done) = self.staged().await {
                    return done;
                }
                let mut nothing = Nothing::Unknown(self.skill.name.clone());
                let named = |name: &String| registry.as_ref().is_none_or(|wanted| wanted == name);
                for place in self.registries.iter().filter(|place| named(&place.name)) {
                    match registry::choose(&self.store.registry(&place.name), &self.skill.name, version) {
                        Ok(chosen) => {
                            return self.git(&chosen.source, Some(chosen.version.to_string())).await;
                        }
                        Err(Nothing::Unknown(_)) => {}
                        // The first registry that holds the name decides.
                        Err(
                            other @ (Nothing::NoVersion { .. }
                            | Nothing::Yanked { .. }
                            | Nothing::Corrupt { .. }),
                        ) => {
                            nothing = other;
                            break;
                        }
                    }
                }
                Err(Error::Registry(nothing))
            }
        }
    }

    async fn git(&self, git: &GitSource, version: Option<String>) -> Result<Resolved, Error> {
        if let Some(done) = self.staged().await {
            return done;
        }
        let locked = self
            .locked_commit()
            .and_then(|commit| CommitId::parse(commit).ok());
        let commit = match locked {
            Some(commit) => commit,
            None => self
                .upstream
                .resolve(&git.url, git.reference.as_deref())
                .await
                .map_err(Error::Upstream)?,
        };
        let scratch = tempfile::tempdir().map_err(Error::Scratch)?;
        self.upstream
            .export(&git.url, &commit, scratch.path())
            .await
            .map_err(Error::Upstream)?;
        let directory = scratch.path().join(&git.subpath);
        self.content(&directory, Some(commit.as_str().to_owned()), version)
            .await
    }

    fn locked_commit(&self) -> Option<String> {
        let locked = self
            .locked
            .as_ref()
            .filter(|_| self.freshness == Freshness::Locked)?;
        locked.resolved_commit.clone()
    }

    /// What was locked is taken from the store, without a word to anybody outside.
    async fn staged(&self) -> Option<Result<Resolved, Error>> {
        let commit = self.locked_commit()?;
        let locked = self.locked.as_ref()?;
        self.store.get(&self.skill.name, &locked.digest)?;
        let directory = self.store.place(&self.skill.name, &locked.digest);
        let done = self
            .content(&directory, Some(commit), locked.resolved_version.clone())
            .await;
        // A changed wish, such as programs left out, changes the content of the same commit.
        Some(done).filter(|done| done.as_ref().is_ok_and(|done| done.digest == locked.digest))
    }

    async fn content(
        &self,
        directory: &Path,
        commit: Option<String>,
        version: Option<String>,
    ) -> Result<Resolved, Error> {
        let (directory, skill) = (directory.to_owned(), self.skill.clone());
        let read = tokio::task::spawn_blocking(move || content(&directory, skill, commit, version));
        read.await
            .unwrap_or_else(|error| Err(Error::Missing(error.to_string())))
    }
}

fn content(
    directory: &Path,
    skill: Skill,
    commit: Option<String>,
    version: Option<String>,
) -> Result<Resolved, Error> {
    if !directory.is_dir() {
        return Err(Error::Missing(directory.display().to_string()));
    }
    let manifest = Manifest::read(directory).map_err(Error::Invalid)?;
    let problems = manifest::problems_as(directory, skill.name.as_str());
    let mut tree = Tree::read(directory).map_err(Error::Tree)?;
    if skill.programs == Programs::LeftOut {
        tree = tree.without_programs(|path, file| {
            let risks = label::risks(path, file);
            risks.iter().all(|risk| *risk == label::Risk::Executable)
        });
    }
    let labels = label::labels(&tree, manifest.license.as_deref());
    Ok(Resolved {
        digest: tree.listing().digest(),
        skill,
        tree: Arc::new(tree),
        commit,
        version,
        manifest,
        labels,
        problems,
    })
}
