//! `pyproject.toml`, requirements files, and the lock files of Poetry, uv, PDM and Pipenv.
//!
//! Names are compared as the index compares them: lower case, with `-` for `_` and `.`. Where a package comes
//! from is part of what is compared. This module does not resolve versions.

use std::borrow::Cow;
use std::collections::BTreeSet;

use toml::{Table, Value};

use super::{Dependencies, add};

/// Reads the tables of the standard, of dependency groups, of the build, and of Poetry, uv, PDM and Hatch.
pub(super) fn pyproject(text: &str) -> Result<Dependencies, String> {
    let table: Table = text
        .parse()
        .map_err(|error: toml::de::Error| error.message().to_owned())?;
    let mut found = Dependencies::new();
    let at = |path: &[&str]| -> Option<Value> {
        let mut value = Value::Table(table.clone());
        for key in path {
            value = value.get(*key)?.clone();
        }
        Some(value)
    };
    for list in [
        at(&["project", "dependencies"]),
        at(&["build-system", "requires"]),
        at(&["tool", "uv", "dev-dependencies"]),
        at(&["tool", "uv", "override-dependencies"]),
        at(&["tool", "uv", "constraint-dependencies"]),
        at(&["tool", "uv", "build-constraint-dependencies"]),
    ]
    .into_iter()
    .flatten()
    {
        strings(&list).for_each(|line| requirement(line, &mut found));
    }
    for groups in [
        at(&["project", "optional-dependencies"]),
        at(&["dependency-groups"]),
        at(&["tool", "pdm", "dev-dependencies"]),
    ]
    .into_iter()
    .flatten()
    {
        for list in groups.as_table().into_iter().flat_map(Table::values) {
            strings(list).for_each(|line| requirement(line, &mut found));
        }
    }
    let environments = at(&["tool", "hatch", "envs"]).unwrap_or(Value::Table(Table::new()));
    for environment in environments.as_table().into_iter().flat_map(Table::values) {
        for key in ["dependencies", "extra-dependencies"] {
            let list = environment.get(key).into_iter();
            list.flat_map(strings)
                .for_each(|line| requirement(line, &mut found));
        }
    }
    for (names, what) in [
        (at(&["tool", "uv", "sources"]), "source"),
        (at(&["tool", "pdm", "resolution", "overrides"]), "override"),
    ] {
        for (name, value) in names.as_ref().and_then(Value::as_table).into_iter().flatten() {
            add(&mut found, plain(name), format!("{what} {}", written(value)));
        }
    }
    for indexes in [
        at(&["tool", "uv", "index"]),
        at(&["tool", "pdm", "source"]),
        at(&["tool", "poetry", "source"]),
    ]
    .into_iter()
    .flatten()
    {
        for index in indexes.as_array().into_iter().flatten() {
            add(&mut found, "index", written(index));
        }
    }
    let poetry = at(&["tool", "poetry"]).unwrap_or(Value::Table(Table::new()));
    let groups = poetry
        .get("group")
        .and_then(Value::as_table)
        .into_iter()
        .flat_map(Table::values);
    for owner in groups.chain([&poetry]) {
        for key in ["dependencies", "dev-dependencies"] {
            for (name, value) in owner.get(key).and_then(Value::as_table).into_iter().flatten() {
                if name != "python" {
                    let version = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    add(&mut found, plain(name), version);
                }
            }
        }
    }
    Ok(found)
}

/// Writes a value down in one line, a table as its keys and values.
fn written(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Table(table) => {
            let pairs = table
                .iter()
                .map(|(key, value)| format!("{key} {}", written(value)));
            pairs.collect::<Vec<_>>().join(" ")
        }
        Value::Array(list) => list.iter().map(written).collect::<Vec<_>>().join(", "),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => value.to_string(),
    }
}

fn strings(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Reads a requirements file; options that bring in other files or indexes are listed as they stand.
pub(super) fn requirements(text: &str) -> Result<Dependencies, String> {
    if let Some(name) = encoding(text).filter(|name| !is_plain_encoding(name)) {
        return Err(format!(
            "it names an encoding that it is not read in here: {name}"
        ));
    }
    let mut found = Dependencies::new();
    for line in whole_lines(text) {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        if line.starts_with('-') {
            add(&mut found, line.split_whitespace().next().unwrap_or(line), line);
        } else {
            requirement(line.split(" --").next().unwrap_or(line), &mut found);
        }
    }
    Ok(found)
}

/// Finds the encoding that a comment in the first two lines names, as pip does (PEP 263).
fn encoding(text: &str) -> Option<&str> {
    let comments = text.split('\n').take(2).filter(|line| line.starts_with('#'));
    let mut named = comments
        .flat_map(|line| line.split("coding").skip(1))
        .filter_map(|rest| {
            let name = rest.strip_prefix([':', '='])?.trim_start();
            let end = name.find(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '.')));
            name.get(..end.unwrap_or(name.len()))
        });
    named.find(|name| !name.is_empty())
}

/// Tells whether text in an encoding of this name says the same as it does here.
fn is_plain_encoding(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('_', "-");
    matches!(name.as_str(), "utf-8" | "utf8" | "ascii" | "us-ascii")
}

/// What ends a line beside the usual for pip, which splits lines as Python does.
const ENDS: [&str; 10] = [
    "\r\n", "\r", "\u{b}", "\u{c}", "\u{1c}", "\u{1d}", "\u{1e}", "\u{85}", "\u{2028}", "\u{2029}",
];

/// Joins lines and takes comments out as pip does: a comment is over with its line, whatever that ends with.
fn whole_lines(text: &str) -> Vec<String> {
    let mut text = Cow::Borrowed(text);
    for end in ENDS {
        if text.contains(end) {
            text = Cow::Owned(text.replace(end, "\n"));
        }
    }
    let mut lines = Vec::new();
    let mut joined = String::new();
    for line in text.lines() {
        let is_comment = line.trim_start().starts_with('#');
        if line.ends_with('\\') && !is_comment {
            joined.push_str(line.trim_end_matches('\\'));
            continue;
        }
        joined.push_str(if is_comment { "" } else { line });
        lines.push(without_comment(&std::mem::take(&mut joined)).to_owned());
    }
    lines.push(without_comment(&joined).to_owned());
    lines
}

/// Cuts a line at the `#` that begins it or follows a blank.
fn without_comment(line: &str) -> &str {
    let mut before = line.match_indices('#').map(|(at, _)| &line[..at]);
    let cut = before.find(|before| before.chars().next_back().is_none_or(char::is_whitespace));
    cut.unwrap_or(line)
}

/// Reads `name[extra] >=1; marker` or `name @ address`.
fn requirement(line: &str, found: &mut Dependencies) {
    let line = line.split(';').next().unwrap_or(line).trim();
    let end = line
        .find(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '.')))
        .unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    let extras = rest.trim_start().strip_prefix('[');
    let version = extras.and_then(|extras| extras.split_once(']'));
    let version = version.map_or(rest, |(_, after)| after).trim();
    if name.is_empty() {
        add(found, line, "as it stands");
    } else {
        add(
            found,
            plain(name),
            if version.is_empty() { "any" } else { version },
        );
    }
}

/// Reads the `[[package]]` tables of Poetry and PDM, where every package is somebody else's.
pub(super) fn lock(text: &str) -> Result<Dependencies, String> {
    packages(text, &["package"], |_package| false)
}

/// Reads the `[[package]]` tables of uv, which takes them by an earlier name, too, and lists the project's own among them.
pub(super) fn uv_lock(text: &str) -> Result<Dependencies, String> {
    packages(text, &["package", "distribution"], is_own)
}

/// Tells whether a package lies in a directory of the project and nowhere else: uv takes the first place that it knows, and one
/// that is named beside it would mark anybody's package as the project's own.
fn is_own(package: &Value) -> bool {
    let places = package.get("source").and_then(Value::as_table);
    places.is_some_and(|places| {
        places.len() == 1
            && ["editable", "virtual"]
                .iter()
                .any(|key| places.contains_key(*key))
    })
}

fn packages(text: &str, keys: &[&str], is_own: fn(&Value) -> bool) -> Result<Dependencies, String> {
    let table: Table = text
        .parse()
        .map_err(|error: toml::de::Error| error.message().to_owned())?;
    let mut found = Dependencies::new();
    let lists = keys.iter().filter_map(|key| table.get(*key)?.as_array());
    for package in lists.flatten() {
        let field = |key: &str| package.get(key).and_then(Value::as_str);
        let name = field("name").ok_or("a package has no name")?;
        if !is_own(package) {
            let mut version = field("version").unwrap_or("any").to_owned();
            for origin in origins(package) {
                version.push_str(&format!(" from {origin}"));
            }
            add(&mut found, plain(name), version);
        }
    }
    Ok(found)
}

/// Lists where a locked package comes from, and the hosts of its files.
fn origins(package: &Value) -> BTreeSet<String> {
    let mut origins = BTreeSet::new();
    if let Some(source) = package.get("source") {
        origins.insert(written(source));
    }
    for key in ["git", "url", "path"] {
        let origin = package.get(key).map(|value| format!("{key} {}", written(value)));
        origins.extend(origin);
    }
    let files = ["wheels", "files"]
        .iter()
        .filter_map(|key| package.get(key)?.as_array());
    let urls = files
        .flatten()
        .chain(package.get("sdist"))
        .filter_map(|file| file.get("url")?.as_str());
    // The whole address of each file would be too much to be read; who serves it is what matters.
    let hosts = urls.map(|url| url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/"));
    origins.extend(hosts);
    origins
}

/// Reads the maps of a `Pipfile.lock`: one for each category of packages, which are called as anybody likes.
pub(super) fn pipfile_lock(text: &str) -> Result<Dependencies, String> {
    let lock: serde_json::Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut found = Dependencies::new();
    let categories = lock.as_object().into_iter().flatten();
    for (_, category) in categories.filter(|(key, _)| *key != "_meta") {
        for (name, package) in category.as_object().into_iter().flatten() {
            let field = |key: &str| package.get(key).and_then(serde_json::Value::as_str);
            let mut version = field("version").unwrap_or("any").to_owned();
            for key in ["index", "git", "hg", "svn", "bzr", "ref", "file", "path"] {
                if let Some(origin) = field(key) {
                    version.push_str(&format!(" from {key} {origin}"));
                }
            }
            add(&mut found, plain(name), version);
        }
    }
    let sources = lock
        .pointer("/_meta/sources")
        .and_then(serde_json::Value::as_array);
    for source in sources.into_iter().flatten() {
        let url = source.get("url").and_then(serde_json::Value::as_str);
        add(&mut found, "index", url.unwrap_or("unknown"));
    }
    Ok(found)
}

fn plain(name: &str) -> String {
    name.to_lowercase().replace(['_', '.'], "-")
}
