//! Puts skills into a running container that shares no directory with this machine (SKILL-2).
//!
//! A skill is copied under a hidden name beside its place, read back by content hash, and only then renamed into place.
//! In a container without a shell, the docker program itself reads back, and a link takes the place of the rename.
//! After the health check every call names the container's id, so a container that is made anew in between is not
//! touched. This module does not know what the container is for.

use std::io;
use std::path::Path;

use async_trait::async_trait;
use conductor_port::target::{
    Changed, Found, Installed, Mode, Output, Placement, Removed, TargetAdapter, TargetFault, Vitals,
};

use crate::environment::ContainerName;
use crate::marker::Marker;
use crate::tree::{MARKER, Tree};

mod call;
mod container;
mod archive;
mod survey;
mod place;

pub use call::Docker;
use call::Finished;
use container::Container;
use place::Work;
use survey::{Kind, LOOK, NO_DIRECTORY, NO_TOOLS, Seen, Survey, TAKE};

const FRESH: &str = ".conductor-new-";
const OLD: &str = ".conductor-old-";
/// Where trees lie to which a link leads, in containers without a shell.
const BEHIND_LINK: &str = ".conductor-tree-";

/// Puts skills into one container.
#[derive(Debug, Clone)]
pub struct DockerAdapter {
    docker: Docker,
    name: ContainerName,
}

/// What can be started in the container.
enum Inside {
    /// A shell with the usual programs; it has looked already.
    Shell(Survey),
    /// Nothing that we could use.
    Bare,
}

impl DockerAdapter {
    /// Leads to the container of this name; starts nothing.
    pub fn new(docker: Docker, name: ContainerName) -> Self {
        Self { docker, name }
    }

    async fn container(&self) -> Result<Container, TargetFault> {
        Container::healthy(&self.docker, self.name.as_str()).await
    }

    async fn script(
        &self,
        container: &Container,
        script: &str,
        arguments: &[&str],
    ) -> Result<Finished, TargetFault> {
        let fixed = ["exec", container.id.as_str(), "sh", "-c", script, "conductor"];
        self.docker.call(fixed.iter().chain(arguments), None).await
    }

    /// Looks at paths with the script and changes nothing.
    async fn look(&self, container: &Container, paths: &[String]) -> Result<Inside, TargetFault> {
        self.look_after(container, ["", ""], paths).await
    }

    /// Looks at paths with the script, after making one directory and removing one left-over.
    async fn look_after(
        &self,
        container: &Container,
        [make, stale]: [&str; 2],
        paths: &[String],
    ) -> Result<Inside, TargetFault> {
        let fixed = [MARKER, make, stale];
        let arguments: Vec<&str> = fixed
            .into_iter()
            .chain(paths.iter().map(String::as_str))
            .collect();
        let finished = self.script(container, LOOK, &arguments).await?;
        match finished.status {
            0 => {
                let answer = String::from_utf8_lossy(&finished.stdout);
                survey::parse(&answer, paths.len())
                    .map(Inside::Shell)
                    .ok_or_else(|| self.failed("looking into", &finished.stderr))
            }
            NO_DIRECTORY => Err(self.failed(&format!("making {make} in"), &finished.stderr)),
            NO_TOOLS => Ok(Inside::Bare),
            // Some engines say on stdout what they could not start.
            126 | 127 if is_missing_program(&finished.all()) => Ok(Inside::Bare),
            _ => Err(self.failed("looking into", &finished.all())),
        }
    }

    /// Looks at one path without starting anything inside.
    async fn read_out(
        &self,
        container: &Container,
        path: &Path,
    ) -> Result<Option<archive::Read>, TargetFault> {
        let from = format!("{}:{}", container.id, path.display());
        let finished = self.docker.call(["cp", &from, "-"], None).await?;
        if finished.status != 0 {
            let said = finished.stderr.to_lowercase();
            let is_absent = [
                "could not find",
                "no such file",
                "no such container:path",
                "not found in container",
            ]
            .iter()
            .any(|words| said.contains(words));
            return if is_absent {
                Ok(None)
            } else {
                Err(self.failed("reading from", &finished.stderr))
            };
        }
        archive::read(&finished.stdout)
            .map(Some)
            .map_err(|error| self.failed("reading from", &error.to_string()))
    }

    /// The same answer as the script gives, from what docker itself reads out.
    async fn seen_from_outside(&self, container: &Container, place: &Placement) -> Result<Seen, TargetFault> {
        let seen = |kind, read: Option<archive::Read>| match read {
            Some(archive::Read::Directory { listing, marker }) => Seen {
                kind,
                marker,
                listing,
            },
            Some(archive::Read::Link(_) | archive::Read::Other) | None => Seen {
                kind,
                ..Seen::default()
            },
        };
        Ok(match self.read_out(container, &place.path()).await? {
            None => Seen::default(),
            Some(archive::Read::Other) => seen(Kind::Other, None),
            Some(archive::Read::Link(to)) => {
                let behind = if to.starts_with(BEHIND_LINK) && !to.contains('/') {
                    self.read_out(container, &place.root().join(&to)).await?
                } else {
                    None
                };
                seen(Kind::Link(to), behind)
            }
            Some(directory) => seen(Kind::Directory, Some(directory)),
        })
    }

    fn judge(seen: &Seen, place: &Placement) -> Found {
        let foreign = |what: String| Found::Foreign { what };
        match &seen.kind {
            Kind::Absent => Found::Absent,
            Kind::Other => foreign("a file".to_owned()),
            Kind::Link(to) if to.starts_with(BEHIND_LINK) && seen.marker.is_none() => Found::Broken {
                why: format!("it is a link to {to}, which is gone"),
            },
            Kind::Link(to) if !to.starts_with(BEHIND_LINK) => foreign(format!("a link to {to}")),
            Kind::Link(_) | Kind::Directory => Marker::judge(seen.marker.as_deref(), place, &seen.listing),
        }
    }

    fn path_text(&self, place: &Placement) -> String {
        format!("{}:{}", self.name.as_str(), place.path().display())
    }

    /// Refuses what would take more with it than a skill.
    fn guard(&self, place: &Placement, home: Option<&Path>) -> Result<(), TargetFault> {
        let path = place.path();
        if home.is_some_and(|home| home.starts_with(&path)) {
            return Err(TargetFault::Refused {
                path: self.path_text(place),
                why: "the home directory lies there".to_owned(),
            });
        }
        Ok(())
    }

    fn unpacked(&self, error: &io::Error) -> TargetFault {
        self.failed("packing for", &error.to_string())
    }

    /// Names what docker or the container said, and what to do about it.
    fn failed(&self, attempt: &str, said: &str) -> TargetFault {
        let name = self.name.as_str();
        let said = said.trim();
        let lower = said.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        let hint = if has(&["is paused"]) {
            format!("Let it go on with `docker unpause {name}`")
        } else if has(&["is not running", "no such container", "not running"]) {
            format!("Start it with `docker start {name}`, then try again")
        } else if has(&["no space left", "quota exceeded"]) {
            "free some space in the container, or give it a larger volume".to_owned()
        } else if has(&["read-only"]) {
            "recreate the container with a file system that can be written there".to_owned()
        } else if has(&["permission denied", "operation not permitted"]) {
            "name a directory that the container's user may write, with --path".to_owned()
        } else {
            format!("look at the container with `docker inspect {name}` and `docker logs {name}`")
        };
        let said = if said.is_empty() {
            "it gave no reason"
        } else {
            said
        };
        TargetFault::Failed {
            what: format!("{attempt} container '{name}': {said}"),
            hint,
        }
    }
}

fn is_missing_program(said: &str) -> bool {
    let said = said.to_lowercase();
    [
        "executable file not found",
        "no such file or directory",
        "not found in $path",
    ]
    .iter()
    .any(|words| said.contains(words))
}

#[async_trait]
impl TargetAdapter for DockerAdapter {
    fn adapter_type(&self) -> &'static str {
        "docker"
    }

    async fn health_check(&self) -> Result<Vitals, TargetFault> {
        let container = self.container().await?;
        let home = match container.home() {
            Some(home) => Some(home),
            None => match self.look(&container, &[]).await? {
                Inside::Shell(survey) => survey.home,
                Inside::Bare => None,
            },
        };
        Ok(Vitals {
            identity: container.id.clone(),
            home,
            notes: Vec::new(),
        })
    }

    async fn path_exists(&self, path: &Path) -> Result<bool, TargetFault> {
        let container = self.container().await?;
        match self.look(&container, &[path.display().to_string()]).await? {
            Inside::Shell(survey) => Ok(survey.paths.iter().any(|seen| seen.kind != Kind::Absent)),
            Inside::Bare => Ok(self.read_out(&container, path).await?.is_some()),
        }
    }

    async fn inspect(&self, placements: &[Placement]) -> Result<Vec<Found>, TargetFault> {
        let container = self.container().await?;
        let paths: Vec<String> = placements
            .iter()
            .map(|place| place.path().display().to_string())
            .collect();
        let seen = match self.look(&container, &paths).await? {
            Inside::Shell(survey) => survey.paths,
            Inside::Bare => {
                let mut seen = Vec::new();
                for place in placements {
                    seen.push(self.seen_from_outside(&container, place).await?);
                }
                seen
            }
        };
        Ok(seen
            .iter()
            .zip(placements)
            .map(|(seen, place)| Self::judge(seen, place))
            .collect())
    }

    async fn install(
        &self,
        source: &Path,
        to: &Placement,
        mode: Mode,
        changed: Changed,
    ) -> Result<Installed, TargetFault> {
        let container = self.container().await?;
        container.require_writable(to.root())?;
        let source = source.to_owned();
        let read = tokio::task::spawn_blocking(move || Tree::read(&source)).await;
        let tree = match read {
            Ok(Ok(tree)) => tree,
            Ok(Err(error)) => return Err(unreadable(&error)),
            Err(error) => return Err(self.failed("reading for", &error.to_string())),
        };
        let digest = tree.listing().digest();
        let marker = Marker::new(to.name(), &digest).line();
        let mut warnings = Vec::new();
        if mode == Mode::Symlink {
            warnings.push(format!(
                "a link cannot lead out of container '{}', so '{}' was copied",
                self.name.as_str(),
                to.name()
            ));
        }
        let path = to.path().display().to_string();
        let root = to.root().display().to_string();
        // Only ours has such a name, and a copy that was cut off must not mix with this one.
        let stale = to.beside(FRESH).display().to_string();
        let inside = self
            .look_after(&container, [&root, &stale], std::slice::from_ref(&path))
            .await?;
        let (seen, user, home) = match inside {
            Inside::Shell(survey) => {
                let seen = survey.paths.into_iter().next().unwrap_or_default();
                (
                    seen,
                    Some(survey.user.or_else(|| container.numeric_user()).unwrap_or((0, 0))),
                    survey.home,
                )
            }
            Inside::Bare => (
                self.seen_from_outside(&container, to).await?,
                None,
                container.home(),
            ),
        };
        self.guard(to, home.as_deref())?;
        let installed = |warnings| Installed {
            mode: Mode::Copy,
            digest: digest.clone(),
            warnings,
        };
        match Self::judge(&seen, to) {
            Found::Absent | Found::Broken { .. } => {}
            Found::Foreign { what } => {
                return Err(TargetFault::Foreign {
                    path: self.path_text(to),
                    what,
                });
            }
            Found::Managed { recorded, actual, .. } => {
                if recorded == digest && actual == digest {
                    return Ok(installed(warnings));
                }
                if actual != recorded && actual != digest && changed == Changed::Keep {
                    return Err(TargetFault::ChangedByHand {
                        path: self.path_text(to),
                    });
                }
            }
        }
        let work = Work {
            container: &container,
            tree: &tree,
            to,
            marker: &marker,
            digest: digest.short(),
        };
        if let Some(user) = user {
            self.place_with_shell(&work, user).await?;
        } else {
            self.place_without_shell(&work).await?;
            warnings.push(format!(
                "container '{}' has no shell: '{}' stands behind a link, and earlier versions cannot be removed",
                self.name.as_str(),
                to.name()
            ));
        }
        Ok(installed(warnings))
    }

    async fn uninstall(&self, from: &Placement, changed: Changed) -> Result<Removed, TargetFault> {
        let container = self.container().await?;
        let path = from.path().display().to_string();
        let inside = self.look(&container, std::slice::from_ref(&path)).await?;
        let (seen, home, has_shell) = match inside {
            Inside::Shell(survey) => (
                survey.paths.into_iter().next().unwrap_or_default(),
                survey.home,
                true,
            ),
            Inside::Bare => (
                self.seen_from_outside(&container, from).await?,
                container.home(),
                false,
            ),
        };
        self.guard(from, home.as_deref())?;
        match Self::judge(&seen, from) {
            Found::Absent => return Ok(Removed::WasAbsent),
            Found::Foreign { what } => {
                return Err(TargetFault::Foreign {
                    path: self.path_text(from),
                    what,
                });
            }
            Found::Managed { recorded, actual, .. } if recorded != actual && changed == Changed::Keep => {
                return Err(TargetFault::ChangedByHand {
                    path: self.path_text(from),
                });
            }
            Found::Managed { .. } | Found::Broken { .. } => {}
        }
        if !has_shell {
            return Err(TargetFault::Failed {
                what: format!(
                    "removing {path} from container '{}': it has no program that removes files",
                    self.name.as_str()
                ),
                hint: "recreate the container; a new one holds no skills".to_owned(),
            });
        }
        container.require_writable(from.root())?;
        let old = from.beside(OLD).display().to_string();
        let finished = self.script(&container, TAKE, &[&path, &old]).await?;
        if finished.status != 0 {
            return Err(self.failed(&format!("removing {path} from"), &finished.stderr));
        }
        Ok(Removed::Gone)
    }

    async fn exec(&self, argv: &[String]) -> Result<Output, TargetFault> {
        let container = self.container().await?;
        let fixed = ["exec", container.id.as_str()];
        let arguments = fixed.into_iter().chain(argv.iter().map(String::as_str));
        let finished = self.docker.call(arguments, None).await?;
        Ok(Output {
            status: finished.status,
            stdout: String::from_utf8_lossy(&finished.stdout).into_owned(),
            stderr: finished.stderr,
        })
    }
}

fn unreadable(error: &crate::tree::Error) -> TargetFault {
    let cause = std::error::Error::source(error)
        .map(|cause| format!(": {cause}"))
        .unwrap_or_default();
    TargetFault::Failed {
        what: format!("{error}{cause}"),
        hint: "look at that file".to_owned(),
    }
}
