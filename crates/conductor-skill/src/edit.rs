//! Changes `skills.toml` without touching what a person wrote around it.
//!
//! The result is read again before it is written, so a change never leaves a file that cannot be read. This module does
//! not know what the change is for.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use toml_edit::{ArrayOfTables, DocumentMut, InlineTable, Item, Table, Value, value};

use crate::config::{Config, Error, Programs, Skill};
use crate::environment::Environment;
use crate::name::SkillName;
use crate::source::Source;

/// What stands in a new file.
pub const EMPTY: &str =
    "# Skills, where they come from, and where they are put. See docs/skills.md.\nversion = 1\n";

/// Adds skills, replacing those of the same name.
pub fn add(text: &str, file: &Path, skills: &[Skill]) -> Result<String, Error> {
    change(text, file, |tables| {
        for skill in skills {
            tables.retain(|table| !is_named(table, &skill.name));
            tables.push(table(skill));
        }
    })
}

/// Takes skills out of environments, or out of all when none is named. A skill that is wanted nowhere is out.
pub fn remove(
    text: &str,
    file: &Path,
    names: &[SkillName],
    environments: &[Environment],
) -> Result<String, Error> {
    change(text, file, |tables| {
        for table in tables.iter_mut() {
            if names.iter().any(|name| is_named(table, name)) {
                leave(table, environments);
            }
        }
        tables.retain(|table| {
            let is_meant = names.iter().any(|name| is_named(table, name));
            !is_meant || !(environments.is_empty() || is_nowhere(table))
        });
    })
}

/// Takes the targets in some environments out of a skill.
fn leave(table: &mut Table, environments: &[Environment]) {
    let stays = |environment: Option<&str>| {
        let environment = environment.unwrap_or("local");
        !environments.iter().any(|gone| gone.to_string() == environment)
    };
    match table.get_mut("targets") {
        Some(Item::ArrayOfTables(targets)) => {
            targets.retain(|target| stays(target.get("environment").and_then(Item::as_str)));
        }
        Some(Item::Value(Value::Array(targets))) => targets.retain(|target| {
            let environment = target
                .as_inline_table()
                .and_then(|table| table.get("environment"));
            stays(environment.and_then(Value::as_str))
        }),
        Some(Item::None | Item::Value(_) | Item::Table(_)) | None => {}
    }
}

fn is_nowhere(table: &Table) -> bool {
    match table.get("targets") {
        Some(Item::ArrayOfTables(targets)) => targets.is_empty(),
        Some(Item::Value(Value::Array(targets))) => targets.is_empty(),
        Some(Item::None | Item::Value(_) | Item::Table(_)) | None => true,
    }
}

/// Writes a file in one step.
pub fn write(file: &Path, text: &str) -> Result<(), Error> {
    let failed = |source| Error::Io {
        attempt: "writing",
        path: file.to_owned(),
        source,
    };
    let directory = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory).map_err(failed)?;
    let mut fresh = tempfile::NamedTempFile::new_in(directory).map_err(failed)?;
    fresh.write_all(text.as_bytes()).map_err(failed)?;
    fresh.as_file().sync_all().map_err(failed)?;
    fresh.persist(file).map_err(|error| failed(error.error))?;
    Ok(())
}

fn change(text: &str, file: &Path, act: impl FnOnce(&mut ArrayOfTables)) -> Result<String, Error> {
    let invalid = |what: String| Error::Invalid {
        path: file.to_owned(),
        what,
    };
    let mut document: DocumentMut = text
        .parse()
        .map_err(|error: toml_edit::TomlError| invalid(error.to_string()))?;
    let tables = document
        .entry("skills")
        .or_insert(Item::ArrayOfTables(ArrayOfTables::new()))
        .as_array_of_tables_mut()
        .ok_or_else(|| invalid("skills: write each as [[skills]]".to_owned()))?;
    act(tables);
    let text = document.to_string();
    Config::parse(&text, file, Some(Path::new("/home")))?;
    Ok(text)
}

fn is_named(table: &Table, name: &SkillName) -> bool {
    table.get("id").and_then(Item::as_str) == Some(name.as_str())
}

fn table(skill: &Skill) -> Table {
    let mut table = Table::new();
    table["id"] = value(skill.name.as_str());
    match &skill.source {
        Source::Path(path) => table["source"] = inline(&[("path", &path.display().to_string())]),
        Source::Git(git) => {
            let mut pairs = vec![("repo", git.url.as_str())];
            if !git.subpath.is_empty() {
                pairs.push(("subpath", &git.subpath));
            }
            if let Some(reference) = &git.reference {
                pairs.push(("ref", reference));
            }
            table["source"] = inline(&pairs);
        }
        Source::Registry { version, registry } => {
            table["version"] = value(version.to_string());
            if let Some(registry) = registry {
                table["registry"] = value(registry);
            }
        }
    }
    table["install"] = inline(&[("mode", skill.mode.word())]);
    if skill.programs == Programs::LeftOut {
        let mut safety = InlineTable::new();
        safety.insert("no_exec", true.into());
        table["safety"] = Item::Value(Value::InlineTable(safety));
    }
    let mut targets = ArrayOfTables::new();
    for target in &skill.targets {
        let mut entry = Table::new();
        entry["environment"] = value(target.environment.to_string());
        entry["path"] = value(&target.root);
        targets.push(entry);
    }
    table["targets"] = Item::ArrayOfTables(targets);
    table
}

fn inline(pairs: &[(&str, &str)]) -> Item {
    let mut table = InlineTable::new();
    for (key, text) in pairs {
        table.insert(*key, (*text).into());
    }
    Item::Value(Value::InlineTable(table))
}
