//! What a snapshot claims is checked before it counts (S-7, S-8): here the snapshotter itself lies.

use std::process::{Command, Stdio};
use std::sync::Arc;

use async_trait::async_trait;
use conductor_domain::fault::FaultKind;
use conductor_domain::id::CommitId;
use conductor_git::{Error, Limits, Request, Snapshot, Snapshotter};
use conductor_port::workspace::{Committed, Workspace as _};

use crate::world::{World, git_ok, write};

/// A sandbox that an agent has taken over: it answers whatever it likes.
#[derive(Debug)]
struct Liar {
    tree: String,
    pack: Vec<u8>,
}

#[async_trait]
impl Snapshotter for Liar {
    async fn snapshot(&self, _request: &Request) -> Result<Snapshot, Error> {
        Ok(Snapshot {
            tree: self.tree.clone(),
            pack: Box::new(std::io::Cursor::new(self.pack.clone())),
        })
    }
}

/// An agent's own repository, in which any object can be written.
struct Forge {
    place: tempfile::TempDir,
}

impl Forge {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        git_ok(place.path(), ["init", "--quiet"]);
        Self { place }
    }

    fn object(&self, kind: &str, content: &[u8]) -> String {
        self.run(
            &["hash-object", "-t", kind, "-w", "--literally", "--stdin"],
            content,
        )
    }

    fn blob(&self, content: &str) -> String {
        self.object("blob", content.as_bytes())
    }

    /// A tree with one entry, without any of the checks that git makes.
    fn tree(&self, mode: &str, name: &str, id: &str) -> String {
        let mut raw = format!("{mode} {name}\0").into_bytes();
        raw.extend((0..20).map(|at| u8::from_str_radix(&id[2 * at..2 * at + 2], 16).unwrap()));
        self.object("tree", &raw)
    }

    /// A tree whose entries all are the same object.
    fn copies(&self, of: &str, id: &str, count: usize) -> String {
        let entries = (0..count).map(|name| format!("{of} {id}\t{name}\n"));
        self.run(&["mktree"], entries.collect::<String>().as_bytes())
    }

    fn pack(&self, ids: &[&str]) -> Vec<u8> {
        self.bytes(
            &["pack-objects", "--stdout", "--quiet"],
            ids.join("\n").as_bytes(),
        )
    }

    fn run(&self, args: &[&str], input: &[u8]) -> String {
        String::from_utf8(self.bytes(args, input))
            .unwrap()
            .trim()
            .to_owned()
    }

    fn bytes(&self, args: &[&str], input: &[u8]) -> Vec<u8> {
        use std::io::Write as _;
        let mut child = Command::new("git")
            .args(args)
            .current_dir(self.place.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{args:?}");
        output.stdout
    }
}

/// Commits what the liar claims; returns the complaint, after checking that nothing moved.
async fn complaint(world: &World, tree: &str, pack: Vec<u8>, limits: Limits) -> String {
    let base = world.branch_at().unwrap();
    let liar = Arc::new(Liar {
        tree: tree.to_owned(),
        pack,
    });
    let workspace = world.workspace.clone().with_snapshotter(liar).with_limits(limits);
    let fault = workspace.commit(&world.order(1, &base)).await.unwrap_err();
    assert_eq!(world.branch_at(), Some(base));
    let packs = std::fs::read_dir(world.run_repository().join("objects/pack"))
        .unwrap()
        .count();
    assert_eq!(packs, 0, "something of it was kept");
    let leftovers = std::fs::read_dir(world.data().join("runs/r1")).unwrap().flatten();
    let names: Vec<_> = leftovers.map(|entry| entry.file_name()).collect();
    assert!(
        !names
            .iter()
            .any(|name| name.to_string_lossy().starts_with("incoming")),
        "{names:?}"
    );
    fault.what
}

async fn check(world: &World, tree: &str, pack: Vec<u8>, expected: &str) {
    let said = complaint(world, tree, pack, Limits::default()).await;
    assert!(said.contains(expected), "expected {expected:?} in {said:?}");
}

/// S-8: an empty id would delete the ref that it is written to.
#[tokio::test]
async fn a_tree_id_that_is_none_is_refused() {
    let forge = Forge::new();
    let world = World::new().await;
    world.begin().await;
    let blob = forge.blob("x");
    let pack = forge.pack(&[&blob]);
    for claim in [
        "",
        "HEAD",
        "--all",
        "main",
        &"A".repeat(40),
        &"0".repeat(39),
        &format!("{}\n", "0".repeat(40)),
    ] {
        check(&world, claim, pack.clone(), "is not an object id").await;
    }
}

#[tokio::test]
async fn a_tree_that_is_not_there_or_not_a_tree_is_refused() {
    let forge = Forge::new();
    let world = World::new().await;
    world.begin().await;
    let blob = forge.blob("x");
    check(&world, &"1".repeat(40), forge.pack(&[&blob]), "no such tree").await;
    check(&world, &blob, forge.pack(&[&blob]), "no such tree").await;
}

/// A commit whose content is missing must not become the branch.
#[tokio::test]
async fn a_tree_without_its_files_is_refused() {
    let forge = Forge::new();
    let world = World::new().await;
    world.begin().await;
    let blob = forge.blob("x");
    let inner = forge.tree("100644", "file", &blob);
    let outer = forge.tree("40000", "directory", &inner);
    check(&world, &outer, forge.pack(&[&outer, &inner]), "").await;
    check(&world, &outer, forge.pack(&[&outer]), "").await;
    let said = complaint(&world, &inner, forge.pack(&[&inner]), Limits::default()).await;
    assert!(
        said.contains(&blob) || said.contains("unresolved") || said.contains("incomplete"),
        "{said}"
    );
}

#[tokio::test]
async fn bytes_that_are_no_pack_are_refused() {
    let forge = Forge::new();
    let world = World::new().await;
    world.begin().await;
    let blob = forge.blob("x");
    let tree = forge.tree("100644", "file", &blob);
    let whole = forge.pack(&[&tree, &blob]);
    check(&world, &tree, Vec::new(), "git refuses").await;
    check(
        &world,
        &tree,
        b"not a pack at all, but long enough to look like one".to_vec(),
        "git refuses",
    )
    .await;
    check(&world, &tree, whole[..whole.len() - 5].to_vec(), "git refuses").await;
    let mut turned = whole.clone();
    let middle = turned.len() / 2;
    turned[middle] ^= 0xff;
    check(&world, &tree, turned, "git refuses").await;
}

/// Names that would become a repository when checked out. Without `--strict`, git takes them.
#[tokio::test]
async fn names_that_mean_git_are_refused() {
    let forge = Forge::new();
    let world = World::new().await;
    world.begin().await;
    let blob = forge.blob("[core]\n\tfsmonitor = evil\n");
    let inner = forge.tree("100644", "config", &blob);
    for name in [".git", ".GIT", "git~1", ".git ", ".g\u{200c}it", "..", "."] {
        let tree = forge.tree("40000", name, &inner);
        let pack = forge.pack(&[&tree, &inner, &blob]);
        let target = tempfile::tempdir().unwrap();
        git_ok(target.path(), ["init", "--quiet"]);
        std::fs::write(target.path().join("x.pack"), &pack).unwrap();
        git_ok(target.path(), ["index-pack", "x.pack"]);
        check(&world, &tree, pack, "git refuses").await;
    }
}

#[tokio::test]
async fn submodules_that_mean_a_command_are_refused() {
    let forge = Forge::new();
    let world = World::new().await;
    world.begin().await;
    let modules = forge.blob("[submodule \"x\"]\n\tpath = x\n\turl = -u./payload\n");
    let tree = forge.tree("100644", ".gitmodules", &modules);
    check(&world, &tree, forge.pack(&[&tree, &modules]), "git refuses").await;
}

/// S-7: `--max-input-size`, and what a small pack unpacks to.
#[tokio::test]
async fn what_is_too_large_is_refused() {
    let forge = Forge::new();
    let world = World::new().await;
    world.begin().await;
    let blob = forge.blob(&"0".repeat(4 << 20));
    let tree = forge.tree("100644", "file", &blob);
    let pack = forge.pack(&[&tree, &blob]);
    assert!(pack.len() < 100_000, "it packs well: {}", pack.len());
    let limit = |change: fn(&mut Limits)| {
        let mut limits = Limits::default();
        change(&mut limits);
        limits
    };
    let said = complaint(&world, &tree, pack.clone(), limit(|l| l.pack_bytes = 1000)).await;
    assert!(said.contains("larger than 1000 bytes"), "{said}");
    let said = complaint(&world, &tree, pack.clone(), limit(|l| l.content_bytes = 1 << 20)).await;
    assert!(said.contains("1048576 bytes, unpacked"), "{said}");
    let said = complaint(&world, &tree, pack, limit(|l| l.objects = 1)).await;
    assert!(said.contains("1 objects"), "{said}");
}

/// S-7: few objects can lie at so many paths that a checkout fills the disk, or never ends.
#[tokio::test]
async fn an_object_counts_at_each_of_its_paths() {
    let forge = Forge::new();
    let world = World::new().await;
    world.begin().await;
    let blob = forge.blob(&"0".repeat(1 << 20));
    let many = forge.copies("100644 blob", &blob, 8);
    let limits = Limits {
        content_bytes: 4 << 20,
        ..Limits::default()
    };
    let said = complaint(&world, &many, forge.pack(&[&many, &blob]), limits).await;
    assert!(said.contains("4194304 bytes in all its files"), "{said}");

    let empty = forge.blob("");
    let mut trees = vec![forge.copies("100644 blob", &empty, 10)];
    for _ in 1..9 {
        trees.push(forge.copies("040000 tree", &trees[trees.len() - 1], 10));
    }
    // The last of them has a thousand million paths.
    for depth in [2, 8] {
        let ids: Vec<&str> = trees[..=depth]
            .iter()
            .chain([&empty])
            .map(String::as_str)
            .collect();
        let limits = Limits {
            paths: 200,
            ..Limits::default()
        };
        let said = complaint(&world, &trees[depth], forge.pack(&ids), limits).await;
        assert!(said.contains("larger than 200 changed paths"), "{said}");
    }
}

/// S-7: a repository that was large before the agent came is not the agent's doing; what its hard links make of it is.
#[tokio::test]
async fn only_what_a_checkout_grows_by_is_limited() {
    let large = "0123456789abcde\n".repeat(1 << 16);
    let names = ["assets/a", "assets/b", "assets/c", "assets/d"];
    let world = World::with_upstream(&names.map(|name| (name, large.as_str()))).await;
    let base = world.begin().await;
    let cramped = world.workspace.clone().with_limits(Limits {
        content_bytes: 3 << 20,
        ..Limits::default()
    });
    std::fs::rename(world.workdir().join("assets"), world.workdir().join("media")).unwrap();
    let moved = match cramped.commit(&world.order(1, &base)).await.unwrap() {
        Committed::Commit { commit, .. } => commit,
        Committed::Nothing => panic!("nothing to commit"),
    };
    for name in ["a", "b", "c", "d"] {
        let media = world.workdir().join("media");
        std::fs::hard_link(media.join(name), media.join(format!("{name}-again"))).unwrap();
    }
    let fault = cramped.commit(&world.order(2, &moved)).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Permanent);
    assert!(fault.what.contains("3145728 bytes in all its files"), "{fault}");
    assert_eq!(world.branch_at(), Some(moved));
}

/// The same pack within its limits is taken, so the refusals above are about what they say.
#[tokio::test]
async fn an_honest_answer_is_taken() {
    let forge = Forge::new();
    let blob = forge.blob("x");
    let tree = forge.tree("100644", "file", &blob);
    let world = World::new().await;
    let base = world.begin().await;
    let honest = Arc::new(Liar {
        tree: tree.clone(),
        pack: forge.pack(&[&tree, &blob]),
    });
    let workspace = world.workspace.clone().with_snapshotter(honest);
    write(&world.workdir().join("not-read"), "");
    workspace.commit(&world.order(1, &base)).await.unwrap();
    let made: CommitId = world.branch_at().unwrap();
    assert_eq!(world.tree(made.as_str()), [("file".to_owned(), "x".to_owned())]);
}
