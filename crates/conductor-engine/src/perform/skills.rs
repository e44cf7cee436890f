//! Gives a role the skills that its run locked, from what was kept then (SKILL-5).
//!
//! Nothing is read where a skill came from: what changed there meanwhile concerns later runs. Kept bytes that are not what
//! was locked are no skill, and no agent starts. This module does not know what a skill says.

use conductor_domain::digest::Digest;
use conductor_domain::fault::Fault;
use conductor_domain::role::Role;
use conductor_domain::skill::{SkillLock, unpack};
use conductor_port::executor::{Given, GivenFile};

use super::Performance;

/// Where skills stand inside a sandbox, each in a folder of its name.
const SKILLS: &str = "/skills";

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
