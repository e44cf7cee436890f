//! The nineteen defects that the one peer with containers showed on a real engine; each is a test, here or beside the
//! adapter (7, 8, 9 and 19 are in `conductor-skill`, 2, 17 and 18 also in the contract of every target).

use std::fs;
use std::io::Read as _;
use std::process::Stdio;

use crate::stage::{Container, Stage};

/// Where skills go in the container of the tests, whose user is root.
const INSIDE: &str = "$HOME/.claude/skills";

/// Detection of agents inside the container ended with the status of its last guess. SKILL-2.
#[test]
fn defect_01_a_container_without_any_agent_takes_skills() {
    let (stage, container) = (Stage::new(), Container::start());
    stage.skill("src/alpha", "one");
    let ran = stage
        .run(&["install", "./src", "--target", &container.target(), "--json"])
        .ends(0);
    assert_eq!(ran.json()["items"][0]["outcome"], "done");
    assert!(
        container
            .sh(&format!("cat {INSIDE}/alpha/SKILL.md"))
            .contains("name: alpha")
    );
}

/// The parent directory was never made.
#[test]
fn defect_02_parents_are_made_in_the_container() {
    let (stage, container) = (Stage::new(), Container::start());
    stage.skill("src/alpha", "one");
    let path = "/srv/not/there/yet";
    stage
        .run(&[
            "install",
            "./src",
            "--target",
            &container.target(),
            "--path",
            path,
        ])
        .ends(0);
    assert_eq!(container.sh(&format!("ls {path}")), "alpha");
}

/// Plan, apply, verify and doctor looked at the host for docker targets, and wrote there.
#[test]
fn defect_03_every_command_looks_into_the_container_and_never_at_the_host() {
    let (stage, container) = (Stage::new(), Container::start());
    stage.skill("src/alpha", "one");
    stage
        .run(&["add", "./src", "--target", &container.target()])
        .ends(0);
    let plan = stage.run(&["plan", "--json"]).ends(0).json();
    assert_eq!(plan["items"][0]["action"], "create");
    stage.run(&["verify"]).ends(1);
    stage.run(&["apply"]).ends(0);
    stage.run(&["verify"]).ends(0);
    assert!(!stage.path("home/.claude").exists(), "the host is untouched");
    container.sh(&format!("rm {INSIDE}/alpha/SKILL.md"));
    let plan = stage.run(&["verify", "--strict", "--json"]).ends(3).json();
    assert_eq!(plan["items"][0]["action"], "conflict");
    let found = stage.run(&["doctor", "--json"]).ends(1).json();
    assert_eq!(found["findings"][0]["code"], "PLAN_CONFLICT");
    stage.run(&["apply", "--force"]).ends(0);
    container.sh(&format!("test -f {INSIDE}/alpha/SKILL.md"));
    // The same skill elsewhere on the host changes nothing for the container.
    stage.skill("home/.claude/skills/alpha", "mine");
    stage.run(&["verify"]).ends(0);
}

/// Removal left the container as it was and took the host's own skill of the same name.
#[test]
fn defect_04_removal_takes_it_from_the_container_and_leaves_the_hosts_own() {
    let (stage, container) = (Stage::new(), Container::start());
    stage.skill("src/alpha", "one");
    stage.skill("home/.claude/skills/alpha", "mine");
    stage
        .run(&["install", "./src", "--target", &container.target()])
        .ends(0);
    stage.run(&["remove", "alpha"]).ends(0);
    assert_eq!(container.sh(&format!("ls -A {INSIDE}")), "");
    assert!(stage.read("home/.claude/skills/alpha/SKILL.md").contains("mine"));
    assert!(!stage.config().contains("alpha"));
    // What Conductor did not put there stays, even if it is told to force.
    stage
        .run(&["install", "./src", "--target", "local", "--force"])
        .ends(1);
    stage.run(&["remove", "alpha", "--force"]).ends(0);
    assert!(stage.read("home/.claude/skills/alpha/SKILL.md").contains("mine"));
}

/// The lock held the host's path for docker targets.
#[test]
fn defect_05_the_lock_holds_the_path_in_the_container_and_which_container_it_was() {
    let (stage, container) = (Stage::new(), Container::start());
    stage.skill("src/alpha", "one");
    stage
        .run(&["install", "./src", "--target", &container.target()])
        .ends(0);
    let lock = stage.lock();
    let put = &lock["skills"][0]["targets"][0];
    let home = container.sh("echo $HOME");
    assert_eq!(
        put["path"].as_str(),
        Some(format!("{home}/.claude/skills/alpha").as_str())
    );
    assert_eq!(put["environment"].as_str(), Some(container.target().as_str()));
    let id = crate::stage::docker(&["inspect", "--format", "{{.Id}}", &container.name]);
    assert_eq!(put["identity"].as_str(), Some(id.as_str()));
    // A container that was made anew is noticed.
    crate::stage::docker(&["rm", "--force", &container.name]);
    crate::stage::docker(&[
        "run",
        "--detach",
        "--network=none",
        "--init",
        "--name",
        &container.name,
        "debian:12",
        "sleep",
        "infinity",
    ]);
    let plan = stage.run(&["plan", "--json"]).ends(0).json();
    assert_eq!(
        plan["items"][0]["reasons"][0],
        "the environment was made anew since"
    );
}

/// `-y` overrode `--skill` and installed everything.
#[test]
fn defect_06_yes_never_widens_the_choice() {
    let stage = Stage::new();
    stage.skill("src/alpha", "one");
    stage.skill("src/beta", "two");
    stage.run(&["install", "./src", "--skill", "beta", "-y"]).ends(0);
    let installed: Vec<_> = fs::read_dir(stage.path("home/.claude/skills"))
        .expect("listed")
        .map(|entry| entry.expect("entry").file_name())
        .collect();
    assert_eq!(installed, ["beta"]);
    let ran = stage.run(&["install", "./src", "--skill", "gamma", "-y"]).ends(2);
    assert!(ran.stderr.contains("there are alpha, beta"), "{}", ran.stderr);
}

/// A dry run made the file.
#[test]
fn defect_10_a_dry_run_writes_nothing() {
    let (stage, container) = (Stage::new(), Container::start());
    stage.skill("src/alpha", "one");
    let target = container.target();
    let before = stage.snapshot();
    let plan = stage
        .run(&[
            "install",
            "./src",
            "--target",
            &target,
            "--target",
            "local",
            "--dry-run",
            "--json",
        ])
        .ends(0)
        .json();
    assert_eq!(plan["items"].as_array().map(Vec::len), Some(2));
    assert_eq!(stage.snapshot(), before);
    stage
        .run(&["install", "./src", "--target", &target, "--target", "local"])
        .ends(0);
    stage.skill("src/alpha", "two");
    let before = stage.snapshot();
    for arguments in [
        &["apply", "--dry-run"][..],
        &["remove", "alpha", "--dry-run"],
        &["update", "--apply", "--dry-run"],
        &["clean", "--dry-run"],
        &["plan"],
        &["verify"],
        &["doctor"],
        &["list"],
    ] {
        stage.run(arguments);
        assert_eq!(stage.snapshot(), before, "{arguments:?}");
    }
    assert!(
        container
            .sh(&format!("cat {INSIDE}/alpha/SKILL.md"))
            .contains("one")
    );
}

/// The first install wrote an empty commit.
#[test]
fn defect_11_the_first_install_locks_the_commit() {
    let stage = Stage::new();
    let commit = crate::sources::repository(&stage, "git/owner/repo", &[("alpha", "one")]);
    let url = format!("file://{}", stage.path("git/owner/repo").display());
    stage.run(&["install", &url]).ends(0);
    assert_eq!(
        stage.lock()["skills"][0]["resolved_commit"].as_str(),
        Some(commit.as_str())
    );
}

/// `apply --json` printed words for people.
#[test]
fn defect_12_json_is_all_that_stands_on_stdout() {
    let stage = Stage::new();
    stage.skill("src/alpha", "one");
    stage.write("src/alpha/run.sh", "#!/bin/sh\n");
    for arguments in [
        &["init"][..],
        &["add", "./src"],
        &["plan"],
        &["apply"],
        &["apply"],
        &["verify"],
        &["doctor"],
        &["update"],
        &["list"],
        &["prompt"],
        &["export"],
        &["clean"],
        &["remove", "alpha"],
    ] {
        let ran = stage.run(&[arguments, &["--json"]].concat()).ends(0);
        drop(ran.json());
    }
}

/// Two skills of one repository shared one record of labels.
#[test]
fn defect_13_two_skills_of_one_repository_have_labels_of_their_own() {
    let stage = Stage::new();
    stage.skill("src/alpha", "one");
    stage.write("src/alpha/run.sh", "#!/bin/sh\n");
    stage.skill("src/beta", "two");
    let plan = stage
        .run(&["install", "./src", "--dry-run", "--json"])
        .ends(0)
        .json();
    assert_eq!(plan["labels"]["alpha"]["risks"][0]["risk"], "shell-script");
    assert_eq!(plan["labels"]["alpha"]["risks"][0]["files"][0], "run.sh");
    assert_eq!(plan["labels"]["beta"]["risks"].as_array().map(Vec::len), Some(0));
    assert_eq!(plan["labels"]["beta"]["license"], "permissive");
}

/// One directory in the way was found three times.
#[test]
fn defect_14_one_fact_is_one_finding() {
    let stage = Stage::new();
    stage.skill("src/alpha", "one");
    stage.write("home/.claude/skills/alpha/mine.md", "mine");
    stage.run(&["add", "./src"]).ends(0);
    let found = stage.run(&["doctor", "--json"]).ends(1).json();
    assert_eq!(
        found["summary"],
        serde_json::json!({"total": 1, "error": 1, "warning": 0})
    );
    assert_eq!(found["findings"][0]["code"], "PLAN_CONFLICT");
}

/// A reader that went away made it panic.
#[test]
fn defect_15_a_reader_that_goes_away_is_no_panic() {
    let stage = Stage::new();
    for number in 0..40 {
        stage.skill(&format!("src/skill-{number}"), "x");
    }
    stage.run(&["add", "./src", "--all"]).ends(0);
    let mut child = stage
        .command(&["plan", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    drop(child.stdout.take());
    let mut said = String::new();
    child
        .stderr
        .take()
        .expect("piped")
        .read_to_string(&mut said)
        .expect("read");
    assert_eq!(child.wait().expect("ends").code(), Some(0), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}

/// Where a skill came from was `unknown-host` unless a variable was exported; here it is the source itself.
#[test]
fn defect_16_where_a_skill_came_from_does_not_depend_on_the_environment() {
    let stage = Stage::new();
    stage.skill("src/alpha", "one");
    stage.run(&["install", "./src"]).ends(0);
    let source = stage.path("src/alpha").display().to_string();
    assert_eq!(
        stage.lock()["skills"][0]["source"].as_str(),
        Some(source.as_str())
    );
}

/// Paths went through a shell.
#[test]
fn defect_17_paths_and_names_are_never_run() {
    let (stage, container) = (Stage::new(), Container::start());
    stage.skill("src/alpha", "one");
    let path = "/srv/$(touch pwned)`touch pwned`";
    stage
        .run(&[
            "install",
            "./src",
            "--target",
            &container.target(),
            "--path",
            path,
        ])
        .ends(0);
    stage.run(&["remove", "alpha"]).ends(0);
    assert_eq!(container.sh("find / -xdev -name pwned"), "");
    for target in ["docker:$(id)", "docker:-v", "docker:a b"] {
        let ran = stage.run(&["install", "./src", "--target", target]).ends(2);
        assert!(ran.stderr.contains("CDR0703"), "{}", ran.stderr);
    }
}

/// Files that the new version does not have stayed, and nothing was checked after the copy.
#[test]
fn defect_18_an_update_leaves_nothing_of_the_old_version() {
    let (stage, container) = (Stage::new(), Container::start());
    stage.skill("src/alpha", "one");
    stage.write("src/alpha/old.md", "old");
    stage
        .run(&["install", "./src", "--target", &container.target()])
        .ends(0);
    fs::remove_file(stage.path("src/alpha/old.md")).expect("removed");
    stage.write("src/alpha/new.md", "new");
    stage.run(&["update", "--apply"]).ends(0);
    assert_eq!(
        container.sh(&format!("cd {INSIDE}/alpha && ls")),
        "SKILL.md\nnew.md"
    );
    stage.run(&["verify"]).ends(0);
}

/// SKILL-3: a stopped container is told with what to do, by every command, and ends with 1.
#[test]
fn defect_09_a_stopped_container_is_told_with_what_to_do_by_every_command() {
    let (stage, container) = (Stage::new(), Container::start());
    stage.skill("src/alpha", "one");
    stage
        .run(&["install", "./src", "--target", &container.target()])
        .ends(0);
    crate::stage::docker(&["stop", "--time", "0", &container.name]);
    for arguments in [
        &["plan"][..],
        &["apply"],
        &["verify"],
        &["remove", "alpha"],
        &["install", "./src", "--target", &container.target()],
    ] {
        let ran = stage.run(arguments).ends(1);
        let said = format!("Container '{}' is not running", container.name);
        let hint = format!("Start it with `docker start {}`", container.name);
        assert!(
            ran.stderr.contains(&said) && ran.stderr.contains(&hint),
            "{arguments:?}: {}",
            ran.stderr
        );
    }
    // What could not be taken away is not forgotten.
    crate::stage::docker(&["start", &container.name]);
    stage.run(&["remove", "alpha"]).ends(0);
    assert_eq!(container.sh(&format!("ls -A {INSIDE}")), "");
}
