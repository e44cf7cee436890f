//! Bad input and a world that fails, each by its name.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use conductor_domain::fault::FaultKind;
use conductor_domain::id::CommitId;
use conductor_git::{Git, GitWorkspace, Protocol};
use conductor_port::workspace::{Prepared, Workspace as _};

use crate::server::{Manner, Server};
use crate::world::{BRANCH, World, files_in, git_ok, identity, repo_at, write};

async fn impossible(world: &World, repo: conductor_domain::spec::RepoRef) -> String {
    match world
        .workspace
        .prepare(&world.run, &repo, BRANCH, None)
        .await
        .unwrap()
    {
        Prepared::Impossible { why } => why,
        Prepared::Ready { base } => panic!("ready at {base}"),
    }
}

/// RUN-1: what can never be set up is said at once.
#[tokio::test]
async fn repositories_that_can_never_be_worked_on_are_named() {
    let world = World::new().await;
    git_ok(
        world.path(),
        ["init", "--quiet", "--bare", "upstream/o/empty.git"],
    );
    let at = |name: &str| repo_at(&format!("file://{}/upstream/o/{name}", world.path().display()));
    assert!(
        impossible(&world, at("empty.git"))
            .await
            .contains("is empty; push a first commit")
    );
    assert!(
        impossible(&world, at("missing.git"))
            .await
            .contains("there is no repository at")
    );
    let mut repo = world.repo();
    for branch in ["nope", "ma", "m*", "main/", "../heads/main", ""] {
        repo.base_branch = branch.to_owned();
        let why = impossible(&world, repo.clone()).await;
        assert!(why.contains(&format!("has no branch `{branch}`")), "{why}");
    }
    assert!(
        impossible(&world, repo_at("ext::sh -c id"))
            .await
            .contains("is not a repository address")
    );
    git_ok(
        &world.people(),
        ["push", "--quiet", "origin", &format!("HEAD:refs/heads/{BRANCH}")],
    );
    assert!(impossible(&world, world.repo()).await.contains("exists already"));
    assert!(!world.workdir().exists());
}

/// An empty repository that gets its first commit later is no longer refused.
#[tokio::test]
async fn an_empty_repository_can_be_filled_and_tried_again() {
    let world = World::without_upstream().await;
    git_ok(
        world.path(),
        ["init", "--quiet", "--bare", "-b", "main", "upstream/o/n.git"],
    );
    impossible(&world, world.repo()).await;
    git_ok(world.path(), ["clone", "--quiet", "upstream/o/n.git", "people"]);
    world.people_push("first");
    world.begin().await;
}

#[tokio::test]
async fn a_server_that_is_down_is_asked_again_later() {
    let world = World::new().await;
    let down = {
        let server = Server::start(Manner::Status("200 OK")).await;
        server.url()
    };
    let broken = Server::start(Manner::Status("503 Service Unavailable")).await;
    let limited = Server::start(Manner::Status("429 Too Many Requests")).await;
    for url in [down, broken.url(), limited.url()] {
        let fault = world
            .workspace
            .prepare(&world.run, &repo_at(&url), BRANCH, None)
            .await
            .unwrap_err();
        assert!(matches!(fault.kind, FaultKind::Transient { .. }), "{fault:?}");
        assert!(fault.what.contains("cannot be reached"), "{fault}");
    }
    let gone = Server::start(Manner::Status("404 Not Found")).await;
    assert!(
        impossible(&world, repo_at(&gone.url()))
            .await
            .contains("there is no repository")
    );
}

/// S-9: a transport that is not allowed is not tried.
#[tokio::test]
async fn only_allowed_transports_are_used() {
    let world = World::new().await;
    let git = Git::find(&[Protocol::Https]).await.unwrap();
    let strict = GitWorkspace::open(&world.data(), git, identity()).unwrap();
    let server = Server::start(Manner::Status("200 OK")).await;
    for url in [server.url(), world.repo().clone_url] {
        let answer = strict
            .prepare(&world.run, &repo_at(&url), BRANCH, None)
            .await
            .unwrap();
        let Prepared::Impossible { why } = answer else {
            panic!("{answer:?}")
        };
        assert!(why.contains("transport is not allowed"), "{why}");
    }
    assert_eq!(server.seen().len(), 0);
}

/// The disk fills up while a snapshot is taken in: nothing is removed, nothing moves, and later all goes well.
#[tokio::test]
async fn a_full_disk_loses_nothing() {
    let world = World::new().await;
    let base = world.begin().await;
    write(&world.workdir().join("a.txt"), "a\n");
    let left = files_in(&world.workdir());
    for verb in ["index-pack", "commit-tree", "update-ref"] {
        let program = world.path().join("full-git");
        let script = format!(
            "#!/bin/sh\ncase \" $* \" in *' {verb} '*) cat >/dev/null; \
             echo 'fatal: write error: No space left on device' >&2; exit 128 ;; esac\nexec git \"$@\"\n"
        );
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        let git = Git::at(&program, &[Protocol::File]).await.unwrap();
        let full = GitWorkspace::open(&world.data(), git, identity()).unwrap();
        for fault in [
            full.commit(&world.order(1, &base)).await.unwrap_err(),
            full.clean_up(&world.run, &world.repo()).await.unwrap_err(),
        ] {
            assert!(
                matches!(fault.kind, FaultKind::Transient { .. }),
                "{verb}: {fault:?}"
            );
            assert!(
                fault.what.contains("no room is left on the disk"),
                "{verb}: {fault}"
            );
        }
        assert_eq!(files_in(&world.workdir()), left);
        assert_eq!(world.branch_at(), Some(base.clone()));
    }
    world.commit(1, &base).await;
}

#[tokio::test]
async fn a_run_that_is_not_there_is_named() {
    let world = World::new().await;
    let commit = CommitId::parse("1".repeat(40)).unwrap();
    let fault = world.workspace.reset(&world.run, &commit).await.unwrap_err();
    assert!(fault.what.contains("run r1 has no repository"), "{fault}");
    let base = world.begin().await;
    for fault in [
        world.workspace.reset(&world.run, &commit).await.unwrap_err(),
        world.workspace.checkout(&world.run, &commit).await.unwrap_err(),
        world
            .workspace
            .diff(&world.run, &base, &commit)
            .await
            .unwrap_err(),
        world
            .workspace
            .push(&world.push_order(&commit, None), &world.repo(), None)
            .await
            .unwrap_err(),
    ] {
        assert!(fault.what.contains(&format!("has no commit {commit}")), "{fault}");
    }
}

/// What cannot stand in a commit is refused before git sees it.
#[tokio::test]
async fn a_message_with_a_nul_byte_is_refused() {
    let world = World::new().await;
    let base = world.begin().await;
    write(&world.workdir().join("a.txt"), "a\n");
    let mut order = world.order(1, &base);
    order.message = "a\0b".to_owned();
    let fault = world.workspace.commit(&order).await.unwrap_err();
    assert!(fault.what.contains("may not hold a NUL byte"), "{fault}");
    assert_eq!(world.branch_at(), Some(base));
}

/// Ten runs begin at once on a repository that was never cloned.
#[tokio::test]
async fn runs_that_begin_together_share_one_clone() {
    let world = World::new().await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..10 {
        let (workspace, repo) = (world.workspace.clone(), world.repo());
        tasks.spawn(async move {
            let run = conductor_domain::id::RunId::parse(format!("c{number}")).unwrap();
            workspace
                .prepare(&run, &repo, &format!("conductor/run-{run}"), None)
                .await
        });
    }
    let base = world.upstream_at("refs/heads/main").unwrap();
    while let Some(prepared) = tasks.join_next().await {
        assert_eq!(prepared.unwrap().unwrap(), Prepared::Ready { base: base.clone() });
    }
}
