//! `conductor tools serve` with the real program, a real sandbox and a real client.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

fn tools(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../target/tools")
        .join(name)
}

/// How the program is asked to serve a directory.
fn serving(dir: &Path) -> Vec<String> {
    let mut argv: Vec<String> = ["tools", "serve", "--stdio", "--executor", "local", "--worktree"]
        .map(str::to_owned)
        .to_vec();
    argv.push(dir.join("w").display().to_string());
    argv.extend(["--log".to_owned(), dir.join("log").display().to_string()]);
    if !nix::unistd::geteuid().is_root() {
        for limit in ["memory", "processes", "cpu"] {
            argv.extend(["--may-miss".to_owned(), limit.to_owned()]);
        }
    }
    argv
}

/// Asks by the public inspector.
#[allow(clippy::disallowed_methods, reason = "a client of the program that is tested")]
fn inspect(dir: &Path, arguments: &[&str]) -> Output {
    let inspector = tools("mcp/node_modules/@modelcontextprotocol/inspector");
    let package: Value = serde_json::from_slice(
        &std::fs::read(inspector.join("package.json"))
            .expect("the inspector is not installed: cargo xtask setup mcp"),
    )
    .expect("JSON");
    let program = package["bin"]["mcp-inspector"].as_str().expect("a program");
    Command::new(tools("node22/bin/node"))
        .arg(inspector.join(program))
        .arg("--cli")
        .arg(env!("CARGO_BIN_EXE_conductor"))
        .args(serving(dir))
        .args(arguments)
        .output()
        .expect("it runs")
}

fn answer(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// TOOL-1, TOOL-4: the public inspector lists our tools and calls them; every call stands in the log.
#[test]
fn the_public_inspector_lists_and_calls_our_tools() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(dir.path().join("w")).expect("made");
    std::fs::write(dir.path().join("w/a.txt"), "one\ntwo\none\n").expect("written");
    let listed = answer(&inspect(dir.path(), &["--method", "tools/list"]));
    let names: Vec<&str> = listed["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    assert_eq!(
        names,
        [
            "view",
            "list_files",
            "search_files",
            "git_status",
            "git_diff",
            "create_file",
            "str_replace",
            "bash",
            "git_commit"
        ]
    );
    let call = |tool: &str, arguments: &[&str]| {
        let mut all = vec!["--method", "tools/call", "--tool-name", tool];
        for argument in arguments {
            all.extend(["--tool-arg", argument]);
        }
        let said = answer(&inspect(dir.path(), &all));
        let text = said["content"][0]["text"].as_str().expect("text").to_owned();
        (said["isError"] == json!(true), text)
    };
    assert_eq!(
        call("view", &["path=a.txt"]),
        (false, "one\ntwo\none\n".to_owned())
    );
    let (is_error, said) = call("str_replace", &["path=a.txt", "old=one", "new=three"]);
    assert!(
        is_error && said.contains("2 times") && said.contains("1: one\n3: one"),
        "{said}"
    );
    let (is_error, said) = call("bash", &["command=id -u; ls"]);
    assert!(
        !is_error && said.contains("a.txt") && said.contains("[exited 0]"),
        "{said}"
    );
    let (is_error, said) = call("view", &["path=../log"]);
    assert!(is_error && said.contains("outside"), "{said}");
    let (is_error, said) = call("create_file", &["path=.github/workflows/x.yml", "content=x"]);
    assert!(is_error && said.contains("forge-settings"), "{said}");

    let log = std::fs::read_to_string(dir.path().join("log")).expect("a log");
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let seen: Vec<[&str; 3]> = lines
        .iter()
        .map(|line| ["tool", "decision", "result"].map(|field| line[field].as_str().expect("words")))
        .collect();
    assert_eq!(seen[0], ["view", "allow", "ok"]);
    assert_eq!(seen[1][..2], ["str_replace", "allow"]);
    assert_eq!(seen[2], ["bash", "allow", "begun"]);
    assert_eq!(seen[3], ["bash", "allow", "exited 0"]);
    assert_eq!(seen[4][..2], ["view", "allow"]);
    assert_eq!(seen[5], ["create_file", "deny", "not done"]);
    assert_eq!(seen.len(), 6);
    assert!(!dir.path().join("w/.github").exists());
}

/// EXEC-1: nothing is served by a guess, and a door must be named.
#[test]
#[allow(clippy::disallowed_methods, reason = "the program that is tested")]
fn executor_and_door_must_be_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let serve = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_conductor"))
            .args(["tools", "serve", "--worktree"])
            .arg(dir.path())
            .args(arguments)
            .output()
            .expect("it runs");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (code, said) = serve(&["--stdio"]);
    assert!(
        code == Some(4) && said.contains("CDR0405") && said.contains("local"),
        "{said}"
    );
    let (code, said) = serve(&["--executor", "local"]);
    assert!(code == Some(2) && said.contains("--stdio"), "{said}");
    let (code, said) = serve(&["--executor", "local", "--stdio", "--role", "king"]);
    assert!(code == Some(2) && said.contains("planner"), "{said}");
}
