//! Go, Ruby and PHP: `go.mod`, `go.sum`, `Gemfile`, `Gemfile.lock`, `composer.json`, `composer.lock`.
//!
//! This module does not resolve versions.

use serde_json::Value;

use super::{Dependencies, add};

/// Reads `require` and `replace`, in one line or in a block, however they are spaced.
pub(super) fn go_mod(text: &str) -> Dependencies {
    let mut found = Dependencies::new();
    let mut block = None;
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or(line).trim();
        if let Some(verb) = block {
            directive(verb, line.trim_end_matches(')'), &mut found);
        } else {
            let end = line
                .find(|c: char| c.is_whitespace() || matches!(c, '(' | '"' | '`'))
                .unwrap_or(line.len());
            let (verb, rest) = line.split_at(end);
            let opened = rest.trim_start().strip_prefix('(');
            block = opened.map(|_| verb);
            directive(verb, opened.unwrap_or(rest).trim_end_matches(')'), &mut found);
        }
        if line.ends_with(')') {
            block = None;
        }
    }
    found
}

fn directive(verb: &str, rest: &str, found: &mut Dependencies) {
    let plain = |word: &str| word.trim_matches(['"', '`']).to_owned();
    match verb {
        "require" => {
            let mut words = rest.split_whitespace();
            if let Some((name, version)) = words.next().zip(words.next()) {
                add(found, plain(name), plain(version));
            }
        }
        "replace" => {
            if let Some((name, by)) = rest.split_once("=>") {
                let name = name.split_whitespace().next().unwrap_or(name);
                add(found, plain(name), format!("replaced by {}", by.trim()));
            }
        }
        _ => {}
    }
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
///
/// A line that speaks of a gem in another way makes the file one that is not read: it is never taken for "nothing new".
pub(super) fn gemfile(text: &str) -> Result<Dependencies, String> {
    let unclear = |index: usize| format!("line {} speaks of a gem and is no plain `gem`", index + 1);
    let mut found = Dependencies::new();
    for (index, line) in text.lines().map(str::trim).enumerate() {
        if line.starts_with('#') {
            continue;
        }
        let end = line
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(line.len());
        let (verb, rest) = line.split_at(end);
        match verb {
            "gem" => {
                let (name, version) = gem(rest).ok_or_else(|| unclear(index))?;
                add(&mut found, name, version);
            }
            _ if speaks_of_gems(line) => return Err(unclear(index)),
            "source" | "gemspec" | "eval_gemfile" | "plugin" | "git" | "path" | "github" => {
                add(&mut found, verb, rest.trim());
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Reads the name and the rest of a `gem` line; `None` where the name is no plain string, or a second one follows.
fn gem(rest: &str) -> Option<(String, String)> {
    let rest = rest.trim_start_matches([' ', '\t', '(']);
    if !rest.starts_with(['\'', '"']) || speaks_of_gems(rest) {
        return None;
    }
    let mut words = rest
        .split(',')
        .map(|word| word.trim().trim_matches(['\'', '"', ')', '(']));
    let name = words.next()?.to_owned();
    let versions: Vec<&str> = words.collect();
    let version = if versions.is_empty() {
        "any".to_owned()
    } else {
        versions.join(", ")
    };
    Some((name, version))
}

/// Tells whether the word `gem` stands in a line by itself; names and addresses that hold it do not count.
fn speaks_of_gems(line: &str) -> bool {
    line.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/')))
        .any(|word| word == "gem")
}

/// Reads the `specs:` of every section: four blanks, a name, a version in brackets; the remote goes with it.
pub(super) fn gemfile_lock(text: &str) -> Dependencies {
    let mut found = Dependencies::new();
    let mut remote: Option<String> = None;
    for line in text.lines() {
        if !line.starts_with(' ') {
            remote = None;
        }
        // A section may name several, and any of them may be where a gem comes from.
        if let Some(address) = line.strip_prefix("  remote: ") {
            remote = Some(remote.map_or_else(|| address.to_owned(), |known| format!("{known} {address}")));
        }
        if let Some((remote, revision)) = remote.as_mut().zip(line.strip_prefix("  revision: ")) {
            remote.push_str(&format!(" {revision}"));
        }
        let Some(entry) = line.strip_prefix("    ").filter(|entry| !entry.starts_with(' ')) else {
            continue;
        };
        if let Some((name, version)) = entry.split_once(" (") {
            let version = version.trim_end_matches(')');
            match &remote {
                None => add(&mut found, name, version),
                Some(remote) => add(&mut found, name, format!("{version} from {remote}")),
            }
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
            let mut version = field("version").unwrap_or("any").to_owned();
            for place in ["source", "dist"] {
                let place = package.get(place);
                // A mirror is asked in the place of the address, or where that does not answer.
                let mirrors = place
                    .and_then(|place| place.get("mirrors"))
                    .and_then(Value::as_array);
                let urls = place.into_iter().chain(mirrors.into_iter().flatten());
                for origin in urls.filter_map(|place| place.get("url")?.as_str()) {
                    version.push_str(&format!(" from {origin}"));
                }
            }
            add(&mut found, field("name").ok_or("a package has no name")?, version);
        }
    }
    Ok(found)
}
