//! Reads the environment of the process: who runs it, and where programs lie.
//!
//! The one home of environment variables besides the command line's own. This module does not know what they are used for.

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

/// The directory for data of this user, where nothing else is said.
#[allow(clippy::disallowed_methods, reason = "the one home of the environment")]
pub(crate) fn default_data_dir() -> Option<PathBuf> {
    let shared = std::env::var_os("XDG_DATA_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    shared
        .or_else(|| Some(std::env::home_dir()?.join(".local/share")))
        .map(|dir| dir.join("conductor"))
}

/// Everything, for finding toolchains as the operator would.
#[allow(clippy::disallowed_methods, reason = "the one home of the environment")]
pub(crate) fn all() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}
