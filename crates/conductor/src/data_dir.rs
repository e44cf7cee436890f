//! The data directory: private to its owner, used by one server at a time.
//!
//! This module does not know what the files hold.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::exit::{Exit, Failure};

const OWNER_ONLY: u32 = 0o700;

/// A data directory; it need not exist.
#[derive(Debug, Clone)]
pub(crate) struct DataDir(PathBuf);

/// Proof that no other server or rebuild uses the directory; given back when dropped or when the process dies.
#[derive(Debug)]
pub(crate) struct Claim {
    _lock: File,
}

impl DataDir {
    /// Names a data directory.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The database.
    pub(crate) fn database(&self) -> PathBuf {
        self.0.join("conductor.db")
    }

    /// Where the running server can be found.
    pub(crate) fn server_file(&self) -> PathBuf {
        self.0.join("server.json")
    }

    /// Where the sandboxes of this server knock; nobody else may look into it.
    pub(crate) fn doors(&self) -> PathBuf {
        self.0.join("doors")
    }

    /// Settings of `serve`.
    pub(crate) fn settings_file(&self) -> PathBuf {
        self.0.join("conductor.toml")
    }

    /// The name of the server that uses it, among all of one database: what it left when it died is known by it.
    pub(crate) fn worker(&self) -> Result<String, Failure> {
        crate::storage::kept_word(&self.0.join("worker.id")).map(|word| format!("w-{word}"))
    }

    /// The working directories of runs.
    pub(crate) fn worktrees(&self) -> PathBuf {
        self.0.join("worktrees")
    }

    /// Makes it, readable by its owner only; one that others can read is made private.
    pub(crate) fn create(&self) -> Result<(), Failure> {
        let cannot =
            |error: io::Error| unusable(format!("making the data directory {}", self.0.display()), &error);
        DirBuilder::new()
            .recursive(true)
            .mode(OWNER_ONLY)
            .create(&self.0)
            .map_err(cannot)?;
        let owner = fs::metadata(&self.0).map_err(cannot)?.uid();
        if owner != nix::unistd::geteuid().as_raw() {
            return Err(Failure::coded(
                "CDR0409",
                format!("the data directory {} belongs to another user", self.0.display()),
                "name a directory of your own with --data-dir",
            ));
        }
        fs::set_permissions(&self.0, fs::Permissions::from_mode(OWNER_ONLY)).map_err(cannot)
    }

    /// Claims it for this process.
    pub(crate) fn claim(&self) -> Result<Claim, Failure> {
        let path = self.0.join("server.lock");
        let cannot = |error: io::Error| {
            unusable(
                format!("locking the data directory with {}", path.display()),
                &error,
            )
        };
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(cannot)?;
        match lock.try_lock() {
            Ok(()) => Ok(Claim { _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(Failure::coded(
                "CDR0403",
                format!("another Conductor uses the data directory {}", self.0.display()),
                "stop it first, or name another directory with --data-dir",
            )
            .exiting(Exit::Refused)),
            Err(TryLockError::Error(error)) => Err(cannot(error)),
        }
    }
}

/// Says that the file system did not do what the data directory needs, and what a person can do about it.
pub(crate) fn unusable(attempted: impl std::fmt::Display, error: &io::Error) -> Failure {
    let is_full = matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    );
    let hint = if is_full {
        "make room on the disk that holds the data directory, then try again"
    } else {
        "name another directory with --data-dir, or look at the permissions of this one and its parents"
    };
    Failure::coded("CDR0409", format!("{attempted}: {error}"), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_directory_is_private_and_used_by_one_at_a_time() {
        let parent = tempfile::tempdir().expect("a temporary directory");
        let dir = DataDir::new(parent.path().join("a/b"));
        dir.create().expect("made");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("opened to others");
        dir.create().expect("made again");
        assert_eq!(
            fs::metadata(dir.path()).expect("there").mode() & 0o777,
            OWNER_ONLY
        );
        let claim = dir.claim().expect("free");
        let refused = dir.claim().expect_err("taken");
        assert_eq!(
            (refused.exit, refused.code.as_deref()),
            (Exit::Refused, Some("CDR0403"))
        );
        drop(claim);
        dir.claim().expect("free again");
    }
}
