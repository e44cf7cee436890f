//! The signals that tell a command to end: Ctrl-C, a polite kill, a terminal that went away.
//!
//! They are caught from [`listen`] on, so that whoever has something to put back can. This module does not know what is
//! ended.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Failure;

/// Hears the signals that tell to end.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// None under `nohup`: whoever started this wants it to outlive the terminal.
    hangup: Option<Signal>,
}

/// Catches them from now on; without it each of them ends the process at once.
pub(crate) fn listen() -> Result<Signals, Failure> {
    let caught = |kind| signal(kind).map_err(|error| Failure::because("listening for signals", &error));
    Ok(Signals {
        interrupt: caught(SignalKind::interrupt())?,
        terminate: caught(SignalKind::terminate())?,
        hangup: if is_hangup_ignored() {
            None
        } else {
            Some(caught(SignalKind::hangup())?)
        },
    })
}

impl Signals {
    /// Waits for the next of them.
    pub(crate) async fn told(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = hangup => {}
        }
    }
}

/// Asks the kernel which signals this process was started to ignore; a hang-up is the first of them.
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & 1 != 0)
}
