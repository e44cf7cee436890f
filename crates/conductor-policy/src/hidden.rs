//! Makes characters visible that a reader would not see: controls, formats, direction marks, tags, fillers (S-48).
//!
//! Which those are is the domain's one list. The variation selector that makes a symbol an emoji is left alone, because
//! nothing is approved by it here; everything else is shown as its code and counted. This module does not know where text
//! is shown.

use conductor_domain::message::is_hidden;

/// Text with nothing hidden in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visible {
    /// The text; hidden characters stand as `⟨U+202E⟩`.
    pub text: String,
    /// How many there were.
    pub count: usize,
}

/// Makes a symbol an emoji; sources are full of it.
const EMOJI: char = '\u{fe0f}';

/// Shows what is hidden in the text; line breaks and tabs stay.
pub fn visible(text: &str) -> Visible {
    let mut shown = String::with_capacity(text.len());
    let mut count = 0;
    for letter in text.chars() {
        if letter != EMOJI && is_hidden(letter) {
            shown.push_str(&format!("⟨U+{:04X}⟩", u32::from(letter)));
            count += 1;
        } else {
            shown.push(letter);
        }
    }
    Visible { text: shown, count }
}
