//! `conductor doctor`: looks for what could be wrong on this machine, and says what to do about it.
//!
//! Changes nothing but a file of its own that it writes and removes at once. It does not know runs.

mod database_server;

use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::time::Duration;

use conductor_domain::fault::FaultKind;
use conductor_domain::spec::ExecutorName;
use conductor_executor::{Toolchain, choice, docker, local};
use conductor_git::{Git, Protocol};
use conductor_web::visible;
use serde::Serialize;

use crate::clock::SystemClock;
use crate::environment;
use crate::executors::{self, Containers};
use crate::exit::{Exit, Failure};
use crate::session::Session;
use crate::settings::{DatabaseUrl, FORGE, Told};
use crate::show::table::Table;
use crate::show::words::count;
use crate::wire;

const EXECUTOR: &str = "executor";

/// Below this a run may not find room; below a tenth of it nothing works.
const ROOM: u64 = 2 * 1024 * 1024 * 1024;

/// How long the forge may take for one answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Looks for what could be wrong on this machine
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// Address of the forge's API to look for [default: the one in conductor.toml]
    #[arg(long, value_name = "URL")]
    forge_url: Option<String>,
    /// Address of a PostgreSQL database to look at [default: the one in conductor.toml]
    #[arg(long, value_name = "URL")]
    database_url: Option<DatabaseUrl>,
}

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Health {
    Ok,
    Warn,
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    health: Health,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            name,
            health: Health::Ok,
            found: found.into(),
            hint: None,
        }
    }

    fn warn(name: &'static str, found: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            name,
            health: Health::Warn,
            found: found.into(),
            hint: Some(hint.into()),
        }
    }

    fn because(name: &'static str, failure: Failure) -> Self {
        Self {
            name,
            health: Health::Fail,
            found: failure.what,
            hint: failure.hint,
        }
    }

    fn fail(name: &'static str, found: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            health: Health::Fail,
            ..Self::warn(name, found, hint)
        }
    }
}

/// Runs the command; anything that fails is a failure.
pub(crate) async fn doctor(session: &Session, args: DoctorArgs) -> Result<Exit, Failure> {
    let mut checks = vec![git().await, data_dir(session), room(session)];
    let url = args.database_url.or_else(|| told(session).database_url);
    if let Some(url) = &url {
        checks.extend(database_server::look(url).await);
    }
    checks.push(database(session, url.as_ref()).await);
    checks.push(settings(session));
    checks.push(executor(session).await);
    checks.push(server(session).await);
    checks.push(forge(session, args.forge_url.clone()).await);
    checks.extend(app(session, args.forge_url).await);
    checks.push(programs());
    session.out.data(&checks, |checks| people(checks))?;
    let is_well = checks.iter().all(|check| check.health != Health::Fail);
    Ok(if is_well { Exit::Ok } else { Exit::Failed })
}

fn people(checks: &[Check]) -> String {
    let mut table = Table::new(["", "CHECK", "FOUND"]);
    for check in checks {
        let health = match check.health {
            Health::Ok => "✔ ok",
            Health::Warn => "! warn",
            Health::Fail => "✘ fail",
        };
        table.row([health.to_owned(), check.name.to_owned(), check.found.clone()]);
        if let Some(hint) = &check.hint {
            table.row([String::new(), String::new(), format!("hint: {hint}")]);
        }
    }
    table.text(None)
}

async fn git() -> Check {
    match Git::find(&[Protocol::Https]).await {
        Ok(_) => Check::ok("git", format!("there, {} or later", conductor_git::OLDEST_GIT)),
        Err(error) => {
            let hint = format!("install git {} or later", conductor_git::OLDEST_GIT);
            Check::fail("git", crate::exit::chain(&error), hint)
        }
    }
}

fn data_dir(session: &Session) -> Check {
    const NAME: &str = "data directory";
    let path = session.data_dir.path();
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Check::warn(
                NAME,
                format!("{} is not there yet", path.display()),
                "`conductor serve` makes it",
            );
        }
        Err(error) => {
            return Check::fail(
                NAME,
                format!("{}: {error}", path.display()),
                "look at its permissions",
            );
        }
    };
    let mode = metadata.mode() & 0o777;
    if let Err(error) = tempfile::NamedTempFile::new_in(path) {
        return Check::fail(
            NAME,
            format!("{} cannot be written: {error}", path.display()),
            "look at its permissions",
        );
    }
    if mode & 0o077 != 0 {
        let hint = format!("chmod 700 {}", path.display());
        return Check::fail(
            NAME,
            format!("{} can be read by others (mode {mode:o})", path.display()),
            hint,
        );
    }
    Check::ok(NAME, format!("{} is yours alone", path.display()))
}

fn room(session: &Session) -> Check {
    const NAME: &str = "disk space";
    let existing = session.data_dir.path().ancestors().find(|path| path.exists());
    let Some(Ok(found)) = existing.map(nix::sys::statvfs::statvfs) else {
        return Check::warn(NAME, "could not be seen", "look at it with `df`");
    };
    // The types differ between systems; both are counts of blocks and bytes.
    #[allow(clippy::useless_conversion, reason = "u32 on some systems")]
    let free = u64::from(found.blocks_available()).saturating_mul(u64::from(found.fragment_size()));
    let mib = free / 1024 / 1024;
    let said = if mib < 10 * 1024 {
        format!("{mib} MiB free")
    } else {
        format!("{} GiB free", mib / 1024)
    };
    match free {
        free if free < ROOM / 10 => Check::fail(NAME, said, "make room; nothing can be kept without it"),
        free if free < ROOM => Check::warn(NAME, said, "large repositories may not find room"),
        _ => Check::ok(NAME, said),
    }
}

async fn database(session: &Session, url: Option<&DatabaseUrl>) -> Check {
    const NAME: &str = "database";
    match wire::read_there(&session.data_dir, url).await {
        Ok(records) => {
            let instance = records.reader().instance().await;
            records.close().await;
            match instance {
                Ok(instance) => Check::ok(
                    NAME,
                    format!(
                        "opens, {}, {}",
                        count(instance.projects.len(), "project"),
                        count(instance.repos.len(), "repository")
                    ),
                ),
                Err(error) => Check::fail(NAME, error.to_string(), error.hint()),
            }
        }
        Err(failure) if failure.exit == Exit::NoServer => {
            // To whom the directory is closed, every file in it looks absent.
            match std::fs::read_dir(session.data_dir.path()) {
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Check::fail(
                    NAME,
                    format!("cannot be seen: {error}"),
                    "be the user that owns the data directory",
                ),
                Ok(_) | Err(_) => Check::warn(NAME, "is not there yet", "`conductor serve` makes it"),
            }
        }
        Err(failure) => Check::because(NAME, failure),
    }
}

/// What the settings say; what is wrong with them is a check of its own.
fn told(session: &Session) -> Told {
    Told::default()
        .or_file(&session.data_dir.settings_file())
        .unwrap_or_default()
}

/// Says before a start what a start would say (EXEC-1, S-45).
async fn executor(session: &Session) -> Check {
    let told = told(session);
    match choice::choose(told.executor.as_deref(), None) {
        Ok(ExecutorName::Local) => local_executor(&told),
        Ok(ExecutorName::Docker) => containers(&told.sandbox.containers()).await,
        Ok(executor @ ExecutorName::UnsafePlain) => Check::ok(EXECUTOR, executor.as_str()),
        Err(refused) => Check::warn(
            EXECUTOR,
            format!("`conductor serve` would refuse to start (CDR0405): {refused}"),
            "name one with --executor or in conductor.toml; `conductor demo` needs none",
        ),
    }
}

/// Looks whether this machine can protect against what runs in the local sandbox (S-42).
fn local_executor(told: &Told) -> Check {
    let scratch = match tempfile::tempdir() {
        Ok(scratch) => scratch,
        Err(error) => return Check::fail(EXECUTOR, error.to_string(), "look at the temporary directory"),
    };
    let made = executors::local(local::Settings {
        root: scratch.path().to_owned(),
        guest: environment::guest(),
        toolchain: Toolchain::system(),
        limits: told.sandbox.limits(),
        may_miss: told.sandbox.may_miss(),
    });
    match made {
        Ok(_) => Check::ok(
            EXECUTOR,
            "local: bubblewrap is there, and so is every limit that must be",
        ),
        Err(failure) => Check::because(EXECUTOR, failure),
    }
}

/// Looks whether the engine answers and is recent enough to hold hostile code (S-45).
async fn containers(containers: &Containers) -> Check {
    match docker::examine(&containers.engine, environment::engine()).await {
        Ok(engine) => {
            let runc = engine
                .runc
                .map(|runc| format!(", runc {runc}"))
                .unwrap_or_default();
            Check::ok(EXECUTOR, format!("docker: engine {}{runc}", engine.version))
        }
        Err(old @ docker::Unusable::TooOld { .. })
            if containers.may_be_old == docker::MayBeOld::OperatorSaysSo =>
        {
            Check::warn(
                EXECUTOR,
                format!("docker: {old}"),
                "accepted by `old-engine` in [sandbox]; update it",
            )
        }
        Err(unusable) => Check::fail(
            EXECUTOR,
            format!("`conductor serve` would refuse to start (CDR0420): {unusable}"),
            "start the engine, update it, or accept an old one with `old-engine = true` in [sandbox]",
        ),
    }
}

fn settings(session: &Session) -> Check {
    const NAME: &str = "settings";
    let path = session.data_dir.settings_file();
    match Told::default().or_file(&path) {
        Ok(told) if path.exists() => match refused(&told) {
            Ok(()) => Check::ok(NAME, format!("{} can be used", path.display())),
            Err(failure) => {
                let code = failure.code.as_deref().unwrap_or_default();
                Check {
                    found: format!(
                        "`conductor serve` would refuse to start ({code}): {}",
                        failure.what
                    ),
                    ..Check::because(NAME, failure.clone())
                }
            }
        },
        Ok(_) => Check::ok(NAME, "no conductor.toml; flags and defaults count"),
        Err(failure) => Check::because(NAME, failure),
    }
}

/// Reads the settings as a start would; an App that is not named at all may be given with flags.
fn refused(told: &Told) -> Result<(), Failure> {
    told.listen()?;
    told.ports()?;
    told.scenario()?;
    told.webhook_secret()?;
    told.notify.hook()?;
    if told.app_id.is_some() || told.private_key_file.is_some() {
        told.forge()?;
    }
    Ok(())
}

async fn server(session: &Session) -> Check {
    const NAME: &str = "server";
    match session.client().await {
        Ok(client) => match client.get::<conductor_web::api::Health>("/health").await {
            Ok(health) => match health.trouble {
                None => Check::ok(NAME, format!("answers at {}", client.url())),
                Some(trouble) => Check::fail(
                    NAME,
                    format!(
                        "cannot go on ({}): {}",
                        trouble.code,
                        visible::line(&trouble.what)
                    ),
                    trouble.hint,
                ),
            },
            Err(failure) => Check::because(NAME, failure),
        },
        Err(failure) if failure.exit == Exit::NoServer => {
            Check::warn(NAME, failure.what, "start `conductor serve` when you need it")
        }
        Err(failure) => Check::because(NAME, failure),
    }
}

async fn forge(session: &Session, given: Option<String>) -> Check {
    const NAME: &str = "forge";
    let Some(url) = given.or(told(session).forge_url) else {
        return Check::warn(
            NAME,
            format!("none is named; `conductor serve` signs in at {FORGE}, which was not asked"),
            "name it with --forge-url or in conductor.toml",
        );
    };
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(PATIENCE)
        .user_agent("conductor-doctor")
        .build();
    let asked = match client {
        Ok(client) => client.get(&url).send().await,
        Err(error) => Err(error),
    };
    match asked {
        Ok(response) => Check::ok(NAME, format!("{url} answers ({})", response.status())),
        Err(error) => Check::fail(
            NAME,
            crate::exit::chain(&error),
            "check the address, the network and a proxy in between",
        ),
    }
}

/// Signs in as the App; a key or an id that is not the App's would otherwise be noticed by the first repository.
async fn app(session: &Session, given: Option<String>) -> Option<Check> {
    const NAME: &str = "app";
    const HINT: &str = "compare app-id and private-key-file with the App's own page at the forge";
    let told = told(session);
    if told.app_id.is_none() && told.private_key_file.is_none() {
        // Without either `conductor serve` refuses to start, and says so; the demo needs none.
        return None;
    }
    let told = Told {
        forge_url: given.or(told.forge_url),
        ..told
    };
    let config = match told.forge() {
        Ok(config) => conductor_github::Config {
            patience: PATIENCE,
            ..config
        },
        Err(failure) => return Some(Check::because(NAME, failure)),
    };
    let client = match conductor_github::Client::new(config, Arc::new(SystemClock::default())) {
        Ok(client) => client,
        Err(error) => return Some(Check::fail(NAME, crate::exit::chain(&error), HINT)),
    };
    Some(match client.bot_login().await {
        Ok(login) => Check::ok(NAME, format!("signs in as {}", visible::line(login))),
        Err(fault) => match fault.kind {
            FaultKind::Transient { .. } | FaultKind::EnvironmentLost => {
                Check::warn(NAME, visible::line(&fault.what), "try again")
            }
            FaultKind::Conflict | FaultKind::Refused | FaultKind::Permanent => {
                Check::fail(NAME, visible::line(&fault.what), HINT)
            }
        },
    })
}

fn programs() -> Check {
    let found = super::serve::usual_programs(&environment::all());
    if found.is_empty() {
        return Check::warn(
            "programs",
            "none of the usual test runners",
            "install what your test commands call",
        );
    }
    Check::ok("programs", format!("for test commands: {}", found.join(", ")))
}
