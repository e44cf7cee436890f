//! Tells commands where the running server is and how to speak to it: `server.json` in the data directory.
//!
//! Readable by its owner only, written whole or not at all, removed at shutdown. One that a killed server left behind is
//! recognised by its process being gone. This module does not know HTTP.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use conductor_domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::data_dir::unusable;
use crate::exit::Failure;

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerFile {
    /// Its address.
    pub(crate) url: String,
    /// The secret of every request.
    pub(crate) token: String,
    /// Its process.
    pub(crate) pid: u32,
    /// When the process began, as the kernel counts; tells it from a later process of the same number.
    pub(crate) pid_start: Option<u64>,
    /// When the server started.
    pub(crate) started_at: Timestamp,
}

/// What the file says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A server that should be there.
    Server(ServerFile),
    /// A server whose process is gone.
    Gone {
        /// Its process.
        pid: u32,
    },
    /// No server.
    Nothing,
}

impl ServerFile {
    /// Describes a server of this process.
    pub(crate) fn of_this_process(url: String, token: String, started_at: Timestamp) -> Self {
        let pid = std::process::id();
        Self {
            url,
            token,
            pid,
            pid_start: process_start(pid),
            started_at,
        }
    }

    /// Writes the file; it is removed when the guard goes.
    pub(crate) fn publish(&self, path: &Path) -> Result<Published, Failure> {
        let cannot = |error: std::io::Error| unusable(format!("writing {}", path.display()), &error);
        let parent = path.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::Builder::new()
            .permissions(std::fs::Permissions::from_mode(0o600))
            .tempfile_in(parent)
            .map_err(cannot)?;
        let json =
            serde_json::to_vec(self).map_err(|error| Failure::because("writing server.json", &error))?;
        file.write_all(&json)
            .and_then(|()| file.as_file().sync_all())
            .map_err(cannot)?;
        file.persist(path).map_err(|error| cannot(error.error))?;
        Ok(Published {
            path: path.to_owned(),
        })
    }

    /// Reads the file, and looks whether its server can still be there.
    pub(crate) fn find(path: &Path) -> Result<Found, Failure> {
        let text = match std::fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Found::Nothing),
            Err(error) => {
                return Err(Failure::coded(
                    "CDR0402",
                    format!("reading {}: {error}", path.display()),
                    "run this as the user who runs the server",
                ));
            }
        };
        let file: Self = serde_json::from_slice(&text).map_err(|error| {
            Failure::coded(
                "CDR0402",
                format!("{} cannot be understood: {error}", path.display()),
                "restart `conductor serve`; it writes the file anew",
            )
        })?;
        if is_gone(&file) {
            Ok(Found::Gone { pid: file.pid })
        } else {
            Ok(Found::Server(file))
        }
    }
}

/// Removes the file when dropped.
#[derive(Debug)]
pub(crate) struct Published {
    path: PathBuf,
}

impl Drop for Published {
    fn drop(&mut self) {
        let _best_effort = std::fs::remove_file(&self.path);
    }
}

/// Where the kernel tells nothing, the server is asked instead.
fn is_gone(file: &ServerFile) -> bool {
    file.pid_start
        .is_some_and(|start| Path::new("/proc/self/stat").exists() && process_start(file.pid) != Some(start))
}

/// When a process began, in the kernel's own ticks; one that has ended and waits to be noticed has not.
fn process_start(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything, so fields are counted after it: first the state, then 18 others.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let is_alive = fields.next().is_some_and(|state| !matches!(state, "Z" | "X"));
    fields.nth(18)?.parse().ok().filter(|_| is_alive)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn a_published_server_is_found_by_its_owner_and_gone_with_its_guard() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("server.json");
        assert_eq!(ServerFile::find(&path), Ok(Found::Nothing));
        let file = ServerFile::of_this_process("http://127.0.0.1:1".into(), "secret".into(), Timestamp(7));
        let published = file.publish(&path).expect("written");
        assert_eq!(std::fs::metadata(&path).expect("there").mode() & 0o777, 0o600);
        assert_eq!(ServerFile::find(&path), Ok(Found::Server(file)));
        drop(published);
        assert_eq!(ServerFile::find(&path), Ok(Found::Nothing));
    }

    #[test]
    fn a_file_that_a_killed_server_left_is_recognised() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("server.json");
        let mut file =
            ServerFile::of_this_process("http://127.0.0.1:1".into(), "secret".into(), Timestamp(7));
        // The same number, another process.
        file.pid_start = file.pid_start.map(|start| start + 1);
        let _published = file.publish(&path).expect("written");
        assert_eq!(ServerFile::find(&path), Ok(Found::Gone { pid: file.pid }));
        std::fs::write(&path, "{").expect("written");
        let failure = ServerFile::find(&path).expect_err("half a file");
        assert_eq!(failure.code.as_deref(), Some("CDR0402"));
    }
}
