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

    /// A flaw where Cedar points at.
    pub(super) fn of(layer: Layer, text: &str, problem: &dyn Diagnostic) -> Self {
        let at = problem
            .labels()
            .and_then(|mut labels| labels.next())
            .map_or(0, |label| label.offset());
        let before = text.get(..at).unwrap_or(text);
        let mut message = problem.to_string();
        if let Some(help) = problem.help() {
            message.push_str(&format!("; {help}"));
        }
        Self {
            layer,
            line: before.matches('\n').count() + 1,
            column: before.rsplit('\n').next().unwrap_or("").chars().count() + 1,
            message,
        }
    }
}

/// Every flaw that parsing found.
pub(super) fn of_parsing(layer: Layer, text: &str, errors: &cedar_policy::ParseErrors) -> Vec<Flaw> {
    errors.iter().map(|error| Flaw::of(layer, text, error)).collect()
}
