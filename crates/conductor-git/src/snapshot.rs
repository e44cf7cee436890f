//! Turns an agent-writable working directory into a tree id and a pack of new objects (S-7).
//!
//! This is the one place where a git process reads what an agent wrote, so it stands behind [`Snapshotter`]: what
//! it returns is hostile input for `import`, whoever made it. [`ProcessSnapshotter`] runs it as plain processes;
//! the executors put the same steps into a sandbox. Before either, the agent's processes have ended.
//!
//! Ignored files are not part of a snapshot: they are what the repository calls reproducible.
//! This module does not know what becomes of the tree.

use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

use crate::base::{ObjectFormat, init_bare};
use crate::call::{Git, Place, Streaming};
use crate::error::Error;
use crate::layout::make_temporary;
use crate::object::ObjectId;
use crate::run_repo::alternate;

pub(crate) mod nested;

/// Makes snapshots of working directories.
///
/// Threading: calls for different directories may overlap; for one directory they may not. If repeated: reads
/// the directory again; nothing is left behind by an earlier call.
#[async_trait::async_trait]
pub trait Snapshotter: std::fmt::Debug + Send + Sync {
    /// Reads the directory whole; a file or directory that cannot be read is an error, never left out.
    async fn snapshot(&self, request: &Request) -> Result<Snapshot, Error>;
}

/// What a snapshot is made from.
#[derive(Debug, Clone)]
pub struct Request {
    /// The agent-writable directory; read only.
    pub workdir: PathBuf,
    /// Object directories of the base and of the run; read only.
    pub objects: Vec<PathBuf>,
    /// The tree that the directory was filled from.
    pub parent: ObjectId,
    /// What the snapshot is for.
    pub purpose: Purpose,
}

/// What a snapshot is for; the two differ only below the directory of a submodule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To be proposed: a submodule stays the link that it is.
    Commit,
    /// To be kept: files inside a submodule's directory are kept as files.
    Save,
}

/// What a snapshot claims; nothing of it is believed before `import` has checked it.
pub struct Snapshot {
    /// The claimed id of the tree.
    pub tree: String,
    /// The claimed pack of all objects that the given object directories lack.
    pub pack: Box<dyn AsyncRead + Send + Unpin>,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot")
            .field("tree", &self.tree)
            .finish_non_exhaustive()
    }
}

/// Makes snapshots with plain git processes and a throw-away git directory.
///
/// The git directory holds no configuration of the agent, and directories with a `.git` of their own are kept
/// away from git, so nothing that an agent wrote is run. It does not bound the disk space used while reading, and
/// it follows the tree as it is: both are the sandbox's to add.
#[derive(Debug, Clone)]
pub struct ProcessSnapshotter {
    git: Git,
    scratch: PathBuf,
}

impl ProcessSnapshotter {
    /// Uses `scratch`, a private directory, for throw-away git directories.
    pub fn new(git: Git, scratch: &Path) -> Self {
        Self {
            git,
            scratch: scratch.to_owned(),
        }
    }
}

#[async_trait::async_trait]
impl Snapshotter for ProcessSnapshotter {
    async fn snapshot(&self, request: &Request) -> Result<Snapshot, Error> {
        let fail = |detail: String| Error::SnapshotFailed {
            workdir: request.workdir.clone(),
            detail,
        };
        let kind = std::fs::symlink_metadata(&request.workdir).map_err(|e| fail(e.to_string()))?;
        if !kind.is_dir() {
            return Err(fail("it is not a directory".to_owned()));
        }
        let scratch = make_temporary(&self.scratch, "snapshot-")?;
        let repository = scratch.path().join("git");
        self.prepare(&repository, request).await?;
        let place = Place::Snapshot {
            repository: &repository,
            tree: &request.workdir,
        };

        let apart = nested::find(&self.git, place, request).await?;
        let mut add = self.git.call(place, "add").args(["-A", "--", ":(top)"]);
        for directory in &apart.directories {
            add = add.arg(pathspec_without(directory));
        }
        let finished = add.finish().await?;
        if !finished.status.success() || has_complaint(&finished.stderr) {
            return Err(fail(finished.stderr));
        }
        if !apart.files.is_empty() {
            let update = self
                .git
                .call(place, "update-index")
                .args(["--add", "--replace", "-z", "--stdin"]);
            let finished = update.input(zero_terminated(&apart.files)).finish().await?;
            if !finished.status.success() || has_complaint(&finished.stderr) {
                return Err(fail(finished.stderr));
            }
        }

        let tree = self.git.call(place, "write-tree").text().await?.trim().to_owned();
        let pack = self
            .git
            .call(Place::Repository(&repository), "pack-objects")
            .args(["--quiet", "--revs", "--local", "--stdout"])
            .input(format!("{tree}\n^{}\n", request.parent))
            .stream_out()?;
        Ok(Snapshot {
            tree,
            pack: Box::new(Pack {
                stream: pack,
                _scratch: scratch,
            }),
        })
    }
}

impl ProcessSnapshotter {
    async fn prepare(&self, repository: &Path, request: &Request) -> Result<(), Error> {
        let format = if request.parent.as_str().len() == 64 {
            ObjectFormat::Sha256
        } else {
            ObjectFormat::Sha1
        };
        init_bare(&self.git, repository, format).await?;
        let list = repository.join("objects/info/alternates");
        let mut entries = Vec::new();
        for objects in &request.objects {
            entries.extend(alternate(objects));
            entries.push(b'\n');
        }
        std::fs::create_dir_all(repository.join("objects/info"))
            .and_then(|()| std::fs::write(&list, entries))
            .map_err(|e| Error::io("write", &list, e))?;
        let read = self.git.call(Place::Repository(repository), "read-tree");
        read.arg(request.parent.as_str()).bytes().await.map(drop)
    }
}

/// Tells whether git said that something was left out.
///
/// A directory that it cannot read is skipped with a warning only, and the exit status of a success; for us that
/// would be lost work. So every word counts, but for those about settings that are not followed.
fn has_complaint(stderr: &str) -> bool {
    stderr.lines().any(|line| {
        let unfollowed = line.starts_with("warning: unable to access '") && line.ends_with("symbolic links");
        let misspelt = line.contains(" is not a valid attribute name: ")
            || line.contains("Negative patterns are ignored");
        !unfollowed && !misspelt && !line.trim().is_empty()
    })
}

fn pathspec_without(directory: &Path) -> std::ffi::OsString {
    let mut pathspec = b":(top,exclude,literal)".to_vec();
    pathspec.extend_from_slice(directory.as_os_str().as_bytes());
    std::ffi::OsString::from_vec(pathspec)
}

fn zero_terminated(paths: &[PathBuf]) -> Vec<u8> {
    let mut list = Vec::new();
    for path in paths {
        list.extend_from_slice(path.as_os_str().as_bytes());
        list.push(0);
    }
    list
}

/// The stream of a pack, and the git directory that it is made from.
struct Pack {
    stream: Streaming,
    _scratch: tempfile::TempDir,
}

impl AsyncRead for Pack {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

#[cfg(test)]
mod tests {
    use super::has_complaint;

    /// BEY-8.
    #[test]
    fn a_warning_about_something_left_out_is_a_complaint() {
        for (said, expected) in [
            ("", false),
            (
                "warning: unable to access '.gitignore': Too many levels of symbolic links\n",
                false,
            ),
            ("a b is not a valid attribute name: .gitattributes:1\n", false),
            (
                "warning: could not open directory 'x/': Permission denied\n",
                true,
            ),
            (
                "warning: could not open directory 'a\nwarning: unable to access 'x': symbolic links",
                true,
            ),
            ("error: open(\"x\"): Permission denied\n", true),
            ("something new\n", true),
        ] {
            assert_eq!(has_complaint(said), expected, "{said:?}");
        }
    }
}
