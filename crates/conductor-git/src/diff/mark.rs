//! Marks the changes that need a human whatever the plan says (S-11).
//!
//! This module does not know who is asked.

use std::collections::HashMap;

use unicode_normalization::UnicodeNormalization as _;

use crate::diff::{Blobs, Change, EntryKind};

/// Names that change how git behaves for whoever clones the repository.
const GIT_SETTINGS: [&[u8]; 3] = [b".gitmodules", b".gitattributes", b".lfsconfig"];

/// Something about a change that needs a human.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// A link to a commit of another repository appears, changes or goes.
    Gitlink,
    /// A file that changes how git behaves.
    GitSettings,
    /// A symbolic link that is absolute, leaves the tree, or cannot be followed by reading it alone.
    EscapingSymlink,
    /// A new name that some file systems cannot tell from another.
    CollidingName,
}

/// Marks every change; `names` are the zero-terminated paths of the new tree.
pub(crate) fn mark(changes: &mut [Change], blobs: &Blobs, names: &[u8]) {
    let colliding = collisions(changes, names);
    for (change, collides) in changes.iter_mut().zip(colliding) {
        let sides = [&change.old, &change.new];
        if sides.iter().any(|side| {
            side.as_ref()
                .is_some_and(|entry| entry.kind == EntryKind::Gitlink)
        }) {
            change.marks.push(Mark::Gitlink);
        }
        if GIT_SETTINGS
            .iter()
            .any(|name| name.eq_ignore_ascii_case(last_part(&change.path)))
        {
            change.marks.push(Mark::GitSettings);
        }
        let link = change
            .new
            .as_ref()
            .filter(|entry| entry.kind == EntryKind::Symlink);
        if link.is_some_and(|entry| {
            blobs
                .content(&entry.id)
                .is_none_or(|target| escapes(&change.path, target))
        }) {
            change.marks.push(Mark::EscapingSymlink);
        }
        if collides {
            change.marks.push(Mark::CollidingName);
        }
    }
}

fn last_part(path: &[u8]) -> &[u8] {
    path.rsplit(|b| *b == b'/').next().unwrap_or(path)
}

/// Tells whether a link at `path` can lead out of the tree.
///
/// Leading `..` are counted against the depth of the link. One that follows a name is not: the name may itself be
/// a link, and then `..` is the parent of wherever that leads.
fn escapes(path: &[u8], target: &[u8]) -> bool {
    let depth = path.split(|b| *b == b'/').count() - 1;
    let parts: Vec<&[u8]> = target
        .split(|b| *b == b'/')
        .filter(|part| !part.is_empty() && *part != b".")
        .collect();
    let leading = parts.iter().take_while(|part| **part == b"..").count();
    let later = parts[leading..].contains(&&b".."[..]);
    let enters_git = parts.iter().any(|part| part.eq_ignore_ascii_case(b".git"));
    target.first() == Some(&b'/') || target.contains(&0) || leading > depth || later || enters_git
}

/// Tells for each change whether it adds a name that collides, in itself or in one of its directories.
fn collisions(changes: &[Change], names: &[u8]) -> Vec<bool> {
    let is_new = |change: &&Change| change.old.is_none() && change.new.is_some();
    // What each folded name that a change adds is spelt like in the new tree; more than one spelling collides.
    let mut spellings: HashMap<Vec<u8>, Vec<&[u8]>> = HashMap::new();
    for change in changes.iter().filter(is_new) {
        for prefix in prefixes(&change.path) {
            spellings.entry(fold(prefix)).or_default();
        }
    }
    if !spellings.is_empty() {
        let mut previous: &[u8] = b"";
        for name in names.split(|b| *b == 0).filter(|name| !name.is_empty()) {
            // Names come in order, so the directories of one were mostly seen with the one before.
            let parent = name.len() - last_part(name).len();
            let seen = previous.get(..parent) == Some(&name[..parent]);
            for prefix in prefixes(name) {
                if seen && prefix.len() < parent {
                    continue;
                }
                if let Some(known) = spellings.get_mut(&fold(prefix))
                    && !known.contains(&prefix)
                {
                    known.push(prefix);
                }
            }
            previous = name;
        }
    }
    changes
        .iter()
        .map(|change| {
            is_new(&change)
                && prefixes(&change.path)
                    .any(|prefix| spellings.get(&fold(prefix)).is_some_and(|s| s.len() > 1))
        })
        .collect()
}

/// The path and each directory on the way to it, shortest first.
fn prefixes(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = path
        .iter()
        .enumerate()
        .filter(|(_, b)| **b == b'/')
        .map(|(at, _)| at);
    ends.chain(std::iter::once(path.len())).map(|end| &path[..end])
}

/// What a file system that ignores case and normal form makes of a name.
fn fold(name: &[u8]) -> Vec<u8> {
    match std::str::from_utf8(name) {
        Ok(text) if !text.is_ascii() => {
            let lower: String = text.nfd().flat_map(char::to_lowercase).collect();
            lower.nfc().collect::<String>().into_bytes()
        }
        _ => name.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S-11.
    #[test]
    fn links_that_can_leave_the_tree_are_found() {
        for (path, target, expected) in [
            ("a", "b", false),
            ("d/a", "../b", false),
            ("d/a", "./../b/", false),
            ("a", "/etc/passwd", true),
            ("a", "../b", true),
            ("d/a", "../../b", true),
            ("d/a", "x/../../../b", true),
            ("a", "maybe-a-link/..", true),
            ("a", ".git/config", true),
            ("d/a", "../.GIT/hooks", true),
            ("a", "b\0/../..", true),
        ] {
            assert_eq!(
                escapes(path.as_bytes(), target.as_bytes()),
                expected,
                "{path} -> {target}"
            );
        }
    }

    #[test]
    fn names_fold_by_case_and_normal_form() {
        assert_eq!(fold("Ä".as_bytes()), fold("a\u{308}".as_bytes()));
        assert_eq!(fold(b"README"), fold(b"readme"));
        assert_ne!(fold(b"a"), fold(b"b"));
        assert_ne!(fold(b"\xff\x41"), fold(b"\xfe\x61"));
    }
}
