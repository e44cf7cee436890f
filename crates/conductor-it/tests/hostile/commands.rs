//! Nothing in a worktree makes the host run a command: what can be named in a repository's settings, and where.

use std::fs;
use std::os::unix::fs::symlink;

use crate::ground::{Answer, Canary, Ground, check, check_on};
use crate::world::{World, git_ok, ref_at, write};

const RAN: Canary = Canary::Ran;
const DONE: Answer = Answer::Committed;

fn change(ground: &Ground) {
    write(&ground.workdir().join("README.md"), "changed\n");
}

/// S-4, S-6.
#[tokio::test]
async fn a_rewritten_git_directory_is_not_read() {
    let set = |ground: &Ground| {
        change(ground);
        fs::remove_dir_all(ground.workdir().join(".git")).unwrap();
        git_ok(&ground.workdir(), ["init", "--quiet"]);
        ground.arm(&ground.workdir(), "core.fsmonitor");
    };
    check(RAN, DONE, set).await;
}

/// S-4: `core.fsmonitor=false` on the command line holds in the top repository only.
#[tokio::test]
async fn a_monitor_is_not_started() {
    let set = |ground: &Ground| {
        change(ground);
        ground.arm(&ground.workdir(), "core.fsmonitor");
    };
    check(RAN, DONE, set).await;
}

/// S-4, S-6.
#[tokio::test]
async fn a_git_directory_that_is_a_file_is_not_followed() {
    let set = |ground: &Ground| {
        change(ground);
        let workdir = ground.workdir();
        ground.arm(&workdir, "core.fsmonitor");
        fs::rename(workdir.join(".git"), workdir.join("hidden")).unwrap();
        write(&workdir.join(".git"), "gitdir: hidden\n");
    };
    check(RAN, DONE, set).await;
}

/// S-4, S-6.
#[tokio::test]
async fn a_git_directory_that_is_a_link_is_not_followed() {
    let set = |ground: &Ground| {
        change(ground);
        let workdir = ground.workdir();
        ground.arm(&workdir, "core.fsmonitor");
        fs::rename(workdir.join(".git"), ground.host().join("elsewhere")).unwrap();
        symlink(ground.host().join("elsewhere"), workdir.join(".git")).unwrap();
    };
    check(RAN, DONE, set).await;
}

/// S-4: `commondir` redirected.
#[tokio::test]
async fn a_redirected_configuration_is_not_read() {
    let set = |ground: &Ground| {
        change(ground);
        let workdir = ground.workdir();
        fs::rename(workdir.join(".git"), workdir.join("common")).unwrap();
        ground.arm(&workdir.join("common"), "core.fsmonitor");
        fs::create_dir(workdir.join(".git")).unwrap();
        for file in ["HEAD", "index"] {
            fs::copy(workdir.join("common").join(file), workdir.join(".git").join(file)).unwrap();
        }
        write(&workdir.join(".git/commondir"), "../common\n");
    };
    check(RAN, DONE, set).await;
}

/// S-4: `config.worktree`.
#[tokio::test]
async fn a_second_configuration_is_not_read() {
    let set = |ground: &Ground| {
        change(ground);
        ground.configure("core.repositoryFormatVersion", "1");
        ground.configure("extensions.worktreeConfig", "true");
        let text = format!("[core]\nfsmonitor = {}\n", ground.trap().display());
        write(&ground.workdir().join(".git/config.worktree"), &text);
    };
    check(RAN, DONE, set).await;
}

/// S-4, S-9: includes, with and without a condition.
#[tokio::test]
async fn an_included_configuration_is_not_read() {
    for key in ["include.path", "includeIf.gitdir:**.path"] {
        let set = |ground: &Ground| {
            change(ground);
            let text = format!("[core]\nfsmonitor = {}\n", ground.trap().display());
            write(&ground.workdir().join("included"), &text);
            ground.configure(key, "../included");
        };
        check(RAN, DONE, set).await;
    }
}

/// S-9: `--no-verify` keeps four hooks.
#[tokio::test]
async fn hooks_are_not_run() {
    let set = |ground: &Ground| {
        change(ground);
        for hook in ["post-index-change", "reference-transaction", "post-commit"] {
            let path = ground.workdir().join(".git/hooks").join(hook);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::copy(ground.trap(), path).unwrap();
        }
    };
    check(RAN, DONE, set).await;
}

/// S-9.
#[tokio::test]
async fn hooks_of_another_directory_are_not_run() {
    let set = |ground: &Ground| {
        change(ground);
        let hooks = ground.workdir().join("hooks");
        fs::create_dir(&hooks).unwrap();
        fs::copy(ground.trap(), hooks.join("post-index-change")).unwrap();
        ground.configure("core.hooksPath", "hooks");
    };
    check(RAN, DONE, set).await;
}

/// S-4: the row on which `--no-ext-diff --no-textconv` did not help.
#[tokio::test]
async fn filters_are_not_run() {
    let set = |ground: &Ground| {
        change(ground);
        ground.arm(&ground.workdir(), "filter.evil.clean");
        write(&ground.workdir().join(".gitattributes"), "* filter=evil\n");
    };
    check(RAN, DONE, set).await;
}

/// S-4: `info/attributes`, which `--attr-source` does not reach, and a filter that stays alive.
#[tokio::test]
async fn filters_named_beside_the_tree_are_not_run() {
    let set = |ground: &Ground| {
        change(ground);
        ground.arm(&ground.workdir(), "filter.evil.process");
        ground.arm(&ground.workdir(), "filter.evil.clean");
        write(&ground.workdir().join(".git/info/attributes"), "* filter=evil\n");
    };
    check(RAN, DONE, set).await;
}

/// S-4: attributes of a file that the settings name.
#[tokio::test]
async fn attributes_of_another_file_are_not_followed() {
    let set = |ground: &Ground| {
        change(ground);
        ground.arm(&ground.workdir(), "filter.evil.clean");
        write(&ground.workdir().join("attributes"), "* filter=evil\n");
        let path = ground.workdir().join("attributes").display().to_string();
        ground.configure("core.attributesFile", &path);
    };
    check(RAN, DONE, set).await;
}

/// S-10.
#[tokio::test]
async fn programs_for_differences_are_not_run() {
    for setting in ["diff.external", "diff.evil.textconv", "diff.evil.command"] {
        let set = |ground: &Ground| {
            change(ground);
            ground.arm(&ground.workdir(), setting);
            write(&ground.workdir().join(".gitattributes"), "* diff=evil\n");
        };
        check(RAN, DONE, set).await;
    }
}

/// S-9.
#[tokio::test]
async fn a_signing_program_is_not_run() {
    let set = |ground: &Ground| {
        change(ground);
        ground.configure("commit.gpgSign", "true");
        ground.arm(&ground.workdir(), "gpg.program");
    };
    check(RAN, DONE, set).await;
}

/// S-4: the row on which every flag failed; git enters a nested repository that it knows as a gitlink.
#[tokio::test]
async fn a_nested_repository_is_not_entered() {
    let set = |ground: &Ground| {
        let nested = ground.workdir().join("nested");
        write(&nested.join("file"), "content\n");
        git_ok(&nested, ["init", "--quiet"]);
        git_ok(&nested, ["add", "-A"]);
        git_ok(&nested, ["commit", "--quiet", "-m", "nested"]);
        ground.arm(&nested, "core.fsmonitor");
        ground.arm(&nested, "filter.evil.clean");
        write(&nested.join(".gitattributes"), "* filter=evil\n");
        write(&nested.join("file"), "changed\n");
    };
    check(RAN, DONE, set).await;
}

/// S-13: the same where upstream has a submodule at that place.
#[tokio::test]
async fn a_filled_submodule_is_not_entered() {
    let fill = |module: &std::path::Path| {
        write(&module.join("file"), "content\n");
        git_ok(module, ["init", "--quiet"]);
        git_ok(module, ["add", "-A"]);
        git_ok(
            module,
            ["commit", "--quiet", "-m", "the same wherever it is made"],
        );
    };
    let world = async || {
        let world = World::new().await;
        let elsewhere = world.path().join("module");
        fill(&elsewhere);
        let link = format!("160000,{},module", ref_at(&elsewhere, "HEAD").unwrap());
        git_ok(&world.people(), ["update-index", "--add", "--cacheinfo", &link]);
        git_ok(&world.people(), ["commit", "--quiet", "-m", "a submodule"]);
        git_ok(&world.people(), ["push", "--quiet", "origin", "HEAD:main"]);
        world
    };
    let set = |ground: &Ground| {
        change(ground);
        let module = ground.workdir().join("module");
        fill(&module);
        ground.arm(&module, "filter.evil.clean");
        write(&module.join(".git/info/attributes"), "* filter=evil\n");
        write(&module.join("file"), "changed\n");
    };
    check_on(world, conductor_executor::Limits::default(), RAN, DONE, set).await;
}

/// S-12: `insteadOf` to a transport that is a command, and the program of a transport.
#[tokio::test]
async fn transports_are_not_run() {
    let set = |ground: &Ground| {
        change(ground);
        let url = format!("ext::{} %S", ground.trap().display());
        ground.configure("remote.origin.url", "https://example.invalid/o/n");
        ground.configure("protocol.ext.allow", "always");
        ground.configure(&format!("url.{url}.insteadOf"), "https://example.invalid/o/n");
    };
    check(RAN, DONE, set).await;
    let set = |ground: &Ground| {
        change(ground);
        ground.configure("remote.origin.url", "ssh://example.invalid/o/n");
        ground.arm(&ground.workdir(), "core.sshCommand");
    };
    check(RAN, DONE, set).await;
}

/// S-9: a missing object is not fetched from a remote that the agent named.
#[tokio::test]
async fn missing_objects_are_not_fetched() {
    let set = |ground: &Ground| {
        change(ground);
        ground.configure("core.repositoryFormatVersion", "1");
        ground.configure("extensions.partialClone", "origin");
        ground.configure("remote.origin.promisor", "true");
        ground.configure("protocol.ext.allow", "always");
        ground.configure(
            "remote.origin.url",
            &format!("ext::{} %S", ground.trap().display()),
        );
        // The index names what is nowhere.
        let nowhere = format!("100644,{},lost", "1".repeat(40));
        git_ok(
            &ground.workdir(),
            ["update-index", "--add", "--cacheinfo", &nowhere],
        );
    };
    check(RAN, DONE, set).await;
}
