//! Starts the processes that hold sandboxes, all from one thread that lives as long as this process (S-41).
//!
//! `--die-with-parent` means the thread that forked, not the process: started from a worker thread, a sandbox would be
//! killed when that thread ends. Whatever happens to the handle, the process is killed and buried.
//! This module does not know what the processes do.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStderr, Command};
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot, watch};

/// How much of what a launcher says about itself is kept.
const SAID: usize = 4 * 1024;

/// How long its last words may take to be read.
const LAST_WORDS: Duration = Duration::from_secs(1);

type Job = Box<dyn FnOnce() + Send>;

/// A process that holds a sandbox.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    pid: u32,
    kill: Arc<Notify>,
    ended: watch::Receiver<Option<Ended>>,
    said: Arc<Mutex<Vec<u8>>>,
}

/// How such a process ended; its own code says nothing about any command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// With this status.
    With(ExitStatus),
    /// Nobody could be asked.
    Unseen,
}

/// A process and the two pipes to what is inside.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) process: Process,
    pub(crate) orders: pipe::Sender,
    pub(crate) responses: pipe::Receiver,
}

/// Starts a process; its three standard streams become pipes.
pub(crate) async fn launch(mut command: Command) -> io::Result<Launched> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = spawn(command).await?;
    let missing = || io::Error::other("a pipe to a new process is missing");
    let (orders, responses) = (
        child.stdin.take().ok_or_else(missing)?.into_owned_fd()?,
        child.stdout.take().ok_or_else(missing)?.into_owned_fd()?,
    );
    Ok(Launched {
        orders: pipe::Sender::from_owned_fd(orders)?,
        responses: pipe::Receiver::from_owned_fd(responses)?,
        process: Process::watch(child)?,
    })
}

/// Starts a process from the one thread.
async fn spawn(mut command: Command) -> io::Result<Child> {
    let (tell, told) = oneshot::channel();
    let runtime = Handle::current();
    let job: Job = Box::new(move || {
        let _context = runtime.enter();
        // Whoever asked may have left; then the child is dropped, and with that killed.
        let _ = tell.send(command.spawn());
    });
    thread()?
        .send(job)
        .map_err(|_| io::Error::other("the thread that starts sandboxes is gone"))?;
    told.await
        .unwrap_or_else(|_| Err(io::Error::other("the thread that starts sandboxes is gone")))
}

fn thread() -> io::Result<&'static mpsc::Sender<Job>> {
    static JOBS: OnceLock<mpsc::Sender<Job>> = OnceLock::new();
    static STARTING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    if JOBS.get().is_none() {
        let (jobs, asked) = mpsc::channel::<Job>();
        std::thread::Builder::new()
            .name("launcher".into())
            .spawn(move || asked.into_iter().for_each(|job| job()))?;
        let _ = JOBS.set(jobs);
    }
    JOBS.get()
        .ok_or_else(|| io::Error::other("the thread that starts sandboxes is gone"))
}

impl Process {
    fn watch(mut child: Child) -> io::Result<Self> {
        let pid = child
            .id()
            .ok_or_else(|| io::Error::other("a new process has no number"))?;
        let kill = Arc::new(Notify::new());
        let said = Arc::new(Mutex::new(Vec::new()));
        let (tell, ended) = watch::channel(None);
        let stderr = child.stderr.take();
        let (told_to_kill, kept) = (Arc::clone(&kill), Arc::clone(&said));
        let listening = tokio::spawn(async move {
            if let Some(stderr) = stderr {
                listen(stderr, &kept).await;
            }
        });
        tokio::spawn(async move {
            let status = tokio::select! {
                status = child.wait() => status,
                () = told_to_kill.notified() => {
                    // It can only have ended by itself meanwhile.
                    let _ = child.start_kill();
                    child.wait().await
                }
            };
            // Its last words are still in the pipe; a descendant may hold that open, and is not waited for.
            let _ = tokio::time::timeout(LAST_WORDS, listening).await;
            tell.send_replace(Some(status.map_or(Ended::Unseen, Ended::With)));
        });
        Ok(Self {
            pid,
            kill,
            ended,
            said,
        })
    }

    /// Its number on the host.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Sends SIGKILL, unless it has ended.
    pub(crate) fn kill(&self) {
        self.kill.notify_one();
    }

    /// Waits until it has ended and is buried.
    pub(crate) async fn ended(&self) -> Ended {
        let mut ended = self.ended.clone();
        let ended = ended.wait_for(Option::is_some).await;
        ended.ok().and_then(|ended| *ended).unwrap_or(Ended::Unseen)
    }

    /// The end of what it said about itself.
    pub(crate) fn said(&self) -> String {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&said).trim().to_owned()
    }
}

/// Keeps the end of what is said, and reads on whatever its length.
async fn listen(mut stderr: ChildStderr, kept: &Mutex<Vec<u8>>) {
    let mut chunk = [0; SAID];
    while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&chunk[..count]);
        let surplus = kept.len().saturating_sub(SAID);
        kept.drain(..surplus);
    }
}
