//! What is wrong with a policy text, with line and column.
//!
//! This module does not know what would be right.

use miette::Diagnostic;

use super::Layer;

/// One thing that keeps a policy text from being saved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{layer} policies, {line}:{column}: {message}")]
pub struct Flaw {
    /// Which text.
    pub layer: Layer,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong, and what would help.
    pub message: String,
}

impl Flaw {
    /// A flaw of the text as a whole.
    pub(super) fn whole(layer: Layer, message: String) -> Self {
        Self {
            layer,
            line: 1,
            column: 1,
            message,
        }
    }

    /// A flaw of what begins at an offset of the text.
    pub(super) fn at(layer: Layer, text: &str, offset: usize, message: String) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        Self {
            layer,
            line: before.matches('\n').count() + 1,
            column: before.rsplit('\n').next().unwrap_or("").chars().count() + 1,
            message,
        }
    }

    /// A flaw where Cedar points at.
    pub(super) fn of(layer: Layer, text: &str, problem: &dyn Diagnostic) -> Self {
        let at = problem
            .labels()
            .and_then(|mut labels| labels.next())
            .map_or(0, |label| label.offset());
        let mut message = problem.to_string();
        if let Some(help) = problem.help() {
            message.push_str(&format!("; {help}"));
        }
        Self::at(layer, text, at, message)
    }
}

/// Brackets within brackets; whoever reads a policy lost count before.
const DEEPEST: usize = 16;
/// Operators of one policy, each of which may stand within the one before.
const MOST_OPERATORS: usize = 1024;
/// So many operators a choice counts for: to follow one takes more stack, and nobody reads many within each other.
const CHOICE: usize = 16;

/// Finds where a text nests deeper than Cedar can follow: it follows by calling itself, and whoever runs out of stack does not
/// fail but ends the process. Returns how deep its deepest policy can be, where that is no flaw.
pub(super) fn of_depth(layer: Layer, text: &str) -> Result<usize, Flaw> {
    let (mut depth, mut operators, mut most) = (0_usize, 0_usize, 0_usize);
    let mut before = ' ';
    for (at, letter) in code(text) {
        match letter {
            ';' => (depth, operators) = (0, 0),
            // A further condition stands within the one before, and so does what is looked up in something.
            '(' | '[' | '{' => (depth, operators) = (depth + 1, operators + 1),
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            '.' | '+' | '-' | '*' | '!' => operators += 1,
            '&' | '|' if before == letter => operators += 1,
            'e' if text[at..].starts_with("else") => operators += CHOICE,
            _ => {}
        }
        before = letter;
        most = most.max(operators);
        if depth > DEEPEST {
            let message =
                format!("more than {DEEPEST} brackets within each other; make several policies of it");
            return Err(Flaw::at(layer, text, at, message));
        }
        if operators > MOST_OPERATORS {
            let message = format!("a policy of more than {MOST_OPERATORS} operators; make several of it");
            return Err(Flaw::at(layer, text, at, message));
        }
    }
    Ok(most)
}

/// Tells where the policies of a valid text begin. Cedar numbers them in this order and keeps their places to itself.
pub(super) fn beginnings(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut is_inside = false;
    for (at, letter) in code(text) {
        if letter == ';' {
            is_inside = false;
        } else if !is_inside && !letter.is_whitespace() {
            found.push(at);
            is_inside = true;
        }
    }
    found
}

/// Lists what stands outside of comments and quotes, the opening quotes included.
fn code(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut letters = text.char_indices().peekable();
    std::iter::from_fn(move || {
        loop {
            let (at, letter) = letters.next()?;
            if letter == '/' && letters.next_if(|(_, next)| *next == '/').is_some() {
                while letters
                    .next_if(|(_, next)| !matches!(next, '\n' | '\r'))
                    .is_some()
                {}
                continue;
            }
            if letter == '"' {
                while let Some((_, inner)) = letters.next().filter(|(_, inner)| *inner != '"') {
                    if inner == '\\' {
                        letters.next();
                    }
                }
            }
            return Some((at, letter));
        }
    })
}

/// Every flaw that parsing found.
pub(super) fn of_parsing(layer: Layer, text: &str, errors: &cedar_policy::ParseErrors) -> Vec<Flaw> {
    errors.iter().map(|error| Flaw::of(layer, text, error)).collect()
}
