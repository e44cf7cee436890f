//! Takes the steps of a snapshot inside a sandbox (S-7): the working directory and the objects read-only, the git
//! directory on a tmpfs of bounded size, no network, no socket, an empty environment, nothing of the host's settings.
//!
//! Whoever talks git into running something, following a link or reading a foreign file has gained nothing: nothing is in
//! there but what the agent has anyway. What comes out is a tree id, lists of paths that go nowhere but back in, and a pack
//! that is spooled under a limit. All of it is as untrusted as the directory itself; `import` checks it.
//! This module does not know how a sandbox is built.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::id::EffectId;
use conductor_domain::testing::Ending;
use conductor_domain::time::Millis;
use conductor_port::executor::{Command, CommandResult, Executor, Listener, Profile, Sandbox, SandboxSpec};
use tokio::sync::Notify;

use super::room::{OPENED_BY_NAME, Room, Survey, split_at_zero, to_path, zero_terminated};
use super::{Request, Snapshot, Snapshotter, steps};
use crate::base::{ObjectFormat, init_words};
use crate::call::{Finished, Git, Place, printable};
use crate::error::Error;
use crate::import::Limits;
use crate::run_repo::alternates;

/// The working directory as it is seen inside.
const WORK: &str = "/w";
/// The git directory inside.
const REPOSITORY: &str = "/tmp/git";
/// What a command inside reads.
const INPUT: &str = "/tmp/input";

/// How long one step may take.
const TIME: Duration = Duration::from_mins(5);
/// The most that one step may say: the names of a large working directory.
const OUTPUT: usize = 64 * 1024 * 1024;
/// The most of an error message that is kept.
const STDERR: usize = 16 * 1024;
/// The most bytes that are handed in at once; the kernel takes 128 KiB in one argument.
const PIECE: usize = 24 * 1024;

/// Hands in a piece of a file. Bytes that are no plain letters come as octal numbers, because arguments are text.
const PUT: &str = r#"printf '%b' "$2" >>"$1""#;

/// Runs the words, each written as `PUT` has it, on `INPUT`; says the length of the end of what it complained, that
/// end, then what it printed. Complaints go where there is room when `/tmp` is full.
const RUN: &str = r#": >>/tmp/input; words=(); for word in "$@"; do printf -v word '%b' "$word"; words+=("$word"); done
"${words[@]}" </tmp/input >/tmp/output 2>/dev/shm/complaint
code=$?
: >/tmp/input
tail -c 16384 /dev/shm/complaint >/dev/shm/said
stat -c %s /dev/shm/said && cat /dev/shm/said /tmp/output
exit $code"#;

/// The same for what is too long to be kept.
const STREAM: &str = r#"words=(); for word in "$@"; do printf -v word '%b' "$word"; words+=("$word"); done
exec "${words[@]}" </tmp/input 2>/dev/null"#;

/// Makes snapshots in sandboxes of an executor.
#[derive(Debug, Clone)]
pub struct SandboxSnapshotter {
    git: Git,
    executor: Arc<dyn Executor>,
    scratch: PathBuf,
    pack_bytes: u64,
}

impl SandboxSnapshotter {
    /// Opens sandboxes of `executor`; packs wait in `scratch`, a private directory, to be imported.
    pub fn new(git: Git, executor: Arc<dyn Executor>, scratch: &Path, limits: Limits) -> Self {
        Self {
            git,
            executor,
            scratch: scratch.to_owned(),
            pack_bytes: limits.pack_bytes,
        }
    }
}

#[async_trait]
impl Snapshotter for SandboxSnapshotter {
    async fn snapshot(&self, request: &Request) -> Result<Snapshot, Error> {
        // No effect has this number; what a process that died left of an earlier snapshot goes by it.
        let effect = EffectId::derive(&request.run, 0, 0);
        self.executor.reap(&effect).await.map_err(sandbox_failed)?;
        let mut spec = SandboxSpec::new(
            effect,
            request.run.clone(),
            Profile::Snapshot,
            request.workdir.clone(),
        );
        spec.readable.clone_from(&request.objects);
        let sandbox = self.executor.open(spec).await.map_err(sandbox_failed)?;
        let room = Confined {
            git: self.git.clone(),
            sandbox,
            workdir: request.workdir.clone(),
            scratch: self.scratch.clone(),
            pack_bytes: self.pack_bytes,
        };
        room.prepare(request).await?;
        steps::take(Box::new(room), request).await
    }
}

/// An open sandbox with a git directory; ended when dropped.
struct Confined {
    git: Git,
    sandbox: Box<dyn Sandbox>,
    workdir: PathBuf,
    scratch: PathBuf,
    pack_bytes: u64,
}

impl Confined {
    async fn prepare(&self, request: &Request) -> Result<(), Error> {
        let format = ObjectFormat::of_object(&request.parent);
        let init = self.git.call(Place::Directory(Path::new("/tmp")), "init");
        let init = init.args(init_words(format)).arg(REPOSITORY);
        let made = self.run(&init.words(), &[]).await?;
        if !made.status.success() {
            return Err(made.into_error("init"));
        }
        let info = format!("{REPOSITORY}/objects/info");
        self.run(&["mkdir", "-p", &info].map(OsString::from), &[]).await?;
        self.put(&format!("{info}/alternates"), &alternates(&request.objects))
            .await
    }

    /// Appends to a file inside.
    async fn put(&self, path: &str, content: &[u8]) -> Result<(), Error> {
        for piece in content.chunks(PIECE) {
            let script = ["bash", "-c", PUT, "put", path, &written(piece)].map(str::to_owned);
            let put = self.command(script.to_vec()).await?;
            if is_out_of_space(&put.output) {
                return Err(out_of_space());
            }
            let ended = self.ended("put", put.ending)?;
            if !ended.status.success() {
                return Err(ended.into_error("put"));
            }
        }
        Ok(())
    }

    /// Runs a program to its end.
    async fn run(&self, words: &[OsString], input: &[u8]) -> Result<Finished, Error> {
        self.put(INPUT, input).await?;
        let result = self.command(script(RUN, words)).await?;
        if result.truncated {
            return Err(Error::OutputTooLarge {
                verb: "a step of a snapshot".to_owned(),
                limit: OUTPUT,
            });
        }
        let mut finished = self.ended("a step", result.ending)?;
        let misread = || self.failed("its sandbox did not say what git said".to_owned());
        let end = result.output.iter().position(|byte| *byte == b'\n');
        let end = end.ok_or_else(misread)?;
        let length = std::str::from_utf8(&result.output[..end]).ok();
        let length: usize = length.and_then(|text| text.parse().ok()).ok_or_else(misread)?;
        let rest = &result.output[end + 1..];
        if length > STDERR || length > rest.len() {
            return Err(misread());
        }
        let (stderr, stdout) = rest.split_at(length);
        finished.stdout = stdout.to_vec();
        finished.stderr = printable(&String::from_utf8_lossy(stderr));
        if !finished.status.success() && finished.is_out_of_space() {
            return Err(out_of_space());
        }
        Ok(finished)
    }

    async fn command(&self, argv: Vec<String>) -> Result<CommandResult, Error> {
        let command = Command {
            argv,
            environment: vec![],
            time: millis(TIME),
            output: OUTPUT,
            listener: None,
        };
        self.sandbox.bash(command).await.map_err(sandbox_failed)
    }

    /// Tells a normal end from any other.
    fn ended(&self, verb: &str, ending: Ending) -> Result<Finished, Error> {
        match ending {
            Ending::Exited { code } => Ok(Finished {
                status: ExitStatus::from_raw((code & 0xff) << 8),
                stdout: Vec::new(),
                stderr: String::new(),
            }),
            Ending::TimedOut => Err(Error::TimedOut {
                verb: verb.to_owned(),
                limit: TIME,
            }),
            Ending::LimitExceeded { limit } => Err(Error::SnapshotTooLarge {
                limit: format!("the {limit} limit of a sandbox allows to read"),
            }),
            Ending::Signalled { signal } => {
                Err(self.failed(format!("its reader was ended by signal {signal}")))
            }
            Ending::Lost => Err(self.failed("the end of its reader was not seen".to_owned())),
            Ending::NotRun { reason } => Err(self.failed(reason)),
        }
    }

    /// What `find` listed. It says 1, and `xargs` for it 123, when something could not be read; git then says what.
    fn listed(&self, found: Finished) -> Result<Vec<u8>, Error> {
        match found.status.code() {
            Some(0 | 1 | 123) => Ok(found.stdout),
            _ => Err(self.failed(format!("it could not be listed: {}", found.stderr))),
        }
    }

    fn failed(&self, detail: String) -> Error {
        Error::SnapshotFailed {
            workdir: self.workdir.clone(),
            detail,
        }
    }
}

#[async_trait]
impl Room for Confined {
    async fn git(&self, verb: &str, args: &[&str], input: Vec<u8>) -> Result<Finished, Error> {
        let place = Place::Snapshot {
            repository: Path::new(REPOSITORY),
            tree: Path::new(WORK),
        };
        let words = self.git.call(place, verb).args(args).words();
        self.run(&words, &input).await
    }

    async fn survey(&self, links: &[PathBuf]) -> Result<Survey, Error> {
        let mut words: Vec<Vec<u8>> = Vec::new();
        let mut add = |text: &str| words.extend(text.split(' ').map(|word| word.as_bytes().to_vec()));
        add(r"find . -iname .git -prune -printf r%h\0 -o ( -type p -o -type s -o -type b -o -type c ) (");
        add(&OPENED_BY_NAME.map(|name| format!("-name {name}")).join(" -o "));
        add(r") -printf w%P\0");
        if !links.is_empty() {
            add("-o -type d ! -empty (");
            for (number, link) in links.iter().enumerate() {
                words.extend((number > 0).then(|| b"-o".to_vec()));
                words.push(b"-path".to_vec());
                words.push(pattern(link));
            }
            words.extend([b")".to_vec(), b"-printf".to_vec(), br"f%P\0".to_vec()]);
        }
        let words: Vec<OsString> = words.into_iter().map(OsString::from_vec).collect();
        let found = self.listed(self.run(&words, &[]).await?)?;
        let mut survey = Survey::default();
        for entry in split_at_zero(&found) {
            let path = to_path(entry[1..].strip_prefix(b"./").unwrap_or(&entry[1..]));
            match entry[0] {
                b'r' if path != Path::new(".") => survey.repositories.push(path),
                b'r' => {}
                b'w' => survey.waiting.push(path),
                b'f' => survey.filled.push(path),
                _ => return Err(self.failed("its sandbox lists what nobody asked for".to_owned())),
            }
        }
        Ok(survey)
    }

    async fn files(&self, below: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
        let below: Vec<PathBuf> = below.iter().map(|path| Path::new(".").join(path)).collect();
        let find = r#"exec find "$@" -iname .git -prune -o '(' -type f -o -type l ')' -print0"#;
        let words = ["xargs", "-0", "sh", "-c", find, "find"].map(OsString::from);
        let found = self.listed(self.run(&words, &zero_terminated(&below)).await?)?;
        let paths = split_at_zero(&found);
        Ok(paths
            .map(|path| to_path(path.strip_prefix(b"./").unwrap_or(path)))
            .collect())
    }

    async fn pack(self: Box<Self>, tree: String, args: &[&str], input: Vec<u8>) -> Result<Snapshot, Error> {
        self.put(INPUT, &input).await?;
        let place = Place::Repository(Path::new(REPOSITORY));
        let words = self.git.call(place, "pack-objects").args(args).words();
        let spool = Arc::new(Spool::new(&self.scratch, self.pack_bytes)?);
        let command = Command {
            argv: script(STREAM, &words),
            environment: vec![],
            time: millis(TIME),
            output: 0,
            listener: Some(spool.listener()),
        };
        let result = tokio::select! {
            result = self.sandbox.bash(command) => result.map_err(sandbox_failed)?,
            () = spool.is_full.notified() => return Err(spool.too_large()),
        };
        if spool.is_over() {
            return Err(spool.too_large());
        }
        let packed = self.ended("pack-objects", result.ending)?;
        if !packed.status.success() {
            return Err(packed.into_error("pack-objects"));
        }
        let pack = spool.finish()?;
        self.sandbox.close().await.map_err(sandbox_failed)?;
        Ok(Snapshot {
            tree,
            pack: Box::new(tokio::fs::File::from_std(pack)),
        })
    }
}

/// The command for a script of ours with these words.
fn script(text: &str, words: &[OsString]) -> Vec<String> {
    let mut argv = ["bash", "-c", text, "step"].map(str::to_owned).to_vec();
    argv.extend(words.iter().map(|word| written(word.as_bytes())));
    argv
}

/// Writes bytes as `printf %b` reads them.
fn written(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || b"/._-=:,+".contains(byte) {
            text.push(char::from(*byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(text, "\\0{byte:03o}");
        }
    }
    text
}

/// A path as `find -path` compares it, every letter standing for itself.
fn pattern(path: &Path) -> Vec<u8> {
    let mut pattern = b"./".to_vec();
    for byte in path.as_os_str().as_bytes() {
        if b"*?[]\\".contains(byte) {
            pattern.push(b'\\');
        }
        pattern.push(*byte);
    }
    pattern
}

fn millis(time: Duration) -> Millis {
    Millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

fn is_out_of_space(output: &[u8]) -> bool {
    String::from_utf8_lossy(output).contains("No space left on device")
}

fn out_of_space() -> Error {
    Error::SnapshotTooLarge {
        limit: "the room that a sandbox has for it".to_owned(),
    }
}

fn sandbox_failed(fault: Fault) -> Error {
    Error::Sandbox { fault }
}

/// Takes a pack as it comes, up to a limit; nothing of it has a name.
struct Spool {
    file: Mutex<File>,
    room: u64,
    taken: AtomicU64,
    failed: Mutex<Option<std::io::Error>>,
    place: PathBuf,
    is_full: Notify,
}

impl Spool {
    fn new(place: &Path, room: u64) -> Result<Self, Error> {
        let file = tempfile::tempfile_in(place).map_err(|e| Error::io("make a file in", place, e))?;
        Ok(Self {
            file: Mutex::new(file),
            room,
            taken: AtomicU64::new(0),
            failed: Mutex::new(None),
            place: place.to_owned(),
            is_full: Notify::new(),
        })
    }

    fn listener(self: &Arc<Self>) -> Listener {
        let spool = Arc::clone(self);
        Listener(Arc::new(move |bytes: &[u8]| spool.take(bytes)))
    }

    fn take(&self, bytes: &[u8]) {
        let length = bytes.len() as u64;
        if self.taken.fetch_add(length, Ordering::Relaxed) + length > self.room {
            self.is_full.notify_one();
            return;
        }
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write_all(bytes) {
            *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    }

    fn is_over(&self) -> bool {
        self.taken.load(Ordering::Relaxed) > self.room
    }

    fn too_large(&self) -> Error {
        Error::SnapshotTooLarge {
            limit: format!("{} bytes", self.room),
        }
    }

    /// The whole pack, to be read from its beginning.
    fn finish(&self) -> Result<File, Error> {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        match failed {
            Some(error) => Err(error),
            None => file.rewind().and_then(|()| file.try_clone()),
        }
        .map_err(|e| Error::io("keep a pack in", &self.place, e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S-7: any name comes through, and none becomes anything but itself.
    #[test]
    fn every_byte_has_one_spelling() {
        assert_eq!(written(b"a/b-1.txt"), "a/b-1.txt");
        assert_eq!(written(b"$(x)\n\0"), "\\0044\\0050x\\0051\\0012\\0000");
        assert_eq!(written(&[0xff, b'7']), "\\03777");
        assert_eq!(pattern(Path::new("a*[b")), b"./a\\*\\[b");
    }

    /// S-7: a pack that is longer than allowed is not taken further.
    #[tokio::test]
    async fn a_spool_takes_no_more_than_its_room() {
        let place = tempfile::tempdir().unwrap();
        let spool = Arc::new(Spool::new(place.path(), 4).unwrap());
        let Listener(hear) = spool.listener();
        hear(b"abcd");
        assert!(!spool.is_over());
        hear(b"e");
        assert!(spool.is_over());
        spool.is_full.notified().await;
        assert_eq!(std::io::read_to_string(spool.finish().unwrap()).unwrap(), "abcd");
    }
}
