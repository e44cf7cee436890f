//! What the engine says about a container: whether it runs, which one it is, who works in it, what is mounted where.
//!
//! This module does not know what is put into it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use conductor_port::target::TargetFault;
use serde::Deserialize;

use super::call::Docker;

/// Only what is used is asked for, as JSON.
const FORMAT: &str = r#"{"id":{{json .Id}},"state":{{json .State}},"user":{{json .Config.User}},"env":{{json .Config.Env}},"mounts":{{json .Mounts}},"host":{{json .HostConfig}}}"#;

/// A container that runs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Container {
    /// Its id; a container that is made anew under the same name has another one.
    pub(super) id: String,
    state: State,
    #[serde(default)]
    user: String,
    #[serde(default)]
    env: Option<Vec<String>>,
    #[serde(default)]
    mounts: Option<Vec<Mount>>,
    host: Host,
}

/// Fields that an engine may leave out when they are empty, which is why the whole is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Host {
    #[serde(default)]
    tmpfs: Option<BTreeMap<String, String>>,
    #[serde(default)]
    readonly_rootfs: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct State {
    running: bool,
    #[serde(default)]
    paused: bool,
    #[serde(default)]
    restarting: bool,
}

/// A directory of the container that lies elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Mount {
    #[serde(rename = "Type", default)]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) source: PathBuf,
    pub(super) destination: PathBuf,
    #[serde(rename = "RW", default)]
    pub(super) writable: bool,
}

impl Container {
    /// Asks for a container and makes sure that it can be worked in.
    pub(super) async fn healthy(docker: &Docker, name: &str) -> Result<Self, TargetFault> {
        let finished = docker
            .call(["inspect", "--type", "container", "--format", FORMAT, name], None)
            .await?;
        let unhealthy = |what: String, hint: String| Err(TargetFault::Unhealthy { what, hint });
        if finished.status != 0 {
            let said = finished.stderr;
            let lower = said.to_lowercase();
            if lower.contains("no such") {
                return Err(TargetFault::Gone {
                    what: format!("Container '{name}' does not exist"),
                    hint: format!("Create it with `docker run -d --name {name} …`, or correct the name"),
                });
            }
            if lower.contains("permission denied") {
                return unhealthy(
                    format!("this user may not speak with the Docker engine: {said}"),
                    "join the group `docker`, or run as a user who may".to_owned(),
                );
            }
            return unhealthy(
                format!("the Docker engine does not answer: {said}"),
                "start the engine; `docker info` tells more".to_owned(),
            );
        }
        let container: Self =
            serde_json::from_slice(&finished.stdout).map_err(|error| TargetFault::Failed {
                what: format!("reading what docker says about '{name}': {error}"),
                hint: "check the engine's version with `docker version`".to_owned(),
            })?;
        let state = &container.state;
        if !state.running {
            unhealthy(
                format!("Container '{name}' is not running"),
                format!("Start it with `docker start {name}`"),
            )
        } else if state.paused {
            unhealthy(
                format!("Container '{name}' is paused"),
                format!("Let it go on with `docker unpause {name}`"),
            )
        } else if state.restarting {
            unhealthy(
                format!("Container '{name}' is restarting"),
                format!("Look at why with `docker logs {name}`"),
            )
        } else {
            Ok(container)
        }
    }

    /// The mount that a path lies on: the longest one wins, however they are listed.
    pub(super) fn mount_of(&self, path: &Path) -> Option<&Mount> {
        self.mounts
            .iter()
            .flatten()
            .filter(|mount| path.starts_with(&mount.destination))
            .max_by_key(|mount| mount.destination.components().count())
    }

    /// Refuses a path that cannot be written, before anything is tried.
    pub(super) fn require_writable(&self, path: &Path) -> Result<(), TargetFault> {
        let refuse = |what: String, hint: &str| {
            Err(TargetFault::Failed {
                what: format!("{} cannot be written: {what}", path.display()),
                hint: hint.to_owned(),
            })
        };
        let in_memory = self
            .host
            .tmpfs
            .iter()
            .flatten()
            .find(|(at, _)| path.starts_with(at));
        match self.mount_of(path) {
            Some(mount) if !mount.writable => refuse(
                format!("{} is mounted read-only", mount.destination.display()),
                "mount it writable, or put the skill on the host's side of the mount",
            ),
            Some(mount) if mount.kind == "tmpfs" => refuse(
                format!(
                    "{} is a tmpfs, into which docker cannot copy",
                    mount.destination.display()
                ),
                "name a directory that is no tmpfs",
            ),
            None if in_memory.is_some() => refuse(
                "it is a tmpfs, into which docker cannot copy".to_owned(),
                "name a directory that is no tmpfs",
            ),
            None if self.host.readonly_rootfs => refuse(
                "the container's file system is read-only".to_owned(),
                "recreate the container without --read-only, or with a volume there",
            ),
            Some(_) | None => Ok(()),
        }
    }

    /// The user's numbers, where they are known without asking inside.
    pub(super) fn numeric_user(&self) -> Option<(u64, u64)> {
        if matches!(self.user.as_str(), "" | "0" | "root" | "root:root" | "0:0") {
            return Some((0, 0));
        }
        let (user, group) = self.user.split_once(':').unwrap_or((&self.user, "0"));
        Some((user.parse().ok()?, group.parse().ok()?))
    }

    /// The home directory, where it is known without asking inside.
    pub(super) fn home(&self) -> Option<PathBuf> {
        let set = self
            .env
            .iter()
            .flatten()
            .find_map(|pair| pair.strip_prefix("HOME="));
        match set {
            Some(home) => Some(PathBuf::from(home)),
            None if self.numeric_user() == Some((0, 0)) => Some(PathBuf::from("/root")),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(mounts: &str) -> Container {
        let text = format!(
            r#"{{"id":"c","state":{{"Running":true}},"user":"","env":null,"mounts":{mounts},"host":{{"Tmpfs":{{"/mem":""}}}}}}"#
        );
        serde_json::from_str(&text).expect("well-formed")
    }

    /// Defect 7: the first mount that matches won, not the longest.
    #[test]
    fn defect_07_of_nested_mounts_the_longest_counts() {
        let outer = r#"{"Type":"bind","Source":"/h","Destination":"/home/u","RW":true}"#;
        let inner = r#"{"Type":"bind","Source":"/i","Destination":"/home/u/.claude","RW":false}"#;
        for mounts in [format!("[{outer},{inner}]"), format!("[{inner},{outer}]")] {
            let container = container(&mounts);
            let found = container
                .mount_of(Path::new("/home/u/.claude/skills"))
                .expect("a mount");
            assert_eq!(found.source, Path::new("/i"), "{mounts}");
            assert!(
                container
                    .require_writable(Path::new("/home/u/.claude/skills"))
                    .is_err()
            );
            assert!(
                container
                    .require_writable(Path::new("/home/u/.claudette"))
                    .is_ok()
            );
            assert_eq!(container.mount_of(Path::new("/home/v")), None);
        }
        assert!(
            container("[]")
                .require_writable(Path::new("/mem/skills"))
                .is_err()
        );
    }
}
