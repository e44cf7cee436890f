//! Keeps text byte for byte where the database cannot: PostgreSQL refuses NUL in text.
//!
//! NUL is written as a mark and a digit, the mark itself as the mark and another; nothing else changes, so equal text
//! stays equal. The mark is a character that no writing has. It does not know what the text says.

use std::borrow::Cow;

const MARK: char = '\u{10FFFF}';
const NUL_KEPT: &str = "\u{10FFFF}0";
const MARK_KEPT: &str = "\u{10FFFF}1";

/// The form in which text is kept.
pub(super) fn kept(text: &str) -> Cow<'_, str> {
    if text.contains('\0') || text.contains(MARK) {
        Cow::Owned(text.replace(MARK, MARK_KEPT).replace('\0', NUL_KEPT))
    } else {
        Cow::Borrowed(text)
    }
}

/// Text from its kept form.
pub(super) fn given(kept: String) -> String {
    with_nul(kept, "\0")
}

/// JSON whose strings are in their kept form, with the strings as they were; JSON writes NUL as an escape.
pub(super) fn given_json(kept: String) -> String {
    with_nul(kept, "\\u0000")
}

fn with_nul(kept: String, nul: &str) -> String {
    if kept.contains(MARK) {
        kept.replace(NUL_KEPT, nul)
            .replace(MARK_KEPT, MARK.encode_utf8(&mut [0; 4]))
    } else {
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_back_as_it_was_and_is_kept_without_nul() {
        for text in [
            "",
            "plain",
            "\0",
            "a\0b",
            "\u{10FFFF}",
            "\u{10FFFF}0",
            "\u{10FFFF}1",
            "\u{10FFFF}\0",
            "\0\u{10FFFF}10",
        ] {
            let kept = kept(text).into_owned();
            assert!(!kept.contains('\0'), "{text:?}");
            assert_eq!(given(kept.clone()), text);
            let json = serde_json::to_string(&kept).unwrap();
            assert_eq!(serde_json::from_str::<String>(&given_json(json)).unwrap(), text);
        }
    }
}
