//! A line of code by its words: comments, strings, numbers and the language's own words.
//!
//! Reads one line at a time and knows no grammar: a colour that is wrong now and then is worth less than a parser of
//! hostile text. This module does not know changes.

use super::{Piece, push};

/// What distinguishes one language from another, as far as colours go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Language {
    comment: &'static str,
    words: &'static [&'static str],
    /// Whether a single quote opens a string; in Rust it opens lifetimes, too.
    single_quotes: bool,
}

/// No colours at all.
pub(crate) const PLAIN: Language = Language {
    comment: "",
    words: &[],
    single_quotes: false,
};

const RUST: Language = Language {
    comment: "//",
    words: &[
        "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum", "extern",
        "false", "fn", "for", "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref",
        "return", "self", "Self", "static", "struct", "super", "trait", "true", "type", "unsafe", "use",
        "where", "while",
    ],
    single_quotes: false,
};

/// The language of policies.
pub(crate) const CEDAR: Language = Language {
    comment: "//",
    words: &[
        "action",
        "context",
        "else",
        "false",
        "forbid",
        "has",
        "if",
        "in",
        "is",
        "like",
        "permit",
        "principal",
        "resource",
        "then",
        "true",
        "unless",
        "when",
    ],
    single_quotes: false,
};

const PYTHON: Language = Language {
    comment: "#",
    words: &[
        "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else",
        "except", "False", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "None",
        "nonlocal", "not", "or", "pass", "raise", "return", "True", "try", "while", "with", "yield",
    ],
    single_quotes: true,
};

const SCRIPT: Language = Language {
    comment: "//",
    words: &[
        "abstract",
        "async",
        "await",
        "bool",
        "boolean",
        "break",
        "case",
        "catch",
        "char",
        "class",
        "const",
        "continue",
        "default",
        "defer",
        "delete",
        "do",
        "double",
        "else",
        "enum",
        "export",
        "extends",
        "false",
        "final",
        "finally",
        "float",
        "for",
        "func",
        "function",
        "go",
        "if",
        "implements",
        "import",
        "in",
        "int",
        "interface",
        "let",
        "long",
        "new",
        "nil",
        "null",
        "package",
        "private",
        "protected",
        "public",
        "return",
        "static",
        "struct",
        "super",
        "switch",
        "this",
        "throw",
        "true",
        "try",
        "type",
        "typeof",
        "undefined",
        "var",
        "void",
        "while",
        "yield",
    ],
    single_quotes: true,
};

const SHELL: Language = Language {
    comment: "#",
    words: &[
        "case", "do", "done", "elif", "else", "esac", "exit", "export", "fi", "for", "function", "if", "in",
        "local", "return", "set", "then", "until", "while",
    ],
    single_quotes: true,
};

const SETTINGS: Language = Language {
    comment: "#",
    words: &["true", "false", "null", "yes", "no"],
    single_quotes: true,
};

const SQL: Language = Language {
    comment: "--",
    words: &[
        "SELECT", "FROM", "WHERE", "INSERT", "INTO", "VALUES", "UPDATE", "SET", "DELETE", "CREATE", "TABLE",
        "INDEX", "NOT", "NULL", "PRIMARY", "KEY", "AND", "OR", "ORDER", "BY", "LIMIT", "JOIN", "ON",
    ],
    single_quotes: true,
};

impl Language {
    /// Guesses by a file's name.
    pub(crate) fn of(path: &str) -> Self {
        let name = path.rsplit('/').next().unwrap_or(path);
        let ending = name.rsplit_once('.').map_or(name, |(_, ending)| ending);
        match ending {
            "rs" => RUST,
            "py" | "pyi" => PYTHON,
            "js" | "mjs" | "cjs" | "jsx" | "ts" | "tsx" | "go" | "java" | "kt" | "c" | "h" | "cc" | "cpp"
            | "hpp" | "cs" | "swift" | "scala" | "php" | "css" | "json" => SCRIPT,
            "sh" | "bash" | "zsh" | "Makefile" | "Dockerfile" => SHELL,
            "toml" | "yaml" | "yml" | "ini" | "cfg" | "conf" => SETTINGS,
            "sql" => SQL,
            _ => PLAIN,
        }
    }
}

/// Takes a line apart.
pub(crate) fn pieces(line: &str, language: Language) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = line;
    let mut is_after_word = false;
    while let Some(first) = rest.chars().next() {
        let is_comment = !language.comment.is_empty() && rest.starts_with(language.comment) && !is_after_word;
        let (length, class) = if is_comment {
            (rest.len(), "comment")
        } else if language != PLAIN
            && (first == '"' || first == '`' || (first == '\'' && language.single_quotes))
        {
            (string(rest, first), "string")
        } else if is_word(first) {
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            (length, class_of(&rest[..length], language))
        } else {
            (first.len_utf8(), "")
        };
        let (piece, after) = rest.split_at(length);
        is_after_word = is_word(first);
        push(&mut pieces, class, piece);
        rest = after;
    }
    pieces
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn class_of(word: &str, language: Language) -> &'static str {
    if language == PLAIN {
        ""
    } else if word.starts_with(|c: char| c.is_ascii_digit()) {
        "digits"
    } else if language.words.contains(&word) {
        "word"
    } else {
        ""
    }
}

/// How far a string goes: to its closing quote, or to the end of the line.
fn string(rest: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (place, c) in rest.char_indices().skip(1) {
        if is_escaped {
            is_escaped = false;
        } else if c == '\\' {
            is_escaped = true;
        } else if c == quote {
            return place + c.len_utf8();
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(path: &str, line: &str) -> String {
        let pieces = pieces(line, Language::of(path));
        let text: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
        assert_eq!(text, line, "nothing is lost or added");
        let pieces = pieces.into_iter().map(|piece| match piece.class.as_str() {
            "" => piece.text,
            class => format!("<{class}|{}>", piece.text),
        });
        pieces.collect()
    }

    #[test]
    fn words_strings_numbers_and_comments_are_told_apart() {
        assert_eq!(
            shown("src/a.rs", "let x: &'a str = \"b\\\"c\"; // d"),
            "<word|let> x: &'a str = <string|\"b\\\"c\">; <comment|// d>"
        );
        assert_eq!(
            shown("a.py", "return 'x' if 12 else y # z"),
            "<word|return> <string|'x'> <word|if> <digits|12> <word|else> y <comment|# z>"
        );
        assert_eq!(shown("a.txt", "let \"x\" 1"), "let \"x\" 1");
        assert_eq!(shown("Makefile", "a#b"), "a#b");
    }

    /// UI-5: whatever an agent writes is only taken apart.
    #[test]
    fn hostile_lines_are_only_taken_apart() {
        for line in [
            "\"",
            "'\\",
            "\"\\\u{1f600}",
            "é\"é",
            "<script>alert(1)</script>",
            "`${a}`\\",
            "漢字// x",
        ] {
            shown("a.js", line);
            shown("a.rs", line);
        }
    }
}
