//! `package.json` and the lock files of npm, Yarn and pnpm.
//!
//! The latter two are read line by line, by what stands before a colon. Where a package comes from is part of what is
//! compared. This module does not resolve versions.

use serde_json::Value;

use super::{Dependencies, add, is_plain};

/// Where every map of dependencies of a manifest stands.
pub(super) const MAPS: [&str; 7] = [
    "/dependencies",
    "/devDependencies",
    "/peerDependencies",
    "/optionalDependencies",
    "/overrides",
    "/resolutions",
    "/pnpm/overrides",
];

/// Reads every map of dependencies of a manifest.
pub(super) fn manifest(text: &str) -> Result<Dependencies, String> {
    let manifest: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut found = Dependencies::new();
    for key in MAPS {
        for (name, version) in manifest
            .pointer(key)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let version = version
                .as_str()
                .map_or_else(|| version.to_string(), str::to_owned);
            // An alias brings in what it stands for; after `npm:` some write a version alone.
            if let Some(alias) = version.strip_prefix("npm:").filter(|alias| !is_plain(alias)) {
                let named = alias.rsplit_once('@').filter(|(real, _)| !real.is_empty());
                let (real, wanted) = named.unwrap_or((alias, "any"));
                add(&mut found, real, format!("{wanted} as {name}"));
            }
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
            add(&mut found, name, version(name, package));
        }
    } else {
        let dependencies = lock.get("dependencies").ok_or("it lists no packages")?;
        nested(dependencies, &mut found, 0);
    }
    Ok(found)
}

fn nested(dependencies: &Value, found: &mut Dependencies, depth: usize) {
    for (name, package) in dependencies.as_object().into_iter().flatten() {
        add(found, name, version(name, package));
        if let Some(inner) = package.get("dependencies").filter(|_| depth < 64) {
            nested(inner, found, depth + 1);
        }
    }
}

fn version(name: &str, package: &Value) -> String {
    let field = |key: &str| package.get(key).and_then(Value::as_str);
    match (field("version"), field("resolved")) {
        (Some(version), Some(source)) => sourced(name, version, source),
        (Some(only), None) | (None, Some(only)) => only.to_owned(),
        (None, None) => "linked".to_owned(),
    }
}

/// Says a version, and where it comes from: the registry, if it is the place of this very package there, else all of it.
/// One that comes from whichever registry is set up says no more than its version.
fn sourced(name: &str, version: &str, source: &str) -> String {
    if source == format!("{name}@npm:{version}") {
        return version.to_owned();
    }
    let place = source.split('#').next().unwrap_or(source);
    let short = name.rsplit('/').next().unwrap_or(name);
    let registry = place.strip_suffix(&format!("/{name}/-/{short}-{version}.tgz"));
    format!("{version} from {}", registry.unwrap_or(source))
}

/// Reads blocks `name@range, name@range:` with a version and its source below, of both generations.
pub(super) fn yarn_lock(text: &str) -> Result<Dependencies, String> {
    let mut found = Dependencies::new();
    let mut block: Option<(String, Option<&str>, Option<&str>)> = None;
    let mut end = |block: Option<(String, Option<&str>, Option<&str>)>| match block {
        Some((name, Some(version), Some(source))) => {
            let version = sourced(&name, version, source);
            add(&mut found, name, version);
        }
        Some((name, Some(version), None)) => add(&mut found, name, version),
        Some((name, None, _)) => add(&mut found, name, "any"),
        None => {}
    };
    for line in text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
    {
        if let Some(head) = line.strip_suffix(':').filter(|line| !line.starts_with(' ')) {
            let first = head
                .trim_matches('"')
                .split(", ")
                .next()
                .unwrap_or(head)
                .trim_matches('"');
            let name = (first != "__metadata").then(|| package_of(first)).flatten();
            end(block.take());
            block = name.map(|name| (name, None, None));
        } else if let Some((_, version, source)) = &mut block {
            let Some((key, value)) = line
                .strip_prefix("  ")
                .filter(|line| !line.starts_with(' '))
                .and_then(|line| line.split_once([':', ' ']))
            else {
                continue;
            };
            let value = value.trim_start_matches([':', ' ']).trim_matches('"');
            match key.trim_matches('"') {
                "version" => *version = Some(value),
                "resolved" | "resolution" => *source = Some(value),
                _ => {}
            }
        }
    }
    end(block);
    if found.is_empty() && text.contains('@') {
        return Err("no package could be read".to_owned());
    }
    Ok(found)
}

/// Reads the keys of `packages:`, in the forms of every version: `/name/1.0.0`, `/name@1.0.0`, `name@1.0.0(peer)`; below
/// them stands where an unusual one comes from.
///
/// The file is YAML, of which only the shape that pnpm writes is read: a key on each line, packages two blanks in. Any other
/// shape makes it a file that is not read: it is never taken for "nothing new".
pub(super) fn pnpm_lock(text: &str) -> Result<Dependencies, String> {
    let mut found = Dependencies::new();
    let mut section: Option<&str> = None;
    let mut last: Option<(&str, &str)> = None;
    let is_said = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    for line in text.lines().filter(is_said) {
        let odd = || format!("`{line}` is not as pnpm writes it");
        if line.contains('\r') {
            return Err(odd());
        }
        if !line.starts_with(' ') {
            let is_another_document = line == "---";
            section = pnpm_section(line);
            if section.is_none() && !is_another_document {
                return Err(odd());
            }
            last = None;
            continue;
        }
        let is_packages = match section.ok_or_else(odd)? {
            "packages" => true,
            "snapshots" => false,
            _ => continue,
        };
        if let Some(key) = line.strip_prefix("  ").filter(|key| !key.starts_with(' ')) {
            last = Some(pnpm_package(key).ok_or_else(odd)?);
            if let Some((name, version)) = last.filter(|_| is_packages) {
                add(&mut found, name, version);
            }
        }
        // What stands deeper belongs to a package; before the first one it is a package itself, of another shape.
        let (name, version) = last.ok_or_else(odd)?;
        if let Some(source) = tarball(line).filter(|_| is_packages) {
            add(&mut found, name, format!("{version} from {source}"));
        }
    }
    Ok(found)
}

/// Reads the key of a section; `None` where the line is no plain one, or holds the packages themselves.
fn pnpm_section(line: &str) -> Option<&str> {
    let (key, rest) = line.split_once(':')?;
    let is_open = !matches!(key, "packages" | "snapshots") || matches!(rest.trim(), "" | "{}");
    (is_open && key.bytes().all(|byte| byte.is_ascii_alphabetic())).then_some(key)
}

/// Reads the name and the version out of the line of a package.
fn pnpm_package(line: &str) -> Option<(&str, &str)> {
    let key = line
        .strip_suffix(':')
        .or_else(|| line.split_once(": ").map(|(key, _)| key))?;
    let key = key.trim_matches(['\'', '"']).trim_start_matches('/');
    let key = key.split('(').next().unwrap_or(key);
    let at = key.rfind('@').filter(|at| *at > 0).or_else(|| key.rfind('/'))?;
    let (name, version) = key.split_at(at);
    // Anything else makes the name another one than it seems: a map, an anchor, a tag, an escape.
    let is_name =
        name.starts_with(|first: char| first.is_alphanumeric() || matches!(first, '@' | '_' | '.' | '-'));
    is_name.then_some((name, version.trim_start_matches(['@', '/'])))
}

/// Reads where a package lies if a line says so.
fn tarball(line: &str) -> Option<&str> {
    let (_, source) = line.split_once("tarball:")?;
    let source = source.split([',', '}']).next().unwrap_or(source);
    Some(source.trim().trim_matches(['\'', '"']))
}

/// Takes the name off `name@range` or `@scope/name@range`.
fn package_of(entry: &str) -> Option<String> {
    let at = entry.get(1..)?.find('@')? + 1;
    Some(entry.get(..at)?.to_owned())
}
