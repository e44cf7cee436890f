//! `conductor serve`: runs the server until it is told to stop.
//!
//! It does not know what the server serves.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::PathBuf;

use conductor_domain::spec::ExecutorName;
use conductor_domain::time::Millis;
use conductor_executor::{Consent, Reason, Toolchain, choice};
use tracing_subscriber::EnvFilter;

use crate::command::open;
use crate::environment;
use crate::executors::Named;
use crate::exit::{Exit, Failure};
use crate::out::Out;
use crate::server::{LEASE, Server, Setup};
use crate::session::Session;
use crate::settings::Told;
use crate::signals;
use crate::storage::Storage;

/// Programs that test commands of the usual projects call, where they are there.
const USUAL_PROGRAMS: [&str; 6] = ["cargo", "rustc", "python3", "node", "go", "make"];

/// Runs the server: everything that works goes through it
#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    told: Told,
    /// States that agents' commands may run as this user without a sandbox; for the demo and tests only.
    #[arg(long, hide = true)]
    i_know_this_is_unsafe_demo: bool,
    /// How long an effect of a killed server waits before it is taken up again; tests have less time.
    #[arg(long, hide = true)]
    lease_ms: Option<u64>,
    /// By how much this machine's clock is wrong; for tests only.
    #[arg(long, hide = true)]
    clock_ahead_ms: Option<u64>,
}

/// Runs the server.
pub(crate) async fn serve(session: &Session, args: ServeArgs) -> Result<Exit, Failure> {
    log_to_stderr();
    session.data_dir.create()?;
    let told = args.told.or_file(&session.data_dir.settings_file())?;
    let consent = args
        .i_know_this_is_unsafe_demo
        .then(|| Consent::to_run_commands_without_a_sandbox(Reason::Test));
    let executor = choice::choose(told.executor.as_deref(), consent.as_ref()).map_err(|refused| {
        let hint = "name it with --executor, as in `--executor local`";
        Failure::coded("CDR0405", refused.to_string(), hint).exiting(Exit::Refused)
    })?;
    let executor = match (executor, consent) {
        (ExecutorName::UnsafePlain, Some(consent)) => Named::UnsafePlain(consent),
        (ExecutorName::UnsafePlain, None) => {
            return Err(Failure::new(
                "an executor without a sandbox was chosen without consent",
            ));
        }
        (ExecutorName::Docker, _) => Named::Docker(told.sandbox.containers()),
        (ExecutorName::Local, _) => Named::Local {
            limits: told.sandbox.limits(),
            may_miss: told.sandbox.may_miss(),
            guest: environment::guest(),
        },
    };
    let setup = Setup {
        listen: told.listen()?,
        forge: told.forge()?,
        webhook_secret: told.webhook_secret()?,
        public_url: told.public_url.clone(),
        executor,
        toolchain: toolchain().await,
        scenario: told.scenario()?,
        limits: told.limits.complete(),
        lease: args.lease_ms.map_or(LEASE, Millis),
        ports: told.ports()?,
        skills: told.skills.by_role(&session.data_dir),
        egress: told.egress.allow.clone(),
        inspection: told.inspection.clone(),
        notify: told.notify.hook()?,
        outside: session.outside.clone(),
        data_dir: session.data_dir.clone(),
        database_url: told.database_url.clone(),
        storage: told
            .storage
            .clone()
            .map_or_else(|| Storage::new(session.data_dir.path().to_owned()), Storage::new),
        clock_ahead: Millis(args.clock_ahead_ms.unwrap_or_default()),
    };
    let mut signals = signals::listen()?;
    let mut server = Server::start(setup).await?;
    announce(session, &server)?;
    show_the_way_in(session).await;
    tokio::select! {
        () = signals.told() => {}
        // At once: whatever this process still did could meet another that has the database.
        why = server.lost() => return Err(why),
    }
    session
        .out
        .talk("stopping: what is under way may finish, then the heads are anchored (again to stop at once)");
    tokio::select! {
        stopped = server.stop() => stopped?,
        () = signals.told() => return Ok(Exit::Failed),
    }
    session.out.talk("stopped");
    Ok(Exit::Ok)
}

fn announce(session: &Session, server: &Server) -> Result<(), Failure> {
    let file = server.file();
    let recovered = server.recovered();
    for (count, what) in [
        (
            recovered.leases,
            "effects of a server that died are taken up again",
        ),
        (recovered.switched, "runs were told of the kill switch"),
        (recovered.stopped, "effects that were told to stop are settled"),
        (recovered.reaped, "left-over processes were ended"),
    ] {
        if count > 0 {
            session.out.talk(&format!("recovered: {count} {what}"));
        }
    }
    session.out.talk(&format!(
        "listening on {} with data in {}",
        file.url,
        session.data_dir.path().display()
    ));
    if let Some(address) = server.open_at() {
        session.out.talk(&format!("open to others on {address}"));
    }
    if session.out.is_json() {
        let value =
            serde_json::json!({ "url": file.url, "pid": file.pid, "data_dir": session.data_dir.path() });
        Out::text(&format!("{value}\n"))?;
    }
    Ok(())
}

/// Prints a link to whoever started the server and looks (SEC-7); a link in a log would be a key for whoever reads it.
async fn show_the_way_in(session: &Session) {
    let hint = "`conductor open` prints a link to the pages";
    if !std::io::stderr().is_terminal() {
        session.out.talk(hint);
        return;
    }
    match open::link(session).await {
        Ok(link) => session.out.talk(&format!(
            "the pages, for one browser, within ten minutes: {}",
            link.url
        )),
        Err(_) => session.out.talk(hint),
    }
}

/// Finds what is there; a test command that needs something else says so itself.
pub(crate) async fn toolchain() -> Toolchain {
    let environment = environment::all();
    let found = usual_programs(&environment);
    Toolchain::find(&found, &environment)
        .await
        .unwrap_or_else(|_| Toolchain::system())
}

/// The usual programs that the operator's PATH has.
pub(crate) fn usual_programs(environment: &[(OsString, OsString)]) -> Vec<&'static str> {
    let path = environment
        .iter()
        .find(|(name, _)| name == "PATH")
        .map(|(_, value)| value.clone());
    let directories: Vec<PathBuf> = path.iter().flat_map(std::env::split_paths).collect();
    let is_there = |program: &&str| {
        directories
            .iter()
            .any(|directory| directory.join(program).is_file())
    };
    USUAL_PROGRAMS.into_iter().filter(is_there).collect()
}

/// Logs to stderr; `CONDUCTOR_LOG` says what, as in `CONDUCTOR_LOG=conductor_engine=debug`.
fn log_to_stderr() {
    let filter = EnvFilter::try_from_env("CONDUCTOR_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let _set_already = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .try_init();
}
