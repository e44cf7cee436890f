//! File tools stay beneath the working directory, touch regular files only, and write whole or not at all.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use conductor_port::executor::{FileRefusal, Sandbox};
use rustix::fs::{CWD, FileType, Mode, RenameFlags};

use crate::kit::{self, Bench};

const MAX_FILE: u64 = 8 * 1024 * 1024;

/// Lists a directory with the content of its files; shows what a refused call left behind.
fn listing(dir: &Path) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            let is_file = entry.file_type().unwrap().is_file();
            let content = if is_file {
                std::fs::read(entry.path()).unwrap_or_default()
            } else {
                b"...".to_vec()
            };
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, String::from_utf8_lossy(&content).chars().take(40).collect())
        })
        .collect();
    found.sort();
    found
}

async fn refused_by_all(sandbox: &dyn Sandbox, path: &str, expected: &FileRefusal) {
    assert_eq!(
        sandbox.view(path).await.unwrap(),
        Err(expected.clone()),
        "view {path:?}"
    );
    assert_eq!(
        sandbox.create_file(path, b"x").await.unwrap(),
        Err(expected.clone()),
        "create {path:?}"
    );
    assert_eq!(
        sandbox.str_replace(path, "s", "x").await.unwrap(),
        Err(expected.clone()),
        "replace {path:?}"
    );
}

#[tokio::test]
async fn files_are_created_read_and_changed_whatever_their_names() {
    let bench = Bench::new();
    let sandbox = bench.open().await;
    for path in [
        "a.txt",
        "deep/er/b.txt",
        "./c/./d",
        "with space/quo\"te's",
        "new\nline",
        "-n",
        "…/ü",
        "$(x)`y`",
    ] {
        sandbox.create_file(path, b"one two\n").await.unwrap().unwrap();
        sandbox
            .str_replace(path, "two", "'three' $0 \\1")
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            sandbox.view(path).await.unwrap().unwrap(),
            b"one 'three' $0 \\1\n",
            "{path:?}"
        );
        assert_eq!(
            std::fs::read(bench.work().join(path)).unwrap(),
            b"one 'three' $0 \\1\n",
            "{path:?}"
        );
    }
    let binary = [0, 159, 146, 150, b'\n', 255];
    sandbox.create_file("binary", &binary).await.unwrap().unwrap();
    sandbox
        .str_replace("binary", "\n", "\r\n")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        sandbox.view("binary").await.unwrap().unwrap(),
        [0, 159, 146, 150, b'\r', b'\n', 255]
    );
    sandbox.create_file("empty", b"").await.unwrap().unwrap();
    assert_eq!(sandbox.view("empty").await.unwrap().unwrap(), b"");
    sandbox.close().await.unwrap();
}

/// TOOL-2: no `..`, no absolute path, no symlink, no magic link leads out.
#[tokio::test]
async fn no_path_leads_out_of_the_working_directory() {
    let bench = Bench::new();
    let outside = bench.base.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("secret"), "secret").unwrap();
    let work = bench.work();
    std::fs::create_dir(work.join("in")).unwrap();
    symlink(&outside, work.join("absolute")).unwrap();
    symlink("../outside", work.join("relative")).unwrap();
    symlink("in/../../outside", work.join("winding")).unwrap();
    symlink("/proc/self/root", work.join("magic")).unwrap();
    symlink(work.join("in"), work.join("absolute-inside")).unwrap();
    symlink("/proc/self/cwd", work.join("in/cwd")).unwrap();
    let sandbox = bench.open().await;
    let absolute = outside.join("secret");
    for path in [
        "../outside/secret",
        "in/../../outside/secret",
        "in/../in/x",
        "..",
        "in/..",
        "/etc/passwd",
        "/",
        "//etc/passwd",
        absolute.to_str().unwrap(),
        work.join("in/x").to_str().unwrap(),
    ] {
        refused_by_all(&*sandbox, path, &FileRefusal::Outside(path.to_owned())).await;
    }
    for path in [
        "absolute/secret",
        "relative/secret",
        "winding/secret",
        "magic/etc/passwd",
        "absolute-inside/x",
        "in/cwd/secret",
        "absolute/new/deep",
    ] {
        refused_by_all(&*sandbox, path, &FileRefusal::Link(path.to_owned())).await;
    }
    refused_by_all(&*sandbox, "", &FileRefusal::NotAFile(String::new())).await;
    let no_path = FileRefusal::Other("a path holds a NUL byte".into());
    refused_by_all(&*sandbox, "a\0b", &no_path).await;
    assert_eq!(listing(&outside), [("secret".to_owned(), "secret".to_owned())]);
    assert_eq!(listing(&work.join("in")), [("cwd".to_owned(), "...".to_owned())]);
    sandbox.close().await.unwrap();
}

/// SEC-1: policies judge the name that was given, so a name that means another is refused, with what to do instead.
#[tokio::test]
async fn a_symlink_inside_is_followed_neither_to_a_directory_nor_to_a_file() {
    let bench = Bench::new();
    std::fs::create_dir_all(bench.work().join("a/b")).unwrap();
    std::fs::write(bench.work().join("a/b/x"), "secret").unwrap();
    symlink("a/../a/b", bench.work().join("link")).unwrap();
    symlink("a/b/x", bench.work().join("file")).unwrap();
    let sandbox = bench.open().await;
    refused_by_all(&*sandbox, "link/x", &FileRefusal::Link("link/x".into())).await;
    let refusal = FileRefusal::Link("file".into());
    assert_eq!(
        refusal.to_string(),
        "`file` is a symbolic link or leads through one; name the real path"
    );
    assert_eq!(sandbox.view("file").await.unwrap(), Err(refusal.clone()));
    assert_eq!(
        sandbox.str_replace("file", "secret", "two").await.unwrap(),
        Err(refusal)
    );
    assert_eq!(
        std::fs::read_to_string(bench.work().join("a/b/x")).unwrap(),
        "secret"
    );
    sandbox.close().await.unwrap();
}

/// S-46: what is not a regular file is refused, and opening it does not hang.
#[tokio::test]
async fn only_regular_files_are_opened() {
    let bench = Bench::new();
    let work = bench.work();
    rustix::fs::mknodat(
        CWD,
        work.join("fifo"),
        FileType::Fifo,
        Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let _listener = UnixListener::bind(work.join("socket")).unwrap();
    std::fs::create_dir(work.join("dir")).unwrap();
    symlink("/dev/zero", work.join("device")).unwrap();
    let sandbox = bench.open().await;
    for path in ["fifo", "socket", "dir", "dir/", "dir/.", "."] {
        let refusal = FileRefusal::NotAFile(path.to_owned());
        assert_eq!(sandbox.view(path).await.unwrap(), Err(refusal.clone()), "{path}");
        assert_eq!(
            sandbox.str_replace(path, "a", "b").await.unwrap(),
            Err(refusal),
            "{path}"
        );
    }
    assert_eq!(
        sandbox.view("device").await.unwrap(),
        Err(FileRefusal::Link("device".into()))
    );
    assert_eq!(
        sandbox.view("none").await.unwrap(),
        Err(FileRefusal::NotFound("none".into()))
    );
    sandbox.create_file("plain", b"").await.unwrap().unwrap();
    let through = FileRefusal::Other("`plain/x` leads through something that is not a directory".into());
    refused_by_all(&*sandbox, "plain/x", &through).await;
    let long = "x".repeat(5000);
    refused_by_all(&*sandbox, &long, &FileRefusal::Other("a name is too long".into())).await;
    sandbox.close().await.unwrap();
}

#[tokio::test]
async fn a_file_of_200_megabytes_is_refused() {
    let bench = Bench::new();
    let big = bench.work().join("big");
    std::fs::File::create(&big)
        .unwrap()
        .set_len(200 * 1024 * 1024)
        .unwrap();
    let sandbox = bench.open().await;
    let too_large = |path: &str| FileRefusal::TooLarge {
        path: path.to_owned(),
        limit: MAX_FILE,
    };
    assert_eq!(sandbox.view("big").await.unwrap(), Err(too_large("big")));
    assert_eq!(
        sandbox.str_replace("big", "a", "b").await.unwrap(),
        Err(too_large("big"))
    );
    let content = vec![b'x'; usize::try_from(MAX_FILE).unwrap() + 1];
    assert_eq!(
        sandbox.create_file("new", &content).await.unwrap(),
        Err(too_large("new"))
    );
    sandbox.create_file("new", &content[1..]).await.unwrap().unwrap();
    sandbox.str_replace("new", "y", "y").await.unwrap().unwrap_err();
    std::fs::write(bench.work().join("edge"), [&content[2..], b"y"].concat()).unwrap();
    assert_eq!(
        sandbox.str_replace("edge", "y", "zz").await.unwrap(),
        Err(too_large("edge"))
    );
    assert_eq!(
        std::fs::metadata(bench.work().join("edge")).unwrap().len(),
        MAX_FILE
    );
    sandbox.close().await.unwrap();
}

#[tokio::test]
async fn what_exists_is_never_overwritten_by_a_new_file() {
    let bench = Bench::new();
    let work = bench.work();
    std::fs::write(work.join("file"), "old").unwrap();
    std::fs::create_dir(work.join("dir")).unwrap();
    symlink("file", work.join("link")).unwrap();
    symlink("../stolen", work.join("dangling")).unwrap();
    let before = listing(&work);
    let sandbox = bench.open().await;
    for path in ["file", "dir", "link", "dangling"] {
        let created = sandbox.create_file(path, b"new").await.unwrap();
        assert_eq!(created, Err(FileRefusal::Exists(path.to_owned())), "{path}");
    }
    assert_eq!(listing(&work), before);
    assert!(!bench.base.path().join("stolen").exists());
    sandbox.close().await.unwrap();
}

#[tokio::test]
async fn a_text_is_replaced_only_where_it_stands_exactly_once() {
    let bench = Bench::new();
    let file = bench.work().join("f");
    let sandbox = bench.open().await;
    let ambiguous = |lines: &[usize]| FileRefusal::Ambiguous {
        path: "f".into(),
        lines: lines.to_vec(),
    };
    let many = "m\n".repeat(101);
    let table: [(&str, &str, Result<&str, FileRefusal>); 9] = [
        ("a\nb\nc\n", "b", Ok("a\nX\nc\n")),
        ("a\nb\nc\n", "a\nb\nc\n", Ok("X")),
        ("a\nb\nc\n", "B", Err(FileRefusal::NoMatch("f".into()))),
        ("", "b", Err(FileRefusal::NoMatch("f".into()))),
        ("b\nab\n\nb b", "b", Err(ambiguous(&[1, 2, 4, 4]))),
        ("x\naaa\n", "aa", Err(ambiguous(&[2, 2]))),
        ("a\n\n\n", "\n\n", Err(ambiguous(&[1, 2]))),
        (
            "abc",
            "",
            Err(FileRefusal::Other("the text to replace is empty".into())),
        ),
        (
            &many,
            "m",
            Err(FileRefusal::Other(
                "the text to replace occurs more than 100 times in `f`".into(),
            )),
        ),
    ];
    for (content, old, expected) in table {
        std::fs::write(&file, content).unwrap();
        let replaced = sandbox.str_replace("f", old, "X").await.unwrap();
        let now = std::fs::read_to_string(&file).unwrap();
        match expected {
            Ok(changed) => assert_eq!((replaced, now.as_str()), (Ok(()), changed), "{old:?}"),
            Err(refusal) => assert_eq!((replaced, now.as_str()), (Err(refusal), content), "{old:?}"),
        }
    }
    assert_eq!(listing(&bench.work()).len(), 1);
    sandbox.close().await.unwrap();
}

#[tokio::test]
async fn a_changed_file_keeps_its_mode_and_other_names_of_it_their_content() {
    let bench = Bench::new();
    let file = bench.work().join("run.sh");
    std::fs::write(&file, "old").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o750)).unwrap();
    std::fs::hard_link(&file, bench.base.path().join("other")).unwrap();
    let sandbox = bench.open().await;
    sandbox
        .str_replace("run.sh", "old", "new")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (kit::mode(&file), std::fs::read_to_string(&file).unwrap().as_str()),
        (0o750, "new")
    );
    assert_eq!(
        std::fs::read_to_string(bench.base.path().join("other")).unwrap(),
        "old"
    );
    sandbox.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_replacements_at_once_none_is_lost() {
    let bench = Bench::new();
    let lines: String = (0..40).map(|i| format!("<{i}>\n")).collect();
    std::fs::write(bench.work().join("f"), lines).unwrap();
    let sandbox: Arc<dyn Sandbox> = Arc::from(bench.open().await);
    let calls: Vec<_> = (0..40)
        .map(|i| {
            let sandbox = Arc::clone(&sandbox);
            tokio::spawn(async move {
                sandbox
                    .str_replace("f", &format!("<{i}>"), &format!("[{i}]"))
                    .await
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap().unwrap().unwrap();
    }
    let expected: String = (0..40).map(|i| format!("[{i}]\n")).collect();
    assert_eq!(std::fs::read_to_string(bench.work().join("f")).unwrap(), expected);
}

/// TOOL-2: no race between check and use. While `d` is exchanged, again and again, for a symlink that leads out,
/// nothing outside is read, made or changed.
#[tokio::test]
async fn a_directory_swapped_for_a_symlink_leads_nowhere() {
    let bench = Bench::new();
    let work = bench.work();
    let outside = bench.base.path().join("outside");
    for dir in [&outside, &work.join("d")] {
        std::fs::create_dir(dir).unwrap();
    }
    std::fs::write(outside.join("f"), "secret").unwrap();
    std::fs::write(work.join("d/f"), "inside").unwrap();
    symlink(&outside, work.join("swap")).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let swapper = {
        let (stop, here, there) = (Arc::clone(&stop), work.join("d"), work.join("swap"));
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(CWD, &here, CWD, &there, RenameFlags::EXCHANGE).unwrap();
            }
        })
    };
    let sandbox = bench.open().await;
    let mut met = [0_u32; 2];
    for round in 0..1500 {
        match sandbox.view("d/f").await.unwrap() {
            Ok(content) => {
                assert_eq!(content, b"inside");
                met[0] += 1;
            }
            Err(refusal) => {
                assert!(!matches!(refusal, FileRefusal::NotFound(_)), "{refusal}");
                met[1] += 1;
            }
        }
        let _ = sandbox
            .create_file(&format!("d/new-{round}"), b"x")
            .await
            .unwrap();
        let _ = sandbox.str_replace("d/f", "secret", "x").await.unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    assert!(met[0] > 0 && met[1] > 0, "the race was not met: {met:?}");
    assert_eq!(listing(&outside), [("f".to_owned(), "secret".to_owned())]);
    sandbox.close().await.unwrap();
}
