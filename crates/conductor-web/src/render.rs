//! Foreign text as pieces with a class of colour each: code in a change, colours of a terminal, markdown.
//!
//! A piece is text that the templates escape, so that nothing here can become markup. Hidden characters were made
//! visible before, or are here. This module does not know where a text comes from.

pub(crate) mod ansi;
pub(crate) mod code;
pub(crate) mod markdown;

/// A piece of a line that looks the same all over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Its class; empty for plain text.
    pub(crate) class: String,
    /// Its text.
    pub(crate) text: String,
}

impl Piece {
    /// A piece without colour.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self::of("", text)
    }

    pub(crate) fn of(class: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            class: class.into(),
            text: text.into(),
        }
    }
}

/// Adds to the last piece where it looks the same.
fn push(pieces: &mut Vec<Piece>, class: &str, text: &str) {
    if text.is_empty() {
        return;
    }
    match pieces.last_mut() {
        Some(last) if last.class == class => last.text.push_str(text),
        Some(_) | None => pieces.push(Piece::of(class, text)),
    }
}
