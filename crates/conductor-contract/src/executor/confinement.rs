//! What a sandbox cannot reach.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use conductor_domain::id::EffectId;
use conductor_domain::testing::Ending;
use conductor_port::executor::{FileRefusal, Given, GivenFile, Pattern, Profile, SandboxSpec, Way};

use super::Subject;
use super::given::{PASSED, bash, open, open_with, printed, spec, still_works, text, workdir};

/// TOOL-2, S-46: no `..`, no absolute path, no link, no magic link; neither for reading nor for writing.
pub(super) async fn no_path_leads_out(subject: &Subject) {
    let dir = workdir(subject, "work");
    std::fs::write(subject.place.join("secret"), "secret").expect("written");
    symlink("../secret", dir.join("link")).expect("linked");
    symlink("..", dir.join("up")).expect("linked");
    symlink("/proc/self/root", dir.join("magic")).expect("linked");
    let sandbox = open_with(subject, spec(&dir)).await;
    for path in [
        "../secret",
        "a/../../secret",
        "/etc/passwd",
        "link",
        "up/secret",
        "magic/etc/passwd",
        "",
        "a\0b",
    ] {
        let viewed = sandbox.view(path).await.expect("an answer");
        assert!(viewed.is_err(), "{path}: {viewed:?}");
        let replaced = sandbox.str_replace(path, "secret", "x").await.expect("an answer");
        assert!(replaced.is_err(), "{path}");
    }
    for path in ["../new", "/tmp/new", "up/new", "magic/tmp/new", "link/new"] {
        let created = sandbox.create_file(path, b"x").await.expect("an answer");
        assert!(created.is_err(), "{path}");
    }
    sandbox.close().await.expect("it closes");
    assert_eq!(
        std::fs::read_to_string(subject.place.join("secret")).expect("there"),
        "secret"
    );
    assert!(!subject.place.join("new").exists());
}

/// TOOL-2, SEC-1: policies judge the name that was given; so no tool takes a name that means another, inside or out.
pub(super) async fn no_name_means_another(subject: &Subject) {
    let dir = workdir(subject, "work");
    std::fs::create_dir(dir.join("secrets")).expect("made");
    std::fs::write(dir.join("secrets/key"), "secret").expect("written");
    symlink("secrets", dir.join("docs")).expect("linked");
    symlink("secrets/key", dir.join("file")).expect("linked");
    let sandbox = open_with(subject, spec(&dir)).await;
    for path in ["docs/key", "file"] {
        let refusal = FileRefusal::Link(path.into());
        let viewed = sandbox.view(path).await.expect("an answer");
        assert_eq!(viewed, Err(refusal.clone()));
        let replaced = sandbox.str_replace(path, "secret", "x").await.expect("an answer");
        assert_eq!(replaced, Err(refusal));
    }
    let created = sandbox.create_file("docs/new", b"x").await.expect("an answer");
    assert_eq!(created, Err(FileRefusal::Link("docs/new".into())));
    let refusal = FileRefusal::Link("docs".into());
    let listed = sandbox.list("docs").await.expect("an answer");
    assert_eq!(listed, Err(refusal.clone()));
    let pattern = Pattern::Literal("secret".into());
    let searched = sandbox.search("docs", &pattern).await.expect("an answer");
    assert_eq!(searched, Err(refusal));
    let found = sandbox
        .search("", &pattern)
        .await
        .expect("an answer")
        .expect("searched");
    let paths: Vec<&str> = found.findings.iter().map(|found| found.path.as_str()).collect();
    assert_eq!(paths, ["secrets/key"]);
    sandbox.close().await.expect("it closes");
    assert_eq!(
        std::fs::read_to_string(dir.join("secrets/key")).expect("there"),
        "secret"
    );
    assert!(!dir.join("secrets/new").exists());
}

/// A path that no file system takes, and no frame either, is whoever gave it's own trouble: refused, and no fault.
pub(super) async fn a_path_of_any_length_is_answered(subject: &Subject) {
    let sandbox = open(subject).await;
    let pattern = Pattern::Literal("a".into());
    for length in [5_000, 18 << 20] {
        let path = "a".repeat(length);
        assert!(sandbox.view(&path).await.expect("an answer").is_err());
        assert!(
            sandbox
                .create_file(&path, b"x")
                .await
                .expect("an answer")
                .is_err()
        );
        assert!(
            sandbox
                .str_replace(&path, "a", "b")
                .await
                .expect("an answer")
                .is_err()
        );
        assert!(sandbox.list(&path).await.expect("an answer").is_err());
        assert!(sandbox.search(&path, &pattern).await.expect("an answer").is_err());
    }
    still_works(sandbox.as_ref()).await;
    sandbox.close().await.expect("it closes");
}

/// S-46: a FIFO, a device and a directory are refused at once.
pub(super) async fn what_is_no_file_is_refused_without_waiting(subject: &Subject) {
    let sandbox = open(subject).await;
    printed(sandbox.as_ref(), "mkfifo fifo; mkdir dir").await;
    for path in ["fifo", "dir"] {
        let viewed = sandbox.view(path).await.expect("an answer");
        assert_eq!(viewed, Err(FileRefusal::NotAFile(path.into())));
    }
    still_works(sandbox.as_ref()).await;
    sandbox.close().await.expect("it closes");
}

/// A worktree path with spaces, quotes and newlines.
pub(super) async fn a_working_directory_of_any_name_works(subject: &Subject) {
    for name in ["with space", "q'\"u", "new\nline", "--bind", "a:b,c=d"] {
        let dir = workdir(subject, name);
        std::fs::write(dir.join("f"), name).expect("written");
        let sandbox = open_with(subject, spec(&dir)).await;
        assert_eq!(printed(sandbox.as_ref(), "cat f; touch g").await, name);
        sandbox.close().await.expect("it closes");
        assert!(dir.join("g").exists(), "{name:?}");
    }
}

/// EXEC-3: not even the host's loopback.
pub(super) async fn nothing_outside_is_reached_over_the_network(subject: &Subject) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let sandbox = open(subject).await;
    let result = bash(
        sandbox.as_ref(),
        &format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached"),
    )
    .await;
    assert_ne!(result.ending, PASSED, "{}", text(&result));
    let devices = printed(
        sandbox.as_ref(),
        "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '",
    )
    .await;
    assert_eq!(devices, "lo\n");
    sandbox.close().await.expect("it closes");
}

/// EXEC-3, S-32: a port inside that leads to exactly one socket outside.
pub(super) async fn a_way_out_leads_to_its_socket_and_nowhere_else(subject: &Subject) {
    let dir = workdir(subject, "work");
    let socket = subject.place.join("way.sock");
    let listener = UnixListener::bind(&socket).expect("bound");
    let answering = std::thread::spawn(move || {
        let (mut caller, _) = listener.accept().expect("a caller");
        let mut asked = [0; 5];
        caller.read_exact(&mut asked).expect("read");
        caller.write_all(b"answer\n").expect("written");
        asked
    });
    let mut spec = spec(&dir);
    spec.ways.push(Way { port: 3128, socket });
    let sandbox = open_with(subject, spec).await;
    let said = printed(
        sandbox.as_ref(),
        "exec 3<>/dev/tcp/127.0.0.1/3128; printf hello >&3; head -n 1 <&3",
    )
    .await;
    assert_eq!(said, "answer\n");
    assert_eq!(&answering.join().expect("no panic"), b"hello");
    let other = bash(sandbox.as_ref(), "exec 3<>/dev/tcp/127.0.0.1/3129").await;
    assert_eq!(other.ending, Ending::Exited { code: 1 });
    sandbox.close().await.expect("it closes");
}

/// EXEC-4: neither this test nor anything else of the host.
pub(super) async fn no_process_outside_is_seen(subject: &Subject) {
    let sandbox = open(subject).await;
    let own = std::process::id();
    let seen = printed(
        sandbox.as_ref(),
        &format!("cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -c conductor_contract; kill -0 {own} && echo reached; echo end"),
    )
    .await;
    assert!(!seen.contains("reached") || own < 100, "{seen}");
    let processes = printed(sandbox.as_ref(), "ls -d /proc/[0-9]* | wc -l").await;
    let count: usize = processes.trim().parse().expect("a number");
    assert!(count < 10, "{count} processes are seen");
    sandbox.close().await.expect("it closes");
}

/// SKILL-5, EXEC-4: a folder that is given is there whole, programs run, nothing in it can be changed by any means, and a
/// path that leads elsewhere opens no sandbox.
pub(super) async fn what_is_given_is_read_and_never_written(subject: &Subject) {
    let file = |path: &str, executable, content: &str| GivenFile {
        path: path.to_owned(),
        executable,
        content: content.as_bytes().to_vec(),
    };
    let dir = workdir(subject, "work");
    let mut given = spec(&dir);
    given.given.push(Given {
        inside: "/skills/pdf".into(),
        files: vec![
            file("SKILL.md", false, "read me\n"),
            file("bin/run", true, "#!/bin/sh\necho it runs\n"),
        ],
    });
    let sandbox = open_with(subject, given).await;
    assert_eq!(
        printed(sandbox.as_ref(), "cat /skills/pdf/SKILL.md; /skills/pdf/bin/run").await,
        "read me\nit runs\n"
    );
    for change in [
        "echo x > /skills/pdf/SKILL.md",
        "echo x > /skills/pdf/new",
        "rm -f /skills/pdf/SKILL.md",
        "mv /skills/pdf/bin /skills/pdf/other",
        "chmod u+w /skills/pdf/SKILL.md",
        "ln -s /w /skills/pdf/link",
        "mount -o remount,rw /skills/pdf",
        "umount /skills/pdf",
        "rmdir /skills/pdf/bin; mv /skills /elsewhere",
    ] {
        let result = bash(sandbox.as_ref(), change).await;
        assert_ne!(result.ending, PASSED, "{change}: {}", text(&result));
    }
    assert_eq!(
        printed(
            sandbox.as_ref(),
            "cd /skills/pdf && find . | LC_ALL=C sort | tr '\\n' ' '"
        )
        .await,
        ". ./SKILL.md ./bin ./bin/run "
    );
    assert_eq!(
        printed(sandbox.as_ref(), "cat /skills/pdf/SKILL.md").await,
        "read me\n"
    );
    sandbox.close().await.expect("it closes");
    for (inside, path) in [
        ("/skills/x", "../x"),
        ("/skills/x", "a/../../x"),
        ("/skills/x", "/etc/passwd"),
        ("/skills/x", ""),
        ("/skills/../etc", "passwd"),
        ("skills/x", "a"),
    ] {
        let mut hostile = spec(&dir);
        hostile.given.push(Given {
            inside: inside.into(),
            files: vec![file(path, false, "x")],
        });
        let refused = subject.executor.open(hostile).await;
        assert!(refused.is_err(), "{inside} {path}");
    }
}

/// EXEC-3a: agent, tool and test at the same time, of one run: each works in its own directory, leaves by its own ways, and sees
/// neither files, variables nor processes of the others.
pub(super) async fn three_sandboxes_of_one_run_are_never_one(subject: &Subject) {
    const MODEL: u16 = 3201;
    const TOOLS: u16 = 3202;
    const EGRESS: u16 = 3128;
    let socket = |name: &str| {
        let path = subject.place.join(name);
        let listener = UnixListener::bind(&path).expect("bound");
        // Whoever comes is let in and heard by nobody; the thread ends with the test.
        std::thread::spawn(move || listener.incoming().for_each(drop));
        path
    };
    let way = |port, name: &str| Way {
        port,
        socket: socket(name),
    };
    let profiles = [
        (
            "agent",
            Profile::Agent,
            vec![way(MODEL, "model"), way(TOOLS, "tools")],
        ),
        ("tool", Profile::Tool, vec![way(EGRESS, "egress")]),
        ("test", Profile::Test, vec![]),
    ];
    let mut open = Vec::new();
    for (number, (name, profile, ways)) in profiles.into_iter().enumerate() {
        let dir = workdir(subject, name);
        std::fs::write(dir.join(format!("of-{name}")), name).expect("written");
        let ports: Vec<u16> = ways.iter().map(|way| way.port).collect();
        let spec = SandboxSpec {
            effect: EffectId::parse(format!("r1.{number}.0")).expect("an effect"),
            profile,
            ways,
            environment: vec![(
                format!("TOKEN_OF_{}", name.to_uppercase()),
                format!("secret-of-{name}"),
            )],
            ..spec(&dir)
        };
        let sandbox = open_with(subject, spec).await;
        let daemon = format!("(exec -a daemon-of-{name} sleep 1000 > /dev/null 2>&1 &)");
        bash(sandbox.as_ref(), &daemon).await;
        open.push((name, ports, sandbox));
    }
    for (name, ports, sandbox) in &open {
        let files = printed(sandbox.as_ref(), "ls /w").await;
        assert_eq!(files, format!("of-{name}\n"));
        for port in [MODEL, TOOLS, EGRESS] {
            let reached = bash(sandbox.as_ref(), &format!("exec 3<>/dev/tcp/127.0.0.1/{port}")).await;
            assert_eq!(
                reached.ending == PASSED,
                ports.contains(&port),
                "{name} at {port}"
            );
        }
        let seen = printed(
            sandbox.as_ref(),
            "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2> /dev/null | tr '\\0' '\\n'; find / -xdev -name 'of-*' 2> /dev/null; true",
        )
        .await;
        for (other, _, _) in &open {
            let is_own = other == name;
            for word in [format!("secret-of-{other}"), format!("daemon-of-{other}")] {
                assert_eq!(seen.contains(&word), is_own, "{name} and {word}: {seen}");
            }
            assert!(
                is_own || !seen.contains(&format!("/of-{other}")),
                "{name}: {seen}"
            );
        }
        let written = bash(
            sandbox.as_ref(),
            "touch /w/new && ! touch /usr/new && ! touch /new",
        )
        .await;
        assert_eq!(written.ending, PASSED, "{name}: {}", text(&written));
    }
    for (_, _, sandbox) in open {
        sandbox.close().await.expect("it closes");
    }
}
