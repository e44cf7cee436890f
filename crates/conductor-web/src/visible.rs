//! Shows every character that people cannot see, or take for another, as a visible code, and counts them (S-48).
//!
//! Used wherever foreign text meets a person: a terminal obeys control characters, and a plan that hides words from its
//! reader is not approved but smuggled. A word that has Latin letters and such of a script that looks like Latin shows the
//! latter as codes; a word of one script is somebody's language and stays. This module does not know where the text is
//! shown.

use conductor_domain::message::is_hidden;

use crate::words::text::count;

/// Text that hides nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visible {
    /// The text; hidden and look-alike characters stand as `⟨U+200B⟩`.
    pub text: String,
    /// How many were hidden.
    pub hidden: usize,
    /// How many looked like a letter of another script.
    pub alike: usize,
}

impl Visible {
    /// Says how many characters became codes, and why; empty where none did.
    pub fn told(&self) -> String {
        let said = [
            (self.hidden, "hidden character"),
            (self.alike, "look-alike character"),
        ];
        let said = said.into_iter().filter(|(number, _)| *number > 0);
        let said: Vec<String> = said.map(|(number, what)| count(number, what)).collect();
        said.join(" and ")
    }
}

/// Makes text of several lines visible.
pub fn text(text: &str) -> Visible {
    let mut shown = String::with_capacity(text.len());
    let mut word = Word::default();
    for c in text.chars() {
        word.write(&mut shown, c, String::push);
    }
    word.end(&mut shown);
    Visible {
        text: shown,
        hidden: word.hidden,
        alike: word.alike,
    }
}

/// Makes text visible on one line: line ends and runs of blanks become one blank.
pub fn line(line: &str) -> String {
    text(line).text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The word that is being written: which of its letters deceive is known when it ends.
#[derive(Debug, Default)]
pub(crate) struct Word {
    has_latin: bool,
    /// Where its letters that look like Latin ones stand in what was written.
    others: Vec<usize>,
    is_after_backslash: bool,
    hidden: usize,
    alike: usize,
}

impl Word {
    /// Writes a character so that it can be seen; `plain` writes one that needs no code.
    pub(crate) fn write(&mut self, shown: &mut String, c: char, plain: impl Fn(&mut String, char)) {
        // The `n` of an escaped line end belongs to no word, else every escaped line in Russian would mix scripts.
        let is_escape = self.is_after_backslash && matches!(c, 'b' | 'f' | 'n' | 'r' | 't' | 'u');
        self.is_after_backslash = c == '\\';
        if is_hidden(c) {
            // The word goes on: whoever splits it by what nobody sees gains nothing.
            self.hidden += 1;
            push_code(shown, c);
            return;
        }
        if is_escape || !is_of_word(c) {
            self.end(shown);
        } else if is_latin(c) {
            self.has_latin = true;
        } else if looks_latin(c) {
            self.others.push(shown.len());
        }
        plain(shown, c);
    }

    /// Ends the word: beside Latin letters, those that look like them become codes.
    pub(crate) fn end(&mut self, shown: &mut String) {
        if let Some(first) = self.others.first().copied()
            && self.has_latin
        {
            self.alike += self.others.len();
            // In one go, so that a word of a megabyte costs no more than its length.
            let rest = shown.split_off(first);
            let mut others = self.others.iter().map(|place| place - first).peekable();
            for (place, c) in rest.char_indices() {
                if others.next_if_eq(&place).is_some() {
                    push_code(shown, c);
                } else {
                    shown.push(c);
                }
            }
        }
        self.others.clear();
        self.has_latin = false;
    }
}

fn push_code(shown: &mut String, c: char) {
    shown.push_str(&format!("\u{27e8}U+{:04X}\u{27e9}", u32::from(c)));
}

/// A letter, a digit, or what stands upon one.
fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '\u{300}'..='\u{36f}')
}

fn is_latin(c: char) -> bool {
    c.is_ascii_alphabetic() || matches!(c, '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}')
}

/// A letter of Greek, Cyrillic or Armenian, as the inspection of a change asks about names; but those of units and formulas,
/// which look like no Latin one.
fn looks_latin(c: char) -> bool {
    let is_of_their_script = matches!(
        c,
        '\u{370}'..='\u{58f}' | '\u{1c80}'..='\u{1c8f}' | '\u{1f00}'..='\u{1fff}' | '\u{a640}'..='\u{a69f}'
    );
    c.is_alphabetic() && is_of_their_script && !matches!(c, 'μ' | 'Ω' | 'Δ' | 'π' | 'λ' | 'Σ')
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
                hidden: 5,
                alike: 0
            }
        );
        assert_eq!(line("one\n  two\u{7}"), "one two\u{27e8}U+0007\u{27e9}");
        assert_eq!(text("plain é 漢\n").told(), "");
    }

    /// S-48: a letter that passes for a Latin one stands out; somebody's language does not.
    #[test]
    fn a_letter_of_another_script_within_a_latin_word_becomes_a_code() {
        for (given, shown) in [
            ("p\u{430}ypal", "p⟨U+0430⟩ypal"),
            ("\u{430}dmin(x)", "⟨U+0430⟩dmin(x)"),
            ("if user == r\u{43e}\u{43e}t {", "if user == r⟨U+043E⟩⟨U+043E⟩t {"),
            ("is_\u{430}dmin", "is_⟨U+0430⟩dmin"),
            ("\u{39f}K", "⟨U+039F⟩K"),
            ("\u{585}pen", "⟨U+0585⟩pen"),
            ("é\u{435}", "é⟨U+0435⟩"),
            // Neither what nobody sees nor an accent parts a word.
            ("a\u{200b}\u{430}", "a⟨U+200B⟩⟨U+0430⟩"),
            ("a\u{301}\u{430}", "a\u{301}⟨U+0430⟩"),
            ("\\n\u{430}dmin", "\\n⟨U+0430⟩dmin"),
            ("\\\u{430}dmin", "\\⟨U+0430⟩dmin"),
        ] {
            assert_eq!(text(given).text, shown, "{given}");
            assert_eq!(text(shown).text, shown, "shown twice");
        }
        for plain in [
            "Привет, мир! Hello, world",
            "5 μs at 3 kΩ, Δt < 2πr",
            "Αθήνα and Athens",
            "файл.txt, main.rs",
            "{\"text\": \"раз\\nдва\\tтри\"}",
            "10 \u{b5}s",
            "漢字abc",
        ] {
            assert_eq!(text(plain).text, plain);
        }
    }

    #[test]
    fn what_became_a_code_is_counted_by_its_kind() {
        assert_eq!(text("\u{200b}").told(), "1 hidden character");
        assert_eq!(text("r\u{43e}\u{43e}t").told(), "2 look-alike characters");
        assert_eq!(
            text("\u{200b}p\u{430}ypal").told(),
            "1 hidden character and 1 look-alike character"
        );
    }

    /// S-48: showing costs no more than reading, whoever wrote the text.
    #[test]
    fn one_endless_word_is_shown_in_one_go() {
        let word = "a\u{430}".repeat(200_000);
        let shown = text(&word);
        assert_eq!((shown.hidden, shown.alike), (0, 200_000));
    }
}
