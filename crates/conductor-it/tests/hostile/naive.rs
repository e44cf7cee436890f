//! The protection switched off: reads a worktree with git on the host, in the worktree, with whatever stands in its `.git`.
//!
//! [`Naive`] does what somebody would do who trusts `git status`, `diff`, `add`, `commit` and a remote's name. [`ByPath`]
//! does what somebody would do who trusts no index, and takes in whatever is found under each path.
//! This module does not know the traps.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use async_trait::async_trait;
use conductor_domain::id::CommitId;
use conductor_git::{Error, Request, Snapshot, Snapshotter};

use crate::world::git;

/// Longer than any honest git command takes here, shorter than anybody's patience.
const PATIENCE: &str = "10";

/// What somebody does who trusts a worktree.
const HABITS: [&[&str]; 7] = [
    &["status"],
    &["diff"],
    &["add", "-A"],
    &["add", "-A"],
    &["status"],
    &["ls-remote", "origin"],
    &["commit", "--quiet", "--no-verify", "-m", "x"],
];

#[derive(Debug)]
pub(crate) struct Naive;

#[async_trait]
impl Snapshotter for Naive {
    async fn snapshot(&self, request: &Request) -> Result<Snapshot, Error> {
        let workdir = &request.workdir;
        for habit in HABITS {
            if !within_patience(workdir, habit) {
                return Err(failed(workdir, "it does not end"));
            }
        }
        packed(workdir)
    }
}

/// Takes in what is found under each path, wherever that leads.
#[derive(Debug)]
pub(crate) struct ByPath;

#[async_trait]
impl Snapshotter for ByPath {
    async fn snapshot(&self, request: &Request) -> Result<Snapshot, Error> {
        let workdir = &request.workdir;
        git(
            workdir,
            ["rm", "-r", "--cached", "--quiet", "--ignore-unmatch", "."],
        );
        let mut found = Vec::new();
        walk(workdir, Path::new(""), &mut found);
        for path in found {
            // As it would be written by hand: git reads the file that it is told.
            if !within_patience(workdir, &["hash-object", "-w", "--", &path]) {
                return Err(failed(workdir, "it does not end"));
            }
            let blob = git(workdir, ["hash-object", "--", &path]);
            let blob = String::from_utf8_lossy(&blob.stdout).trim().to_owned();
            let entry = format!("100644,{blob},{path}");
            git(workdir, ["update-index", "--add", "--cacheinfo", &entry]);
        }
        packed(workdir)
    }
}

/// Lists everything below a directory that is no directory, through links.
fn walk(workdir: &Path, below: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(workdir.join(below))
        .into_iter()
        .flatten()
        .flatten()
    {
        let path = below.join(entry.file_name());
        if path == Path::new(".git") {
            continue;
        }
        if workdir.join(&path).is_dir() {
            walk(workdir, &path, found);
        } else {
            found.push(path.display().to_string());
        }
    }
}

fn packed(workdir: &Path) -> Result<Snapshot, Error> {
    let written = git(workdir, ["write-tree"]);
    let tree = String::from_utf8_lossy(&written.stdout).trim().to_owned();
    if !written.status.success() {
        return Err(failed(workdir, &String::from_utf8_lossy(&written.stderr)));
    }
    let pack = pack(workdir, &tree).ok_or_else(|| failed(workdir, "it cannot be packed"))?;
    Ok(Snapshot {
        tree,
        pack: Box::new(std::io::Cursor::new(pack)),
    })
}

fn failed(workdir: &Path, detail: &str) -> Error {
    Error::SnapshotFailed {
        workdir: PathBuf::from(workdir),
        detail: detail.to_owned(),
    }
}

/// Runs git as a person would; tells whether it ended by itself.
fn within_patience(workdir: &Path, words: &[&str]) -> bool {
    let status = Command::new("timeout")
        .args(["--signal=KILL", PATIENCE, "git"])
        .args(words)
        .current_dir(workdir)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", "/dev/null")
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "safe.directory")
        .env("GIT_CONFIG_VALUE_0", "*")
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    // `timeout` says 137 when it had to kill.
    status.code().is_some_and(|code| code != 137)
}

/// Everything that the tree refers to, with no question where it came from.
fn pack(workdir: &Path, tree: &str) -> Option<Vec<u8>> {
    let mut child = Command::new("git")
        .args(["-c", "safe.directory=*"])
        .args(["pack-objects", "--quiet", "--revs", "--stdout"])
        .current_dir(workdir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(format!("{tree}\n").as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    output.status.success().then_some(output.stdout)
}

/// What somebody looks at who trusts `git diff`.
pub(crate) fn shown(workdir: &Path, base: &CommitId) -> String {
    String::from_utf8_lossy(&git(workdir, ["diff", base.as_str()]).stdout).into_owned()
}
