//! The index of a registry: which versions of a skill there are, and where each one lies.
//!
//! An index is a directory with `manifest.toml` and `index/<first letter>/<name>.toml`. It is hostile input: what it
//! names is checked like what a person types. This module does not know how the directory got there.

use std::fs;
use std::path::Path;

use semver::{Version, VersionReq};
use serde::Deserialize;

use crate::name::SkillName;
use crate::source::{GitSource, checked_subpath};

#[derive(Debug, Deserialize)]
struct Entry {
    skill: About,
    #[serde(default)]
    versions: Vec<Release>,
}

#[derive(Debug, Deserialize)]
struct About {
    repo: String,
    #[serde(default)]
    subpath: String,
}

#[derive(Debug, Deserialize)]
struct Release {
    version: Version,
    #[serde(rename = "ref")]
    reference: Option<String>,
    commit: Option<String>,
    #[serde(default)]
    yanked: bool,
}

/// What a registry chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The version.
    pub version: Version,
    /// Where it lies.
    pub source: GitSource,
}

/// Why a registry chose nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Nothing {
    /// It does not know the name.
    #[error("no registry knows `{0}`")]
    Unknown(SkillName),
    /// No version will do.
    #[error("no version of `{name}` matches {wanted}; there are {}", there.join(", "))]
    NoVersion {
        /// The skill.
        name: SkillName,
        /// What was wanted.
        wanted: VersionReq,
        /// What there is.
        there: Vec<String>,
    },
    /// The only version that will do was taken back.
    #[error("`{name}` {version} was yanked")]
    Yanked {
        /// The skill.
        name: SkillName,
        /// The version.
        version: Version,
    },
    /// The entry cannot be understood.
    #[error("the entry of `{name}` cannot be used: {what}")]
    Corrupt {
        /// The skill.
        name: SkillName,
        /// What is wrong.
        what: String,
    },
}

/// Chooses the highest version that will do; one that was taken back only if nothing but it was asked for, and then not.
pub fn choose(index: &Path, name: &SkillName, wanted: &VersionReq) -> Result<Chosen, Nothing> {
    let corrupt = |what: String| Nothing::Corrupt {
        name: name.clone(),
        what,
    };
    let first = name.as_str().chars().next().map(String::from).unwrap_or_default();
    let file = index.join("index").join(first).join(format!("{name}.toml"));
    let text = fs::read_to_string(&file).map_err(|_| Nothing::Unknown(name.clone()))?;
    let entry: Entry = toml::from_str(&text).map_err(|error| corrupt(error.message().to_owned()))?;
    let subpath =
        checked_subpath(&entry.skill.subpath).ok_or_else(|| corrupt("its path leads out".to_owned()))?;
    let matching = |release: &&Release| wanted.matches(&release.version);
    let best = entry
        .versions
        .iter()
        .filter(matching)
        .filter(|release| !release.yanked)
        .max_by(|a, b| a.version.cmp(&b.version));
    let Some(best) = best else {
        return Err(match entry.versions.iter().find(matching) {
            Some(release) => Nothing::Yanked {
                name: name.clone(),
                version: release.version.clone(),
            },
            None => Nothing::NoVersion {
                name: name.clone(),
                wanted: wanted.clone(),
                there: entry
                    .versions
                    .iter()
                    .filter(|release| !release.yanked)
                    .map(|release| release.version.to_string())
                    .collect(),
            },
        });
    };
    let reference = best
        .commit
        .clone()
        .filter(|commit| !commit.is_empty())
        .or(best.reference.clone());
    Ok(Chosen {
        version: best.version.clone(),
        source: GitSource {
            url: entry.skill.repo.clone(),
            reference,
            subpath,
        },
    })
}
