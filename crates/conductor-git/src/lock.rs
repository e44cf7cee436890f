//! Keeps two git writers out of one repository, across processes and across a crash of this one.
//!
//! The lock is a `flock` on an empty file. Writing git calls get that file as standard input (it reads as end of
//! file), so a git process that outlives a killed Conductor still holds the lock. Whoever takes the lock therefore
//! knows that every `*.lock` file in the repository is left over, and may remove it.
//!
//! This module does not know what is being written.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::error::Error;

const POLL: Duration = Duration::from_millis(15);

/// The right to write into one repository.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Lock {
    /// Takes the lock at `path` for the repository at `repository`, and clears what a killed git left behind.
    pub(crate) async fn take(path: &Path, repository: &Path, patience: Duration) -> Result<Self, Error> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(path)
            .map_err(|e| Error::io("open the lock", path, e))?;
        let attempt = async {
            loop {
                match file.try_lock() {
                    Ok(()) => return Ok(()),
                    Err(TryLockError::WouldBlock) => tokio::time::sleep(POLL).await,
                    Err(TryLockError::Error(e)) => return Err(Error::io("lock", path, e)),
                }
            }
        };
        tokio::time::timeout(patience, attempt)
            .await
            .map_err(|_| Error::Busy {
                what: repository.display().to_string(),
            })??;
        clear_leftovers(repository).map_err(|e| Error::io("clear leftovers in", repository, e))?;
        Ok(Self(file))
    }

    /// Returns the standard input that keeps the lock held while the child lives.
    pub(crate) fn as_stdin(&self) -> io::Result<Stdio> {
        Ok(Stdio::from(self.0.try_clone()?))
    }
}

fn clear_leftovers(repository: &Path) -> io::Result<()> {
    if !repository.exists() {
        return Ok(());
    }
    remove_where(repository, is_git_lock)?;
    remove_where(&repository.join("objects/pack"), |name| name.starts_with("tmp_"))?;
    remove_where(&repository.join("objects/info"), is_git_lock)?;
    let mut below: Vec<PathBuf> = vec![repository.join("refs")];
    while let Some(directory) = below.pop() {
        remove_where(&directory, is_git_lock)?;
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                below.push(entry.path());
            }
        }
    }
    Ok(())
}

/// git names a lock after the file it protects; no ref name may end like this.
fn is_git_lock(name: &str) -> bool {
    name.strip_suffix(".lock").is_some()
}

fn remove_where(directory: &Path, is_leftover: impl Fn(&str) -> bool) -> io::Result<()> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e),
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_file() && entry.file_name().to_str().is_some_and(&is_leftover) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// A git process that outlives a killed Conductor still keeps others out.
    #[tokio::test]
    #[allow(clippy::disallowed_methods, reason = "plays a git process that lives on")]
    async fn a_child_holds_the_lock_after_its_parent_let_go() {
        let place = tempfile::tempdir().unwrap();
        let (path, repository) = (place.path().join("lock"), place.path().join("repository"));
        let brief = Duration::from_millis(60);
        let lock = Lock::take(&path, &repository, brief).await.unwrap();
        let mut child = Command::new("tail")
            .args(["-f", "/dev/null"])
            .stdin(lock.as_stdin().unwrap())
            .spawn()
            .unwrap();
        drop(lock);
        assert!(matches!(
            Lock::take(&path, &repository, brief).await,
            Err(Error::Busy { .. })
        ));
        child.kill().unwrap();
        child.wait().unwrap();
        Lock::take(&path, &repository, brief).await.unwrap();
    }

    #[tokio::test]
    async fn what_a_killed_git_left_is_cleared_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let repository = place.path().join("repository");
        let (left, kept) = (
            [
                "packed-refs.lock",
                "refs/heads/a/b.lock",
                "objects/pack/tmp_pack_x",
                "objects/info/commit-graphs.lock",
            ],
            [
                "packed-refs",
                "refs/heads/a/b",
                "objects/pack/pack-1.pack",
                "objects/info/alternates",
            ],
        );
        for file in left.iter().chain(&kept) {
            let path = repository.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        Lock::take(&place.path().join("lock"), &repository, Duration::from_millis(60))
            .await
            .unwrap();
        assert!(left.iter().all(|file| !repository.join(file).exists()));
        assert!(kept.iter().all(|file| repository.join(file).exists()));
    }
}
