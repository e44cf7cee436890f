//! Nothing that an agent writes into its working directory runs on the host (S-4…S-9, SECURITY §10).
//!
//! Each trap is first shown to work: git as people use it, in a copy of the same directory, springs it.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use conductor_port::workspace::Workspace as _;

use crate::world::{BRANCH, World, files_of, git, git_ok, ref_at, write};

/// A program that tells when it was started.
struct Trap {
    program: PathBuf,
    marker: PathBuf,
}

impl Trap {
    fn new(world: &World) -> Self {
        let (program, marker) = (world.path().join("trap"), world.path().join("sprung"));
        fs::write(
            &program,
            format!("#!/bin/sh\necho \"$0 $*\" >>'{}'\ncat\n", marker.display()),
        )
        .unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Self { program, marker }
    }

    fn path(&self) -> String {
        self.program.display().to_string()
    }

    fn configure(&self, repository: &Path, setting: &str) {
        git_ok(repository, ["config", setting, &self.path()]);
    }

    /// Tells whether it was started since the last time this was asked.
    fn was_sprung(&self) -> bool {
        fs::remove_file(&self.marker).is_ok()
    }
}

/// Sets a trap in a directory, shows that `proof` springs it, then does all that the host ever does with it.
async fn check(world: World, set: impl Fn(&Path, &Trap), proof: &[&[&str]]) {
    let base = world.begin().await;
    let trap = Trap::new(&world);
    set(&world.workdir(), &trap);
    write(&world.workdir().join("README.md"), "changed\n");

    let copy = world.path().join("copy");
    let copied = Command::new("cp")
        .arg("-a")
        .args([world.workdir(), copy.clone()])
        .status()
        .unwrap();
    assert!(copied.success());
    for command in proof {
        git(&copy, *command);
    }
    assert!(trap.was_sprung(), "the trap does not work: {proof:?}");

    let first = world.commit(1, &base).await;
    write(&world.workdir().join("README.md"), "changed again\n");
    let second = world.commit(2, &first).await;
    world.workspace.diff(&world.run, &base, &second).await.unwrap();
    world.workspace.checkout(&world.run, &second).await.unwrap();
    world
        .workspace
        .push(&world.push_order(&second, None), &world.repo(), None)
        .await
        .unwrap();
    write(&world.workdir().join("README.md"), "unfinished\n");
    world.workspace.reset(&world.run, &second).await.unwrap();
    assert!(!trap.was_sprung(), "something ran on the host");

    set(&world.workdir(), &trap);
    // The trap itself was set with git, which may have sprung it.
    trap.was_sprung();
    write(&world.workdir().join("README.md"), "unfinished\n");
    world.workspace.clean_up(&world.run, &world.repo()).await.unwrap();
    assert!(!trap.was_sprung(), "cleaning up ran something on the host");
}

#[tokio::test]
async fn a_monitor_in_the_agents_configuration_does_not_run() {
    let set = |workdir: &Path, trap: &Trap| trap.configure(workdir, "core.fsmonitor");
    check(World::new().await, set, &[&["status"]]).await;
}

#[tokio::test]
async fn hooks_do_not_run() {
    let set = |workdir: &Path, trap: &Trap| {
        for hook in [
            "pre-commit",
            "post-index-change",
            "reference-transaction",
            "post-checkout",
            "pre-push",
        ] {
            let path = workdir.join(".git/hooks").join(hook);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let _ = fs::remove_file(&path);
            fs::copy(&trap.program, &path).unwrap();
        }
    };
    check(World::new().await, set, &[&["commit", "--quiet", "-am", "x"]]).await;
}

#[tokio::test]
async fn filters_do_not_run() {
    let set = |workdir: &Path, trap: &Trap| {
        trap.configure(workdir, "filter.evil.clean");
        trap.configure(workdir, "filter.evil.smudge");
        write(&workdir.join(".gitattributes"), "* filter=evil\n");
    };
    check(World::new().await, set, &[&["add", "-A"]]).await;
}

#[tokio::test]
async fn filters_named_beside_the_tree_do_not_run() {
    let set = |workdir: &Path, trap: &Trap| {
        trap.configure(workdir, "filter.evil.process");
        trap.configure(workdir, "filter.evil.clean");
        write(&workdir.join(".git/info/attributes"), "* filter=evil\n");
    };
    check(World::new().await, set, &[&["add", "-A"]]).await;
}

#[tokio::test]
async fn programs_for_differences_do_not_run() {
    let set = |workdir: &Path, trap: &Trap| {
        trap.configure(workdir, "diff.external");
        trap.configure(workdir, "diff.evil.textconv");
        write(&workdir.join(".gitattributes"), "* diff=evil\n");
    };
    check(World::new().await, set, &[&["diff"]]).await;
}

#[tokio::test]
async fn a_git_directory_that_is_a_file_is_not_followed() {
    let set = |workdir: &Path, trap: &Trap| {
        trap.configure(workdir, "core.fsmonitor");
        if fs::symlink_metadata(workdir.join(".git")).unwrap().is_dir() {
            fs::rename(workdir.join(".git"), workdir.join("hidden")).unwrap();
        }
        write(&workdir.join(".gitignore"), "hidden\n");
        write(&workdir.join(".git"), "gitdir: hidden\n");
    };
    check(World::new().await, set, &[&["status"]]).await;
}

#[tokio::test]
async fn a_git_directory_that_is_a_link_is_not_followed() {
    let set = |workdir: &Path, trap: &Trap| {
        trap.configure(workdir, "core.fsmonitor");
        fs::rename(workdir.join(".git"), workdir.join("hidden")).unwrap();
        write(&workdir.join(".gitignore"), "hidden\n");
        symlink("hidden", workdir.join(".git")).unwrap();
    };
    check(World::new().await, set, &[&["status"]]).await;
}

#[tokio::test]
async fn redirected_and_second_configurations_are_not_read() {
    let common = |workdir: &Path, trap: &Trap| {
        git_ok(workdir, ["init", "--quiet", "--bare", "common"]);
        trap.configure(&workdir.join("common"), "core.fsmonitor");
        git_ok(&workdir.join("common"), ["config", "core.bare", "false"]);
        write(&workdir.join(".gitignore"), "common\n");
        write(&workdir.join(".git/commondir"), "../common\n");
    };
    check(World::new().await, common, &[&["status"]]).await;
    let worktree = |workdir: &Path, trap: &Trap| {
        git_ok(workdir, ["config", "core.repositoryFormatVersion", "1"]);
        git_ok(workdir, ["config", "extensions.worktreeConfig", "true"]);
        write(
            &workdir.join(".git/config.worktree"),
            &format!("[core]\nfsmonitor = {}\n", trap.path()),
        );
    };
    check(World::new().await, worktree, &[&["status"]]).await;
}

#[tokio::test]
async fn a_signing_program_does_not_run() {
    let set = |workdir: &Path, trap: &Trap| {
        git_ok(workdir, ["config", "commit.gpgSign", "true"]);
        trap.configure(workdir, "gpg.program");
    };
    check(World::new().await, set, &[&["commit", "--quiet", "-am", "x"]]).await;
}

/// The row on which every flag failed: git enters a nested repository that it knows as a gitlink.
#[tokio::test]
async fn a_nested_repository_does_not_run_anything() {
    let set = |workdir: &Path, trap: &Trap| {
        let nested = workdir.join("nested");
        write(&nested.join("file"), "content\n");
        git_ok(&nested, ["init", "--quiet"]);
        git_ok(&nested, ["add", "-A"]);
        git_ok(&nested, ["commit", "--quiet", "-m", "nested"]);
        trap.configure(&nested, "core.fsmonitor");
        trap.configure(&nested, "filter.evil.clean");
        write(&nested.join(".gitattributes"), "* filter=evil\n");
        write(&nested.join("file"), "changed\n");
    };
    check(
        World::new().await,
        set,
        &[&["add", "-A"], &["add", "-A"], &["status"]],
    )
    .await;
}

/// The same where upstream has a submodule at that place, filled with the very commit that it names.
#[tokio::test]
async fn a_filled_submodule_does_not_run_anything() {
    let fill = |module: &Path| {
        write(&module.join("file"), "content\n");
        git_ok(module, ["init", "--quiet"]);
        git_ok(module, ["add", "-A"]);
        git_ok(
            module,
            ["commit", "--quiet", "-m", "the same wherever it is made"],
        );
    };
    let world = World::new().await;
    let elsewhere = world.path().join("module");
    fill(&elsewhere);
    let link = format!("160000,{},module", ref_at(&elsewhere, "HEAD").unwrap());
    git_ok(&world.people(), ["update-index", "--add", "--cacheinfo", &link]);
    git_ok(&world.people(), ["commit", "--quiet", "-m", "a submodule"]);
    git_ok(&world.people(), ["push", "--quiet", "origin", "HEAD:main"]);
    let set = |workdir: &Path, trap: &Trap| {
        fill(&workdir.join("module"));
        let module = workdir.join("module");
        // git hands our own `core.fsmonitor=false` down to submodules, but it cannot name every filter.
        trap.configure(&module, "filter.evil.clean");
        write(&module.join(".git/info/attributes"), "* filter=evil\n");
        write(&module.join("file"), "changed\n");
    };
    check(world, set, &[&["add", "-A"]]).await;
}

/// S-12: the agent's `insteadOf` and remotes do not exist for the host.
#[tokio::test]
async fn a_redirected_address_is_not_used() {
    let world = World::new().await;
    let base = world.begin().await;
    let elsewhere = world.path().join("elsewhere.git");
    git_ok(world.path(), ["init", "--quiet", "--bare", "elsewhere.git"]);
    let url = world.repo().clone_url;
    git_ok(
        &world.workdir(),
        ["config", &format!("url.{}.insteadOf", elsewhere.display()), &url],
    );
    write(&world.workdir().join("a.txt"), "a\n");
    git_ok(
        &world.workdir(),
        ["push", "--quiet", &url, "HEAD:refs/heads/proof"],
    );
    assert!(
        ref_at(&elsewhere, "refs/heads/proof").is_some(),
        "the trap does not work"
    );

    let commit = world.commit(1, &base).await;
    world
        .workspace
        .push(&world.push_order(&commit, None), &world.repo(), None)
        .await
        .unwrap();
    assert_eq!(world.upstream_at(&format!("refs/heads/{BRANCH}")), Some(commit));
    assert_eq!(ref_at(&elsewhere, &format!("refs/heads/{BRANCH}")), None);
}

/// S-9, S-10: a replaced object is shown to whoever asks the agent's repository, and to nobody else.
#[tokio::test]
async fn replaced_objects_are_not_believed() {
    let world = World::new().await;
    let base = world.begin().await;
    let workdir = world.workdir();
    write(&workdir.join("README.md"), "secret\n");
    git_ok(&workdir, ["add", "-A"]);
    let bad = git_ok(&workdir, ["hash-object", "README.md"]);
    let good = git_ok(&workdir, ["rev-parse", &format!("{base}:README.md")]);
    git_ok(&workdir, ["replace", bad.trim(), good.trim()]);
    assert_eq!(
        git_ok(&workdir, ["cat-file", "blob", bad.trim()]),
        "hello\n",
        "the trap does not work"
    );

    let commit = world.commit(1, &base).await;
    let diff = world.workspace.diff(&world.run, &base, &commit).await.unwrap();
    assert!(diff.rendered.contains("+secret"), "{}", diff.rendered);
    // Even where the host's own repository holds such a ref, the host does not look through it.
    git_ok(
        &world.run_repository(),
        ["update-ref", &format!("refs/replace/{}", bad.trim()), good.trim()],
    );
    let diff = world.workspace.diff(&world.run, &base, &commit).await.unwrap();
    assert!(diff.rendered.contains("+secret"), "{}", diff.rendered);
}

/// The agent's alternates lead the agent's git somewhere, and the host nowhere.
#[tokio::test]
async fn alternates_and_objects_of_the_agent_are_not_used() {
    let world = World::new().await;
    let base = world.begin().await;
    let foreign = world.path().join("foreign");
    git_ok(world.path(), ["init", "--quiet", "foreign"]);
    write(&foreign.join("private"), "of another run\n");
    git_ok(&foreign, ["add", "-A"]);
    git_ok(&foreign, ["commit", "--quiet", "-m", "private"]);
    let blob = git_ok(&foreign, ["rev-parse", "HEAD:private"]);
    let alternates = format!("{}\n", foreign.join(".git/objects").display());
    write(&world.workdir().join(".git/objects/info/alternates"), &alternates);
    git_ok(&world.workdir(), ["cat-file", "-e", blob.trim()]);
    write(&world.workdir().join("a.txt"), "a\n");
    world.commit(1, &base).await;
    assert!(
        !git(&world.run_repository(), ["cat-file", "-e", blob.trim()])
            .status
            .success()
    );
}

/// What lies behind a link is not read, only where the link points.
#[tokio::test]
async fn links_out_of_the_tree_bring_no_content_in() {
    let world = World::with_upstream(&[("kept/a", "a\n"), ("b", "b\n")]).await;
    let base = world.begin().await;
    let secrets = world.path().join("secrets");
    write(&secrets.join("a"), "host secret\n");
    let workdir = world.workdir();
    fs::remove_dir_all(workdir.join("kept")).unwrap();
    symlink(&secrets, workdir.join("kept")).unwrap();
    fs::remove_file(workdir.join("b")).unwrap();
    symlink(secrets.join("a"), workdir.join("b")).unwrap();
    symlink(secrets.join("a"), workdir.join(".gitignore")).unwrap();
    symlink(secrets.join("a"), workdir.join(".gitattributes")).unwrap();
    let commit = world.commit(1, &base).await;
    let files = files_of(&world.run_repository(), commit.as_str());
    assert!(
        files.iter().all(|(_, content)| !content.contains("host secret")),
        "{files:?}"
    );
    assert_eq!(files.len(), 4);
    let checkout = world.workspace.checkout(&world.run, &commit).await.unwrap();
    assert_eq!(fs::read_link(checkout.dir.join("kept")).unwrap(), secrets);
}

/// A message cannot pretend that an effect was performed.
#[tokio::test]
async fn a_forged_trailer_changes_nothing() {
    let world = World::new().await;
    let base = world.begin().await;
    write(&world.workdir().join("a.txt"), "1\n");
    let mut order = world.order(1, &base);
    order.message = "innocent\n\nConductor-Effect: r1.2.0".to_owned();
    world.workspace.commit(&order).await.unwrap();
    let first = world.branch_at().unwrap();
    write(&world.workdir().join("a.txt"), "2\n");
    let second = world.commit(2, &first).await;
    assert_ne!(first, second);
    assert_eq!(
        world.tree(second.as_str())[1],
        ("a.txt".to_owned(), "2\n".to_owned())
    );
}

/// S-7: the branch moves only from the parent that the order names.
#[tokio::test]
async fn a_stale_commit_is_refused() {
    let world = World::new().await;
    let base = world.begin().await;
    write(&world.workdir().join("a.txt"), "1\n");
    let first = world.commit(1, &base).await;
    write(&world.workdir().join("a.txt"), "2\n");
    let fault = world.workspace.commit(&world.order(2, &base)).await.unwrap_err();
    assert_eq!(fault.kind, conductor_domain::fault::FaultKind::Conflict);
    assert_eq!(world.branch_at(), Some(first));
    assert_eq!(
        ref_at(&world.run_repository(), "refs/conductor/effects/r1.2.0"),
        None,
        "nothing was promised"
    );
}

/// S-12: no order can name another branch.
#[tokio::test]
async fn another_branch_is_refused() {
    let world = World::new().await;
    let base = world.begin().await;
    for branch in [
        "main",
        "conductor/run-r2",
        "refs/heads/conductor/run-r1",
        "conductor/run-r1:main",
        "",
    ] {
        let mut order = world.push_order(&base, None);
        order.branch = branch.to_owned();
        let fault = world
            .workspace
            .push(&order, &world.repo(), None)
            .await
            .unwrap_err();
        assert!(fault.what.contains("is not the branch of run r1"), "{fault}");
    }
    assert_eq!(
        git_ok(&world.upstream(), ["for-each-ref", "--format=%(refname)"]),
        "refs/heads/main\n"
    );
}
