//! Lists and searches on a thread of its own, so that a long walk delays no command.
//!
//! The thread is started before any command: a fork bomb cannot keep it from being there.
//! This module does not know how a walk is done.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use conductor_guest::file::{Beneath, Error, Findings};
use conductor_guest::frame::RequestId;
use conductor_guest::order::{Pattern, Walk};
use conductor_guest::response::{Refusal, Response};

use crate::channel::Outlet;

/// How many may wait.
const MAX_WAITING: usize = 32;

/// Where walks are handed in.
#[derive(Debug)]
pub(crate) struct Walks(SyncSender<Job>);

/// A walk to make.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) id: RequestId,
    pub(crate) walk: Walk,
    /// What to search for; nothing lists.
    pub(crate) pattern: Option<Pattern>,
}

impl Walks {
    /// Starts the thread.
    pub(crate) fn start(root: Arc<Beneath>, outlet: Outlet) -> std::io::Result<Self> {
        let (jobs, waiting) = sync_channel(MAX_WAITING);
        std::thread::Builder::new()
            .name("walks".into())
            .spawn(move || work(&root, &outlet, &waiting))?;
        Ok(Self(jobs))
    }

    /// Hands a walk in.
    pub(crate) fn begin(&self, job: Job) -> Result<(), Refusal> {
        self.0.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => Refusal::Busy,
            TrySendError::Disconnected(_) => Refusal::Invalid("walks are no longer made".into()),
        })
    }
}

fn work(root: &Beneath, outlet: &Outlet, waiting: &Receiver<Job>) {
    while let Ok(job) = waiting.recv() {
        let mut sending = Sending {
            id: job.id,
            outlet,
            late: now() + Duration::from_millis(u64::from(job.walk.time_ms)),
        };
        let walked = match &job.pattern {
            None => root.list(&job.walk, &mut sending),
            Some(pattern) => root.search(&job.walk, pattern, &mut sending),
        };
        let result = match walked {
            Ok(walked) => Response::Walked(walked),
            Err(Error::Refused(refusal)) => Response::Refused(refusal),
            Err(fault @ Error::Fault { .. }) => Response::Fault(fault.to_string()),
        };
        // A channel that is gone ends the whole guest; the main thread sees it.
        let _ = outlet.send(job.id, [result]);
    }
}

struct Sending<'a> {
    id: RequestId,
    outlet: &'a Outlet,
    late: Instant,
}

impl Findings for Sending<'_> {
    fn take(&mut self, batch: Response) {
        let _ = self.outlet.send(self.id, [batch]);
    }

    fn is_late(&self) -> bool {
        now() > self.late
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "holds a walk to its time; nothing else is decided by it"
)]
fn now() -> Instant {
    Instant::now()
}
