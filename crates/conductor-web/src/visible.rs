//! Shows every character that people cannot see as a visible code, and counts them (S-48).
//!
//! Used wherever foreign text meets a person: a terminal obeys control characters, and a plan that hides words from its
//! reader is not approved but smuggled. This module does not know where the text is shown.

use conductor_domain::message::is_hidden;

/// Text that hides nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visible {
    /// The text; hidden characters stand as `⟨U+200B⟩`.
    pub text: String,
    /// How many there were.
    pub hidden: usize,
}

/// Makes text of several lines visible.
pub fn text(text: &str) -> Visible {
    let mut shown = String::with_capacity(text.len());
    let mut hidden = 0;
    for c in text.chars() {
        if is_hidden(c) {
            hidden += 1;
            shown.push_str(&format!("\u{27e8}U+{:04X}\u{27e9}", u32::from(c)));
        } else {
            shown.push(c);
        }
    }
    Visible { text: shown, hidden }
}

/// Makes text visible on one line: line ends and runs of blanks become one blank.
pub fn line(line: &str) -> String {
    text(line).text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S-48.
    #[test]
    fn what_hides_or_commands_a_terminal_becomes_a_code() {
        let shown = text("a\u{1b}[2Jb\u{202e}c\u{200b}\u{e0041}\r\nd\te");
        assert_eq!(
            shown,
            Visible {
                text: "a\u{27e8}U+001B\u{27e9}[2Jb\u{27e8}U+202E\u{27e9}c\u{27e8}U+200B\u{27e9}\u{27e8}U+E0041\u{27e9}\u{27e8}U+000D\u{27e9}\nd\te".into(),
                hidden: 5
            }
        );
        assert_eq!(line("one\n  two\u{7}"), "one two\u{27e8}U+0007\u{27e9}");
        assert_eq!(text("plain é 漢\n").hidden, 0);
    }
}
