//! A worktree can neither make its reader wait for ever nor fill the host's disk.

use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixListener;
use std::path::Path;

use conductor_executor::Limits;
use conductor_port::workspace::Workspace as _;
use nix::sys::stat::{Mode, SFlag, mknod};

use crate::ground::{Answer, Canary, Ground, PAYLOAD, Reading, check, check_by_path, check_on};
use crate::world::{World, git_ok, write};

fn pipe(path: &Path) {
    let _ = fs::remove_file(path);
    mknod(path, SFlag::S_IFIFO, Mode::S_IRWXU, 0).unwrap();
}

/// S-46 for git: it opens `.gitignore` and `.gitattributes` by name, whatever they are, and would wait for a writer.
#[tokio::test]
async fn settings_that_are_pipes_are_refused_by_name() {
    for name in [".gitignore", "src/.gitattributes"] {
        let set = |ground: &Ground| {
            write(&ground.workdir().join("README.md"), "changed\n");
            pipe(&ground.workdir().join(name));
        };
        check(Canary::Hung, Answer::Refused(name), set).await;
    }
}

/// S-46 for git: pipes, sockets and devices are not content, wherever they stand; whoever opens them by path waits for ever.
#[tokio::test]
async fn pipes_sockets_and_devices_are_no_content() {
    let set = |ground: &Ground| {
        let workdir = ground.workdir();
        write(&workdir.join("README.md"), "changed\n");
        pipe(&workdir.join("pipe"));
        // The name of a socket has at most 107 bytes; what is bound stays when nobody listens any more.
        let near = fs::File::open(&workdir).unwrap();
        let short = format!("/proc/self/fd/{}/socket", near.as_raw_fd());
        drop(UnixListener::bind(short).unwrap());
        let zero = nix::sys::stat::makedev(1, 5);
        mknod(&workdir.join("device"), SFlag::S_IFCHR, Mode::S_IRWXU, zero).expect("needs root: a device");
    };
    let seen = check_by_path(Canary::Hung, Answer::Committed, set).await;
    let names: Vec<&str> = seen.files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["README.md", "src/lib.rs"]);
}

const MIB: u64 = 1024 * 1024;

/// S-7: what git writes while it reads is bounded; nothing of it stays on the host.
#[tokio::test]
async fn a_tree_that_is_larger_than_its_room_is_refused() {
    let limits = Limits {
        temporary: 4 * MIB,
        ..Limits::default()
    };
    let set = |ground: &Ground| {
        let mut noise = fs::File::open("/dev/urandom").unwrap();
        let mut file = fs::File::create(ground.workdir().join("large")).unwrap();
        std::io::copy(&mut std::io::Read::take(&mut noise, 12 * MIB), &mut file).unwrap();
    };
    let answer = Answer::Refused("larger than the room that a sandbox has");
    check_on(World::new, limits, Canary::Filled, answer, set).await;
}

/// S-7: and so is their number.
#[tokio::test]
async fn a_tree_of_too_many_files_is_refused() {
    let set = |ground: &Ground| {
        for number in 0..300 {
            write(
                &ground.workdir().join(format!("many/{number}")),
                &number.to_string(),
            );
        }
    };
    let few = conductor_git::Limits {
        objects: 100,
        ..conductor_git::Limits::default()
    };
    let mut ground = Ground::new(Reading::Sandboxed).await;
    assert!(
        Canary::Filled.sings(&ground.play(set).await),
        "300 files are no attack by themselves"
    );
    ground = Ground::new(Reading::Sandboxed).await;
    ground.world.workspace = ground.world.workspace.clone().with_limits(few);
    let seen = ground.play(set).await;
    assert!(Answer::Refused("larger than 100 objects").is(&seen), "{seen:#?}");
}

/// S-7: work in nested repositories is kept as plain files, whatever their names are; git would leave all of it out.
#[tokio::test]
async fn many_nested_repositories_are_kept_as_files() {
    let set = |ground: &Ground| {
        for number in 0..50 {
            let nested = ground.workdir().join(format!("nested {number}\n'\"$(touch x)"));
            git_ok(
                ground.world.path(),
                ["init", "--quiet", &nested.display().to_string()],
            );
            write(&nested.join("file"), PAYLOAD);
        }
    };
    check(Canary::Hid, Answer::Committed, set).await;
    let ground = Ground::new(Reading::Sandboxed).await;
    let seen = ground.play(set).await;
    let count = |what: &str| seen.files.iter().filter(|(name, _)| name.contains(what)).count();
    assert_eq!((count("/file"), count(".git/")), (50, 0), "{seen:#?}");
    ground
        .world
        .workspace
        .clean_up(&ground.world.run, &ground.world.repo())
        .await
        .unwrap();
}
