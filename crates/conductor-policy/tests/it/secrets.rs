//! The secret scan on the corpus, beside two scanners that others trust, on the same tree in the same run.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use conductor_policy::redact::Redactor;
use conductor_policy::secret::live::LiveSecrets;
use conductor_policy::secret::scan;

use crate::corpus::{Item, decoys, planted};

/// What a scanner makes of the corpus.
#[derive(Debug)]
struct Score {
    scanner: &'static str,
    missed: Vec<String>,
    accused: Vec<String>,
    planted: usize,
}

impl Score {
    /// Judges by lines, which is what every scanner reports: `found` holds places `path:line`.
    fn of(scanner: &'static str, found: &BTreeSet<(String, usize)>) -> Self {
        let (planted, decoys) = (planted(), decoys());
        let lines = |item: &Item| -> Vec<usize> {
            found
                .range((item.path.clone(), 0)..=(item.path.clone(), usize::MAX))
                .map(|(_, line)| *line)
                .collect()
        };
        let missed = planted
            .iter()
            .filter(|item| !lines(item).into_iter().any(|line| item.is_secret_line(line)))
            .map(|item| format!("{} {}", item.kind, item.path))
            .collect();
        let accused = planted
            .iter()
            .chain(&decoys)
            .flat_map(|item| {
                lines(item)
                    .into_iter()
                    .filter(|line| !item.is_secret_line(*line))
                    .map(|line| format!("{} {}:{line}", item.kind, item.path))
                    .collect::<Vec<_>>()
            })
            .collect();
        Self {
            scanner,
            missed,
            accused,
            planted: planted.len(),
        }
    }

    fn recall(&self) -> f64 {
        ratio(self.planted - self.missed.len(), self.planted)
    }

    fn precision(&self) -> f64 {
        let right = self.planted - self.missed.len();
        ratio(right, right + self.accused.len())
    }

    fn line(&self) -> String {
        format!(
            "{:<16} recall {:5.1} %  precision {:5.1} %  ({} missed, {} accused)",
            self.scanner,
            100.0 * self.recall(),
            100.0 * self.precision(),
            self.missed.len(),
            self.accused.len()
        )
    }
}

#[expect(clippy::cast_precision_loss, reason = "a few hundred")]
fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text[..at].matches('\n').count()
}

fn ours() -> BTreeSet<(String, usize)> {
    planted()
        .iter()
        .chain(&decoys())
        .flat_map(|item| {
            scan(item.text.as_bytes())
                .into_iter()
                .map(|sighting| (item.path.clone(), line_of(&item.text, sighting.range.start)))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Where `cargo xtask setup scanners` installs.
fn tool(path: &str) -> PathBuf {
    let tool = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("the target directory")
        .join("tools")
        .join(path);
    assert!(
        tool.exists(),
        "{} is missing\nhint: cargo xtask setup scanners",
        tool.display()
    );
    tool
}

#[expect(clippy::disallowed_methods, reason = "the scanners are programs of their own")]
fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    Command::new(program)
}

fn detect_secrets(tree: &Path) -> BTreeSet<(String, usize)> {
    let output = command("python3")
        .args(["-m", "detect_secrets", "scan", "--all-files", "--no-verify", "."])
        .current_dir(tree)
        .env("PYTHONPATH", tool("detect-secrets"))
        .output()
        .expect("python3 runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a JSON report");
    report["results"]
        .as_object()
        .expect("results by file")
        .iter()
        .flat_map(|(path, found)| {
            found
                .as_array()
                .expect("a list")
                .iter()
                .map(|one| {
                    let line = one["line_number"].as_u64().expect("a line");
                    (path.clone(), usize::try_from(line).expect("small"))
                })
                .collect::<Vec<_>>()
        })
        .collect()
}

fn ripsecrets(tree: &Path, paths: &[String]) -> BTreeSet<(String, usize)> {
    // Named one by one, so that hidden files are looked at, too.
    let output = command(tool("ripsecrets/bin/ripsecrets"))
        .args(paths)
        .current_dir(tree)
        .output()
        .expect("ripsecrets runs");
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| {
            let mut parts = line.splitn(3, ':');
            Some((parts.next()?.to_owned(), parts.next()?.parse().ok()?))
        })
        .collect()
}

/// SEC-4: recall and precision on secrets and decoys that are older than the rules.
#[test]
fn the_scan_meets_its_bars() {
    let ours = Score::of("conductor", &ours());
    for line in ours
        .missed
        .iter()
        .map(|m| format!("missed  {m}"))
        .chain(ours.accused.iter().map(|accused| format!("accused {accused}")))
    {
        println!("{line}");
    }
    assert!(ours.recall() >= 0.98, "recall {}", ours.recall());
    assert!(ours.precision() >= 0.95, "precision {}", ours.precision());
}

/// SEC-4: better on both counts than two other scanners on the same tree.
#[test]
fn the_scan_beats_other_scanners_on_the_same_tree() {
    let tree = tempfile::tempdir().expect("a directory");
    let mut paths = Vec::new();
    for item in planted().iter().chain(&decoys()) {
        let path = tree.path().join(&item.path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(&path, &item.text).expect("written");
        paths.push(item.path.clone());
    }
    let ours = Score::of("conductor", &ours());
    let others = [
        Score::of("detect-secrets", &detect_secrets(tree.path())),
        Score::of("ripsecrets", &ripsecrets(tree.path(), &paths)),
    ];
    for score in others.iter().chain([&ours]) {
        println!("{}", score.line());
    }
    for other in &others {
        assert!(
            other.recall() > 0.1,
            "{} found next to nothing: did it run?",
            other.scanner
        );
        assert!(ours.recall() > other.recall(), "{other:?}");
        assert!(ours.precision() > other.precision(), "{other:?}");
    }
}

/// Fewer characters of a secret stand in ordinary text by chance.
const SHORTEST_LEAK: usize = 4;

/// SEC-3: what is redacted, judged by the secret's own bytes.
#[test]
fn redaction_takes_every_secret_out_and_leaves_decoys_alone() {
    let redactor = Redactor::new(LiveSecrets::new([]));
    let (planted, decoys) = (planted(), decoys());
    let left: Vec<String> = planted
        .iter()
        .filter(|item| {
            let secret = item.secret_text().expect("planted");
            // A quarter of a line of it in one piece would be a leak, unless it stands beside the secret as well.
            let redacted = redactor.redact(&item.text);
            let beside = item.text.replace(secret, "\n");
            secret.lines().any(|line| {
                let quarter = line.len().div_ceil(4).max(SHORTEST_LEAK);
                let mut windows = line.as_bytes().windows(quarter);
                windows.any(|window| {
                    let is_in = |text: &str| memchr::memmem::find(text.as_bytes(), window).is_some();
                    is_in(&redacted) && !is_in(&beside)
                })
            })
        })
        .map(|item| format!("{} {}", item.kind, item.path))
        .collect();
    let changed: Vec<String> = decoys
        .iter()
        .filter(|item| redactor.redact(&item.text) != item.text)
        .map(|item| format!("{} {}", item.kind, item.path))
        .collect();
    for line in left
        .iter()
        .map(|l| format!("left    {l}"))
        .chain(changed.iter().map(|c| format!("changed {c}")))
    {
        println!("{line}");
    }
    let right = planted.len() - left.len();
    let (recall, precision) = (ratio(right, planted.len()), ratio(right, right + changed.len()));
    println!(
        "redaction        recall {:5.1} %  precision {:5.1} %",
        100.0 * recall,
        100.0 * precision
    );
    assert!(recall >= 0.98, "{left:?}");
    assert!(precision >= 0.95, "{changed:?}");
}

/// SEC-4: false alarms per megabyte on real code, the sources of our own dependencies.
#[test]
fn real_code_raises_few_alarms() {
    let output = command("cargo")
        .args(["metadata", "--format-version", "1", "--offline"])
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("cargo metadata");
    let (mut bytes, mut alarms, mut files) = (0_usize, 0_usize, 0_usize);
    let mut kinds = std::collections::BTreeMap::<String, usize>::new();
    for package in metadata["packages"].as_array().expect("packages") {
        if package["source"].is_null() {
            continue;
        }
        let manifest = package["manifest_path"].as_str().expect("a path");
        let mut dirs = vec![Path::new(manifest).parent().expect("a directory").join("src")];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    dirs.push(path);
                } else if bytes < SAMPLE && path.extension().is_some_and(|end| end == "rs") {
                    let text = fs::read(&path).expect("readable");
                    bytes += text.len();
                    files += 1;
                    for sighting in scan(&text) {
                        alarms += 1;
                        *kinds.entry(sighting.kind.to_string()).or_default() += 1;
                        println!(
                            "{}: {}",
                            path.display(),
                            String::from_utf8_lossy(&text[sighting.range])
                        );
                    }
                }
            }
        }
    }
    let per_megabyte = ratio(alarms, bytes) * 1e6;
    println!("{alarms} alarms in {files} files, {bytes} bytes: {per_megabyte:.2} per MB {kinds:?}");
    assert!(bytes > 1_000_000, "too little to judge by");
    assert!(per_megabyte < 1.0, "{per_megabyte} false alarms per MB");
}

/// Enough to judge by without slowing a debug build's tests; `xtask long` may raise it.
const SAMPLE: usize = 40_000_000;
