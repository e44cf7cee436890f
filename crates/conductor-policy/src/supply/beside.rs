//! What a manifest says beside its dependencies: settings of tools, commands, targets.
//!
//! A dependency is judged by the list that [`super::compare`] makes. What stands beside it in the same file is not on that list,
//! so whoever treats a change as one of dependencies asks here whether it is nothing else. This module does not judge the rest.

use serde_json::Value;
use toml::Table;

use super::{Reading, is_requirements, javascript, read, reading};

/// What is left of a file without its dependencies.
#[derive(PartialEq)]
enum Rest {
    /// It holds nothing else.
    Nothing,
    Toml(Table),
    Json(Value),
}

/// Tells whether two states of a manifest or a lock file differ in what they depend on and in nothing else; an absent side is
/// empty. Of what cannot be read, or is a program, nobody can tell: the answer is no.
pub fn only_dependencies_changed(path: &str, before: &[u8], after: &[u8]) -> bool {
    let Some((_, reading)) = reading(path) else {
        return false;
    };
    let rests = rest(path, &reading, before).zip(rest(path, &reading, after));
    rests.is_some_and(|(before, after)| before == after)
}

fn rest(path: &str, reading: &Reading, bytes: &[u8]) -> Option<Rest> {
    read(reading, bytes).ok()?;
    let text = std::str::from_utf8(bytes).ok()?;
    match path.rsplit('/').next().unwrap_or(path) {
        "Cargo.toml" => Some(Rest::Toml(cargo(text.parse().ok()?))),
        "pyproject.toml" => Some(Rest::Toml(pyproject(text)?)),
        "package.json" => json(text, &javascript::MAPS),
        "composer.json" => json(text, &["/require", "/require-dev"]),
        "Cargo.lock"
        | "package-lock.json"
        | "npm-shrinkwrap.json"
        | "yarn.lock"
        | "pnpm-lock.yaml"
        | "poetry.lock"
        | "uv.lock"
        | "pdm.lock"
        | "Pipfile.lock"
        | "go.sum"
        | "go.work.sum"
        | "Gemfile.lock"
        | "gems.locked"
        | "composer.lock" => Some(Rest::Nothing),
        _ if is_requirements(path) => Some(Rest::Nothing),
        _ => None,
    }
}

/// Takes every map of dependencies out of a manifest, and what holds nothing else; an empty file has nothing beside them.
fn json(text: &str, places: &[&str]) -> Option<Rest> {
    if text.trim().is_empty() {
        return Some(Rest::Json(Value::Null));
    }
    let mut manifest: Value = serde_json::from_str(text).ok()?;
    manifest.as_object()?;
    for place in places {
        take_out(&mut manifest, place);
    }
    Some(Rest::Json(manifest))
}

/// Takes a map out of a tree, and the maps around it that are left empty.
fn take_out(tree: &mut Value, place: &str) {
    let Some((around, key)) = place.rsplit_once('/') else {
        return;
    };
    let Some(fields) = tree.pointer_mut(around).and_then(Value::as_object_mut) else {
        return;
    };
    let is_map = fields.get(key).is_some_and(Value::is_object);
    if is_map && fields.remove(key).is_some() && fields.is_empty() {
        take_out(tree, around);
    }
}

/// Takes every table out of a `Cargo.toml` that is read as dependencies.
fn cargo(mut manifest: Table) -> Table {
    for key in ["patch", "replace"] {
        remove(&mut manifest, &[key]);
    }
    for kind in [
        "dependencies",
        "dev-dependencies",
        "build-dependencies",
        "dev_dependencies",
        "build_dependencies",
    ] {
        remove(&mut manifest, &[kind]);
        remove(&mut manifest, &["target", ANY, kind]);
        // A workspace that is left empty is a workspace still.
        if let Some(workspace) = manifest.get_mut("workspace").and_then(toml::Value::as_table_mut) {
            remove(workspace, &[kind]);
        }
    }
    manifest
}

/// Takes out of a `pyproject.toml` what is read as dependencies; `None`: it cannot be read.
pub(crate) fn pyproject(text: &str) -> Option<Table> {
    let mut manifest: Table = text.parse().ok()?;
    // Poetry lists the version of Python itself among them, which is none.
    let python = manifest
        .get("tool")
        .and_then(|tool| tool.get("poetry")?.get("dependencies")?.get("python"))
        .cloned();
    for path in [
        &["project", "dependencies"][..],
        &["project", "optional-dependencies"],
        &["dependency-groups"],
        &["build-system", "requires"],
        &["tool", "uv", "dev-dependencies"],
        &["tool", "uv", "override-dependencies"],
        &["tool", "uv", "constraint-dependencies"],
        &["tool", "uv", "build-constraint-dependencies"],
        &["tool", "uv", "sources"],
        &["tool", "uv", "index"],
        &["tool", "pdm", "dev-dependencies"],
        &["tool", "pdm", "resolution", "overrides"],
        &["tool", "pdm", "source"],
        &["tool", "hatch", "envs", ANY, "dependencies"],
        &["tool", "hatch", "envs", ANY, "extra-dependencies"],
        &["tool", "poetry", "dependencies"],
        &["tool", "poetry", "dev-dependencies"],
        &["tool", "poetry", "group", ANY, "dependencies"],
        &["tool", "poetry", "group", ANY, "dev-dependencies"],
        &["tool", "poetry", "source"],
    ] {
        remove(&mut manifest, path);
    }
    manifest.extend(python.map(|python| ("python".to_owned(), python)));
    Some(manifest)
}

/// Stands for every key of a table.
const ANY: &str = "*";

/// Removes what stands at a path, and each table on the way there that is left empty.
pub(crate) fn remove(table: &mut Table, path: &[&str]) {
    let Some((key, deeper)) = path.split_first() else {
        return;
    };
    let keys: Vec<String> = if *key == ANY {
        table.keys().cloned().collect()
    } else {
        vec![(*key).to_owned()]
    };
    for key in keys {
        let is_done = match table.get_mut(&key) {
            Some(toml::Value::Table(inner)) if !deeper.is_empty() => {
                remove(inner, deeper);
                inner.is_empty()
            }
            Some(_) => deeper.is_empty(),
            None => false,
        };
        if is_done {
            table.remove(&key);
        }
    }
}
