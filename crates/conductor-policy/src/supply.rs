//! Reads what a project depends on from its manifests and lock files, and compares two states of it (SEC-5).
//!
//! The list of what was added, removed and changed has a digest, which an approval is bound to (BEY-1). A file that
//! cannot be read, or whose format is known only by name, is listed as a whole: it is never taken for "nothing new".
//!
//! This module does not know whether a dependency is any good, nor fetches anything.

mod javascript;
mod other;
mod python;
mod rust;
mod plain;
pub(crate) mod beside;

pub use beside::only_dependencies_changed;
pub use plain::is_plain;

use std::collections::{BTreeMap, BTreeSet};

use conductor_domain::digest::Digest;

/// One dependency in one file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependency {
    /// Where packages of that name come from, e.g. `cargo`.
    pub ecosystem: &'static str,
    /// Its name.
    pub name: String,
}

/// The versions of one dependency in one file; a lock file may hold several. Where one comes from is part of it, unless
/// most came from there before the change: the same version from elsewhere is another dependency.
pub type Versions = BTreeSet<String>;

/// What a file depends on.
type Dependencies = BTreeMap<String, Versions>;

/// What became of the dependencies in one file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SupplyChange {
    /// What was not there before.
    pub added: BTreeMap<(String, Dependency), Versions>,
    /// What is gone.
    pub removed: BTreeMap<(String, Dependency), Versions>,
    /// What has other versions: before, after.
    pub changed: BTreeMap<(String, Dependency), (Versions, Versions)>,
    /// Files that changed and cannot be read, and why.
    pub unread: BTreeMap<String, String>,
}

/// One changed file; an absent side is empty.
#[derive(Debug, Clone, Copy)]
pub struct ChangedFile<'a> {
    /// Its path.
    pub path: &'a str,
    /// What it held.
    pub before: &'a [u8],
    /// What it holds.
    pub after: &'a [u8],
}

/// How a file is read.
enum Reading {
    By(fn(&str) -> Result<Dependencies, String>),
    /// Line by line; what is no dependency is passed over.
    Lines(fn(&str) -> Dependencies),
    /// Its name is known, its format is not.
    Unknown,
}

/// Larger files are not read.
const LARGEST: usize = 32 * 1024 * 1024;

/// Compares every manifest and lock file among the changes.
pub fn compare(files: &[ChangedFile<'_>]) -> SupplyChange {
    let mut change = SupplyChange::default();
    for file in files {
        let Some((ecosystem, reading)) = reading(file.path) else {
            continue;
        };
        let sides = read(&reading, file.before).and_then(|before| Ok((before, read(&reading, file.after)?)));
        match sides {
            Ok((mut before, mut after)) => {
                if let Some(usual) = usual(&before) {
                    before = without(before, &usual);
                    after = without(after, &usual);
                }
                change.note(file.path, ecosystem, before, &after);
            }
            Err(why) => {
                change.unread.insert(file.path.to_owned(), why);
            }
        }
    }
    change
}

/// Parts a version from where it comes from, as every parser writes it.
const FROM: &str = " from ";

/// The place that more than half of the versions came from before the change. It is learned there and not known here: what
/// people use is theirs to say, and whoever changes a file has no say in it.
fn usual(before: &Dependencies) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let versions = before.values().flatten();
    for (_, source) in versions.filter_map(|version| version.split_once(FROM)) {
        *counts.entry(source).or_default() += 1;
    }
    let all: usize = counts.values().sum();
    let usual = counts.into_iter().find(|(_, count)| count * 2 > all);
    usual.map(|(source, _)| source.to_owned())
}

fn without(dependencies: Dependencies, usual: &str) -> Dependencies {
    let end = format!("{FROM}{usual}");
    let shorter = |version: String| version.strip_suffix(&end).map(str::to_owned).unwrap_or(version);
    let all = dependencies.into_iter();
    all.map(|(name, versions)| (name, versions.into_iter().map(shorter).collect()))
        .collect()
}

/// Tells whether a path is a manifest or a lock file (SEC-5: such a change gets an elevated review).
pub fn is_manifest(path: &str) -> bool {
    reading(path).is_some()
}

fn read(reading: &Reading, bytes: &[u8]) -> Result<Dependencies, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not text".to_owned())?;
    match reading {
        _ if text.trim().is_empty() => Ok(Dependencies::new()),
        _ if text.len() > LARGEST => Err(format!("it is longer than {LARGEST} bytes")),
        Reading::By(parse) => parse(text),
        Reading::Lines(parse) => Ok(parse(text)),
        Reading::Unknown => Err("its format is not read here".to_owned()),
    }
}

fn reading(path: &str) -> Option<(&'static str, Reading)> {
    use Reading::{By, Lines, Unknown};
    let name = path.rsplit('/').next().unwrap_or(path);
    Some(match name {
        "Cargo.toml" => ("cargo", By(rust::manifest)),
        "Cargo.lock" => ("cargo", By(rust::lock)),
        "package.json" => ("npm", By(javascript::manifest)),
        "package-lock.json" | "npm-shrinkwrap.json" => ("npm", By(javascript::npm_lock)),
        "yarn.lock" => ("npm", By(javascript::yarn_lock)),
        "pnpm-lock.yaml" => ("npm", By(javascript::pnpm_lock)),
        "pyproject.toml" => ("pypi", By(python::pyproject)),
        "uv.lock" => ("pypi", By(python::uv_lock)),
        "poetry.lock" | "pdm.lock" => ("pypi", By(python::lock)),
        "Pipfile.lock" => ("pypi", By(python::pipfile_lock)),
        "go.mod" => ("go", Lines(other::go_mod)),
        "go.sum" | "go.work.sum" => ("go", By(other::go_sum)),
        "go.work" => ("go", Unknown),
        "Gemfile" | "gems.rb" => ("rubygems", By(other::gemfile)),
        "Gemfile.lock" | "gems.locked" => ("rubygems", Lines(other::gemfile_lock)),
        "composer.json" => ("composer", By(other::composer)),
        "composer.lock" => ("composer", By(other::composer_lock)),
        "pom.xml"
        | "gradle.lockfile"
        | "gradle-wrapper.properties"
        | "ivy.xml"
        | "deps.edn"
        | "project.clj" => ("maven", Unknown),
        // Scripts that any other of their kind can take in, whatever they are called.
        name if ends_in(name, &[".gradle", ".gradle.kts", ".sbt", ".versions.toml"]) => ("maven", Unknown),
        "extensions.xml" if path == ".mvn/extensions.xml" || path.ends_with("/.mvn/extensions.xml") => {
            ("maven", Unknown)
        }
        "packages.config" | "packages.lock.json" | "paket.dependencies" | "paket.lock"
        | "dotnet-tools.json" => ("nuget", Unknown),
        name if name.eq_ignore_ascii_case("nuget.config") => ("nuget", Unknown),
        "Pipfile" | "setup.py" | "setup.cfg" | "environment.yml" | "environment.yaml" | "uv.toml" => {
            ("pypi", Unknown)
        }
        name if name.starts_with("pylock.") && ends_in(name, &[".toml"]) => ("pypi", Unknown),
        "bun.lock"
        | "bun.lockb"
        | "deno.json"
        | "deno.jsonc"
        | "deno.lock"
        | "pnpm-workspace.yaml"
        | "package.yaml"
        | "package.json5"
        | ".pnpmfile.cjs"
        | ".pnpmfile.mjs" => ("npm", Unknown),
        "mix.exs" | "mix.lock" | "rebar.config" | "rebar.lock" => ("hex", Unknown),
        "pubspec.yaml" | "pubspec.lock" => ("pub", Unknown),
        "Package.swift" | "Package.resolved" | "Podfile" | "Podfile.lock" => ("swift", Unknown),
        "Cartfile" | "Cartfile.private" | "Cartfile.resolved" => ("carthage", Unknown),
        "pixi.toml" | "pixi.lock" => ("conda", Unknown),
        "renv.lock" => ("cran", Unknown),
        "build.zig.zon" => ("zig", Unknown),
        "requirements.yml" | "requirements.yaml" => ("ansible", Unknown),
        "flake.nix" | "flake.lock" => ("nix", Unknown),
        ".terraform.lock.hcl" => ("terraform", Unknown),
        "conanfile.txt" | "conanfile.py" | "conan.lock" => ("conan", Unknown),
        "vcpkg.json" | "vcpkg-configuration.json" => ("vcpkg", Unknown),
        "MODULE.bazel" | "MODULE.bazel.lock" | "WORKSPACE" | "WORKSPACE.bazel" => ("bazel", Unknown),
        "stack.yaml"
        | "stack.yaml.lock"
        | "cabal.project"
        | "cabal.project.freeze"
        | "cabal.project.local" => ("hackage", Unknown),
        name if ends_in(name, &[".cabal"]) => ("hackage", Unknown),
        name if ends_in(name, &[".csproj", ".fsproj", ".vbproj", ".props", ".targets"]) => ("nuget", Unknown),
        name if ends_in(name, &[".gemspec"]) => ("rubygems", Unknown),
        _ if is_requirements(path) => ("pypi", By(python::requirements)),
        _ => return None,
    })
}

/// Tells whether a file lists requirements or constraints for pip; which name it has is up to whoever wrote it.
fn is_requirements(path: &str) -> bool {
    let path = path.to_lowercase();
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let is_called_so = name.contains("requirements") || name.starts_with("constraints");
    let is_among_them = folders.split('/').any(|folder| folder.ends_with("requirements"));
    let is_locked = name.starts_with("requirements") && ends_in(name, &[".lock"]);
    is_locked || ends_in(name, &[".txt", ".in"]) && (is_called_so || is_among_them)
}

fn ends_in(name: &str, ends: &[&str]) -> bool {
    ends.iter().any(|end| name.ends_with(end))
}

impl SupplyChange {
    fn note(&mut self, path: &str, ecosystem: &'static str, mut before: Dependencies, after: &Dependencies) {
        for (name, versions) in after {
            let key = (
                path.to_owned(),
                Dependency {
                    ecosystem,
                    name: name.clone(),
                },
            );
            match before.remove(name) {
                None => {
                    self.added.insert(key, versions.clone());
                }
                Some(old) if old != *versions => {
                    self.changed.insert(key, (old, versions.clone()));
                }
                Some(_) => {}
            }
        }
        for (name, versions) in before {
            self.removed
                .insert((path.to_owned(), Dependency { ecosystem, name }), versions);
        }
    }

    /// Tells whether anything came in that a person must approve: a new dependency, or what could not be read.
    pub fn needs_approval(&self) -> bool {
        !self.added.is_empty() || !self.unread.is_empty()
    }

    /// Renders the list that is shown, and hashed: one line each, in a fixed order.
    pub fn render(&self) -> String {
        let join = |versions: &Versions| versions.iter().cloned().collect::<Vec<_>>().join(", ");
        let mut lines: Vec<String> = Vec::new();
        for ((path, dependency), versions) in &self.added {
            lines.push(format!(
                "added {} {} {} in {path}",
                dependency.ecosystem,
                dependency.name,
                join(versions)
            ));
        }
        for ((path, dependency), (before, after)) in &self.changed {
            lines.push(format!(
                "changed {} {} {} to {} in {path}",
                dependency.ecosystem,
                dependency.name,
                join(before),
                join(after)
            ));
        }
        for ((path, dependency), versions) in &self.removed {
            lines.push(format!(
                "removed {} {} {} in {path}",
                dependency.ecosystem,
                dependency.name,
                join(versions)
            ));
        }
        for (path, why) in &self.unread {
            lines.push(format!("unread {path}: {why}"));
        }
        // A name may hold anything, and each must stay on its line, seen as it is.
        lines
            .iter()
            .map(|line| crate::hidden::visible(&line.replace('\n', "⏎")).text + "\n")
            .collect()
    }

    /// Returns the address of the list; an approval names it.
    pub fn digest(&self) -> Digest {
        Digest::of(self.render().as_bytes())
    }
}

/// Adds a version to a name's.
fn add(dependencies: &mut Dependencies, name: impl Into<String>, version: impl Into<String>) {
    dependencies
        .entry(name.into())
        .or_default()
        .insert(version.into());
}
