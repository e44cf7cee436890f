//! Performs one effect through the ports it needs, and says what came of it.
//!
//! One file per family of effects. An effect leaves its performer no choice (ARCHITECTURE invariant 4), a performer
//! never retries (invariant 5), and each says under "If repeated" why doing it again after a crash is harmless.
//! Nothing else in the engine changes the world. This module does not know why an effect was asked for or what follows.

pub(crate) mod issue;
mod workspace;
mod own_ports;
mod aside;
mod sandbox;
mod context;
mod skills;
mod invoke;
mod papers;
mod commit_work;
mod tests;
mod rebase;
mod inspect;
mod push;
pub(crate) mod pull_request;
pub(crate) mod review;
mod check;
mod merge;
mod comment;
mod board;
mod clean_up;
mod abandon;
mod tell;

pub(crate) use abandon::abandon;
pub(crate) use tell::tell;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use conductor_domain::Run;
use conductor_domain::artifact::{Artifact, ArtifactKind};
use conductor_domain::effect::{Effect, EffectKind};
use conductor_domain::fault::Fault;
use conductor_domain::id::{CommitId, EffectId, RunId};
use conductor_domain::input::Report;
use conductor_domain::invocation::{Invocation, Outcome, Remains};
use conductor_domain::message::{self, Message};
use conductor_domain::spec::{ExecutorName, RepoRef, RunSpec};
use conductor_domain::time::{Millis, Timestamp};
use conductor_port::executor::Executor;
use conductor_port::lease::{ResourceKind, ResourceLease, Taken};
use tokio_util::sync::CancellationToken;

use crate::crash::crash_point;
use crate::dispatch::{Job, duration};
use crate::engine::Engine;
use crate::intake;
use crate::ports::Ports;

/// How long a performer that was told to stop may take to come to an end by itself (RUN-11: 5 s in all).
const STOPPING: Millis = Millis(2500);

/// Why an effect came to nothing, and what is left of it.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) fault: Fault,
    pub(crate) remains: Option<Box<Remains>>,
}

impl From<Fault> for Failed {
    fn from(fault: Fault) -> Self {
        Self { fault, remains: None }
    }
}

/// Performs an effect.
pub(crate) async fn perform(engine: &Engine, job: &Job, stop: &CancellationToken) -> Result<Report, Failed> {
    let performance = Performance {
        engine,
        job,
        stop,
        told: OnceLock::new(),
    };
    crash_point!("perform.before");
    let result = if stop.is_cancelled() && !finishes_though_stopped(job.request.effect.kind()) {
        performance.report_stopped().await
    } else {
        performance.perform_until_stopped().await
    };
    let result = match result {
        Ok(report) => Ok(report),
        Err(fault) => Err(performance.failed(fault).await),
    };
    crash_point!("perform.after");
    result
}

/// Tells whether an effect is tried though it was told to stop before it began: an earlier try may have had its way at
/// the forge, and what it did can only be undone when it is known (RUN-11). A merge cannot be undone, so it never begins.
fn finishes_though_stopped(kind: EffectKind) -> bool {
    !kind.is_stoppable() && kind != EffectKind::MergePullRequest
}

/// Names the processes of one effect in lease records; the worker is part of it, since processes live on one machine.
pub(crate) fn process_group_name(worker: &str, effect: &EffectId) -> String {
    format!("{worker}/{effect}")
}

/// Shows that the processes of an effect are on record; without it no sandbox is opened, whatever its profile (ENV-2).
#[derive(Debug)]
struct OnRecord(());

/// What of an effect runs foreign code.
enum Foreign<'a> {
    Agent(&'a Invocation),
    Tests(ExecutorName),
}

impl Foreign<'_> {
    fn executor(&self) -> ExecutorName {
        match self {
            Self::Agent(invocation) => invocation.executor,
            Self::Tests(executor) => *executor,
        }
    }
}

/// Tells what of an effect runs foreign code; of most, nothing does.
fn foreign(effect: &Effect) -> Option<Foreign<'_>> {
    match effect {
        Effect::Invoke { invocation } => Some(Foreign::Agent(invocation)),
        Effect::RunTests { executor, .. } => Some(Foreign::Tests(*executor)),
        Effect::ReadIssue { .. }
        | Effect::PrepareWorkspace { .. }
        | Effect::CommitWork { .. }
        | Effect::CheckRedFirst { .. }
        | Effect::Rebase { .. }
        | Effect::InspectDiff { .. }
        | Effect::Push { .. }
        | Effect::OpenPullRequest { .. }
        | Effect::PublishCheck { .. }
        | Effect::MergePullRequest { .. }
        | Effect::ReadPullRequest { .. }
        | Effect::ClosePullRequest { .. }
        | Effect::PostComment { .. }
        | Effect::UpdateFields { .. }
        | Effect::CleanUp { .. } => None,
    }
}

/// One effect being performed, with what all performers share.
#[derive(Debug)]
struct Performance<'a> {
    engine: &'a Engine,
    job: &'a Job,
    stop: &'a CancellationToken,
    /// What its agent was told, once that is kept.
    told: OnceLock<Artifact>,
}

impl Performance<'_> {
    async fn perform(&self) -> Result<Report, Fault> {
        match &self.job.request.effect {
            Effect::ReadIssue { issue } => issue::read(self, *issue).await,
            Effect::PrepareWorkspace { branch } => workspace::prepare(self, branch).await,
            Effect::Invoke { invocation } => invoke::invoke(self, invocation).await,
            Effect::CommitWork {
                branch,
                parent,
                onto,
                message,
            } => commit_work::commit(self, branch, parent, onto.as_ref(), message).await,
            Effect::RunTests {
                commit,
                command,
                time,
                executor,
            } => tests::run(self, commit, command, *time, *executor).await,
            Effect::CheckRedFirst { .. } => Err(Fault::permanent(
                "cannot run new tests on the base: this version does not do that yet",
            )),
            Effect::Rebase { branch, base, head } => rebase::rebase(self, branch, base, head).await,
            Effect::InspectDiff { base, head } => inspect::inspect(self, base, head).await,
            Effect::Push {
                branch,
                commit,
                expected,
            } => push::push(self, branch, commit, expected.as_ref()).await,
            Effect::OpenPullRequest {
                branch,
                title,
                message,
            } => pull_request::open(self, branch, title, message).await,
            Effect::PublishCheck {
                head,
                title,
                summary,
                notes,
            } => check::publish(self, head, title, summary, notes).await,
            Effect::MergePullRequest { number, head, base } => merge::merge(self, *number, head, base).await,
            Effect::ReadPullRequest { number } => pull_request::read(self, *number).await,
            Effect::ClosePullRequest { number } => pull_request::close(self, *number).await,
            Effect::PostComment { target, message } => comment::post(self, *target, message).await,
            Effect::UpdateFields { board, issue, fields } => {
                board::update(self, *board, *issue, fields).await
            }
            Effect::CleanUp {
                delete_branch,
                pushed,
            } => clean_up::clean_up(self, delete_branch.as_deref().zip(pushed.as_ref())).await,
        }
    }

    /// Performs the effect; one that may be stopped, and takes too long to stop by itself, is dropped.
    async fn perform_until_stopped(&self) -> Result<Report, Fault> {
        let stopped = async {
            if !self.job.request.effect.kind().is_stoppable() {
                std::future::pending::<()>().await;
            }
            self.stop.cancelled().await;
            tokio::time::sleep(duration(self.patience())).await;
        };
        tokio::select! {
            biased;
            result = self.perform() => result,
            () = stopped => self.report_stopped().await,
        }
    }

    /// An invocation leaves its papers even when its environment broke (INV-1a).
    async fn failed(&self, fault: Fault) -> Failed {
        let remains = match foreign(&self.job.request.effect) {
            Some(Foreign::Agent(invocation)) => invoke::remains(self, invocation, &fault).await.map(Box::new),
            Some(Foreign::Tests(_)) | None => None,
        };
        Failed { fault, remains }
    }

    /// How long the performer gets after a stop: an invocation saves work and writes its papers, the rest just ends.
    fn patience(&self) -> Millis {
        if let Some(Foreign::Agent(_)) = foreign(&self.job.request.effect) {
            STOPPING
        } else {
            Millis(0)
        }
    }

    /// Says that the effect stopped. Its performer was dropped, here or with an earlier process, so what that may have
    /// left running is ended first.
    async fn report_stopped(&self) -> Result<Report, Fault> {
        match foreign(&self.job.request.effect) {
            Some(Foreign::Agent(invocation)) => invoke::undo(self, invocation, Outcome::Stopped).await,
            Some(Foreign::Tests(executor)) => {
                tests::undo(self, executor).await?;
                Ok(Report::Stopped)
            }
            None => Ok(Report::Stopped),
        }
    }

    fn ports(&self) -> &Ports {
        &self.engine.ports
    }

    fn run(&self) -> &RunId {
        &self.job.request.run
    }

    fn effect(&self) -> &EffectId {
        &self.job.request.id
    }

    fn repo(&self) -> &RepoRef {
        &self.job.request.repo
    }

    fn now(&self) -> Timestamp {
        self.ports().clock.now()
    }

    fn redact(&self, text: &str) -> String {
        self.engine.options.redactor.redact(text)
    }

    /// Takes the secrets out of a text that may be long.
    async fn redact_aside(&self, text: String) -> Result<String, Fault> {
        let redactor = Arc::clone(&self.engine.options.redactor);
        aside::aside(text.len(), move || redactor.redact(&text)).await
    }

    fn executor(&self, name: ExecutorName) -> Result<&Arc<dyn Executor>, Fault> {
        self.ports().executors.get(name)
    }

    /// What the run was started with; fixed for its whole life, so reading it leaves no choice.
    async fn spec(&self) -> Result<RunSpec, Fault> {
        Ok(self.state().await?.spec)
    }

    async fn state(&self) -> Result<Run, Fault> {
        let standing = intake::standing(self.ports().views.as_ref(), self.run()).await?;
        standing
            .run
            .ok_or_else(|| Fault::permanent(format!("there is no run {} to this effect", self.run())))
    }

    /// Keeps what the run changes in all with a commit, from the base that it stands on.
    async fn keep_change(&self, head: &CommitId) -> Result<Artifact, Fault> {
        let workspace = self.state().await?.workspace;
        let workspace = workspace
            .ok_or_else(|| Fault::permanent(format!("run {} commits without a workspace", self.run())))?;
        self.keep_change_from(&workspace.base, head).await
    }

    /// Keeps the difference between two commits, rendered; nothing is decided from it.
    async fn keep_change_from(&self, base: &CommitId, head: &CommitId) -> Result<Artifact, Fault> {
        let diff = self.ports().workspace.diff(self.run(), base, head).await?;
        self.keep(ArtifactKind::Diff, &diff.rendered).await
    }

    /// Keeps text without its secrets.
    async fn keep(&self, kind: ArtifactKind, text: &str) -> Result<Artifact, Fault> {
        let clean = self.redact_aside(text.to_owned()).await?;
        self.ports().blobs.put(kind, clean.as_bytes()).await
    }

    /// Reads kept bytes back; that they are gone is no one's to mend.
    async fn kept(&self, artifact: &Artifact) -> Result<Vec<u8>, Fault> {
        let kept = self.ports().blobs.get(&artifact.digest).await?;
        kept.ok_or_else(|| {
            Fault::permanent(format!(
                "the {} {} is not kept any more",
                artifact.kind.as_str(),
                artifact.digest
            ))
        })
    }

    /// Writes a message in the words that go out.
    async fn render(&self, message: &Message) -> Result<String, Fault> {
        let page = self.spec().await?.page;
        let mut kept = BTreeMap::new();
        for artifact in message.kept() {
            let text = String::from_utf8_lossy(&self.kept(artifact).await?).into_owned();
            kept.insert(artifact.digest.clone(), text);
        }
        // Whatever is taken out of the words, what finds them again stays (GH-5).
        let clean = |text: &str| self.redact(text);
        Ok(message::render(
            message,
            self.run(),
            &page,
            self.effect(),
            &kept,
            &clean,
        ))
    }

    /// Records that the run holds something, before it is used (ENV-2). If repeated: its heartbeat is renewed.
    async fn take(&self, kind: ResourceKind, name: String) -> Result<(), Fault> {
        let now = self.now();
        let lease = ResourceLease {
            kind,
            name,
            run: self.run().clone(),
            taken_at: now,
            heartbeat: now,
        };
        match self.ports().leases.take(&lease).await? {
            Taken::Yes => Ok(()),
            Taken::No => Err(Fault::conflict(format!(
                "{} `{}` is held by another run",
                kind.as_str(),
                lease.name
            ))),
        }
    }

    /// Whatever reads the worktree for the host goes by this lease too: one reader at a time, the next ends what an
    /// earlier one left, and the worktree is read once more before it is given back.
    async fn take_worktree(&self) -> Result<(), Fault> {
        self.take(ResourceKind::Worktree, format!("run-{}", self.run()))
            .await
    }

    async fn take_branch(&self, branch: &str) -> Result<(), Fault> {
        self.take(ResourceKind::Branch, format!("{}/{branch}", self.repo().id))
            .await
    }

    async fn take_processes(&self) -> Result<OnRecord, Fault> {
        self.take(self.process_kind(), self.process_group()).await?;
        Ok(OnRecord(()))
    }

    async fn give_processes_back(&self) -> Result<(), Fault> {
        self.ports()
            .leases
            .give_back(self.run(), self.process_kind(), &self.process_group())
            .await
    }

    fn process_kind(&self) -> ResourceKind {
        match foreign(&self.job.request.effect).map(|foreign| foreign.executor()) {
            Some(ExecutorName::Docker) => ResourceKind::Container,
            Some(ExecutorName::Local | ExecutorName::UnsafePlain) | None => ResourceKind::ProcessGroup,
        }
    }

    fn process_group(&self) -> String {
        process_group_name(&self.engine.options.worker, self.effect())
    }
}
