//! `pyproject.toml`, requirements files, and the lock files of Poetry, uv, PDM and Pipenv.
//!
//! Names are compared as the index compares them: lower case, with `-` for `_` and `.`. This module does not resolve
//! versions.

use toml::{Table, Value};

use super::{Dependencies, add};

/// Reads the tables of the standard, of dependency groups, of the build, and of Poetry.
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
    ]
    .into_iter()
    .flatten()
    {
        strings(&list).for_each(|line| requirement(line, &mut found));
    }
    for groups in [
        at(&["project", "optional-dependencies"]),
        at(&["dependency-groups"]),
    ]
    .into_iter()
    .flatten()
    {
        for list in groups.as_table().into_iter().flat_map(Table::values) {
            strings(list).for_each(|line| requirement(line, &mut found));
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

fn strings(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Reads a requirements file; options that bring in other files or indexes are listed as they stand.
pub(super) fn requirements(text: &str) -> Dependencies {
    let mut found = Dependencies::new();
    let joined = text.replace("\\\n", " ");
    for line in joined.lines() {
        let line = line.split(" #").next().unwrap_or(line).trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line.starts_with('-') {
            add(&mut found, line.split_whitespace().next().unwrap_or(line), line);
        } else {
            requirement(line.split(" --").next().unwrap_or(line), &mut found);
        }
    }
    found
}

/// Reads `name[extra] >=1; marker` or `name @ address`.
fn requirement(line: &str, found: &mut Dependencies) {
    let line = line.split(';').next().unwrap_or(line).trim();
    let end = line
        .find(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '.')))
        .unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    let version = rest.split_once(']').map_or(rest, |(_, after)| after).trim();
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

/// Reads `[[package]]` tables.
pub(super) fn lock(text: &str) -> Result<Dependencies, String> {
    let table: Table = text
        .parse()
        .map_err(|error: toml::de::Error| error.message().to_owned())?;
    let mut found = Dependencies::new();
    for package in table
        .get("package")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let field = |key: &str| package.get(key).and_then(Value::as_str);
        let name = field("name").ok_or("a package has no name")?;
        let is_own = package
            .get("source")
            .and_then(|source| source.get("editable").or(source.get("virtual")));
        if is_own.is_none() {
            add(&mut found, plain(name), field("version").unwrap_or("any"));
        }
    }
    Ok(found)
}

/// Reads the maps of a `Pipfile.lock`.
pub(super) fn pipfile_lock(text: &str) -> Result<Dependencies, String> {
    let lock: serde_json::Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut found = Dependencies::new();
    for key in ["default", "develop"] {
        for (name, package) in lock
            .get(key)
            .and_then(serde_json::Value::as_object)
            .into_iter()
            .flatten()
        {
            let version = package
                .get("version")
                .and_then(serde_json::Value::as_str)
                .unwrap_or("any");
            add(&mut found, plain(name), version);
        }
    }
    Ok(found)
}

fn plain(name: &str) -> String {
    name.to_lowercase().replace(['_', '.'], "-")
}
