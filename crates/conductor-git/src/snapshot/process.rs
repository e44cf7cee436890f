//! Takes the steps of a snapshot in plain processes on the host, for the demo and for tests without a sandbox.
//!
//! The git directory holds no configuration of the agent, and directories with a `.git` of their own are kept
//! away from git, so nothing that an agent wrote is run. It does not bound the disk space used while reading, and
//! it follows the tree as it is: both are the sandbox's to add. This module does not know the steps.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};

use async_trait::async_trait;
use tokio::io::{AsyncRead, ReadBuf};

use super::room::{OPENED_BY_NAME, Room, Survey};
use super::{Request, Snapshot, Snapshotter, steps};
use crate::base::{ObjectFormat, init_bare};
use crate::call::{Finished, Git, Place, Streaming};
use crate::error::Error;
use crate::layout::make_temporary;
use crate::run_repo::alternates;

/// Makes snapshots with plain git processes and a throw-away git directory.
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

#[async_trait]
impl Snapshotter for ProcessSnapshotter {
    async fn snapshot(&self, request: &Request) -> Result<Snapshot, Error> {
        let fail = |detail: String| Error::SnapshotFailed {
            workdir: request.workdir.clone(),
            detail,
        };
        let kind = fs::symlink_metadata(&request.workdir).map_err(|e| fail(e.to_string()))?;
        if !kind.is_dir() {
            return Err(fail("it is not a directory".to_owned()));
        }
        let room = Processes {
            git: self.git.clone(),
            workdir: request.workdir.clone(),
            scratch: make_temporary(&self.scratch, "snapshot-")?,
        };
        let repository = room.repository();
        init_bare(&self.git, &repository, ObjectFormat::of_object(&request.parent)).await?;
        let list = repository.join("objects/info/alternates");
        fs::create_dir_all(repository.join("objects/info"))
            .and_then(|()| fs::write(&list, alternates(&request.objects)))
            .map_err(|e| Error::io("write", &list, e))?;
        steps::take(Box::new(room), request).await
    }
}

struct Processes {
    git: Git,
    workdir: PathBuf,
    scratch: tempfile::TempDir,
}

impl Processes {
    fn repository(&self) -> PathBuf {
        self.scratch.path().join("git")
    }
}

#[async_trait]
impl Room for Processes {
    async fn git(&self, verb: &str, args: &[&str], input: Vec<u8>) -> Result<Finished, Error> {
        let repository = self.repository();
        let place = Place::Snapshot {
            repository: &repository,
            tree: &self.workdir,
        };
        self.git.call(place, verb).args(args).input(input).finish().await
    }

    async fn survey(&self, links: &[PathBuf]) -> Result<Survey, Error> {
        let (root, links) = (self.workdir.clone(), links.to_vec());
        self.blocking(move || {
            let mut survey = Survey::default();
            look(&root, Path::new(""), &links, &mut survey);
            survey
        })
        .await
    }

    async fn files(&self, below: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
        let (root, below) = (self.workdir.clone(), below.to_vec());
        self.blocking(move || {
            let mut files = Vec::new();
            for directory in below {
                list(&root, &directory, &mut files);
            }
            files
        })
        .await
    }

    async fn pack(self: Box<Self>, tree: String, args: &[&str], input: Vec<u8>) -> Result<Snapshot, Error> {
        let repository = self.repository();
        let call = self.git.call(Place::Repository(&repository), "pack-objects");
        let stream = call.args(args).input(input).stream_out()?;
        Ok(Snapshot {
            tree,
            pack: Box::new(Pack {
                stream,
                _scratch: self.scratch,
            }),
        })
    }
}

impl Processes {
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        tokio::task::spawn_blocking(work)
            .await
            .map_err(|e| Error::SnapshotFailed {
                workdir: self.workdir.clone(),
                detail: e.to_string(),
            })
    }
}

/// One that cannot be listed is left to git, which complains about it unless it is ignored.
fn look(root: &Path, directory: &Path, links: &[PathBuf], survey: &mut Survey) {
    let is_top = directory.as_os_str().is_empty();
    for (name, kind) in entries(&root.join(directory)) {
        let path = directory.join(&name);
        if is_git_directory(&name) {
            if !is_top {
                survey.repositories.push(directory.to_owned());
            }
        } else if kind.is_dir() {
            if links.contains(&path) && !entries(&root.join(&path)).is_empty() {
                survey.filled.push(path.clone());
            }
            look(root, &path, links, survey);
        } else if is_opened_by_name(&name) && !kind.is_file() && !kind.is_symlink() {
            let is_waited_for =
                kind.is_fifo() || kind.is_socket() || kind.is_char_device() || kind.is_block_device();
            if is_waited_for {
                survey.waiting.push(path);
            }
        }
    }
}

fn list(root: &Path, directory: &Path, files: &mut Vec<PathBuf>) {
    for (name, kind) in entries(&root.join(directory)) {
        let path = directory.join(&name);
        if is_git_directory(&name) {
            continue;
        }
        if kind.is_dir() {
            list(root, &path, files);
        } else if kind.is_file() || kind.is_symlink() {
            files.push(path);
        }
    }
}

fn entries(directory: &Path) -> Vec<(std::ffi::OsString, fs::FileType)> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| Some((entry.file_name(), entry.file_type().ok()?)))
        .collect()
}

fn is_git_directory(name: &std::ffi::OsStr) -> bool {
    name.as_bytes().eq_ignore_ascii_case(b".git")
}

fn is_opened_by_name(name: &std::ffi::OsStr) -> bool {
    OPENED_BY_NAME.iter().any(|known| name == *known)
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
