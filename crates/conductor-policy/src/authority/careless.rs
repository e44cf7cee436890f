//! What a valid policy text says in vain: annotations that nobody reads, and paths that no path equals (SEC-1).
//!
//! A policy that looks stricter than it is would be trusted. This module does not know what a policy decides.

use std::str::FromStr;

use cedar_policy::{Policy, PolicySet};
use serde_json::Value;

use super::{Flaw, Layer, NOBODY};

/// Everything that may stand before a policy.
const ANNOTATIONS: [&str; 4] = ["id", "reason", "decision", "final"];

/// Finds what would be passed over in a text that is valid otherwise.
pub(super) fn flaws(layer: Layer, text: &str) -> Vec<Flaw> {
    let Ok(set) = PolicySet::from_str(text) else {
        return Vec::new();
    };
    let mut flaws = Vec::new();
    for (begin, policy) in super::placed(&set, text) {
        let said = annotations(policy).into_iter().map(|message| (begin, message));
        let paths = paths(policy).into_iter().map(|written| {
            let id = policy.annotation("id").unwrap_or_default();
            let lower = written.to_lowercase();
            let message = format!(
                "policy `{id}`: no path is `{written}`, because paths are compared in lower case; write `{lower}`"
            );
            (place(text, begin, &written), message)
        });
        flaws.extend(
            said.chain(paths)
                .map(|(at, message)| Flaw::at(layer, text, at, message)),
        );
    }
    flaws
}

/// Says which annotations of a policy would not be read as they are meant.
fn annotations(policy: &Policy) -> Vec<String> {
    let id = policy.annotation("id").unwrap_or_default();
    let mut messages = Vec::new();
    if id == NOBODY {
        messages.push(format!("no policy has the id `{NOBODY}`; it stands for none"));
    }
    for (key, value) in policy.annotations() {
        if !ANNOTATIONS.contains(&key) {
            messages.push(format!(
                "policy `{id}` has an annotation `@{key}`; there are @id, @reason, @decision and @final"
            ));
        }
        if key == "decision" && value.trim().is_empty() {
            messages.push(format!(
                "policy `{id}`: a decision `{value}` does not fit its effect"
            ));
        }
        if key == "final" && !matches!(value, "true" | "false") {
            messages.push(format!(
                "policy `{id}`: @final is `true` or `false` and not `{value}`"
            ));
        }
    }
    messages
}

/// Lists what a policy compares with paths, or takes for one, and is not in lower case.
fn paths(policy: &Policy) -> Vec<String> {
    let mut found = Vec::new();
    // Whatever Cedar parsed it can say in JSON; what it could not is not known to be in vain.
    if let Ok(said) = policy.to_json() {
        search(&said, &mut found);
    }
    found.retain(|path| path.chars().any(|letter| !letter.to_lowercase().eq([letter])));
    found
}

/// Looks through a policy, as Cedar says it in JSON.
fn search(said: &Value, found: &mut Vec<String>) {
    match said {
        Value::Array(list) => list.iter().for_each(|inner| search(inner, found)),
        Value::Object(fields) => {
            let field = |key: &str| fields.get(key).and_then(Value::as_str);
            if let (Some("Worktree"), Some(id)) = (field("type"), field("id")) {
                found.push(id.to_owned());
            }
            for (key, inner) in fields {
                if compares(key) {
                    compared(inner, found);
                }
                search(inner, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Tells whether an operator compares what stands beside it; what comes out of it is no text.
fn compares(operator: &str) -> bool {
    matches!(
        operator,
        "==" | "!=" | "like" | "contains" | "containsAll" | "containsAny"
    )
}

/// Adds the texts of a comparison if a path is compared there.
fn compared(sides: &Value, found: &mut Vec<String>) {
    let mut flow = Flow::default();
    for side in ["left", "right"].iter().filter_map(|key| sides.get(*key)) {
        flow.follow(side);
    }
    if flow.has_path {
        found.append(&mut flow.texts);
        found.extend(
            sides
                .get("pattern")
                .and_then(Value::as_array)
                .map(|it| pattern(it)),
        );
    }
}

/// What an expression can come to.
#[derive(Default)]
struct Flow {
    has_path: bool,
    texts: Vec<String>,
}

impl Flow {
    fn follow(&mut self, said: &Value) {
        match said {
            Value::Array(list) => list.iter().for_each(|inner| self.follow(inner)),
            Value::Object(fields) => {
                let attribute = fields.get(".").and_then(|access| access.get("attr"));
                self.has_path |= attribute.and_then(Value::as_str) == Some("path");
                let text = fields.get("Value").and_then(Value::as_str);
                self.texts.extend(text.map(str::to_owned));
                let inner = fields.iter().filter(|(key, _)| *key != "if" && !compares(key));
                inner.for_each(|(_, inner)| self.follow(inner));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// Writes a pattern as it stands in a policy.
fn pattern(parts: &[Value]) -> String {
    parts
        .iter()
        .map(|part| match part.get("Literal").and_then(Value::as_str) {
            Some(literal) => literal.replace('*', "\\*"),
            None => "*".to_owned(),
        })
        .collect()
}

/// Tells where a text is written in the policy that begins at an offset; one with escapes is looked for in vain.
fn place(text: &str, begin: usize, written: &str) -> usize {
    let rest = text.get(begin..).unwrap_or_default();
    let found = rest.find(&format!("\"{written}\""));
    found.map_or(begin, |at| begin + at)
}
