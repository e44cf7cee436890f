//! Reads the environment of the process: who runs it, and where programs lie.
//!
//! The one home of environment variables. This module does not know what they are used for.

use std::ffi::OsString;
use std::path::PathBuf;

use conductor_domain::id::OperatorName;

/// The name under which the operator stands in the audit.
#[allow(clippy::disallowed_methods, reason = "the one home of the environment")]
pub(crate) fn operator() -> OperatorName {
    let name = ["USER", "LOGNAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok())
        .unwrap_or_default();
    OperatorName::parse(name)
        .unwrap_or_else(|_| OperatorName::parse("operator").expect("a plain word is an operator name"))
}

/// The directory for data: the one that the environment names, else the one of this user.
#[allow(clippy::disallowed_methods, reason = "the one home of the environment")]
pub(crate) fn default_data_dir() -> Option<PathBuf> {
    // Read here and not by the command line's parser, which would print it in every usage line.
    if let Some(named) = std::env::var_os("CONDUCTOR_DATA_DIR").filter(|path| !path.is_empty()) {
        return Some(named.into());
    }
    let shared = std::env::var_os("XDG_DATA_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    shared
        .or_else(|| Some(std::env::home_dir()?.join(".local/share")))
        .map(|dir| dir.join("conductor"))
}

/// A guest to use instead of the embedded one.
#[allow(clippy::disallowed_methods, reason = "the one home of the environment")]
pub(crate) fn guest() -> Option<PathBuf> {
    std::env::var_os("CONDUCTOR_GUEST").map(PathBuf::from)
}

/// What the client of a container engine needs of it; nothing of this reaches a container.
#[allow(clippy::disallowed_methods, reason = "the one home of the environment")]
pub(crate) fn engine() -> Vec<(OsString, OsString)> {
    ["HOME", "DOCKER_HOST", "XDG_RUNTIME_DIR"]
        .into_iter()
        .filter_map(|name| Some((name.into(), std::env::var_os(name)?)))
        .collect()
}

/// Everything, for finding toolchains as the operator would.
#[allow(clippy::disallowed_methods, reason = "the one home of the environment")]
pub(crate) fn all() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

/// The home directory: `HOME`, else what Windows calls it.
#[allow(clippy::disallowed_methods, reason = "the one home of the environment")]
pub(crate) fn home() -> Option<PathBuf> {
    ["HOME", "USERPROFILE"]
        .iter()
        .filter_map(std::env::var_os)
        .map(PathBuf::from)
        .find(|path| path.is_absolute())
}
