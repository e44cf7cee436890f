//! What a command printed, with the colours that it asked a terminal for.
//!
//! Only colour and weight are obeyed. Backgrounds and concealment are not, because they can hide words, and every other
//! control character is shown as its code (S-48). This module does not know which command it was.

use super::{Piece, push};
use crate::visible;

/// The names of the eight colours; black and white are plain, so that they can be read on any ground.
const COLOURS: [&str; 8] = ["", "red", "green", "yellow", "blue", "magenta", "cyan", ""];

#[derive(Default, Clone, Copy)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "a terminal turns each on and off by itself"
)]
struct Look {
    colour: &'static str,
    bold: bool,
    dim: bool,
    italic: bool,
    underline: bool,
}

impl Look {
    fn class(self) -> String {
        let words = [
            (self.bold, "bold"),
            (self.dim, "faint"),
            (self.italic, "italic"),
            (self.underline, "underline"),
            (!self.colour.is_empty(), self.colour),
        ];
        let chosen: Vec<&str> = words
            .into_iter()
            .filter(|(is_on, _)| *is_on)
            .map(|(_, word)| word)
            .collect();
        chosen.join(" ")
    }

    /// Obeys one sequence of parameters.
    fn obey(&mut self, parameters: &str) {
        let mut numbers = parameters.split([';', ':']).map(|word| match word {
            "" => 0,
            word => word.parse::<u16>().unwrap_or(u16::MAX),
        });
        while let Some(number) = numbers.next() {
            match number {
                0 => *self = Self::default(),
                1 => self.bold = true,
                2 => self.dim = true,
                3 => self.italic = true,
                4 => self.underline = true,
                22 => (self.bold, self.dim) = (false, false),
                23 => self.italic = false,
                24 => self.underline = false,
                30..=37 => self.colour = COLOURS[usize::from(number - 30)],
                90..=97 => self.colour = COLOURS[usize::from(number - 90)],
                39 => self.colour = "",
                38 | 48 => {
                    let kept = self.colour;
                    self.colour = match numbers.next() {
                        Some(5) => match numbers.next() {
                            Some(index @ 0..=15) => COLOURS[usize::from(index % 8)],
                            Some(_) | None => "",
                        },
                        Some(2) => {
                            numbers.by_ref().take(3).for_each(drop);
                            ""
                        }
                        Some(_) | None => "",
                    };
                    if number == 48 {
                        self.colour = kept;
                    }
                }
                _ => {}
            }
        }
    }
}

/// Takes a text apart by lines and looks.
pub(crate) fn lines(text: &str) -> Vec<Vec<Piece>> {
    let mut look = Look::default();
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let mut pieces = Vec::new();
        let mut rest = line;
        while let Some(start) = rest.find("\u{1b}[") {
            let (before, sequence) = rest.split_at(start);
            push(&mut pieces, &look.class(), &visible::text(before).text);
            let parameters: usize = sequence[2..]
                .bytes()
                .take_while(|byte| byte.is_ascii_digit() || matches!(byte, b';' | b':'))
                .count();
            if sequence.as_bytes().get(2 + parameters) == Some(&b'm') {
                look.obey(&sequence[2..2 + parameters]);
                rest = &sequence[3 + parameters..];
            } else {
                push(&mut pieces, &look.class(), &visible::text(&sequence[..2]).text);
                rest = &sequence[2..];
            }
        }
        push(&mut pieces, &look.class(), &visible::text(rest).text);
        lines.push(pieces);
    }
    if lines.last().is_some_and(Vec::is_empty) {
        lines.pop();
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let lines = lines(text).into_iter().map(|pieces| {
            let pieces = pieces.into_iter().map(|piece| match piece.class.as_str() {
                "" => piece.text,
                class => format!("<{class}|{}>", piece.text),
            });
            pieces.collect::<String>()
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// UI-5: colours are kept, over lines too.
    #[test]
    fn colours_become_classes() {
        assert_eq!(shown("a\u{1b}[31mb\u{1b}[0mc\n"), "a<red|b>c");
        assert_eq!(
            shown("\u{1b}[1;32mok\r\nmore\u{1b}[m!"),
            "<bold green|ok>\n<bold green|more>!"
        );
        assert_eq!(
            shown("\u{1b}[38;5;12mx\u{1b}[38;2;1;2;3my\u{1b}[38;5mz"),
            "<blue|x>yz"
        );
        assert_eq!(
            shown("\u{1b}[4;3;2mx\u{1b}[22;23;24my"),
            "<faint italic underline|x>y"
        );
    }

    /// S-48: what hides words or moves them is not obeyed but shown, whatever is sent.
    #[test]
    fn nothing_is_hidden_or_moved() {
        assert_eq!(shown("a\u{1b}[8mb\u{1b}[30;40mc\u{1b}[48;5;1md"), "abcd");
        assert_eq!(shown("a\u{1b}[2Jb"), "a⟨U+001B⟩[2Jb");
        assert_eq!(
            shown("a\rb\u{8}c\u{1b}]0;t\u{7}"),
            "a⟨U+000D⟩b⟨U+0008⟩c⟨U+001B⟩]0;t⟨U+0007⟩"
        );
        assert_eq!(shown("\u{1b}["), "⟨U+001B⟩[");
        assert_eq!(shown("\u{1b}[99999999999m."), ".");
        assert_eq!(shown("\u{1b}[31"), "⟨U+001B⟩[31");
        assert_eq!(shown("\u{202e}x\n\n"), "⟨U+202E⟩x\n");
    }
}
