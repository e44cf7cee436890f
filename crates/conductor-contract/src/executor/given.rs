//! Makes sandboxes and commands, and looks from outside for what is left of them.
//!
//! It does not know what is examined.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use conductor_domain::id::{EffectId, RunId};
use conductor_domain::testing::Ending;
use conductor_domain::time::Millis;
use conductor_port::executor::{Command, CommandResult, Profile, Sandbox, SandboxSpec};

use super::Subject;

/// Long enough for a loaded machine.
pub(super) const PLENTY: Millis = Millis(120_000);

/// What is kept of an output.
pub(super) const OUTPUT: usize = 64 * 1024;

pub(super) const PASSED: Ending = Ending::Exited { code: 0 };

pub(super) fn effect() -> EffectId {
    EffectId::parse("r1.1.0").expect("a valid id")
}

/// Makes a working directory; its name is hostile when asked for.
pub(super) fn workdir(subject: &Subject, name: &str) -> PathBuf {
    let dir = subject.place.join(name);
    std::fs::create_dir(&dir).expect("the subject's place is writable");
    dir
}

pub(super) fn spec(dir: &Path) -> SandboxSpec {
    let run = RunId::parse("r1").expect("a valid id");
    SandboxSpec::new(effect(), run, Profile::Tool, dir.to_owned())
}

pub(super) async fn open(subject: &Subject) -> Box<dyn Sandbox> {
    let dir = workdir(subject, "work");
    open_with(subject, spec(&dir)).await
}

pub(super) async fn open_with(subject: &Subject, spec: SandboxSpec) -> Box<dyn Sandbox> {
    subject.executor.open(spec).await.expect("a sandbox opens")
}

pub(super) fn argv(words: &[&str]) -> Command {
    Command {
        argv: words.iter().map(|&word| word.to_owned()).collect(),
        environment: vec![],
        time: PLENTY,
        output: OUTPUT,
        listener: None,
    }
}

pub(super) fn script(text: &str) -> Command {
    argv(&["bash", "-c", text])
}

pub(super) fn within(time: u64, text: &str) -> Command {
    Command {
        time: Millis(time),
        ..script(text)
    }
}

pub(super) async fn bash(sandbox: &dyn Sandbox, text: &str) -> CommandResult {
    sandbox
        .bash(script(text))
        .await
        .expect("the sandbox runs a command")
}

/// Runs a script that must succeed, and returns what it printed.
pub(super) async fn printed(sandbox: &dyn Sandbox, text: &str) -> String {
    let result = bash(sandbox, text).await;
    let output = String::from_utf8_lossy(&result.output).into_owned();
    assert_eq!(result.ending, PASSED, "`{text}` printed: {output}");
    output
}

/// Shows that the sandbox still works.
pub(super) async fn still_works(sandbox: &dyn Sandbox) {
    assert_eq!(printed(sandbox, "echo still here").await, "still here\n");
}

pub(super) fn text(result: &CommandResult) -> String {
    String::from_utf8_lossy(&result.output).into_owned()
}

/// A number of seconds that no other process on this machine sleeps; names a process from outside.
pub(super) fn mark() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{}{:05}{count:02}", 9, std::process::id() % 100_000)
}

/// Counts the processes of this machine whose arguments hold the mark.
pub(super) fn processes_with(mark: &str) -> usize {
    let entries = std::fs::read_dir("/proc").expect("/proc is there");
    entries
        .filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok())
        .filter(|line| line.split(|byte| *byte == 0).any(|word| word == mark.as_bytes()))
        .count()
}

/// Waits until no process with the mark is left.
pub(super) async fn until_gone(mark: &str) {
    until("the processes end", || processes_with(mark) == 0).await;
}

/// Waits until something is so, by looking; fails when it takes too long.
#[allow(clippy::disallowed_methods, reason = "bounds how long a test looks")]
pub(super) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}: not in time");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
