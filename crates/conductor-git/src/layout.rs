//! Says where everything lies in the data directory, and makes it readable by its owner only (ENV-1).
//!
//! Everything here but `worktrees/run-*` is written by Conductor alone.
//! This module does not know what the directories hold.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conductor_domain::digest::Digest;
use conductor_domain::id::RunId;

use crate::error::Error;

const OWNER_ONLY: u32 = 0o700;

/// The file whose lock says that a corner of `staging` is in use.
const IN_USE: &str = "in-use";

/// The places of the data directory that belong to git.
#[derive(Debug, Clone)]
pub struct Layout {
    root: PathBuf,
    staging: Arc<Staging>,
}

/// This process's own corner of `staging`, locked for as long as the process lives.
#[derive(Debug)]
struct Staging {
    directory: PathBuf,
    _lock: fs::File,
}

impl Layout {
    /// Makes what is missing below `root`.
    pub fn open(root: &Path) -> Result<Self, Error> {
        make_private(root)?;
        let root = root.canonicalize().map_err(|e| Error::io("resolve", root, e))?;
        for name in [
            "repos",
            "runs",
            "worktrees",
            "staging",
            "trash",
            "quarantine",
            "locks",
        ] {
            make_private(&root.join(name))?;
        }
        let staging = Arc::new(claim_staging(&root.join("staging"))?);
        Ok(Self { root, staging })
    }

    /// The cached base clone of the repository with this key (`host/owner/name`).
    pub(crate) fn base(&self, key: &str) -> PathBuf {
        self.root.join("repos").join(key)
    }

    pub(crate) fn base_lock(&self, key: &str) -> PathBuf {
        self.root
            .join("locks")
            .join(format!("base-{}", Digest::of(key.as_bytes()).short()))
    }

    /// Everything of one run that is no working directory.
    pub(crate) fn run(&self, run: &RunId) -> PathBuf {
        self.root.join("runs").join(run.as_str())
    }

    /// The bare repository of one run (S-5).
    pub(crate) fn run_repository(&self, run: &RunId) -> PathBuf {
        self.run(run).join("run.git")
    }

    pub(crate) fn run_lock(&self, run: &RunId) -> PathBuf {
        self.root.join("locks").join(format!("run-{run}"))
    }

    /// The parent of all working directories; the only place below which agents write.
    pub(crate) fn worktrees(&self) -> PathBuf {
        self.root.join("worktrees")
    }

    /// The working directory of one run.
    pub fn workdir(&self, run: &RunId) -> PathBuf {
        self.worktrees().join(format!("run-{run}"))
    }

    /// Where directories are prepared before they get their name. What a crash leaves here was either never
    /// handed over, or had its content saved before it came here; both may go.
    pub(crate) fn staging(&self) -> &Path {
        &self.staging.directory
    }

    /// Where directories wait for their removal, after their content was saved.
    pub(crate) fn trash(&self) -> PathBuf {
        self.root.join("trash")
    }

    /// Where directories are put for a person to look at, unknown ones and those that could not be saved; nothing
    /// here is ever removed but by that person.
    pub(crate) fn quarantine(&self) -> PathBuf {
        self.root.join("quarantine")
    }
}

/// Takes a corner of its own, and removes the corners of processes that ended without doing so.
fn claim_staging(parent: &Path) -> Result<Staging, Error> {
    let claim = || -> io::Result<Staging> {
        for entry in fs::read_dir(parent)? {
            let abandoned = entry?.path();
            let Ok(lock) = fs::File::open(abandoned.join(IN_USE)) else {
                continue;
            };
            if lock.try_lock().is_ok() {
                fs::remove_dir_all(&abandoned)?;
            }
        }
        // The lock is taken before the corner gets its name, so that nobody finds it unlocked.
        let fresh = tempfile::Builder::new().prefix(".claim-").tempdir_in(parent)?;
        let lock = fs::File::create_new(fresh.path().join(IN_USE))?;
        lock.lock()?;
        let hidden = fresh.keep();
        let name = hidden
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .replace(".claim-", "process-");
        let directory = parent.join(name);
        fs::rename(&hidden, &directory)?;
        Ok(Staging {
            directory,
            _lock: lock,
        })
    };
    claim().map_err(|e| Error::io("claim a corner of", parent, e))
}

/// Makes a directory and its missing parents, readable by the owner only.
pub(crate) fn make_private(path: &Path) -> Result<(), Error> {
    DirBuilder::new()
        .recursive(true)
        .mode(OWNER_ONLY)
        .create(path)
        .map_err(|e| Error::io("make the directory", path, e))?;
    fs::set_permissions(path, fs::Permissions::from_mode(OWNER_ONLY))
        .map_err(|e| Error::io("protect the directory", path, e))
}

/// Makes a fresh directory with an unused name, readable by the owner only; it is removed when dropped.
pub(crate) fn make_temporary(parent: &Path, prefix: &str) -> Result<tempfile::TempDir, Error> {
    tempfile::Builder::new()
        .prefix(prefix)
        .permissions(fs::Permissions::from_mode(OWNER_ONLY))
        .tempdir_in(parent)
        .map_err(|e| Error::io("make a temporary directory in", parent, e))
}

/// Makes renames in `directory` survive a power cut.
pub(crate) fn sync_directory(directory: &Path) -> Result<(), Error> {
    let sync = || -> io::Result<()> { fs::File::open(directory)?.sync_all() };
    sync().map_err(|e| Error::io("sync", directory, e))
}

/// Tells whether anything stands at `path`, without following a link.
pub(crate) fn is_there(path: &Path) -> Result<bool, Error> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(Error::io("look at", path, e)),
    }
}
