//! What is pushed is what was in the worktree, and what people were shown.

use std::fs;
use std::time::{Duration, SystemTime};

use conductor_executor::Limits;

use crate::ground::{Answer, Canary, Ground, PAYLOAD, Reading, check, check_on};
use crate::world::{World, git_ok, write};

const DONE: Answer = Answer::Committed;

fn bring(ground: &Ground) {
    write(&ground.workdir().join("README.md"), &format!("{PAYLOAD}\n"));
}

/// S-7: the index is made anew, from the parent.
#[tokio::test]
async fn an_index_that_looks_away_is_not_used() {
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        let set = |ground: &Ground| {
            git_ok(&ground.workdir(), ["update-index", flag, "README.md"]);
            bring(ground);
            write(&ground.workdir().join("other"), "something else to commit\n");
        };
        check(Canary::Hid, DONE, set).await;
    }
}

/// S-7: a change that keeps size and time, under settings that look at nothing else.
#[tokio::test]
async fn times_of_files_are_not_believed() {
    let content = format!("{PAYLOAD}\n");
    let blank = "x".repeat(content.len() - 1) + "\n";
    let world = async || World::with_upstream(&[("README.md", &blank)]).await;
    let set = |ground: &Ground| {
        let path = ground.workdir().join("README.md");
        let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_600_000_000);
        let set_time = || {
            fs::File::options()
                .write(true)
                .open(&path)
                .unwrap()
                .set_modified(old)
                .unwrap();
        };
        set_time();
        ground.configure("core.trustctime", "false");
        ground.configure("core.checkStat", "minimal");
        git_ok(&ground.workdir(), ["update-index", "--refresh"]);
        bring(ground);
        set_time();
        write(&ground.workdir().join("other"), "something else to commit\n");
    };
    check_on(world, Limits::default(), Canary::Hid, DONE, set).await;
}

/// S-7: a part of the tree, by the agent's word.
#[tokio::test]
async fn a_sparse_tree_is_read_whole() {
    let set = |ground: &Ground| {
        ground.configure("core.sparseCheckout", "true");
        write(&ground.workdir().join(".git/info/sparse-checkout"), "/src/\n");
        git_ok(&ground.workdir(), ["sparse-checkout", "reapply"]);
        bring(ground);
        write(&ground.workdir().join("src/other"), "something else to commit\n");
    };
    check(Canary::Hid, DONE, set).await;
}

/// S-7: only the repository's own `.gitignore` counts.
#[tokio::test]
async fn files_ignored_beside_the_tree_are_not_ignored() {
    let set = |ground: &Ground| {
        write(&ground.workdir().join("payload"), PAYLOAD);
        write(&ground.workdir().join("other"), "something else to commit\n");
        write(&ground.workdir().join(".git/info/exclude"), "payload\n");
    };
    check(Canary::Hid, DONE, set).await;
    let set = |ground: &Ground| {
        write(&ground.workdir().join("payload"), PAYLOAD);
        write(&ground.workdir().join("list"), "payload\n");
        ground.configure(
            "core.excludesFile",
            &ground.workdir().join("list").display().to_string(),
        );
    };
    check(Canary::Hid, DONE, set).await;
}

/// S-9, S-10: a replaced object is shown to whoever asks the agent's repository, and to nobody else.
#[tokio::test]
async fn replaced_objects_are_not_believed() {
    let set = |ground: &Ground| {
        let workdir = ground.workdir();
        let good = git_ok(&workdir, ["rev-parse", "HEAD:README.md"]);
        bring(ground);
        let bad = git_ok(&workdir, ["hash-object", "-w", "README.md"]);
        git_ok(
            &workdir,
            ["update-ref", &format!("refs/replace/{}", bad.trim()), good.trim()],
        );
    };
    // The naive reader packs what it is shown; so what it is asked here is only what it shows.
    let naive = Ground::new(Reading::Naive).await;
    naive.world.begin().await;
    set(&naive);
    let blob = git_ok(&naive.workdir(), ["hash-object", "README.md"]);
    let shown = git_ok(&naive.workdir(), ["cat-file", "blob", blob.trim()]);
    assert!(!shown.contains(PAYLOAD), "the trap does not work: {shown}");
    let seen = Ground::new(Reading::Sandboxed).await.play(set).await;
    assert!(DONE.is(&seen) && seen.shown.contains(PAYLOAD), "{seen:#?}");
}

/// S-10: `-diff`, by which `git diff` says nothing of a change but that there is one.
#[tokio::test]
async fn a_change_that_asks_not_to_be_shown_is_shown() {
    let set = |ground: &Ground| {
        bring(ground);
        write(&ground.workdir().join(".gitattributes"), "README.md -diff\n");
    };
    check(Canary::Unseen, DONE, set).await;
    let set = |ground: &Ground| {
        bring(ground);
        write(&ground.workdir().join(".git/info/attributes"), "* -diff\n");
    };
    check(Canary::Unseen, DONE, set).await;
}

/// S-10: a NUL byte, by which `git diff` takes a file for a picture.
#[tokio::test]
async fn a_change_that_looks_binary_is_marked() {
    let set = |ground: &Ground| {
        write(&ground.workdir().join("README.md"), &format!("{PAYLOAD}\n\0\n"));
    };
    let naive = Ground::new(Reading::Naive).await.play(set).await;
    assert!(
        !naive.shown.contains(PAYLOAD),
        "the trap does not work: {naive:#?}"
    );
    let seen = Ground::new(Reading::Sandboxed).await.play(set).await;
    assert!(DONE.is(&seen), "{seen:#?}");
    assert!(
        seen.shown.contains(PAYLOAD) || seen.shown.contains("binary"),
        "neither shown nor marked: {}",
        seen.shown
    );
}

/// S-7: names that mean `.git` on other systems. The agent's own git takes them when told to.
#[tokio::test]
async fn names_that_mean_git_are_refused() {
    for name in ["git~1", ".git ", ".g\u{200c}it"] {
        let set = |ground: &Ground| {
            ground.configure("core.protectNTFS", "false");
            ground.configure("core.protectHFS", "false");
            write(
                &ground.workdir().join(name).join("config"),
                "[core]\n\tfsmonitor = evil\n",
            );
        };
        let naive = Ground::new(Reading::Naive).await;
        naive.world.begin().await;
        set(&naive);
        git_ok(&naive.workdir(), ["add", "-A"]);
        let listed = git_ok(&naive.workdir(), ["ls-files", "-z"]);
        assert!(
            listed.contains(&format!("{name}/config")),
            "the trap does not work: {listed:?}"
        );
        let seen = Ground::new(Reading::Sandboxed).await.play(set).await;
        assert!(
            Answer::Refused("could not be read whole").is(&seen),
            "{name:?}: {seen:#?}"
        );
    }
}

/// S-7, S-13: a list of submodules that means a command.
#[tokio::test]
async fn submodules_that_mean_a_command_are_refused() {
    let set = |ground: &Ground| {
        let modules = "[submodule \"x\"]\n\tpath = x\n\turl = -u./payload\n";
        write(&ground.workdir().join(".gitmodules"), modules);
    };
    let naive = Ground::new(Reading::Naive).await;
    naive.world.begin().await;
    set(&naive);
    git_ok(&naive.workdir(), ["add", "-A"]);
    git_ok(
        &naive.workdir(),
        ["commit", "--quiet", "-m", "the agent's own git takes it"],
    );
    let seen = Ground::new(Reading::Sandboxed).await.play(set).await;
    assert!(Answer::Refused("git refuses").is(&seen), "{seen:#?}");
}
