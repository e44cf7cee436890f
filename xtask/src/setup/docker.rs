//! Makes a Docker engine answer and gives it a base image to test with.
//!
//! An engine that answers is used as it is. Where root finds none, the distribution's `dockerd` is installed and kept
//! running in the background; its log and process id stand below `target/tools/docker`. It does not know what tests
//! run in containers.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::{apt, image, ready};
use crate::process::{self, command};
use crate::workspace;

const ATTEMPTS: u32 = 300;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(200);

/// Makes sure that `docker info` answers and that the test base image exists.
pub(super) fn ensure() -> Result<()> {
    if !answers() {
        start()?;
    }
    let version = process::capture(command("docker").args(["version", "--format", "{{.Server.Version}}"]))?;
    ready("docker", &format!("engine {}", version.trim()));
    image::ensure()
}

fn answers() -> bool {
    process::succeeds(command("docker").arg("info"))
}

fn start() -> Result<()> {
    if !apt::is_root() {
        bail!(
            "no Docker engine answers, and only root may start one\n\
             hint: sudo apt-get install -y docker.io && sudo usermod -aG docker \"$USER\" && sudo systemctl start docker\n\
             hint: then log in again, so that the new group counts"
        );
    }
    if workspace::find("docker").is_none() || workspace::find("dockerd").is_none() {
        apt::install(&["docker.io"])?;
        // With an init system, the package has started the engine by now.
        if answers() {
            return Ok(());
        }
    }
    let home = workspace::tool("docker");
    fs::create_dir_all(&home).with_context(|| format!("could not make {}", home.display()))?;
    let log = home.join("dockerd.log");
    let out = File::create(&log).with_context(|| format!("could not write {}", log.display()))?;
    let err = out.try_clone().context("could not copy the log's descriptor")?;
    let dockerd = workspace::find("dockerd").context("docker.io is installed but there is no dockerd")?;
    // A session of its own: the engine outlives this command and the terminal it was typed in.
    process::run(
        command("setsid")
            .arg("--fork")
            .arg(dockerd)
            .arg("--pidfile")
            .arg(home.join("dockerd.pid"))
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err),
    )?;
    wait(&log)
}

fn wait(log: &Path) -> Result<()> {
    for _ in 0..ATTEMPTS {
        if answers() {
            return Ok(());
        }
        thread::sleep(BETWEEN_ATTEMPTS);
    }
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let tail = lines[lines.len().saturating_sub(20)..].join("\n");
    bail!(
        "dockerd did not answer within {:?}; the end of {}:\n{tail}",
        BETWEEN_ATTEMPTS * ATTEMPTS,
        log.display()
    )
}
