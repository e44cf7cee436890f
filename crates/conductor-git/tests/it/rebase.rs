//! Moving a run's commits onto a base that moved (S-13, BEY-3).

use conductor_domain::fault::FaultKind;
use conductor_port::workspace::{Rebased, Workspace as _};

use crate::world::{World, git_ok, write};

#[tokio::test]
async fn commits_move_with_their_words() {
    let world = World::new().await;
    let base = world.begin().await;
    write(&world.workdir().join("a.txt"), "1\n");
    let first = world.commit(1, &base).await;
    write(&world.workdir().join("a.txt"), "2\n");
    let second = world.commit(2, &first).await;
    write(&world.people().join("README.md"), "theirs\n");
    let moved = world.people_push("moved");

    let done = world
        .workspace
        .rebase(&world.rebase(9, &base, &second), &world.repo(), None)
        .await
        .unwrap();
    let Rebased::Clean { base: onto, head } = done.clone() else {
        panic!("{done:?}")
    };
    assert_eq!((onto, world.branch_at()), (moved.clone(), Some(head.clone())));
    let log = |range: String| {
        git_ok(
            &world.run_repository(),
            ["log", "--format=%an %at %cn %ct %B", &range],
        )
    };
    assert_eq!(log(format!("{moved}..{head}")), log(format!("{base}..{second}")));
    let files = world.tree(head.as_str());
    assert_eq!(files[0], ("README.md".to_owned(), "theirs\n".to_owned()));
    assert_eq!(files[1], ("a.txt".to_owned(), "2\n".to_owned()));

    // If repeated: the base chosen first stays, though upstream moved once more.
    write(&world.people().join("README.md"), "again\n");
    world.people_push("moved again");
    let again = world
        .workspace
        .rebase(&world.rebase(9, &base, &second), &world.repo(), None)
        .await
        .unwrap();
    assert_eq!(again, done);
    git_ok(&world.run_repository(), ["cat-file", "-e", second.as_str()]);
}

/// BEY-3: a rebase that nobody heard of is not taken for the next one of the same commits.
#[tokio::test]
async fn another_rebase_of_the_same_head_goes_where_the_base_stands_then() {
    let world = World::new().await;
    let base = world.begin().await;
    write(&world.workdir().join("a.txt"), "1\n");
    let head = world.commit(1, &base).await;
    for (effect, words) in [(2, "theirs\n"), (3, "theirs again\n")] {
        write(&world.people().join("README.md"), words);
        let moved = world.people_push("moved");
        let done = world
            .workspace
            .rebase(&world.rebase(effect, &base, &head), &world.repo(), None)
            .await
            .unwrap();
        let Rebased::Clean {
            base: onto,
            head: new,
        } = done
        else {
            panic!("{done:?}")
        };
        assert_eq!((onto, world.branch_at()), (moved, Some(new)), "{effect}");
        // It was stopped before its report, and the phase starts over where it stood.
        world.workspace.reset(&world.run, &head).await.unwrap();
        assert_eq!(world.branch_at().as_ref(), Some(&head));
    }
}

#[tokio::test]
async fn a_conflict_names_its_paths_and_moves_nothing() {
    let world = World::with_upstream(&[("a", "1\n"), ("b", "1\n"), ("c", "1\n")]).await;
    let base = world.begin().await;
    write(&world.workdir().join("a"), "ours\n");
    write(&world.workdir().join("b"), "ours\n");
    write(&world.workdir().join("c"), "ours\n");
    let head = world.commit(1, &base).await;
    write(&world.people().join("a"), "theirs\n");
    std::fs::remove_file(world.people().join("b")).unwrap();
    world.people_push("moved");
    let done = world
        .workspace
        .rebase(&world.rebase(9, &base, &head), &world.repo(), None)
        .await
        .unwrap();
    assert_eq!(
        done,
        Rebased::Conflicted {
            paths: vec!["a".to_owned(), "b".to_owned()]
        }
    );
    assert_eq!(world.branch_at(), Some(head));
}

#[tokio::test]
async fn a_base_that_did_not_move_changes_nothing() {
    let world = World::new().await;
    let base = world.begin().await;
    write(&world.workdir().join("a.txt"), "1\n");
    let head = world.commit(1, &base).await;
    let done = world
        .workspace
        .rebase(&world.rebase(9, &base, &head), &world.repo(), None)
        .await
        .unwrap();
    assert_eq!(
        done,
        Rebased::Clean {
            base,
            head: head.clone()
        }
    );
    assert_eq!(world.branch_at(), Some(head));
}

/// Work that upstream has already is dropped, as any rebase does.
#[tokio::test]
async fn what_upstream_has_already_is_not_proposed_again() {
    let world = World::new().await;
    let base = world.begin().await;
    write(&world.workdir().join("a.txt"), "same\n");
    let head = world.commit(1, &base).await;
    write(&world.people().join("a.txt"), "same\n");
    let moved = world.people_push("the same");
    let done = world
        .workspace
        .rebase(&world.rebase(9, &base, &head), &world.repo(), None)
        .await
        .unwrap();
    assert_eq!(
        done,
        Rebased::Clean {
            base: moved.clone(),
            head: moved
        }
    );
}

#[tokio::test]
async fn a_stale_head_is_refused() {
    let world = World::new().await;
    let base = world.begin().await;
    write(&world.workdir().join("a.txt"), "1\n");
    world.commit(1, &base).await;
    world.people_push("moved");
    let fault = world
        .workspace
        .rebase(&world.rebase(9, &base, &base), &world.repo(), None)
        .await
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::Conflict);
}

/// After a rebase the directory still holds the old head; that is no unsaved work.
#[tokio::test]
async fn a_reset_after_a_rebase_saves_nothing() {
    let world = World::new().await;
    let base = world.begin().await;
    write(&world.workdir().join("a.txt"), "1\n");
    let head = world.commit(1, &base).await;
    write(&world.people().join("README.md"), "theirs\n");
    world.people_push("moved");
    let done = world
        .workspace
        .rebase(&world.rebase(9, &base, &head), &world.repo(), None)
        .await
        .unwrap();
    let Rebased::Clean { head: new, .. } = done else {
        panic!("{done:?}")
    };
    let (dir, saved) = world.workspace.reset(&world.run, &new).await.unwrap();
    assert_eq!(saved, None);
    assert_eq!(
        std::fs::read_to_string(dir.join("README.md")).unwrap(),
        "theirs\n"
    );
}

/// BEY-3: what people took out of the base branch does not come back with the work that began on it, whether the branch went
/// on from there or only back.
#[tokio::test]
async fn what_the_base_branch_dropped_stays_dropped() {
    for goes_on in [true, false] {
        let world = World::new().await;
        let people = world.people();
        write(&people.join("leaked.pem"), "a key\n");
        let dropped = world.people_push("a mistake");
        assert_eq!(world.begin().await, dropped);
        write(&world.workdir().join("a.txt"), "1\n");
        let head = world.commit(1, &dropped).await;

        git_ok(&people, ["reset", "--quiet", "--hard", "HEAD~1"]);
        git_ok(&people, ["push", "--quiet", "--force", "origin", "HEAD:main"]);
        if goes_on {
            write(&people.join("README.md"), "theirs\n");
            world.people_push("moved");
        }
        let stands = world.upstream_at("refs/heads/main").unwrap();
        let done = world
            .workspace
            .rebase(&world.rebase(9, &dropped, &head), &world.repo(), None)
            .await
            .unwrap();
        let Rebased::Clean { base, head: new } = done else {
            panic!("{done:?}")
        };
        assert_eq!(
            (base, world.branch_at()),
            (stands, Some(new.clone())),
            "{goes_on}"
        );
        let names: Vec<String> = world.tree(new.as_str()).into_iter().map(|file| file.0).collect();
        assert_eq!(names, ["README.md", "a.txt", "src/lib.rs"], "{goes_on}");
    }
}
