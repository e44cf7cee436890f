//! Go, Ruby and PHP: `go.mod`, `go.sum`, `Gemfile`, `Gemfile.lock`, `composer.json`, `composer.lock`.
//!
//! This module does not resolve versions.

use serde_json::Value;

use super::{Dependencies, add};

/// Reads `require` and `replace`, in one line or in a block.
pub(super) fn go_mod(text: &str) -> Dependencies {
    let mut found = Dependencies::new();
    let mut block = None;
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or(line).trim();
        let (verb, rest) = match (block, line.split_once(' ')) {
            (_, _) if line == ")" => {
                block = None;
                continue;
            }
            (None, Some((verb, "("))) => {
                block = Some(verb);
                continue;
            }
            (Some(verb), _) => (verb, line),
            (None, Some((verb, rest))) => (verb, rest),
            (None, None) => continue,
        };
        match verb {
            "require" => {
                if let Some((name, version)) = rest.trim().split_once(' ') {
                    add(&mut found, name, version.trim());
                }
            }
            "replace" => {
                if let Some((name, by)) = rest.split_once("=>") {
                    let name = name.split_whitespace().next().unwrap_or(name);
                    add(&mut found, name, format!("replaced by {}", by.trim()));
                }
            }
            _ => {}
        }
    }
    found
}

/// Reads `module version hash` lines.
pub(super) fn go_sum(text: &str) -> Result<Dependencies, String> {
    let mut found = Dependencies::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let mut words = line.split_whitespace();
        let (Some(name), Some(version)) = (words.next(), words.next()) else {
            return Err(format!("`{line}` is no entry"));
        };
        add(&mut found, name, version.trim_end_matches("/go.mod"));
    }
    Ok(found)
}

/// Reads `gem` lines; whatever else a Gemfile does is code, and other lines that bring gems in are listed.
pub(super) fn gemfile(text: &str) -> Dependencies {
    let mut found = Dependencies::new();
    for line in text.lines().map(str::trim) {
        let Some((verb, rest)) = line.split_once([' ', '(']) else {
            continue;
        };
        match verb {
            "gem" => {
                let mut words = rest
                    .split(',')
                    .map(|word| word.trim().trim_matches(['\'', '"', ')', '(']));
                let name = words.next().unwrap_or(rest);
                let versions: Vec<&str> = words.collect();
                let version = if versions.is_empty() {
                    "any".to_owned()
                } else {
                    versions.join(", ")
                };
                add(&mut found, name, version);
            }
            "source" | "gemspec" | "eval_gemfile" => add(&mut found, verb, rest.trim()),
            _ => {}
        }
    }
    found
}

/// Reads the `specs:` of every section: four blanks, a name, a version in brackets.
pub(super) fn gemfile_lock(text: &str) -> Dependencies {
    let mut found = Dependencies::new();
    for line in text.lines() {
        let Some(entry) = line.strip_prefix("    ").filter(|entry| !entry.starts_with(' ')) else {
            continue;
        };
        if let Some((name, version)) = entry.split_once(" (") {
            add(&mut found, name, version.trim_end_matches(')'));
        }
    }
    found
}

/// Reads `require` and `require-dev`.
pub(super) fn composer(text: &str) -> Result<Dependencies, String> {
    let manifest: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut found = Dependencies::new();
    for key in ["require", "require-dev"] {
        for (name, version) in manifest.get(key).and_then(Value::as_object).into_iter().flatten() {
            add(&mut found, name, version.as_str().unwrap_or("any"));
        }
    }
    Ok(found)
}

/// Reads `packages` and `packages-dev`.
pub(super) fn composer_lock(text: &str) -> Result<Dependencies, String> {
    let lock: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut found = Dependencies::new();
    for key in ["packages", "packages-dev"] {
        for package in lock.get(key).and_then(Value::as_array).into_iter().flatten() {
            let field = |key: &str| package.get(key).and_then(Value::as_str);
            add(
                &mut found,
                field("name").ok_or("a package has no name")?,
                field("version").unwrap_or("any"),
            );
        }
    }
    Ok(found)
}
