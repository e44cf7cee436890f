//! Builds and runs every git process of the host; nothing else in Conductor starts git (S-9).
//!
//! The environment is empty but for the variables named here, configuration outside the repository is switched
//! off, arguments are a list, output is bounded, and a process that outlives its time limit is killed with its
//! group. A [`Place`] names the repository, so git never discovers one from a directory (invariant 11).
//!
//! This module does not know what the calls are for.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use crate::askpass::Askpass;
use crate::error::Error;
use crate::lock::Lock;

mod process;

use process::{Group, read_bounded, read_end};
pub(crate) use process::{Streaming, printable};

/// The oldest git with `merge-tree --write-tree --merge-base` (S-13).
pub const OLDEST_GIT: &str = "2.40";
const OLDEST: (u32, u32) = (2, 40);

/// The only directories in which git and what it starts are looked for.
const PROGRAM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Longest output of a call that does not say otherwise.
const OUTPUT_LIMIT: usize = 64 * 1024 * 1024;

/// How long a call that touches no network may take.
const LOCAL_TIME: Duration = Duration::from_mins(5);

/// Applied to every call. An entry here is a protection: see the test named after it.
const SETTINGS: [&str; 19] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.protectHFS=true",
    "core.protectNTFS=true",
    "core.fsync=objects,derived-metadata,reference",
    "core.safecrlf=false",
    "credential.helper=",
    "http.followRedirects=false",
    "http.lowSpeedLimit=500",
    "http.lowSpeedTime=60",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "commit.gpgSign=false",
    "push.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.addEmbeddedRepo=false",
];

/// The installed git, and the transports that it may use.
#[derive(Debug, Clone)]
pub struct Git {
    program: PathBuf,
    protocols: String,
}

/// A transport that git may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// What real servers speak.
    Https,
    /// What the embedded forge speaks, on loopback.
    Http,
    /// Repositories on this machine, in tests.
    File,
}

impl Protocol {
    /// The scheme of an address, and git's name for the transport.
    pub(crate) fn scheme(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
            Self::File => "file",
        }
    }
}

impl Git {
    /// Finds git in the system's directories and checks its version.
    pub async fn find(protocols: &[Protocol]) -> Result<Self, Error> {
        let program = PROGRAM_PATH
            .split(':')
            .map(|directory| Path::new(directory).join("git"))
            .find(|candidate| candidate.is_file())
            .unwrap_or_else(|| PathBuf::from("/usr/bin/git"));
        Self::at(&program, protocols).await
    }

    /// Uses the git at `program` after checking its version.
    pub async fn at(program: &Path, protocols: &[Protocol]) -> Result<Self, Error> {
        let protocols = protocols.iter().map(|p| p.scheme()).collect::<Vec<_>>().join(":");
        let git = Self {
            program: program.to_owned(),
            protocols,
        };
        let answer = git
            .call(Place::Directory(Path::new("/")), "version")
            .text()
            .await?;
        let found = answer.trim().trim_start_matches("git version ").to_owned();
        let mut numbers = found.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        if version < OLDEST {
            return Err(Error::GitTooOld {
                found,
                needed: OLDEST_GIT,
            });
        }
        Ok(git)
    }

    /// Tells whether addresses of this scheme may be used.
    pub(crate) fn allows(&self, protocol: Protocol) -> bool {
        self.protocols
            .split(':')
            .any(|allowed| allowed == protocol.scheme())
    }

    /// Begins a call; the one function that builds host git calls.
    pub(crate) fn call<'a>(&'a self, place: Place<'a>, verb: &str) -> Call<'a> {
        #[allow(clippy::disallowed_methods, reason = "the one home of git processes (S-9)")]
        let mut command = Command::new(&self.program);
        command
            .env_clear()
            .env("PATH", PROGRAM_PATH)
            // Without a home, curl would look up the user's own and read `.netrc` there.
            .env("HOME", "/dev/null")
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ALLOW_PROTOCOL", &self.protocols)
            .env("GIT_PROTOCOL_FROM_USER", "0")
            .process_group(0)
            .kill_on_drop(true)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for setting in SETTINGS {
            command.arg("-c").arg(setting);
        }
        place.apply(&mut command);
        command.arg(verb);
        Call {
            program: &self.program,
            command,
            verb: verb.to_owned(),
            input: Input::Nothing,
            time: LOCAL_TIME,
            output: OUTPUT_LIMIT,
            askpass: None,
        }
    }
}

/// Where a git process works. None of these is ever agent-writable, with the one exception that says so.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place<'a> {
    /// No repository; the directory belongs to the host.
    Directory(&'a Path),
    /// A bare repository that only Conductor writes.
    Repository(&'a Path),
    /// A bare repository, and a directory that is being filled from it and was handed to nobody yet.
    Filling {
        /// The bare repository.
        repository: &'a Path,
        /// The directory to fill.
        directory: &'a Path,
        /// The index file, outside of both.
        index: &'a Path,
    },
    /// An agent-writable tree, read with a throw-away git directory: the inside of the snapshot step only (S-7).
    Snapshot {
        /// The throw-away git directory.
        repository: &'a Path,
        /// The agent-writable tree, whose processes have ended.
        tree: &'a Path,
    },
}

impl Place<'_> {
    fn apply(self, command: &mut Command) {
        match self {
            Place::Directory(directory) => {
                command.current_dir(directory);
            }
            Place::Repository(repository) => {
                command
                    .current_dir(repository)
                    .arg(flag("--git-dir=", repository));
            }
            Place::Filling {
                repository,
                directory,
                index,
            } => {
                command
                    .current_dir(repository)
                    .env("GIT_INDEX_FILE", index)
                    .args(["-c", "core.bare=false"])
                    .arg(flag("--git-dir=", repository))
                    .arg(flag("--work-tree=", directory));
            }
            Place::Snapshot { repository, tree } => {
                command
                    .current_dir(repository)
                    // Nothing here outlives the snapshot, so nothing needs to survive a power cut.
                    .args(["-c", "core.bare=false", "-c", "core.fsync=none"])
                    .arg(flag("--git-dir=", repository))
                    .arg(flag("--work-tree=", tree));
            }
        }
    }
}

fn flag(name: &str, path: &Path) -> OsString {
    let mut flag = OsString::from(name);
    flag.push(path);
    flag
}

enum Input<'a> {
    Nothing,
    Bytes(Vec<u8>),
    Stream(Box<dyn AsyncRead + Send + Unpin + 'a>),
}

/// One git call under construction.
pub(crate) struct Call<'a> {
    program: &'a Path,
    command: Command,
    verb: String,
    input: Input<'a>,
    time: Duration,
    output: usize,
    askpass: Option<&'a Askpass>,
}

/// What a finished git process left.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl<'a> Call<'a> {
    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    pub(crate) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    pub(crate) fn env(mut self, name: &'static str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Gives the process these bytes to read.
    pub(crate) fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = Input::Bytes(bytes.into());
        self
    }

    /// Gives the process this stream to read.
    pub(crate) fn stream_in(mut self, stream: impl AsyncRead + Send + Unpin + 'a) -> Self {
        self.input = Input::Stream(Box::new(stream));
        self
    }

    /// Lets the process hold the repository's lock for as long as it lives.
    pub(crate) fn holding(mut self, lock: &Lock) -> Result<Self, Error> {
        let stdin = lock
            .as_stdin()
            .map_err(|e| Error::io("share the lock for", &self.verb, e))?;
        self.command.stdin(stdin);
        Ok(self)
    }

    /// Lets the process ask for the credentials of the configured host.
    pub(crate) fn asking(mut self, askpass: Option<&'a Askpass>) -> Self {
        if let Some(askpass) = askpass {
            self.command.env("GIT_ASKPASS", askpass.program());
        }
        self.askpass = askpass;
        self
    }

    pub(crate) fn within(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// The default bound fits every call so far.
    #[cfg(test)]
    fn at_most(mut self, bytes: usize) -> Self {
        self.output = bytes;
        self
    }

    /// The call as words, for a sandbox in which the same program is found: nothing of the environment there remains.
    pub(crate) fn words(&self) -> Vec<OsString> {
        let command = self.command.as_std();
        let mut words: Vec<OsString> = vec!["env".into(), "-i".into()];
        if let Some(directory) = command.get_current_dir() {
            words.extend(["-C".into(), directory.into()]);
        }
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                let mut assignment = name.to_owned();
                assignment.push("=");
                assignment.push(value);
                words.push(assignment);
            }
        }
        words.push(self.program.into());
        words.extend(command.get_args().map(OsStr::to_owned));
        words
    }

    /// Runs to the end and returns the output of a success.
    pub(crate) async fn bytes(self) -> Result<Vec<u8>, Error> {
        let verb = self.verb.clone();
        let finished = self.finish().await?;
        if finished.status.success() {
            Ok(finished.stdout)
        } else {
            Err(finished.into_error(verb))
        }
    }

    /// Runs to the end and returns the output of a success, which must be text.
    pub(crate) async fn text(self) -> Result<String, Error> {
        let verb = self.verb.clone();
        String::from_utf8(self.bytes().await?).map_err(|_| Error::UnexpectedOutput {
            verb: "",
            detail: format!("`{verb}` did not answer in UTF-8"),
        })
    }

    /// Runs to the end, whatever the end is, if it is the process's own.
    pub(crate) async fn finish(mut self) -> Result<Finished, Error> {
        let input = std::mem::replace(&mut self.input, Input::Nothing);
        if !matches!(input, Input::Nothing) {
            self.command.stdin(Stdio::piped());
        }
        let (mut child, mut group) = self.spawn()?;
        let (time, limit, askpass) = (self.time, self.output, self.askpass);
        let stdin = child.stdin.take();
        let stdout = child.stdout.take();
        let stderr = child.stderr.take();
        let work = async {
            let feed = async {
                if let Some(mut stdin) = stdin {
                    match input {
                        // A reader that ends early is reported by its own exit status.
                        Input::Bytes(bytes) => drop(stdin.write_all(&bytes).await),
                        Input::Stream(mut stream) => drop(tokio::io::copy(&mut stream, &mut stdin).await),
                        Input::Nothing => {}
                    }
                }
            };
            let ((), stdout, stderr) = tokio::join!(feed, read_bounded(stdout, limit), read_end(stderr));
            let Some(stdout) = stdout else { return Ok(None) };
            let status = child.wait().await;
            status.map(|status| Some((status, stdout, stderr)))
        };
        let ended = tokio::time::timeout(time, work).await;
        match ended {
            Err(_) => Err(Error::TimedOut {
                verb: self.verb,
                limit: time,
            }),
            Ok(Ok(None)) => Err(Error::OutputTooLarge {
                verb: self.verb,
                limit,
            }),
            Ok(Err(e)) => Err(Error::io("wait for", self.program, e)),
            Ok(Ok(Some((status, stdout, stderr)))) => {
                group.disarm();
                if status.signal().is_some() {
                    return Err(Error::Killed {
                        verb: self.verb,
                        status: status.to_string(),
                    });
                }
                let stderr = askpass.map_or_else(|| stderr.clone(), |askpass| askpass.redact(&stderr));
                Ok(Finished {
                    status,
                    stdout,
                    stderr: printable(&stderr),
                })
            }
        }
    }

    /// Starts the process and returns its output as a stream; the process ends when the stream is dropped.
    pub(crate) fn stream_out(mut self) -> Result<Streaming, Error> {
        let input = std::mem::replace(&mut self.input, Input::Nothing);
        let Input::Bytes(bytes) = input else {
            return Err(Error::UnexpectedOutput {
                verb: "",
                detail: "a streaming call takes bytes".to_owned(),
            });
        };
        self.command.stdin(Stdio::piped()).stderr(Stdio::null());
        let (mut child, group) = self.spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let feed = tokio::spawn(async move {
            if let Some(mut stdin) = stdin {
                drop(stdin.write_all(&bytes).await);
            }
        });
        Ok(Streaming::new(stdout, feed, group, child))
    }

    fn spawn(&mut self) -> Result<(Child, Group), Error> {
        let child = self.command.spawn().map_err(|source| Error::GitMissing {
            program: self.program.to_owned(),
            needed: OLDEST_GIT,
            source,
        })?;
        let group = Group::of(&child);
        Ok((child, group))
    }
}

impl std::fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call")
            .field("verb", &self.verb)
            .finish_non_exhaustive()
    }
}

impl Finished {
    /// Whether it failed for want of room.
    pub(crate) fn is_out_of_space(&self) -> bool {
        self.stderr.contains("No space left on device") || self.stderr.contains("Disk quota exceeded")
    }

    /// Names the failure.
    pub(crate) fn into_error(self, verb: impl Into<String>) -> Error {
        if self.is_out_of_space() {
            return Error::DiskFull { detail: self.stderr };
        }
        Error::Call {
            verb: verb.into(),
            status: self.status.to_string(),
            stderr: self.stderr,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::process::STDERR_KEPT;
    use super::*;

    /// A program in git's place.
    fn stand_in(directory: &Path, script: &str) -> Git {
        let program = directory.join("git");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        Git {
            program,
            protocols: "https".to_owned(),
        }
    }

    /// S-9: the whole environment, not only what must be in it.
    #[tokio::test]
    async fn a_call_has_exactly_the_named_environment() {
        let place = tempfile::tempdir().unwrap();
        let git = stand_in(place.path(), "env");
        let shown = git
            .call(Place::Repository(place.path()), "status")
            .text()
            .await
            .unwrap();
        let mut variables: Vec<&str> = shown.lines().collect();
        variables.sort_unstable();
        // `PWD`, and on some shells `_`, are set by the shell of the stand-in itself.
        variables.retain(|variable| !variable.starts_with("PWD=") && !variable.starts_with("_="));
        assert_eq!(
            variables,
            [
                "GIT_ALLOW_PROTOCOL=https",
                "GIT_ATTR_NOSYSTEM=1",
                "GIT_CONFIG_GLOBAL=/dev/null",
                "GIT_CONFIG_NOSYSTEM=1",
                "GIT_NO_LAZY_FETCH=1",
                "GIT_NO_REPLACE_OBJECTS=1",
                "GIT_PROTOCOL_FROM_USER=0",
                "GIT_TERMINAL_PROMPT=0",
                "HOME=/dev/null",
                "LC_ALL=C",
                "PATH=/usr/local/bin:/usr/bin:/bin",
                "TZ=UTC",
            ]
        );
    }

    /// S-9: the whole list of arguments, so that no setting goes missing unseen, and none that came later undoes it.
    #[tokio::test]
    async fn a_call_switches_off_what_configuration_could_run() {
        let place = tempfile::tempdir().unwrap();
        let git = stand_in(place.path(), r#"printf '%s\n' "$@""#);
        let shown = git
            .call(Place::Repository(place.path()), "status")
            .text()
            .await
            .unwrap();
        let settings = [
            "core.hooksPath=/dev/null",
            "core.fsmonitor=false",
            "core.attributesFile=/dev/null",
            "core.excludesFile=/dev/null",
            "core.protectHFS=true",
            "core.protectNTFS=true",
            "core.fsync=objects,derived-metadata,reference",
            "core.safecrlf=false",
            "credential.helper=",
            "http.followRedirects=false",
            "http.lowSpeedLimit=500",
            "http.lowSpeedTime=60",
            "submodule.recurse=false",
            "fetch.recurseSubmodules=false",
            "commit.gpgSign=false",
            "push.gpgSign=false",
            "gc.auto=0",
            "maintenance.auto=false",
            "advice.addEmbeddedRepo=false",
        ];
        let place = format!("--git-dir={}", place.path().display());
        let expected: Vec<&str> = settings
            .into_iter()
            .flat_map(|setting| ["-c", setting])
            .chain([place.as_str(), "status"])
            .collect();
        assert_eq!(shown.lines().collect::<Vec<_>>(), expected);
    }

    /// EXEC-7: what outlives its limit is killed with everything it started.
    #[tokio::test]
    async fn a_call_past_its_time_is_killed_with_its_group() {
        let place = tempfile::tempdir().unwrap();
        let fifo = place.path().join("alive");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        // The grandchild holds the only writing end; it ends when, and only when, the grandchild does.
        let git = stand_in(place.path(), "tail -f /dev/null 3>alive & tail -f /dev/null");
        let reading = tokio::task::spawn_blocking(move || fs::read(&fifo));
        let call = git
            .call(Place::Repository(place.path()), "status")
            .within(Duration::from_millis(300));
        assert!(matches!(call.finish().await, Err(Error::TimedOut { .. })));
        assert_eq!(reading.await.unwrap().unwrap(), b"");
    }

    #[tokio::test]
    async fn output_past_the_limit_is_an_error_and_not_a_part() {
        let place = tempfile::tempdir().unwrap();
        let git = stand_in(place.path(), "yes");
        let call = git.call(Place::Repository(place.path()), "log").at_most(1000);
        assert!(matches!(
            call.finish().await,
            Err(Error::OutputTooLarge { limit: 1000, .. })
        ));
    }

    #[tokio::test]
    async fn standard_error_is_bounded_and_printable() {
        let place = tempfile::tempdir().unwrap();
        let git = stand_in(
            place.path(),
            r"yes x | head -c 100000 >&2; printf '\033[31mend' >&2; exit 3",
        );
        let finished = git
            .call(Place::Repository(place.path()), "log")
            .finish()
            .await
            .unwrap();
        assert!(
            finished.stderr.len() < STDERR_KEPT + 100,
            "{}",
            finished.stderr.len()
        );
        assert!(
            finished.stderr.ends_with("\\u{1b}[31mend"),
            "{:?}",
            &finished.stderr[STDERR_KEPT - 200..]
        );
    }

    #[tokio::test]
    async fn an_old_git_and_a_missing_git_are_named() {
        let place = tempfile::tempdir().unwrap();
        let old = stand_in(place.path(), "echo git version 2.39.5");
        assert!(matches!(
            Git::at(&old.program, &[]).await,
            Err(Error::GitTooOld { .. })
        ));
        let missing = place.path().join("nothing-here");
        assert!(matches!(
            Git::at(&missing, &[]).await,
            Err(Error::GitMissing { .. })
        ));
    }
}
