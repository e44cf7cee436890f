//! Makes characters visible that a reader would not see: controls, formats, direction marks, tags, fillers (S-48).
//!
//! Which those are is the domain's one list. The variation selector that makes a symbol an emoji is left alone right after
//! a symbol, because nothing is named by one; in a name, and in every path, it would make two things look like one.
//! Everything else is shown as its code and counted. This module does not know where text is shown.

use conductor_domain::message::is_hidden;

/// Text with nothing hidden in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visible {
    /// The text; hidden characters stand as `⟨U+202E⟩`.
    pub text: String,
    /// How many there were.
    pub count: usize,
}

/// Makes a symbol an emoji; texts are full of it.
const EMOJI: char = '\u{fe0f}';
/// Draws a key around a digit; the selector stands between them.
const KEYCAP: char = '\u{20e3}';

/// Shows what is hidden in the text; line breaks and tabs stay, and so does what makes a symbol an emoji.
pub fn visible(text: &str) -> Visible {
    let mut before = None;
    let mut letters = text.chars().peekable();
    let mut shown = Visible::empty(text.len());
    while let Some(letter) = letters.next() {
        if letter == EMOJI && stands_for_emoji(before, letters.peek().copied()) {
            shown.text.push(letter);
        } else {
            shown.push(letter);
        }
        before = Some(letter);
    }
    shown
}

/// Shows what is hidden in a path, or in another name that things are known by: nothing is left alone.
pub fn visible_name(name: &str) -> Visible {
    let mut shown = Visible::empty(name.len());
    name.chars().for_each(|letter| shown.push(letter));
    shown
}

/// Tells from what stands around the selector whether it makes an emoji: a symbol before it, or a key. No letter becomes one,
/// since names are made of letters.
fn stands_for_emoji(before: Option<char>, after: Option<char>) -> bool {
    let is_symbol = |letter: char| {
        !letter.is_ascii() && !letter.is_alphanumeric() && !letter.is_whitespace() && !is_hidden(letter)
    };
    let is_key = |letter: char| letter.is_ascii_digit() || matches!(letter, '#' | '*');
    before.is_some_and(is_symbol) || (after == Some(KEYCAP) && before.is_some_and(is_key))
}

impl Visible {
    fn empty(capacity: usize) -> Self {
        Self {
            text: String::with_capacity(capacity),
            count: 0,
        }
    }

    fn push(&mut self, letter: char) {
        if is_hidden(letter) {
            self.text.push_str(&format!("⟨U+{:04X}⟩", u32::from(letter)));
            self.count += 1;
        } else {
            self.text.push(letter);
        }
    }
}
