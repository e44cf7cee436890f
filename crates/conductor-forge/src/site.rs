//! Holds the records of a running forge and keeps every change on disk before anyone sees it.
//!
//! The whole state is one JSON file, replaced by rename after each change; bare repositories and
//! deliveries lie next to it. The site does not know what the changes mean.

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio_util::task::TaskTracker;

use crate::auth::Rates;
use crate::change::Change;
use crate::fault::Faults;
use crate::git::Git;
use crate::hook::Hooks;
use crate::key::AppKey;
use crate::moment::Clock;
use crate::refusal::Refusal;
use crate::state::{Pull, Repo, State};
use crate::view::Root;

pub(crate) struct Site {
    dir: PathBuf,
    state: Mutex<State>,
    root: OnceLock<Root>,
    pub(crate) clock: Clock,
    pub(crate) faults: Faults,
    pub(crate) rates: Rates,
    pub(crate) hooks: Hooks,
    pub(crate) key: AppKey,
    pub(crate) git: Git,
    /// Held while branches and records are brought in line, so that one push is noticed once.
    pub(crate) git_turn: tokio::sync::Mutex<()>,
    pub(crate) stateless_tokens: bool,
    /// Work that goes on when its client has hung up; shutdown waits for it.
    pub(crate) tasks: TaskTracker,
    /// Which merges have been asked about; GitHub answers `null` the first time.
    asked: Mutex<HashSet<(u64, String)>>,
}

impl Site {
    pub(crate) fn open(
        dir: &Path,
        key: AppKey,
        hooks: Hooks,
        rates: Rates,
        stateless_tokens: bool,
    ) -> Result<Self, Refusal> {
        let path = dir.join("state.json");
        let state = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|error| Refusal::Broken(format!("cannot read {}: {error}", path.display())))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => State::default(),
            Err(error) => {
                return Err(Refusal::Broken(format!(
                    "cannot read {}: {error}",
                    path.display()
                )));
            }
        };
        Ok(Self {
            dir: dir.to_owned(),
            state: Mutex::new(state),
            root: OnceLock::new(),
            clock: Clock::default(),
            faults: Faults::default(),
            rates,
            hooks,
            key,
            git: Git::new(),
            git_turn: tokio::sync::Mutex::new(()),
            stateless_tokens,
            tasks: TaskTracker::new(),
            asked: Mutex::default(),
        })
    }

    /// Names the address under which the site turned out to listen.
    pub(crate) fn settle_root(&self, root: Root) {
        self.root.get_or_init(|| root);
    }

    pub(crate) fn root(&self) -> &Root {
        self.root.get_or_init(|| Root::new("http://127.0.0.1"))
    }

    pub(crate) fn repo_dir(&self, repo: u64) -> PathBuf {
        self.repos_dir().join(format!("{repo}.git"))
    }

    pub(crate) fn repos_dir(&self) -> PathBuf {
        self.dir.join("repos")
    }

    pub(crate) fn look<T>(&self, read: impl FnOnce(&State) -> T) -> T {
        read(&self.lock())
    }

    pub(crate) fn repo(&self, repo: u64) -> Result<Arc<Repo>, Refusal> {
        self.look(|state| state.repos.get(&repo).cloned())
            .ok_or_else(Refusal::not_found)
    }

    /// Applies a change to a draft, keeps the draft, then hands its events to the deliveries.
    pub(crate) fn change<T>(
        &self,
        apply: impl FnOnce(&mut Change<'_>) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let mut state = self.lock();
        let mut change = Change {
            state: state.clone(),
            now: self.clock.now(),
            root: self.root(),
            events: Vec::new(),
        };
        let outcome = apply(&mut change)?;
        self.keep(&change.state)?;
        let Change {
            state: kept,
            events,
            now,
            ..
        } = change;
        for event in events {
            self.hooks.accept(&kept, event, now);
        }
        *state = kept;
        Ok(outcome)
    }

    /// Whether the mergeability of this head was asked for before.
    pub(crate) fn asks_again(&self, pull: &Pull) -> bool {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        !asked.insert((pull.id, pull.head_sha.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic inside a change leaves the previous state untouched, so a poisoned lock is still sound.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, state: &State) -> Result<(), Refusal> {
        write_whole(&self.dir.join("state.json"), state)
            .map_err(|error| Refusal::Broken(format!("cannot keep the state: {error}")))
    }
}

/// Replaces a JSON file so that a reader or a crash sees the old content or the new, never a part.
pub(crate) fn write_whole(path: &Path, value: &impl serde::Serialize) -> std::io::Result<()> {
    let temporary = path.with_extension("json.new");
    let mut file = fs::File::create(&temporary)?;
    file.write_all(&serde_json::to_vec(value).map_err(std::io::Error::other)?)?;
    drop(file);
    fs::rename(&temporary, path)
}
