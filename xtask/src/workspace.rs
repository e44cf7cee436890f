//! Says where things lie: the repository's root, the target directory, the tools that `setup` put there.
//!
//! The one place of `xtask` that reads the environment. It does not know what anybody does with a path.
#![allow(
    clippy::disallowed_methods,
    reason = "this is xtask's one home for the environment"
)]

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Returns the repository's root directory.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the manifest lies in xtask/, below the root")
}

/// Returns the directory that cargo builds into.
pub(crate) fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// Returns the directory of one tool that `setup` or `long` installs for this repository only.
pub(crate) fn tool(name: &str) -> PathBuf {
    target().join("tools").join(name)
}

/// Returns the cargo that started this program, so that nested calls use the same toolchain.
pub(crate) fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Returns the value of `PATH` with `first` in front.
pub(crate) fn path_with(first: &Path) -> OsString {
    let rest = env::var_os("PATH").unwrap_or_default();
    let mut dirs = vec![first.to_owned()];
    dirs.extend(env::split_paths(&rest));
    env::join_paths(dirs).unwrap_or(rest)
}

/// Returns what a developer says in the environment.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    env::var_os(name)
}

/// Finds a program on `PATH` or in the directories where Debian keeps what only root runs.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|dir| dir.join(program))
        .find(|candidate| candidate.is_file())
}

/// Names the variables that `cargo run` sets for this program and that a nested cargo must not inherit: build scripts
/// and `env!` would see them change and rebuild what a plain `cargo build` had built.
pub(crate) fn cargo_run_variables() -> Vec<OsString> {
    env::vars_os()
        .map(|(name, _)| name)
        .filter(|name| {
            let name = name.to_string_lossy();
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
        })
        .collect()
}
