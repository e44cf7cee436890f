//! Gives a role the skills that its run locked, from what was kept then (SKILL-5).
//!
//! Nothing is read where a skill came from: what changed there meanwhile concerns later runs. Kept bytes that are not what
//! was locked are no skill, and no agent starts. Commands find skills in the sandbox; the tools that read files answer from
//! the same bytes, because not every role may run commands. This module does not know what a skill says.

use async_trait::async_trait;
use conductor_domain::digest::Digest;
use conductor_domain::fault::Fault;
use conductor_domain::role::Role;
use conductor_domain::skill::{SKILLS, SkillLock, unpack};
use conductor_port::executor::{
    Command, CommandResult, Entry, EntryKind, FileRefusal, Found, Given, GivenFile, MAX_FINDINGS, Match,
    Pattern, Sandbox,
};

use super::Performance;

/// Reads the skills of a role.
pub(super) async fn of_role(performance: &Performance<'_>, role: Role) -> Result<Vec<Given>, Fault> {
    let spec = performance.spec().await?;
    let mut given = Vec::new();
    for lock in spec.skills.iter().filter(|lock| lock.roles.contains(&role)) {
        given.push(read(performance, lock).await?);
    }
    Ok(given)
}

async fn read(performance: &Performance<'_>, lock: &SkillLock) -> Result<Given, Fault> {
    let mut archive = Vec::new();
    for part in &lock.parts {
        let bytes = performance.kept(part).await?;
        if Digest::of(&bytes) != part.digest {
            return Err(Fault::permanent(format!(
                "what is kept of skill {} is not what the run locked ({})",
                lock.name, part.digest
            )));
        }
        archive.extend_from_slice(&bytes);
    }
    let files = unpack(&archive)
        .map_err(|bad| Fault::permanent(format!("skill {} cannot be used: {bad}", lock.name)))?;
    let file = |file: conductor_domain::skill::SkillFile| GivenFile {
        path: file.path,
        executable: file.executable,
        content: file.content,
    };
    Ok(Given {
        inside: format!("{SKILLS}/{}", lock.name).into(),
        files: files.into_iter().map(file).collect(),
    })
}

/// A sandbox whose file tools also read the skills in it; nothing there can be written.
#[derive(Debug)]
pub(super) struct WithSkills {
    pub(super) inner: Box<dyn Sandbox>,
    pub(super) given: Vec<Given>,
}

impl WithSkills {
    /// Every file of a skill, by its path inside.
    fn files(&self) -> impl Iterator<Item = (String, &GivenFile)> {
        self.given.iter().flat_map(|given| {
            let folder = given.inside.display().to_string();
            given
                .files
                .iter()
                .map(move |file| (format!("{folder}/{}", file.path), file))
        })
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, FileRefusal> {
        if let Some((_path, file)) = self.files().find(|(there, _file)| there == path) {
            return Ok(file.content.clone());
        }
        let folder = format!("{path}/");
        Err(if self.files().any(|(there, _file)| there.starts_with(&folder)) {
            FileRefusal::NotAFile(path.to_owned())
        } else {
            FileRefusal::NotFound(path.to_owned())
        })
    }

    fn below(&self, path: &str) -> Result<Found<Entry>, FileRefusal> {
        let folder = format!("{}/", path.trim_end_matches('/'));
        let mut findings: Vec<Entry> = self
            .files()
            .filter(|(there, _file)| there.starts_with(&folder))
            .map(|(path, file)| Entry {
                path,
                kind: EntryKind::File,
                size: file.content.len() as u64,
            })
            .collect();
        if findings.is_empty() {
            return Err(FileRefusal::NotFound(path.to_owned()));
        }
        findings.sort_by(|a, b| a.path.cmp(&b.path));
        let all = findings.len();
        findings.truncate(usize::try_from(MAX_FINDINGS).unwrap_or(usize::MAX));
        Ok(Found {
            is_complete: findings.len() == all,
            findings,
            skipped: 0,
        })
    }
}

/// Tells whether a path names the skills; one that leads out of them again names nothing there.
fn names_skills(path: &str) -> bool {
    path.strip_prefix(SKILLS)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[async_trait]
impl Sandbox for WithSkills {
    async fn bash(&self, command: Command) -> Result<CommandResult, Fault> {
        self.inner.bash(command).await
    }

    async fn view(&self, path: &str) -> Result<Result<Vec<u8>, FileRefusal>, Fault> {
        if names_skills(path) {
            return Ok(self.read(path));
        }
        self.inner.view(path).await
    }

    async fn create_file(&self, path: &str, content: &[u8]) -> Result<Result<(), FileRefusal>, Fault> {
        self.inner.create_file(path, content).await
    }

    async fn str_replace(&self, path: &str, old: &str, new: &str) -> Result<Result<(), FileRefusal>, Fault> {
        self.inner.str_replace(path, old, new).await
    }

    async fn list(&self, path: &str) -> Result<Result<Found<Entry>, FileRefusal>, Fault> {
        if names_skills(path) {
            return Ok(self.below(path));
        }
        self.inner.list(path).await
    }

    async fn search(
        &self,
        path: &str,
        pattern: &Pattern,
    ) -> Result<Result<Found<Match>, FileRefusal>, Fault> {
        self.inner.search(path, pattern).await
    }

    async fn close(self: Box<Self>) -> Result<(), Fault> {
        self.inner.close().await
    }
}
