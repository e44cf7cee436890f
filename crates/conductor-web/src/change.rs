//! Takes the rendered change of a run apart by files, and compares two texts line by line.
//!
//! Every line of a file's content begins with its sign, so that none of them passes for the name of another file. This
//! module does not know where a change is kept, nor how it is shown.

use std::time::Duration;

use similar::TextDiff;

/// After this long a comparison becomes coarser instead of slower.
const PATIENCE: Duration = Duration::from_millis(200);
/// The signs of lines that belong to the file above them: content, places, and notes about what is left out.
const SIGNS: [char; 6] = ['+', '-', ' ', '@', '\\', '['];

/// What became of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileChange<'a> {
    /// What became of it, in words: `added file src/a.rs`.
    pub(crate) says: &'a str,
    /// Its path, as it is shown.
    pub(crate) path: &'a str,
    /// How many lines were added.
    pub(crate) added: usize,
    /// How many were removed.
    pub(crate) removed: usize,
    /// All of it, its first line included.
    pub(crate) text: &'a str,
}

/// Takes a rendered change apart.
pub(crate) fn files(text: &str) -> Vec<FileChange<'_>> {
    let mut starts: Vec<usize> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if !line.starts_with(SIGNS) && !line.trim_end().is_empty() {
            starts.push(at);
        }
        at += line.len();
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let parts: Vec<(usize, usize)> = starts.iter().copied().zip(ends).collect();
    parts
        .into_iter()
        .map(|(start, end)| file(&text[start..end]))
        .collect()
}

fn file(text: &str) -> FileChange<'_> {
    let says = text.lines().next().unwrap_or_default();
    let mut change = FileChange {
        says,
        path: named(says),
        added: 0,
        removed: 0,
        text,
    };
    let mut is_head = true;
    for line in text.lines().skip(1) {
        is_head &= !line.starts_with('@');
        match (is_head, line.as_bytes().first()) {
            (true, Some(b'+')) => change.path = line.strip_prefix("+++ b/").unwrap_or(change.path),
            (false, Some(b'+')) => change.added += 1,
            (false, Some(b'-')) => change.removed += 1,
            (true | false, _) => {}
        }
    }
    change
}

/// The path in the words of a change that has no lines.
fn named(says: &str) -> &str {
    let rest = ["added ", "removed ", "changed "]
        .iter()
        .find_map(|verb| says.strip_prefix(verb))
        .unwrap_or(says);
    ["executable file ", "file ", "symbolic link ", "gitlink "]
        .iter()
        .find_map(|kind| rest.strip_prefix(kind))
        .unwrap_or(rest)
}

/// Says what is different between two texts, as a change with a few lines around each place; empty where nothing is.
pub(crate) fn between(before: &str, after: &str) -> String {
    TextDiff::configure()
        .timeout(PATIENCE)
        .diff_lines(before, after)
        .unified_diff()
        .context_radius(3)
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S-49: no line of a file passes for another file.
    #[test]
    fn a_change_is_taken_apart_by_files_and_by_nothing_else() {
        let text = [
            "changed a.rs",
            "--- a/a.rs",
            "+++ b/a.rs",
            "@@ -1,2 +1,3 @@",
            " same",
            "-changed b.rs",
            "+added file evil",
            "++++ b/evil",
            "\\ No newline at end of file",
            "added executable file run me",
            "[not shown: binary or large, 0 → 9 bytes]",
            "removed gitlink sub",
            "-gitlink 1",
            "[truncated: 3 more changed files are not shown]",
            "",
        ]
        .join("\n");
        let found: Vec<(&str, &str, usize, usize)> = files(&text)
            .iter()
            .map(|file| (file.says, file.path, file.added, file.removed))
            .collect();
        assert_eq!(
            found,
            [
                ("changed a.rs", "a.rs", 2, 1),
                ("added executable file run me", "run me", 0, 0),
                ("removed gitlink sub", "sub", 0, 0),
            ]
        );
        let parts: String = files(&text).iter().map(|file| file.text).collect();
        assert_eq!(parts, text, "nothing is left out");
        assert_eq!(files(""), []);
    }

    #[test]
    fn what_differs_is_said_with_its_surroundings() {
        let before = "one\ntwo\nthree\n";
        assert_eq!(between(before, before), "");
        let said = between(before, "one\nTWO\nthree\n");
        assert_eq!(said, "@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n");
    }
}
