//! Where everything meets: opens the store, makes each adapter, and hands them to the engine and the door.
//!
//! The only file that names all of them. It decides nothing that a setting or a port could decide, and it does not know
//! what a run is.

use std::sync::Arc;

use async_trait::async_trait;
use conductor_agent::Agents;
use conductor_domain::fault::Fault;
use conductor_domain::id::RunId;
use conductor_domain::spec::ExecutorName;
use conductor_domain::time::Millis;
use conductor_engine::redact::{KnownForms, RedactedBlobs};
use conductor_engine::{Committed, Engine, Executors, Live, Options, Ports, audit, rebuild, replay};
use conductor_executor::{Consent, Toolchain, UnsafePlain};
use conductor_git::{Git, GitWorkspace, Identity, Protocol};
use conductor_github::webhook as github;
use conductor_port::clock::Clock;
use conductor_port::ledger::StreamId;
use conductor_store::{Claim, Database, OpenError, Settings};
use conductor_web::api::{AuditView, FindingView, ReplayDifference, ReplayView};
use conductor_web::{Backstage, Change, Delivery, Hint, ReadDelivery, Reader, Rejected, Talk};
use futures_util::stream::{self, BoxStream, StreamExt as _};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::broadcast::{Receiver, error::RecvError};

use crate::data_dir::DataDir;
use crate::exit::{Exit, Failure};
use crate::settings::{DatabaseUrl, Told};

/// Everything that is kept, as readers use it.
#[derive(Debug, Clone)]
pub(crate) struct Records {
    database: Arc<Database>,
}

impl Records {
    /// Reads in the words of the wire.
    pub(crate) fn reader(&self) -> Reader {
        Reader::new(
            self.database.clone(),
            self.database.clone(),
            self.database.clone(),
        )
    }

    /// The bytes that are kept by content address.
    pub(crate) fn blobs(&self) -> Arc<dyn conductor_port::blobs::Blobs> {
        self.database.clone()
    }

    /// Checks every stream (SEC-8), and every tool log against the stream that anchors it (TOOL-4).
    pub(crate) async fn verify(&self) -> Result<AuditView, Fault> {
        let database = self.database.as_ref();
        let mut report = audit::verify(database, database).await?;
        report
            .problems
            .extend(audit::verify_tool_logs(database, database, database).await?);
        Ok(AuditView {
            holds: report.is_sound(),
            streams: report.streams,
            records: report.records,
            unanchored: report.unanchored.iter().map(|end| end.last - end.after).sum(),
            findings: report.problems.iter().map(finding).collect(),
        })
    }

    /// Recomputes a run (RUN-2).
    pub(crate) async fn replay(&self, run: &RunId) -> Result<ReplayView, Fault> {
        let report = replay::replay(self.database.as_ref(), self.database.as_ref(), run).await?;
        Ok(ReplayView {
            run: report.run.clone(),
            same: report.is_equal(),
            decisions: report.facts,
            events: report.events,
            differences: report.differences.iter().map(difference).collect(),
        })
    }

    /// Makes the projections anew.
    pub(crate) async fn rebuild(&self) -> Result<usize, Fault> {
        rebuild::rebuild(self.database.as_ref(), self.database.as_ref()).await
    }

    /// Finishes writing.
    pub(crate) async fn close(&self) {
        self.database.close().await;
    }
}

fn finding(problem: &audit::Problem) -> FindingView {
    use audit::Problem;
    let (kind, stream, seq) = match problem {
        Problem::Changed { stream, seq } => ("changed", stream.clone(), Some(*seq)),
        Problem::Removed { stream, from, .. } => ("removed", stream.clone(), Some(*from)),
        Problem::Reordered { stream, seq, .. } => ("reordered", stream.clone(), Some(*seq)),
        Problem::Truncated { stream, last, .. } => ("truncated", stream.clone(), Some(*last)),
        Problem::RunRemoved { run } => ("run_removed", StreamId::Run(run.clone()).as_key(), None),
        Problem::ToolLogChanged { invocation } => {
            ("tool_log_changed", StreamId::Run(invocation.run()).as_key(), None)
        }
        Problem::Rewritten { stream, seq } => ("rewritten", stream.clone(), Some(*seq)),
    };
    FindingView {
        stream,
        seq,
        kind: kind.to_owned(),
        what: problem.to_string(),
    }
}

fn difference(difference: &replay::Difference) -> ReplayDifference {
    use replay::Difference;
    let (seq, what) = match difference {
        Difference::OtherDecider { seq, decider } => {
            (*seq, format!("was decided by version {decider} of the rules"))
        }
        Difference::Refused { seq, refusal } => (*seq, format!("would be refused now: {refusal}")),
        Difference::Event {
            seq,
            stored,
            replayed,
        } => (*seq, format!("the log has `{stored}`, the replay `{replayed}`")),
        Difference::Effect {
            effect,
            stored,
            replayed,
        } => (
            0,
            format!("effect {effect}: `{stored}` is kept, the replay made `{replayed}`"),
        ),
        Difference::State => (0, "the projection is not what the events tell".to_owned()),
    };
    ReplayDifference { seq, what }
}

fn cannot_open(error: OpenError) -> Failure {
    let exit = match error {
        OpenError::Missing { .. } => Exit::NoServer,
        OpenError::NewerSchema { .. }
        | OpenError::OlderSchema { .. }
        | OpenError::OtherMigration { .. }
        | OpenError::Foreign { .. }
        | OpenError::Damaged { .. }
        | OpenError::Locked { .. }
        | OpenError::Failed { .. }
        | OpenError::Backup { .. }
        | OpenError::Unreachable { .. }
        | OpenError::Denied { .. }
        | OpenError::Unfit { .. }
        | OpenError::BadAddress { .. }
        | OpenError::Claimed { .. } => Exit::Failed,
    };
    Failure::coded(error.code(), crate::exit::chain(&error), error.hint()).exiting(exit)
}

/// Opens what is kept, for reading only: on the server that the data directory's settings name, or in its file.
pub(crate) async fn open_for_reading(data_dir: &DataDir) -> Result<Records, Failure> {
    let usual = Settings::default();
    let database = match Told::default().or_file(&data_dir.settings_file())?.database_url {
        Some(url) => Database::connect_read_only(url.expose(), &usual).await,
        None => Database::open_read_only(&data_dir.database(), &usual).await,
    };
    Ok(Records {
        database: Arc::new(database.map_err(cannot_open)?),
    })
}

/// Opens what is kept, for writing, and claims it where it is on a server; the caller has claimed the data directory.
pub(crate) async fn open(data_dir: &DataDir, url: Option<&DatabaseUrl>) -> Result<(Records, Claim), Failure> {
    let usual = Settings::default();
    let database = match url {
        Some(url) => Database::connect(url.expose(), &usual).await,
        None => Database::open(&data_dir.database(), &usual).await,
    };
    let database = Arc::new(database.map_err(cannot_open)?);
    let claim = database.claim().await.map_err(cannot_open)?;
    Ok((Records { database }, claim))
}

/// What a server says when it has lost its claim.
pub(crate) fn lost_claim() -> Failure {
    Failure::coded(
        "CDR0614",
        "the connection that holds the claim on the database is lost, and another Conductor may have it now",
        "start again when the database server can be reached; what was begun is taken up",
    )
}

/// What the engine is made of, besides what is kept.
pub(crate) struct Parts {
    pub(crate) forge: conductor_github::Config,
    pub(crate) consent: Consent,
    pub(crate) toolchain: Toolchain,
    pub(crate) clock: Arc<dyn Clock>,
    /// How long an effect of a killed server waits before it is taken up again.
    pub(crate) lease: Millis,
    /// What must never be shown or kept, word for word.
    pub(crate) secrets: Vec<String>,
}

/// The engine and the forge it speaks to.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    pub(crate) engine: Arc<Engine>,
    pub(crate) forge: Arc<conductor_github::Client>,
    /// Keeps what comes through the door, redacted.
    pub(crate) keep: Arc<RedactedBlobs>,
}

/// Puts the engine together.
pub(crate) async fn engine(data_dir: &DataDir, records: &Records, parts: Parts) -> Result<Machine, Failure> {
    let protocol = if parts.forge.api_url.starts_with("http://") {
        Protocol::Http
    } else {
        Protocol::Https
    };
    let git = Git::find(&[protocol]).await.map_err(|error| {
        Failure::coded(
            "CDR0412",
            crate::exit::chain(&error),
            format!("install git {} or later", conductor_git::OLDEST_GIT),
        )
    })?;
    let identity = Identity {
        name: "Conductor".to_owned(),
        email: "conductor@localhost".to_owned(),
    };
    let workspace = GitWorkspace::open(data_dir.path(), git, identity)
        .map_err(|error| Failure::because("opening the working directories", &error))?;
    let forge = conductor_github::Client::new(parts.forge, parts.clock.clone()).map_err(|error| {
        Failure::coded(
            "CDR0407",
            crate::exit::chain(&error),
            "look at --forge-url, --app-id and --private-key-file",
        )
        .exiting(Exit::Usage)
    })?;
    let forge = Arc::new(forge);
    let plain = UnsafePlain::for_demo_and_tests(parts.consent, data_dir.sandboxes(), parts.toolchain);
    let database = records.database.clone();
    let all = Ports {
        ledger: database.clone(),
        views: database.clone(),
        blobs: database.clone(),
        tool_log: database.clone(),
        leases: database,
        workspace: Arc::new(workspace),
        executors: Executors::default().with(ExecutorName::UnsafePlain, Arc::new(plain)),
        agent: Arc::new(Agents::new(parts.clock.clone())),
        forge: forge.clone(),
        clock: parts.clock,
    };
    // One process at a time uses a data directory, so its name stays the same over restarts: what an earlier process
    // left behind is then known as ours.
    let mut options = Options::new("local");
    options.owns_ledger = true;
    options.lease = parts.lease;
    options.redactor = Arc::new(KnownForms::with_secrets(parts.secrets));
    let keep = Arc::new(RedactedBlobs::new(records.blobs(), options.redactor.clone()));
    Ok(Machine {
        engine: Engine::new(all, options),
        forge,
        keep,
    })
}

/// Lets the door read deliveries as GitHub words and signs them.
pub(crate) fn deliveries(secret: SecretString) -> ReadDelivery {
    Arc::new(move |delivery: Delivery<'_>| {
        let headers = github::Headers {
            event: delivery.event,
            delivery: delivery.id,
            signature: delivery.signature,
        };
        match github::receive(&secret, headers, delivery.body) {
            Ok(hint) => Ok(hint.map(|hint| Hint {
                delivery: hint.delivery,
                event: hint.event,
                body_hash: hint.body_digest,
                repo: hint.repo,
                subjects: hint.subjects,
                pushed_branch: hint.pushed_branch,
            })),
            Err(github::Rejected::Incomplete) => Err(Rejected::Incomplete),
            Err(github::Rejected::TooLarge | github::Rejected::Unsigned | github::Rejected::Forged) => {
                Err(Rejected::NotSigned)
            }
        }
    })
}

/// The words of a secret, for the redactor.
pub(crate) fn words(secret: &SecretString) -> String {
    secret.expose_secret().to_owned()
}

/// What the door sees of the engine besides its inbox.
#[derive(Debug)]
pub(crate) struct BehindTheDoor {
    pub(crate) engine: Arc<Engine>,
    pub(crate) records: Records,
}

#[async_trait]
impl Backstage for BehindTheDoor {
    fn changes(&self) -> BoxStream<'static, Change> {
        let change = |committed: Committed| match committed.stream {
            StreamId::Run(run) => Some(Change { run: Some(run) }),
            StreamId::Instance => None,
        };
        follow(self.engine.committed(), change, || Some(Change { run: None }))
    }

    fn talk(&self) -> BoxStream<'static, Talk> {
        let talk = |Live { run, effect, text }: Live| Some(Talk { run, effect, text });
        follow(self.engine.live(), talk, || None)
    }

    async fn verify(&self) -> Result<AuditView, Fault> {
        self.records.verify().await
    }

    async fn replay(&self, run: &RunId) -> Result<ReplayView, Fault> {
        self.records.replay(run).await
    }
}

/// Follows a broadcast; what a slow listener missed becomes `missed`.
fn follow<T: Clone + Send + 'static, U: Send + 'static>(
    receiver: Receiver<T>,
    heard: impl Fn(T) -> Option<U> + Send + Copy + 'static,
    missed: impl Fn() -> Option<U> + Send + Copy + 'static,
) -> BoxStream<'static, U> {
    stream::unfold(receiver, move |mut receiver| async move {
        match receiver.recv().await {
            Ok(value) => Some((heard(value), receiver)),
            Err(RecvError::Lagged(_)) => Some((missed(), receiver)),
            Err(RecvError::Closed) => None,
        }
    })
    .filter_map(std::future::ready)
    .boxed()
}
