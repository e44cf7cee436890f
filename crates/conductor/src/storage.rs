//! The storage: where clones and working directories are, shared by all servers of one database.
//!
//! A run's work stays where it is when another process takes the run over, so all of them must mean the same place: it
//! bears a mark, and the database remembers which. This module does not know what lies in it.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::clock::mint_secret;
use crate::exit::Failure;

/// A storage directory.
#[derive(Debug, Clone)]
pub(crate) struct Storage(PathBuf);

impl Storage {
    /// Names a storage directory.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Where commands without a sandbox get their private directories.
    pub(crate) fn sandboxes(&self) -> PathBuf {
        self.0.join("sandboxes")
    }

    /// Where the local executor keeps what its sandboxes need.
    pub(crate) fn local_executor(&self) -> PathBuf {
        self.0.join("executor")
    }

    /// Where the sandboxes that read worktrees keep what they need.
    pub(crate) fn reader(&self) -> PathBuf {
        self.0.join("reader")
    }

    /// Where the docker executor keeps its guest and the records of its containers.
    pub(crate) fn docker_executor(&self) -> PathBuf {
        self.0.join("containers")
    }

    /// The storage's mark, made where there is none.
    pub(crate) fn mark(&self) -> Result<String, Failure> {
        kept_word(&self.0.join("storage.id"))
    }
}

/// Reads the word in a file; makes one, once and for all, where there is none. Several processes may do it at once.
pub(crate) fn kept_word(path: &Path) -> Result<String, Failure> {
    let cannot = |error: std::io::Error| Failure::because(format!("keeping {}", path.display()), &error);
    if !path.exists() {
        let parent = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(parent).map_err(cannot)?;
        let mut file = tempfile::NamedTempFile::new_in(parent).map_err(cannot)?;
        file.write_all(&mint_secret().as_bytes()[..16])
            .and_then(|()| file.as_file().sync_all())
            .map_err(cannot)?;
        match file.persist_noclobber(path) {
            Ok(_) => {}
            Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(cannot(error.error)),
        }
    }
    let word = std::fs::read_to_string(path).map_err(cannot)?;
    let word = word.trim();
    if word.is_empty() || !word.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(Failure::new(format!("{} holds no mark", path.display())));
    }
    Ok(word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_made_once_and_differs_from_place_to_place() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let storage = Storage::new(dir.path().join("a"));
        let mark = storage.mark().expect("made");
        assert_eq!(storage.mark().expect("read"), mark);
        assert_ne!(Storage::new(dir.path().join("b")).mark().expect("made"), mark);
        std::fs::write(dir.path().join("a/storage.id"), "no mark\n").expect("written");
        assert!(storage.mark().is_err());
    }
}
