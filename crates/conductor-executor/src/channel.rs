//! The host's end of a guest's channel: sends requests, and believes no frame that it did not ask for (S-15).
//!
//! Lengths are capped, ids are issued here, each request has one result, and output comes only as far as it was granted.
//! Whoever breaks that is lost, and so is everything under way (S-16). Sending never waits and is never cut in half by
//! a caller that leaves; one task reads, and so does an asker for a moment; one sends what the pipe did not take at once.
//! This module does not know what carries the frames, nor what a sandbox is.

mod gathered;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use conductor_guest::calls::{Calls, Forged, Standing, Unavailable};
use conductor_guest::frame::{Decoder, Frame, RequestId, TooLong, Violation};
use conductor_guest::order::{Order, Request};
use conductor_guest::response::Response;
use tokio::net::unix::pipe;
use tokio::sync::{Notify, oneshot, watch};

pub(crate) use gathered::Gathered;

/// How many bytes a command may print ahead of what was read.
pub(crate) const CREDIT: u32 = 1024 * 1024;

/// How many bytes are granted at once: fewer orders for a command that prints much.
const GRANT: u32 = CREDIT / 4;

/// How often the pipe is read before others have their turn.
const READS: usize = 8;

/// How long an asker looks for an answer before it goes to sleep.
const MOMENT: Duration = Duration::from_micros(100);

/// How many askers go to sleep at once after one has looked in vain.
const SLEEPERS: u32 = 15;

/// Why nothing of a guest counts any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Lost {
    #[error("its channel ended")]
    Ended,
    #[error("its channel ended in the middle of a frame")]
    Torn,
    #[error("it broke the protocol: {0}")]
    Violation(#[from] Violation),
    #[error("it said what it had no right to say: {0}")]
    Forged(#[from] Forged),
    #[error("its channel failed: {0}")]
    Failed(String),
    #[error("it did not answer in time")]
    Silent,
    #[error("it was ended")]
    Closed,
}

/// Why a request was not sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotSent {
    #[error(transparent)]
    Lost(#[from] Lost),
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error(transparent)]
    TooLong(#[from] TooLong),
}

/// A channel to one guest.
#[derive(Debug, Clone)]
pub(crate) struct Channel(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    sender: pipe::Sender,
    /// Gone with the guest, so that nothing more is read of it, and it notices.
    inlet: Mutex<Option<Inlet>>,
    state: Mutex<State>,
    /// How many more askers go to sleep at once.
    sleepers: AtomicU32,
    has_unsent: Notify,
    lost: watch::Sender<Option<Lost>>,
}

#[derive(Debug)]
struct Inlet {
    responses: Arc<pipe::Receiver>,
    decoder: Decoder<Response>,
}

/// How a look at the pipe left it.
#[derive(Debug, PartialEq, Eq)]
enum Pipe {
    Empty,
    /// Or not looked into to its bottom.
    Full,
}

#[derive(Debug, Default)]
struct State {
    calls: Calls,
    pending: BTreeMap<RequestId, Pending>,
    /// What the pipe did not take yet; of the first, this much has gone.
    unsent: VecDeque<Vec<u8>>,
    gone: usize,
}

#[derive(Debug)]
struct Pending {
    gathered: Gathered,
    /// Bytes of output that came since the last grant.
    used: u32,
    done: oneshot::Sender<Result<Answer, Lost>>,
}

/// What came of a request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) result: Response,
    pub(crate) gathered: Gathered,
}

/// A request under way. If dropped: its command, if it is one, is killed with its whole tree.
#[derive(Debug)]
pub(crate) struct Call {
    channel: Channel,
    id: RequestId,
    done: oneshot::Receiver<Result<Answer, Lost>>,
}

impl Channel {
    /// Begins to read and to send; must be called within a runtime.
    pub(crate) fn open(orders: pipe::Sender, responses: pipe::Receiver) -> Self {
        Self::begin_with(orders, responses, Calls::default(), Decoder::default())
    }

    fn begin_with(
        orders: pipe::Sender,
        responses: pipe::Receiver,
        calls: Calls,
        decoder: Decoder<Response>,
    ) -> Self {
        let state = State {
            calls,
            ..State::default()
        };
        let responses = Arc::new(responses);
        let inlet = Inlet {
            responses: Arc::clone(&responses),
            decoder,
        };
        let shared = Arc::new(Shared {
            sender: orders,
            inlet: Mutex::new(Some(inlet)),
            state: Mutex::new(state),
            sleepers: AtomicU32::new(0),
            has_unsent: Notify::new(),
            lost: watch::Sender::new(None),
        });
        tokio::spawn(read(Arc::clone(&shared), responses));
        tokio::spawn(send_unsent(Arc::clone(&shared)));
        Self(shared)
    }

    /// Sends a request; its parts are gathered as they come.
    pub(crate) fn begin(&self, request: Request, gathered: Gathered) -> Result<Call, NotSent> {
        let (tell, done) = oneshot::channel();
        let mut state = self.0.state();
        if let Some(lost) = self.lost() {
            return Err(lost.into());
        }
        let frame = state.calls.begin(request)?;
        let id = frame.id;
        let mut bytes = Vec::new();
        if let Err(error) = frame.encode(&mut bytes) {
            state.calls.withdraw(id);
            return Err(error.into());
        }
        let pending = Pending {
            gathered,
            used: 0,
            done: tell,
        };
        state.pending.insert(id, pending);
        let sent = self.0.send(&mut state, bytes);
        drop(state);
        sent.map_err(|error| self.lose(Lost::Failed(error.to_string())))?;
        let channel = self.clone();
        Ok(Call { channel, id, done })
    }

    /// Declares the guest lost; the first reason counts, and is returned.
    pub(crate) fn lose(&self, lost: Lost) -> Lost {
        self.0.lose(lost)
    }

    /// Why the guest is lost, if it is.
    pub(crate) fn lost(&self) -> Option<Lost> {
        self.0.lost.borrow().clone()
    }

    /// Waits until the guest is lost.
    pub(crate) async fn until_lost(&self) -> Lost {
        let mut lost = self.0.lost.subscribe();
        let lost = lost.wait_for(Option::is_some).await;
        lost.ok().and_then(|lost| lost.clone()).unwrap_or(Lost::Closed)
    }

    fn kill(&self, id: RequestId) {
        let mut state = self.0.state();
        let frame = state.calls.kill(id);
        let sent = frame.map_or(Ok(()), |frame| self.0.order(&mut state, &frame));
        drop(state);
        if let Err(error) = sent {
            self.lose(Lost::Failed(error.to_string()));
        }
    }
}

impl Call {
    /// Waits for the result. May be waited for again when this future was dropped.
    pub(crate) async fn answer(&mut self) -> Result<Answer, Lost> {
        match (&mut self.done).await {
            Ok(answer) => answer,
            Err(_) => Err(self.channel.lost().unwrap_or(Lost::Closed)),
        }
    }

    /// Waits for the result of a request that takes the guest less time than it takes to be put to sleep and woken: looks
    /// for it a moment, then waits. Whoever looked in vain lets the next ones sleep, so that looking costs little where
    /// it does not help.
    pub(crate) async fn prompt_answer(&mut self) -> Result<Answer, Lost> {
        let shared = &self.channel.0;
        if shared.may_look() {
            let begun = now();
            loop {
                shared.look();
                // Also when the guest was lost just now: what it answered before that counts.
                if let Ok(answer) = self.done.try_recv() {
                    return answer;
                }
                if begun.elapsed() >= MOMENT {
                    shared.sleepers.store(SLEEPERS, Relaxed);
                    break;
                }
            }
        }
        self.answer().await
    }

    /// Has the command killed with its whole tree; it still gets its one result.
    pub(crate) fn kill(&self) {
        self.channel.kill(self.id);
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        // A command that is over is not there to be killed.
        self.channel.kill(self.id);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn order(&self, state: &mut State, frame: &Frame<Order>) -> io::Result<()> {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes).map_err(io::Error::other)?;
        self.send(state, bytes)
    }

    /// Sends what the pipe takes at once, and leaves the rest to the task.
    fn send(&self, state: &mut State, bytes: Vec<u8>) -> io::Result<()> {
        let mut gone = 0;
        while state.unsent.is_empty() && gone < bytes.len() {
            match self.sender.try_write(&bytes[gone..]) {
                Ok(count) => gone += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        if gone < bytes.len() {
            if state.unsent.is_empty() {
                state.gone = gone;
            }
            state.unsent.push_back(bytes);
            self.has_unsent.notify_one();
        }
        Ok(())
    }

    /// Sends of what is unsent as much as the pipe takes; false when nothing is left.
    fn send_more(&self) -> io::Result<bool> {
        let mut state = self.state();
        let State { unsent, gone, .. } = &mut *state;
        while let Some(bytes) = unsent.front() {
            match self.sender.try_write(&bytes[*gone..]) {
                Ok(count) => *gone += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
            }
            if *gone == bytes.len() {
                unsent.pop_front();
                *gone = 0;
            }
        }
        Ok(false)
    }

    fn inlet(&self) -> MutexGuard<'_, Option<Inlet>> {
        self.inlet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells whether an asker may look for its answer itself: not while its question is still on the way, and not soon
    /// after somebody looked in vain.
    fn may_look(&self) -> bool {
        let one_less = |sleepers: u32| sleepers.checked_sub(1);
        self.state().unsent.is_empty() && self.sleepers.fetch_update(Relaxed, Relaxed, one_less).is_err()
    }

    /// Takes in what has come, in the place of the task that reads; that one is told by the kernel all the same.
    fn look(&self) {
        let Ok(mut inlet) = self.inlet.try_lock() else {
            return;
        };
        let looked = self.receive(&mut inlet, |pipe, room| Ok(rustix::io::read(pipe, room)?));
        drop(inlet);
        if let Err(lost) = looked {
            self.lose(lost);
        }
    }

    /// Takes in what has come, without waiting for more, and for a bounded time: a guest may fill the pipe faster than it
    /// is emptied. After a violation nothing more is read.
    fn receive(
        &self,
        inlet: &mut Option<Inlet>,
        read: impl Fn(&pipe::Receiver, &mut [u8]) -> io::Result<usize>,
    ) -> Result<Pipe, Lost> {
        let Some(Inlet { responses, decoder }) = inlet else {
            return Err(Lost::Closed);
        };
        let mut receive = || {
            for _ in 0..READS {
                match read(responses, decoder.room()) {
                    Ok(0) if decoder.is_between_frames() => return Err(Lost::Ended),
                    Ok(0) => return Err(Lost::Torn),
                    Ok(count) => decoder.filled(count),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Pipe::Empty),
                    Err(error) => return Err(Lost::Failed(error.to_string())),
                }
                self.take_in(decoder)?;
            }
            Ok(Pipe::Full)
        };
        let received = receive();
        if received.is_err() {
            *inlet = None;
        }
        received
    }

    /// Takes in every whole frame.
    fn take_in(&self, decoder: &mut Decoder<Response>) -> Result<(), Lost> {
        while let Some(frame) = decoder.next()? {
            self.take(frame)?;
        }
        Ok(())
    }

    fn take(&self, frame: Frame<Response>) -> Result<(), Lost> {
        let mut state = self.state();
        let standing = state.calls.admit(&frame)?;
        let id = frame.id;
        match standing {
            Standing::Over => {
                // A request whose caller left is over all the same.
                if let Some(pending) = state.pending.remove(&id) {
                    let _ = pending.done.send(Ok(Answer {
                        result: frame.body,
                        gathered: pending.gathered,
                    }));
                }
            }
            Standing::Open => {
                let Some(pending) = state.pending.get_mut(&id) else {
                    return Ok(());
                };
                pending.used += pending.gathered.take(frame.body);
                if pending.used >= GRANT {
                    let used = std::mem::take(&mut pending.used);
                    let grant = state.calls.grant(id, used);
                    grant
                        .map_or(Ok(()), |frame| self.order(&mut state, &frame))
                        .map_err(|error| Lost::Failed(error.to_string()))?;
                }
            }
        }
        Ok(())
    }

    fn lose(&self, lost: Lost) -> Lost {
        let mut state = self.state();
        self.lost.send_if_modified(|known| {
            let is_first = known.is_none();
            known.get_or_insert(lost);
            is_first
        });
        let lost = self.lost.borrow().clone().unwrap_or(Lost::Closed);
        state.unsent.clear();
        for (_, pending) in std::mem::take(&mut state.pending) {
            // The caller may have left.
            let _ = pending.done.send(Err(lost.clone()));
        }
        drop(state);
        *self.inlet() = None;
        lost
    }
}

async fn read(shared: Arc<Shared>, responses: Arc<pipe::Receiver>) {
    let mut lost = shared.lost.subscribe();
    let reading = async {
        loop {
            if let Err(error) = responses.readable().await {
                return Lost::Failed(error.to_string());
            }
            let received = shared.receive(&mut shared.inlet(), pipe::Receiver::try_read);
            match received {
                Ok(Pipe::Empty) => {}
                // Nothing above waits while there is more to read, and others want their turn.
                Ok(Pipe::Full) => tokio::task::yield_now().await,
                Err(lost) => return lost,
            }
        }
    };
    let why = tokio::select! {
        why = reading => why,
        _ = lost.wait_for(Option::is_some) => return,
    };
    shared.lose(why);
}

async fn send_unsent(shared: Arc<Shared>) {
    let mut lost = shared.lost.subscribe();
    let sending = async {
        loop {
            shared.has_unsent.notified().await;
            loop {
                shared.sender.writable().await?;
                if !shared.send_more()? {
                    break;
                }
            }
        }
    };
    let failed: io::Result<()> = tokio::select! {
        failed = sending => failed,
        _ = lost.wait_for(Option::is_some) => return,
    };
    if let Err(error) = failed {
        shared.lose(Lost::Failed(error.to_string()));
    }
}

#[allow(clippy::disallowed_methods, reason = "measures a moment; decides nothing")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests;
