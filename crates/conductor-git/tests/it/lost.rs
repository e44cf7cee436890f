//! No one's work is ever lost (BEY-8, invariant 8).

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use conductor_domain::fault::{Fault, FaultKind};
use conductor_domain::id::RunId;
use conductor_git::{Error, GitWorkspace, Limits, Mode, Request, Snapshot, Snapshotter, Unknown};
use conductor_port::workspace::{Committed, Workspace as _};

use crate::world::{World, files_in, git_ok, ref_at, write};

const FIRST: &str = "refs/conductor/saved/1";

/// Everything that git can hold: changed, new, deleted, executable, linked, empty, odd names.
fn leave_work(world: &World) {
    let workdir = world.workdir();
    write(&workdir.join("src/lib.rs"), "half done\n");
    write(&workdir.join("deep/er/new.txt"), "new\n");
    write(&workdir.join("empty"), "");
    write(&workdir.join("odd \n\"name\" ä"), "odd\n");
    write(&workdir.join("run.sh"), "#!/bin/sh\n");
    fs::set_permissions(workdir.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("src/lib.rs", workdir.join("link")).unwrap();
    fs::remove_file(workdir.join("README.md")).unwrap();
}

#[tokio::test]
async fn uncommitted_work_is_saved_before_its_directory_goes() {
    let world = World::new().await;
    let base = world.begin().await;
    leave_work(&world);
    let before = files_in(&world.workdir());
    let saved = world.workspace.clean_up(&world.run, &world.repo()).await.unwrap();
    assert_eq!(saved.as_deref(), Some(FIRST));
    assert!(!world.workdir().exists());

    let commit = ref_at(&world.run_repository(), FIRST).unwrap();
    let checkout = world.workspace.checkout(&world.run, &commit).await.unwrap();
    assert_eq!(files_in(&checkout.dir), before);
    assert_eq!(
        fs::read_link(checkout.dir.join("link")).unwrap().to_str(),
        Some("src/lib.rs")
    );
    assert_eq!(
        fs::metadata(checkout.dir.join("run.sh"))
            .unwrap()
            .permissions()
            .mode()
            & 0o111,
        0o111
    );
    assert_eq!(ref_at(&world.run_repository(), &format!("{FIRST}^")), Some(base));
}

/// RUN-12a: the step's start commit comes back, and what lay there is kept.
#[tokio::test]
async fn a_reset_saves_what_it_replaces() {
    let world = World::new().await;
    let base = world.begin().await;
    let fresh = files_in(&world.workdir());
    leave_work(&world);
    let left = files_in(&world.workdir());
    let (dir, saved) = world.workspace.reset(&world.run, &base).await.unwrap();
    assert_eq!((dir, saved.as_deref()), (world.workdir(), Some(FIRST)));
    assert_eq!(files_in(&world.workdir()), fresh);
    assert_eq!(git_ok(&world.workdir(), ["status", "--porcelain"]), "");
    let commit = ref_at(&world.run_repository(), FIRST).unwrap();
    assert_eq!(
        files_in(&world.workspace.checkout(&world.run, &commit).await.unwrap().dir),
        left
    );
    write(&world.workdir().join("second.txt"), "again\n");
    let (_, saved) = world.workspace.reset(&world.run, &base).await.unwrap();
    assert_eq!(saved.as_deref(), Some("refs/conductor/saved/2"));
    assert_eq!(
        ref_at(&world.run_repository(), FIRST),
        Some(commit),
        "the first stays"
    );
}

#[tokio::test]
async fn what_is_committed_or_unchanged_is_not_saved_again() {
    let world = World::new().await;
    let base = world.begin().await;
    assert_eq!(world.workspace.reset(&world.run, &base).await.unwrap().1, None);
    leave_work(&world);
    let commit = world.commit(1, &base).await;
    assert_eq!(world.workspace.reset(&world.run, &commit).await.unwrap().1, None);
    assert_eq!(
        world.workspace.clean_up(&world.run, &world.repo()).await.unwrap(),
        None
    );
    assert_eq!(
        git_ok(&world.run_repository(), ["for-each-ref", "refs/conductor/saved"]),
        ""
    );
}

/// Ignored files are what the repository calls reproducible: they are neither committed nor saved.
#[tokio::test]
async fn ignored_files_are_not_saved() {
    let world = World::with_upstream(&[(".gitignore", "/target/\n"), ("a", "a\n")]).await;
    world.begin().await;
    write(&world.workdir().join("target/big.o"), "object\n");
    assert_eq!(
        world.workspace.clean_up(&world.run, &world.repo()).await.unwrap(),
        None
    );
    assert!(!world.workdir().exists());
}

/// An agent's own commits, stashes and nested repositories are files like any other.
#[tokio::test]
async fn work_in_nested_repositories_is_saved_as_files() {
    let world = World::with_upstream(&[(".gitignore", "*.o\n"), ("a", "a\n")]).await;
    world.begin().await;
    let nested = world.workdir().join("vendor/thing");
    write(&nested.join("lib.c"), "int main;\n");
    write(&nested.join("lib.o"), "ignored\n");
    git_ok(&nested, ["init", "--quiet"]);
    git_ok(&nested, ["add", "-A"]);
    git_ok(&nested, ["commit", "--quiet", "-m", "nested"]);
    write(&nested.join("deep/inner/x"), "inner\n");
    git_ok(&nested.join("deep/inner"), ["init", "--quiet"]);
    let saved = world.workspace.clean_up(&world.run, &world.repo()).await.unwrap();
    let paths: Vec<String> = world
        .tree(&saved.unwrap())
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    assert_eq!(
        paths,
        [
            ".gitignore",
            "a",
            "vendor/thing/deep/inner/x",
            "vendor/thing/lib.c"
        ]
    );
}

/// A commit leaves a submodule the link that it is; a save keeps what was written below it.
#[tokio::test]
async fn work_below_a_submodule_is_saved_but_not_committed() {
    let world = World::new().await;
    let link = format!("160000,{},module", "1".repeat(40));
    git_ok(&world.people(), ["update-index", "--add", "--cacheinfo", &link]);
    git_ok(&world.people(), ["commit", "--quiet", "-m", "a submodule"]);
    git_ok(&world.people(), ["push", "--quiet", "origin", "HEAD:main"]);
    let base = world.begin().await;
    write(&world.workdir().join("module/inside.txt"), "inside\n");
    assert_eq!(
        world.workspace.commit(&world.order(1, &base)).await.unwrap(),
        Committed::Nothing
    );
    let saved = world
        .workspace
        .clean_up(&world.run, &world.repo())
        .await
        .unwrap()
        .unwrap();
    assert!(
        world
            .tree(&saved)
            .contains(&("module/inside.txt".to_owned(), "inside\n".to_owned()))
    );
}

/// The directory that `saved` names, which must lie where nothing is ever removed.
fn moved_aside(world: &World, saved: Option<String>) -> PathBuf {
    let aside = PathBuf::from(saved.expect("something was saved"));
    assert!(
        aside.starts_with(world.data().join("quarantine")) && aside.ends_with("run-r1"),
        "{}",
        aside.display()
    );
    aside
}

/// What can be saved up to a size that no work has.
fn cramped(world: &World) -> GitWorkspace {
    world.workspace.clone().with_limits(Limits {
        pack_bytes: 100,
        ..Limits::default()
    })
}

/// A directory that cannot be read whole is moved aside whole, not saved in part. Its depth stops even root.
#[tokio::test]
async fn a_directory_that_cannot_be_read_is_moved_aside() {
    let world = World::new().await;
    let base = world.begin().await;
    let name = "d".repeat(250);
    let dig = format!(
        "i=0; while [ $i -lt 18 ]; do mkdir {name} && cd {name} || exit 1; i=$((i+1)); done; echo x >f"
    );
    assert!(
        Command::new("bash")
            .args(["-c", &dig])
            .current_dir(world.workdir())
            .status()
            .unwrap()
            .success()
    );
    write(&world.workdir().join("a.txt"), "a\n");
    let fault = world.workspace.commit(&world.order(1, &base)).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Permanent);
    assert!(fault.what.contains("could not be read whole"), "{fault}");
    assert_eq!(world.branch_at(), Some(base));
    let saved = world.workspace.clean_up(&world.run, &world.repo()).await.unwrap();
    let aside = moved_aside(&world, saved);
    assert_eq!(fs::read_to_string(aside.join("a.txt")).unwrap(), "a\n");
    assert!(aside.join(name).exists() && !world.workdir().exists());
}

/// A name that git refuses cannot be saved, so its directory is not removed either.
#[tokio::test]
async fn a_file_that_cannot_be_saved_is_moved_aside_with_its_directory() {
    let world = World::new().await;
    world.begin().await;
    let nested = world.workdir().join("nested");
    write(&nested.join("x"), "x\n");
    git_ok(&nested, ["init", "--quiet"]);
    fs::rename(nested.join("x"), nested.join("git~1")).unwrap();
    let left = files_in(&world.workdir());
    let saved = world.workspace.clean_up(&world.run, &world.repo()).await.unwrap();
    assert_eq!(files_in(&moved_aside(&world, saved)), left);
    assert!(!world.workdir().exists());
}

/// A run that left more than can be saved ends all the same, and whoever asks again hears where its work lies.
#[tokio::test]
async fn a_clean_up_moves_aside_what_is_too_large_to_save() {
    let world = World::new().await;
    world.begin().await;
    leave_work(&world);
    let left = files_in(&world.workdir());
    let cramped = cramped(&world);
    let saved = cramped.clean_up(&world.run, &world.repo()).await.unwrap();
    assert_eq!(files_in(&moved_aside(&world, saved.clone())), left);
    assert!(!world.workdir().exists());
    assert_eq!(
        cramped.clean_up(&world.run, &world.repo()).await.unwrap(),
        saved,
        "a repeat says the same"
    );
}

/// A step that left more than can be saved starts over all the same, as often as it does so.
#[tokio::test]
async fn a_reset_moves_aside_what_is_too_large_to_save() {
    let world = World::new().await;
    let base = world.begin().await;
    let fresh = files_in(&world.workdir());
    let cramped = cramped(&world);
    let mut asides = BTreeSet::new();
    for _ in 0..2 {
        leave_work(&world);
        let left = files_in(&world.workdir());
        let (dir, saved) = cramped.reset(&world.run, &base).await.unwrap();
        assert_eq!(dir, world.workdir());
        assert_eq!(files_in(&dir), fresh);
        let aside = moved_aside(&world, saved);
        assert_eq!(files_in(&aside), left);
        asides.insert(aside);
    }
    assert_eq!(asides.len(), 2, "the first stays");
    assert_eq!(cramped.reset(&world.run, &base).await.unwrap().1, None);
}

/// What cannot be read in time is as good as too large: no repeat would read it sooner.
#[tokio::test]
async fn what_takes_too_long_to_read_is_moved_aside() {
    let world = World::new().await;
    world.begin().await;
    leave_work(&world);
    let left = files_in(&world.workdir());
    let slow = world
        .workspace
        .clone()
        .with_snapshotter(Arc::new(Failing(|| Error::TimedOut {
            verb: "add".to_owned(),
            limit: Duration::from_mins(5),
        })));
    let saved = slow.clean_up(&world.run, &world.repo()).await.unwrap();
    assert_eq!(files_in(&moved_aside(&world, saved)), left);
}

/// Saving fails for now, so nothing is moved or removed; when it works again, nothing was lost.
#[tokio::test]
async fn a_directory_that_cannot_be_saved_for_now_is_kept() {
    let world = World::new().await;
    let base = world.begin().await;
    leave_work(&world);
    let left = files_in(&world.workdir());
    let failures: [fn() -> Error; 3] = [
        || Error::DiskFull {
            detail: "no room".to_owned(),
        },
        || Error::Killed {
            verb: "add".to_owned(),
            status: "signal: 15".to_owned(),
        },
        || Error::Sandbox {
            fault: Fault::permanent("there is no bubblewrap"),
        },
    ];
    for failure in failures {
        let failing = world
            .workspace
            .clone()
            .with_snapshotter(Arc::new(Failing(failure)));
        for fault in [
            failing.clean_up(&world.run, &world.repo()).await.unwrap_err(),
            failing.reset(&world.run, &base).await.unwrap_err(),
        ] {
            assert!(fault.what.contains("so its directory was kept"), "{fault}");
        }
        assert_eq!(files_in(&world.workdir()), left);
    }
    assert_eq!(files_in(&world.data().join("quarantine")), []);
    assert_eq!(
        world
            .workspace
            .clean_up(&world.run, &world.repo())
            .await
            .unwrap()
            .as_deref(),
        Some(FIRST)
    );
}

/// A snapshotter that never makes a snapshot.
#[derive(Debug)]
struct Failing(fn() -> Error);

#[async_trait]
impl Snapshotter for Failing {
    async fn snapshot(&self, _request: &Request) -> Result<Snapshot, Error> {
        Err((self.0)())
    }
}

/// Invariant 8: reported and set aside, never removed; the dry run says the same and touches nothing.
#[tokio::test]
async fn an_unknown_directory_is_set_aside() {
    let world = World::new().await;
    world.begin().await;
    let stray = world.data().join("worktrees/run-nobody");
    write(&stray.join("work.txt"), "somebody's\n");
    write(&world.data().join("worktrees/a-file"), "odd\n");
    let known = BTreeSet::from([world.run.clone()]);
    let planned = world.workspace.sweep(&known, Mode::DryRun).unwrap();
    let paths: Vec<_> = planned.iter().map(|unknown| unknown.path.clone()).collect();
    assert_eq!(paths, [world.data().join("worktrees/a-file"), stray.clone()]);
    assert!(stray.exists());
    let done = world.workspace.sweep(&known, Mode::SetAside).unwrap();
    assert_eq!(
        done.iter()
            .map(|unknown| unknown.path.clone())
            .collect::<Vec<_>>(),
        paths
    );
    let Unknown {
        set_aside: Some(aside),
        ..
    } = &done[1]
    else {
        panic!("{done:?}")
    };
    assert_eq!(
        fs::read_to_string(aside.join("work.txt")).unwrap(),
        "somebody's\n"
    );
    assert!(!stray.exists() && world.workdir().exists());
    assert_eq!(world.workspace.sweep(&known, Mode::SetAside).unwrap(), []);
}

/// A run that was never prepared, and one that is gone, have nothing to give back.
#[tokio::test]
async fn cleaning_up_after_nothing_is_nothing() {
    let world = World::new().await;
    let nobody = RunId::parse("nobody").unwrap();
    assert_eq!(
        world.workspace.clean_up(&nobody, &world.repo()).await.unwrap(),
        None
    );
}

/// RUN-12a: after a crash the directory may be missing; work on the branch is not.
#[tokio::test]
async fn a_lost_directory_is_made_again_from_the_branch() {
    let world = World::new().await;
    let base = world.begin().await;
    write(&world.workdir().join("a.txt"), "a\n");
    let commit = world.commit(1, &base).await;
    fs::remove_dir_all(world.workdir()).unwrap();
    let (dir, saved) = world.workspace.reset(&world.run, &commit).await.unwrap();
    assert_eq!(saved, None);
    assert_eq!(fs::read_to_string(dir.join("a.txt")).unwrap(), "a\n");
}
