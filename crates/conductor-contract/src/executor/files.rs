//! What file tools do with files, whatever is in them.

use conductor_port::executor::{EntryKind, FileRefusal, MAX_FINDINGS, Pattern};

use super::Subject;
use super::given::{bash, open, printed, still_works};

/// Content is bytes, never part of a shell string: whatever looks like a quote, a sentinel or an end of line.
pub(super) async fn what_is_created_is_viewed_byte_for_byte(subject: &Subject) {
    let sandbox = open(subject).await;
    let every: Vec<u8> = (0..=255).cycle().take(70_000).collect();
    for (number, content) in [
        &b""[..],
        b"no newline at the end",
        b"EOF\nCONDUCTOR_EOF\n'\"`$(touch owned)\\\n",
        &every,
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("deep/er/{number}");
        sandbox
            .create_file(&path, content)
            .await
            .expect("an answer")
            .expect("created");
        let viewed = sandbox.view(&path).await.expect("an answer").expect("viewed");
        assert_eq!(viewed, content, "{path}");
    }
    assert_eq!(printed(sandbox.as_ref(), "ls").await, "deep\n");
    sandbox.close().await.expect("it closes");
}

/// Create over an existing file, directory or symlink.
pub(super) async fn what_exists_is_never_created_over(subject: &Subject) {
    let sandbox = open(subject).await;
    printed(
        sandbox.as_ref(),
        "echo kept > file; mkdir dir; ln -s nowhere dangling; ln -s file link",
    )
    .await;
    for path in ["file", "dir", "dangling", "link"] {
        let answer = sandbox.create_file(path, b"new").await.expect("an answer");
        assert_eq!(answer, Err(FileRefusal::Exists(path.to_owned())));
    }
    assert_eq!(
        printed(sandbox.as_ref(), "cat file; ls").await,
        "kept\ndangling\ndir\nfile\nlink\n"
    );
    sandbox.close().await.expect("it closes");
}

/// With no match, with several, and with one; the file keeps its mode.
pub(super) async fn a_text_is_replaced_where_it_occurs_once(subject: &Subject) {
    let sandbox = open(subject).await;
    printed(sandbox.as_ref(), r"printf 'one\ntwo\none\n' > f; chmod 755 f").await;
    let none = sandbox.str_replace("f", "three", "3").await.expect("an answer");
    assert_eq!(none, Err(FileRefusal::NoMatch("f".into())));
    let several = sandbox.str_replace("f", "one", "1").await.expect("an answer");
    assert_eq!(
        several,
        Err(FileRefusal::Ambiguous {
            path: "f".into(),
            lines: vec![1, 3]
        })
    );
    let once = sandbox
        .str_replace("f", "two\none", "'\\$& \u{1f600}")
        .await
        .expect("an answer");
    assert_eq!(once, Ok(()));
    assert_eq!(
        printed(sandbox.as_ref(), "cat f; stat -c %a f").await,
        "one\n'\\$& \u{1f600}\n755\n"
    );
    let empty = sandbox.str_replace("f", "", "x").await.expect("an answer");
    assert!(empty.is_err());
    let missing = sandbox.str_replace("nothing", "a", "b").await.expect("an answer");
    assert_eq!(missing, Err(FileRefusal::NotFound("nothing".into())));
    sandbox.close().await.expect("it closes");
}

/// A binary file is changed in one place and nowhere else; only its text is looked for.
pub(super) async fn a_text_is_replaced_in_a_file_that_is_no_text(subject: &Subject) {
    let sandbox = open(subject).await;
    let content = b"\x7fELF\0\xff\xfe\r\nname=old\0\x80\x00end";
    sandbox
        .create_file("program", content)
        .await
        .expect("an answer")
        .expect("created");
    let none = sandbox
        .str_replace("program", "name=new", "x")
        .await
        .expect("an answer");
    assert_eq!(none, Err(FileRefusal::NoMatch("program".into())));
    let once = sandbox
        .str_replace("program", "name=old", "name=newer")
        .await
        .expect("an answer");
    assert_eq!(once, Ok(()));
    let viewed = sandbox.view("program").await.expect("an answer");
    assert_eq!(
        viewed,
        Ok(b"\x7fELF\0\xff\xfe\r\nname=newer\0\x80\x00end".to_vec())
    );
    sandbox.close().await.expect("it closes");
}

/// A file of 200 MB is an answer, not a hang, wherever it comes from.
pub(super) async fn a_file_that_is_too_large_is_refused(subject: &Subject) {
    let sandbox = open(subject).await;
    printed(sandbox.as_ref(), "truncate -s 200M big").await;
    let viewed = sandbox.view("big").await.expect("an answer");
    assert!(matches!(viewed, Err(FileRefusal::TooLarge { .. })), "{viewed:?}");
    let replaced = sandbox.str_replace("big", "a", "b").await.expect("an answer");
    assert!(
        matches!(replaced, Err(FileRefusal::TooLarge { .. })),
        "{replaced:?}"
    );
    let large = vec![b'x'; 20 * 1024 * 1024];
    let created = sandbox.create_file("new", &large).await.expect("an answer");
    assert!(
        matches!(created, Err(FileRefusal::TooLarge { .. })),
        "{created:?}"
    );
    still_works(sandbox.as_ref()).await;
    sandbox.close().await.expect("it closes");
}

/// One directory, whoever looks.
pub(super) async fn commands_and_file_tools_see_the_same_files(subject: &Subject) {
    let sandbox = open(subject).await;
    sandbox
        .create_file("a", b"from a tool")
        .await
        .expect("an answer")
        .expect("created");
    assert_eq!(
        printed(sandbox.as_ref(), "cat a; printf back > b").await,
        "from a tool"
    );
    assert_eq!(sandbox.view("b").await.expect("an answer"), Ok(b"back".to_vec()));
    sandbox.close().await.expect("it closes");
}

/// SEC-2: a name is never a pattern, an option or a command.
pub(super) async fn hostile_names_are_names(subject: &Subject) {
    let sandbox = open(subject).await;
    for name in [
        "-rf",
        "a b",
        "q'\"",
        "n\nl",
        "$(touch owned)",
        "*",
        "\u{202e}x",
        "~",
    ] {
        sandbox
            .create_file(name, name.as_bytes())
            .await
            .expect("an answer")
            .expect("created");
        let viewed = sandbox.view(name).await.expect("an answer").expect("viewed");
        assert_eq!(viewed, name.as_bytes(), "{name:?}");
    }
    let result = bash(sandbox.as_ref(), "ls -A | grep -c owned; test ! -e owned").await;
    assert_eq!(result.ending, super::given::PASSED);
    sandbox.close().await.expect("it closes");
}

/// Lists in the order of names, all the way down, neither through links nor into git's own files; and says when it
/// found more than it tells.
pub(super) async fn a_list_names_what_is_there_and_follows_no_link(subject: &Subject) {
    let sandbox = open(subject).await;
    printed(
        sandbox.as_ref(),
        "mkdir -p a/b .git/objects; printf 123 > a/b/f; mkfifo pipe; ln -s / out; ln -s a/b in; touch .git/config",
    )
    .await;
    let listed = sandbox.list("").await.expect("an answer").expect("listed");
    let seen: Vec<(&str, EntryKind, u64)> = listed
        .findings
        .iter()
        .map(|entry| (entry.path.as_str(), entry.kind, entry.size))
        .collect();
    assert_eq!(
        seen,
        [
            (".git", EntryKind::Directory, 0),
            ("a", EntryKind::Directory, 0),
            ("a/b", EntryKind::Directory, 0),
            ("a/b/f", EntryKind::File, 3),
            ("in", EntryKind::Symlink, 0),
            ("out", EntryKind::Symlink, 0),
            ("pipe", EntryKind::Other, 0),
        ]
    );
    assert!(listed.is_complete);
    let below = sandbox.list("a/b").await.expect("an answer").expect("listed");
    assert_eq!(below.findings.len(), 1);
    for (path, refusal) in [
        ("nothing", FileRefusal::NotFound("nothing".into())),
        ("..", FileRefusal::Outside("..".into())),
        ("/etc", FileRefusal::Outside("/etc".into())),
        ("out", FileRefusal::Link("out".into())),
        ("in", FileRefusal::Link("in".into())),
    ] {
        assert_eq!(sandbox.list(path).await.expect("an answer"), Err(refusal));
    }
    printed(sandbox.as_ref(), "mkdir many; cd many; touch $(seq 3000)").await;
    let many = sandbox.list("many").await.expect("an answer").expect("listed");
    assert_eq!(many.findings.len(), MAX_FINDINGS as usize);
    assert!(!many.is_complete);
    sandbox.close().await.expect("it closes");
}

/// A text is a text and an expression an expression; one that would explode elsewhere ends in time (linear).
pub(super) async fn a_search_finds_lines_and_refuses_what_is_no_pattern(subject: &Subject) {
    let sandbox = open(subject).await;
    printed(
        sandbox.as_ref(),
        r"mkdir d; printf 'one\na.c\nabc\n' > d/f; printf 'a.c\0' > binary; ln -s /etc/passwd link; \
          head -c 20000 /dev/zero | tr '\0' a > long",
    )
    .await;
    let found = async |pattern: Pattern| {
        let found = sandbox.search("", &pattern).await.expect("an answer");
        let lines = found.expect("searched").findings.into_iter();
        lines
            .map(|found| {
                format!(
                    "{}:{}:{}",
                    found.path,
                    found.line,
                    String::from_utf8_lossy(&found.text)
                )
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(found(Pattern::Literal("a.c".into())).await, ["d/f:2:a.c"]);
    assert_eq!(
        found(Pattern::Regex("^a.c$".into())).await,
        ["d/f:2:a.c", "d/f:3:abc"]
    );
    assert_eq!(
        found(Pattern::Regex("^(a+)+b$".into())).await,
        Vec::<String>::new()
    );
    assert_eq!(
        found(Pattern::Literal("root:".into())).await,
        Vec::<String>::new()
    );
    for pattern in [Pattern::Literal(String::new()), Pattern::Regex("(".into())] {
        let refused = sandbox.search("", &pattern).await.expect("an answer");
        assert!(matches!(refused, Err(FileRefusal::Other(_))), "{refused:?}");
    }
    still_works(sandbox.as_ref()).await;
    sandbox.close().await.expect("it closes");
}
