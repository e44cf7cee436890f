//! Where skills are put: a directory on this machine, a running container, or whatever comes next (SKILL-1).
//!
//! One adapter speaks for one environment. Calls may be made at once, but not two for the same [`Placement`]; the caller
//! sees to that. Every path is a path of the environment, never of the host. This port does not know what a skill says.

use std::path::{Component, Path, PathBuf};

use async_trait::async_trait;
use conductor_domain::digest::Digest;
use serde::{Deserialize, Serialize};

/// How a skill is put into place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// A link to the source; only where both lie on one file system tree.
    Symlink,
    /// A copy of the source.
    Copy,
}

impl Mode {
    /// The word in files and on screen.
    pub fn word(self) -> &'static str {
        match self {
            Self::Symlink => "symlink",
            Self::Copy => "copy",
        }
    }
}

/// The place of one skill: a directory of skills, and the skill's name in it.
///
/// Nothing is ever written or removed but a direct child of `root`, so neither `/` nor anything beside the root can be
/// named.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Placement {
    root: PathBuf,
    name: String,
}

/// Why something is no place for a skill.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{path}` is no place for a skill: {why}")]
pub struct InvalidPlacement {
    /// The path as it was given.
    pub path: String,
    /// What is wrong with it.
    pub why: &'static str,
}

impl Placement {
    /// Checks a place.
    pub fn new(root: impl Into<PathBuf>, name: impl Into<String>) -> Result<Self, InvalidPlacement> {
        let (root, name) = (root.into(), name.into());
        let refuse = |why| {
            Err(InvalidPlacement {
                path: root.join(&name).display().to_string(),
                why,
            })
        };
        let Some(text) = root.to_str() else {
            return refuse("it is not UTF-8");
        };
        if text.chars().chain(name.chars()).any(char::is_control) {
            return refuse("it holds control characters");
        }
        if !root.is_absolute() {
            return refuse("it is not absolute");
        }
        if root.components().any(|part| part == Component::ParentDir) {
            return refuse("it holds `..`");
        }
        if root.parent().is_none() {
            return refuse("the file system's root is no directory of skills");
        }
        let mut parts = Path::new(&name).components();
        let is_child = matches!(
            (parts.next(), parts.next()),
            (Some(Component::Normal(part)), None) if part.to_str() == Some(name.as_str())
        );
        if !is_child || name.starts_with(['.', '-']) {
            return refuse("a skill's name is one part that begins with neither `.` nor `-`");
        }
        // `/a//b/` and `/a/b` are one place.
        let root = root.components().collect();
        Ok(Self { root, name })
    }

    /// The directory of skills.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The skill's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where the skill itself lies.
    pub fn path(&self) -> PathBuf {
        self.root.join(&self.name)
    }

    /// The same place under another name; for what stands beside a skill while it is being put there.
    pub fn beside(&self, prefix: &str) -> PathBuf {
        self.root.join(format!("{prefix}{}", self.name))
    }
}

/// What an environment says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vitals {
    /// Tells this environment from another one of the same name, such as a recreated container.
    pub identity: String,
    /// The home directory there, where it is known.
    pub home: Option<PathBuf>,
    /// What a person should know.
    pub notes: Vec<String>,
}

/// What lies at a placement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Absent,
    /// Something that this adapter did not put there.
    Foreign {
        /// What it is, for people.
        what: String,
    },
    /// Something that this adapter put there.
    Managed {
        /// How.
        mode: Mode,
        /// What was put there.
        recorded: Digest,
        /// What is there now; another digest means that somebody changed it.
        actual: Digest,
    },
    /// Something that this adapter put there, of which not enough is left.
    Broken {
        /// What is wrong with it, for people.
        why: String,
    },
}

/// What becomes of a managed skill that somebody changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// It stays, and the call fails.
    Keep,
    /// It goes.
    Discard,
}

/// What an installation did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// How the skill was put there, which may not be how it was asked for.
    pub mode: Mode,
    /// What is there now.
    pub digest: Digest,
    /// What a person should know.
    pub warnings: Vec<String>,
}

/// What a removal found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removed {
    /// The skill, which is gone now.
    Gone,
    /// Nothing.
    WasAbsent,
}

/// What a command printed, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The exit code.
    pub status: i32,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// One file that did not arrive as it should.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileFault {
    /// Its path in the skill.
    pub path: String,
    /// What is wrong with it.
    pub why: String,
}

/// Why a target did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetFault {
    /// The program that leads there is missing.
    #[error("{what}")]
    Unavailable {
        /// What is missing.
        what: String,
        /// What to do.
        hint: String,
    },
    /// The environment cannot be worked in now; nothing was tried.
    #[error("{what}")]
    Unhealthy {
        /// What is wrong with it.
        what: String,
        /// What to do.
        hint: String,
    },
    /// The environment does not exist; what was put there went with it.
    #[error("{what}")]
    Gone {
        /// What does not exist.
        what: String,
        /// What to do.
        hint: String,
    },
    /// Something else lies there, and it stays.
    #[error("{path} holds {what} that Conductor did not put there")]
    Foreign {
        /// The place.
        path: String,
        /// What lies there.
        what: String,
    },
    /// The skill there was changed by hand, and it stays.
    #[error("{path} was changed since it was installed")]
    ChangedByHand {
        /// The place.
        path: String,
    },
    /// The place is never written to.
    #[error("{path} is refused: {why}")]
    Refused {
        /// The place.
        path: String,
        /// Why.
        why: String,
    },
    /// Not everything arrived; nothing was put into place.
    #[error("{} of the files of {path} did not arrive, so nothing was put into place: {}", files.len(), shown(files))]
    Incomplete {
        /// The place.
        path: String,
        /// Each file.
        files: Vec<FileFault>,
    },
    /// It was tried and did not work.
    #[error("{what}")]
    Failed {
        /// What was attempted, and what went wrong.
        what: String,
        /// What to do.
        hint: String,
    },
}

fn shown(files: &[FileFault]) -> String {
    const SHOWN: usize = 3;
    let mut text: Vec<String> = files
        .iter()
        .take(SHOWN)
        .map(|file| format!("{} ({})", file.path, file.why))
        .collect();
    if files.len() > SHOWN {
        text.push("…".to_owned());
    }
    text.join(", ")
}

/// Puts skills into one environment.
#[async_trait]
pub trait TargetAdapter: Send + Sync + std::fmt::Debug {
    /// The kind of environment, such as `local` or `docker`.
    fn adapter_type(&self) -> &'static str;

    /// Asks whether the environment can be worked in. Every other call but `adapter_type` asks itself first.
    async fn health_check(&self) -> Result<Vitals, TargetFault>;

    /// Tells whether anything lies at a path, be it a link to nowhere.
    async fn path_exists(&self, path: &Path) -> Result<bool, TargetFault>;

    /// Looks at placements, in their order. Changes nothing.
    async fn inspect(&self, placements: &[Placement]) -> Result<Vec<Found>, TargetFault>;

    /// Puts the directory `source` of this host there, whole or not at all, and leaves nothing of an earlier version.
    ///
    /// What is foreign is never replaced. If repeated: the same is there.
    async fn install(
        &self,
        source: &Path,
        to: &Placement,
        mode: Mode,
        changed: Changed,
    ) -> Result<Installed, TargetFault>;

    /// Takes a skill away that this adapter put there. What is foreign stays. If repeated: says that nothing was there.
    async fn uninstall(&self, from: &Placement, changed: Changed) -> Result<Removed, TargetFault>;

    /// Runs a program there with exactly these arguments; no shell looks at them.
    async fn exec(&self, argv: &[String]) -> Result<Output, TargetFault>;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SKILL-2: what could make a removal hit something else cannot be written down.
    #[test]
    fn a_placement_is_always_a_direct_child_of_an_absolute_directory() {
        for (root, name) in [
            ("/", "alpha"),
            ("//", "alpha"),
            ("", "alpha"),
            ("skills", "alpha"),
            ("~/skills", "alpha"),
            ("/a/../b", "alpha"),
            ("/a", ""),
            ("/a", "."),
            ("/a", ".."),
            ("/a", "../b"),
            ("/a", "b/c"),
            ("/a", "/etc"),
            ("/a", "b/"),
            ("/a", ".hidden"),
            ("/a", "-rf"),
            ("/a", "b\nc"),
            ("/a\u{1b}", "b"),
        ] {
            assert!(Placement::new(root, name).is_err(), "{root:?} {name:?}");
        }
        let place = Placement::new("/home/u/.claude//skills/", "alpha").expect("a fine place");
        assert_eq!(place.path(), Path::new("/home/u/.claude/skills/alpha"));
        assert_eq!(
            place,
            Placement::new("/home/u/.claude/skills", "alpha").expect("the same")
        );
    }
}
