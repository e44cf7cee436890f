//! `Cargo.toml` and `Cargo.lock`.
//!
//! This module does not resolve versions.

use toml::{Table, Value};

use super::{Dependencies, add};

/// Reads every table of dependencies of a manifest: also the workspace's, those for a target, patches and replacements.
pub(super) fn manifest(text: &str) -> Result<Dependencies, String> {
    let table: Table = text
        .parse()
        .map_err(|error: toml::de::Error| error.message().to_owned())?;
    let mut found = Dependencies::new();
    collect(&table, &mut found);
    Ok(found)
}

fn collect(table: &Table, found: &mut Dependencies) {
    for (key, value) in table {
        let Some(inner) = value.as_table() else { continue };
        match key.as_str() {
            "dependencies" | "dev-dependencies" | "build-dependencies" | "dev_dependencies"
            | "build_dependencies" => {
                for (name, value) in inner {
                    let package = value.get("package").and_then(Value::as_str).unwrap_or(name);
                    add(found, package, version(value));
                }
            }
            "patch" => {
                for (name, value) in inner.values().filter_map(Value::as_table).flatten() {
                    add(found, name, format!("patch {}", version(value)));
                }
            }
            "replace" => {
                for (name, value) in inner {
                    let package = name.split(':').next().unwrap_or(name);
                    add(found, package, format!("replaced by {}", version(value)));
                }
            }
            "target" => inner
                .values()
                .filter_map(Value::as_table)
                .for_each(|table| collect(table, found)),
            "workspace" => collect(inner, found),
            _ => {}
        }
    }
}

fn version(value: &Value) -> String {
    let field = |key: &str| value.get(key).and_then(Value::as_str);
    if let Some(version) = value.as_str() {
        return version.to_owned();
    }
    let sources: Vec<String> = [
        "version",
        "git",
        "branch",
        "tag",
        "rev",
        "path",
        "registry",
        "registry-index",
    ]
    .iter()
    .filter_map(|key| Some((key, field(key)?)))
    .map(|(key, value)| {
        if *key == "version" {
            value.to_owned()
        } else {
            format!("{key} {value}")
        }
    })
    .collect();
    if sources.is_empty() {
        "workspace".to_owned()
    } else {
        sources.join(" ")
    }
}

/// Reads the packages of a lock file that come from elsewhere; a package without a source is the project's own.
pub(super) fn lock(text: &str) -> Result<Dependencies, String> {
    let table: Table = text
        .parse()
        .map_err(|error: toml::de::Error| error.message().to_owned())?;
    let packages = table
        .get("package")
        .and_then(Value::as_array)
        .ok_or("it lists no packages")?;
    let mut found = Dependencies::new();
    for package in packages {
        let field = |key: &str| package.get(key).and_then(Value::as_str);
        let name = field("name").ok_or("a package has no name")?;
        let Some(source) = field("source") else { continue };
        let version = field("version").unwrap_or("");
        add(&mut found, name, format!("{version} from {source}"));
    }
    Ok(found)
}
