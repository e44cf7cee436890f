//! What surrounds a running git process: its group, its bounded output, its end.
//!
//! This module does not know what the process was asked.

use std::fmt::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf};
use tokio::process::{Child, ChildStdout};
use tokio::task::JoinHandle;

/// Longest standard error that is kept; the end says why a call failed.
pub(super) const STDERR_KEPT: usize = 16 * 1024;

/// The output of a running git process. A process that fails midway cuts the stream short; whoever reads a pack
/// notices, because a pack ends with its own checksum.
#[derive(Debug)]
pub(crate) struct Streaming {
    stdout: Option<ChildStdout>,
    feed: JoinHandle<()>,
    // Dropped in this order: the group is killed while its leader still keeps the number taken.
    _group: Group,
    _child: Child,
}

impl Streaming {
    pub(super) fn new(stdout: Option<ChildStdout>, feed: JoinHandle<()>, group: Group, child: Child) -> Self {
        Self {
            stdout,
            feed,
            _group: group,
            _child: child,
        }
    }
}

impl Drop for Streaming {
    fn drop(&mut self) {
        self.feed.abort();
    }
}

impl AsyncRead for Streaming {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        match self.stdout.as_mut() {
            Some(stdout) => Pin::new(stdout).poll_read(cx, buf),
            None => Poll::Ready(Ok(())),
        }
    }
}

/// Kills the whole process group when dropped, unless its leader was waited for.
#[derive(Debug)]
pub(super) struct Group(Option<Pid>);

impl Group {
    pub(super) fn of(leader: &Child) -> Self {
        Self(
            leader
                .id()
                .and_then(|id| i32::try_from(id).ok())
                .map(Pid::from_raw),
        )
    }

    /// Lets the group be; its leader was waited for.
    pub(super) fn disarm(&mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // The group may be gone already, which is what this is for.
            let _ = killpg(leader, Signal::SIGKILL);
        }
    }
}

/// Reads all of a process's output; `None` when it is more than `limit`.
pub(super) async fn read_bounded(stream: Option<ChildStdout>, limit: usize) -> Option<Vec<u8>> {
    let mut kept = Vec::new();
    if let Some(stream) = stream {
        let mut bounded = stream.take(limit as u64 + 1);
        // A broken pipe reads as the end; the exit status tells the rest.
        let _ = bounded.read_to_end(&mut kept).await;
    }
    (kept.len() <= limit).then_some(kept)
}

/// Reads everything and keeps the end.
pub(super) async fn read_end(stream: Option<impl AsyncRead + Unpin>) -> String {
    let mut kept: Vec<u8> = Vec::new();
    if let Some(mut stream) = stream {
        let mut buffer = vec![0; 8192];
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            kept.extend_from_slice(&buffer[..count]);
            if kept.len() > 2 * STDERR_KEPT {
                kept.drain(..kept.len() - STDERR_KEPT);
            }
        }
    }
    let start = kept.len().saturating_sub(STDERR_KEPT);
    String::from_utf8_lossy(&kept[start..]).into_owned()
}

/// Makes text of unknown origin safe to show in a log or on a terminal.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.trim().chars() {
        if c == '\n' || c == '\t' || !c.is_control() {
            shown.push(c);
        } else {
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
        }
    }
    shown
}
