//! Puts skills into directories of this machine: as a link into the store, or as a copy; whole, or not at all.
//!
//! A new version is written beside the old one under a hidden name, then the two change places in one step. This module
//! does not know which agent reads the directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use async_trait::async_trait;
use conductor_port::target::{
    Changed, Found, Installed, Mode, Output, Placement, Removed, TargetAdapter, TargetFault, Vitals,
};

use crate::marker::Marker;
use crate::platform;
use crate::tree::{self, Listing, MARKER, Tree};

/// Names under which a skill stands beside its place for a moment.
const FRESH: &str = ".conductor-new-";
const OLD: &str = ".conductor-old-";

/// Puts skills on this machine.
#[derive(Debug, Clone)]
pub struct LocalAdapter {
    home: Option<PathBuf>,
    store: PathBuf,
}

impl LocalAdapter {
    /// Works below `home`; links into `store` are its own.
    pub fn new(home: Option<PathBuf>, store: PathBuf) -> Self {
        Self { home, store }
    }

    fn look(&self, place: &Placement) -> Result<Found, TargetFault> {
        let path = place.path();
        let metadata = match fs::symlink_metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Absent),
            Err(error) => return Err(failed("looking at", &path, &error)),
        };
        if metadata.is_symlink() {
            let to = fs::read_link(&path).map_err(|error| failed("reading the link", &path, &error))?;
            if !to.starts_with(&self.store) {
                let what = format!("a link to {}", to.display());
                return Ok(Found::Foreign { what });
            }
            if !path.is_dir() {
                let why = format!("it is a link to {}, which is gone", to.display());
                return Ok(Found::Broken { why });
            }
            let digest = Listing::of(&path).map_err(|error| unreadable(&error))?.digest();
            return Ok(Found::Managed {
                mode: Mode::Symlink,
                recorded: digest.clone(),
                actual: digest,
            });
        }
        if !metadata.is_dir() {
            return Ok(Found::Foreign {
                what: "a file".to_owned(),
            });
        }
        let marker = fs::read_to_string(path.join(MARKER)).ok();
        if marker.is_none() {
            // Nothing of somebody else is read.
            return Ok(Marker::judge(None, place, &Listing::default()));
        }
        let listing = Listing::of(&path).map_err(|error| unreadable(&error))?;
        Ok(Marker::judge(marker.as_deref(), place, &listing))
    }

    /// Refuses what would take more with it than a skill.
    fn guard(&self, place: &Placement) -> Result<(), TargetFault> {
        let path = place.path();
        let refuse = |why: &str| {
            Err(TargetFault::Refused {
                path: path.display().to_string(),
                why: why.to_owned(),
            })
        };
        if self.home.as_ref().is_some_and(|home| home.starts_with(&path)) {
            return refuse("the home directory lies there");
        }
        if self.store.starts_with(&path) || path.starts_with(&self.store) {
            return refuse("the store of skills lies there");
        }
        Ok(())
    }

    fn put(
        &self,
        source: &Path,
        to: &Placement,
        mode: Mode,
        changed: Changed,
    ) -> Result<Installed, TargetFault> {
        self.guard(to)?;
        let path = to.path();
        let tree = Tree::read(source).map_err(|error| unreadable(&error))?;
        let digest = tree.listing().digest();
        let installed = Installed {
            mode,
            digest: digest.clone(),
            warnings: Vec::new(),
        };
        let found = self.look(to)?;
        let is_there = match &found {
            Found::Absent => false,
            Found::Foreign { what } => return Err(foreign(&path, what)),
            Found::Managed {
                mode: old,
                recorded,
                actual,
            } => {
                let is_right = match mode {
                    Mode::Symlink => fs::read_link(&path).is_ok_and(|link| link == source),
                    Mode::Copy => true,
                };
                if *old == mode && is_right && *actual == digest && *recorded == digest {
                    return Ok(installed);
                }
                let is_changed = actual != recorded && *actual != digest;
                if is_changed && *old == Mode::Copy && changed == Changed::Keep {
                    return Err(changed_by_hand(&path));
                }
                true
            }
            Found::Broken { .. } => true,
        };
        fs::create_dir_all(to.root()).map_err(|error| failed("making", to.root(), &error))?;
        let fresh = to.beside(FRESH);
        remove(&fresh)?;
        let marker = Marker::new(to.name(), &digest).line();
        let written = match mode {
            Mode::Copy => tree
                .write(&fresh)
                .map_err(|error| unwritten(&error))
                .and_then(|()| write_marker(&fresh, &marker)),
            Mode::Symlink => platform::symlink(source, &fresh).map_err(|error| TargetFault::Failed {
                what: format!("linking {}: {error}", path.display()),
                hint: platform::symlink_hint(&error).to_owned(),
            }),
        };
        let placed = written.and_then(|()| {
            let step = if is_there {
                platform::exchange(&fresh, &path)
            } else {
                fs::rename(&fresh, &path)
            };
            step.map_err(|error| failed("putting into place", &path, &error))
        });
        // Holds the old version now, or what could not be placed.
        let removed = remove(&fresh);
        placed?;
        removed?;
        Ok(installed)
    }

    fn take(&self, from: &Placement, changed: Changed) -> Result<Removed, TargetFault> {
        self.guard(from)?;
        let path = from.path();
        match self.look(from)? {
            Found::Absent => return Ok(Removed::WasAbsent),
            Found::Foreign { what } => return Err(foreign(&path, &what)),
            Found::Managed {
                mode: Mode::Copy,
                recorded,
                actual,
            } if recorded != actual && changed == Changed::Keep => {
                return Err(changed_by_hand(&path));
            }
            Found::Managed { .. } | Found::Broken { .. } => {}
        }
        // Out of the agent's sight in one step, then gone.
        let old = from.beside(OLD);
        remove(&old)?;
        fs::rename(&path, &old).map_err(|error| failed("removing", &path, &error))?;
        remove(&old)?;
        Ok(Removed::Gone)
    }
}

#[async_trait]
impl TargetAdapter for LocalAdapter {
    fn adapter_type(&self) -> &'static str {
        "local"
    }

    async fn health_check(&self) -> Result<Vitals, TargetFault> {
        Ok(Vitals {
            identity: "local".to_owned(),
            home: self.home.clone(),
            notes: Vec::new(),
        })
    }

    async fn path_exists(&self, path: &Path) -> Result<bool, TargetFault> {
        match tokio::fs::symlink_metadata(path).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed("looking at", path, &error)),
        }
    }

    async fn inspect(&self, placements: &[Placement]) -> Result<Vec<Found>, TargetFault> {
        let (this, placements) = (self.clone(), placements.to_vec());
        aside(move || placements.iter().map(|place| this.look(place)).collect()).await
    }

    async fn install(
        &self,
        source: &Path,
        to: &Placement,
        mode: Mode,
        changed: Changed,
    ) -> Result<Installed, TargetFault> {
        let (this, source, to) = (self.clone(), source.to_owned(), to.clone());
        aside(move || this.put(&source, &to, mode, changed)).await
    }

    async fn uninstall(&self, from: &Placement, changed: Changed) -> Result<Removed, TargetFault> {
        let (this, from) = (self.clone(), from.clone());
        aside(move || this.take(&from, changed)).await
    }

    async fn exec(&self, argv: &[String]) -> Result<Output, TargetFault> {
        let [program, arguments @ ..] = argv else {
            return Err(TargetFault::Failed {
                what: "there is no program to run".to_owned(),
                hint: "name one".to_owned(),
            });
        };
        #[allow(
            clippy::disallowed_methods,
            reason = "the home of programs that run in a local target"
        )]
        let mut command = tokio::process::Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        if let Some(home) = &self.home {
            command.env("HOME", home);
        }
        let output = command
            .output()
            .await
            .map_err(|error| failed("starting", Path::new(program), &error))?;
        Ok(Output {
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }
}

/// Runs what waits for the disk where it keeps nobody else waiting.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, TargetFault> + Send + 'static,
) -> Result<T, TargetFault> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(TargetFault::Failed {
            what: format!("working on files: {error}"),
            hint: "report this".to_owned(),
        })
    })
}

fn write_marker(directory: &Path, line: &str) -> Result<(), TargetFault> {
    let path = directory.join(MARKER);
    fs::write(&path, line).map_err(|error| failed("writing", &path, &error))
}

/// Removes a directory, a file or a link; what is not there is removed already.
fn remove(path: &Path) -> Result<(), TargetFault> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("removing", path, &error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn foreign(path: &Path, what: &str) -> TargetFault {
    TargetFault::Foreign {
        path: path.display().to_string(),
        what: what.to_owned(),
    }
}

fn changed_by_hand(path: &Path) -> TargetFault {
    TargetFault::ChangedByHand {
        path: path.display().to_string(),
    }
}

fn unreadable(error: &tree::Error) -> TargetFault {
    let cause = std::error::Error::source(error)
        .map(|cause| format!(": {cause}"))
        .unwrap_or_default();
    TargetFault::Failed {
        what: format!("{error}{cause}"),
        hint: "look at that file".to_owned(),
    }
}

fn unwritten(error: &tree::Error) -> TargetFault {
    match error {
        tree::Error::Io {
            attempt,
            path,
            source,
        } => failed(attempt, path, source),
        tree::Error::Refused { .. } => unreadable(error),
    }
}

fn failed(attempt: &str, path: &Path, error: &io::Error) -> TargetFault {
    use io::ErrorKind::{
        AlreadyExists, NotADirectory, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull,
    };
    let kind = error.kind();
    let hint = if kind == PermissionDenied {
        "let this user write there, or name another directory"
    } else if matches!(kind, StorageFull | QuotaExceeded) {
        "free some space there"
    } else if kind == ReadOnlyFilesystem {
        "name a directory on a file system that can be written"
    } else if matches!(kind, NotADirectory | AlreadyExists) {
        "move the file away that stands where a directory should"
    } else {
        "look at that path"
    };
    TargetFault::Failed {
        what: format!("{attempt} {}: {error}", path.display()),
        hint: hint.to_owned(),
    }
}
