//! How commands run and end.

use std::sync::{Arc, Mutex};

use conductor_domain::testing::Ending;
use conductor_port::executor::{Command, Listener};

use super::Subject;
use super::given::{PASSED, argv, bash, open, open_with, printed, script, spec, still_works, text, workdir};

/// EXEC-1, S-18: the code and the signal are the command's own.
pub(super) async fn a_command_ends_with_its_code_or_its_signal(subject: &Subject) {
    let sandbox = open(subject).await;
    for (script, ending) in [
        ("exit 0", PASSED),
        ("exit 7", Ending::Exited { code: 7 }),
        ("exit 255", Ending::Exited { code: 255 }),
        ("kill -SEGV $$", Ending::Signalled { signal: 11 }),
        ("kill -KILL $$", Ending::Signalled { signal: 9 }),
    ] {
        let result = bash(sandbox.as_ref(), script).await;
        assert_eq!((result.ending, result.truncated), (ending, false), "{script}");
    }
    sandbox.close().await.expect("it closes");
}

/// S-18: what never ran has no code.
pub(super) async fn a_program_that_is_not_there_is_not_run(subject: &Subject) {
    let sandbox = open(subject).await;
    for words in [&["no-such-program-anywhere"][..], &["/w"], &[]] {
        let result = sandbox.bash(argv(words)).await.expect("an answer");
        assert!(
            matches!(result.ending, Ending::NotRun { .. }),
            "{words:?}: {:?}",
            result.ending
        );
    }
    still_works(sandbox.as_ref()).await;
    sandbox.close().await.expect("it closes");
}

/// EXEC-7: NUL and invalid UTF-8.
pub(super) async fn bytes_that_are_no_text_come_as_they_are(subject: &Subject) {
    let sandbox = open(subject).await;
    let result = bash(
        sandbox.as_ref(),
        r"printf 'a\000b\377\376\033[31m\r'; printf e >&2",
    )
    .await;
    assert_eq!(
        (result.output, result.ending),
        (b"a\0b\xff\xfe\x1b[31m\re".to_vec(), PASSED)
    );
    sandbox.close().await.expect("it closes");
}

/// A command that expects input is not left waiting.
pub(super) async fn a_command_that_reads_finds_the_end_of_its_input(subject: &Subject) {
    let sandbox = open(subject).await;
    assert_eq!(
        printed(sandbox.as_ref(), "cat; read line; echo \"[$line] $?\"").await,
        "[] 1\n"
    );
    sandbox.close().await.expect("it closes");
}

/// EXEC-5: only what the executor and the spec say, whatever the host's environment holds.
pub(super) async fn the_environment_holds_nothing_of_the_hosts(subject: &Subject) {
    let dir = workdir(subject, "work");
    let mut spec = spec(&dir);
    spec.environment.push(("RUN_SCOPED".into(), "a b='\"\n$c".into()));
    let sandbox = open_with(subject, spec).await;
    let result = sandbox.bash(argv(&["env", "-0"])).await.expect("an answer");
    let output = text(&result);
    let names: Vec<&str> = output
        .split('\0')
        .filter_map(|entry| entry.split_once('=').map(|(name, _)| name))
        .collect();
    let known = ["PATH", "HOME", "TMPDIR", "LANG", "PWD", "HOSTNAME", "RUN_SCOPED"];
    let foreign: Vec<_> = names
        .iter()
        .filter(|name| !known.contains(name) && !name.starts_with("CONDUCTOR_"))
        .collect();
    assert!(foreign.is_empty(), "{foreign:?}");
    assert!(output.contains("RUN_SCOPED=a b='\"\n$c\0"), "{output:?}");
    sandbox.close().await.expect("it closes");
}

/// EXEC-5, S-44: a command's own variables are its own, and stand in the place of the sandbox's.
pub(super) async fn a_commands_own_variables_are_seen_by_it_alone(subject: &Subject) {
    let dir = workdir(subject, "work");
    let mut spec = spec(&dir);
    spec.environment.push(("SHARED".into(), "of all".into()));
    let sandbox = open_with(subject, spec).await;
    let own = Command {
        environment: vec![("SHARED".into(), "own".into()), ("OWN".into(), "a b".into())],
        ..script("echo \"$SHARED|$OWN\"")
    };
    let result = sandbox.bash(own).await.expect("an answer");
    assert_eq!(text(&result), "own|a b\n");
    assert_eq!(
        printed(sandbox.as_ref(), "echo \"$SHARED|$OWN\"").await,
        "of all|\n"
    );
    sandbox.close().await.expect("it closes");
}

/// Two calls at once, and more.
pub(super) async fn commands_at_once_do_not_disturb_each_other(subject: &Subject) {
    let sandbox: Arc<dyn conductor_port::executor::Sandbox> = Arc::from(open(subject).await);
    let calls = (0..16).map(|number| {
        let sandbox = Arc::clone(&sandbox);
        tokio::spawn(async move {
            let path = format!("f{number}");
            sandbox
                .create_file(&path, path.as_bytes())
                .await
                .expect("an answer")
                .expect("created");
            let result = bash(sandbox.as_ref(), &format!("cat f{number}; exit {number}")).await;
            (text(&result), result.ending)
        })
    });
    for (number, call) in calls.collect::<Vec<_>>().into_iter().enumerate() {
        let code = i32::try_from(number).expect("small");
        assert_eq!(
            call.await.expect("no panic"),
            (format!("f{number}"), Ending::Exited { code })
        );
    }
}

/// EXEC-7: streamed, and all of it, though only a part is kept.
pub(super) async fn output_is_heard_while_it_comes(subject: &Subject) {
    let sandbox = open(subject).await;
    let heard = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&heard);
    let mut command = script("echo first; echo second >&2; head -c 300000 /dev/zero");
    command.listener = Some(Listener(Arc::new(move |bytes: &[u8]| {
        into.lock().expect("no panic").extend_from_slice(bytes);
    })));
    let result = sandbox.bash(command).await.expect("an answer");
    assert_eq!((result.ending, result.truncated), (PASSED, true));
    let heard = std::mem::take(&mut *heard.lock().expect("no panic"));
    assert!(heard.starts_with(b"first\nsecond\n\0"));
    assert_eq!(heard.len(), 13 + 300_000);
    sandbox.close().await.expect("it closes");
}
