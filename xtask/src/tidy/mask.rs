//! Separates Rust text into code and comments without parsing it.
//!
//! Both halves keep every line where it was: what belongs to the other half, and the content of string and character
//! literals, becomes blanks. It knows literals and comments only, nothing of the grammar.

/// The two halves of one file.
pub(super) struct Masked {
    /// Code, with literals emptied.
    pub(super) code: String,
    /// Text of comments, doc comments too.
    pub(super) comments: String,
}

/// Separates a file's text.
pub(super) fn mask(text: &str) -> Masked {
    let mut masked = Masked {
        code: String::new(),
        comments: String::new(),
    };
    let mut rest = text;
    let mut after_word = false;
    while let Some(first) = rest.chars().next() {
        let (length, part) = next(rest, after_word);
        let (taken, after) = rest.split_at(length);
        match part {
            Part::Code => {
                masked.code.push_str(taken);
                masked.comments.push_str(&blank(taken));
            }
            Part::Comment => {
                masked.code.push_str(&blank(taken));
                masked.comments.push_str(taken);
            }
            Part::Literal => {
                masked.code.push_str(&blank(taken));
                masked.comments.push_str(&blank(taken));
            }
        }
        after_word = matches!(part, Part::Code) && (first.is_alphanumeric() || first == '_');
        rest = after;
    }
    masked
}

enum Part {
    Code,
    Comment,
    Literal,
}

/// Says what the text begins with and how many bytes of it belong together.
fn next(text: &str, after_word: bool) -> (usize, Part) {
    if text.starts_with("//") {
        return (text.find('\n').unwrap_or(text.len()), Part::Comment);
    }
    if text.starts_with("/*") {
        return (block_comment(text), Part::Comment);
    }
    if text.starts_with('"') {
        return (quoted(text, '"'), Part::Literal);
    }
    if !after_word && let Some(length) = raw_string(text) {
        return (length, Part::Literal);
    }
    if let Some(length) = character(text) {
        return (length, Part::Literal);
    }
    (text.chars().next().map_or(0, char::len_utf8), Part::Code)
}

/// Measures a block comment; they nest.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// Measures a literal up to its closing quote, past escapes.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Measures `r"…"`, `r#"…"#` and their byte and C forms.
fn raw_string(text: &str) -> Option<usize> {
    let prefix = ["r", "br", "cr"].into_iter().find(|prefix| {
        text.strip_prefix(prefix)
            .is_some_and(|rest| rest.trim_start_matches('#').starts_with('"'))
    })?;
    let after = &text[prefix.len()..];
    let hashes = after.len() - after.trim_start_matches('#').len();
    let start = prefix.len() + hashes + 1;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(
        text[start..]
            .find(&end)
            .map_or(text.len(), |at| start + at + end.len()),
    )
}

/// Measures a character literal; a lifetime is none.
fn character(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('\'')?;
    let mut characters = inside.chars();
    let first = characters.next()?;
    if first == '\\' {
        return Some(quoted(text, '\''));
    }
    (characters.next() == Some('\'')).then(|| 2 + first.len_utf8())
}

/// Replaces everything but line ends by blanks.
fn blank(text: &str) -> String {
    text.chars()
        .map(|character| if character == '\n' { '\n' } else { ' ' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, code: &str, comments: &str) {
        let masked = mask(text);
        let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            (squeeze(&masked.code).as_str(), squeeze(&masked.comments).as_str()),
            (code, comments),
            "{text}"
        );
        assert_eq!(masked.code.lines().count(), text.lines().count(), "{text}");
    }

    #[test]
    fn literals_are_emptied_and_comments_set_apart() {
        check("let a = \"// no \\\" comment\"; // yes", "let a = ;", "// yes");
        check("a /* b /* c */ d */ e", "a e", "/* b /* c */ d */");
        check("f(r#\"{ \"x\" // \"#, br\"y\")", "f( , )", "");
        check(
            "let quote = '\"'; let brace = '{'; let tick = '\\'';",
            "let quote = ; let brace = ; let tick = ;",
            "",
        );
    }

    #[test]
    fn lifetimes_and_words_that_end_in_r_are_code() {
        check(
            "fn f<'a>(x: &'a str) -> &'a str",
            "fn f<'a>(x: &'a str) -> &'a str",
            "",
        );
        check("for \"x\" in y", "for in y", "");
    }

    #[test]
    fn unfinished_text_ends_where_the_file_ends() {
        check("let a = \"open\nstill {", "let a =", "");
        check("/* open\nstill", "", "/* open still");
        check("r#\"open", "", "");
    }
}
