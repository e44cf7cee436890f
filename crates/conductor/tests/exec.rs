//! `conductor exec` with the real program and a real sandbox: how it ends, what it prints, what it logs.

use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

struct Said {
    code: i32,
    stdout: String,
    stderr: String,
}

#[allow(clippy::disallowed_methods, reason = "the program that is tested")]
fn program(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_conductor"));
    command
        .args(["exec", "--executor", "local", "--worktree"])
        .arg(dir.join("w"));
    if !nix::unistd::geteuid().is_root() {
        for limit in ["memory", "processes", "cpu"] {
            command.args(["--may-miss", limit]);
        }
    }
    command
        .arg("--log")
        .arg(dir.join("log"))
        .args(arguments)
        .env("HOST_SECRET", "s3cr3t");
    command
}

fn exec(dir: &Path, input: &str, arguments: &[&str]) -> Said {
    let mut child = program(dir, arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(input.as_bytes()).expect("written");
    drop(stdin);
    let ended = child.wait_with_output().expect("ended");
    Said {
        code: ended.status.code().expect("no signal"),
        stdout: String::from_utf8(ended.stdout).expect("text"),
        stderr: String::from_utf8(ended.stderr).expect("text"),
    }
}

/// EXEC-1, EXEC-5, TOOL-4: each tool, its exit code, its line in the log; and the worktree is still its owner's.
#[test]
fn every_tool_runs_in_the_sandbox_and_is_logged() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let worktree = dir.path().join("w");
    std::fs::create_dir(&worktree).expect("made");
    for (arguments, code, stdout) in [
        (&["create-file", "deep/a"][..], 0, ""),
        (&["create-file", "deep/a"], 4, ""),
        (&["view", "deep/a"], 0, "from 'stdin'\n"),
        (&["view", "../log"], 4, ""),
        (
            &["str-replace", "deep/a", "--old", "'stdin'", "--new", "$HOME"],
            0,
            "",
        ),
        (
            &["bash", "cat deep/a; echo [$HOST_SECRET]"],
            0,
            "from $HOME\n[]\n",
        ),
        (&["bash", "exit 7"], 1, ""),
        (&["bash", "--seconds", "1", "sleep 60"], 1, ""),
    ] {
        let said = exec(dir.path(), "from 'stdin'\n", arguments);
        assert_eq!(
            (said.code, said.stdout.as_str()),
            (code, stdout),
            "{arguments:?}: {}",
            said.stderr
        );
    }
    let log = std::fs::read_to_string(dir.path().join("log")).expect("written");
    let results: Vec<String> = log
        .lines()
        .map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).expect("one object per line");
            format!(
                "{} {}",
                line["tool"].as_str().expect("a name"),
                line["result"].as_str().expect("a text")
            )
        })
        .collect();
    assert_eq!(
        results,
        [
            "create-file done",
            "create-file `deep/a` exists already",
            "view done",
            "view `../log` is outside the worktree",
            "str-replace done",
            "bash exited 0",
            "bash exited 7",
            "bash timed out",
        ]
    );
    assert!(
        !log.contains("s3cr3t") && !log.contains("stdin"),
        "payloads are hashed: {log}"
    );
    let owner = std::fs::metadata(worktree.join("deep/a")).expect("there").uid();
    assert_eq!(owner, nix::unistd::geteuid().as_raw());
}

/// EXEC-1, EXEC-6: a command whose output goes nowhere any more is ended, and nobody is told that it did well.
#[test]
fn output_that_cannot_be_written_ends_the_command() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    std::fs::create_dir(dir.path().join("w")).expect("made");
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .expect("opened");
    let (reader, no_reader) = std::io::pipe().expect("a pipe");
    drop(reader);
    for (stdout, command, complaint) in [
        (
            full.try_clone().expect("the same").into(),
            "printf hi",
            "No space left",
        ),
        (full.into(), "echo hi; exec sleep 600", "the command was ended"),
        (
            Stdio::from(no_reader),
            "exec yes",
            "nobody reads its output any more",
        ),
    ] {
        let child = program(dir.path(), &["bash", command])
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(Stdio::piped())
            .spawn()
            .expect("started");
        let said = child.wait_with_output().expect("ended");
        let told = String::from_utf8_lossy(&said.stderr);
        assert!(
            said.status.code() == Some(1) && told.contains(complaint),
            "{command}: {told}"
        );
    }
}

/// EXEC-5, ENV-2: what could not be given back as it was is not lent, and stays as it is.
#[test]
fn a_worktree_of_several_people_is_lent_to_nobody() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (worktree, theirs) = (dir.path().join("w"), dir.path().join("w/below/theirs"));
    std::fs::create_dir_all(theirs.parent().expect("one")).expect("made");
    for path in [&theirs, &worktree.join("ours")] {
        std::fs::write(path, "kept").expect("written");
    }
    if !nix::unistd::geteuid().is_root() {
        let said = exec(dir.path(), "", &["bash", "true"]);
        assert_eq!(said.code, 0, "nothing changes hands: {}", said.stderr);
        return;
    }
    std::os::unix::fs::chown(&theirs, Some(33), Some(34)).expect("as root");
    let said = exec(dir.path(), "", &["bash", "touch made"]);
    assert_eq!(said.code, 4, "{}", said.stderr);
    assert!(
        said.stderr.contains("CDR0423") && said.stderr.contains("`below/theirs` in it belongs to 33:34"),
        "{}",
        said.stderr
    );
    let whose = |path: &Path| {
        let found = std::fs::metadata(path).expect("there");
        (found.uid(), found.gid())
    };
    assert_eq!(
        (whose(&theirs), whose(&worktree.join("ours")), whose(&worktree)),
        ((33, 34), (0, 0), (0, 0))
    );

    std::os::unix::fs::symlink("/", dir.path().join("root")).expect("made");
    std::fs::rename(&worktree, dir.path().join("elsewhere")).expect("moved");
    std::fs::rename(dir.path().join("root"), &worktree).expect("moved");
    let said = exec(dir.path(), "", &["bash", "true"]);
    assert_eq!(said.code, 4, "{}", said.stderr);
    assert!(
        said.stderr.contains("the root of the file system"),
        "{}",
        said.stderr
    );
}

/// EXEC-5: however it is told to end, the worktree is its owner's again and nothing is left in it that runs.
#[test]
#[allow(clippy::disallowed_methods, reason = "the program that is tested")]
fn a_signal_ends_it_and_the_worktree_is_given_back() {
    use nix::sys::signal::{Signal, kill};

    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let worktree = dir.path().join("w");
        std::fs::create_dir(&worktree).expect("made");
        let mut command = Command::new(env!("CARGO_BIN_EXE_conductor"));
        command
            .args(["exec", "--executor", "local", "--worktree"])
            .arg(&worktree);
        if !nix::unistd::geteuid().is_root() {
            for limit in ["memory", "processes", "cpu"] {
                command.args(["--may-miss", limit]);
            }
        }
        let mut child = command
            .args(["bash", "echo begun > mark; echo begun; sleep 600"])
            .env("TMPDIR", dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("started");
        let mut begun = [0; 6];
        let stdout = child.stdout.as_mut().expect("piped");
        std::io::Read::read_exact(stdout, &mut begun).expect("it has the worktree");
        let pid = i32::try_from(child.id()).expect("a process");
        kill(nix::unistd::Pid::from_raw(pid), signal).expect("told");
        let ended = child.wait_with_output().expect("ended");
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{signal}: {stderr}");
        assert!(stderr.contains("interrupted"), "{signal}: {stderr}");
        for path in [worktree.clone(), worktree.join("mark")] {
            let owner = std::fs::metadata(path).expect("there").uid();
            assert_eq!(owner, nix::unistd::geteuid().as_raw(), "{signal}");
        }
        let left: Vec<_> = std::fs::read_dir(dir.path()).expect("there").collect();
        assert_eq!(left.len(), 1, "{signal}: only the worktree is left: {left:?}");
    }
}

/// What cannot be told is not done, and what is told to take no time is wrong usage.
#[test]
fn nothing_runs_without_a_log_a_directory_or_time() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let worktree = dir.path().join("w");
    std::fs::create_dir(&worktree).expect("made");
    let said = exec(dir.path(), "", &["bash", "--seconds", "0", "true"]);
    assert_eq!(said.code, 2, "{}", said.stderr);
    std::fs::create_dir(dir.path().join("log")).expect("no log can be there");
    let said = exec(dir.path(), "", &["bash", "touch ran"]);
    assert!(
        said.code == 1 && said.stderr.contains("opening the log"),
        "{}",
        said.stderr
    );
    assert!(!worktree.join("ran").exists());
    std::fs::remove_dir(dir.path().join("log")).expect("removed");
    std::fs::remove_dir(&worktree).expect("removed");
    std::fs::write(&worktree, "a file").expect("written");
    let said = exec(dir.path(), "", &["bash", "true"]);
    assert!(
        said.code == 2 && said.stderr.contains("is no directory"),
        "{}",
        said.stderr
    );
}

/// Runs `exec` in a container with an engine that stands elsewhere, or nowhere.
#[allow(clippy::disallowed_methods, reason = "the program that is tested")]
fn exec_in_container(worktree: &Path, host: Option<&str>, image: &str) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_conductor"));
    command
        .args(["exec", "--executor", "docker", "--image", image, "--worktree"])
        .arg(worktree)
        .args(["bash", "true"]);
    if let Some(host) = host {
        command.env("DOCKER_HOST", host);
    }
    let ended = command.stdin(Stdio::null()).output().expect("started");
    Said {
        code: ended.status.code().expect("no signal"),
        stdout: String::from_utf8(ended.stdout).expect("text"),
        stderr: String::from_utf8(ended.stderr).expect("text"),
    }
}

/// EXEC-1, EXEC-2: without an engine nothing else stands in for it; the error has a name and says what to do.
#[test]
fn an_engine_that_does_not_answer_is_named_and_not_replaced() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let nowhere = format!("unix://{}/no.sock", dir.path().display());
    let said = exec_in_container(dir.path(), Some(&nowhere), "debian:12");
    assert_eq!((said.code, said.stdout.as_str()), (4, ""), "{}", said.stderr);
    for words in ["CDR0420", "no container engine answers", "hint: start the engine"] {
        assert!(said.stderr.contains(words), "{words}: {}", said.stderr);
    }
}

/// EXEC-2: Podman by name, from the command line; one that is too old is refused unless the operator says so, and whoever runs no
/// containers has no engine.
#[test]
fn an_engine_is_called_by_its_name_and_accepted_by_word_only() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let podman = dir.path().join("podman");
    let version = r#"{"Client":{"Version":"4.3.1"}}"#;
    let script = format!(
        "#!/bin/sh\n[ $1 = version ] && echo '{version}' && exit\n[ $1 = rm ] && exit\necho \"called $1\" >&2; exit 125\n"
    );
    std::fs::write(&podman, script).expect("written");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&podman, executable).expect("ours");
    for (executor, more, code, words) in [
        ("docker", &[][..], 4, "CDR0420"),
        ("docker", &["--old-engine"], 1, "called run"),
        ("local", &[], 2, "executor `local` runs no containers"),
    ] {
        #[allow(clippy::disallowed_methods, reason = "the program that is tested")]
        let ended = Command::new(env!("CARGO_BIN_EXE_conductor"))
            .args(["exec", "--executor", executor, "--engine"])
            .arg(&podman)
            .args(more)
            .arg("--worktree")
            .arg(dir.path())
            .args(["bash", "true"])
            .output()
            .expect("started");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(code), "{executor} {more:?}: {said}");
        assert!(said.contains(words), "{words}: {said}");
    }
}

/// What needs a Docker engine; `cargo xtask setup docker` provides it.
mod docker {
    use super::*;

    /// EXEC-2: an image that is not there is never pulled; the error says how to get it, and the worktree is still its owner's.
    #[test]
    fn a_missing_image_is_named_with_the_command_that_gets_it() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let owner = |path: &Path| std::fs::metadata(path).expect("there").uid();
        let before = owner(dir.path());
        let said = exec_in_container(dir.path(), None, "conductor-has-no-such-image:none");
        assert!(said.code > 0 && said.stdout.is_empty(), "{}", said.stderr);
        for words in [
            "the engine does not have the image",
            "docker pull conductor-has-no-such-image:none",
        ] {
            assert!(said.stderr.contains(words), "{words}: {}", said.stderr);
        }
        assert_eq!(owner(dir.path()), before);
    }
}
