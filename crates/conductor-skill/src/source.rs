//! Where a skill comes from: a directory, a git repository, or the index of a registry.
//!
//! What a person types is told apart by its form alone. This module does not know whether anything is there.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use semver::VersionReq;

use crate::name::SkillName;

/// Where a skill comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A directory of this machine.
    Path(PathBuf),
    /// A directory in a git repository.
    Git(GitSource),
    /// A name in a registry, and the versions that will do.
    Registry {
        /// The versions.
        version: VersionReq,
        /// The registry; without one, the first that knows the name.
        registry: Option<String>,
    },
}

/// A directory in a git repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitSource {
    /// The repository.
    pub url: String,
    /// A branch, a tag or a full id; without one, the default branch.
    pub reference: Option<String>,
    /// The directory; empty for the top.
    pub subpath: String,
}

/// What a person typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// A place that may hold several skills.
    Place(Source),
    /// One skill of a registry.
    Named(SkillName),
}

/// Why a text is no source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no source of skills: {why}")]
pub struct InvalidSource {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub why: &'static str,
}

/// Reads what a person typed; relative paths begin at `here`, `~` is `home`.
pub fn wanted(text: &str, here: &Path, home: Option<&Path>) -> Result<Wanted, InvalidSource> {
    let refuse = |why| {
        Err(InvalidSource {
            text: text.to_owned(),
            why,
        })
    };
    if matches!(text, "." | ".." | "~")
        || ["./", "../", "/", "~/"]
            .iter()
            .any(|start| text.starts_with(start))
    {
        return match expand(text, here, home) {
            Some(path) => Ok(Wanted::Place(Source::Path(path))),
            None => refuse("the home directory is not known"),
        };
    }
    let git = |url: String, reference: Option<&str>, subpath: &str| match checked_subpath(subpath) {
        Some(subpath) => Ok(Wanted::Place(Source::Git(GitSource {
            url,
            reference: reference.map(str::to_owned),
            subpath,
        }))),
        None => refuse("its path leads out of the repository"),
    };
    if let Some((repository, rest)) = text.split_once("/tree/")
        && repository.starts_with("https://")
    {
        // A branch with a slash in its name must be given by --ref.
        let (reference, subpath) = rest.split_once('/').unwrap_or((rest, ""));
        return git(repository.to_owned(), Some(reference), subpath);
    }
    if text.contains("://") {
        return git(text.to_owned(), None, "");
    }
    if text.contains('@') || text.contains(':') {
        return refuse("ssh addresses are not supported; use https://");
    }
    let mut parts = text.split('/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(owner), Some(name), None) if is_part(owner) && is_part(name) => {
            git(format!("https://github.com/{owner}/{name}"), None, "")
        }
        (Some(name), None, None) => match SkillName::parse(name) {
            Ok(name) => Ok(Wanted::Named(name)),
            Err(_) => refuse("it is neither a path, an address, owner/repo, nor the name of a skill"),
        },
        _ => refuse("it is neither a path, an address, owner/repo, nor the name of a skill"),
    }
}

/// Makes a path absolute.
pub fn expand(text: &str, here: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let path = match text.strip_prefix('~') {
        Some("") => home?.to_owned(),
        Some(rest) if rest.starts_with('/') => home?.join(rest.trim_start_matches('/')),
        Some(_) | None => here.join(text),
    };
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => plain.push(part),
        }
    }
    Some(plain)
}

/// A path that stays below the top, without dots; empty for the top itself.
pub(crate) fn checked_subpath(text: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." => return None,
            part if part == ".git" || part.chars().any(char::is_control) => return None,
            part => parts.push(part),
        }
    }
    (!text.starts_with('/')).then(|| parts.join("/"))
}

fn is_part(part: &str) -> bool {
    part.starts_with(|c: char| c.is_ascii_alphanumeric())
        && part
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Git(GitSource {
                url,
                reference,
                subpath,
            }) => {
                f.write_str(url)?;
                if let Some(reference) = reference {
                    write!(f, "@{reference}")?;
                }
                if !subpath.is_empty() {
                    write!(f, "#{subpath}")?;
                }
                Ok(())
            }
            Self::Registry { version, registry } => {
                write!(f, "registry:{} {version}", registry.as_deref().unwrap_or("*"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let shown = match wanted(text, Path::new("/here"), Some(Path::new("/home/u"))) {
            Ok(Wanted::Place(source)) => source.to_string(),
            Ok(Wanted::Named(name)) => format!("named {name}"),
            Err(error) => error.why.to_owned(),
        };
        assert_eq!(shown, expected, "{text}");
    }

    /// SKILL-4.
    #[test]
    fn a_source_is_told_by_its_form() {
        check("./skills", "/here/skills");
        check("../x/./y", "/x/y");
        check("~/skills", "/home/u/skills");
        check("/a/b", "/a/b");
        check("owner/repo", "https://github.com/owner/repo");
        check("https://git.example/o/r.git", "https://git.example/o/r.git");
        check("file:///srv/o/r", "file:///srv/o/r");
        check(
            "https://github.com/o/r/tree/main/skills/alpha",
            "https://github.com/o/r@main#skills/alpha",
        );
        check("alpha", "named alpha");
        check(
            "git@github.com:o/r.git",
            "ssh addresses are not supported; use https://",
        );
        let neither = "it is neither a path, an address, owner/repo, nor the name of a skill";
        for bad in ["", "a/b/c", "Not A Name", "-x/y", "o/-r"] {
            check(bad, neither);
        }
        check(
            "https://github.com/o/r/tree/main/../../etc",
            "its path leads out of the repository",
        );
    }
}
