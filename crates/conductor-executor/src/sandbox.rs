//! The port's [`Sandbox`] over any process that carries guest frames: `local`'s bubblewrap, `docker`'s held client.
//!
//! An executor builds its sandbox, launches it, and hands the pipes to [`GuestSandbox::meet`] with an [`Outside`], which
//! is everything that is done from outside: reading counters, killing, making sure that nothing is left. A lost guest
//! ends the sandbox at once, and nothing is ever started in it again (S-16).
//! This module does not know how a sandbox is built.

mod answer;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use conductor_domain::fault::{Fault, FaultKind};
use conductor_domain::testing::Ending;
use conductor_domain::time::Millis;
use conductor_guest::file::MAX_FILE;
use conductor_guest::order::{Range, Request, Run, Streams};
use conductor_guest::response::{PROTOCOL, Response};
use conductor_port::executor::{Command, CommandResult, Entry, FileRefusal, Found, Match, Pattern, Sandbox};

use crate::channel::{Answer, CREDIT, Call, Channel, Gathered, Lost};
use crate::launcher::Launched;
use crate::output::Kept;
use crate::walk;

pub(crate) use answer::refusal_of;

/// How long a guest may take to be there. A container on a loaded machine takes seconds.
const ARRIVAL: Duration = Duration::from_mins(1);

/// How long anything but a command may take.
const FILE_TIME: Duration = Duration::from_mins(1);

/// How long past a command's time its result may take; the guest needs some to kill a tree and tell of it.
const GRACE: Duration = Duration::from_secs(15);

/// How long a guest may take to leave by itself.
const FAREWELL: Duration = Duration::from_secs(2);

/// How often the limits are looked at while a command runs.
const LOOK: Duration = Duration::from_millis(100);

/// How often each limit was met so far, counted by the kernel where nothing inside can write (S-42).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Processes killed for want of memory.
    pub(crate) memory: u64,
    /// Processes not started because there were too many.
    pub(crate) processes: u64,
}

impl Counters {
    /// Names the limit that was met since.
    fn breached_since(self, before: Self) -> Option<&'static str> {
        if self.memory > before.memory {
            Some("memory")
        } else if self.processes > before.processes {
            Some("processes")
        } else {
            None
        }
    }
}

/// What is done to a sandbox from outside.
#[async_trait]
pub(crate) trait Outside: std::fmt::Debug + Send + Sync + 'static {
    /// Reads the counters; what cannot be counted stays 0.
    fn counters(&self) -> Counters;

    /// Says what the process that holds the sandbox said about itself, for the error message.
    fn said(&self) -> String;

    /// Hears that the guest is lost, and kills everything inside: nothing that it says counts any more (S-16).
    fn guest_lost(&self);

    /// Kills everything inside, without waiting for it. If repeated: nothing happens.
    fn kill(&self);

    /// Kills everything inside and waits until it is gone: processes, container, mounts, cgroups, directories.
    /// If repeated: nothing is left to do.
    async fn end(&self) -> Result<(), Fault>;
}

/// A loopback port inside that the guest carries to a socket, named as it is seen inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Forward {
    pub(crate) port: u16,
    pub(crate) socket: PathBuf,
}

/// An open sandbox with a guest in it.
#[derive(Debug)]
pub(crate) struct GuestSandbox<O: Outside> {
    channel: Channel,
    outside: Arc<O>,
    /// What every command finds in its environment.
    environment: Vec<(OsString, OsString)>,
}

impl<O: Outside> GuestSandbox<O> {
    /// Waits for the guest to be there as PID 1 and opens the ways out. If that fails, the sandbox is ended.
    pub(crate) async fn meet(
        launched: Launched,
        outside: O,
        environment: Vec<(OsString, OsString)>,
        forwards: &[Forward],
    ) -> Result<Self, Fault> {
        let sandbox = Self {
            channel: Channel::open(launched.orders, launched.responses),
            outside: Arc::new(outside),
            environment,
        };
        sandbox.end_with_its_guest(launched.process);
        match sandbox.greet(forwards).await {
            Ok(()) => Ok(sandbox),
            Err(fault) => {
                sandbox.channel.lose(Lost::Closed);
                sandbox.outside.end().await?;
                let said = sandbox.outside.said();
                let what = if said.is_empty() {
                    fault.what
                } else {
                    format!("{}: {said}", fault.what)
                };
                Err(Fault { what, ..fault })
            }
        }
    }

    /// Kills the sandbox as soon as its guest is lost (S-16), and loses the guest as soon as its process has ended.
    fn end_with_its_guest(&self, process: crate::launcher::Process) {
        let (channel, outside) = (self.channel.clone(), Arc::clone(&self.outside));
        tokio::spawn(async move {
            tokio::select! {
                lost = channel.until_lost() => {
                    tracing::debug!(%lost, "a guest is lost");
                    outside.guest_lost();
                }
                _ = process.ended() => {
                    channel.lose(Lost::Ended);
                }
            }
        });
    }

    async fn greet(&self, forwards: &[Forward]) -> Result<(), Fault> {
        let expected = Response::Ready {
            protocol: PROTOCOL,
            pid: 1,
        };
        // What never came up took no work with it.
        let not_up = |fault: Fault| match fault.kind {
            FaultKind::EnvironmentLost => Fault::transient(fault.what),
            FaultKind::Transient { .. } | FaultKind::Conflict | FaultKind::Refused | FaultKind::Permanent => {
                fault
            }
        };
        let ready = self.ask(Request::Ping, Gathered::Nothing, ARRIVAL).await;
        let ready = ready.map_err(not_up)?.result;
        if ready != expected {
            return Err(Fault::permanent(format!(
                "the guest is not the sandbox's first process, or speaks another protocol: {ready:?}"
            )));
        }
        for forward in forwards {
            let request = Request::Forward {
                port: forward.port,
                socket: forward.socket.clone(),
            };
            let listening = self.ask(request, Gathered::Nothing, FILE_TIME).await;
            let listening = listening.map_err(not_up)?.result;
            if listening != (Response::Listening { port: forward.port }) {
                return Err(Fault::transient(format!(
                    "opening a way out on port {}: {listening:?}",
                    forward.port
                )));
            }
        }
        Ok(())
    }

    fn begin(&self, request: Request, gathered: Gathered) -> Result<Call, Fault> {
        self.channel.begin(request, gathered).map_err(answer::unasked)
    }

    /// Asks; a guest that does not answer in time is lost.
    async fn ask(&self, request: Request, gathered: Gathered, time: Duration) -> Result<Answer, Fault> {
        let call = self.begin(request, gathered)?;
        self.answer(call, time).await
    }

    /// Asks for what an agent wants of files: what fits into no frame is the asker's own trouble, and refused.
    async fn ask_file(
        &self,
        request: Request,
        gathered: Gathered,
    ) -> Result<Result<Answer, FileRefusal>, Fault> {
        match self.channel.begin(request, gathered) {
            Ok(call) => self.answer(call, FILE_TIME).await.map(Ok),
            Err(error) => answer::not_asked(error).map(Err),
        }
    }

    async fn answer(&self, mut call: Call, time: Duration) -> Result<Answer, Fault> {
        match tokio::time::timeout(time, call.prompt_answer()).await {
            Ok(answer) => answer.map_err(|lost| self.ended(&lost)),
            Err(_) => Err(self.ended(&self.channel.lose(Lost::Silent))),
        }
    }

    fn ended(&self, lost: &Lost) -> Fault {
        let said = self.outside.said();
        let said = if said.is_empty() {
            said
        } else {
            format!(" ({said})")
        };
        Fault::environment_lost(format!(
            "the sandbox ended because its guest is lost: {lost}{said}"
        ))
    }

    fn run(&self, command: &Command) -> Run {
        Run {
            argv: command.argv.iter().map(OsString::from).collect(),
            environment: self.environment_of(command),
            directory: PathBuf::new(),
            time_ms: command.time.0,
            // All of it comes, so that the end is kept too; the credit bounds what is held.
            output: u64::MAX,
            credit: CREDIT,
            streams: Streams::Together,
        }
    }

    /// What a command finds: the sandbox's variables, and its own in the place of those that have the same name.
    fn environment_of(&self, command: &Command) -> Vec<(OsString, OsString)> {
        let is_own = |name: &OsString| command.environment.iter().any(|(own, _)| name == own.as_str());
        let shared = self.environment.iter().filter(|(name, _)| !is_own(name)).cloned();
        let own = command.environment.iter();
        shared
            .chain(own.map(|(name, value)| (name.into(), value.into())))
            .collect()
    }

    /// Waits for a command's result, kills it when a limit is met, and says which. What was counted `before` it began is not
    /// its own.
    async fn wait(
        &self,
        call: &mut Call,
        before: Counters,
        time: Duration,
    ) -> (Result<Answer, Lost>, Option<&'static str>) {
        let breach = || self.outside.counters().breached_since(before);
        let mut breached = None;
        let deadline = tokio::time::sleep(time.saturating_add(GRACE));
        tokio::pin!(deadline);
        let mut looks = tokio::time::interval(LOOK);
        looks.reset();
        let answer = loop {
            tokio::select! {
                biased;
                answer = call.answer() => break answer,
                () = &mut deadline => break Err(self.channel.lose(Lost::Silent)),
                _ = looks.tick(), if breached.is_none() => {
                    breached = breach();
                    if breached.is_some() {
                        call.kill();
                    }
                }
            }
        };
        (answer, breached.or_else(breach))
    }
}

#[async_trait]
impl<O: Outside> Sandbox for GuestSandbox<O> {
    async fn bash(&self, command: Command) -> Result<CommandResult, Fault> {
        let begun = now();
        let gathered = Gathered::Output {
            kept: Kept::new(command.output),
            listener: command.listener.clone(),
        };
        // Now: on a busy machine it may be over before anybody looks again.
        let before = self.outside.counters();
        let mut call = match self.channel.begin(Request::Run(self.run(&command)), gathered) {
            Ok(call) => call,
            Err(error) => return answer::not_sent(error, since(begun)),
        };
        let time = Duration::from_millis(command.time.0);
        let (answer, breached) = self.wait(&mut call, before, time).await;
        match (answer, breached) {
            (Ok(answer), breached) => answer::command(&command, answer, breached, since(begun)),
            // What broke the limit took the guest with it.
            (Err(_), Some(limit)) => Ok(CommandResult {
                ending: Ending::LimitExceeded {
                    limit: limit.to_owned(),
                },
                output: Vec::new(),
                truncated: true,
                time: since(begun),
            }),
            (Err(lost), None) => Err(self.ended(&lost)),
        }
    }

    async fn view(&self, path: &str) -> Result<Result<Vec<u8>, FileRefusal>, Fault> {
        let request = Request::View {
            path: path.into(),
            range: Range::Whole,
        };
        let answer = match self.ask_file(request, Gathered::Bytes(Vec::new())).await? {
            Ok(answer) => answer,
            Err(refusal) => return Ok(Err(refusal)),
        };
        match (answer.result, answer.gathered) {
            (Response::Done, Gathered::Bytes(bytes)) => Ok(Ok(bytes)),
            (result, _) => answer::refused(path, result).map(Err),
        }
    }

    async fn create_file(&self, path: &str, content: &[u8]) -> Result<Result<(), FileRefusal>, Fault> {
        if content.len() > MAX_FILE {
            return Ok(Err(answer::too_large(path)));
        }
        let request = Request::CreateFile {
            path: path.into(),
            content: content.to_vec(),
        };
        self.change(path, request).await
    }

    async fn str_replace(&self, path: &str, old: &str, new: &str) -> Result<Result<(), FileRefusal>, Fault> {
        if old.len().max(new.len()) > MAX_FILE {
            return Ok(Err(answer::too_large(path)));
        }
        let request = Request::StrReplace {
            path: path.into(),
            old: old.into(),
            new: new.into(),
        };
        self.change(path, request).await
    }

    async fn list(&self, path: &str) -> Result<Result<Found<Entry>, FileRefusal>, Fault> {
        let request = Request::List(walk::order(path));
        let answer = match self.ask_file(request, Gathered::Entries(Vec::new())).await? {
            Ok(answer) => answer,
            Err(refusal) => return Ok(Err(refusal)),
        };
        match (answer.result, answer.gathered) {
            (Response::Walked(walked), Gathered::Entries(entries)) => {
                Ok(Ok(walk::found(walked, entries, walk::entry)))
            }
            (result, _) => answer::refused(path, result).map(Err),
        }
    }

    async fn search(
        &self,
        path: &str,
        pattern: &Pattern,
    ) -> Result<Result<Found<Match>, FileRefusal>, Fault> {
        let request = Request::Search {
            walk: walk::order(path),
            pattern: walk::pattern(pattern),
        };
        let answer = match self.ask_file(request, Gathered::Matches(Vec::new())).await? {
            Ok(answer) => answer,
            Err(refusal) => return Ok(Err(refusal)),
        };
        match (answer.result, answer.gathered) {
            (Response::Walked(walked), Gathered::Matches(matches)) => {
                Ok(Ok(walk::found(walked, matches, walk::line)))
            }
            (result, _) => answer::refused(path, result).map(Err),
        }
    }

    async fn close(self: Box<Self>) -> Result<(), Fault> {
        // Asked first, because a container that ends by itself is gone sooner than one that is killed.
        if let Ok(mut call) = self.channel.begin(Request::Shutdown, Gathered::Nothing) {
            let left = async {
                let _ = call.answer().await;
                self.channel.until_lost().await
            };
            let _ = tokio::time::timeout(FAREWELL, left).await;
        }
        self.channel.lose(Lost::Closed);
        self.outside.end().await
    }
}

impl<O: Outside> GuestSandbox<O> {
    async fn change(&self, path: &str, request: Request) -> Result<Result<(), FileRefusal>, Fault> {
        match self.ask_file(request, Gathered::Nothing).await? {
            Ok(answer) if answer.result == Response::Done => Ok(Ok(())),
            Ok(answer) => answer::refused(path, answer.result).map(Err),
            Err(refusal) => Ok(Err(refusal)),
        }
    }
}

impl<O: Outside> Drop for GuestSandbox<O> {
    fn drop(&mut self) {
        self.channel.lose(Lost::Closed);
        self.outside.kill();
        // Nothing is to be left even when nobody waited; what cannot be removed now is found again by `reap`.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let outside = Arc::clone(&self.outside);
            runtime.spawn(async move {
                if let Err(fault) = outside.end().await {
                    tracing::warn!(%fault, "a sandbox that was dropped is not gone");
                }
            });
        }
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "measures how long a command took; decides nothing"
)]
fn now() -> Instant {
    Instant::now()
}

fn since(begun: Instant) -> Millis {
    Millis(u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
