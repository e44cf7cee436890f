//! A data directory, an upstream repository, and the hands of people and agents.
//!
//! Everything that is not `GitWorkspace` here plays somebody else. This module does not know the stories.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use conductor_domain::id::{CommitId, EffectId, RepoId, RunId};
use conductor_domain::spec::RepoRef;
use conductor_domain::time::Timestamp;
use conductor_git::{Git, GitWorkspace, Identity, Protocol};
use conductor_port::workspace::{CommitOrder, Committed, Prepared, PushOrder, RebaseOrder, Workspace as _};

pub(crate) const BRANCH: &str = "conductor/run-r1";

/// One machine with one upstream repository.
pub(crate) struct World {
    place: tempfile::TempDir,
    pub(crate) workspace: GitWorkspace,
    pub(crate) run: RunId,
}

impl World {
    /// An upstream repository with a first commit, and an empty data directory.
    pub(crate) async fn new() -> Self {
        Self::with_upstream(&[
            ("README.md", "hello\n"),
            ("src/lib.rs", "pub fn one() -> u32 { 1 }\n"),
        ])
        .await
    }

    pub(crate) async fn with_upstream(files: &[(&str, &str)]) -> Self {
        let world = Self::without_upstream().await;
        git_ok(
            world.place.path(),
            [
                "init",
                "--quiet",
                "--bare",
                "--initial-branch=main",
                "upstream/o/n.git",
            ],
        );
        git_ok(
            world.place.path(),
            ["clone", "--quiet", "upstream/o/n.git", "people"],
        );
        for (path, content) in files {
            write(&world.people().join(path), content);
        }
        world.people_push("first");
        world
    }

    pub(crate) async fn without_upstream() -> Self {
        let place = quick_place();
        fs::create_dir_all(place.path().join("upstream/o")).unwrap();
        let git = Git::find(&[Protocol::File, Protocol::Http]).await.unwrap();
        let workspace = GitWorkspace::open(&place.path().join("data"), git, identity()).unwrap();
        Self {
            place,
            workspace,
            run: RunId::parse("r1").unwrap(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.place.path()
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.place.path().join("data")
    }

    pub(crate) fn upstream(&self) -> PathBuf {
        self.place.path().join("upstream/o/n.git")
    }

    /// A clone in which people work.
    pub(crate) fn people(&self) -> PathBuf {
        self.place.path().join("people")
    }

    pub(crate) fn workdir(&self) -> PathBuf {
        self.workspace.layout().workdir(&self.run)
    }

    pub(crate) fn run_repository(&self) -> PathBuf {
        self.data().join("runs/r1/run.git")
    }

    pub(crate) fn repo(&self) -> RepoRef {
        repo_at(&format!("file://{}", self.upstream().display()))
    }

    /// People commit what lies in their clone and push it.
    pub(crate) fn people_push(&self, message: &str) -> CommitId {
        git_ok(&self.people(), ["add", "-A"]);
        git_ok(
            &self.people(),
            ["commit", "--quiet", "--allow-empty", "-m", message],
        );
        git_ok(&self.people(), ["push", "--quiet", "origin", "HEAD:main"]);
        self.upstream_at("refs/heads/main").unwrap()
    }

    pub(crate) fn upstream_at(&self, name: &str) -> Option<CommitId> {
        ref_at(&self.upstream(), name)
    }

    pub(crate) fn branch_at(&self) -> Option<CommitId> {
        ref_at(&self.run_repository(), &format!("refs/heads/{BRANCH}"))
    }

    /// Prepares the run and hands its directory over; returns the base commit.
    pub(crate) async fn begin(&self) -> CommitId {
        let prepared = self
            .workspace
            .prepare(&self.run, &self.repo(), BRANCH, None)
            .await
            .unwrap();
        let Prepared::Ready { base } = prepared else {
            panic!("{prepared:?}")
        };
        let (dir, saved) = self.workspace.reset(&self.run, &base).await.unwrap();
        assert_eq!((dir, saved), (self.workdir(), None));
        base
    }

    pub(crate) fn order(&self, number: u64, parent: &CommitId) -> CommitOrder {
        CommitOrder {
            effect: EffectId::derive(&self.run, number, 0),
            run: self.run.clone(),
            branch: BRANCH.to_owned(),
            parent: parent.clone(),
            onto: None,
            message: format!("change {number}"),
            at: Timestamp(1_700_000_000_000_000),
        }
    }

    /// Commits the working directory, which must have changed.
    pub(crate) fn rebase(&self, number: u64, base: &CommitId, head: &CommitId) -> RebaseOrder {
        RebaseOrder {
            effect: EffectId::derive(&self.run, number, 0),
            run: self.run.clone(),
            branch: BRANCH.to_owned(),
            base: base.clone(),
            head: head.clone(),
        }
    }

    pub(crate) async fn commit(&self, number: u64, parent: &CommitId) -> CommitId {
        match self.workspace.commit(&self.order(number, parent)).await.unwrap() {
            Committed::Commit { commit, .. } => commit,
            Committed::Nothing => panic!("nothing to commit"),
        }
    }

    pub(crate) fn push_order(&self, commit: &CommitId, expected: Option<&CommitId>) -> PushOrder {
        PushOrder {
            run: self.run.clone(),
            branch: BRANCH.to_owned(),
            commit: Some(commit.clone()),
            expected: expected.cloned(),
        }
    }

    /// The files of a commit or ref of the run's repository: path and content.
    pub(crate) fn tree(&self, revision: &str) -> Vec<(String, String)> {
        files_of(&self.run_repository(), revision)
    }
}

/// A directory in memory where programs may be started from there, because git syncs a lot; else any.
fn quick_place() -> tempfile::TempDir {
    let quick = tempfile::tempdir_in("/dev/shm").ok().filter(|place| {
        let probe = place.path().join("probe");
        fs::copy("/bin/true", &probe).is_ok()
            && Command::new(probe).status().is_ok_and(|status| status.success())
    });
    quick.unwrap_or_else(|| tempfile::tempdir().unwrap())
}

pub(crate) fn repo_at(clone_url: &str) -> RepoRef {
    RepoRef {
        id: RepoId(1),
        host: "localhost".to_owned(),
        owner: "o".to_owned(),
        name: "n".to_owned(),
        clone_url: clone_url.to_owned(),
        base_branch: "main".to_owned(),
    }
}

pub(crate) fn identity() -> Identity {
    Identity {
        name: "Conductor".to_owned(),
        email: "conductor@localhost".to_owned(),
    }
}

/// Runs git as a person would, with nobody's configuration but the repository's own.
pub(crate) fn git<S: AsRef<OsStr>>(directory: &Path, args: impl IntoIterator<Item = S>) -> Output {
    Command::new("git")
        .args(args)
        .current_dir(directory)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        // A worktree belongs to its run's own user once a sandbox has seen it.
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "safe.directory")
        .env("GIT_CONFIG_VALUE_0", "*")
        .env("GIT_AUTHOR_NAME", "Person")
        .env("GIT_AUTHOR_EMAIL", "person@localhost")
        .env("GIT_COMMITTER_NAME", "Person")
        .env("GIT_COMMITTER_EMAIL", "person@localhost")
        .env("GIT_AUTHOR_DATE", "@1600000000 +0000")
        .env("GIT_COMMITTER_DATE", "@1600000000 +0000")
        .output()
        .unwrap()
}

pub(crate) fn git_ok<S: AsRef<OsStr>>(directory: &Path, args: impl IntoIterator<Item = S>) -> String {
    let output = git(directory, args);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn ref_at(repository: &Path, name: &str) -> Option<CommitId> {
    let output = git(repository, ["rev-parse", "--verify", "--quiet", name]);
    output
        .status
        .success()
        .then(|| CommitId::parse(String::from_utf8_lossy(&output.stdout).trim()).unwrap())
}

pub(crate) fn files_of(repository: &Path, revision: &str) -> Vec<(String, String)> {
    git_ok(repository, ["ls-tree", "-r", "-z", "--name-only", revision])
        .split_terminator('\0')
        .map(|path| {
            (
                path.to_owned(),
                git_ok(repository, ["show", &format!("{revision}:{path}")]),
            )
        })
        .collect()
}

pub(crate) fn write(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Every file below a directory with its content, `.git` left out.
pub(crate) fn files_in(directory: &Path) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut below = vec![directory.to_owned()];
    while let Some(next) = below.pop() {
        for entry in fs::read_dir(next).unwrap().flatten() {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() && entry.file_name() != ".git" {
                below.push(entry.path());
            } else if kind.is_file() {
                let path = entry
                    .path()
                    .strip_prefix(directory)
                    .unwrap()
                    .to_string_lossy()
                    .into_owned();
                files.push((path, fs::read_to_string(entry.path()).unwrap()));
            }
        }
    }
    files.sort();
    files
}
