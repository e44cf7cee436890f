//! A working directory, an executor, and ways to watch processes without waiting blindly.

use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use conductor_domain::id::{EffectId, RunId};
use conductor_domain::testing::Ending;
use conductor_domain::time::Millis;
use conductor_executor::{Consent, Reason, Toolchain, UnsafePlain};
use conductor_guest::response::PROTOCOL;
use conductor_port::executor::{
    Command, CommandResult, Executor as _, Given, GivenFile, Profile, Sandbox, SandboxSpec,
};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{CWD, FileType, Mode};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::net::unix::pipe::{OpenOptions, Receiver};

/// Long enough for everything that is expected to end by itself.
pub(crate) const PLENTY: u64 = 60_000;

/// Long enough for a small shell script to do its work before it is cut off.
pub(crate) const SHORT: u64 = 2_000;

/// The most output kept in these tests.
pub(crate) const OUTPUT: usize = 64 * 1024;

pub(crate) struct Bench {
    pub(crate) base: TempDir,
    pub(crate) executor: UnsafePlain,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        std::fs::create_dir(base.path().join("work")).unwrap();
        let executor = executor(base.path());
        Self { base, executor }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.base.path().join("work")
    }

    pub(crate) fn homes(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.base.path().join("homes")) else {
            return Vec::new();
        };
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    pub(crate) async fn open(&self) -> Box<dyn Sandbox> {
        self.open_for("r1.1.0").await
    }

    pub(crate) async fn open_for(&self, effect: &str) -> Box<dyn Sandbox> {
        self.executor.open(spec(effect, self.work())).await.unwrap()
    }

    /// Makes a named pipe in the working directory that a command can report through as `name`.
    pub(crate) fn reports(&self, name: &str) -> Reports {
        let path = self.work().join(name);
        rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        let receiver = OpenOptions::new().read_write(true).open_receiver(&path).unwrap();
        Reports(BufReader::new(receiver).lines())
    }
}

pub(crate) fn executor(base: &Path) -> UnsafePlain {
    let consent = Consent::to_run_commands_without_a_sandbox(Reason::Test);
    UnsafePlain::for_demo_and_tests(consent, base.join("homes"), Toolchain::system())
}

pub(crate) fn spec(effect: &str, dir: PathBuf) -> SandboxSpec {
    let run = RunId::parse("r1").unwrap();
    SandboxSpec::new(EffectId::parse(effect).unwrap(), run, Profile::Tool, dir)
}

pub(crate) fn argv(argv: &[&str], time: u64) -> Command {
    Command {
        argv: argv.iter().map(|&word| word.to_owned()).collect(),
        environment: vec![],
        time: Millis(time),
        output: OUTPUT,
        listener: None,
    }
}

pub(crate) fn script(text: &str, time: u64) -> Command {
    argv(&["bash", "-c", text], time)
}

pub(crate) async fn bash(sandbox: &dyn Sandbox, text: &str) -> CommandResult {
    sandbox.bash(script(text, PLENTY)).await.unwrap()
}

pub(crate) fn text(result: &CommandResult) -> String {
    String::from_utf8_lossy(&result.output).into_owned()
}

pub(crate) const PASSED: Ending = Ending::Exited { code: 0 };

/// What a command writes into its named pipe, line by line.
pub(crate) struct Reports(Lines<BufReader<Receiver>>);

impl Reports {
    pub(crate) async fn line(&mut self) -> String {
        self.0.next_line().await.unwrap().unwrap()
    }

    pub(crate) async fn process(&mut self) -> Watched {
        Watched::new(self.line().await.trim().parse().unwrap())
    }
}

/// A process that is known to have lived.
pub(crate) struct Watched {
    pid: i32,
    descriptor: OwnedFd,
}

impl Watched {
    pub(crate) fn new(pid: i32) -> Self {
        let number = rustix::process::Pid::from_raw(pid).unwrap();
        let flags = rustix::process::PidfdFlags::empty();
        let descriptor = rustix::process::pidfd_open(number, flags).unwrap();
        Self { pid, descriptor }
    }

    /// Returns when it has ended; a test that waits in vain is ended by its runner.
    pub(crate) async fn ended(&self) {
        let descriptor = self.descriptor.try_clone().unwrap();
        let wait = move || rustix::event::poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], None).unwrap();
        assert_eq!(tokio::task::spawn_blocking(wait).await.unwrap(), 1);
    }

    /// Whether it ends in that many milliseconds.
    pub(crate) fn has_ended_within(&self, time: i64) -> bool {
        let time = rustix::event::Timespec {
            tv_sec: time / 1000,
            tv_nsec: time % 1000 * 1_000_000,
        };
        let mut watched = [PollFd::new(&self.descriptor, PollFlags::IN)];
        rustix::event::poll(&mut watched, Some(&time)).unwrap() == 1
    }

    /// The same, for one that is ended by a task of the thread that waits.
    pub(crate) async fn is_ended_within(&self, time: u64) -> bool {
        let ended = async {
            while !self.has_ended_within(0) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_millis(time), ended)
            .await
            .is_ok()
    }

    /// Whether it can still do anything: one that the kernel is taking apart has left its cgroup, and is no zombie yet.
    pub(crate) fn is_alive(&self) -> bool {
        const EXITING: u64 = 0x4;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        let Some((_, rest)) = stat.rsplit_once(')') else {
            return false;
        };
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let is_buried = fields.first().is_some_and(|state| state.starts_with(['Z', 'X']));
        let flags: u64 = fields[6].parse().unwrap();
        !is_buried && flags & EXITING == 0
    }

    pub(crate) fn end(&self) {
        let pid = rustix::process::Pid::from_raw(self.pid).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
}

pub(crate) fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().permissions().mode() & 0o777
}

/// What a sandbox is given in the tests of its protections.
pub(crate) fn skills() -> Given {
    Given {
        inside: "/skills".into(),
        files: vec![GivenFile {
            path: "SKILL.md".to_owned(),
            executable: false,
            content: b"read me".to_vec(),
        }],
    }
}

/// A guest that answers the first question as the real one does, breaks the protocol at the second, and stays.
pub(crate) fn stubborn_guest(base: &Path) -> PathBuf {
    let path = base.join("stubborn");
    let [low, high] = PROTOCOL.to_le_bytes();
    let script = format!(
        r"#!/bin/sh
head -c 9 > /dev/null
printf '\013\000\000\000\211\001\000\000\000\{low:03o}\{high:03o}\001\000\000\000'
head -c 1 > /dev/null
printf '\377\377\377\377\377\377\377\377\377'
exec sleep 1000
"
    );
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}
