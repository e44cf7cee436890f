//! `package.json` and the lock files of npm, Yarn and pnpm.
//!
//! The latter two are read line by line, by what stands before a colon. This module does not resolve versions.

use serde_json::Value;

use super::{Dependencies, add};

/// Reads every map of dependencies of a manifest.
pub(super) fn manifest(text: &str) -> Result<Dependencies, String> {
    let manifest: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut found = Dependencies::new();
    for key in [
        "dependencies",
        "devDependencies",
        "peerDependencies",
        "optionalDependencies",
        "overrides",
        "resolutions",
    ] {
        for (name, version) in manifest.get(key).and_then(Value::as_object).into_iter().flatten() {
            let version = version
                .as_str()
                .map_or_else(|| version.to_string(), str::to_owned);
            add(&mut found, name, version);
        }
    }
    Ok(found)
}

/// Reads `packages` (version 2 and 3) or nested `dependencies` (version 1).
pub(super) fn npm_lock(text: &str) -> Result<Dependencies, String> {
    let lock: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut found = Dependencies::new();
    if let Some(packages) = lock.get("packages").and_then(Value::as_object) {
        for (path, package) in packages {
            let Some((_, installed)) = path.rsplit_once("node_modules/") else {
                continue;
            };
            let name = package.get("name").and_then(Value::as_str).unwrap_or(installed);
            add(&mut found, name, version(package));
        }
    } else {
        let dependencies = lock.get("dependencies").ok_or("it lists no packages")?;
        nested(dependencies, &mut found, 0);
    }
    Ok(found)
}

fn nested(dependencies: &Value, found: &mut Dependencies, depth: usize) {
    for (name, package) in dependencies.as_object().into_iter().flatten() {
        add(found, name, version(package));
        if let Some(inner) = package.get("dependencies").filter(|_| depth < 64) {
            nested(inner, found, depth + 1);
        }
    }
}

fn version(package: &Value) -> String {
    let field = |key: &str| package.get(key).and_then(Value::as_str);
    field("version")
        .or(field("resolved"))
        .unwrap_or("linked")
        .to_owned()
}

/// Reads blocks `name@range, name@range:` with a version below, of both generations.
pub(super) fn yarn_lock(text: &str) -> Result<Dependencies, String> {
    let mut found = Dependencies::new();
    let mut name = None;
    for line in text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
    {
        if let Some(block) = line.strip_suffix(':').filter(|line| !line.starts_with(' ')) {
            let first = block
                .trim_matches('"')
                .split(", ")
                .next()
                .unwrap_or(block)
                .trim_matches('"');
            name = (first != "__metadata").then(|| package_of(first)).flatten();
        } else if let Some(rest) = line.trim().strip_prefix("version") {
            let version = rest.trim_start_matches([':', ' ']).trim_matches('"');
            if let Some(name) = name
                .take()
                .filter(|_| line.starts_with("  ") && !line.starts_with("   "))
            {
                add(&mut found, name, version);
            }
        }
    }
    if found.is_empty() && text.contains('@') {
        return Err("no package could be read".to_owned());
    }
    Ok(found)
}

/// Reads the keys of `packages:`, in the forms of every version: `/name/1.0.0`, `/name@1.0.0`, `name@1.0.0(peer)`.
pub(super) fn pnpm_lock(text: &str) -> Result<Dependencies, String> {
    let mut found = Dependencies::new();
    let mut in_packages = false;
    for line in text.lines() {
        if !line.starts_with(' ') && !line.is_empty() {
            in_packages = line.starts_with("packages:");
        } else if let Some(key) = line
            .strip_prefix("  ")
            .filter(|key| in_packages && !key.starts_with(' '))
        {
            let Some(key) = key
                .strip_suffix(':')
                .or_else(|| key.split_once(": ").map(|(key, _)| key))
            else {
                continue;
            };
            let key = key.trim_matches(['\'', '"']).trim_start_matches('/');
            let key = key.split('(').next().unwrap_or(key);
            let parts = match key.rfind('@').filter(|at| *at > 0) {
                Some(at) => key.split_at(at),
                None => key.split_at(key.rfind('/').ok_or_else(|| format!("`{key}` has no version"))?),
            };
            add(&mut found, parts.0, parts.1.trim_start_matches(['@', '/']));
        }
    }
    Ok(found)
}

/// Takes the name off `name@range` or `@scope/name@range`.
fn package_of(entry: &str) -> Option<String> {
    let at = entry.get(1..)?.find('@')? + 1;
    Some(entry.get(..at)?.to_owned())
}
