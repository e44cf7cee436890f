//! RUN-2, RUN-3: holds what every story leads to, byte for byte, against `scenarios/outcomes.lock`, so that no outcome changes
//! without a new version of the rules: a replay compares only what the same version decided.
//!
//! `UPDATE_SCENARIOS=1` writes the file anew, but never what another outcome of the same story is under the same version.

#![allow(
    clippy::disallowed_methods,
    reason = "reads the scenario files and the update switch"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use conductor_domain::DECIDER_VERSION;
use conductor_domain::digest::Digest;

use crate::scenarios::{files, home, play_file};

/// What is told in a story, and what was decided in it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Outcome {
    story: String,
    decided: String,
}

/// The outcomes of all stories under one version of the rules.
#[derive(Debug, PartialEq, Eq)]
struct Lock {
    version: u32,
    outcomes: BTreeMap<String, Outcome>,
}

impl Lock {
    fn read(text: &str) -> Option<Self> {
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        let version = lines.next()?.strip_prefix("version ")?.parse().ok()?;
        let outcome = |line: &str| {
            let mut words = line.split(' ').map(str::to_owned);
            let (name, story, decided) = (words.next()?, words.next()?, words.next()?);
            Some((name, Outcome { story, decided }))
        };
        let outcomes = lines.map(outcome).collect::<Option<_>>()?;
        Some(Self { version, outcomes })
    }

    fn write(&self) -> String {
        let mut text = format!(
            "# What the stories lead to; written by UPDATE_SCENARIOS=1.\nversion {}\n",
            self.version
        );
        for (name, Outcome { story, decided }) in &self.outcomes {
            let _ = writeln!(text, "{name} {story} {decided}");
        }
        text
    }

    /// Names the stories that stayed the same and lead elsewhere now, though the rules claim to be the same.
    fn broken_by<'a>(&self, now: &'a Self) -> Vec<&'a str> {
        let differs = |(name, outcome): &(&String, &Outcome)| {
            let before = self.outcomes.get(*name);
            before.is_some_and(|it| it.story == outcome.story && it.decided != outcome.decided)
        };
        let outcomes = now.outcomes.iter().filter(|_| self.version == now.version);
        outcomes.filter(differs).map(|(name, _)| name.as_str()).collect()
    }
}

/// Plays every story.
fn played() -> Lock {
    let outcome = |file: &std::path::PathBuf| {
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(file).expect("a readable scenario");
        let told: Vec<&str> = text
            .lines()
            .filter(|line| !line.starts_with("  ") && !line.starts_with('#'))
            .collect();
        let (_, world) = play_file(&text, &name);
        let decisions: Vec<_> = world.history.iter().map(|(_, _, decision)| decision).collect();
        let bytes: Vec<_> = decisions.iter().map(|it| (&it.events, &it.effects)).collect();
        let decided = serde_json::to_vec(&bytes).expect("plain data");
        let outcome = Outcome {
            story: Digest::of(told.join("\n").as_bytes()).short().to_owned(),
            decided: Digest::of(&decided).short().to_owned(),
        };
        (name, outcome)
    };
    Lock {
        version: DECIDER_VERSION,
        outcomes: files().iter().map(outcome).collect(),
    }
}

#[test]
fn no_outcome_changes_without_a_new_version() {
    let place = home().join("outcomes.lock");
    let text = std::fs::read_to_string(&place).unwrap_or_default();
    let now = played();
    let before = Lock::read(&text);
    if let Some(before) = &before {
        let broken = before.broken_by(&now);
        assert!(
            broken.is_empty(),
            "these stories lead elsewhere, so DECIDER_VERSION must be raised: {broken:?}"
        );
    }
    if std::env::var("UPDATE_SCENARIOS").is_ok() {
        std::fs::write(&place, now.write()).expect("a writable file");
    } else {
        assert_eq!(
            before,
            Some(now),
            "outcomes.lock is not fresh (UPDATE_SCENARIOS=1 writes it)"
        );
    }
}

#[test]
fn another_outcome_of_the_same_story_breaks_the_version() {
    let lock = |version: u32, story: &str, decided: &str| {
        Lock::read(&format!("# Words.\nversion {version}\na {story} {decided}\n")).expect("a lock")
    };
    let before = lock(1, "s", "d");
    assert_eq!(Lock::read(&before.write()), Some(lock(1, "s", "d")));
    for (now, broken) in [
        (lock(1, "s", "d"), vec![]),
        (lock(1, "s", "e"), vec!["a"]),
        (lock(1, "t", "e"), vec![]),
        (lock(2, "s", "e"), vec![]),
    ] {
        assert_eq!(before.broken_by(&now), broken, "{now:?}");
    }
}
