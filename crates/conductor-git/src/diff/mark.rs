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

/// How a folded name is spelt in the new tree. That there is more than one spelling is all that is asked, so no more than the
/// first is kept: a tree may hold as many spellings as it has paths.
enum Spelling<'a> {
    Unseen,
    One(&'a [u8]),
    Several,
}

impl<'a> Spelling<'a> {
    fn see(&mut self, spelling: &'a [u8]) {
        match self {
            Self::Unseen => *self = Self::One(spelling),
            Self::One(known) if *known != spelling => *self = Self::Several,
            Self::One(_) | Self::Several => {}
        }
    }
}

/// Tells for each change whether it adds a name that collides, in itself or in one of its directories.
///
/// Paths come in order, so that the directories of one were mostly met with the one before; only what is not shared with that
/// is looked at, or a long directory would be looked at anew for every file in it.
fn collisions(changes: &[Change], names: &[u8]) -> Vec<bool> {
    let is_new = |change: &&Change| change.old.is_none() && change.new.is_some();
    let mut spellings: HashMap<Vec<u8>, Spelling<'_>> = HashMap::new();
    let mut previous: &[u8] = b"";
    for change in changes.iter().filter(is_new) {
        for prefix in unshared(&change.path, previous) {
            spellings.entry(fold(prefix)).or_insert(Spelling::Unseen);
        }
        previous = &change.path;
    }
    if spellings.is_empty() {
        return vec![false; changes.len()];
    }
    previous = b"";
    for name in names.split(|b| *b == 0).filter(|name| !name.is_empty()) {
        for prefix in unshared(name, previous) {
            if let Some(spelling) = spellings.get_mut(&fold(prefix)) {
                spelling.see(prefix);
            }
        }
        previous = name;
    }
    let is_several = |prefix: &&[u8]| matches!(spellings.get(&fold(prefix)), Some(Spelling::Several));
    // How much of the path before this one it takes to collide.
    let mut colliding: Option<usize> = None;
    previous = b"";
    let mut found = Vec::with_capacity(changes.len());
    for change in changes {
        if is_new(&change) {
            let shared = shared(&change.path, previous);
            colliding = colliding
                .filter(|length| *length < shared)
                .or_else(|| unshared(&change.path, previous).find(is_several).map(<[u8]>::len));
            previous = &change.path;
            found.push(colliding.is_some());
        } else {
            found.push(false);
        }
    }
    found
}

/// How long the beginning is that two paths have in common.
fn shared(path: &[u8], other: &[u8]) -> usize {
    path.iter().zip(other).take_while(|(a, b)| a == b).count()
}

/// The path and each directory on the way to it that is not on the way to the other one.
fn unshared<'a>(path: &'a [u8], other: &[u8]) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    let shared = shared(path, other);
    prefixes(path).filter(move |prefix| prefix.len() >= shared)
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
    use std::time::{Duration, Instant};

    use super::*;
    use crate::diff::Entry;
    use crate::object::ObjectId;

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

    fn added(path: &[u8]) -> Change {
        Change {
            path: path.to_owned(),
            old: None,
            new: Some(Entry {
                kind: EntryKind::File,
                id: ObjectId::parse(&"1".repeat(40)).unwrap(),
                size: None,
                is_binary: false,
                content: None,
            }),
            marks: Vec::new(),
        }
    }

    /// Tells which of these new paths collide in a tree that holds them and these others.
    fn colliding(new: &[&str], others: &[&str]) -> Vec<String> {
        let mut names = [new, others].concat();
        names.sort_unstable();
        let mut changes: Vec<Change> = names
            .iter()
            .filter(|name| new.contains(name))
            .map(|name| added(name.as_bytes()))
            .collect();
        let tree = names.join("\0") + "\0";
        mark(&mut changes, &Blobs::default(), tree.as_bytes());
        let marked = changes.iter().filter(|change| !change.marks.is_empty());
        marked
            .map(|change| String::from_utf8_lossy(&change.path).into_owned())
            .collect()
    }

    /// S-11: a path collides in itself or in any of its directories, whatever stands between those that share one.
    #[test]
    fn a_new_name_collides_with_another_spelling_of_any_part_of_it() {
        for (new, others, expected) in [
            (&["a", "b/c"][..], &["d"][..], &[][..]),
            (&["a"], &["A"], &["a"]),
            (&["a", "A", "b"], &[], &["A", "a"]),
            (&["dir/a", "dir/b/c"], &["Dir/z"], &["dir/a", "dir/b/c"]),
            (&["Dir/a", "dir/a"], &[], &["Dir/a", "dir/a"]),
            (
                &["x/dir/a", "x/other/b", "x/dirs/c"],
                &["X/z"],
                &["x/dir/a", "x/dirs/c", "x/other/b"],
            ),
            (
                &["x/dir/a", "x/dir/b", "x/dirs/c", "x/e"],
                &["x/Dir/z"],
                &["x/dir/a", "x/dir/b"],
            ),
            (
                &["x/a/1", "x/a/2", "x/b", "x/c/3"],
                &["x/A/1"],
                &["x/a/1", "x/a/2"],
            ),
            (&["x/a/1", "x/a/2", "x/a/3"], &["x/a/TWO", "x/a/two"], &[]),
            (&["x/a/1", "x/a/B", "x/a/c"], &["x/a/b"], &["x/a/B"]),
        ] {
            assert_eq!(colliding(new, others), expected, "{new:?} beside {others:?}");
        }
    }

    /// How long it takes to mark these new paths, and how many of them collide.
    #[expect(clippy::disallowed_methods, reason = "how long it takes is what is asked")]
    fn marking(mut paths: Vec<String>) -> (Duration, usize) {
        paths.sort_unstable();
        let mut changes: Vec<Change> = paths.iter().map(|path| added(path.as_bytes())).collect();
        let tree = paths.join("\0");
        let started = Instant::now();
        mark(&mut changes, &Blobs::default(), tree.as_bytes());
        let found = changes.iter().filter(|change| !change.marks.is_empty()).count();
        (started.elapsed(), found)
    }

    /// S-11, DEP-3: hostile: as many spellings of one name as there are paths, and directories as deep as paths are long. Time
    /// that grows with the square of either would be hundreds of times what as many plain names of that length take.
    #[test]
    fn many_spellings_deep_in_a_tree_take_no_longer_than_as_many_names() {
        const LETTERS: usize = 17;
        for (count, depth) in [(100_000, 10), (2_000, 1_000)] {
            let spelt = |number: usize| -> String {
                let letters = (0..LETTERS).map(|bit| if number >> bit & 1 == 1 { 'A' } else { 'a' });
                "d/".repeat(depth) + &letters.collect::<String>()
            };
            let plain = |number: usize| format!("{number:0>width$}", width = 2 * depth + LETTERS);
            let (usual, none) = marking((0..count).map(plain).collect());
            let (taken, all) = marking((0..count).map(spelt).collect());
            assert_eq!((none, all), (0, count));
            assert!(
                taken < 20 * usual + Duration::from_secs(1),
                "{count} paths took {taken:?}, and {usual:?} with plain names"
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
