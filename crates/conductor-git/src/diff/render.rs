//! Renders a difference as unified text, from the objects themselves.
//!
//! For people only: nothing is decided from this text, and what is left out says so and how much it was.
//! This module does not know the page it is shown on.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

use similar::TextDiff;

use crate::diff::{Blobs, Change, Entry, EntryKind};

/// Longest rendering of one file.
const FILE_LIMIT: usize = 512 * 1024;

/// Longest rendering of all files.
const TOTAL_LIMIT: usize = 4 * 1024 * 1024;

/// After this long, one file's difference becomes coarser instead of slower.
const FILE_TIME: Duration = Duration::from_secs(2);

/// Renders all changes; a limit that cuts something off is marked where it does. Tells which paths are not whole.
pub(crate) fn render(changes: &[Change], blobs: &Blobs) -> (String, Vec<String>) {
    let mut text = String::new();
    let mut unshown = Vec::new();
    for (at, change) in changes.iter().enumerate() {
        if text.len() > TOTAL_LIMIT {
            let _ = writeln!(
                text,
                "[truncated: {} more changed files are not shown]",
                changes.len() - at
            );
            unshown.extend(changes[at..].iter().map(|change| shown_path(&change.path)));
            break;
        }
        if render_change(&mut text, change, blobs) == Shown::Cut {
            unshown.push(shown_path(&change.path));
        }
    }
    (text, unshown)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// All that can be shown: the lines, or that it is binary.
    Whole,
    /// Less than there is.
    Cut,
}

fn render_change(text: &mut String, change: &Change, blobs: &Blobs) -> Shown {
    let path = shown_path(&change.path);
    let _ = match (&change.old, &change.new) {
        (None, Some(new)) => writeln!(text, "added {} {path}", kind(new)),
        (Some(old), None) => writeln!(text, "removed {} {path}", kind(old)),
        (Some(old), Some(new)) if old.kind != new.kind => {
            writeln!(text, "changed {path} from {} to {}", kind(old), kind(new))
        }
        (Some(_), Some(_)) | (None, None) => writeln!(text, "changed {path}"),
    };
    let sides = [&change.old, &change.new];
    if sides.iter().any(|side| {
        side.as_ref()
            .is_some_and(|entry| entry.kind == EntryKind::Gitlink)
    }) {
        for (sign, side) in ['-', '+'].into_iter().zip(sides) {
            if let Some(entry) = side {
                let _ = writeln!(text, "{sign}{} {}", kind(entry), entry.id);
            }
        }
        return Shown::Whole;
    }
    let [Some(old), Some(new)] = sides.map(|side| content(side.as_ref(), blobs)) else {
        let size = |side: &Option<Entry>| side.as_ref().and_then(|entry| entry.size).unwrap_or(0);
        let _ = writeln!(
            text,
            "[not shown: binary or large, {} → {} bytes]",
            size(sides[0]),
            size(sides[1])
        );
        // A side that was not read counts as binary, and may be anything.
        let is_read = |entry: &Entry| blobs.content(&entry.id).is_some();
        if sides.iter().copied().flatten().all(is_read) {
            return Shown::Whole;
        }
        return Shown::Cut;
    };
    let (old, new) = shown_sides(text, old, new);
    let diff = TextDiff::configure().timeout(FILE_TIME).diff_lines(&*old, &*new);
    let name = |side: &Option<Entry>, prefix| {
        if side.is_some() {
            format!("{prefix}/{path}")
        } else {
            "/dev/null".to_owned()
        }
    };
    let (from, to) = (name(&change.old, 'a'), name(&change.new, 'b'));
    let rendered = diff
        .unified_diff()
        .context_radius(3)
        .header(&from, &to)
        .to_string();
    if rendered.len() <= FILE_LIMIT {
        text.push_str(&rendered);
        return Shown::Whole;
    }
    let end = (0..=FILE_LIMIT)
        .rev()
        .find(|at| rendered.is_char_boundary(*at))
        .unwrap_or(0);
    text.push_str(&rendered[..end]);
    let _ = writeln!(
        text,
        "\n[truncated: {} more bytes of this file are not shown]",
        rendered.len() - end
    );
    Shown::Cut
}

/// The text of one side, empty for a side that is not there; `None` when it is not to be shown.
fn content<'a>(side: Option<&Entry>, blobs: &'a Blobs) -> Option<&'a [u8]> {
    match side {
        None => Some(b""),
        Some(entry) if entry.is_binary => None,
        Some(entry) => blobs.content(&entry.id),
    }
}

/// Both sides as text. Where a byte of either is none, each such byte is shown as its code, and a line says so: a change from
/// one of them to another would be shown as nothing otherwise, and be approved as that (S-49).
fn shown_sides<'a>(text: &mut String, old: &'a [u8], new: &'a [u8]) -> (Cow<'a, str>, Cow<'a, str>) {
    if let (Ok(old), Ok(new)) = (std::str::from_utf8(old), std::str::from_utf8(new)) {
        return (Cow::Borrowed(old), Cow::Borrowed(new));
    }
    let _ = writeln!(
        text,
        "[not UTF-8: a byte that is no text is shown as ⟨\\xNN⟩, and {OPEN} as {SHOWN_OPEN}]"
    );
    (Cow::Owned(shown_bytes(old)), Cow::Owned(shown_bytes(new)))
}

/// What the code of a byte begins with. It is shown as a code itself where it stands in the text, so that no text reads like a
/// byte, and sides that differ are shown as texts that differ.
const OPEN: char = '⟨';
const SHOWN_OPEN: &str = "⟨U+27E8⟩";

/// Shows every byte. A code ends with what is no letter: whoever takes secrets out knows where a word begins, and must find one
/// beside a code that was found beside the byte.
fn shown_bytes(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        shown.push_str(&chunk.valid().replace(OPEN, SHOWN_OPEN));
        for byte in chunk.invalid() {
            let _ = write!(shown, "{OPEN}\\x{byte:02x}⟩");
        }
    }
    shown
}

fn kind(entry: &Entry) -> &'static str {
    match entry.kind {
        EntryKind::File => "file",
        EntryKind::Executable => "executable file",
        EntryKind::Symlink => "symbolic link",
        EntryKind::Gitlink => "gitlink",
    }
}

/// Writes a path so that it is one line and shows every byte that is not plain text.
pub(crate) fn shown_path(path: &[u8]) -> String {
    let mut shown = String::new();
    for chunk in path.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c == '\\' || c.is_control() {
                shown.extend(c.escape_default());
            } else {
                shown.push(c);
            }
        }
        for b in chunk.invalid() {
            let _ = write!(shown, "\\x{b:02x}");
        }
    }
    shown
}
