//! Locks the skills that roles name, each time a run starts: reads them, and keeps their exact files (SKILL-5).
//!
//! Which skills there are stands in `skills.toml`; a skill that breaks the public rules is refused, because nobody asks
//! about it at a run's start. This module does not know what a run does with them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use conductor_domain::artifact::ArtifactKind;
use conductor_domain::fault::Fault;
use conductor_domain::role::Role;
use conductor_domain::skill::{SkillFile, SkillFolder, SkillLock, SkillManifest, archive};
use conductor_port::blobs::{Blobs, MAX_BLOB};
use conductor_skill::config::Config;
use conductor_skill::lock::Lock;
use conductor_skill::resolve::{Freshness, Resolved, resolve};

use crate::command::skills::clones;
use crate::environment;
use crate::exit::chain;

/// The most that the files of one skill may take up in a run's record.
const MOST_PARTS: usize = 16;

/// Which role has which skills, and where they are described.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RoleSkills {
    /// `skills.toml`.
    pub(crate) file: PathBuf,
    /// The names, by role.
    pub(crate) wanted: BTreeMap<Role, Vec<String>>,
}

impl RoleSkills {
    /// Locks every skill that a role names, as it is now.
    pub(crate) async fn lock(&self, blobs: &Arc<dyn Blobs>) -> Result<Vec<SkillLock>, Fault> {
        let mut roles: BTreeMap<&str, Vec<Role>> = BTreeMap::new();
        for (role, names) in &self.wanted {
            for name in names {
                let of_name = roles.entry(name).or_default();
                if !of_name.contains(role) {
                    of_name.push(*role);
                }
            }
        }
        if roles.is_empty() {
            return Ok(vec![]);
        }
        let unusable =
            |error: &dyn std::error::Error| Fault::permanent(format!("reading skills: {}", chain(error)));
        let config =
            Config::read(&self.file, environment::home().as_deref()).map_err(|error| unusable(&error))?;
        let (lock, _warning) = Lock::read(&Lock::beside(&self.file)).map_err(|error| unusable(&error))?;
        let mut wanted = Vec::new();
        for name in roles.keys() {
            let known = config.skills.iter().find(|skill| skill.name.as_str() == *name);
            let known = known.ok_or_else(|| {
                Fault::permanent(format!("there is no skill `{name}` in {}", self.file.display()))
            })?;
            wanted.push(known.clone());
        }
        let upstream = clones(&config.storage);
        let mut locks = Vec::new();
        for (name, resolved) in resolve(&config, &lock, &upstream, wanted, Freshness::Locked).await {
            let resolved = resolved.map_err(|error| {
                Fault::permanent(format!(
                    "skill {} cannot be used: {}",
                    name.as_str(),
                    chain(&error)
                ))
            })?;
            let roles = roles.get(name.as_str()).cloned().unwrap_or_default();
            locks.push(keep(blobs, &resolved, roles).await?);
        }
        Ok(locks)
    }
}

async fn keep(blobs: &Arc<dyn Blobs>, resolved: &Resolved, roles: Vec<Role>) -> Result<SkillLock, Fault> {
    let name = resolved.skill.name.as_str();
    let unusable = |why: &str| Fault::permanent(format!("skill {name} cannot be used: {why}"));
    if let Some(problem) = resolved.problems.first() {
        return Err(unusable(problem));
    }
    let files = resolved.tree.files().iter();
    let files: Vec<SkillFile> = files
        .map(|(path, file)| SkillFile {
            path: path.clone(),
            executable: file.executable,
            content: file.content.clone(),
        })
        .collect();
    let bytes = archive(&files).map_err(|bad| unusable(&bad.to_string()))?;
    if bytes.len() > MOST_PARTS * MAX_BLOB {
        return Err(unusable("it has more than 64 MiB"));
    }
    let mut parts = Vec::new();
    for part in bytes.chunks(MAX_BLOB) {
        let kept = blobs.put(ArtifactKind::Skill, part).await?;
        if kept.truncated {
            return Err(unusable("its files could not be kept whole"));
        }
        parts.push(kept);
    }
    Ok(SkillLock {
        name: SkillFolder::parse(name).map_err(|bad| unusable(&bad.to_string()))?,
        roles,
        source: resolved.skill.source.to_string(),
        commit: resolved.commit.clone(),
        content: resolved.digest.clone(),
        parts,
        manifest: Some(SkillManifest {
            file: resolved
                .manifest
                .file
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default(),
            description: resolved.manifest.description.clone(),
        }),
    })
}
