//! Where skills come from: paths, repositories with branches and tags, a registry.

use std::fs;
use std::process::Command;

use crate::stage::Stage;

/// Makes a repository with skills below `skills/`, and returns the commit.
pub(crate) fn repository(stage: &Stage, path: &str, skills: &[(&str, &str)]) -> String {
    for (name, body) in skills {
        stage.skill(&format!("{path}/skills/{name}"), body);
    }
    commit(stage, path)
}

fn commit(stage: &Stage, path: &str) -> String {
    if !stage.path(path).join(".git").exists() {
        git(stage, path, &["init", "--quiet", "--initial-branch=main"]);
    }
    git(stage, path, &["add", "--all"]);
    git(
        stage,
        path,
        &[
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.org",
            "commit",
            "--quiet",
            "--message=x",
        ],
    );
    git(stage, path, &["rev-parse", "HEAD"])
}

fn git(stage: &Stage, path: &str, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(stage.path(path))
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .args(arguments)
        .output()
        .expect("git starts");
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn url(stage: &Stage, path: &str) -> String {
    format!("file://{}", stage.path(path).display())
}

/// SKILL-4: a commit stays until somebody asks for what is newest; a tag names what it names.
#[test]
fn a_repository_is_locked_and_updated_only_on_request() {
    let stage = Stage::new();
    let first = repository(&stage, "git/owner/repo", &[("alpha", "one"), ("beta", "b")]);
    git(
        &stage,
        "git/owner/repo",
        &[
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.org",
            "tag",
            "--annotate",
            "v1",
            "--message=v1",
        ],
    );
    let url = url(&stage, "git/owner/repo");
    let listed = stage.run(&["install", &url, "--list", "--json"]).ends(0).json();
    assert_eq!(listed[0]["name"], "alpha");
    assert_eq!(listed.as_array().map(Vec::len), Some(2));
    stage
        .run(&["install", &url, "--skill", "alpha", "--ref", "main"])
        .ends(0);
    let second = repository(&stage, "git/owner/repo", &[("alpha", "two")]);
    let installed = || stage.read("home/.claude/skills/alpha/SKILL.md");
    stage.run(&["apply"]).ends(0);
    assert!(installed().contains("one"));
    let news = stage.run(&["update", "--json"]).ends(0).json();
    assert_eq!(news["skills"][0]["status"], "new-content");
    assert_eq!(
        (&news["skills"][0]["local"], &news["skills"][0]["remote"]),
        (&first.clone().into(), &second.clone().into())
    );
    assert!(installed().contains("one"), "asking installs nothing");
    stage.run(&["update", "--apply"]).ends(0);
    assert!(installed().contains("two"));
    stage
        .run(&["install", &url, "--skill", "alpha", "--ref", "v1"])
        .ends(0);
    assert!(installed().contains("one"));
    assert_eq!(
        stage.lock()["skills"][0]["resolved_commit"].as_str(),
        Some(first.as_str())
    );
    // What is locked needs nobody: the repository may be gone, and the clones too.
    fs::remove_dir_all(stage.path("git")).expect("removed");
    fs::remove_dir_all(stage.path("data/skills/store/git")).expect("removed");
    stage.run(&["apply"]).ends(0);
    let ran = stage.run(&["update"]).ends(1);
    assert!(ran.stderr.contains("CDR0705"), "{}", ran.stderr);
}

/// The index of a registry chooses the highest version that will do; one that was taken back is never chosen.
#[test]
fn a_registry_chooses_by_version() {
    let stage = Stage::new();
    let mut commits = Vec::new();
    for body in ["1.0", "1.5", "2.0"] {
        commits.push(repository(&stage, "git/owner/repo", &[("alpha", body)]));
    }
    let entry = format!(
        "[skill]\nname = \"alpha\"\nrepo = \"{}\"\nsubpath = \"skills/alpha\"\n\
         [[versions]]\nversion = \"1.0.0\"\nref = \"main\"\ncommit = \"{}\"\n\
         [[versions]]\nversion = \"1.5.0\"\nref = \"main\"\ncommit = \"{}\"\n\
         [[versions]]\nversion = \"1.9.0\"\nref = \"main\"\ncommit = \"{}\"\nyanked = true\n\
         [[versions]]\nversion = \"2.0.0\"\nref = \"main\"\ncommit = \"{}\"\n",
        url(&stage, "git/owner/repo"),
        commits[0],
        commits[1],
        commits[2],
        commits[2]
    );
    stage.write("git/owner/index/index/a/alpha.toml", &entry);
    stage.write(
        "git/owner/index/manifest.toml",
        "format_version = 1\nname = \"x\"\n",
    );
    commit(&stage, "git/owner/index");
    let config = format!(
        "version = 1\n[registries.main]\nurl = \"{}\"\n",
        url(&stage, "git/owner/index")
    );
    stage.write("data/skills/skills.toml", &config);
    let ran = stage.run(&["install", "alpha", "--version", "^1"]).ends(1);
    assert!(
        ran.stderr.contains("CDR0716") && ran.stderr.contains("update"),
        "{}",
        ran.stderr
    );
    stage.run(&["update"]).ends(0);
    stage.run(&["install", "alpha", "--version", "^1"]).ends(0);
    assert!(stage.read("home/.claude/skills/alpha/SKILL.md").contains("1.5"));
    let lock = stage.lock();
    assert_eq!(lock["skills"][0]["resolved_version"].as_str(), Some("1.5.0"));
    assert_eq!(
        lock["skills"][0]["resolved_commit"].as_str(),
        Some(commits[1].as_str())
    );
    let ran = stage.run(&["install", "alpha", "--version", "=1.9.0"]).ends(1);
    assert!(ran.stderr.contains("yanked"), "{}", ran.stderr);
    let ran = stage.run(&["install", "alpha", "--version", "^3"]).ends(1);
    assert!(
        ran.stderr.contains("there are 1.0.0, 1.5.0, 2.0.0"),
        "{}",
        ran.stderr
    );
}

/// A hostile source neither leads out of itself nor runs anything.
#[test]
fn a_source_that_leads_out_or_is_no_skill_is_refused() {
    let stage = Stage::new();
    stage.skill("src/alpha", "one");
    std::os::unix::fs::symlink("/etc/passwd", stage.path("src/alpha/secret")).expect("linked");
    let ran = stage.run(&["install", "./src"]).ends(1);
    assert!(
        ran.stderr.contains("CDR0706") && ran.stderr.contains("leads out"),
        "{}",
        ran.stderr
    );
    assert!(!stage.path("home/.claude").exists() && !stage.path("data/skills/skills.toml").exists());
    for source in [
        "./nowhere",
        "git@github.com:o/r.git",
        "https://user:secret@host/o/r",
        "a/b/c",
    ] {
        let ran = stage.run(&["add", source]);
        assert!(
            matches!(ran.code, 1 | 2) && ran.stderr.contains("CDR0705"),
            "{source}: {}",
            ran.stderr
        );
        assert!(!ran.stderr.contains("secret@"), "{}", ran.stderr);
    }
}
