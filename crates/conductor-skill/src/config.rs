//! `skills.toml`: which skills, from where, how, and into which places.
//!
//! The file is strict: what is not understood is an error with its line. Everything is parsed when it is read, the
//! environment too (SKILL-2). Changes keep a person's comments and order. This module does not know what is installed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use conductor_port::target::Mode;
use semver::VersionReq;
use serde::Deserialize;

use crate::agent;
use crate::environment::Environment;
use crate::name::SkillName;
use crate::source::{self, GitSource, Source};

/// How many things are done at once where the file does not say.
pub const CONCURRENCY: usize = 10;
const MOST_CONCURRENCY: usize = 100;

/// What a person wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The file.
    pub file: PathBuf,
    /// Where staged skills and registries lie.
    pub storage: PathBuf,
    /// How many things are done at once.
    pub concurrency: usize,
    /// Registries, the one to ask first first.
    pub registries: Vec<Registry>,
    /// The skills, in the file's order.
    pub skills: Vec<Skill>,
}

/// A registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registry {
    /// Its name.
    pub name: String,
    /// The repository of its index.
    pub url: String,
}

/// One skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// Its name.
    pub name: SkillName,
    /// Where it comes from.
    pub source: Source,
    /// How it is put into place.
    pub mode: Mode,
    /// Whether what could run is left out.
    pub programs: Programs,
    /// Where it is wanted.
    pub targets: Vec<Target>,
}

/// What becomes of files that could run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Programs {
    /// They are installed.
    Installed,
    /// They are left out.
    LeftOut,
}

/// One place where a skill is wanted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// The environment.
    pub environment: Environment,
    /// The directory of skills there; `~` is the home directory there.
    pub root: String,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is none.
    #[error("there is no {}", .0.display())]
    Missing(PathBuf),
    /// It cannot be read or written.
    #[error("{attempt} {}", path.display())]
    Io {
        /// What was attempted.
        attempt: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not what it should be.
    #[error("{}: {what}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        what: String,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileForm {
    version: u32,
    concurrency: Option<usize>,
    #[serde(default)]
    storage: StorageForm,
    #[serde(default)]
    registries: BTreeMap<String, RegistryForm>,
    #[serde(default)]
    skills: Vec<SkillForm>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct StorageForm {
    root: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RegistryForm {
    url: String,
    #[serde(default)]
    priority: i64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SkillForm {
    id: SkillName,
    source: Option<SourceForm>,
    version: Option<String>,
    registry: Option<String>,
    #[serde(default)]
    install: InstallForm,
    #[serde(default)]
    safety: SafetyForm,
    #[serde(default)]
    targets: Vec<TargetForm>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SourceForm {
    path: Option<String>,
    repo: Option<String>,
    #[serde(default)]
    subpath: String,
    #[serde(rename = "ref")]
    reference: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct InstallForm {
    mode: Option<Mode>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct SafetyForm {
    #[serde(default)]
    no_exec: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetForm {
    #[serde(default = "local")]
    environment: Environment,
    agent: Option<String>,
    path: Option<String>,
}

fn local() -> Environment {
    Environment::Local
}

impl Config {
    /// Reads a file; relative paths in it begin where it lies, `~` is `home`.
    pub fn read(file: &Path, home: Option<&Path>) -> Result<Self, Error> {
        let text = match fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::Missing(file.to_owned()));
            }
            Err(source) => {
                return Err(Error::Io {
                    attempt: "reading",
                    path: file.to_owned(),
                    source,
                });
            }
        };
        Self::parse(&text, file, home)
    }

    /// Reads the text of a file.
    pub fn parse(text: &str, file: &Path, home: Option<&Path>) -> Result<Self, Error> {
        let invalid = |what: String| Error::Invalid {
            path: file.to_owned(),
            what,
        };
        let form: FileForm =
            toml::from_str(text).map_err(|error| invalid(error.to_string().trim().to_owned()))?;
        if form.version != 1 {
            return Err(invalid(format!(
                "version {} is not known; this program knows 1",
                form.version
            )));
        }
        let concurrency = form.concurrency.unwrap_or(CONCURRENCY);
        if !(1..=MOST_CONCURRENCY).contains(&concurrency) {
            return Err(invalid(format!(
                "concurrency: {concurrency} is not between 1 and {MOST_CONCURRENCY}"
            )));
        }
        let here = file.parent().unwrap_or(Path::new("/"));
        let absolute = |text: &str| {
            source::expand(text, here, home)
                .ok_or_else(|| invalid(format!("`{text}`: the home directory is not known")))
        };
        let mut registries: Vec<(String, RegistryForm)> = form.registries.into_iter().collect();
        registries.sort_by_key(|(_, registry)| std::cmp::Reverse(registry.priority));
        let mut names = BTreeSet::new();
        let mut skills = Vec::new();
        for skill in form.skills {
            let at = format!("skills.{}", skill.id);
            if !names.insert(skill.id.clone()) {
                return Err(invalid(format!("{at}: it is there twice")));
            }
            let known = |name: &String| registries.iter().any(|(known, _)| known == name);
            skills.push(skill.check(&known, &absolute).map_err(|what| match what {
                Wrong::Here(what) => invalid(format!("{at}: {what}")),
                Wrong::File(error) => error,
            })?);
        }
        Ok(Self {
            file: file.to_owned(),
            storage: absolute(form.storage.root.as_deref().unwrap_or("store"))?,
            concurrency,
            registries: registries
                .into_iter()
                .map(|(name, registry)| Registry {
                    name,
                    url: registry.url,
                })
                .collect(),
            skills,
        })
    }
}

enum Wrong {
    Here(String),
    File(Error),
}

impl SkillForm {
    fn check(
        self,
        is_registry: &dyn Fn(&String) -> bool,
        absolute: &dyn Fn(&str) -> Result<PathBuf, Error>,
    ) -> Result<Skill, Wrong> {
        let here = |what: &str| Wrong::Here(what.to_owned());
        let source = match (self.source, self.version) {
            (Some(source), None) => source.check(absolute)?,
            (None, Some(version)) => {
                let version = VersionReq::parse(&version).map_err(|error| {
                    Wrong::Here(format!("version: `{version}` is no range of versions: {error}"))
                })?;
                if let Some(name) = self.registry.as_ref().filter(|name| !is_registry(name)) {
                    return Err(Wrong::Here(format!("registry: there is no [registries.{name}]")));
                }
                Source::Registry {
                    version,
                    registry: self.registry,
                }
            }
            (Some(_), Some(_)) => return Err(here("it has both a source and a version")),
            (None, None) => return Err(here("it has neither a source nor a version")),
        };
        let mut targets: Vec<Target> = Vec::new();
        for target in self.targets {
            let root = match (target.path, target.agent) {
                (Some(path), _) => path,
                (None, agent) => {
                    let agent = agent.unwrap_or_else(|| agent::DEFAULT.to_owned());
                    let known = agent::names().collect::<Vec<_>>().join(", ");
                    agent::directory(&agent)
                        .ok_or_else(|| {
                            Wrong::Here(format!(
                                "targets: agent `{agent}` is not known; name a path, or one of {known}"
                            ))
                        })?
                        .to_owned()
                }
            };
            // A path of a container never begins where this file lies.
            let root = match target.environment {
                Environment::Local if !root.starts_with('~') => {
                    absolute(&root).map_err(Wrong::File)?.display().to_string()
                }
                Environment::Docker(_) if !root.starts_with(['~', '/']) => {
                    return Err(Wrong::Here(format!(
                        "targets: `{root}` is no absolute path in a container"
                    )));
                }
                Environment::Local | Environment::Docker(_) => root,
            };
            let target = Target {
                environment: target.environment,
                root,
            };
            if targets.contains(&target) {
                return Err(Wrong::Here(format!(
                    "targets: {} {} is there twice",
                    target.environment, target.root
                )));
            }
            targets.push(target);
        }
        Ok(Skill {
            name: self.id,
            source,
            mode: self.install.mode.unwrap_or(Mode::Symlink),
            programs: if self.safety.no_exec {
                Programs::LeftOut
            } else {
                Programs::Installed
            },
            targets,
        })
    }
}

impl SourceForm {
    fn check(self, absolute: &dyn Fn(&str) -> Result<PathBuf, Error>) -> Result<Source, Wrong> {
        let subpath = source::checked_subpath(&self.subpath)
            .ok_or_else(|| Wrong::Here(format!("source.subpath: `{}` leads out", self.subpath)))?;
        match (self.path, self.repo) {
            (Some(path), None) => {
                let path = absolute(&path).map_err(Wrong::File)?;
                Ok(Source::Path(if subpath.is_empty() {
                    path
                } else {
                    path.join(subpath)
                }))
            }
            (None, Some(url)) => Ok(Source::Git(GitSource {
                url,
                reference: self.reference,
                subpath,
            })),
            (Some(_), Some(_)) | (None, None) => {
                Err(Wrong::Here("source: it names either a path or a repo".to_owned()))
            }
        }
    }
}
