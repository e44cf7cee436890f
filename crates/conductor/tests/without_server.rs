//! The real program where no server runs: what still works, what is refused, and how it ends.

use std::path::Path;
use std::process::{Command, Output};

fn conductor(data_dir: &Path, arguments: &[&str]) -> Output {
    #[allow(clippy::disallowed_methods, reason = "the program under test")]
    Command::new(env!("CARGO_BIN_EXE_conductor"))
        .env_remove("CONDUCTOR_DATA_DIR")
        .arg("--data-dir")
        .arg(data_dir)
        .args(arguments)
        .output()
        .expect("the program starts")
}

fn check(data_dir: &Path, arguments: &[&str], exit: i32, code: &str) {
    let output = conductor(data_dir, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(exit), "{arguments:?}: {said}");
    assert!(
        said.contains(code) && said.contains("hint: "),
        "{arguments:?}: {said}"
    );
    assert_eq!(output.stdout, b"", "{arguments:?}");
}

/// Changing commands end with 3; so do reading ones where there is nothing to read.
#[test]
fn without_a_server_nothing_changes_and_nothing_is_made() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let data = dir.path().join("data");
    for arguments in [
        vec!["project", "add", "p"],
        vec!["repo", "add", "o/r", "--project", "p", "--test", "make"],
        vec!["run", "start", "o/r", "1"],
        vec!["run", "approve", "r-1", "--yes"],
        vec!["run", "cancel", "r-1", "--json"],
        vec!["run", "watch", "r-1"],
        vec!["kill-switch", "on"],
    ] {
        check(&data, &arguments, 3, "CDR0401");
    }
    for arguments in [
        vec!["run", "list", "--json"],
        vec!["run", "show", "r-1"],
        vec!["approvals"],
        vec!["audit", "verify"],
        vec!["projections", "rebuild"],
    ] {
        check(&data, &arguments, 3, "CDR0601");
    }
    assert!(!data.exists(), "a typo must not make a data directory");
}

/// EXEC-1, SEC-7: a server never starts with a guess, nor where others can reach it.
#[test]
fn a_server_that_would_be_unsafe_does_not_start() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let unsafe_demo = [
        "serve",
        "--executor",
        "unsafe-plain",
        "--i-know-this-is-unsafe-demo",
    ];
    check(dir.path(), &["serve"], 4, "CDR0405");
    check(dir.path(), &["serve", "--executor", "unsafe-plain"], 4, "CDR0405");
    check(dir.path(), &["serve", "--executor", "podman"], 4, "CDR0405");
    check(
        dir.path(),
        &[&unsafe_demo[..], &["--listen", "0.0.0.0:0"]].concat(),
        2,
        "CDR0404",
    );
    check(dir.path(), &unsafe_demo, 2, "CDR0407");
    std::fs::write(dir.path().join("conductor.toml"), "exekutor = \"x\"\n").expect("written");
    check(dir.path(), &unsafe_demo, 2, "CDR0406");
}

/// A database of another program, or of none, is named and left alone.
#[test]
fn a_foreign_file_in_place_of_the_database_is_named_and_left_alone() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let database = dir.path().join("conductor.db");
    let content = "this is not a database, and nobody may write to it\n".repeat(100);
    std::fs::write(&database, &content).expect("written");
    check(dir.path(), &["run", "list"], 1, "CDR0606");
    check(dir.path(), &["projections", "rebuild"], 1, "CDR0606");
    assert_eq!(std::fs::read_to_string(&database).expect("there"), content);
}

#[test]
fn a_doctor_without_data_warns_and_does_not_fail() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let output = conductor(&dir.path().join("data"), &["doctor", "--json"]);
    let checks: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    let health = |name: &str| {
        let all = checks.as_array().into_iter().flatten();
        all.into_iter()
            .find(|check| check["name"] == name)
            .map(|check| check["health"].clone())
    };
    assert_eq!(health("git"), Some("ok".into()));
    assert_eq!(health("data directory"), Some("warn".into()));
    assert_eq!(health("server"), Some("warn".into()));
    // EXEC-1: what a start would refuse is said before.
    assert_eq!(health("executor"), Some("warn".into()));
    assert_eq!(output.status.code(), Some(0));
}

/// Settings that cannot be read are a failure with something to do about it, and never an empty hint.
#[test]
fn a_doctor_has_a_hint_for_everything_that_is_wrong() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    std::fs::create_dir(dir.path().join("conductor.toml")).expect("a directory in place of the file");
    let output = conductor(dir.path(), &["doctor", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let checks: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    let wrong: Vec<&serde_json::Value> = checks
        .as_array()
        .into_iter()
        .flatten()
        .filter(|check| check["health"] != "ok")
        .collect();
    assert!(wrong.iter().any(|check| check["name"] == "settings"), "{checks}");
    for check in wrong {
        let hint = check["hint"].as_str().unwrap_or_default();
        assert!(!hint.is_empty(), "{check}");
    }
}

/// EXEC-2, S-45: a doctor says that the engine which was named does not answer, and what to do; it looks for no other.
#[test]
fn a_doctor_names_an_engine_that_does_not_answer() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let settings = "executor = \"docker\"\n[sandbox]\nengine = \"/no/such/engine\"\n";
    std::fs::write(dir.path().join("conductor.toml"), settings).expect("written");
    let output = conductor(dir.path(), &["doctor", "--json"]);
    let checks: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    let all = checks.as_array().into_iter().flatten();
    let executor = all.into_iter().find(|check| check["name"] == "executor");
    let executor = executor.expect("a check of the executor");
    assert_eq!(executor["health"], "fail", "{executor}");
    let said = executor.to_string();
    for words in ["CDR0420", "/no/such/engine", "start the engine"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert_eq!(output.status.code(), Some(1));
}
