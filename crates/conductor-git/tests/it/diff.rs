//! What a comparison of two commits shows, and what it marks (S-10, S-11).

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use conductor_domain::fault::FaultKind;
use conductor_git::{EntryKind, Limits, Mark};
use conductor_port::workspace::{Change, Side, Workspace as _};

use crate::world::{World, git_ok, write};

type Shown = (String, Option<EntryKind>, Option<EntryKind>, Vec<Mark>);

/// Lets an agent do `work`, commits it, and returns every change as it is seen.
async fn changes(world: &World, work: impl FnOnce(&std::path::Path)) -> Vec<Shown> {
    let base = world.begin().await;
    work(&world.workdir());
    let commit = world.commit(1, &base).await;
    let diff = world.workspace.compare(&world.run, &base, &commit).await.unwrap();
    let shown = diff.changes.into_iter().map(|change| {
        let path = String::from_utf8_lossy(&change.path).into_owned();
        (
            path,
            change.old.map(|entry| entry.kind),
            change.new.map(|entry| entry.kind),
            change.marks,
        )
    });
    shown.collect()
}

/// S-11.
#[tokio::test]
async fn what_needs_a_human_is_marked() {
    use EntryKind::{Executable, File, Symlink};
    let world = World::with_upstream(&[
        ("README.md", "x\n"),
        ("Dir/a", "a\n"),
        ("run", "x\n"),
        ("gone", "x\n"),
    ])
    .await;
    let found = changes(&world, |workdir| {
        write(&workdir.join("readme.MD"), "other\n");
        write(&workdir.join("dir/b"), "b\n");
        write(&workdir.join("caf\u{e9}"), "1\n");
        write(&workdir.join("cafe\u{301}"), "2\n");
        write(&workdir.join("sub/.gitattributes"), "* -diff\n");
        write(&workdir.join(".gitmodules"), "");
        write(&workdir.join(".LFSconfig"), "");
        write(&workdir.join("plain"), "plain\n");
        symlink("/etc/passwd", workdir.join("absolute")).unwrap();
        symlink("../../x", workdir.join("sub/out")).unwrap();
        symlink("../plain", workdir.join("sub/in")).unwrap();
        fs::set_permissions(workdir.join("run"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::remove_file(workdir.join("gone")).unwrap();
    })
    .await;
    let added = |path: &str, kind, marks: &[Mark]| (path.to_owned(), None, Some(kind), marks.to_vec());
    let mut expected = vec![
        added(".LFSconfig", File, &[Mark::GitSettings]),
        added(".gitmodules", File, &[Mark::GitSettings]),
        added("absolute", Symlink, &[Mark::EscapingSymlink]),
        added("caf\u{e9}", File, &[Mark::CollidingName]),
        added("cafe\u{301}", File, &[Mark::CollidingName]),
        added("dir/b", File, &[Mark::CollidingName]),
        ("gone".to_owned(), Some(File), None, vec![]),
        added("plain", File, &[]),
        added("readme.MD", File, &[Mark::CollidingName]),
        ("run".to_owned(), Some(File), Some(Executable), vec![]),
        added("sub/.gitattributes", File, &[Mark::GitSettings]),
        added("sub/in", Symlink, &[]),
        added("sub/out", Symlink, &[Mark::EscapingSymlink]),
    ];
    expected.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
    assert_eq!(found, expected);
}

/// S-11: a gitlink that goes is marked like one that comes.
#[tokio::test]
async fn a_changed_submodule_is_marked() {
    let world = World::new().await;
    let link = format!("160000,{},module", "1".repeat(40));
    git_ok(&world.people(), ["update-index", "--add", "--cacheinfo", &link]);
    git_ok(&world.people(), ["commit", "--quiet", "-m", "a submodule"]);
    git_ok(&world.people(), ["push", "--quiet", "origin", "HEAD:main"]);
    let found = changes(&world, |workdir| fs::remove_dir(workdir.join("module")).unwrap()).await;
    assert_eq!(
        found,
        [(
            "module".to_owned(),
            Some(EntryKind::Gitlink),
            None,
            vec![Mark::Gitlink]
        )]
    );
}

/// S-10: neither an attribute nor a NUL byte hides a change; both make `git diff` silent.
#[tokio::test]
async fn no_attribute_hides_a_change() {
    let world = World::new().await;
    let base = world.begin().await;
    write(
        &world.workdir().join(".gitattributes"),
        "* -diff\nsecret.txt binary\n",
    );
    write(&world.workdir().join("secret.txt"), "token\n");
    write(&world.workdir().join("nul.txt"), "token\0\n");
    let commit = world.commit(1, &base).await;
    let usual = git_ok(&world.workdir(), ["diff", base.as_str(), "--", "secret.txt"]);
    assert!(!usual.contains("+token"), "the trap does not work: {usual}");
    let diff = world.workspace.diff(&world.run, &base, &commit).await.unwrap();
    let paths: Vec<&str> = diff.changes.iter().map(|change| change.path.as_str()).collect();
    assert_eq!(paths, [".gitattributes", "nul.txt", "secret.txt"]);
    assert!(diff.rendered.contains("+token"), "{}", diff.rendered);
    assert!(
        diff.rendered
            .contains("added file nul.txt\n[not shown: binary or large, 0 → 7 bytes]")
    );
}

#[tokio::test]
async fn a_difference_reads_like_one() {
    let world = World::with_upstream(&[("a.txt", "1\n2\n3\n"), ("gone.txt", "bye\n")]).await;
    let base = world.begin().await;
    write(&world.workdir().join("a.txt"), "1\nzwei\n3\n");
    write(&world.workdir().join("new.txt"), "hi\n");
    fs::remove_file(world.workdir().join("gone.txt")).unwrap();
    let odd = std::ffi::OsStr::from_bytes(b"odd\n\xff");
    fs::write(world.workdir().join(odd), "x\n").unwrap();
    let commit = world.commit(1, &base).await;
    let diff = world.workspace.diff(&world.run, &base, &commit).await.unwrap();
    let expected = "changed a.txt
--- a/a.txt
+++ b/a.txt
@@ -1,3 +1,3 @@
 1
-2
+zwei
 3
removed file gone.txt
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-bye
added file new.txt
--- /dev/null
+++ b/new.txt
@@ -0,0 +1 @@
+hi
added file odd\\n\\xff
--- /dev/null
+++ b/odd\\n\\xff
@@ -0,0 +1 @@
+x
";
    assert_eq!(diff.rendered, expected);
}

/// S-49: hostile: a change between bytes that are no text is shown byte by byte, and no text passes for such a byte; where all is
/// text, nothing else is shown.
#[tokio::test]
async fn bytes_that_are_no_text_are_shown_each() {
    let world = World::new().await;
    let base = world.begin().await;
    let files: [(&str, &[u8], &[u8]); 4] = [
        ("a.txt", b"caf\xe9 \\xe9\n", b"caf\xe8 \\xe9\n"),
        ("b.txt", b"\xfe\n", "⟨\\xfe⟩\n".as_bytes()),
        (
            "c.txt",
            b"\xfe\xff\nsame \xe2\x9f\n",
            b"\xff\xfe\nsame \xe2\x9f\n",
        ),
        ("d.txt", "⟨\\xfe⟩\n".as_bytes(), "⟨\\xff⟩ \u{fffd}\n".as_bytes()),
    ];
    for (name, before, _) in files {
        fs::write(world.workdir().join(name), before).unwrap();
    }
    let first = world.commit(1, &base).await;
    for (name, _, after) in files {
        fs::write(world.workdir().join(name), after).unwrap();
    }
    let second = world.commit(2, &first).await;
    let diff = world.workspace.diff(&world.run, &first, &second).await.unwrap();
    let expected = "changed a.txt
[not UTF-8: a byte that is no text is shown as ⟨\\xNN⟩, and ⟨ as ⟨U+27E8⟩]
--- a/a.txt
+++ b/a.txt
@@ -1 +1 @@
-caf⟨\\xe9⟩ \\xe9
+caf⟨\\xe8⟩ \\xe9
changed b.txt
[not UTF-8: a byte that is no text is shown as ⟨\\xNN⟩, and ⟨ as ⟨U+27E8⟩]
--- a/b.txt
+++ b/b.txt
@@ -1 +1 @@
-⟨\\xfe⟩
+⟨U+27E8⟩\\xfe⟩
changed c.txt
[not UTF-8: a byte that is no text is shown as ⟨\\xNN⟩, and ⟨ as ⟨U+27E8⟩]
--- a/c.txt
+++ b/c.txt
@@ -1,2 +1,2 @@
-⟨\\xfe⟩⟨\\xff⟩
+⟨\\xff⟩⟨\\xfe⟩
 same ⟨\\xe2⟩⟨\\x9f⟩
changed d.txt
--- a/d.txt
+++ b/d.txt
@@ -1 +1 @@
-⟨\\xfe⟩
+⟨\\xff⟩ \u{fffd}
";
    assert_eq!(diff.rendered, expected);
    assert_eq!(diff.unshown, [""; 0]);
}

/// BEY-1: the digest is that of the content; it changes with any byte and with nothing else.
#[tokio::test]
async fn the_digest_is_bound_to_the_content() {
    let world = World::new().await;
    let base = world.begin().await;
    write(&world.workdir().join("a.txt"), "1\n");
    let first = world.commit(1, &base).await;
    let digest = world
        .workspace
        .diff(&world.run, &base, &first)
        .await
        .unwrap()
        .digest;
    assert_eq!(
        world
            .workspace
            .diff(&world.run, &base, &first)
            .await
            .unwrap()
            .digest,
        digest
    );
    fs::set_permissions(world.workdir().join("a.txt"), fs::Permissions::from_mode(0o755)).unwrap();
    let second = world.commit(2, &first).await;
    assert_ne!(
        world
            .workspace
            .diff(&world.run, &base, &second)
            .await
            .unwrap()
            .digest,
        digest
    );
}

/// S-10, SEC-4: what a commit on the way brought leaves with the branch, so it is told beside the difference; what is in
/// the difference anyway is not told twice.
#[tokio::test]
async fn what_a_later_commit_took_out_is_told_as_passing() {
    let world = World::with_upstream(&[("a.txt", "1\n")]).await;
    let base = world.begin().await;
    write(&world.workdir().join("a.txt"), "token\n");
    write(&world.workdir().join("b.txt"), "stays\n");
    let first = world.commit(1, &base).await;
    let diff = world.workspace.diff(&world.run, &base, &first).await.unwrap();
    assert_eq!(diff.passing, [], "one commit is the whole difference");
    write(&world.workdir().join("a.txt"), "2\n");
    let second = world.commit(2, &first).await;
    let diff = world.workspace.diff(&world.run, &base, &second).await.unwrap();
    let told = |changes: &[Change]| -> Vec<(String, Side, Side)> {
        let told = changes.iter();
        told.map(|change| (change.path.clone(), change.before.clone(), change.after.clone()))
            .collect()
    };
    let bytes = |text: &str| Side::Bytes(text.as_bytes().to_vec());
    assert_eq!(
        told(&diff.changes),
        [
            ("a.txt".to_owned(), bytes("1\n"), bytes("2\n")),
            ("b.txt".to_owned(), Side::Absent, bytes("stays\n")),
        ]
    );
    assert_eq!(
        told(&diff.passing),
        [("a.txt".to_owned(), bytes("1\n"), bytes("token\n"))]
    );
}

/// SEC-4: a name that a commit on the way gave leaves with the branch, though what it named stays under another.
#[tokio::test]
async fn what_was_renamed_is_told_by_its_first_name() {
    let world = World::new().await;
    let base = world.begin().await;
    write(&world.workdir().join(".env"), "A=1\n");
    let first = world.commit(1, &base).await;
    fs::rename(world.workdir().join(".env"), world.workdir().join("a.txt")).unwrap();
    let second = world.commit(2, &first).await;
    let diff = world.workspace.diff(&world.run, &base, &second).await.unwrap();
    let names = |changes: &[Change]| -> Vec<String> { changes.iter().map(|it| it.path.clone()).collect() };
    assert_eq!(names(&diff.changes), ["a.txt"]);
    assert_eq!(names(&diff.passing), [".env"]);
}

/// S-49: what is cut off says so, and whoever would have it approved is told which paths are not whole.
#[tokio::test]
async fn a_long_difference_is_cut_with_a_mark() {
    let world = World::new().await;
    let base = world.begin().await;
    write(
        &world.workdir().join("long.txt"),
        &"line of text\n".repeat(60_000),
    );
    write(
        &world.workdir().join("huge.txt"),
        &"line of text\n".repeat(100_000),
    );
    write(&world.workdir().join("short.txt"), "line of text\n");
    write(&world.workdir().join("small.bin"), "\0");
    let commit = world.commit(1, &base).await;
    let diff = world.workspace.diff(&world.run, &base, &commit).await.unwrap();
    assert_eq!(diff.unshown, ["huge.txt", "long.txt"]);
    let rendered = diff.rendered;
    assert!(rendered.contains("[not shown: binary or large, 0 → 1300000 bytes]"));
    assert!(rendered.contains("more bytes of this file are not shown]"));
    assert!(rendered.len() < 600_000, "{}", rendered.len());
}

/// S-10: one file under many names takes its room once in git, and once for every name in whoever holds the difference; what
/// is too much is not read at any of them, also when a later commit took the names out again.
#[tokio::test]
async fn a_file_under_many_names_counts_under_each_of_them() {
    let world = World::new().await;
    let base = world.begin().await;
    let text = "0123456789abcde\n".repeat(1 << 16);
    write(&world.workdir().join("many/00"), &text);
    for name in 1..64 {
        fs::hard_link(
            world.workdir().join("many/00"),
            world.workdir().join(format!("many/{name:02}")),
        )
        .unwrap();
    }
    write(&world.workdir().join("small.txt"), "small\n");
    let first = world.commit(1, &base).await;
    let diff = world.workspace.diff(&world.run, &base, &first).await.unwrap();
    let unread = Side::Unread {
        size: text.len() as u64,
    };
    let (many, small): (Vec<&Change>, Vec<&Change>) = diff
        .changes
        .iter()
        .partition(|change| change.path.starts_with("many/"));
    assert_eq!(many.len(), 64);
    assert!(many.iter().all(|change| change.after == unread));
    assert_eq!(small.len(), 1);
    assert_eq!(small[0].after, Side::Bytes(b"small\n".to_vec()));

    fs::remove_dir_all(world.workdir().join("many")).unwrap();
    let second = world.commit(2, &first).await;
    let diff = world.workspace.diff(&world.run, &base, &second).await.unwrap();
    assert_eq!(diff.passing.len(), 64);
    assert!(diff.passing.iter().all(|change| change.after == unread));
}

/// S-10: more changed paths than can be held are refused for good, so that nothing tries again and again; those that
/// commits on the way brought are counted, too.
#[tokio::test]
async fn more_changed_paths_than_can_be_held_are_refused() {
    let world = World::new().await;
    let base = world.begin().await;
    let fill = |word: &str| {
        for name in ["a", "b", "c"] {
            write(&world.workdir().join(name), &format!("{word} {name}\n"));
        }
    };
    fill("first");
    let first = world.commit(1, &base).await;
    fill("second");
    let second = world.commit(2, &first).await;
    fill("third");
    let third = world.commit(3, &second).await;
    for (most, to, expected) in [
        (3, &first, None),
        (2, &first, Some("larger than 2 changed paths")),
        (6, &third, None),
        (5, &third, Some("larger than 5 changed paths")),
    ] {
        let cramped = world.workspace.clone().with_limits(Limits {
            paths: most,
            ..Limits::default()
        });
        match (cramped.diff(&world.run, &base, to).await, expected) {
            (Ok(diff), None) => assert_eq!(diff.changes.len(), 3),
            (Err(fault), Some(words)) => {
                assert_eq!(fault.kind, FaultKind::Permanent);
                assert!(fault.what.contains(words), "{fault}");
            }
            (found, expected) => panic!("at most {most}: {found:?}, expected {expected:?}"),
        }
    }
}
