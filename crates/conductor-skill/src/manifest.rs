//! Reads `SKILL.md` and judges it by the public rules: which fields, how long, and a name that is the directory's.
//!
//! The reference validator (`skills-ref`) is the oracle of these rules in the tests. This module does not know where a
//! skill comes from or goes to.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use unicode_normalization::UnicodeNormalization as _;
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory as _};

mod yaml;

pub use yaml::Value;

/// Longest name, in characters.
pub const LONGEST_NAME: usize = 64;
/// Longest description, in characters.
pub const LONGEST_DESCRIPTION: usize = 1024;
/// Longest statement of compatibility, in characters.
pub const LONGEST_COMPATIBILITY: usize = 500;
/// A manifest that is larger is not read.
const LARGEST: u64 = 1024 * 1024;

const FIELDS: [&str; 6] = [
    "allowed-tools",
    "compatibility",
    "description",
    "license",
    "metadata",
    "name",
];

/// What a skill says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The file that says it.
    pub file: PathBuf,
    /// Its name, as written.
    pub name: String,
    /// What it does, and when to use it.
    pub description: String,
    /// Its license, if it names one.
    pub license: Option<String>,
}

/// Why a directory is no skill, or not a good one; every reason there is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is not a valid skill: {}", directory.display(), problems.join("; "))]
pub struct Invalid {
    /// The directory.
    pub directory: PathBuf,
    /// What is wrong, one sentence each.
    pub problems: Vec<String>,
}

impl Manifest {
    /// Reads what a skill says about itself, as far as nobody can do without; `problems` judges it.
    pub fn read(directory: &Path) -> Result<Self, Invalid> {
        let invalid = |problem: String| Invalid {
            directory: directory.to_owned(),
            problems: vec![problem],
        };
        let file = find(directory).ok_or_else(|| invalid("there is no SKILL.md".to_owned()))?;
        let fields = front(&file).map_err(invalid)?;
        let text = |key: &str| match fields.get(key) {
            Some(Value::Text(text)) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
            Some(_) => Err(invalid(format!("`{key}` must be text that is not empty"))),
            None => Err(invalid(format!("`{key}` is missing"))),
        };
        let license = match fields.get("license") {
            Some(Value::Text(text)) if !text.trim().is_empty() => Some(text.trim().to_owned()),
            Some(_) | None => None,
        };
        Ok(Self {
            name: text("name")?,
            description: text("description")?,
            license,
            file,
        })
    }

    /// Reads a skill that obeys every rule.
    pub fn read_valid(directory: &Path) -> Result<Self, Invalid> {
        let problems = problems(directory);
        if problems.is_empty() {
            Self::read(directory)
        } else {
            Err(Invalid {
                directory: directory.to_owned(),
                problems,
            })
        }
    }
}

/// Finds the manifest of a directory.
pub fn find(directory: &Path) -> Option<PathBuf> {
    ["SKILL.md", "skill.md"]
        .map(|name| directory.join(name))
        .into_iter()
        .find(|path| path.exists())
}

/// Judges a directory; no problem, no word.
pub fn problems(directory: &Path) -> Vec<String> {
    let name = directory
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    problems_as(directory, &name.unwrap_or_default())
}

/// Judges a directory that will be called `name` where it is put.
pub fn problems_as(directory: &Path, name: &str) -> Vec<String> {
    if !directory.is_dir() {
        return vec!["it is not a directory".to_owned()];
    }
    let Some(file) = find(directory) else {
        return vec!["there is no SKILL.md".to_owned()];
    };
    match front(&file) {
        Ok(fields) => judge(&fields, name),
        Err(problem) => vec![problem],
    }
}

/// Reads the fields at the head of a manifest.
fn front(file: &Path) -> Result<BTreeMap<String, Value>, String> {
    let length = fs::metadata(file)
        .map_err(|error| format!("SKILL.md: {error}"))?
        .len();
    if length > LARGEST {
        return Err(format!("SKILL.md is larger than {LARGEST} bytes"));
    }
    let bytes = fs::read(file).map_err(|error| format!("SKILL.md: {error}"))?;
    let text = String::from_utf8(bytes).map_err(|_| "SKILL.md is not UTF-8".to_owned())?;
    // Line ends of every system count as one.
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    // The second mark counts wherever it stands, even within a line: so do the public rules.
    let rest = text
        .strip_prefix("---")
        .ok_or("SKILL.md must begin with front matter (`---`)")?;
    let (front, _) = rest
        .split_once("---")
        .ok_or("the front matter of SKILL.md does not end (`---`)")?;
    match yaml::parse(front)
        .map_err(|error| format!("the front matter of SKILL.md is not plain YAML: {error}"))?
    {
        Value::Map(fields) => Ok(fields),
        Value::Text(_) | Value::List(_) => Err("the front matter of SKILL.md holds no fields".to_owned()),
    }
}

fn judge(fields: &BTreeMap<String, Value>, directory: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let unknown: Vec<&str> = fields
        .keys()
        .map(String::as_str)
        .filter(|key| !FIELDS.contains(key))
        .collect();
    if !unknown.is_empty() {
        problems.push(format!(
            "unknown fields: {}; there are {}",
            unknown.join(", "),
            FIELDS.join(", ")
        ));
    }
    match fields.get("name") {
        None => problems.push("`name` is missing".to_owned()),
        Some(Value::Text(name)) if !name.trim().is_empty() => problems.extend(judge_name(name, directory)),
        Some(_) => problems.push("`name` must be text that is not empty".to_owned()),
    }
    match fields.get("description") {
        None => problems.push("`description` is missing".to_owned()),
        Some(Value::Text(text)) if !text.trim().is_empty() => {
            problems.extend(too_long("description", text, LONGEST_DESCRIPTION));
        }
        Some(_) => problems.push("`description` must be text that is not empty".to_owned()),
    }
    match fields.get("compatibility") {
        Some(Value::Text(text)) => problems.extend(too_long("compatibility", text, LONGEST_COMPATIBILITY)),
        Some(_) => problems.push("`compatibility` must be text".to_owned()),
        None => {}
    }
    problems
}

fn judge_name(written: &str, directory: &str) -> Vec<String> {
    let name: String = written.trim().nfkc().collect();
    let mut problems: Vec<String> = wrong_with_name(&name).into_iter().map(str::to_owned).collect();
    problems.extend(too_long("name", &name, LONGEST_NAME));
    let directory_name: String = directory.nfkc().collect();
    if directory_name != name {
        problems.push(format!(
            "the directory is called `{directory_name}` but the skill `{name}`"
        ));
    }
    problems
}

/// Says what keeps a text from being a skill's name; its length is looked at elsewhere.
pub(crate) fn wrong_with_name(name: &str) -> Vec<&'static str> {
    let mut wrong = Vec::new();
    if name != name.to_lowercase() {
        wrong.push("the name must be in lower case");
    }
    if name.starts_with('-') || name.ends_with('-') {
        wrong.push("the name may not begin or end with a hyphen");
    }
    if name.contains("--") {
        wrong.push("the name may not hold two hyphens in a row");
    }
    if !name.chars().all(|c| c == '-' || is_alphanumeric(c)) {
        wrong.push("the name may hold letters, digits and hyphens only");
    }
    wrong
}

/// Letters and numbers by their category; Rust's own test lets combining marks through.
fn is_alphanumeric(c: char) -> bool {
    matches!(
        c.general_category_group(),
        GeneralCategoryGroup::Letter | GeneralCategoryGroup::Number
    )
}

fn too_long(field: &str, text: &str, longest: usize) -> Option<String> {
    let length = text.chars().count();
    (length > longest).then(|| format!("`{field}` has {length} characters, more than {longest}"))
}
