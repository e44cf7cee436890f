//! Whichever git call is the last one before a crash, the repeat ends as if nothing had happened (RUN-4).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use conductor_domain::id::CommitId;
use conductor_git::{Git, GitWorkspace, Protocol};
use conductor_port::workspace::{Committed, Rebased, Workspace as _};

use crate::world::{BRANCH, World, files_in, git_ok, identity, ref_at, write};

/// A git whose n-th call does its work and then dies without an answer, as everything around it does in a crash.
struct Mortal {
    program: PathBuf,
}

impl Mortal {
    fn new(world: &World) -> Self {
        let program = world.path().join("mortal-git");
        let script = r#"#!/bin/sh
printf x >>"$0.count"
if [ "$(wc -c <"$0.count")" = "$(cat "$0.last")" ]; then git "$@" >/dev/null; kill -9 $$; fi
exec git "$@"
"#;
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        Self { program }
    }

    async fn workspace(&self, world: &World, last: u64) -> GitWorkspace {
        fs::write(self.beside("last"), "0").unwrap();
        let git = Git::at(&self.program, &[Protocol::File]).await.unwrap();
        fs::write(self.beside("last"), last.to_string()).unwrap();
        fs::write(self.beside("count"), "").unwrap();
        GitWorkspace::open(&world.data(), git, identity()).unwrap()
    }

    /// Tells whether the whole story was over before the last call was reached.
    fn survived(&self, last: u64) -> bool {
        fs::metadata(self.beside("count")).unwrap().len() < last
    }

    fn beside(&self, name: &str) -> String {
        format!("{}.{name}", self.program.display())
    }
}

/// What a killed git can leave behind besides.
fn leave_locks(world: &World) {
    for lock in [
        "runs/r1/run.git/refs/heads/conductor/run-r1.lock",
        "runs/r1/run.git/packed-refs.lock",
    ] {
        let path = world.data().join(lock);
        if path.parent().unwrap().exists() {
            fs::write(path, "").unwrap();
        }
    }
}

fn commits_since(world: &World, base: &CommitId) -> String {
    git_ok(
        &world.run_repository(),
        ["rev-list", "--count", &format!("{base}..{BRANCH}")],
    )
}

#[tokio::test]
async fn a_commit_is_made_once() {
    let mut deaths = 0;
    for last in 1.. {
        let world = World::new().await;
        let base = world.begin().await;
        write(&world.workdir().join("a.txt"), "a\n");
        let mortal = Mortal::new(&world);
        let order = world.order(1, &base);
        let tried = mortal.workspace(&world, last).await.commit(&order).await;
        leave_locks(&world);
        let Committed::Commit { commit, .. } = world.workspace.commit(&order).await.unwrap() else {
            panic!("{last}: nothing to commit");
        };
        assert_eq!(world.branch_at(), Some(commit.clone()), "{last}");
        assert_eq!(commits_since(&world, &base), "1\n", "{last}");
        assert_eq!(
            world.tree(commit.as_str())[1],
            ("a.txt".to_owned(), "a\n".to_owned())
        );
        if tried.is_ok() && mortal.survived(last) {
            break;
        }
        deaths += 1;
    }
    assert!(deaths > 10, "only {deaths} crashes were tried");
}

#[tokio::test]
async fn work_is_in_its_directory_or_where_it_is_said_to_be() {
    let mut deaths = 0;
    for last in 1.. {
        let world = World::new().await;
        world.begin().await;
        write(&world.workdir().join("a.txt"), "a\n");
        let left = files_in(&world.workdir());
        let mortal = Mortal::new(&world);
        let tried = mortal
            .workspace(&world, last)
            .await
            .clean_up(&world.run, &world.repo())
            .await;
        if tried.is_err() {
            assert_eq!(files_in(&world.workdir()), left, "{last}");
        }
        leave_locks(&world);
        let saved = world.workspace.clean_up(&world.run, &world.repo()).await.unwrap();
        let saved = saved.expect("something was saved");
        // A pack whose maker died looks like one that git refuses; then the directory was moved aside.
        let kept = if tried.is_ok() && Path::new(&saved).is_absolute() {
            files_in(Path::new(&saved))
        } else {
            assert_eq!(saved, "refs/conductor/saved/1", "{last}");
            world.tree(&saved)
        };
        assert_eq!(kept, left, "{last}");
        assert!(!world.workdir().exists());
        if tried.is_ok() && mortal.survived(last) {
            break;
        }
        deaths += 1;
    }
    assert!(deaths > 10, "only {deaths} crashes were tried");
}

#[tokio::test]
async fn a_workspace_is_prepared_whole() {
    let mut deaths = 0;
    for last in 1.. {
        let world = World::new().await;
        let mortal = Mortal::new(&world);
        let mortal_workspace = mortal.workspace(&world, last).await;
        let tried = mortal_workspace
            .prepare(&world.run, &world.repo(), BRANCH, None)
            .await;
        leave_locks(&world);
        let base = world.begin().await;
        assert_eq!(git_ok(&world.workdir(), ["status", "--porcelain"]), "", "{last}");
        assert_eq!(world.branch_at(), Some(base), "{last}");
        if tried.is_ok() && mortal.survived(last) {
            break;
        }
        deaths += 1;
    }
    assert!(deaths > 8, "only {deaths} crashes were tried");
}

#[tokio::test]
async fn a_rebase_happens_once() {
    let mut deaths = 0;
    for last in 1.. {
        let world = World::new().await;
        let base = world.begin().await;
        write(&world.workdir().join("a.txt"), "a\n");
        let head = world.commit(1, &base).await;
        write(&world.people().join("theirs.txt"), "theirs\n");
        let moved = world.people_push("moved");
        let mortal = Mortal::new(&world);
        let workspace = mortal.workspace(&world, last).await;
        let tried = workspace
            .rebase(&world.rebase(9, &base, &head), &world.repo(), None)
            .await;
        leave_locks(&world);
        let again = world
            .workspace
            .rebase(&world.rebase(9, &base, &head), &world.repo(), None)
            .await
            .unwrap();
        let Rebased::Clean {
            base: onto,
            head: new,
        } = again
        else {
            panic!("{last}: {again:?}")
        };
        assert_eq!(
            (onto, Some(new.clone())),
            (moved.clone(), world.branch_at()),
            "{last}"
        );
        assert_eq!(
            ref_at(&world.run_repository(), &format!("{new}^")),
            Some(moved),
            "{last}"
        );
        if tried.is_ok() && mortal.survived(last) {
            break;
        }
        deaths += 1;
    }
    assert!(deaths > 10, "only {deaths} crashes were tried");
}

#[tokio::test]
async fn a_push_arrives_once() {
    let mut deaths = 0;
    for last in 1.. {
        let world = World::new().await;
        let base = world.begin().await;
        write(&world.workdir().join("a.txt"), "a\n");
        let head = world.commit(1, &base).await;
        let mortal = Mortal::new(&world);
        let order = world.push_order(&head, None);
        let tried = mortal
            .workspace(&world, last)
            .await
            .push(&order, &world.repo(), None)
            .await;
        world.workspace.push(&order, &world.repo(), None).await.unwrap();
        assert_eq!(
            world.upstream_at(&format!("refs/heads/{BRANCH}")),
            Some(head),
            "{last}"
        );
        if tried.is_ok() && mortal.survived(last) {
            break;
        }
        deaths += 1;
    }
    assert!(deaths >= 3, "only {deaths} crashes were tried");
}
