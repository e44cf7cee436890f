//! What the tests share: containers of their own, a fake docker, sources.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// The image that `cargo xtask setup docker` provides.
pub(crate) const IMAGE: &str = "debian:12";

pub(crate) fn environment() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

pub(crate) fn write(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().expect("a parent")).expect("made");
    fs::write(path, content).expect("written");
}

pub(crate) fn program(path: &Path, text: &str) {
    write(path, text);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("made executable");
}

pub(crate) fn skill(directory: &Path, name: &str, body: &str) -> PathBuf {
    let at = directory.join(name);
    write(
        &at.join("SKILL.md"),
        &format!("---\nname: {name}\ndescription: What {name} does.\nlicense: MIT\n---\n{body}\n"),
    );
    at
}

pub(crate) fn docker(arguments: &[&str]) -> Output {
    Command::new("docker")
        .args(arguments)
        .output()
        .expect("docker starts")
}

pub(crate) fn docker_ok(arguments: &[&str]) -> String {
    let output = docker(arguments);
    assert!(
        output.status.success(),
        "docker {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A container that ends with the test.
#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) name: String,
}

impl Container {
    /// Starts a container that shares nothing with this machine, unless `options` say so.
    pub(crate) fn start(options: &[&str]) -> Self {
        Self::run(options, IMAGE, &["sleep", "infinity"])
    }

    pub(crate) fn run(options: &[&str], image: &str, command: &[&str]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("conductor-skill-test-{}-{number}", std::process::id());
        let fixed = [
            "run",
            "--detach",
            "--rm",
            "--network=none",
            "--init",
            "--name",
            &name,
        ];
        let all: Vec<&str> = fixed
            .iter()
            .chain(options)
            .chain([&image])
            .chain(command)
            .copied()
            .collect();
        docker_ok(&all);
        Self { name }
    }

    pub(crate) fn sh(&self, script: &str) -> String {
        docker_ok(&["exec", "--user", "0", &self.name, "sh", "-c", script])
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        docker(&["rm", "--force", "--volumes", &self.name]);
    }
}
