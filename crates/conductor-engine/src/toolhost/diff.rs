//! Leaves files out of what git says that differs: whoever may look at some of a worktree need not be one who may look at all
//! of it (SEC-1).
//!
//! A line of a file never begins a line of a diff, so files are told apart by their headers, however hostile they are; the
//! diff must be whole up to its end. What cannot be read for certain is left out. This module does not know who may see what.

/// Begins what is said of one file.
const HEADER: &[u8] = b"diff --git ";
/// Begin the lines that name a file that was moved or copied; its header cannot be read for certain.
const MOVES: [&[u8]; 4] = [b"rename from ", b"rename to ", b"copy from ", b"copy to "];

/// Begin a line of a status, two of them: how a file differs from what is staged, and that from the commit.
const STATES: &[u8] = b" MTADRCU?!";

/// Leaves out the files that may not be seen; tells how many.
pub(super) fn only(diff: &[u8], may_see: &(dyn Fn(&str) -> bool + Sync)) -> (Vec<u8>, usize) {
    let mut shown = vec![];
    let mut hidden = 0_usize;
    // What stands before the first file is about none.
    let mut is_shown = true;
    let mut lines = diff.split_inclusive(|byte| *byte == b'\n').peekable();
    while let Some(line) = lines.next() {
        if let Some(header) = line.strip_prefix(HEADER) {
            let mut moves = vec![];
            let mut rest = lines.clone();
            while let Some(next) = rest.next_if(|next| !next.starts_with(HEADER)) {
                moves.extend(MOVES.iter().filter_map(|word| next.strip_prefix(*word)));
            }
            is_shown = names(header, &moves).is_some_and(|names| names.iter().all(|name| may_see(name)));
            hidden += usize::from(!is_shown);
        }
        if is_shown {
            shown.extend_from_slice(line);
        }
    }
    (shown, hidden)
}

/// Leaves out the lines of a status whose names may not be seen; tells how many.
pub(super) fn only_names(status: &[u8], may_see: &(dyn Fn(&str) -> bool + Sync)) -> (Vec<u8>, usize) {
    let mut shown = vec![];
    let mut hidden = 0_usize;
    for line in status.split_inclusive(|byte| *byte == b'\n') {
        let is_shown = match line {
            [index, tree, b' ', name @ ..] if STATES.contains(index) && STATES.contains(tree) => whole(name)
                .and_then(unquoted)
                .is_some_and(|name| may_see(name.trim_end_matches('/'))),
            // The branch, and what went wrong.
            _ => true,
        };
        if is_shown {
            shown.extend_from_slice(line);
        }
        hidden += usize::from(!is_shown);
    }
    (shown, hidden)
}

/// Reads which files are meant: one that stands on both sides, or those that a move names.
fn names(header: &[u8], moves: &[&[u8]]) -> Option<Vec<String>> {
    if !moves.is_empty() {
        return moves.iter().map(|name| unquoted(whole(name)?)).collect();
    }
    let header = whole(header)?;
    let (left, right) = header.split_at_checked(header.len() / 2)?;
    let (left, right) = (unquoted(left)?, unquoted(right.strip_prefix(b" ")?)?);
    let (left, right) = (left.strip_prefix("a/")?, right.strip_prefix("b/")?);
    (left == right).then(|| vec![left.to_owned()])
}

/// Returns a line that was not cut off.
fn whole(line: &[u8]) -> Option<&[u8]> {
    line.strip_suffix(b"\n")
}

/// Reads a name as git writes it: as it is, or in quotes with escapes.
fn unquoted(name: &[u8]) -> Option<String> {
    let Some(quoted) = name.strip_prefix(b"\"") else {
        return Some(String::from_utf8_lossy(name).into_owned());
    };
    let mut rest = quoted.strip_suffix(b"\"")?.iter().copied();
    let mut bytes = vec![];
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next()? {
            b'a' => 0x07,
            b'b' => 0x08,
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 0x0b,
            b'f' => 0x0c,
            b'r' => b'\r',
            same @ (b'"' | b'\\') => same,
            first @ b'0'..=b'3' => {
                let mut code = first - b'0';
                for _ in 0..2 {
                    let digit = rest.next().filter(|digit| (b'0'..=b'7').contains(digit))?;
                    code = code * 8 + (digit - b'0');
                }
                code
            }
            _ => return None,
        });
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(diff: &str, expected: &str, hidden: usize) {
        let (shown, count) = only(diff.as_bytes(), &|path| {
            !path.starts_with("secrets/") && !path.contains("geheimnis")
        });
        let shown = String::from_utf8_lossy(&shown).into_owned();
        assert_eq!((shown.as_str(), count), (expected, hidden), "{diff}");
    }

    fn file(header: &str, more: &str) -> String {
        format!("diff --git {header}\nindex 1..2 100644\n{more}@@ -1 +1 @@\n-hunter2\n+hunter3\n")
    }

    /// SEC-1: what may not be viewed is left out, and counted.
    #[test]
    fn only_what_may_be_seen_is_in_a_diff() {
        let seen = file("a/a b b/a b", "");
        let hidden = file("a/secrets/key b/secrets/key", "");
        check(&seen, &seen, 0);
        check("fatal: bad revision 'HEAD'\n", "fatal: bad revision 'HEAD'\n", 0);
        check(
            &format!("{seen}{hidden}{seen}{hidden}"),
            &format!("{seen}{seen}"),
            2,
        );
    }

    /// SEC-1: nor is it named in a status, however its name is written; the branch and git's complaints are.
    #[test]
    fn only_what_may_be_seen_is_named_in_a_status() {
        let status = "## main...origin/main\n M src/a b\n?? secrets/\n?? secrets/key\nD  \"secrets/\\303\\244\"\n\
                      A  \"\\147eheimnis\"\n?? \"torn\nwarning: no such thing\n";
        let (shown, hidden) = only_names(status.as_bytes(), &|path| {
            path != "secrets" && !path.starts_with("secrets/") && !path.contains("geheimnis")
        });
        assert_eq!(
            (String::from_utf8_lossy(&shown).as_ref(), hidden),
            ("## main...origin/main\n M src/a b\nwarning: no such thing\n", 5)
        );
        assert_eq!(only_names(b" M cut off", &|_| true), (vec![], 1));
    }

    /// SEC-1: neither the way a name is written nor a move leads past it.
    #[test]
    fn no_name_gets_a_file_into_a_diff() {
        for header in [
            r#""a/secrets/\303\244\n\"x" "b/secrets/\303\244\n\"x""#,
            r#""a/\147eheimnis\t" "b/\147eheimnis\t""#,
            "a/x b/y",
            "a/x b/x b/x",
            "",
            "a/x",
        ] {
            check(&file(header, ""), "", 1);
        }
        check("diff --git a/x b/x", "", 1);
        let quoted = file(r#""a/\"\\\t" "b/\"\\\t""#, "");
        check(&quoted, &quoted, 0);
        let moved = |from: &str, to: &str| {
            let named = format!("similarity index 90%\nrename from {from}\nrename to {to}\n");
            file(&format!("a/{from} b/{to}"), &named)
        };
        check(&moved("secrets/key", "key"), "", 1);
        check(&moved("key", "secrets/key"), "", 1);
        check(&moved("x", "y"), &moved("x", "y"), 0);
    }
}
