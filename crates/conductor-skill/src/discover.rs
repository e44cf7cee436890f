//! Finds the skills in a directory that may hold many.
//!
//! The usual places are looked at first; only where none holds a skill, everything is searched. This module does not
//! know where the directory comes from.

use std::fs;
use std::path::Path;

use crate::manifest;

const USUAL: [&str; 9] = [
    "",
    "skills",
    "packages",
    "skills/.curated",
    "skills/.experimental",
    "skills/.system",
    ".claude/skills",
    ".agents/skills",
    ".codex/skills",
];
const DEEPEST: usize = 6;
/// More skills are not found in one place.
pub const MOST: usize = 256;

/// Lists the paths of skills below `top`, sorted; the empty path is `top` itself.
pub fn skills(top: &Path) -> Vec<String> {
    let mut found = Vec::new();
    if manifest::find(top).is_some() {
        found.push(String::new());
    }
    for place in USUAL {
        for name in directories(&top.join(place)) {
            let path = if place.is_empty() {
                name
            } else {
                format!("{place}/{name}")
            };
            if manifest::find(&top.join(&path)).is_some() {
                found.push(path);
            }
        }
    }
    if found.is_empty() {
        search(top, "", 0, &mut found);
    }
    found.sort();
    found.dedup();
    found.truncate(MOST);
    found
}

fn search(top: &Path, below: &str, depth: usize, found: &mut Vec<String>) {
    if depth >= DEEPEST || found.len() >= MOST {
        return;
    }
    for name in directories(&top.join(below)) {
        let path = if below.is_empty() {
            name
        } else {
            format!("{below}/{name}")
        };
        if manifest::find(&top.join(&path)).is_some() {
            found.push(path.clone());
        }
        search(top, &path, depth + 1, found);
    }
}

/// Names of directories, following no links.
fn directories(at: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(at)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !matches!(name.as_str(), ".git" | "node_modules" | "target"))
        .collect();
    names.sort();
    names
}
