//! Serves the host: one thread waits for orders, for output and for children that ended, whichever comes first.
//!
//! Every request gets exactly one result. A command's comes after its last output. An order that breaks the protocol
//! ends the guest, and with it the sandbox: there is nobody to be polite to.
//! This module does not know how a command is started, ended or read.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use conductor_guest::file::{Beneath, Error};
use conductor_guest::frame::{Decoder, Frame, RequestId};
use conductor_guest::order::{Order, Pattern, Request, Run, Walk};
use conductor_guest::response::{CHUNK, Ending, Exited, PROTOCOL, Refusal, Response, Usage};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use crate::channel::{Channel, Outlet};
use crate::children::{self, Dead, Deaths};
use crate::command::{self, Limits, NotStarted, Started};
use crate::output::{self, Buffer, Output};
use crate::walks::{Job, Walks};
use crate::{Protection, Settings, forward, tree};

/// The most commands at once.
const MAX_COMMANDS: usize = 64;

/// How soon a dying tree is looked at again.
const SOON: Duration = Duration::from_millis(1);

/// How long a killed tree may take before its command is reported all the same.
const LAST_MOMENTS: Duration = Duration::from_secs(5);

/// The guest at work.
#[derive(Debug)]
pub(crate) struct Guest {
    input: OwnedFd,
    outlet: Outlet,
    orders: Decoder<Order>,
    deaths: Deaths,
    root: Arc<Beneath>,
    limits: Limits,
    walks: Walks,
    commands: Vec<Command>,
    buffer: Buffer,
}

/// A command under way.
#[derive(Debug)]
struct Command {
    id: RequestId,
    pid: i32,
    begun: Instant,
    deadline: Option<Instant>,
    output: Output,
    stage: Stage,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    Running,
    /// Its tree is being killed; it will be reported with this ending.
    Dying {
        ending: Ending,
        since: Instant,
    },
    /// It is buried; what it printed is still being sent.
    Ended {
        ending: Ending,
        usage: Usage,
    },
}

/// What a wait ended with, besides output. The end of the channel is an order, too.
struct Ready {
    orders: bool,
    deaths: bool,
}

/// Whether to go on.
#[derive(PartialEq, Eq)]
enum Next {
    Serve,
    Stop,
}

impl Guest {
    pub(crate) fn new(settings: &Settings, channel: Channel) -> Result<Self, String> {
        if !settings.has(Protection::HiddenChannel) {
            channel
                .expose()
                .map_err(|errno| format!("exposing the channel: {errno}"))?;
        }
        let root = Arc::new(Beneath::open(&settings.root).map_err(|error| error.to_string())?);
        let deaths = Deaths::listen().map_err(|error| format!("listening for children: {error}"))?;
        let walks = Walks::start(Arc::clone(&root), channel.outlet.clone())
            .map_err(|error| format!("starting a thread: {error}"))?;
        Ok(Self {
            input: channel.input,
            outlet: channel.outlet,
            orders: Decoder::default(),
            deaths,
            root,
            limits: Limits::new(settings),
            walks,
            commands: Vec::new(),
            buffer: output::buffer(),
        })
    }

    /// Serves until the channel ends or the host says so.
    pub(crate) fn serve(mut self) -> Result<(), String> {
        loop {
            let ready = self.wait().map_err(|errno| format!("waiting: {errno}"))?;
            if ready.orders && self.read_orders()? == Next::Stop {
                return Ok(());
            }
            if ready.deaths {
                self.bury();
            }
            self.hold_to_time();
            if self.carry_output().is_err() {
                // Nobody listens any more.
                return Ok(());
            }
        }
    }

    /// Waits until something can be done.
    fn wait(&mut self) -> rustix::io::Result<Ready> {
        let timeout = self.until_next_deadline();
        let mut awaited = vec![
            PollFd::new(&self.input, PollFlags::IN),
            // An error is always told: the host stopped listening.
            PollFd::new(&self.outlet, PollFlags::empty()),
            PollFd::new(&self.deaths, PollFlags::IN),
        ];
        for command in &self.commands {
            let pipes = command.output.awaited();
            awaited.extend(pipes.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        }
        match rustix::event::poll(&mut awaited, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        let is_ready = |at: usize| !awaited[at].revents().is_empty();
        if is_ready(1) {
            return Err(Errno::PIPE);
        }
        Ok(Ready {
            orders: is_ready(0),
            deaths: is_ready(2),
        })
    }

    fn until_next_deadline(&self) -> Option<Timespec> {
        let now = now();
        let until = |command: &Command| match command.stage {
            Stage::Running => Some(command.deadline?.saturating_duration_since(now)),
            Stage::Dying { .. } => Some(SOON),
            Stage::Ended { .. } => None,
        };
        let nearest = self.commands.iter().filter_map(until).min()?;
        Timespec::try_from(nearest).ok()
    }

    fn read_orders(&mut self) -> Result<Next, String> {
        let count = match rustix::io::read(&self.input, self.orders.room()) {
            Ok(0) => return Ok(Next::Stop),
            Ok(count) => count,
            Err(Errno::INTR | Errno::AGAIN) => 0,
            Err(errno) => return Err(format!("reading orders: {errno}")),
        };
        self.orders.filled(count);
        while let Some(Frame { id, body }) = self.orders.next().map_err(|error| error.to_string())? {
            let next = match body {
                Order::Ask(request) => self.answer(id, request)?,
                Order::Kill => self.kill(id),
                Order::Credit { bytes } => self.grant(id, bytes),
            };
            if next == Next::Stop {
                return Ok(Next::Stop);
            }
        }
        Ok(Next::Serve)
    }

    fn answer(&mut self, id: RequestId, request: Request) -> Result<Next, String> {
        let mut next = Next::Serve;
        let mut replaced = None;
        let result = match request {
            Request::Run(run) => self.run(id, &run)?,
            Request::View { path, range } => match self.root.view(&path, range) {
                Ok(bytes) => {
                    self.send_file(id, &bytes);
                    None
                }
                Err(error) => Some(failed(error)),
            },
            Request::CreateFile { path, content } => Some(done(self.root.create(&path, &content))),
            Request::StrReplace { path, old, new } => {
                let result = self.root.replace(&path, &old, &new);
                Some(done(result.map(|old| replaced = Some(old))))
            }
            Request::List(walk) => self.walk(id, walk, None),
            Request::Search { walk, pattern } => self.walk(id, walk, Some(pattern)),
            Request::Forward { port, socket } => Some(match forward::listen(port, socket) {
                Ok(port) => Response::Listening { port },
                Err(error) => Response::Fault(format!("listening on loopback port {port}: {error}")),
            }),
            Request::Ping => Some(Response::Ready {
                protocol: PROTOCOL,
                pid: std::process::id(),
            }),
            Request::Shutdown => {
                next = Next::Stop;
                Some(Response::Done)
            }
        };
        if let Some(result) = result {
            // A channel that is gone is seen by the next wait.
            let _ = self.outlet.send(id, [result]);
        }
        drop(replaced);
        Ok(next)
    }

    fn run(&mut self, id: RequestId, run: &Run) -> Result<Option<Response>, String> {
        if self.commands.iter().any(|command| command.id == id) {
            return Err(format!("request {} was begun twice", id.0));
        }
        if self.commands.len() >= MAX_COMMANDS {
            return Ok(Some(Response::Refused(Refusal::Busy)));
        }
        let begun = now();
        Ok(match command::start(run, &self.root, self.limits) {
            Ok(Started { pid, pipes }) => {
                self.commands.push(Command {
                    id,
                    pid,
                    begun,
                    deadline: begun.checked_add(Duration::from_millis(run.time_ms)),
                    output: Output::new(id, pipes, run.credit, run.output),
                    stage: Stage::Running,
                });
                None
            }
            Err(NotStarted::Ended(ending)) => Some(Response::Exited(Exited {
                ending,
                usage: Usage::default(),
                dropped: 0,
            })),
            Err(NotStarted::Refused(refusal)) => Some(Response::Refused(refusal)),
            Err(NotStarted::Fault(text)) => Some(Response::Fault(text)),
        })
    }

    /// Sends a file and, along with its last bytes, the result: a small file takes the host one read.
    fn send_file(&self, id: RequestId, bytes: &[u8]) {
        let mut chunks = bytes.chunks(CHUNK).peekable();
        while let Some(chunk) = chunks.next() {
            let part = Response::FileBytes(chunk.to_vec());
            // A channel that is gone is seen by the next wait.
            let _ = match chunks.peek() {
                Some(_) => self.outlet.send(id, [part]),
                None => self.outlet.send(id, [part, Response::Done]),
            };
        }
        if bytes.is_empty() {
            let _ = self.outlet.send(id, [Response::Done]);
        }
    }

    fn walk(&self, id: RequestId, walk: Walk, pattern: Option<Pattern>) -> Option<Response> {
        let job = Job { id, walk, pattern };
        self.walks.begin(job).err().map(Response::Refused)
    }

    /// Kills a command; one that is over meanwhile is left alone.
    fn kill(&mut self, id: RequestId) -> Next {
        let now = now();
        for command in self.commands.iter_mut().filter(|command| command.id == id) {
            command.output.mute();
            command.doom(Ending::Killed, now);
        }
        Next::Serve
    }

    fn grant(&mut self, id: RequestId, bytes: u32) -> Next {
        for command in self.commands.iter_mut().filter(|command| command.id == id) {
            command.output.grant(bytes);
        }
        Next::Serve
    }

    fn bury(&mut self) {
        self.deaths.clear();
        while let Some(dead) = children::bury() {
            for command in self.commands.iter_mut().filter(|command| command.pid == dead.pid) {
                command.buried(dead);
            }
        }
    }

    fn hold_to_time(&mut self) {
        let now = now();
        for command in &mut self.commands {
            if command.deadline.is_some_and(|deadline| deadline <= now) {
                command.doom(Ending::TimedOut, now);
            }
            if let Stage::Dying { since, .. } = command.stage
                && tree::end(command.pid) == tree::Left::Dying
                && now.duration_since(since) > LAST_MOMENTS
            {
                tree::kill(command.pid);
            }
        }
    }

    /// Sends output and, for each command that has no more of it, its result.
    fn carry_output(&mut self) -> rustix::io::Result<()> {
        for command in &mut self.commands {
            command.output.pump(&mut self.buffer, &self.outlet)?;
            if let Stage::Ended { ending, usage } = command.stage
                && command.output.is_closed()
            {
                let exited = Exited {
                    ending,
                    usage,
                    dropped: command.output.dropped(),
                };
                self.outlet.send(command.id, [Response::Exited(exited)])?;
            }
        }
        self.commands
            .retain(|command| !(matches!(command.stage, Stage::Ended { .. }) && command.output.is_closed()));
        Ok(())
    }
}

impl Command {
    /// Decides that it must end, unless that was decided before.
    fn doom(&mut self, ending: Ending, now: Instant) {
        if matches!(self.stage, Stage::Running) {
            self.stage = Stage::Dying { ending, since: now };
        }
    }

    fn buried(&mut self, dead: Dead) {
        let ending = match self.stage {
            Stage::Running => dead.ending,
            Stage::Dying { ending, .. } | Stage::Ended { ending, .. } => ending,
        };
        let elapsed = now().duration_since(self.begun).as_micros();
        let usage = Usage {
            elapsed_us: u64::try_from(elapsed).unwrap_or(u64::MAX),
            ..dead.usage
        };
        self.stage = Stage::Ended { ending, usage };
        // The number may soon be another's.
        self.pid = 0;
        self.output.close();
    }
}

fn done(result: Result<(), Error>) -> Response {
    result.map_or_else(failed, |()| Response::Done)
}

fn failed(error: Error) -> Response {
    match error {
        Error::Refused(refusal) => Response::Refused(refusal),
        fault @ Error::Fault { .. } => Response::Fault(fault.to_string()),
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "holds commands to their time and measures it"
)]
fn now() -> Instant {
    Instant::now()
}
