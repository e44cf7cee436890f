//! Makes characters visible that a reader would not see: controls, formats, direction marks, tags, selectors (S-48).
//!
//! The variation selector that makes a symbol an emoji is left alone where nothing is to be approved by it; everything
//! else is shown as its code and counted. This module does not know where text is shown.

use std::sync::LazyLock;

use regex_automata::meta::Regex;

/// Text with nothing hidden in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visible {
    /// The text; hidden characters stand as `⟨U+202E⟩`.
    pub text: String,
    /// How many there were.
    pub count: usize,
}

static HIDDEN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}\x{FE00}-\x{FE0E}\x{E0100}-\x{E01EF}--\n\t]")
        .expect("the classes are part of Unicode; a test uses them")
});

/// Shows what is hidden in the text; line breaks and tabs stay.
pub fn visible(text: &str) -> Visible {
    let mut shown = String::with_capacity(text.len());
    let (mut done, mut count) = (0, 0);
    for hit in HIDDEN.find_iter(text) {
        shown.push_str(text.get(done..hit.start()).unwrap_or_default());
        for letter in text.get(hit.range()).unwrap_or_default().chars() {
            shown.push_str(&format!("⟨U+{:04X}⟩", u32::from(letter)));
            count += 1;
        }
        done = hit.end();
    }
    shown.push_str(text.get(done..).unwrap_or_default());
    Visible { text: shown, count }
}
