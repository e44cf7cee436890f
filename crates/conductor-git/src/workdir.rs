//! Makes, replaces and gives away working directories (S-6).
//!
//! A directory is filled while it is still the host's, gets a throw-away `.git` so that the agent's `git status`,
//! `diff` and `log` work, and is then renamed into place. After that no host git call ever names it; the only
//! reader is a snapshot. What the agent does to that `.git` changes nothing outside.
//!
//! This module does not know whether the content of a directory was saved; its callers do.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use conductor_domain::id::{CommitId, RunId};
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};

use crate::call::Git;
use crate::error::Error;
use crate::fill::fill;
use crate::layout::{Layout, make_temporary, sync_directory};
use crate::run_repo::{RunRepo, alternate, branch_ref};

/// Object directories as the agent will see them; in a sandbox these are the paths inside.
#[derive(Debug, Clone)]
pub struct VisibleObjects {
    /// The objects of the base, readable only.
    pub base: PathBuf,
    /// The objects of the run, readable only.
    pub run: PathBuf,
}

/// A filled directory that nobody has seen yet.
#[derive(Debug)]
pub(crate) struct Fresh {
    holder: tempfile::TempDir,
}

impl Fresh {
    /// Fills a directory with `commit` and gives it its `.git`.
    pub(crate) async fn make(
        git: &Git,
        layout: &Layout,
        repo: &RunRepo,
        commit: &CommitId,
        visible: &VisibleObjects,
    ) -> Result<Self, Error> {
        repo.require(git, commit).await?;
        let fresh = Self {
            holder: make_temporary(layout.staging(), "workdir-")?,
        };
        let tree = fresh.path();
        fs::create_dir(&tree).map_err(|e| Error::io("make", &tree, e))?;
        let index = fresh.holder.path().join("index");
        fill(git, repo.path(), commit, &tree, &index).await?;
        add_git_directory(&tree, &index, repo.run(), commit, visible)
            .map_err(|e| Error::io("make the throw-away repository in", &tree, e))?;
        Ok(fresh)
    }

    fn path(&self) -> PathBuf {
        self.holder.path().join("tree")
    }

    /// Puts the directory in place; what stood there before, if anything, is returned for removal.
    ///
    /// Atomic: at every moment the place holds the whole old or the whole new directory.
    pub(crate) fn install(self, place: &Path) -> Result<Option<Retired>, Error> {
        let failed = |e: nix::Error| Error::io("put the working directory in place at", place, e.into());
        match renameat2(
            AT_FDCWD,
            &self.path(),
            AT_FDCWD,
            place,
            RenameFlags::RENAME_NOREPLACE,
        ) {
            Ok(()) => {
                sync_directory(place.parent().unwrap_or(place))?;
                Ok(None)
            }
            Err(nix::Error::EEXIST) => {
                renameat2(
                    AT_FDCWD,
                    &self.path(),
                    AT_FDCWD,
                    place,
                    RenameFlags::RENAME_EXCHANGE,
                )
                .map_err(failed)?;
                sync_directory(place.parent().unwrap_or(place))?;
                let path = self.path();
                Ok(Some(Retired {
                    path,
                    _holder: Some(self.holder),
                }))
            }
            Err(e) => Err(failed(e)),
        }
    }
}

/// A directory that was taken out of its place, after its content was saved.
#[derive(Debug)]
pub(crate) struct Retired {
    path: PathBuf,
    _holder: Option<tempfile::TempDir>,
}

impl Retired {
    /// Takes the directory at `place` out of it; `None` when nothing is there.
    pub(crate) fn take(layout: &Layout, place: &Path) -> Result<Option<Self>, Error> {
        let holder = make_temporary(&layout.trash(), "workdir-")?;
        let path = holder.path().join("tree");
        match fs::rename(place, &path) {
            Ok(()) => Ok(Some(Self {
                path,
                _holder: Some(holder),
            })),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::io("move to the trash", place, e)),
        }
    }

    /// Removes the directory; follows no link out of it.
    pub(crate) async fn remove(self) -> Result<(), Error> {
        let path = self.path.clone();
        let removed = tokio::task::spawn_blocking(move || remove_tree(&path)).await;
        let removed = removed.unwrap_or_else(|e| Err(io::Error::other(e)));
        removed.map_err(|e| Error::io("remove", &self.path, e))
    }
}

pub(crate) fn remove_tree(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            open_up(path)?;
            fs::remove_dir_all(path)
        }
        other => other,
    }
}

/// Makes directories that an agent closed to us removable again.
fn open_up(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}

fn add_git_directory(
    tree: &Path,
    index: &Path,
    run: &RunId,
    commit: &CommitId,
    visible: &VisibleObjects,
) -> io::Result<()> {
    let git = tree.join(".git");
    let branch = branch_ref(run);
    let branch_file = git.join(&branch);
    fs::create_dir_all(git.join("objects/info"))?;
    fs::create_dir_all(git.join("objects/pack"))?;
    fs::create_dir_all(branch_file.parent().unwrap_or(&git))?;
    fs::write(git.join("HEAD"), format!("ref: {branch}\n"))?;
    fs::write(branch_file, format!("{commit}\n"))?;
    let list = [
        alternate(&visible.base),
        b"\n".to_vec(),
        alternate(&visible.run),
        b"\n".to_vec(),
    ];
    fs::write(git.join("objects/info/alternates"), list.concat())?;
    let (version, format) = match commit.as_str().len() {
        64 => (1, "[extensions]\n\tobjectFormat = sha256\n"),
        _ => (0, ""),
    };
    let config = format!(
        "[core]\n\trepositoryFormatVersion = {version}\n\tbare = false\n\tlogAllRefUpdates = true\n{format}\
         [gc]\n\tauto = 0\n[user]\n\tname = Agent\n\temail = agent@localhost\n"
    );
    fs::write(git.join("config"), config)?;
    fs::rename(index, git.join("index"))
}
