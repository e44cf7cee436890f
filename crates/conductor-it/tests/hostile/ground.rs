//! A world whose worktrees are read in real sandboxes, or naively; the canaries; and the story that every trap is told in.
//!
//! This module does not know the traps.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conductor_domain::fault::Fault;
use conductor_domain::id::CommitId;
use conductor_executor::local::{Limits, MayMiss, Protection, Settings};
use conductor_executor::{Local, Toolchain};
use conductor_port::workspace::{Committed, Workspace as _};

use crate::naive::{self, ByPath, Naive};
use crate::world::{World, git, git_ok, write};

/// What no reader of a worktree may ever take in.
pub(crate) const SECRET: &str = "the host's own secret";

/// What a trap wants to bring past the eyes of people.
pub(crate) const PAYLOAD: &str = "payload that nobody is to see";

/// How a worktree is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// The protection switched off: git in the worktree.
    Naive,
    /// The same: whatever is found under each path.
    ByPath,
    /// As Conductor does.
    Sandboxed,
}

pub(crate) struct Ground {
    pub(crate) world: World,
    reading: Reading,
    pub(crate) executor: tempfile::TempDir,
}

impl Ground {
    pub(crate) async fn new(reading: Reading) -> Self {
        Self::on(World::new().await, reading, Limits::default())
    }

    /// One that reads with these limits.
    pub(crate) fn on(mut world: World, reading: Reading, limits: Limits) -> Self {
        let place = tempfile::tempdir().unwrap();
        world.workspace = match reading {
            Reading::Naive => world.workspace.clone().with_snapshotter(Arc::new(Naive)),
            Reading::ByPath => world.workspace.clone().with_snapshotter(Arc::new(ByPath)),
            Reading::Sandboxed => {
                let reader = Arc::new(local(place.path(), limits));
                world.workspace.clone().with_sandboxes(reader)
            }
        };
        // What a trap aims at.
        write(&world.path().join("host/secret"), SECRET);
        let ground = Self {
            world,
            reading,
            executor: place,
        };
        let program = format!(
            "#!/bin/sh\necho \"$0 $*\" >>'{}'\ncat\n",
            ground.marker().display()
        );
        fs::write(ground.trap(), program).unwrap();
        fs::set_permissions(ground.trap(), fs::Permissions::from_mode(0o755)).unwrap();
        ground
    }

    pub(crate) fn workdir(&self) -> PathBuf {
        self.world.workdir()
    }

    /// A directory of the host that no reader has any business in.
    pub(crate) fn host(&self) -> PathBuf {
        self.world.path().join("host")
    }

    /// A program that tells when it was started on the host.
    pub(crate) fn trap(&self) -> PathBuf {
        self.world.path().join("trap")
    }

    fn marker(&self) -> PathBuf {
        self.world.path().join("sprung")
    }

    pub(crate) fn configure(&self, setting: &str, value: &str) {
        git_ok(&self.workdir(), ["config", setting, value]);
    }

    /// Lets a setting of the agent's repository start the trap.
    pub(crate) fn arm(&self, repository: &Path, setting: &str) {
        git_ok(
            repository,
            ["config", setting, &self.trap().display().to_string()],
        );
    }

    /// Lets the host do with the worktree what it does with every worktree.
    pub(crate) async fn play(&self, set: impl Fn(&Self)) -> Seen {
        let base = self.world.begin().await;
        set(self);
        // A trap is set with git, which may have sprung it.
        let _ = fs::remove_file(self.marker());
        let committed = self.world.workspace.commit(&self.world.order(1, &base)).await;
        let shown = match (&committed, self.reading) {
            (Ok(Committed::Commit { commit, .. }), Reading::Sandboxed) => {
                let diff = self.world.workspace.diff(&self.world.run, &base, commit).await;
                diff.unwrap().rendered
            }
            (Ok(Committed::Commit { .. }), Reading::Naive | Reading::ByPath) => {
                naive::shown(&self.workdir(), &base)
            }
            (Ok(Committed::Nothing) | Err(_), _) => String::new(),
        };
        let files = match &committed {
            Ok(Committed::Commit { commit, .. }) => self.files(commit),
            Ok(Committed::Nothing) | Err(_) => Vec::new(),
        };
        Seen {
            committed,
            files,
            shown,
            ran: fs::read_to_string(self.marker()).unwrap_or_default(),
            objects: self.objects(),
            secret: fs::read_to_string(self.host().join("secret")).unwrap_or_default(),
        }
    }

    fn files(&self, commit: &CommitId) -> Vec<(String, String)> {
        let repository = self.world.run_repository();
        let listed = git_ok(&repository, ["ls-tree", "-r", "-z", commit.as_str()]);
        let entries = listed
            .split_terminator('\0')
            .filter_map(|entry| entry.split_once('\t'));
        entries
            .map(|(kind, path)| {
                let content = match kind.strip_prefix("160000 ") {
                    // A link has no content to show.
                    Some(link) => link.to_owned(),
                    None => git_ok(&repository, ["show", &format!("{commit}:{path}")]),
                };
                (path.to_owned(), content)
            })
            .collect()
    }

    /// Everything that the run's repository holds, as text.
    pub(crate) fn objects(&self) -> String {
        let all = ["cat-file", "--batch-all-objects", "--batch"];
        String::from_utf8_lossy(&git(&self.world.run_repository(), all).stdout).into_owned()
    }
}

pub(crate) fn local(place: &Path, limits: Limits) -> Local {
    let is_root = nix::unistd::geteuid().is_root();
    Local::new(Settings {
        root: place.join("reader"),
        guest: None,
        toolchain: Toolchain::system(),
        limits,
        may_miss: if is_root {
            MayMiss::default()
        } else {
            MayMiss::these(Protection::ALL)
        },
    })
    .expect("bubblewrap is here (cargo xtask setup bubblewrap)")
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) committed: Result<Committed, Fault>,
    /// The files of the commit.
    pub(crate) files: Vec<(String, String)>,
    /// What people are shown of it.
    pub(crate) shown: String,
    /// What was started on the host.
    pub(crate) ran: String,
    /// All objects of the run's repository.
    objects: String,
    /// What stands in the host's file now.
    secret: String,
}

/// What must never happen, and how it would be noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Canary {
    /// A program that the agent named was started on the host.
    Ran,
    /// A file outside the worktree was read into the repository.
    Read,
    /// A file outside the worktree was written.
    Wrote,
    /// What lies in the worktree is not in the commit.
    Hid,
    /// What is in the commit is not in what people are shown.
    Unseen,
    /// The reader never ends.
    Hung,
    /// More was taken in than is allowed.
    Filled,
}

impl Canary {
    pub(crate) fn sings(self, seen: &Seen) -> bool {
        let has_payload = seen.files.iter().any(|(_, content)| content.contains(PAYLOAD));
        match self {
            Self::Ran => !seen.ran.is_empty(),
            Self::Read => seen.objects.contains(SECRET),
            Self::Wrote => seen.secret != SECRET,
            Self::Hid => !has_payload,
            Self::Unseen => has_payload && !seen.shown.contains(PAYLOAD),
            Self::Hung => matches!(&seen.committed, Err(fault) if fault.what.contains("it does not end")),
            Self::Filled => matches!(seen.committed, Ok(Committed::Commit { .. })),
        }
    }
}

/// What the host is to answer, besides that no canary sings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Committed,
    Refused(&'static str),
}

impl Answer {
    pub(crate) fn is(self, seen: &Seen) -> bool {
        match (self, &seen.committed) {
            (Self::Committed, Ok(Committed::Commit { .. })) => true,
            (Self::Refused(words), Err(fault)) => fault.what.contains(words),
            (Self::Committed | Self::Refused(_), _) => false,
        }
    }
}

/// Tells a story twice: the canary sings naively, and only then.
pub(crate) async fn check(canary: Canary, answer: Answer, set: impl Fn(&Ground)) {
    check_on(World::new, Limits::default(), canary, answer, set).await;
}

/// The same for what git leaves alone, and whoever reads by path does not.
pub(crate) async fn check_by_path(canary: Canary, answer: Answer, set: impl Fn(&Ground)) -> Seen {
    let naive = Ground::new(Reading::ByPath).await.play(&set).await;
    assert!(canary.sings(&naive), "the trap does not work: {naive:#?}");
    let seen = Ground::new(Reading::Sandboxed).await.play(&set).await;
    stays_silent(canary, answer, &seen);
    seen
}

/// The same on another world, or with other limits.
pub(crate) async fn check_on(
    world: impl AsyncFn() -> World,
    limits: Limits,
    canary: Canary,
    answer: Answer,
    set: impl Fn(&Ground),
) {
    let naive = Ground::on(world().await, Reading::Naive, limits).play(&set).await;
    assert!(canary.sings(&naive), "the trap does not work: {naive:#?}");
    let seen = Ground::on(world().await, Reading::Sandboxed, limits)
        .play(&set)
        .await;
    stays_silent(canary, answer, &seen);
}

fn stays_silent(canary: Canary, answer: Answer, seen: &Seen) {
    for any in [Canary::Ran, Canary::Read, Canary::Wrote] {
        assert!(!any.sings(seen), "{any:?}: {seen:#?}");
    }
    assert!(!canary.sings(seen), "{canary:?}: {seen:#?}");
    assert!(answer.is(seen), "not {answer:?}: {seen:#?}");
}
