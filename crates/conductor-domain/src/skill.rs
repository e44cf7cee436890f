//! Skills that a run may use, locked when it starts: which, from where, and their exact content (SKILL-5).
//!
//! What is locked stays for the run's whole life: its files are kept by content address, and a change where they came from
//! concerns later runs only. A path in it is plain or the archive is none, so nothing can be laid outside its folder.
//! How an agent is told of them is the public
//! listing. This module does not know where skills come from.

use serde::{Deserialize, Serialize};

use crate::artifact::Artifact;
use crate::digest::Digest;
use crate::role::Role;

/// A skill as a run locked it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillLock {
    /// Its name, which is its folder's too.
    pub name: SkillFolder,
    /// The roles that have it.
    pub roles: Vec<Role>,
    /// Where it came from, as it is written.
    pub source: String,
    /// The commit, where it came from git.
    pub commit: Option<String>,
    /// The hash of all its files, as `conductor skills` tells it.
    pub content: Digest,
    /// The files themselves, in parts that are kept one after the other.
    pub parts: Vec<Artifact>,
    /// What it says about itself; runs that started before this was told have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<SkillManifest>,
}

/// What a skill says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillManifest {
    /// The file that says it, in the skill's folder.
    pub file: String,
    /// What the skill does, and when to use it.
    pub description: String,
}

/// Where skills stand inside a sandbox, each in a folder of its name.
pub const SKILLS: &str = "/skills";

/// Lists the skills of a role as its agent is told of them; none where the run locked none for it.
pub fn listing_of(locks: &[SkillLock], role: Role) -> Option<String> {
    let told: Vec<Told<'_>> = locks
        .iter()
        .filter(|lock| lock.roles.contains(&role))
        .filter_map(|lock| {
            let manifest = lock.manifest.as_ref()?;
            Some(Told {
                name: lock.name.as_str(),
                description: &manifest.description,
                location: format!("{SKILLS}/{}/{}", lock.name, manifest.file),
            })
        })
        .collect();
    (!told.is_empty()).then(|| listing(&told))
}

/// One skill as an agent is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it does, and when to use it.
    pub description: &'a str,
    /// The file to read.
    pub location: String,
}

/// Lists skills in the public XML form; what they say about themselves is text there, never markup.
pub fn listing(skills: &[Told<'_>]) -> String {
    let mut text = "<available_skills>\n".to_owned();
    for skill in skills {
        text.push_str(&format!(
            "<skill>\n<name>\n{}\n</name>\n<description>\n{}\n</description>\n<location>\n{}\n</location>\n</skill>\n",
            escape(skill.name),
            escape(skill.description),
            escape(&skill.location)
        ));
    }
    text.push_str("</available_skills>");
    text
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#x27;")
}

/// The name of a skill's folder: one harmless part of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SkillFolder(String);

/// Why something cannot be a skill's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSkill {
    /// The name could lead elsewhere.
    #[error("`{0}` cannot name the folder of a skill")]
    Name(String),
    /// A path in it could lead elsewhere.
    #[error("`{0}` cannot be a file of a skill")]
    Path(String),
    /// Its files cannot be read.
    #[error("the files of a skill cannot be read: {0}")]
    Archive(String),
}

impl SkillFolder {
    /// Checks a name: letters of any script, digits and hyphens, none of them capital.
    pub fn parse(text: &str) -> Result<Self, BadSkill> {
        let is_plain = |c: char| c == '-' || (c.is_alphanumeric() && !c.is_uppercase());
        if text.is_empty() || text.len() > 255 || text.starts_with('-') || !text.chars().all(is_plain) {
            return Err(BadSkill::Name(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for SkillFolder {
    type Error = BadSkill;
    fn try_from(text: String) -> Result<Self, BadSkill> {
        Self::parse(&text)
    }
}

impl From<SkillFolder> for String {
    fn from(name: SkillFolder) -> Self {
        name.0
    }
}

impl std::fmt::Display for SkillFolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// One file of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFile {
    /// Its path below the folder.
    pub path: String,
    /// Whether it may be executed.
    pub executable: bool,
    /// Its content.
    pub content: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Archived {
    path: String,
    executable: bool,
    content: Content,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Content {
    Text(String),
    Hex(String),
}

/// Puts files into one text; the same files always into the same.
pub fn archive(files: &[SkillFile]) -> Result<Vec<u8>, BadSkill> {
    let archived = files.iter().map(|file| {
        check_path(&file.path)?;
        Ok(Archived {
            path: file.path.clone(),
            executable: file.executable,
            content: match std::str::from_utf8(&file.content) {
                Ok(text) => Content::Text(text.to_owned()),
                Err(_) => Content::Hex(hex::encode(&file.content)),
            },
        })
    });
    let archived: Vec<Archived> = archived.collect::<Result<_, BadSkill>>()?;
    serde_json::to_vec(&archived).map_err(|error| BadSkill::Archive(error.to_string()))
}

/// Reads the files out of such a text.
pub fn unpack(text: &[u8]) -> Result<Vec<SkillFile>, BadSkill> {
    let bad = |error: &dyn std::fmt::Display| BadSkill::Archive(error.to_string());
    let archived: Vec<Archived> = serde_json::from_slice(text).map_err(|error| bad(&error))?;
    let file = |file: Archived| {
        check_path(&file.path)?;
        Ok(SkillFile {
            content: match file.content {
                Content::Text(text) => text.into_bytes(),
                Content::Hex(text) => hex::decode(text).map_err(|error| bad(&error))?,
            },
            path: file.path,
            executable: file.executable,
        })
    };
    archived.into_iter().map(file).collect()
}

/// A path is plain parts with single slashes between them.
fn check_path(path: &str) -> Result<(), BadSkill> {
    let is_part = |part: &str| {
        !part.is_empty() && !matches!(part, "." | "..") && !part.chars().any(|c| c.is_control() || c == '\\')
    };
    if path.len() <= 4096 && path.split('/').all(is_part) {
        return Ok(());
    }
    Err(BadSkill::Path(path.to_owned()))
}
