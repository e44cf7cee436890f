//! What the commands say and how they end; what the file may hold; labels; one writer at a time.

use std::fs;

use crate::stage::Stage;

/// SKILL-2, SKILL-4: a file that cannot be understood is told with the place, ends with 2, and nothing is done.
#[test]
fn a_file_that_is_wrong_is_told_and_nothing_is_done() {
    let stage = Stage::new();
    let ran = stage.run(&["plan"]).ends(2);
    assert!(
        ran.stderr.contains("CDR0702") && ran.stderr.contains("skills init"),
        "{}",
        ran.stderr
    );
    let skill = "[[skills]]\nid = \"alpha\"\nsource = { path = \"x\" }\n";
    for (text, code, said) in [
        ("version = 2\n".to_owned(), "CDR0701", "version 2"),
        ("version = 1\ncolour = 1\n".to_owned(), "CDR0701", "colour"),
        (
            "version = 1\nconcurrency = 0\n".to_owned(),
            "CDR0701",
            "between 1 and 100",
        ),
        (format!("version = 1\n{skill}{skill}"), "CDR0701", "twice"),
        (
            "version = 1\n[[skills]]\nid = \"../x\"\n".to_owned(),
            "CDR0701",
            "no name of a skill",
        ),
        (
            "version = 1\n[[skills]]\nid = \"a\"\n".to_owned(),
            "CDR0701",
            "neither a source nor a version",
        ),
        (
            format!("version = 1\n{skill}[[skills.targets]]\nenvironment = \"ssh:h\"\n"),
            "CDR0704",
            "reserved",
        ),
        (
            format!("version = 1\n{skill}[[skills.targets]]\nenvironment = \"mars\"\n"),
            "CDR0701",
            "no environment",
        ),
        (
            format!("version = 1\n{skill}[[skills.targets]]\nenvironment = \"docker:x\"\npath = \"rel\"\n"),
            "CDR0701",
            "no absolute path",
        ),
        (
            format!("version = 1\n{skill}[[skills.targets]]\nagent = \"nobody\"\n"),
            "CDR0701",
            "not known",
        ),
    ] {
        stage.write("data/skills/skills.toml", &text);
        for command in ["plan", "apply", "verify", "doctor", "list", "update"] {
            let ran = stage.run(&[command]).ends(2);
            assert!(
                ran.stderr.contains(code) && ran.stderr.contains(said),
                "{command}: {}",
                ran.stderr
            );
        }
    }
    // So is what is asked for by hand.
    fs::remove_file(stage.path("data/skills/skills.toml")).expect("removed");
    stage.skill("src/alpha", "one");
    for command in ["install", "add"] {
        let ran = stage.run(&[command, "./src", "--target", "ssh:host"]).ends(2);
        assert!(
            ran.stderr.contains("CDR0704") && ran.stderr.contains("reserved"),
            "{command}: {}",
            ran.stderr
        );
    }
    assert!(!stage.path("data/skills/skills.toml").exists());
}

/// SKILL-4: a person's comments and order survive what the program adds and removes.
#[test]
fn the_file_keeps_what_a_person_wrote() {
    let stage = Stage::new();
    stage.skill("src/alpha", "one");
    stage.skill("src/beta", "two");
    stage.write(
        "data/skills/skills.toml",
        "# mine\nversion = 1 # one\n\n[storage]\nroot = \"here\"  # spaced\n",
    );
    stage.run(&["install", "./src", "--all"]).ends(0);
    stage.run(&["remove", "alpha"]).ends(0);
    let text = stage.config();
    assert!(
        text.starts_with("# mine\nversion = 1 # one\n\n[storage]\nroot = \"here\"  # spaced\n"),
        "{text}"
    );
    assert!(text.contains("beta") && !text.contains("alpha"), "{text}");
    assert!(stage.path("data/skills/here/trees").is_dir());
}

/// SKILL-1, SKILL-4: links by default, copies on request; a second apply changes nothing; what was lost is mended.
#[test]
fn apply_brings_every_place_to_what_is_wanted_and_then_rests() {
    let stage = Stage::new();
    stage.skill("src/alpha", "one");
    stage.run(&["install", "./src"]).ends(0);
    assert!(stage.path("home/.claude/skills/alpha").is_symlink());
    stage.run(&["install", "./src", "--copy"]).ends(0);
    assert!(!stage.path("home/.claude/skills/alpha").is_symlink());
    let lock = stage.read("data/skills/skills.lock");
    let again = stage.run(&["apply", "--json"]).ends(0).json();
    assert_eq!(again["items"][0]["outcome"], "unchanged");
    assert_eq!(stage.read("data/skills/skills.lock"), lock);
    fs::remove_dir_all(stage.path("home/.claude")).expect("removed");
    stage.run(&["verify"]).ends(1);
    stage.run(&["apply"]).ends(0);
    stage.run(&["verify", "--strict"]).ends(0);
    // A place that is wanted no more is cleared.
    let text = stage.config().replace("~/.claude/skills", "~/.codex/skills");
    stage.write("data/skills/skills.toml", &text);
    stage.run(&["apply"]).ends(0);
    assert!(
        !stage.path("home/.claude/skills/alpha").exists() && stage.path("home/.codex/skills/alpha").exists()
    );
}

/// SKILL-3: what somebody changed stays unless they say so; --strict tells it by 3.
#[test]
fn a_change_by_hand_stays_and_strict_tells_it() {
    let stage = Stage::new();
    stage.skill("src/alpha", "one");
    stage.run(&["install", "./src", "--copy"]).ends(0);
    stage.write("home/.claude/skills/alpha/SKILL.md", "mine");
    stage.run(&["plan"]).ends(0);
    stage.run(&["plan", "--strict"]).ends(3);
    stage.run(&["apply"]).ends(0);
    stage.run(&["apply", "--strict"]).ends(3);
    stage.run(&["remove", "alpha"]).ends(1);
    assert_eq!(stage.read("home/.claude/skills/alpha/SKILL.md"), "mine");
    stage.run(&["apply", "--force"]).ends(0);
    stage.run(&["remove", "alpha"]).ends(0);
    assert!(!stage.path("home/.claude/skills/alpha").exists());
}

/// SKILL-3: a link leads to the store, which is put right again; what somebody wrote through it is kept aside.
#[test]
fn a_change_through_a_link_is_kept_aside() {
    let stage = Stage::new();
    stage.skill("src/alpha", "one");
    stage.run(&["install", "./src"]).ends(0);
    let installed = stage.read("home/.claude/skills/alpha/SKILL.md");
    stage.write("home/.claude/skills/alpha/SKILL.md", "mine");
    stage.run(&["apply"]).ends(0);
    assert_eq!(stage.read("home/.claude/skills/alpha/SKILL.md"), installed);
    let below = |at: &std::path::Path| -> Vec<std::path::PathBuf> {
        let entries = std::fs::read_dir(at).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let store = std::fs::read_link(stage.path("home/.claude/skills/alpha")).expect("a link");
    let store = store.ancestors().nth(3).expect("trees lie in the store");
    let kept = below(&store.join("changed"));
    let kept: Vec<String> = kept
        .iter()
        .map(|place| std::fs::read_to_string(place.join("alpha/SKILL.md")).expect("it was kept"))
        .collect();
    assert_eq!(kept, ["mine"]);
}

/// What could run is told before it is installed, and left out on request.
#[test]
fn programs_are_told_and_left_out_on_request() {
    let stage = Stage::new();
    stage.skill("src/alpha", "one");
    stage.write("src/alpha/scripts/run.sh", "#!/bin/sh\n");
    stage.write("src/alpha/tool", "#!/usr/bin/env python3\n");
    stage.write("src/alpha/blob", "\u{7f}ELF\0\0");
    let ran = stage.run(&["install", "./src"]).ends(0);
    for said in [
        "1 shell script: scripts/run.sh",
        "1 Python program: tool",
        "1 binary file: blob",
    ] {
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
    stage.run(&["install", "./src", "--no-exec"]).ends(0);
    let left: Vec<_> = fs::read_dir(stage.path("home/.claude/skills/alpha"))
        .expect("listed")
        .map(|entry| entry.expect("entry").file_name())
        .collect();
    assert_eq!(left, ["SKILL.md"]);
}

/// `/`, the home directory and the store are refused, whatever the file says.
#[test]
fn dangerous_places_are_refused() {
    let stage = Stage::new();
    stage.skill("src/home", "one");
    for path in ["/", "~", "~/.."] {
        let ran = stage.run(&["install", "./src", "--copy", "--path", path]).ends(1);
        assert!(ran.stderr.contains("CDR0711"), "{path}: {}", ran.stderr);
    }
    // A skill whose place would be the home directory itself: `<stage>/home`.
    let parent = stage.dir.path().display().to_string();
    let ran = stage
        .run(&["install", "./src", "--copy", "--path", &parent, "--force"])
        .ends(1);
    assert!(
        ran.stderr.contains("CDR0711") && ran.stderr.contains("home directory"),
        "{}",
        ran.stderr
    );
    assert!(stage.path("home").is_dir() && !stage.path("home/SKILL.md").exists());
    // A lock that somebody wrote by hand leads nowhere else.
    stage.write("data/skills/skills.toml", "version = 1\n");
    let digest = format!("sha256:{}", "0".repeat(64));
    stage.write(
        "data/skills/skills.lock",
        &format!("version = 1\n[[skills]]\nid = \"home\"\nsource = \"x\"\ndigest = \"{digest}\"\n[[skills.targets]]\nenvironment = \"local\"\npath = \"{parent}/home\"\nmode = \"copy\"\ndigest = \"{digest}\"\nidentity = \"local\"\n"),
    );
    stage.run(&["apply", "--force"]);
    assert!(stage.path("home").is_dir());
}

/// Two writers of one file do not meet.
#[test]
fn a_second_writer_is_told_to_wait() {
    let stage = Stage::new();
    stage.skill("src/alpha", "one");
    stage.run(&["install", "./src"]).ends(0);
    let busy = fs::File::create(stage.path("data/skills/store/busy")).expect("made");
    busy.try_lock().expect("ours");
    let ran = stage.run(&["apply"]).ends(1);
    assert!(ran.stderr.contains("CDR0715"), "{}", ran.stderr);
    stage.run(&["plan"]).ends(0);
}

/// Export and import carry the file; clean removes what nobody needs; a lock that is broken is made anew.
#[test]
fn the_files_are_looked_after() {
    let stage = Stage::new();
    stage.run(&["init"]).ends(0);
    stage.run(&["init"]).ends(2);
    stage.skill("src/alpha", "one");
    stage.run(&["install", "./src"]).ends(0);
    let exported = stage.run(&["export"]).ends(0).stdout;
    assert_eq!(exported, stage.config());
    stage.write("other.toml", &exported);
    stage.run(&["import", "--from", "other.toml"]).ends(2);
    stage
        .run(&["import", "--from", "other.toml", "--dry-run"])
        .ends(0);
    stage.run(&["import", "--from", "other.toml", "--force"]).ends(0);
    stage.skill("src/alpha", "two");
    stage.run(&["apply"]).ends(0);
    let cleaned = stage.run(&["clean", "--json"]).ends(0).json();
    assert_eq!(cleaned["removed"].as_array().map(Vec::len), Some(1));
    stage.run(&["verify"]).ends(0);
    stage.write("data/skills/skills.lock", "nonsense");
    let ran = stage.run(&["apply"]).ends(0);
    assert!(ran.stderr.contains("made anew"), "{}", ran.stderr);
    assert_eq!(
        stage.lock()["skills"][0]["targets"][0]["environment"].as_str(),
        Some("local")
    );
    let prompt = stage.run(&["prompt"]).ends(0).stdout;
    let expected = format!(
        "<available_skills>\n<skill>\n<name>\nalpha\n</name>\n<description>\nWhat alpha does.\n</description>\n<location>\n{}\n</location>\n</skill>\n</available_skills>\n",
        stage.path("home/.claude/skills/alpha/SKILL.md").display()
    );
    assert_eq!(prompt, expected);
}
