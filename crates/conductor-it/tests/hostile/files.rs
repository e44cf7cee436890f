//! Nothing in a worktree makes the host read or write a file outside of it.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use conductor_domain::id::EffectId;
use conductor_domain::testing::Ending;
use conductor_domain::time::Millis;
use conductor_executor::Limits;
use conductor_port::executor::{Command, Executor as _, Profile, SandboxSpec};
use conductor_port::workspace::{Committed, Workspace as _};

use crate::ground::{Answer, Canary, Ground, Reading, SECRET, check, check_by_path, local};
use crate::world::{git, git_ok, write};

const DONE: Answer = Answer::Committed;

fn change(ground: &Ground) {
    write(&ground.workdir().join("README.md"), "changed\n");
}

/// S-4: the agent's own idea of where the tree is.
#[tokio::test]
async fn a_foreign_directory_is_not_taken_for_the_tree() {
    let set = |ground: &Ground| {
        change(ground);
        ground.configure("core.worktree", &ground.host().display().to_string());
    };
    check(Canary::Read, DONE, set).await;
}

/// Makes a repository of somebody else's with the secret in it; returns the secret's blob.
fn foreign(ground: &Ground) -> String {
    let foreign = ground.host().join("foreign");
    write(&foreign.join("private"), SECRET);
    git_ok(&foreign, ["init", "--quiet"]);
    git_ok(&foreign, ["add", "-A"]);
    git_ok(&foreign, ["rev-parse", ":private"]).trim().to_owned()
}

/// Lets the agent's index claim that a file has this content, and that nobody needs to look.
fn claim(ground: &Ground, blob: &str) {
    let workdir = ground.workdir();
    let entry = format!("100644,{blob},README.md");
    git_ok(&workdir, ["update-index", "--add", "--cacheinfo", &entry]);
    git_ok(&workdir, ["update-index", "--skip-worktree", "README.md"]);
}

/// S-5, S-6: objects of another run, through the agent's alternates.
#[tokio::test]
async fn alternates_of_the_agent_lead_nowhere() {
    let set = |ground: &Ground| {
        change(ground);
        let blob = foreign(ground);
        let list = ground.workdir().join(".git/objects/info/alternates");
        let mut entries = fs::read_to_string(&list).unwrap();
        entries.push_str(&format!(
            "{}\n",
            ground.host().join("foreign/.git/objects").display()
        ));
        fs::write(&list, entries).unwrap();
        claim(ground, &blob);
    };
    check(Canary::Read, DONE, set).await;
}

/// S-5, S-6: the same with the object directory itself as a link.
#[tokio::test]
async fn an_object_directory_that_is_a_link_leads_nowhere() {
    let set = |ground: &Ground| {
        change(ground);
        let blob = foreign(ground);
        let objects = ground.workdir().join(".git/objects");
        let theirs = ground.host().join("foreign/.git/objects");
        fs::create_dir_all(theirs.join("info")).unwrap();
        fs::copy(objects.join("info/alternates"), theirs.join("info/alternates")).unwrap();
        fs::remove_dir_all(&objects).unwrap();
        symlink(&theirs, &objects).unwrap();
        claim(ground, &blob);
    };
    check(Canary::Read, DONE, set).await;
}

/// S-4: git writes its own files through a link, wherever it points.
#[tokio::test]
async fn nothing_is_written_through_a_link() {
    let set = |ground: &Ground| {
        change(ground);
        let secret = ground.host().join("secret");
        symlink(secret, ground.workdir().join(".git/COMMIT_EDITMSG")).unwrap();
    };
    check(Canary::Wrote, DONE, set).await;
}

/// Swaps a directory of the worktree for a link to the host's, back and forth, until told to stop.
struct Swapping {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Swapping {
    fn start(ground: &Ground) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (aside, place) = (
            ground.world.path().join("aside"),
            ground.workdir().join("swapped"),
        );
        symlink(ground.host().join("many"), &aside).unwrap();
        let told = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !told.load(Ordering::Relaxed) {
                exchange(&aside, &place);
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Swapping {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(std::thread::JoinHandle::join);
    }
}

fn exchange(one: &Path, other: &Path) {
    use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
    renameat2(AT_FDCWD, one, AT_FDCWD, other, RenameFlags::RENAME_EXCHANGE).unwrap();
}

/// How many files there are that a swap changes.
const TWINS: u32 = 200;

/// How often at least a directory is read that is swapped meanwhile; a third of the tries or more ends with a commit.
const TRIES: u64 = 14;

/// Nobody needs so many tries.
const HOPELESS: u64 = 200;

/// Files in the worktree, and files of the same names with the secret in them elsewhere.
fn twins(ground: &Ground) {
    for number in 0..TWINS {
        write(
            &ground.host().join(format!("many/{number}")),
            &format!("{SECRET} {number}"),
        );
        write(&ground.workdir().join(format!("swapped/{number}")), "public");
    }
}

/// S-7: a directory that turns into a link while it is read. On the host a handful of tries brought secrets in; a sandbox
/// has none to bring.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_appears_while_reading_leads_nowhere() {
    let naive = Ground::new(Reading::Naive).await;
    naive.world.begin().await;
    twins(&naive);
    let swapping = Swapping::start(&naive);
    let has_leaked = (0..500).any(|_| {
        let workdir = naive.workdir();
        let _ = fs::remove_file(workdir.join(".git/index"));
        git(&workdir, ["add", "-A"]);
        let all = ["cat-file", "--batch-all-objects", "--batch"];
        String::from_utf8_lossy(&git(&workdir, all).stdout).contains(SECRET)
    });
    drop(swapping);
    assert!(has_leaked, "the trap does not work");

    let ground = Ground::new(Reading::Sandboxed).await;
    let mut parent = ground.world.begin().await;
    twins(&ground);
    // The sandbox's user owns the directory from the first snapshot on, as it does in a run.
    let swapping = Swapping::start(&ground);
    let (mut number, mut committed) = (0, 0);
    // One commit at least is made meanwhile, or nothing was shown.
    while number < TRIES || committed == 0 {
        number += 1;
        assert!(number <= HOPELESS, "nothing was ever committed");
        write(&ground.workdir().join("number"), &number.to_string());
        // It may well complain that something changed under its eyes.
        let answer = ground
            .world
            .workspace
            .commit(&ground.world.order(number, &parent))
            .await;
        committed += u32::from(matches!(answer, Ok(Committed::Commit { .. })));
        parent = ground.world.branch_at().unwrap();
        assert!(!ground.objects().contains(SECRET), "after {number} tries");
    }
    drop(swapping);
    println!("{committed} of {number} commits were made while it was swapped");

    // Once nothing moves, everything is read again, with the directory in its place.
    let place = ground.workdir().join("swapped");
    if fs::symlink_metadata(&place).unwrap().is_symlink() {
        exchange(&ground.world.path().join("aside"), &place);
    }
    write(&ground.workdir().join("number"), "the last");
    let last = ground.world.commit(number + 1, &parent).await;
    let mut expected = vec![
        ("README.md".to_owned(), "hello\n".to_owned()),
        ("number".to_owned(), "the last".to_owned()),
        ("src/lib.rs".to_owned(), "pub fn one() -> u32 { 1 }\n".to_owned()),
    ];
    expected.extend((0..TWINS).map(|number| (format!("swapped/{number}"), "public".to_owned())));
    expected.sort();
    let mut files = ground.world.tree(last.as_str());
    files.sort();
    assert_eq!(files, expected);
    assert!(!ground.objects().contains(SECRET), "in the end");
}

/// S-7: links that stand still bring in where they point, and nothing of what is there.
#[tokio::test]
async fn links_out_of_the_tree_bring_no_content_in() {
    let set = |ground: &Ground| {
        let workdir = ground.workdir();
        let secret = ground.host().join("secret");
        for name in ["link", ".gitignore", ".gitattributes", ".mailmap"] {
            symlink(&secret, workdir.join(name)).unwrap();
        }
        fs::remove_dir_all(workdir.join("src")).unwrap();
        symlink(ground.host(), workdir.join("src")).unwrap();
    };
    let seen = check_by_path(Canary::Read, DONE, set).await;
    let link = seen.files.iter().find(|(name, _)| name == "link");
    assert!(
        link.is_some_and(|(_, to)| to.ends_with("/host/secret")),
        "{seen:#?}"
    );
}

/// S-7, BEY-8: what an agent closed to itself is not lost, though no other sandbox of the same user can read it.
#[tokio::test]
async fn what_an_agent_closed_to_itself_is_read_all_the_same() {
    let ground = Ground::new(Reading::Sandboxed).await;
    let set = |ground: &Ground| {
        write(&ground.workdir().join("closed/file"), "work\n");
        for path in ["closed/file", "closed"] {
            let none = fs::Permissions::from_mode(0o000);
            fs::set_permissions(ground.workdir().join(path), none).unwrap();
        }
    };
    let seen = ground.play(set).await;
    assert!(
        seen.files.contains(&("closed/file".into(), "work\n".into())),
        "{seen:#?}"
    );
    let place = tempfile::tempdir().unwrap();
    let executor = local(place.path(), Limits::default());
    let run = ground.world.run.clone();
    let effect = EffectId::derive(&run, 1, 0);
    let spec = SandboxSpec::new(effect, run, Profile::Tool, ground.workdir());
    let sandbox = executor.open(spec).await.unwrap();
    let read = sandbox
        .bash(Command {
            argv: ["cat", "closed/file"].map(str::to_owned).to_vec(),
            environment: vec![],
            time: Millis::seconds(60),
            output: 1000,
            listener: None,
        })
        .await
        .unwrap();
    sandbox.close().await.unwrap();
    assert_eq!(read.ending, Ending::Exited { code: 1 });
    assert!(String::from_utf8_lossy(&read.output).contains("Permission denied"));
}
