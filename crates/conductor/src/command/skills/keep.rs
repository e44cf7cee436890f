//! The commands that look after the files: init, clean, export, import.
//!
//! This module does not know any place for skills.

use std::collections::BTreeSet;
use std::path::Path;

use conductor_skill::config::Config;
use conductor_skill::edit;
use conductor_skill::lock::Lock;
use conductor_skill::store::Store;
use serde::Serialize;

use super::desk::{Desk, of_config};
use crate::exit::{Exit, Failure};
use crate::out::Out;
use crate::show::words::count;

#[derive(Debug, Serialize)]
struct Made {
    config: String,
    skills: usize,
}

/// Makes an empty file and its lock.
pub(super) fn init(desk: &Desk, force: bool) -> Result<Exit, Failure> {
    take_over(desk, edit::EMPTY, force)?;
    let lock = Lock::beside(&desk.file);
    if !lock.exists() {
        Lock::default().write(&lock).map_err(|error| of_config(&error))?;
    }
    Ok(Exit::Ok)
}

/// Takes over another file.
pub(super) fn import(desk: &Desk, from: &Path, force: bool, dry_run: bool) -> Result<Exit, Failure> {
    let text = std::fs::read_to_string(from)
        .map_err(|error| Failure::because(format!("reading {}", from.display()), &error))?;
    let config = Config::parse(&text, from, desk.home.as_deref()).map_err(|error| of_config(&error))?;
    if dry_run {
        let made = Made {
            config: desk.file.display().to_string(),
            skills: config.skills.len(),
        };
        desk.out.data(&made, |made| {
            format!("{} would be taken over\n", count(made.skills, "skill"))
        })?;
        return Ok(Exit::Ok);
    }
    take_over(desk, &text, force)?;
    Ok(Exit::Ok)
}

fn take_over(desk: &Desk, text: &str, force: bool) -> Result<(), Failure> {
    if desk.text()?.is_some() && !force {
        return Err(Failure::coded(
            "CDR0702",
            format!("{} is there already", desk.file.display()),
            "say --force to replace it",
        )
        .exiting(Exit::Usage));
    }
    let config = desk.parse(text)?;
    edit::write(&desk.file, text).map_err(|error| of_config(&error))?;
    desk.out.talk(&format!("✔ {} written", desk.file.display()));
    let made = Made {
        config: desk.file.display().to_string(),
        skills: config.skills.len(),
    };
    desk.out.data(&made, |_| String::new())
}

/// Prints the file.
pub(super) fn export(desk: &Desk) -> Result<Exit, Failure> {
    desk.config()?;
    let text = desk.text()?.unwrap_or_default();
    if desk.out.is_json() {
        let value: toml::Value =
            toml::from_str(&text).map_err(|error| Failure::because("reading the file", &error))?;
        desk.out.data(&value, |_| String::new())?;
    } else {
        Out::text(&text)?;
    }
    Ok(Exit::Ok)
}

#[derive(Debug, Serialize)]
struct Cleaned {
    removed: Vec<String>,
    dry_run: bool,
}

/// Removes what no skill needs any more from the store.
pub(super) fn clean(desk: &Desk, dry_run: bool) -> Result<Exit, Failure> {
    let config = desk.config()?;
    let lock = desk.lock()?;
    let used = lock
        .skills
        .iter()
        .flat_map(|locked| {
            locked
                .targets
                .iter()
                .map(|put| put.digest.clone())
                .chain([locked.digest.clone()])
        })
        .collect();
    let registries: BTreeSet<&str> = config
        .registries
        .iter()
        .map(|registry| registry.name.as_str())
        .collect();
    let store = Store::new(config.storage.clone());
    let _claim = if dry_run { None } else { Some(desk.claim(&config)?) };
    let unused = store.unused(&used, &registries);
    for path in unused.iter().filter(|_| !dry_run) {
        store
            .discard(path)
            .map_err(|error| Failure::because(format!("removing {}", path.display()), &error))?;
    }
    let cleaned = Cleaned {
        removed: unused.iter().map(|path| path.display().to_string()).collect(),
        dry_run,
    };
    desk.out.data(&cleaned, |cleaned| {
        let verb = if cleaned.dry_run {
            "would be removed"
        } else {
            "removed"
        };
        let lines: Vec<String> = cleaned
            .removed
            .iter()
            .map(|path| format!("{path} {verb}\n"))
            .collect();
        lines.concat()
    })?;
    if unused.is_empty() {
        desk.out.talk("✔ nothing there that no skill needs");
    }
    Ok(Exit::Ok)
}
