//! `skills.lock`: which exact content was put where, so that it can be checked, kept and taken away again.
//!
//! One entry per skill, environment and path; paths are those of the environment. This module does not know what is
//! wanted.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use conductor_domain::digest::Digest;
use conductor_port::target::{InvalidPlacement, Mode, Placement};
use serde::{Deserialize, Serialize};

use crate::config;
use crate::edit;
use crate::environment::Environment;
use crate::name::SkillName;

const VERSION: u32 = 1;
const HEAD: &str = "# What is installed where. Written by `conductor skills`; not meant to be edited.\n";

/// Everything that was put somewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    version: u32,
    /// The skills, by name.
    #[serde(default)]
    pub skills: Vec<Locked>,
}

/// One skill: what it was resolved to, and where it was put.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Locked {
    /// Its name.
    pub id: SkillName,
    /// Where it came from, as written then.
    pub source: String,
    /// The commit, where it came from git.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved_commit: Option<String>,
    /// The version, where it came from a registry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved_version: Option<String>,
    /// Its content.
    pub digest: Digest,
    /// Where it was put.
    #[serde(default)]
    pub targets: Vec<Put>,
}

/// One place where a skill was put.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Put {
    /// The environment.
    pub environment: Environment,
    /// The path of the skill there.
    pub path: PathBuf,
    /// How.
    pub mode: Mode,
    /// What.
    pub digest: Digest,
    /// Which environment of that name it was.
    pub identity: String,
}

impl Default for Lock {
    fn default() -> Self {
        Self {
            version: VERSION,
            skills: Vec::new(),
        }
    }
}

impl Lock {
    /// The lock that belongs to a configuration.
    pub fn beside(config: &Path) -> PathBuf {
        config.with_extension("lock")
    }

    /// Reads a lock. None yet is an empty one; one that cannot be understood is told and counts as empty, because what
    /// lies in the targets is marked and can be found again.
    pub fn read(file: &Path) -> Result<(Self, Option<String>), config::Error> {
        let text = match fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Self::default(), None)),
            Err(source) => {
                return Err(config::Error::Io {
                    attempt: "reading",
                    path: file.to_owned(),
                    source,
                });
            }
        };
        let warn = |what: String| {
            let warning = format!("{} cannot be used and is made anew: {what}", file.display());
            Ok((Self::default(), Some(warning)))
        };
        match toml::from_str::<Self>(&text) {
            Ok(lock) if lock.version == VERSION => Ok((lock, None)),
            Ok(lock) => warn(format!("version {} is not known", lock.version)),
            Err(error) => warn(error.message().to_owned()),
        }
    }

    /// Writes the lock where it says something new.
    pub fn write(&self, file: &Path) -> Result<(), config::Error> {
        let mut sorted = self.clone();
        sorted.skills.sort_by(|a, b| a.id.cmp(&b.id));
        for skill in &mut sorted.skills {
            skill
                .targets
                .sort_by(|a, b| (&a.environment, &a.path).cmp(&(&b.environment, &b.path)));
        }
        let body = toml::to_string(&sorted).map_err(|error| config::Error::Invalid {
            path: file.to_owned(),
            what: error.to_string(),
        })?;
        let text = format!("{HEAD}{body}");
        if fs::read_to_string(file).is_ok_and(|there| there == text) {
            return Ok(());
        }
        edit::write(file, &text)
    }

    /// Finds a skill.
    pub fn skill(&self, name: &SkillName) -> Option<&Locked> {
        self.skills.iter().find(|skill| skill.id == *name)
    }
}

impl Put {
    /// The place, checked anew: a lock is a file that anybody could have written.
    pub fn placement(&self, name: &SkillName) -> Result<Placement, InvalidPlacement> {
        let invalid = |why| InvalidPlacement {
            path: self.path.display().to_string(),
            why,
        };
        let root = self.path.parent().ok_or_else(|| invalid("it has no parent"))?;
        if self.path.file_name().and_then(|last| last.to_str()) != Some(name.as_str()) {
            return Err(invalid("its last part is not the skill's name"));
        }
        Placement::new(root, name.as_str())
    }
}
