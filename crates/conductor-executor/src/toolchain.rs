//! Finds the directories whose programs a sandbox's commands may call; they become its PATH, and nothing else does.
//!
//! An empty environment has no `RUSTUP_HOME` and no pyenv, so a proxy that needs them cannot work in it. Instead of
//! passing such variables on (a `CARGO_HOME` holds registry tokens), each toolchain is asked once, outside, where it
//! really lives, and that directory is named. A sandbox binds the same directories read-only.
//! This module does not know which project needs which toolchain.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// Where the system keeps programs.
const SYSTEM: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// How long a toolchain may take to say where it lives.
const PATIENCE: Duration = Duration::from_secs(30);

/// Directories of programs, searched in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolchain {
    directories: Vec<PathBuf>,
    /// Where they really live, besides `/usr`: what a sandbox shows read-only.
    roots: Vec<PathBuf>,
}

/// A program that is needed and not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("program `{program}` is needed and was not found in {searched}")]
pub struct Missing {
    /// Its name.
    pub program: String,
    /// Where it was looked for.
    pub searched: String,
}

impl Toolchain {
    /// Takes what the system has.
    pub fn system() -> Self {
        Self {
            directories: SYSTEM.map(PathBuf::from).to_vec(),
            roots: Vec::new(),
        }
    }

    /// Finds each of `programs` as the operator's environment would, and the toolchain behind it.
    pub async fn find(programs: &[&str], environment: &[(OsString, OsString)]) -> Result<Self, Missing> {
        let path = environment
            .iter()
            .find(|(key, _)| key == "PATH")
            .map(|(_, value)| value.clone());
        let mut searched: Vec<PathBuf> = path.iter().flat_map(std::env::split_paths).collect();
        searched.extend(SYSTEM.map(PathBuf::from));
        searched.retain(|directory| directory.is_absolute());
        let mut found = Self {
            directories: Vec::new(),
            roots: Vec::new(),
        };
        for program in programs {
            let home = home_of(program, &searched, environment)
                .await
                .ok_or_else(|| Missing {
                    program: (*program).to_owned(),
                    searched: joined(&searched).to_string_lossy().into_owned(),
                })?;
            found.add_root(&home);
            found.add(home.programs);
        }
        for directory in SYSTEM {
            found.add(directory.into());
        }
        Ok(found)
    }

    /// The value of PATH.
    pub(crate) fn path(&self) -> OsString {
        joined(&self.directories)
    }

    /// What a sandbox shows read-only besides `/usr`.
    pub(crate) fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    fn add_root(&mut self, home: &Home) {
        if !home.root.starts_with("/usr") && !self.roots.contains(&home.root) {
            self.roots.push(home.root.clone());
        }
    }

    fn add(&mut self, directory: PathBuf) {
        if !self.directories.contains(&directory) {
            self.directories.push(directory);
        }
    }
}

fn joined(directories: &[PathBuf]) -> OsString {
    directories
        .iter()
        .map(|directory| directory.as_os_str())
        .collect::<Vec<_>>()
        .join(OsStr::new(":"))
}

/// Where a program is, and what it needs around it.
struct Home {
    programs: PathBuf,
    root: PathBuf,
}

/// Finds the directory where `program` works without any variable but PATH.
async fn home_of(program: &str, searched: &[PathBuf], environment: &[(OsString, OsString)]) -> Option<Home> {
    let first = searched
        .iter()
        .find(|directory| is_program(&directory.join(program)))?;
    let told = match program {
        "cargo" | "rustc" => ask("rustc", &["--print", "sysroot"], environment)
            .await
            .map(|root| root.join("bin")),
        "python3" => directory_of(
            ask(
                "python3",
                &["-c", "import sys; print(sys.executable)"],
                environment,
            )
            .await,
        ),
        "node" => directory_of(ask("node", &["-p", "process.execPath"], environment).await),
        "go" => ask("go", &["env", "GOROOT"], environment)
            .await
            .map(|root| root.join("bin")),
        _ => None,
    };
    let told = told.filter(|directory| is_program(&directory.join(program)));
    let programs = told.clone().unwrap_or_else(|| first.clone());
    // A toolchain that told where it lives needs what is beside its programs; of another only they are shown.
    let root = told.and_then(|directory| Some(directory.parent()?.to_owned()));
    let root = root.filter(|root| !is_home(root, environment));
    let root = root.unwrap_or_else(|| programs.clone());
    Some(Home { programs, root })
}

/// Whether a directory is, or holds, somebody's home: that is never shown for the sake of a program in it.
fn is_home(directory: &Path, environment: &[(OsString, OsString)]) -> bool {
    let home = environment.iter().find(|(key, _)| key == "HOME");
    let holds_home = home.is_some_and(|(_, home)| Path::new(home).starts_with(directory));
    holds_home || directory.components().count() < 3
}

fn directory_of(program: Option<PathBuf>) -> Option<PathBuf> {
    Some(program?.parent()?.to_owned())
}

#[allow(
    clippy::disallowed_methods,
    reason = "asks the operator's own toolchain, in the operator's environment"
)]
async fn ask(program: &str, arguments: &[&str], environment: &[(OsString, OsString)]) -> Option<PathBuf> {
    let asked = tokio::process::Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(environment.iter().cloned())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let answer = tokio::time::timeout(PATIENCE, asked).await.ok()?.ok()?;
    let path = PathBuf::from(String::from_utf8(answer.stdout).ok()?.trim_end());
    (answer.status.success() && path.is_absolute()).then_some(path)
}

fn is_program(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}
