//! Where skills are put and taken from, environment by environment; what a person sees meanwhile; disks that refuse.

use std::fs;
use std::process::{Command, Stdio};

use crate::stage::{Container, Ran, Stage, docker};

fn names(stage: &Stage, directory: &str) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(stage.path(directory))
        .expect("listed")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

/// SKILL-4: one more place is one more place; `--target` takes a skill out of one environment and lists only that one.
#[test]
fn places_are_added_and_taken_one_environment_at_a_time() {
    let (stage, container) = (Stage::new(), Container::start());
    let target = container.target();
    stage.skill("src/alpha", "one");
    stage.run(&["install", "./src"]).ends(0);
    stage.run(&["install", "./src", "--target", &target]).ends(0);
    assert!(
        stage.path("home/.claude/skills/alpha").exists(),
        "the first place is still wanted"
    );
    container.sh("test -f $HOME/.claude/skills/alpha/SKILL.md");
    let listed = stage.run(&["list", "--target", &target, "--json"]).ends(0).json();
    assert_eq!(listed[0]["targets"].as_array().map(Vec::len), Some(1));
    assert_eq!(listed[0]["targets"][0]["environment"], target.as_str());
    let none = stage
        .run(&["list", "--target", "docker:elsewhere", "--json"])
        .ends(0)
        .json();
    assert_eq!(none, serde_json::json!([]));
    let ran = stage
        .run(&["remove", "alpha", "--target", "docker:elsewhere"])
        .ends(2);
    assert!(ran.stderr.contains("CDR0713"), "{}", ran.stderr);
    let before = stage.config();
    stage
        .run(&["remove", "alpha", "--target", "local", "--dry-run"])
        .ends(0);
    assert_eq!(stage.config(), before);
    stage.run(&["remove", "alpha", "--target", "local"]).ends(0);
    assert!(!stage.path("home/.claude/skills/alpha").exists());
    container.sh("test -f $HOME/.claude/skills/alpha/SKILL.md");
    assert!(stage.config().contains(&target) && !stage.config().contains("\"local\""));
    stage.run(&["verify"]).ends(0);
    // The last place takes the skill out of the file.
    stage.run(&["remove", "alpha", "--target", &target]).ends(0);
    assert!(!stage.config().contains("alpha"), "{}", stage.config());
    assert_eq!(container.sh("ls -A $HOME/.claude/skills"), "");
}

/// SKILL-3: a container that does not run keeps nobody from another place, and is told once however many skills it holds.
#[test]
fn a_stopped_container_is_told_once_and_keeps_nobody_from_another_place() {
    let (stage, container) = (Stage::new(), Container::start());
    let target = container.target();
    stage.skill("src/alpha", "one");
    stage.skill("src/beta", "two");
    stage
        .run(&["install", "./src", "--all", "--target", &target])
        .ends(0);
    docker(&["stop", "--time", "0", &container.name]);
    let ran = stage.run(&["apply"]).ends(1);
    assert_eq!(ran.stderr.matches("is not running").count(), 1, "{}", ran.stderr);
    assert_eq!(ran.stdout, "", "there is nothing to show");
    stage
        .run(&["install", "./src", "--all", "--target", "local"])
        .ends(0);
    assert_eq!(names(&stage, "home/.claude/skills"), ["alpha", "beta"]);
}

/// SKILL-3: what was put into a container that is gone for good is forgotten on request, and not before.
#[test]
fn a_container_that_is_gone_for_good_is_forgotten_on_request() {
    let (stage, container) = (Stage::new(), Container::start());
    let target = container.target();
    stage.skill("src/alpha", "one");
    stage.skill("src/beta", "two");
    stage
        .run(&["install", "./src", "--all", "--target", &target])
        .ends(0);
    docker(&["rm", "--force", &container.name]);
    let ran = stage.run(&["remove", "alpha"]).ends(1);
    assert!(
        ran.stderr.contains("does not exist") && ran.stderr.contains("--force"),
        "{}",
        ran.stderr
    );
    assert_eq!(stage.lock()["skills"].as_array().map(Vec::len), Some(2));
    stage.run(&["remove", "alpha", "--force"]).ends(0);
    let lock = stage.lock();
    assert_eq!(lock["skills"].as_array().map(Vec::len), Some(1));
    // One that is still wanted there is not forgotten by force: the container may come back.
    let ran = stage.run(&["apply", "--force"]).ends(1);
    assert!(ran.stderr.contains("docker run"), "{}", ran.stderr);
    assert_eq!(stage.lock(), lock);
}

/// SKILL-2: the home directory is `HOME`, else `USERPROFILE`.
#[test]
fn the_home_directory_has_two_names() {
    let stage = Stage::new();
    stage.skill("src/alpha", "one");
    let ended = stage
        .command(&["install", "./src"])
        .env_remove("HOME")
        .env("USERPROFILE", stage.path("profile"))
        .output()
        .expect("starts");
    assert!(ended.status.success(), "{ended:?}");
    assert!(stage.path("profile/.claude/skills/alpha/SKILL.md").is_file());
    let ended = stage
        .command(&["install", "./src", "--copy"])
        .env("USERPROFILE", stage.path("profile"))
        .output()
        .expect("starts");
    assert!(ended.status.success(), "{ended:?}");
    assert!(stage.path("home/.claude/skills/alpha/SKILL.md").is_file());
}

/// A bar moves on a terminal; what is read by programs holds none.
#[test]
fn a_bar_moves_on_a_terminal_and_nowhere_else() {
    let stage = Stage::new();
    stage.skill("src/alpha", "one");
    let ran = stage.run(&["install", "./src"]).ends(0);
    assert!(
        !ran.stderr.contains(['━', '─', '\u{1b}']) && !ran.stdout.contains('\u{1b}'),
        "{} {}",
        ran.stdout,
        ran.stderr
    );
    let program = env!("CARGO_BIN_EXE_conductor");
    let line = format!(
        "{program} --data-dir {} skills apply",
        stage.path("data").display()
    );
    let on_terminal = |line: &str| {
        let shown = Command::new("script")
            .args(["--quiet", "--return", "--command", line, "/dev/null"])
            .env("HOME", stage.path("home"))
            .env("TERM", "xterm")
            .stdin(Stdio::null())
            .output()
            .expect("script starts");
        assert!(shown.status.success(), "{shown:?}");
        String::from_utf8_lossy(&shown.stdout).into_owned()
    };
    let shown = on_terminal(&line);
    assert!(shown.contains("/1 alpha → local"), "{shown}");
    let shown = on_terminal(&format!("{line} --quiet"));
    assert!(!shown.contains("alpha → local"), "{shown}");
}

/// Runs a script where one directory of the stage is what `mount` makes of it; `$0` stands for the program.
fn with_mount(stage: &Stage, mount: &[&str], script: &str) -> Ran {
    let ended = loop {
        let ended = Command::new("bwrap")
            .args(["--dev-bind", "/", "/"])
            .args(mount)
            .args(["sh", "-c", script, env!("CARGO_BIN_EXE_conductor")])
            .env("CONDUCTOR_DATA_DIR", stage.path("data"))
            .env("HOME", stage.path("home"))
            .current_dir(stage.dir.path())
            .output()
            .expect("bwrap starts");
        // A container of another test took its mounts along while they were listed; nothing of the script has begun.
        if !ended.stderr.starts_with(b"bwrap: Can't bind mount") {
            break ended;
        }
    };
    Ran {
        code: ended.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&ended.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&ended.stderr).into_owned(),
    }
}

/// SKILL-2: a disk of this machine that is full leaves the old version whole and nothing beside it.
#[test]
fn a_full_disk_of_this_machine_leaves_the_old_version() {
    let stage = Stage::new();
    stage.skill("src/alpha", "one");
    stage.write("big.txt", &"x".repeat(300_000));
    fs::create_dir(stage.path("home/.claude")).expect("made");
    let place = stage.path("home/.claude").display().to_string();
    let ran = with_mount(
        &stage,
        &["--size", "200000", "--tmpfs", &place],
        "$0 skills install ./src --copy --quiet >&2 || exit 90\n\
         mv big.txt src/alpha/ && echo two >> src/alpha/SKILL.md\n\
         $0 skills update --apply --quiet >&2; ended=$?\n\
         ls -A ~/.claude/skills; tail -n 1 ~/.claude/skills/alpha/SKILL.md\n\
         rm src/alpha/big.txt; $0 skills update --apply --quiet >&2 || exit 91\n\
         tail -n 1 ~/.claude/skills/alpha/SKILL.md; exit $ended",
    )
    .ends(1);
    assert_eq!(ran.stdout, "alpha\none\ntwo\n", "{}", ran.stderr);
    assert!(
        ran.stderr.contains("CDR0714") && ran.stderr.contains("free some space there"),
        "{}",
        ran.stderr
    );
}

/// SKILL-2: a file system that cannot be written is told with what to do, and what is there stays.
#[test]
fn a_read_only_disk_of_this_machine_is_told() {
    let stage = Stage::new();
    stage.skill("src/alpha", "one");
    stage.run(&["install", "./src", "--copy"]).ends(0);
    stage.skill("src/alpha", "two");
    let place = stage.path("home/.claude").display().to_string();
    let read_only = ["--ro-bind", &place, &place];
    for script in ["$0 skills update --apply", "$0 skills remove alpha"] {
        let ran = with_mount(&stage, &read_only, script).ends(1);
        assert!(
            ran.stderr.contains("CDR0714") && ran.stderr.contains("file system that can be written"),
            "{script}: {}",
            ran.stderr
        );
    }
    assert!(
        stage
            .read("home/.claude/skills/alpha/SKILL.md")
            .ends_with("one\n")
    );
    assert_eq!(names(&stage, "home/.claude/skills"), ["alpha"]);
    // What could not be taken away is still known.
    stage.run(&["apply"]).ends(0);
    assert_eq!(names(&stage, "home/.claude/skills"), Vec::<String>::new());
}

/// A license is told before the install: by its name, else by its text; one that nobody knows is told as such.
#[test]
fn licenses_are_told_before_the_install() {
    let stage = Stage::new();
    let cases = [
        ("apache", "license: Apache-2.0\n", "", "permissive"),
        ("choice", "license: MIT OR GPL-3.0-only\n", "", "permissive"),
        ("copyleft", "license: GPL-3.0-only\n", "", "non-permissive"),
        (
            "closed",
            "license: Proprietary. See LICENSE.txt\n",
            "",
            "non-permissive",
        ),
        ("nothing", "", "", "unknown"),
        ("own-words", "license: ask me\n", "", "unknown"),
        (
            "by-text",
            "",
            "Permission is hereby granted, free of charge, to any",
            "permissive",
        ),
        (
            "by-text-gnu",
            "",
            "GNU GENERAL PUBLIC\n  LICENSE\n",
            "non-permissive",
        ),
    ];
    for (name, line, text, _) in cases {
        let manifest = format!("---\nname: {name}\ndescription: d\n{line}---\n");
        stage.write(&format!("src/{name}/SKILL.md"), &manifest);
        if !text.is_empty() {
            stage.write(&format!("src/{name}/LICENSE"), text);
        }
    }
    let ran = stage
        .run(&["install", "./src", "--all", "--dry-run", "--json"])
        .ends(0);
    let labels = &ran.json()["labels"];
    for (name, _, _, license) in cases {
        assert_eq!(labels[name]["license"], license, "{name}");
    }
    for said in [
        "copyleft: its license asks for more than credit: GPL-3.0-only\n",
        "nothing: it names no license\n",
        "own-words: its license is not known: ask me\n",
    ] {
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
    assert!(!ran.stderr.contains("apache"), "{}", ran.stderr);
}

/// A file of somebody else that is wrong is told by its own name.
#[test]
fn an_import_that_is_wrong_names_the_file_that_it_came_from() {
    let stage = Stage::new();
    stage.run(&["init"]).ends(0);
    stage.write("theirs.toml", "version = 7\n");
    let before = stage.snapshot();
    let ran = stage.run(&["import", "--from", "theirs.toml", "--force"]).ends(2);
    assert!(
        ran.stderr.contains("theirs.toml") && ran.stderr.contains("CDR0701"),
        "{}",
        ran.stderr
    );
    assert_eq!(stage.snapshot(), before);
}
