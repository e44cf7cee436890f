//! A home, a data directory and sources of a test's own, and the program that works on them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

pub(crate) struct Stage {
    pub(crate) dir: tempfile::TempDir,
}

pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {} / {}", self.stdout, self.stderr))
    }

    /// Expects an exit code and returns what was said.
    pub(crate) fn ends(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "stdout: {}\nstderr: {}",
            self.stdout, self.stderr
        );
        self
    }
}

impl Stage {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(dir.path().join("home")).expect("made");
        Self { dir }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_conductor"));
        command
            .env_remove("CONDUCTOR_DATA_DIR")
            .env_remove("HOSTNAME")
            .env("HOME", self.path("home"))
            .current_dir(self.dir.path())
            .arg("--data-dir")
            .arg(self.path("data"))
            .arg("skills")
            .args(arguments);
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        let output: Output = self.command(arguments).output().expect("the program starts");
        Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, content).expect("written");
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub(crate) fn skill(&self, path: &str, body: &str) {
        let name = Path::new(path)
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a name");
        let text = format!("---\nname: {name}\ndescription: What {name} does.\nlicense: MIT\n---\n{body}\n");
        self.write(&format!("{path}/SKILL.md"), &text);
    }

    pub(crate) fn config(&self) -> String {
        self.read("data/skills/skills.toml")
    }

    pub(crate) fn lock(&self) -> toml::Value {
        toml::from_str(&self.read("data/skills/skills.lock")).expect("a lock")
    }

    /// Everything below the stage but the sources, with sizes; for what must write nothing.
    pub(crate) fn snapshot(&self) -> Vec<String> {
        let mut all = Vec::new();
        collect(self.dir.path(), &mut all);
        all.sort();
        all
    }
}

fn collect(at: &Path, all: &mut Vec<String>) {
    for entry in fs::read_dir(at).expect("listed") {
        let entry = entry.expect("an entry");
        let metadata = entry.path().symlink_metadata().expect("looked at");
        all.push(format!(
            "{} {:?}",
            entry.path().display(),
            metadata.modified().expect("a time")
        ));
        if metadata.is_dir() {
            collect(&entry.path(), all);
        }
    }
}

pub(crate) fn docker(arguments: &[&str]) -> String {
    let output = Command::new("docker")
        .args(arguments)
        .output()
        .expect("docker starts");
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A container that ends with the test.
pub(crate) struct Container {
    pub(crate) name: String,
}

impl Container {
    pub(crate) fn start() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("conductor-skills-cli-{}-{number}", std::process::id());
        docker(&[
            "run",
            "--detach",
            "--network=none",
            "--init",
            "--name",
            &name,
            "debian:12",
            "sleep",
            "infinity",
        ]);
        Self { name }
    }

    pub(crate) fn target(&self) -> String {
        format!("docker:{}", self.name)
    }

    pub(crate) fn sh(&self, script: &str) -> String {
        docker(&["exec", &self.name, "sh", "-c", script])
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let _best_effort = Command::new("docker")
            .args(["rm", "--force", "--volumes", &self.name])
            .output();
    }
}
