//! Plays the host: starts a guest, plain or as PID 1 of a bubblewrap sandbox, and speaks to it in frames.

use std::ffi::OsString;
use std::io::{PipeReader, PipeWriter, Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use conductor_guest::calls::{Calls, Forged, Standing};
use conductor_guest::frame::{Decoder, Frame, RequestId};
use conductor_guest::order::{Order, Range, Request, Run, Streams};
use conductor_guest::response::{Ending, Exited, Response};
use rustix::fs::{Gid, Uid};
use tempfile::TempDir;

/// Belongs to no login. Tests that run as root drop to it: root reads and kills what it likes (S-1).
pub(crate) const STRANGER: u32 = 64_321;

/// Long enough for a loaded machine, short enough for the runner's own limit.
pub(crate) const PLENTY: u64 = 60_000;

/// A directory for a sandbox to work in, and one beside it that it must not reach.
pub(crate) struct Place {
    base: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        let place = Self { base };
        std::fs::create_dir(place.work()).unwrap();
        std::fs::copy(env!("CARGO_BIN_EXE_conductor-guest"), place.guest()).unwrap();
        for path in [place.base.path(), &place.work(), &place.guest()] {
            give_away(path);
        }
        place
    }

    pub(crate) fn base(&self) -> &Path {
        self.base.path()
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.base.path().join("work")
    }

    pub(crate) fn guest(&self) -> PathBuf {
        self.base.path().join("guest")
    }

    /// Puts a file into the working directory.
    pub(crate) fn write(&self, path: &str, content: &[u8]) {
        let path = self.work().join(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).unwrap();
            give_away(parent);
        }
        std::fs::write(&path, content).unwrap();
        give_away(&path);
    }

    pub(crate) fn read(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.work().join(path)).unwrap()
    }

    /// Puts a program that makes raw system calls where both kinds of guest find it.
    pub(crate) fn add_probe(&self) {
        let examples = Path::new(env!("CARGO_BIN_EXE_conductor-guest")).with_file_name("examples");
        let probe = self.work().join("probe");
        std::fs::copy(examples.join("probe"), &probe)
            .expect("`cargo test` and `cargo nextest run` build the examples of the crates that they test");
        give_away(&probe);
    }

    /// Starts a guest without any sandbox around it.
    pub(crate) fn plain(&self) -> Guest {
        self.plain_with(&[])
    }

    pub(crate) fn plain_with(&self, arguments: &[&str]) -> Guest {
        let mut command = Command::new(self.guest());
        command.arg("--root").arg(self.work()).args(arguments);
        Guest::start(command)
    }

    /// Starts a plain guest through a shell script that ends with `exec "$@"`.
    pub(crate) fn plain_by(&self, script: &str) -> Guest {
        let mut command = Command::new("bash");
        command
            .args(["-c", script, "bash"])
            .arg(self.guest())
            .arg("--root")
            .arg(self.work());
        Guest::start(command)
    }

    /// Starts a guest as PID 1 of a sandbox like the `local` executor's.
    pub(crate) fn sandboxed(&self, arguments: &[&str]) -> Guest {
        self.sandboxed_with(&[], arguments)
    }

    /// The same, with further mounts.
    pub(crate) fn sandboxed_with(&self, mounts: &[&str], arguments: &[&str]) -> Guest {
        let mut command = Command::new("bwrap");
        command
            .args(NAMESPACES)
            .args(SYSTEM)
            .args(self.mounts())
            .args(mounts)
            .args(START)
            .args(arguments);
        Guest::start(command)
    }

    /// The same, with the list of system calls from the file `list`, installed by `bwrap`.
    pub(crate) fn sandboxed_by_list(&self, arguments: &[&str]) -> Guest {
        let mut command = Command::new("bash");
        command
            .args([
                "-c",
                "list=$1; shift; exec bwrap --seccomp 9 \"$@\" 9<\"$list\"",
                "bash",
            ])
            .arg(self.base().join("list"));
        command
            .args(NAMESPACES)
            .args(SYSTEM)
            .args(self.mounts())
            .args(START)
            .args(arguments);
        Guest::start(command)
    }

    fn mounts(&self) -> [OsString; 6] {
        let (guest, work) = (self.guest().into(), self.work().into());
        [
            "--ro-bind".into(),
            guest,
            "/guest".into(),
            "--bind".into(),
            work,
            "/w".into(),
        ]
    }
}

const NAMESPACES: &[&str] = &[
    "--unshare-user",
    "--unshare-pid",
    "--unshare-net",
    "--unshare-ipc",
    "--unshare-uts",
    "--disable-userns",
    "--new-session",
    "--die-with-parent",
    "--as-pid-1",
    "--clearenv",
];

const SYSTEM: &[&str] = &[
    "--ro-bind",
    "/usr",
    "/usr",
    "--symlink",
    "usr/bin",
    "/bin",
    "--symlink",
    "usr/lib",
    "/lib",
    "--symlink",
    "usr/lib64",
    "/lib64",
    "--proc",
    "/proc",
    "--ro-bind",
    "/proc/sys",
    "/proc/sys",
    "--dev",
    "/dev",
    "--tmpfs",
    "/tmp",
];

const START: &[&str] = &["--chdir", "/w", "/guest", "--root", "/w"];

fn give_away(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    if is_root() {
        chown(path, Some(STRANGER), Some(STRANGER)).unwrap();
    }
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A guest and what was asked of it. Dropping it ends the channel, and waits.
pub(crate) struct Guest {
    pub(crate) child: Child,
    input: Option<PipeWriter>,
    output: PipeReader,
    decoder: Decoder<Response>,
    pub(crate) calls: Calls,
}

/// What a command printed, both streams, and how it ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) output: Vec<u8>,
    pub(crate) exited: Exited,
}

impl Ran {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }

    /// What it printed and how it ended, to be compared with whole values.
    pub(crate) fn told(&self) -> (String, Ending) {
        (self.text(), self.exited.ending)
    }
}

impl Guest {
    fn start(mut command: Command) -> Self {
        let ((orders, input), (output, responses)) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
        if is_root() {
            command.uid(STRANGER).gid(STRANGER);
            // The harder case: a host that runs as the same user, whose pipes its commands may open.
            let stranger = (Some(Uid::from_raw(STRANGER)), Some(Gid::from_raw(STRANGER)));
            rustix::fs::fchown(&orders, stranger.0, stranger.1).unwrap();
            rustix::fs::fchown(&responses, stranger.0, stranger.1).unwrap();
        }
        let child =
            command.stdin(orders).stdout(responses).spawn().expect(
                "starting the guest; inside a sandbox it needs bubblewrap (apt-get install bubblewrap)",
            );
        // It holds the guest's ends of the pipes.
        drop(command);
        Self {
            input: Some(input),
            output,
            child,
            decoder: Decoder::default(),
            calls: Calls::default(),
        }
    }

    pub(crate) fn begin(&mut self, request: Request) -> RequestId {
        let frame = self.calls.begin(request).unwrap();
        self.tell(&frame);
        frame.id
    }

    pub(crate) fn tell(&mut self, frame: &Frame<Order>) {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes).unwrap();
        self.input.as_mut().unwrap().write_all(&bytes).unwrap();
    }

    pub(crate) fn kill(&mut self, id: RequestId) {
        let frame = self.calls.kill(id).unwrap();
        self.tell(&frame);
    }

    pub(crate) fn grant(&mut self, id: RequestId, bytes: u32) {
        let frame = self.calls.grant(id, bytes).unwrap();
        self.tell(&frame);
    }

    /// Waits for the next frame, whichever request it is for, without judging it; `None` at the channel's end.
    pub(crate) fn hear(&mut self) -> Option<Frame<Response>> {
        loop {
            if let Some(frame) = self.decoder.next().unwrap() {
                return Some(frame);
            }
            let count = self.output.read(self.decoder.room()).unwrap();
            if count == 0 {
                return None;
            }
            self.decoder.filled(count);
        }
    }

    /// Waits for the next frame that counts.
    pub(crate) fn next(&mut self) -> (Frame<Response>, Standing) {
        let frame = self.hear().expect("the guest is there");
        let standing = self.calls.admit(&frame).unwrap();
        (frame, standing)
    }

    /// Waits for the next frame and judges it as the host does.
    pub(crate) fn judge(&mut self) -> Result<Standing, Forged> {
        let frame = self.hear().expect("the guest is there");
        self.calls.admit(&frame)
    }

    /// Asks, and returns all parts and the result. A command's credit is renewed as it is used.
    pub(crate) fn ask(&mut self, request: Request) -> Vec<Response> {
        let id = self.begin(request);
        let mut answers = Vec::new();
        loop {
            let (frame, standing) = self.next();
            assert_eq!(frame.id, id, "one request at a time");
            if let Response::Output { bytes, .. } = &frame.body {
                self.grant(id, u32::try_from(bytes.len()).unwrap());
            }
            answers.push(frame.body);
            if standing == Standing::Over {
                return answers;
            }
        }
    }

    /// Asks for what has no parts.
    pub(crate) fn result(&mut self, request: Request) -> Response {
        let mut answers = self.ask(request);
        assert_eq!(answers.len(), 1, "{answers:?}");
        answers.remove(0)
    }

    pub(crate) fn run(&mut self, run: Run) -> Ran {
        let answers = self.ask(Request::Run(run));
        let mut output = Vec::new();
        for answer in answers {
            match answer {
                Response::Output { bytes, .. } => output.extend(bytes),
                Response::Exited(exited) => return Ran { output, exited },
                other => panic!("{other:?}"),
            }
        }
        unreachable!("the last answer is a result")
    }

    pub(crate) fn script(&mut self, text: &str) -> Ran {
        self.run(script(text))
    }

    pub(crate) fn view(&mut self, path: impl Into<PathBuf>) -> Result<Vec<u8>, Response> {
        self.view_range(path, Range::Whole)
    }

    pub(crate) fn view_range(&mut self, path: impl Into<PathBuf>, range: Range) -> Result<Vec<u8>, Response> {
        let mut bytes = Vec::new();
        let path = path.into();
        for answer in self.ask(Request::View { path, range }) {
            match answer {
                Response::FileBytes(more) => bytes.extend(more),
                Response::Done => return Ok(bytes),
                other => return Err(other),
            }
        }
        unreachable!("the last answer is a result")
    }

    /// Ends the channel and returns whether the guest ended well.
    pub(crate) fn hang_up(&mut self) -> bool {
        self.input = None;
        self.child.wait().unwrap().success()
    }

    /// The most memory that the guest ever held, in KiB.
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.hang_up();
    }
}

pub(crate) fn command(argv: &[&str]) -> Run {
    Run {
        argv: argv.iter().map(OsString::from).collect(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        directory: PathBuf::new(),
        time_ms: PLENTY,
        output: u64::MAX,
        credit: 1024 * 1024,
        streams: Streams::Together,
    }
}

pub(crate) fn script(text: &str) -> Run {
    command(&["bash", "-c", text])
}

pub(crate) fn code(text: &str, code: i32) -> (String, Ending) {
    (text.to_owned(), Ending::Code(code))
}
