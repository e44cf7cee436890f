//! What one command sees, how its end is told, what is kept of its output.

use std::collections::BTreeMap;

use conductor_domain::testing::Ending;
use conductor_port::executor::{Command, Executor as _};

use crate::kit::{self, Bench, OUTPUT, PASSED, PLENTY, SHORT, argv, bash, script, text};

/// EXEC-5: the environment is ours alone; HOME and TMPDIR are private to the sandbox.
#[tokio::test]
async fn a_command_sees_nothing_of_our_environment() {
    let bench = Bench::new();
    let sandbox = bench.open().await;
    let seen = text(&sandbox.bash(argv(&["env"], PLENTY)).await.unwrap());
    let seen: BTreeMap<&str, &str> = seen.lines().map(|line| line.split_once('=').unwrap()).collect();
    let [home] = bench.homes().try_into().unwrap();
    let home = home.to_str().unwrap();
    let expected = BTreeMap::from([
        ("PATH", "/usr/local/bin:/usr/bin:/bin".to_owned()),
        ("HOME", format!("{home}/home")),
        ("TMPDIR", format!("{home}/tmp")),
        ("LANG", "C.UTF-8".to_owned()),
        ("CONDUCTOR_SANDBOX", home.to_owned()),
        ("CONDUCTOR_CALL", "0".to_owned()),
    ]);
    assert_eq!(
        seen,
        expected
            .iter()
            .map(|(key, value)| (*key, value.as_str()))
            .collect()
    );
    assert_eq!(kit::mode(home.as_ref()), 0o700);
    let other = bench.open().await;
    assert_ne!(
        text(&bash(&*other, "echo $HOME").await).trim(),
        format!("{home}/home")
    );
    sandbox.close().await.unwrap();
    other.close().await.unwrap();
    assert_eq!(bench.homes(), [] as [std::path::PathBuf; 0]);
}

/// S-18: only an exit that was seen is an exit, and what never ran is told apart from what failed.
#[tokio::test]
async fn the_ending_is_told_exactly() {
    let bench = Bench::new();
    let sandbox = bench.open().await;
    std::fs::write(bench.work().join("plain.txt"), "text").unwrap();
    let not_run = |reason: &str| Ending::NotRun {
        reason: reason.to_owned(),
    };
    let table = [
        (script("exit 0", PLENTY), PASSED),
        (script("exit 7", PLENTY), Ending::Exited { code: 7 }),
        (script("exit 137", PLENTY), Ending::Exited { code: 137 }),
        (script("kill -KILL $$", PLENTY), Ending::Signalled { signal: 9 }),
        (script("kill -TERM $$", PLENTY), Ending::Signalled { signal: 15 }),
        (script("while :; do :; done", SHORT), Ending::TimedOut),
        (
            argv(&["no-such-program"], PLENTY),
            not_run("program `no-such-program` was not found"),
        ),
        (
            argv(&["./no-such-program"], PLENTY),
            not_run("program `./no-such-program` was not found"),
        ),
        (
            argv(&["./plain.txt"], PLENTY),
            not_run("program `./plain.txt` may not be executed"),
        ),
        (argv(&[], PLENTY), not_run("the command is empty")),
        (
            argv(&["echo", "a\0b"], PLENTY),
            not_run("program `echo` cannot be started: nul byte found in provided data"),
        ),
    ];
    for (command, expected) in table {
        let told = command.argv.clone();
        assert_eq!(sandbox.bash(command).await.unwrap().ending, expected, "{told:?}");
    }
    sandbox.close().await.unwrap();
}

#[tokio::test]
async fn both_streams_arrive_in_the_order_they_were_written() {
    let bench = Bench::new();
    let sandbox = bench.open().await;
    let result = bash(&*sandbox, "for i in {1..300}; do echo o$i; echo e$i >&2; done").await;
    let expected: String = (1..=300).map(|i| format!("o{i}\ne{i}\n")).collect();
    assert_eq!(text(&result), expected);
    sandbox.close().await.unwrap();
}

/// EXEC-7.
#[tokio::test]
async fn endless_output_is_cut_marked_and_ended_in_time() {
    let bench = Bench::new();
    let sandbox = bench.open().await;
    let result = sandbox.bash(script("echo begin; exec yes", SHORT)).await.unwrap();
    assert_eq!(
        (result.ending.clone(), result.truncated),
        (Ending::TimedOut, true)
    );
    let output = text(&result);
    assert!(output.starts_with("begin\ny\ny\n") && output.ends_with("y\n"));
    assert!(output.contains(" bytes of output left out …]"));
    assert!(
        result.output.len() < OUTPUT + 100,
        "{} bytes",
        result.output.len()
    );
    sandbox.close().await.unwrap();
}

/// EXEC-7.
#[tokio::test]
async fn a_line_of_200_megabytes_keeps_its_ends() {
    let bench = Bench::new();
    let sandbox = bench.open().await;
    let result = bash(
        &*sandbox,
        "printf A; head -c 200M /dev/zero | tr '\\0' x; printf Z",
    )
    .await;
    let left_out = 200 * 1024 * 1024 + 2 - OUTPUT;
    let half = "x".repeat(OUTPUT / 2 - 1);
    assert_eq!((result.ending.clone(), result.truncated), (PASSED, true));
    assert!(text(&result) == format!("A{half}\n[… {left_out} bytes of output left out …]\n{half}Z"));
    sandbox.close().await.unwrap();
}

#[tokio::test]
async fn bytes_that_are_no_text_pass_unchanged() {
    let bench = Bench::new();
    let sandbox = bench.open().await;
    let result = bash(&*sandbox, r"printf '\000\377\376\033[2J\r\n'").await;
    assert_eq!(result.output, b"\0\xff\xfe\x1b[2J\r\n");
    assert!(!result.truncated);
    sandbox.close().await.unwrap();
}

#[tokio::test]
async fn a_command_that_expects_input_meets_its_end_at_once() {
    let bench = Bench::new();
    let sandbox = bench.open().await;
    let result = bash(&*sandbox, "cat; read -r line || echo none").await;
    assert_eq!((text(&result).as_str(), result.ending), ("none\n", PASSED));
    sandbox.close().await.unwrap();
}

/// The operator's terminal is out of reach: a command leads a session without one.
#[tokio::test]
async fn a_command_has_no_terminal() {
    let bench = Bench::new();
    let sandbox = bench.open().await;
    let result = bash(
        &*sandbox,
        "read -r _ _ _ _ group session terminal _ < /proc/$$/stat\n\
         [ $group = $$ ] && [ $session = $$ ] && [ $terminal = 0 ] && ! : 2>/dev/null </dev/tty && echo alone",
    )
    .await;
    assert_eq!(text(&result), "alone\n");
    sandbox.close().await.unwrap();
}

#[tokio::test]
async fn a_working_directory_may_have_any_name() {
    let bench = Bench::new();
    for name in ["with space", "quo\"te's", "new\nline", "-dash", "$(touch x)", "*"] {
        let dir = bench.base.path().join(name);
        std::fs::create_dir(&dir).unwrap();
        let sandbox = bench
            .executor
            .open(kit::spec("r1.1.0", dir.clone()))
            .await
            .unwrap();
        sandbox.create_file("here", b"").await.unwrap().unwrap();
        let result = sandbox.bash(argv(&["ls"], PLENTY)).await.unwrap();
        assert_eq!(text(&result), "here\n", "{name:?}");
        // The directory stays the one that was opened, whatever its name means by now.
        std::fs::rename(&dir, bench.base.path().join("moved")).unwrap();
        std::fs::create_dir(&dir).unwrap();
        assert_eq!(text(&bash(&*sandbox, "ls").await), "here\n", "{name:?}");
        sandbox.close().await.unwrap();
        std::fs::remove_dir_all(bench.base.path().join("moved")).unwrap();
    }
    let missing = bench
        .executor
        .open(kit::spec("r1.1.0", bench.base.path().join("none")))
        .await;
    assert!(
        missing
            .unwrap_err()
            .what
            .starts_with("opening the working directory ")
    );
}

#[tokio::test]
async fn two_commands_at_once_do_not_wait_for_each_other() {
    let bench = Bench::new();
    let sandbox = bench.open().await;
    bench.reports("a");
    bench.reports("b");
    // Each waits for the other's word, so they end only when they run at once.
    let (first, second) = tokio::join!(
        bash(&*sandbox, "echo 1 > a; read -r x < b; echo $x"),
        bash(&*sandbox, "read -r x < a; echo 2 > b; echo $x"),
    );
    assert_eq!(
        (text(&first), text(&second)),
        ("2\n".to_owned(), "1\n".to_owned())
    );
    sandbox.close().await.unwrap();
}

#[tokio::test]
async fn keeping_no_output_still_says_that_there_was_some() {
    let bench = Bench::new();
    let sandbox = bench.open().await;
    let result = sandbox
        .bash(Command {
            output: 0,
            listener: None,
            ..script("echo hello", PLENTY)
        })
        .await
        .unwrap();
    assert_eq!(
        (text(&result).as_str(), result.truncated),
        ("\n[… 6 bytes of output left out …]\n", true)
    );
    sandbox.close().await.unwrap();
}
