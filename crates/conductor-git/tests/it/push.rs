//! What reaches the server, and with which credentials (S-12).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use conductor_domain::fault::FaultKind;
use conductor_domain::id::CommitId;
use conductor_git::{Git, GitWorkspace, Protocol};
use conductor_port::workspace::{GitToken, Prepared, PushOrder, Workspace as _};

use crate::server::{Manner, Server};
use crate::world::{BRANCH, World, git_ok, identity, repo_at, write};

const TOKEN: &str = "ghs_s3cretT0ken";

fn token() -> GitToken {
    GitToken(TOKEN.to_owned())
}

async fn ready() -> (World, CommitId, CommitId) {
    let world = World::new().await;
    let base = world.begin().await;
    write(&world.workdir().join("a.txt"), "a\n");
    let commit = world.commit(1, &base).await;
    (world, base, commit)
}

/// A server that wants the token, over the wire.
#[tokio::test]
async fn fetch_and_push_answer_the_server_with_the_token() {
    let world = World::new().await;
    git_ok(&world.upstream(), ["config", "http.receivepack", "true"]);
    let root = world.path().join("upstream");
    let server = Server::start(Manner::Repositories {
        root,
        token: TOKEN.to_owned(),
    })
    .await;
    let repo = repo_at(&server.url());
    let prepared = world
        .workspace
        .prepare(&world.run, &repo, BRANCH, Some(&token()))
        .await
        .unwrap();
    let Prepared::Ready { base } = prepared else {
        panic!("{prepared:?}")
    };
    world.workspace.reset(&world.run, &base).await.unwrap();
    write(&world.workdir().join("a.txt"), "a\n");
    let commit = world.commit(1, &base).await;
    world
        .workspace
        .push(&world.push_order(&commit, None), &repo, Some(&token()))
        .await
        .unwrap();
    assert_eq!(world.upstream_at(&format!("refs/heads/{BRANCH}")), Some(commit));
    assert!(
        server
            .seen()
            .iter()
            .any(|request| request.line.contains("git-receive-pack"))
    );
    assert!(server.seen().iter().all(|request| !request.line.contains(TOKEN)));
}

#[tokio::test]
async fn a_wrong_or_missing_token_is_named_and_not_shown() {
    let (world, _, commit) = ready().await;
    let root = world.path().join("upstream");
    let server = Server::start(Manner::Repositories {
        root,
        token: "another".to_owned(),
    })
    .await;
    let order = world.push_order(&commit, None);
    for token in [Some(token()), None] {
        let fault = world
            .workspace
            .push(&order, &repo_at(&server.url()), token.as_ref())
            .await
            .unwrap_err();
        assert!(fault.what.contains("refused access"), "{fault}");
        assert!(!fault.what.contains(TOKEN), "{fault}");
    }
}

/// SECURITY §10: a redirect took the token along; now it is not followed, and the other server sees nothing.
#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (world, _, commit) = ready().await;
    let thief = Server::start(Manner::Status(
        "401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"",
    ))
    .await;
    let to = thief.url().trim_end_matches("/o/n.git").to_owned();
    let server = Server::start(Manner::Redirect { to }).await;
    let order = world.push_order(&commit, None);
    let fault = world
        .workspace
        .push(&order, &repo_at(&server.url()), Some(&token()))
        .await
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::Permanent);
    assert!(fault.what.contains("has moved"), "{fault}");
    assert_eq!(server.seen().len(), 1);
    assert_eq!(thief.seen().len(), 0);
}

/// The token stands in no argument and no variable of any process: a look from inside git's place.
#[tokio::test]
async fn the_token_is_in_no_argument_and_no_variable() {
    let (world, _, commit) = ready().await;
    let program = world.path().join("seeing-git");
    let log = world.path().join("seen");
    let script = format!(
        "#!/bin/sh\n{{ env; printf '%s\\n' \"$@\"; }} >>'{}'\nexec git \"$@\"\n",
        log.display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    let git = Git::at(&program, &[Protocol::Http]).await.unwrap();
    let workspace = GitWorkspace::open(&world.data(), git, identity()).unwrap();
    git_ok(&world.upstream(), ["config", "http.receivepack", "true"]);
    let root = world.path().join("upstream");
    let server = Server::start(Manner::Repositories {
        root,
        token: TOKEN.to_owned(),
    })
    .await;
    workspace
        .push(
            &world.push_order(&commit, None),
            &repo_at(&server.url()),
            Some(&token()),
        )
        .await
        .unwrap();
    let seen = fs::read_to_string(log).unwrap();
    assert!(
        seen.contains("GIT_ASKPASS=") && seen.contains("--no-verify"),
        "{seen}"
    );
    assert!(!seen.contains(TOKEN), "{seen}");
    let lease = format!("--force-with-lease=refs/heads/{BRANCH}:");
    assert!(seen.lines().any(|line| line == lease), "{seen}");
    assert!(
        seen.lines().any(|line| line == "--recurse-submodules=no"),
        "{seen}"
    );
    assert!(
        seen.lines()
            .any(|line| *line == format!("{commit}:refs/heads/{BRANCH}")),
        "{seen}"
    );
}

#[tokio::test]
async fn a_branch_that_moved_at_the_server_is_not_overwritten() {
    let (world, base, first) = ready().await;
    let branch = format!("refs/heads/{BRANCH}");
    git_ok(
        &world.people(),
        ["push", "--quiet", "origin", &format!("HEAD:{branch}")],
    );
    let fault = world
        .workspace
        .push(&world.push_order(&first, None), &world.repo(), None)
        .await
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::Conflict);
    assert_eq!(world.upstream_at(&branch), Some(base.clone()));

    world
        .workspace
        .push(&world.push_order(&first, Some(&base)), &world.repo(), None)
        .await
        .unwrap();
    write(&world.workdir().join("a.txt"), "b\n");
    let second = world.commit(2, &first).await;
    write(&world.people().join("theirs"), "x\n");
    git_ok(&world.people(), ["add", "-A"]);
    git_ok(&world.people(), ["commit", "--quiet", "-m", "theirs"]);
    git_ok(
        &world.people(),
        ["push", "--quiet", "--force", "origin", &format!("HEAD:{branch}")],
    );
    let theirs = world.upstream_at(&branch);
    let order = world.push_order(&second, Some(&first));
    let fault = world
        .workspace
        .push(&order, &world.repo(), None)
        .await
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::Conflict);
    assert_eq!(world.upstream_at(&branch), theirs);
}

/// The lease holds at the server, not only in our question before: the branch moves in between.
#[tokio::test]
async fn a_branch_that_moves_during_the_push_is_not_overwritten() {
    let (world, base, commit) = ready().await;
    let branch = format!("refs/heads/{BRANCH}");
    let program = world.path().join("slow-git");
    let script = format!(
        "#!/bin/sh\ncase \" $* \" in *' push '*) git --git-dir='{}' update-ref {branch} {base} ;; esac\nexec git \"$@\"\n",
        world.upstream().display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    let git = Git::at(&program, &[Protocol::File]).await.unwrap();
    let workspace = GitWorkspace::open(&world.data(), git, identity()).unwrap();
    let fault = workspace
        .push(&world.push_order(&commit, None), &world.repo(), None)
        .await
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::Conflict, "{fault}");
    assert_eq!(world.upstream_at(&branch), Some(base));
}

/// GitHub refuses pushes that touch workflows like this; its words reach the operator.
#[tokio::test]
async fn a_refusal_of_the_server_is_told_in_its_words() {
    let (world, _, commit) = ready().await;
    let hook = world.upstream().join("hooks/pre-receive");
    write(&hook, "#!/bin/sh\necho refusing to update workflow >&2\nexit 1\n");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let fault = world
        .workspace
        .push(&world.push_order(&commit, None), &world.repo(), None)
        .await
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::Refused);
    assert!(fault.what.contains("pre-receive hook declined"), "{fault}");
    assert!(fault.what.contains("refusing to update workflow"), "{fault}");
}

#[tokio::test]
async fn only_the_one_branch_is_pushed() {
    let (world, _, commit) = ready().await;
    git_ok(
        &world.run_repository(),
        ["update-ref", "refs/tags/secret", commit.as_str()],
    );
    git_ok(&world.run_repository(), ["config", "push.followTags", "true"]);
    world
        .workspace
        .push(&world.push_order(&commit, None), &world.repo(), None)
        .await
        .unwrap();
    let refs = git_ok(&world.upstream(), ["for-each-ref", "--format=%(refname)"]);
    assert_eq!(refs, format!("refs/heads/{BRANCH}\nrefs/heads/main\n"));
}

/// ENV-3, S-12: a branch is taken away from where Conductor put it and from nowhere else; what others pushed stays.
#[tokio::test]
async fn only_what_conductor_pushed_is_taken_away() {
    let (world, base, commit) = ready().await;
    let name = format!("refs/heads/{BRANCH}");
    let gone = PushOrder {
        commit: None,
        ..world.push_order(&commit, Some(&commit))
    };
    let order = world.push_order(&commit, None);
    world.workspace.push(&order, &world.repo(), None).await.unwrap();
    git_ok(&world.upstream(), ["update-ref", &name, base.as_str()]);
    let fault = world
        .workspace
        .push(&gone, &world.repo(), None)
        .await
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::Conflict);
    assert_eq!(world.upstream_at(&name), Some(base));

    git_ok(&world.upstream(), ["update-ref", &name, commit.as_str()]);
    for _repeated in 0..2 {
        world.workspace.push(&gone, &world.repo(), None).await.unwrap();
        assert_eq!(world.upstream_at(&name), None);
    }
}
