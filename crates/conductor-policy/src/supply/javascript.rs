//! `package.json` and the lock files of npm, Yarn and pnpm.
//!
//! The latter two are read line by line, by what stands before a colon. Where a package comes from is part of what is
//! compared. This module does not resolve versions.

use std::collections::BTreeSet;

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
///
/// Only the shape that Yarn writes is read: what begins a line is the head of a block, every part of a head names a package, and
/// below it each line has a key and a value. Any other shape makes it a file that is not read: it is never taken for "nothing
/// new".
pub(super) fn yarn_lock(text: &str) -> Result<Dependencies, String> {
    let mut found = Dependencies::new();
    let mut block = Block::default();
    let mut is_long_head = false;
    for line in text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
    {
        let odd = || format!("`{line}` is not as Yarn writes it");
        if !line.starts_with(' ') {
            // The head of a block that is too long for a key of YAML stands between `? ` and a line with the colon.
            if is_long_head && line == ":" {
                is_long_head = false;
                continue;
            }
            let long = line.strip_prefix("? ");
            is_long_head = long.is_some();
            let head = long.or_else(|| line.strip_suffix(':'));
            let names = head.and_then(packages_of);
            std::mem::take(&mut block).end(&mut found);
            block.names = names.ok_or_else(odd)?;
            continue;
        }
        let (key, value) = yarn_field(line.trim()).ok_or_else(odd)?;
        // What stands deeper is what a package depends on, and the like.
        match key {
            "version" if is_of_block(line) => block.version = Some(value),
            "resolved" | "resolution" if is_of_block(line) => block.source = Some(value),
            _ => {}
        }
    }
    block.end(&mut found);
    Ok(found)
}

/// What a block of a `yarn.lock` says; the one about the file itself names no package.
#[derive(Default)]
struct Block<'a> {
    names: BTreeSet<&'a str>,
    version: Option<&'a str>,
    source: Option<&'a str>,
}

impl Block<'_> {
    fn end(self, found: &mut Dependencies) {
        for name in self.names {
            let version = match (self.version, self.source) {
                (Some(version), Some(source)) => sourced(name, version, source),
                (Some(version), None) => version.to_owned(),
                (None, _) => "any".to_owned(),
            };
            add(found, name, version);
        }
    }
}

/// Reads the names off the head of a block, which are none for that of the file itself alone: beside the name of a package
/// its word would hide that. `None` where a part names no package.
fn packages_of(head: &str) -> Option<BTreeSet<&str>> {
    if head == "__metadata" {
        return Some(BTreeSet::new());
    }
    let parts = head.split(',').map(|part| part.trim().trim_matches('"'));
    let is_plain = |part: &&str| !part.starts_with(MARKS) && !part.contains(['"', '\\']);
    parts
        .map(|part| Some(part).filter(is_plain).and_then(package_of))
        .collect()
}

/// Reads the keys of `packages:` and `snapshots:`, in the forms of every version: `/name/1.0.0`, `/name@1.0.0`,
/// `name@1.0.0(peer)`; below them stands where an unusual one comes from. pnpm joins the two, and takes what stands only in the
/// latter, too.
///
/// The file is YAML, of which only the shape that pnpm writes is read: a key on each line, packages two blanks in. Any other
/// shape makes it a file that is not read: it is never taken for "nothing new".
pub(super) fn pnpm_lock(text: &str) -> Result<Dependencies, String> {
    let mut found = Dependencies::new();
    let mut section: Option<&str> = None;
    let mut last: Option<(&str, &str)> = None;
    let (mut is_below_key, mut is_resolution) = (false, false);
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
        if !matches!(section.ok_or_else(odd)?, "packages" | "snapshots") {
            continue;
        }
        let field = line.trim_start();
        let depth = line.len() - field.len();
        if depth == PACKAGE {
            let (name, version) = pnpm_package(field).ok_or_else(odd)?;
            last = Some((name, version));
            add(&mut found, name, version);
        } else if is_below_key && depth != FIELD {
            return Err(odd());
        }
        is_below_key = depth == PACKAGE;
        // What stands deeper belongs to a package; before the first one it is a package itself, of another shape.
        let (name, version) = last.ok_or_else(odd)?;
        if depth <= FIELD {
            is_resolution = field.trim_start_matches(QUOTES).starts_with("resolution");
        }
        if depth <= FIELD || is_resolution {
            let says = pnpm_says(field).ok_or_else(odd)?;
            if !says.is_empty() {
                add(&mut found, name, format!("{version} from {}", says.join(" ")));
            }
        }
    }
    Ok(found)
}

/// How far in packages stand.
const PACKAGE: usize = 2;
/// How far in the fields of a package stand.
const FIELD: usize = 4;

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

/// What a text may stand between in YAML.
const QUOTES: [char; 2] = ['\'', '"'];

/// Reads what a line says of a package in the place of its key: where it lies, or that it is another one. `None` where a line
/// could say it and is not plain: it ends within a text or a map, or has an escape, or what stands elsewhere in the file.
fn pnpm_says(line: &str) -> Option<Vec<String>> {
    let (key, value) = match line.strip_suffix(':') {
        Some(key) => (key, ""),
        None => line.split_once(": ")?,
    };
    let quote = QUOTES.into_iter().find(|quote| key.starts_with(*quote));
    let bare = quote.map_or(Some(key), |quote| key.strip_prefix(quote)?.strip_suffix(quote))?;
    if bare.starts_with(MARKS) || bare.contains(['"', '\'', '\\']) || !is_closed(value.trim()) {
        return None;
    }
    let mut says = Vec::new();
    let pairs = line
        .split([',', '{', '}'])
        .filter_map(|part| part.split_once(':'));
    for (key, value) in pairs {
        let (key, value) = (key.trim().trim_matches(QUOTES), value.trim());
        let is_place = matches!(key, "repo" | "commit" | "directory" | "path" | "name" | "version");
        let shown = value.trim_matches(QUOTES);
        match key {
            _ if value.starts_with(['&', '*']) || key.contains('\\') || key == "<<" => return None,
            "tarball" => says.push(shown.to_owned()),
            _ if is_place => says.push(format!("{key} {shown}")),
            _ => {}
        }
    }
    Some(says)
}

/// Tells whether a value ends where its line does, if it must.
fn is_closed(value: &str) -> bool {
    let is_even = |quote: char| value.matches(quote).count().is_multiple_of(2);
    let is_balanced = |open: char, close: char| value.matches(open).count() == value.matches(close).count();
    match value.chars().next() {
        Some('"') => value.ends_with('"') && !value.ends_with("\\\"") && is_even('"'),
        Some('\'') => value.ends_with('\'') && is_even('\''),
        Some('{') => value.ends_with('}') && is_balanced('{', '}') && QUOTES.into_iter().all(is_even),
        Some('[') => value.ends_with(']') && is_balanced('[', ']') && QUOTES.into_iter().all(is_even),
        Some('&' | '*' | '!') => false,
        Some(_) | None => true,
    }
}

/// Tells whether a line stands right below the head of a block.
fn is_of_block(line: &str) -> bool {
    line.strip_prefix("  ").is_some_and(|line| !line.starts_with(' '))
}

/// Takes a line apart into its key and its value; `None` where it ends within one of them, so that what follows would be another
/// thing than it seems, or where one stands for something else: an escape, an anchor, a tag.
fn yarn_field(line: &str) -> Option<(&str, &str)> {
    let (key, rest) = match line.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"')?,
        None => line.split_once([':', ' '])?,
    };
    let rest = rest.trim_start_matches([':', ' ']);
    let (value, is_plain) = match rest.strip_prefix('"') {
        Some(quoted) => {
            let value = quoted.strip_suffix('"')?;
            (value, !value.contains('"'))
        }
        None => (rest, !rest.starts_with(MARKS)),
    };
    let is_plain = is_plain && !key.starts_with(MARKS) && !key.contains('"');
    (is_plain && !line.contains('\\')).then_some((key, value))
}

/// What makes a text of YAML more than it looks like.
const MARKS: [char; 15] = [
    '"', '\'', '[', ']', '{', '}', '|', '>', '&', '*', '!', '%', '?', '#', '<',
];

/// Takes the name off `name@range` or `@scope/name@range`.
fn package_of(entry: &str) -> Option<&str> {
    let at = entry.get(1..)?.find('@')? + 1;
    entry.get(..at)
}
