//! Folds lines before the terminal does, so that every row begins as its first one does.
//!
//! This module does not know whose words they are.

/// Less room than this is no room to fold in; the terminal is left to it.
const LEAST: usize = 10;
/// As wide as a tab may be.
const TAB: usize = 8;

/// Text with `first` before each of its lines, folded into so many columns with `next` before what goes on.
pub(crate) fn folded(text: &str, room: Option<usize>, first: &str, next: &str) -> String {
    let left = room.map(|room| {
        let before = first.chars().count().max(next.chars().count());
        room.saturating_sub(before).max(LEAST)
    });
    let mut out = String::new();
    for (place, line) in text.split('\n').enumerate() {
        let mut rest = line;
        let mut before = if place == 0 { first } else { next };
        while let Some(end) = left.and_then(|left| fold(rest, left)) {
            let (row, more) = rest.split_at(end);
            out.push_str(&format!("{before}{row}\n"));
            (rest, before) = (more, next);
        }
        out.push_str(&format!("{before}{rest}\n"));
    }
    out
}

/// Where text is folded to fit: behind the last space that fits, or before the first character that does not.
fn fold(text: &str, room: usize) -> Option<usize> {
    let mut wide = 0;
    let mut behind_space = None;
    for (at, c) in text.char_indices() {
        wide += match c {
            '\t' => TAB,
            c => console::measure_text_width(c.encode_utf8(&mut [0; 4])),
        };
        if wide > room {
            return Some(behind_space.unwrap_or(at));
        }
        if c == ' ' {
            behind_space = Some(at + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_fit_and_begin_as_they_should() {
        let text = "one two three four\nabcdefghijklmnop";
        assert_eq!(
            folded(text, None, "> ", "  "),
            format!("> {}\n", text.replace('\n', "\n  "))
        );
        assert_eq!(
            folded(text, Some(12), "> ", "| "),
            "> one two \n| three four\n| abcdefghij\n| klmnop\n"
        );
        assert_eq!(folded("", Some(12), "> ", "| "), "> \n");
        // A terminal of no width folds by itself.
        assert_eq!(
            folded("0123456789abc", Some(1), "> ", "| "),
            "> 0123456789\n| abc\n"
        );
    }
}
