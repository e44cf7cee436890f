//! What a run does with its repository when all goes well, and when it is asked twice.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use conductor_port::workspace::{CommitOrder, Committed, Prepared, Workspace as _};

use crate::world::{BRANCH, World, files_in, files_of, git_ok, ref_at, write};

/// RUN-8, RUN-9, S-12, S-17.
#[tokio::test]
async fn work_goes_from_the_base_to_a_commit_to_a_checkout_to_the_server() {
    let world = World::new().await;
    let base = world.begin().await;
    assert_eq!(Some(&base), world.upstream_at("refs/heads/main").as_ref());
    assert_eq!(files_in(&world.workdir()), files_of(&world.upstream(), "main"));

    write(&world.workdir().join("src/lib.rs"), "pub fn one() -> u32 { 2 }\n");
    write(&world.workdir().join("new.txt"), "new\n");
    fs::remove_file(world.workdir().join("README.md")).unwrap();
    let commit = world.commit(1, &base).await;
    let expected = vec![
        ("new.txt".to_owned(), "new\n".to_owned()),
        ("src/lib.rs".to_owned(), "pub fn one() -> u32 { 2 }\n".to_owned()),
    ];
    assert_eq!(world.tree(commit.as_str()), expected);
    assert_eq!(world.branch_at().as_ref(), Some(&commit));

    let checkout = world.workspace.checkout(&world.run, &commit).await.unwrap();
    assert_eq!(files_in(&checkout.dir), expected);
    assert!(!checkout.dir.join(".git").exists());
    let dir = checkout.dir.clone();
    drop(checkout);
    assert!(!dir.exists());

    world
        .workspace
        .push(&world.push_order(&commit, None), &world.repo(), None)
        .await
        .unwrap();
    assert_eq!(
        world.upstream_at(&format!("refs/heads/{BRANCH}")),
        Some(commit.clone())
    );
    let shown = git_ok(
        &world.upstream(),
        ["show", "--no-patch", "--format=%an <%ae> %ct%n%cn%n%B", BRANCH],
    );
    assert_eq!(
        shown.trim_end(),
        "Conductor <conductor@localhost> 1700000000\nConductor\nchange 1\n\nConductor-Effect: r1.1.0"
    );

    let saved = world.workspace.clean_up(&world.run, &world.repo()).await.unwrap();
    assert_eq!(saved, None);
    assert!(!world.workdir().exists());
}

/// RUN-4: asked twice, done once.
#[tokio::test]
async fn every_order_can_be_repeated() {
    let world = World::new().await;
    let base = world.begin().await;
    write(&world.people().join("later.txt"), "upstream moved\n");
    world.people_push("second");
    let again = world
        .workspace
        .prepare(&world.run, &world.repo(), BRANCH, None)
        .await
        .unwrap();
    assert_eq!(again, Prepared::Ready { base: base.clone() });

    write(&world.workdir().join("a.txt"), "a\n");
    let commit = world.commit(1, &base).await;
    write(&world.workdir().join("a.txt"), "changed since\n");
    assert_eq!(world.commit(1, &base).await, commit);
    assert_eq!(world.branch_at(), Some(commit.clone()));

    let order = world.push_order(&commit, None);
    world.workspace.push(&order, &world.repo(), None).await.unwrap();
    world.workspace.push(&order, &world.repo(), None).await.unwrap();

    let saved = world.workspace.clean_up(&world.run, &world.repo()).await.unwrap();
    assert_eq!(saved.as_deref(), Some("refs/conductor/saved/1"));
    assert_eq!(
        world.workspace.clean_up(&world.run, &world.repo()).await.unwrap(),
        saved
    );
}

/// RUN-4: an earlier effect's answer stays the same after later ones.
#[tokio::test]
async fn an_earlier_commit_is_found_after_a_later_one() {
    let world = World::new().await;
    let base = world.begin().await;
    write(&world.workdir().join("a.txt"), "1\n");
    let first = world.commit(1, &base).await;
    write(&world.workdir().join("a.txt"), "2\n");
    let second = world.commit(2, &first).await;
    assert_eq!(world.commit(1, &base).await, first);
    assert_eq!(world.branch_at(), Some(second));
}

#[tokio::test]
async fn nothing_changed_is_nothing_to_commit() {
    let world = World::new().await;
    let base = world.begin().await;
    assert_eq!(
        world.workspace.commit(&world.order(1, &base)).await.unwrap(),
        Committed::Nothing
    );
    assert_eq!(world.branch_at(), Some(base));
}

/// SEC-4: a commit can take the place of those before it; they stay at hand and are in nobody's way, and a repeat finds it.
#[tokio::test]
async fn a_commit_takes_the_place_of_those_before_it() {
    let world = World::new().await;
    let base = world.begin().await;
    write(&world.workdir().join("a.txt"), "a\n");
    write(&world.workdir().join("secret.txt"), "secret\n");
    let first = world.commit(1, &base).await;
    fs::remove_file(world.workdir().join("secret.txt")).unwrap();
    let second = world.commit(2, &first).await;

    // Nothing changed since the second, and all the same there is something to commit: onto the base.
    let order = CommitOrder {
        onto: Some(base.clone()),
        ..world.order(3, &second)
    };
    let made = world.workspace.commit(&order).await.unwrap();
    let Committed::Commit { commit, .. } = &made else {
        panic!("{made:?}")
    };
    let repo = world.run_repository();
    let range = format!("{base}..{BRANCH}");
    assert_eq!(git_ok(&repo, ["rev-list", &range]), format!("{commit}\n"));
    let changed = git_ok(&repo, ["diff", "--name-only", base.as_str(), commit.as_str()]);
    assert_eq!(changed, "a.txt\n");
    assert_eq!(git_ok(&repo, ["cat-file", "-t", first.as_str()]), "commit\n");
    assert_eq!(world.workspace.commit(&order).await.unwrap(), made);
    assert_eq!(git_ok(&repo, ["rev-list", &range]), format!("{commit}\n"));

    // What the base holds already is nothing, whatever the branch stood at.
    fs::remove_file(world.workdir().join("a.txt")).unwrap();
    let back = CommitOrder {
        onto: Some(base),
        ..world.order(4, commit)
    };
    assert_eq!(world.workspace.commit(&back).await.unwrap(), Committed::Nothing);
}

/// Taking a change back brings no new object at all.
#[tokio::test]
async fn a_change_can_be_taken_back() {
    let world = World::new().await;
    let base = world.begin().await;
    write(&world.workdir().join("README.md"), "changed\n");
    let first = world.commit(1, &base).await;
    write(&world.workdir().join("README.md"), "hello\n");
    let second = world.commit(2, &first).await;
    assert_eq!(world.tree(second.as_str()), files_of(&world.upstream(), "main"));
}

/// S-6: the agent's own git works, and starts from a clean state.
#[tokio::test]
async fn the_agents_git_works_in_the_working_directory() {
    let world = World::new().await;
    let base = world.begin().await;
    let workdir = world.workdir();
    assert_eq!(git_ok(&workdir, ["status", "--porcelain"]), "");
    assert_eq!(git_ok(&workdir, ["rev-parse", "HEAD"]).trim(), base.as_str());
    assert_eq!(git_ok(&workdir, ["branch", "--show-current"]).trim(), BRANCH);
    write(&workdir.join("README.md"), "changed\n");
    assert!(git_ok(&workdir, ["diff"]).contains("+changed"));
    git_ok(&workdir, ["commit", "--quiet", "-am", "the agent's own"]);
    assert_eq!(
        world.branch_at(),
        Some(base.clone()),
        "the agent's commit is nobody's but its own"
    );
    let commit = world.commit(1, &base).await;
    assert_eq!(
        world.tree(commit.as_str())[0],
        ("README.md".to_owned(), "changed\n".to_owned())
    );
}

/// ENV-1, S-5: upstream's branches and tags, no run's branch, readable by the owner only.
#[tokio::test]
async fn the_base_mirrors_upstream_and_nothing_else() {
    let world = World::new().await;
    git_ok(
        &world.people(),
        ["push", "--quiet", "origin", "HEAD:refs/heads/gone"],
    );
    git_ok(
        &world.people(),
        ["push", "--quiet", "origin", "HEAD:refs/heads/conductor/run-other"],
    );
    git_ok(
        &world.people(),
        ["push", "--quiet", "origin", "HEAD:refs/pull/1/head"],
    );
    git_ok(
        &world.people(),
        ["push", "--quiet", "origin", "HEAD:refs/tags/v1"],
    );
    world.begin().await;
    let base = world.data().join("repos/localhost/o/n");
    let refs = || git_ok(&base, ["for-each-ref", "--format=%(refname)"]);
    assert_eq!(refs(), "refs/heads/gone\nrefs/heads/main\nrefs/tags/v1\n");
    git_ok(&world.people(), ["push", "--quiet", "origin", ":refs/heads/gone"]);
    let other = conductor_domain::id::RunId::parse("r2").unwrap();
    world
        .workspace
        .prepare(&other, &world.repo(), "conductor/run-r2", None)
        .await
        .unwrap();
    assert_eq!(refs(), "refs/heads/main\nrefs/tags/v1\n");
    for private in [
        "",
        "repos",
        "runs",
        "worktrees",
        "repos/localhost/o",
        "repos/localhost/o/n",
    ] {
        let mode = fs::metadata(world.data().join(private))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700, "{private}");
    }
}

/// A base object that upstream forgot is still there for the run that started from it.
#[tokio::test]
async fn a_run_keeps_its_base_when_upstream_rewrites_history() {
    let world = World::new().await;
    let base = world.begin().await;
    git_ok(
        &world.people(),
        ["commit", "--quiet", "--amend", "-m", "rewritten"],
    );
    git_ok(
        &world.people(),
        ["push", "--quiet", "--force", "origin", "HEAD:main"],
    );
    let other = conductor_domain::id::RunId::parse("r2").unwrap();
    world
        .workspace
        .prepare(&other, &world.repo(), "conductor/run-r2", None)
        .await
        .unwrap();
    assert_ne!(
        ref_at(&world.data().join("repos/localhost/o/n"), "refs/heads/main"),
        Some(base.clone())
    );
    write(&world.workdir().join("a.txt"), "a\n");
    let commit = world.commit(1, &base).await;
    git_ok(&world.run_repository(), ["fsck", "--strict", commit.as_str()]);
}

#[tokio::test]
async fn repositories_with_long_ids_work_the_same() {
    let world = World::without_upstream().await;
    git_ok(
        world.path(),
        [
            "init",
            "--quiet",
            "--bare",
            "--object-format=sha256",
            "-b",
            "main",
            "upstream/o/n.git",
        ],
    );
    git_ok(world.path(), ["clone", "--quiet", "upstream/o/n.git", "people"]);
    write(&world.people().join("README.md"), "hello\n");
    world.people_push("first");
    let base = world.begin().await;
    assert_eq!(base.as_str().len(), 64);
    assert_eq!(git_ok(&world.workdir(), ["status", "--porcelain"]), "");
    write(&world.workdir().join("a.txt"), "a\n");
    let commit = world.commit(1, &base).await;
    world
        .workspace
        .push(&world.push_order(&commit, None), &world.repo(), None)
        .await
        .unwrap();
    assert_eq!(world.upstream_at(&format!("refs/heads/{BRANCH}")), Some(commit));
}

/// RUN-11: a commit that nobody heard of, because it was told to stop, keeps no run from going on, and is not lost.
#[tokio::test]
async fn work_goes_on_from_where_the_run_stands() {
    let world = World::new().await;
    let base = world.begin().await;
    write(&world.workdir().join("a.txt"), "unheard\n");
    let unheard = world.commit(1, &base).await;
    world.workspace.reset(&world.run, &base).await.unwrap();
    assert_eq!(world.branch_at(), Some(base.clone()));
    write(&world.workdir().join("a.txt"), "heard\n");
    let heard = world.commit(2, &base).await;
    assert_eq!(world.branch_at(), Some(heard.clone()));
    assert!(
        world
            .tree(heard.as_str())
            .contains(&("a.txt".to_owned(), "heard\n".to_owned()))
    );
    let refs = git_ok(
        &world.run_repository(),
        ["for-each-ref", "--points-at", unheard.as_str()],
    );
    assert!(refs.contains("refs/conductor/effects/"), "{refs}");
}
