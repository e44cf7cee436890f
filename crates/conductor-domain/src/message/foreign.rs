//! Foreign words on their way to the forge: shown as text or code, never taken for ours, calling nobody, hiding nothing
//! (S-48).
//!
//! This module does not know what a message is.

/// How the visible code of a hidden character begins.
pub(super) const CODE_OPENS: &str = "\u{27e8}U+";
/// What makes a number after it a reference, which would notify, link back, or close a foreign issue.
const REFERENCES: [&str; 5] = ["gh-", "/issues/", "/pull/", "/pulls/", "/discussions/"];

pub(super) fn harmless_line(text: &str) -> String {
    harmless(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Makes foreign text harmless: shown as text, never taken for ours, calling nobody, hiding nothing (S-48).
pub fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    let mut at_line_start = true;
    let mut line = Line::Begins;
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let next = characters.peek().copied();
        match c {
            '\n' => {
                drop_trailing_tab(&mut out);
                out.push('\n');
                at_line_start = true;
                line = Line::Begins;
                continue;
            }
            // A code block opens and closes at the very beginning of a line only, see `end_of_fence`.
            '`' | '~' if line == Line::Opens && is_fence(c, characters.clone()) => {
                out.push('\\');
                out.push(c);
            }
            '\t' => out.push('\t'),
            '<' => out.push_str("&lt;"),
            // It would become a sign of its own: `&#64;ann` calls ann, `&num;1` refers to an issue.
            '&' if next.is_some_and(|next| next == '#' || next.is_ascii_alphanumeric()) => {
                out.push_str("&amp;");
            }
            // An entity would be decoded before mentions and references are looked for.
            '@' if next.is_some_and(char::is_alphanumeric) => out.push_str("(at)"),
            '#' if next.is_some_and(|next| next.is_ascii_digit()) => out.push_str("no. "),
            '[' if at_line_start => out.push_str("\\["),
            '!' if next == Some('[') => out.push_str("&#33;"),
            // A link shows its target, and no text defines one: a definition counts for the whole message, from inside a
            // quote or a list too, and would make our own first line lead elsewhere.
            ']' if matches!(next, Some('(' | ':')) => out.push_str("] "),
            c => push_visible(&mut out, c),
        }
        if !c.is_whitespace() {
            at_line_start = false;
        }
        line = line.after(c);
    }
    drop_trailing_tab(&mut out);
    out
}

/// Takes the blanks from the end of a line that has a tab among them: whether such a fence closes is read in two ways.
fn drop_trailing_tab(line: &mut String) {
    let words = line.trim_end_matches([' ', '\t']).len();
    if line[words..].contains('\t') {
        line.truncate(words);
    }
}

/// How far a line is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Nothing of it.
    Begins,
    /// Nothing but blanks and what opens quotes and lists, in which another line may begin.
    Opens,
    /// Words.
    GoesOn,
}

impl Line {
    fn after(self, c: char) -> Self {
        let opens = c.is_whitespace() || c.is_ascii_digit() || matches!(c, '>' | '-' | '*' | '+' | '.' | ')');
        match self {
            Self::Begins | Self::Opens if opens => Self::Opens,
            Self::Begins | Self::Opens | Self::GoesOn => Self::GoesOn,
        }
    }
}

/// Tells whether a sign and what follows it are a fence.
fn is_fence(sign: char, rest: impl Iterator<Item = char>) -> bool {
    rest.take_while(|c| *c == sign).take(2).count() == 2
}

/// Shows hidden characters as codes and keeps numbers from becoming references; for text that is not markdown.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|c| push_visible(&mut out, c));
    out
}

/// Shows a foreign name as code: it can neither end the code span nor hide, call anybody, refer to anything or open a
/// marker. The last three hold without the span, too, whose end a cut or what is taken out may take along.
pub fn code(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 2);
    let mut characters = name.chars().peekable();
    while let Some(c) = characters.next() {
        let next = characters.peek().copied();
        match c {
            '`' => out.push('\''),
            '@' if next.is_some_and(char::is_alphanumeric) => out.push_str("(at)"),
            '#' if next.is_some_and(|next| next.is_ascii_digit()) => out.push_str("no. "),
            '&' if next.is_some_and(|next| next == '#' || next.is_ascii_alphanumeric()) => out.push_str("& "),
            '<' if next == Some('!') => out.push_str("< "),
            c if c.is_whitespace() => out.push(' '),
            c => push_visible(&mut out, c),
        }
    }
    format!("`{}`", out.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn push_visible(out: &mut String, c: char) {
    if is_hidden(c) {
        out.push_str(&format!("{CODE_OPENS}{:04X}\u{27e9}", u32::from(c)));
        return;
    }
    if c.is_ascii_digit() && REFERENCES.iter().any(|reference| ends_with(out, reference)) {
        out.push(' ');
    }
    out.push(c);
}

/// Tells whether text ends with a lowercase ASCII word, written in any case.
fn ends_with(text: &str, word: &str) -> bool {
    text.len()
        .checked_sub(word.len())
        .and_then(|start| text.as_bytes().get(start..))
        .is_some_and(|end| end.eq_ignore_ascii_case(word.as_bytes()))
}

/// Tells whether a character is invisible, reorders text, or is not meant for people (S-48).
///
/// The one list of them: controls, formats, private use, everything that Unicode calls default ignorable (letters that
/// fill without being seen among them), and the Braille pattern without a dot.
pub fn is_hidden(c: char) -> bool {
    let code = u32::from(c);
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(
            code,
            0x00AD
                | 0x034F
                | 0x0600..=0x0605
                | 0x061C
                | 0x06DD
                | 0x070F
                | 0x0890..=0x0891
                | 0x08E2
                | 0x115F..=0x1160
                | 0x17B4..=0x17B5
                | 0x180B..=0x180F
                | 0x200B..=0x200F
                | 0x2028..=0x202E
                | 0x2060..=0x206F
                | 0x2800
                | 0x3164
                | 0xE000..=0xF8FF
                | 0xFE00..=0xFE0F
                | 0xFEFF
                | 0xFFA0
                | 0xFFF0..=0xFFFB
                | 0x110BD
                | 0x110CD
                | 0x13430..=0x1343F
                | 0x1BCA0..=0x1BCA3
                | 0x1D173..=0x1D17A
                | 0xE0000..=0xE0FFF
                | 0xF0000..=0x0010_FFFF
        )
}
