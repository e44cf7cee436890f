//! Where everything meets: opens the store, makes each adapter, and hands them to the engine and the door.
//!
//! The only file that names all of them. It decides nothing that a setting or a port could decide, and it does not know
//! what a run is.

mod backstage;
mod room;
mod denied;
mod notices;
mod skills;
mod rules;
mod deliveries;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use conductor_agent::Agents;
use conductor_domain::egress::Grant;
use conductor_domain::fault::{Fault, FaultKind};
use conductor_domain::id::RunId;
use conductor_domain::time::Millis;
use conductor_engine::rebuild::Rebuilt;
use conductor_engine::redact::{KnownForms, RedactedBlobs};
use conductor_engine::{Engine, Options, PortRange, Ports, audit, rebuild, replay};
use conductor_executor::Toolchain;
use conductor_gateway::door::Doors;
use conductor_gateway::egress::{self, Egress, Outlets, Outside};
use conductor_git::{Git, GitWorkspace, Identity, Protocol};
use conductor_port::answer::Answers;
use conductor_port::clock::Clock;
use conductor_port::key::Keys as _;
use conductor_port::views::Views as _;
use conductor_store::{Claim, Database, Heard, OpenError, Settings};
use conductor_web::Reader;
use conductor_web::api::{AuditView, FindingView, ReplayDifference, ReplayView};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::task::JoinHandle;

use crate::clock::{SharedClock, SystemClock, mint_secret};
use crate::data_dir::DataDir;
use crate::executors::Named;
use crate::exit::{Exit, Failure};
use crate::settings::{DatabaseUrl, Told, ToldInspection};
use crate::storage::Storage;

pub(crate) use backstage::BehindTheDoor;
pub(crate) use deliveries::deliveries;
use denied::ToEngine;
pub(crate) use room::{address, scratch};
pub(crate) use skills::RoleSkills;

/// Everything that is kept, as readers use it.
#[derive(Debug, Clone)]
pub(crate) struct Records {
    database: Arc<Database>,
}

impl Records {
    /// Reads in the words of the wire.
    pub(crate) fn reader(&self) -> Reader {
        let kept = || self.database.clone();
        Reader::new(kept(), kept(), kept(), kept(), kept(), kept(), kept())
    }

    /// What opens the door to people, and what they were answered.
    pub(crate) fn door(&self) -> (Arc<dyn conductor_port::key::Keys>, Arc<dyn Answers>) {
        (self.database.clone(), self.database.clone())
    }

    /// The bytes that are kept by content address.
    pub(crate) fn blobs(&self) -> Arc<dyn conductor_port::blobs::Blobs> {
        self.database.clone()
    }

    /// Checks every stream (SEC-8), and everything else that is kept against the streams.
    pub(crate) async fn verify(&self) -> Result<AuditView, Fault> {
        let database = self.database.as_ref();
        let report = audit::verify(audit::Kept {
            views: database,
            ledger: database,
            tool_log: database,
            blobs: database,
        })
        .await?;
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
            other_rules: report.other_rules,
            differences: report.differences.iter().map(difference).collect(),
        })
    }

    /// Refuses to be reached by others while nobody could sign in (SEC-7).
    pub(crate) async fn check_staff(&self) -> Result<(), Failure> {
        let (instance, _head) = self.database.instance().await?;
        for operator in instance.staff.operators.keys() {
            if self.database.password(operator).await?.is_some() {
                return Ok(());
            }
        }
        Err(Failure::coded(
            "CDR0432",
            "others could reach this server, and nobody has a password to sign in with",
            "start it on loopback first and add somebody with `conductor operator add`",
        )
        .exiting(Exit::Refused))
    }

    /// Refuses to work on a damaged instance stream: kill switch, registrations and anchors stand in it.
    pub(crate) async fn check_instance(&self) -> Result<(), Failure> {
        let problems = audit::verify_instance(self.database.as_ref(), self.database.as_ref()).await;
        let said = match problems {
            Ok(problems) if problems.is_empty() => return Ok(()),
            Ok(problems) => {
                let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
                said.join("; ")
            }
            Err(fault) if fault.kind == FaultKind::Permanent => fault.what,
            Err(fault) => return Err(fault.into()),
        };
        Err(Failure::coded(
            "CDR0622",
            format!("the instance's stream is damaged: {said}"),
            "`conductor audit verify` names all damage; bring back a copy of the database, or, where only its views are \
             damaged, `conductor projections rebuild`",
        ))
    }

    /// Makes the projections anew.
    pub(crate) async fn rebuild(&self) -> Result<Rebuilt, Fault> {
        rebuild::rebuild(self.database.as_ref(), self.database.as_ref()).await
    }

    /// Finishes writing.
    pub(crate) async fn close(&self) {
        self.database.close().await;
    }
}

fn finding(problem: &audit::Problem) -> FindingView {
    FindingView {
        stream: problem.stream(),
        seq: problem.seq(),
        kind: problem.kind().to_owned(),
        what: problem.to_string(),
    }
}

fn difference(difference: &replay::Difference) -> ReplayDifference {
    use replay::Difference;
    let (seq, what) = match difference {
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

/// Says why what is kept could not be opened.
pub(crate) fn cannot_open(error: OpenError) -> Failure {
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
        | OpenError::NoConnection { .. }
        | OpenError::Denied { .. }
        | OpenError::Unfit { .. }
        | OpenError::Claimed { .. }
        | OpenError::OtherVersion { .. } => Exit::Failed,
        OpenError::BadAddress { .. } => Exit::Usage,
    };
    Failure::coded(error.code(), crate::exit::chain(&error), error.hint()).exiting(exit)
}

/// Opens what is kept, for reading only: on the server that the data directory's settings name, or in its file.
pub(crate) async fn open_for_reading(data_dir: &DataDir) -> Result<Records, Failure> {
    let told = Told::default().or_file(&data_dir.settings_file())?;
    read_there(data_dir, told.database_url.as_ref()).await
}

/// Opens what is kept, for reading only: on this server, or in the data directory's file.
pub(crate) async fn read_there(data_dir: &DataDir, url: Option<&DatabaseUrl>) -> Result<Records, Failure> {
    let usual = Settings::default();
    let database = match url {
        Some(url) => Database::connect_read_only(url.expose(), &usual).await,
        None => Database::open_read_only(&data_dir.database(), &usual).await,
    };
    Ok(Records {
        database: Arc::new(database.map_err(cannot_open)?),
    })
}

/// Opens what is kept, for writing; the caller has claimed the data directory.
async fn open(data_dir: &DataDir, url: Option<&DatabaseUrl>) -> Result<Records, Failure> {
    let usual = Settings::default();
    let database = match url {
        Some(url) => Database::connect(url.expose(), &usual).await,
        None => Database::open(&data_dir.database(), &usual).await,
    };
    Ok(Records {
        database: Arc::new(database.map_err(cannot_open)?),
    })
}

/// Opens what is kept, for one process alone.
pub(crate) async fn open_alone(
    data_dir: &DataDir,
    url: Option<&DatabaseUrl>,
) -> Result<(Records, Claim), Failure> {
    let records = open(data_dir, url).await?;
    let claim = records.database.claim_alone().await.map_err(cannot_open)?;
    Ok((records, claim))
}

/// One of several servers on what is kept: its name among them, its claim, and the clock that all of them go by.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) records: Records,
    pub(crate) claim: Claim,
    pub(crate) worker: String,
    pub(crate) clock: Arc<dyn Clock>,
    /// Sets the clock right, as long as the server runs.
    set_right: Option<JoinHandle<()>>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(task) = &self.set_right {
            task.abort();
        }
    }
}

/// Opens what is kept, for one of several servers; `ahead` says by how much the machine's clock is wrong, in tests.
pub(crate) async fn take_seat(
    data_dir: &DataDir,
    url: Option<&DatabaseUrl>,
    storage: &Storage,
    ahead: Millis,
) -> Result<Seat, Failure> {
    let records = open(data_dir, url).await?;
    if url.is_none() {
        // One process at a time uses a data directory, so its name stays the same over restarts: what an earlier
        // process left behind is then known as ours.
        let claim = records.database.claim("local").await.map_err(cannot_open)?;
        return Ok(Seat {
            records,
            claim,
            worker: "local".to_owned(),
            clock: Arc::new(SystemClock::default()),
            set_right: None,
        });
    }
    let worker = data_dir.worker()?;
    let claim = records.database.claim(&worker).await.map_err(cannot_open)?;
    agree_on_storage(&records, storage).await?;
    let clock = Arc::new(SharedClock::begin(ahead));
    set_right(&clock, &records.database).await?;
    clock.forget_latest();
    let task = tokio::spawn({
        let (clock, database) = (clock.clone(), records.database.clone());
        async move {
            loop {
                tokio::time::sleep(SET_RIGHT_EVERY).await;
                if let Err(fault) = set_right(&clock, &database).await {
                    tracing::warn!(%fault, "could not set the clock by the database server's");
                }
            }
        }
    });
    Ok(Seat {
        records,
        claim,
        worker,
        clock,
        set_right: Some(task),
    })
}

/// How often the clock is set by the server's; machines drift by less than a millisecond meanwhile.
const SET_RIGHT_EVERY: Duration = Duration::from_secs(10);

async fn set_right(clock: &SharedClock, database: &Database) -> Result<(), Fault> {
    for _ in 0..5 {
        let asked = clock.reading();
        let Some(time) = database.server_time().await? else {
            return Ok(());
        };
        if let Some(by) = clock.set(asked, time) {
            tracing::debug!(micros = by, "the clock was set by the database server's");
            return Ok(());
        }
    }
    Err(Fault::transient(
        "the database server takes too long to tell its time",
    ))
}

async fn agree_on_storage(records: &Records, storage: &Storage) -> Result<(), Failure> {
    let mark = storage.mark()?;
    if records.database.agree_on("storage", &mark).await? == mark {
        return Ok(());
    }
    Err(Failure::coded(
        "CDR0616",
        format!(
            "{} is not the storage that the servers of this database share",
            storage.path().display()
        ),
        "name theirs with --storage; a run's work stays there when another server takes it over",
    )
    .exiting(Exit::Refused))
}

/// Passes on to an engine what other servers commit, until it is dropped.
pub(crate) async fn listen(records: &Records, engine: &Arc<Engine>) -> Result<Listening, Failure> {
    let mut ear = records.database.listen().await?;
    let engine = engine.clone();
    Ok(Listening(tokio::spawn(async move {
        loop {
            match ear.next().await {
                Heard::Commit { stream, seq, records } => engine.hear(stream, seq, records),
                Heard::Gap => engine.look_again(),
            }
        }
    })))
}

/// Listens until it is dropped.
#[derive(Debug)]
pub(crate) struct Listening(JoinHandle<()>);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What the engine is made of, besides what is kept.
pub(crate) struct Parts {
    pub(crate) forge: conductor_github::Config,
    pub(crate) executor: Named,
    pub(crate) toolchain: Toolchain,
    pub(crate) clock: Arc<dyn Clock>,
    /// The name of this process among all that share the records.
    pub(crate) worker: String,
    /// How long an effect of a killed server waits before it is taken up again.
    pub(crate) lease: Millis,
    /// Which ports runs may have for their own.
    pub(crate) ports: PortRange,
    /// What the sandboxes of every project may reach.
    pub(crate) egress: Vec<Grant>,
    /// The world beyond the egress proxy.
    pub(crate) outside: Arc<dyn Outside>,
    /// Where sandboxes knock that want something of it.
    pub(crate) doors: PathBuf,
    /// What an inspection of a change objects to.
    pub(crate) inspection: ToldInspection,
    /// Where notices go.
    pub(crate) notify: Option<crate::hook::Hook>,
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
pub(crate) async fn engine(storage: &Storage, records: &Records, parts: Parts) -> Result<Machine, Failure> {
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
    let workspace = GitWorkspace::open(storage.path(), git, identity).map_err(|error| {
        Failure::coded(
            "CDR0409",
            format!("opening the working directories: {}", crate::exit::chain(&error)),
            "look at the permissions of the data directory and at the room left on its disk",
        )
    })?;
    let workspace = match parts.executor.reader(storage)? {
        Some(reader) => workspace.with_sandboxes(reader),
        None => workspace,
    };
    let forge = conductor_github::Client::new(parts.forge, parts.clock.clone()).map_err(|error| {
        Failure::coded(
            "CDR0407",
            crate::exit::chain(&error),
            "look at --forge-url, --app-id and --private-key-file",
        )
        .exiting(Exit::Usage)
    })?;
    let forge = Arc::new(forge);
    let executors = parts.executor.make(storage, parts.toolchain, &workspace).await?;
    let denied = Arc::new(ToEngine::default());
    let egress = outlets(parts.outside, &parts.doors, parts.egress, denied.clone())?;
    let database = records.database.clone();
    let all = Ports {
        ledger: database.clone(),
        views: database.clone(),
        blobs: database.clone(),
        tool_log: database.clone(),
        leases: database.clone(),
        duties: database,
        workspace: Arc::new(workspace),
        executors,
        egress: Arc::new(egress),
        agent: Arc::new(Agents::new(parts.clock.clone())),
        forge: forge.clone(),
        merges: forge.clone(),
        clock: parts.clock,
    };
    let mut options = Options::new(parts.worker);
    options.telling = notices::telling(parts.notify, all.clock.clone(), records)?;
    (options.owns_name, options.lease, options.ports) = (true, parts.lease, parts.ports);
    options.inspector = Arc::new(parts.inspection.inspector(&parts.secrets));
    options.redactor = Arc::new(KnownForms::with_secrets(parts.secrets));
    let keep = Arc::new(RedactedBlobs::new(records.blobs(), options.redactor.clone()));
    let engine = Engine::new(all, options);
    denied.connect(&engine);
    Ok(Machine { engine, forge, keep })
}

/// Puts the egress proxy together; what an earlier server left of its doors leads nowhere and is removed.
fn outlets(
    outside: Arc<dyn Outside>,
    doors: &Path,
    always: Vec<Grant>,
    denied: Arc<ToEngine>,
) -> Result<Outlets, Failure> {
    let doors = Doors::below(doors).and_then(Doors::swept).map_err(|error| {
        Failure::coded(
            "CDR0409",
            format!("making the doors of sandboxes: {}", crate::exit::chain(&error)),
            "look at the permissions of the data directory and at the room left on its disk",
        )
    })?;
    let egress = Egress::new(outside, denied, egress::Limits::default());
    let mint = Arc::new(|| SecretString::from(mint_secret()));
    Ok(Outlets::new(egress, doors, always, mint))
}

/// The words of a secret, for the redactor.
pub(crate) fn words(secret: &SecretString) -> String {
    secret.expose_secret().to_owned()
}
