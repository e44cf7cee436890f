//! What happens to a database server happens to nobody's run: restarts, cut connections, refusals, a full
//! disk, no connection left, another version. Each is named, nothing is lost, nothing is done twice.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use conductor_it::Stage;
use conductor_it::program::HOPELESS;
use conductor_it::stage::{Executor, Play, REPO};
use conductor_store::Database;
use nix::sys::signal::Signal;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};

use crate::crash::live;
use crate::postgres::own_server::{OwnServer, Stop};
use crate::postgres::{column, database, execute, raw};
use crate::records::{again_with_own_mounts, fill, is_inside, trouble};
use crate::{GREETING, PROGRAM};

/// What a server does is nobody's fault, so no run is held because of it.
const LIMITS: &str =
    "[limits]\npoll-seconds = 1\ninterruptions = 1000\neffect-retries = 1000\nagent-retries = 1000\n";

fn play(address: &str) -> Play {
    Play {
        settings: LIMITS.to_owned(),
        executor: Executor::UnsafePlain,
        database_url: Some(address.to_owned()),
        ..Play::shell(GREETING)
    }
}

/// Carries a run all the way while something strikes the database again and again, a number of times at most: a busy machine
/// would otherwise never get anywhere in between. Tells how often it was struck.
async fn carried_through<S>(
    stage: &mut Stage,
    most: u32,
    strike: impl Fn() -> S + Send + 'static,
) -> Result<u32>
where
    S: Future<Output = ()> + Send,
{
    let is_over = Arc::new(AtomicBool::new(false));
    let striking = tokio::spawn({
        let is_over = is_over.clone();
        async move {
            let mut strikes = 0;
            while strikes < most && !is_over.load(Ordering::SeqCst) {
                tokio::time::sleep(Duration::from_millis(300 + u64::from(strikes * 131 % 900))).await;
                strike().await;
                strikes += 1;
            }
            strikes
        }
    });
    let issue = stage.person.open_issue(REPO, "Greet people", "Please.")?;
    let mut run = None;
    let lived = live(stage, issue, &mut run).await;
    is_over.store(true, Ordering::SeqCst);
    let strikes = striking.await?;
    ensure!(lived?, "the server ended by itself\n{}", stage.log());
    let run = run.context("a run")?;
    // The last strike may still be felt.
    stage.wait(&run, "its end", |run| run["run"]["phase"] == "completed")?;
    stage.verify(&run)?;
    stage.verify_forge(&run, issue)?;
    Ok(strikes)
}

/// DEP-1, RUN-4: the database server is restarted again and again, politely and as by a power cut.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_outlives_restarts_of_the_database_server() -> Result<()> {
    let server = Arc::new(OwnServer::start("-c fsync=off"));
    let mut stage = Stage::set(PROGRAM, &play(&server.address("postgres"))).await?;
    let is_polite = Arc::new(AtomicBool::new(false));
    // The server goes with its last owner, which is not to be whoever strikes it.
    let struck = server.clone();
    let strikes = carried_through(&mut stage, 6, move || {
        let (server, is_polite) = (struck.clone(), is_polite.clone());
        async move {
            let how = if is_polite.fetch_xor(true, Ordering::SeqCst) {
                Stop::Fast
            } else {
                Stop::Immediate
            };
            let restarted = tokio::task::spawn_blocking(move || {
                server.stop(how);
                server.start_again();
            });
            restarted.await.expect("the server is restarted");
        }
    })
    .await?;
    println!("{strikes} restarts");
    drop(stage);
    drop(server);
    ensure!(strikes >= 3, "only {strikes} restarts");
    Ok(())
}

/// DEP-1, RUN-4: all connections are cut again and again.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_outlives_cut_connections() -> Result<()> {
    let address = database().await;
    let mut stage = Stage::set(PROGRAM, &play(&address)).await?;
    let strikes = carried_through(&mut stage, 10, move || {
        let address = address.clone();
        async move {
            let end = "SELECT CAST(pg_terminate_backend(pid) AS TEXT) FROM pg_stat_activity \
                WHERE datname = current_database() AND application_name = 'conductor'";
            column(&mut raw(&address).await, end).await;
        }
    })
    .await?;
    println!("all connections were cut {strikes} times");
    ensure!(strikes >= 5, "only {strikes} cuts");
    Ok(())
}

/// DEP-1, RUN-4: the server refuses a record now and then, half of them only at the commit: serialization failures, deadlocks,
/// no room, no memory, statements that took too long, a copy that takes no writes.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_outlives_refused_commits() -> Result<()> {
    let address = database().await;
    let mut stage = Stage::set(PROGRAM, &play(&address)).await?;
    let mut other = raw(&address).await;
    execute(
        &mut other,
        "CREATE SEQUENCE strikes; CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ \
         DECLARE n BIGINT := nextval('strikes'); \
         states TEXT[] := ARRAY['40001', '40P01', '53100', '53200', '57014', '25006', '55P03']; \
         BEGIN IF n % 31 = 0 THEN RAISE EXCEPTION USING ERRCODE = states[n / 31 % 7 + 1], MESSAGE = 'struck'; END IF; \
         RETURN NULL; END $$; \
         CREATE TRIGGER refuse AFTER INSERT ON records FOR EACH ROW EXECUTE FUNCTION refuse(); \
         CREATE CONSTRAINT TRIGGER refuse_late AFTER INSERT ON records DEFERRABLE INITIALLY DEFERRED \
         FOR EACH ROW EXECUTE FUNCTION refuse()",
    )
    .await;
    carried_through(&mut stage, 0, || async {}).await?;
    let strikes = column(&mut other, "SELECT CAST(last_value / 31 AS TEXT) FROM strikes").await;
    println!("{} commits were refused", strikes[0]);
    ensure!(strikes[0].parse::<u32>()? >= 7, "only {strikes:?} were refused");
    Ok(())
}

/// DEP-1, RUN-4: commits are kept and their answers are lost with the connection, so that nobody knows whether they were kept.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_outlives_commits_whose_answers_are_lost() -> Result<()> {
    let address = database().await;
    let between = tempfile::tempdir()?;
    let (before, socket_dir) = address.split_once("?host=").context("a socket's directory")?;
    // An address without a port means this one.
    let socket = ".s.PGSQL.5432";
    let lost = Arc::new(AtomicU32::new(0));
    let listener = UnixListener::bind(between.path().join(socket))?;
    let server = Path::new(socket_dir).join(socket);
    let losing = tokio::spawn({
        let lost = lost.clone();
        async move {
            let kept = Arc::new(AtomicU32::new(0));
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = UnixStream::connect(&server).await else {
                    continue;
                };
                tokio::spawn(lose_answers(client, server, kept.clone(), lost.clone()));
            }
        }
    });
    let through = format!("{before}?host={}", between.path().display());
    let mut stage = Stage::set(PROGRAM, &play(&through)).await?;
    carried_through(&mut stage, 0, || async {}).await?;
    losing.abort();
    let lost = lost.load(Ordering::SeqCst);
    println!("the answers of {lost} commits were lost");
    ensure!(lost >= 3, "only {lost} answers were lost");
    let log = stage.program.log();
    ensure!(!log.contains("set aside"), "{log}");
    Ok(())
}

/// Carries bytes both ways; the answers to some commits, one in thirty-two and in no rhythm, are carried nowhere.
async fn lose_answers(
    mut client: UnixStream,
    mut server: UnixStream,
    commits: Arc<AtomicU32>,
    lost: Arc<AtomicU32>,
) -> std::io::Result<()> {
    let (mut up, mut down) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        tokio::select! {
            count = client.read(&mut up) => {
                let said = &up[..count?];
                if said.is_empty() {
                    return Ok(());
                }
                server.write_all(said).await?;
            }
            count = server.read(&mut down) => {
                let said = &down[..count?];
                if said.is_empty() {
                    return Ok(());
                }
                // How a server says that a transaction was kept.
                let is_kept = said.windows(7).any(|words| words == b"COMMIT\0");
                // The first are those of the start, which may fail.
                let drawn = |n: u32| n > 20 && n.wrapping_mul(0x9E37_79B1) >> 27 == 1;
                if is_kept && drawn(commits.fetch_add(1, Ordering::SeqCst)) {
                    lost.fetch_add(1, Ordering::SeqCst);
                    return Ok(());
                }
                client.write_all(said).await?;
            }
        }
    }
}

/// A database server that is away is named, by the server, by the doctor, and without a server; one line tells when it
/// begins and one when it is over.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_server_that_is_away_is_named() -> Result<()> {
    let server = OwnServer::start("-c fsync=off");
    let mut stage = Stage::set(PROGRAM, &play(&server.address("postgres"))).await?;
    let run = stage.start_run("Wait for me")?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    server.stop(Stop::Fast);
    stage.program.say(&["run", "pause", &run])?.refused("CDR0610")?;
    stage.program.say(&["run", "show", &run])?.refused("CDR0610")?;
    told(&stage, |trouble| trouble.contains("CDR0610")).await?;
    let doctor = stage.program.say(&["doctor"])?;
    ensure!(
        doctor.code == 1 && doctor.stdout.contains("cannot reach the database server"),
        "{}",
        doctor.stdout
    );
    server.start_again();
    stage.wait(&run, "the database", |_| true)?;
    stage.program.say(&["run", "pause", &run])?.done()?;
    stage.program.say(&["run", "resume", &run])?.done()?;
    // It is over when whatever met the trouble has worked again, which may be a tick later.
    let begun = std::time::Instant::now();
    while !stage.program.log().contains("works again") && begun.elapsed() < conductor_it::program::HOPELESS {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let log = stage.program.log();
    ensure!(log.matches("cannot go on; trying again").count() == 1, "{log}");
    ensure!(log.matches("works again").count() == 1, "{log}");

    stage.program.stop()?;
    server.stop(Stop::Fast);
    stage.program.say(&["run", "list"])?.refused("CDR0610")?;
    stage.program.start_in_vain()?.refused("CDR0610")?;
    server.start_again();
    stage.program.start(None)?;
    stage.carry_through(&run).await?;
    stage.verify(&run)
}

/// A database server without a free connection is named; what could not be asked is not begun, and goes on later.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_server_without_a_free_connection_is_named() -> Result<()> {
    let server = OwnServer::start("-c fsync=off -c max_connections=16 -c superuser_reserved_connections=0");
    let address = server.address("postgres");
    let stage = Stage::set(PROGRAM, &play(&address)).await?;
    let run = stage.start_run("Wait for me")?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    // The server's own sessions are ended and others take their places, all of them.
    stage.program.signal(Signal::SIGSTOP)?;
    let mut hogs = vec![raw(&address).await];
    let end = "SELECT CAST(pg_terminate_backend(pid, 10000) AS TEXT) FROM pg_stat_activity \
        WHERE application_name = 'conductor'";
    column(&mut hogs[0], end).await;
    let options: sqlx::postgres::PgConnectOptions = address.parse()?;
    while let Ok(hog) = sqlx::ConnectOptions::connect(&options).await {
        hogs.push(hog);
    }
    stage.program.signal(Signal::SIGCONT)?;
    stage.program.say(&["run", "pause", &run])?.refused("CDR0617")?;
    let mut beside = stage.beside("beside")?;
    beside.start_in_vain()?.refused("CDR0617")?;
    drop(hogs);
    stage.wait(&run, "a connection", |_| true)?;
    stage.program.say(&["run", "pause", &run])?.done()?;
    stage.program.say(&["run", "resume", &run])?.done()?;
    stage.carry_through(&run).await?;
    stage.verify(&run)
}

/// DEP-3: a server of another version is refused at its start, and one that meets another version when it comes back to
/// its database ends by itself; neither does anything there.
#[tokio::test(flavor = "multi_thread")]
async fn servers_of_different_versions_do_not_share_a_database() -> Result<()> {
    let address = database().await;
    let mut stage = Stage::set(PROGRAM, &play(&address)).await?;
    let run = stage.start_run("Wait for me")?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;
    let records = "SELECT CAST(COUNT(*) AS TEXT) FROM records";
    let mut theirs = raw(&address).await;
    // What a server of the next version holds as long as it works.
    let next = (Database::SCHEMA_VERSION + 1) * 10_000;
    let lock = format!("SELECT pg_advisory_lock_shared(1131376228, {next})");
    stage.program.signal(Signal::SIGSTOP)?;
    execute(&mut theirs, &lock).await;
    let end = "SELECT CAST(pg_terminate_backend(pid, 10000) AS TEXT) FROM pg_stat_activity \
        WHERE datname = current_database() AND application_name = 'conductor'";
    column(&mut theirs, end).await;
    let before = column(&mut theirs, records).await;
    stage.program.signal(Signal::SIGCONT)?;
    let log_before = stage.program.log().len();
    let begun = std::time::Instant::now();
    while stage.program.how_it_ended()?.is_none() {
        ensure!(
            begun.elapsed() < conductor_it::program::HOPELESS,
            "it works beside another version\n{}",
            stage.log()
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let said = stage.program.log().split_off(log_before);
    ensure!(
        said.contains("error[CDR0615]") && said.contains("hint: "),
        "{said}"
    );
    stage.program.start_in_vain()?.refused("CDR0615")?;
    ensure!(
        column(&mut theirs, records).await == before,
        "something was written"
    );
    drop(theirs);
    stage.program.start(None)?;
    stage.carry_through(&run).await?;
    stage.verify(&run)
}

/// The database server's disk is full in the middle of a run: what is asked is refused by name, what was kept stays, and
/// with room it goes on by itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_of_the_database_server_is_named_and_loses_nothing() -> Result<()> {
    if !is_inside() {
        return again_with_own_mounts();
    }
    let server = OwnServer::start("-c fsync=off");
    let disk = tempfile::Builder::new().prefix("small-").tempdir_in("/var/tmp")?;
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=24m", "tmpfs"])
        .arg(disk.path())
        .status()?;
    ensure!(mounted.success(), "mounting a small disk ended with {mounted}");
    let _taken_away = Mounted(disk.path());
    let space = disk.path().join("space");
    std::fs::create_dir(&space)?;
    std::fs::set_permissions(disk.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    server.lend(&space);
    let mut outside = raw(&server.address("postgres")).await;
    let make = format!("CREATE TABLESPACE small LOCATION '{}'", space.display());
    execute(&mut outside, &make).await;
    execute(&mut outside, "CREATE DATABASE small TABLESPACE small").await;
    let mut stage = Stage::set(PROGRAM, &play(&server.address("small"))).await?;
    let issue = stage.person.open_issue(REPO, "Greet people", "Please.")?;
    let run = stage.start_run_for(issue)?;
    stage.wait_for_phase(&run, "awaiting_plan_approval")?;

    let ballast = disk.path().join("ballast");
    fill(&ballast)?;
    let refused = fill_pages(&stage, &run)?;
    ensure!(
        refused.stderr.contains("CDR0620") && refused.stderr.contains("make room"),
        "{refused:?}"
    );
    // What still fits into a page goes well meanwhile, so that there is trouble now and then.
    told(&stage, |trouble| trouble.contains("CDR0620")).await?;
    let held = stage.show(&run)?["run"]["held"].clone();
    // The server itself does not come to harm, and neither does what it has.
    stage.program.say(&["audit", "verify"])?.done()?;
    ensure!(stage.show(&run)?["run"]["held"] == held, "nothing was changed");
    std::fs::remove_file(&ballast)?;
    if held == true {
        stage.program.say(&["run", "resume", &run])?.done()?;
    }
    stage.approve(&run)?;
    stage.merge(&run).await?;
    stage.wait_for_clean_up(&run)?;
    stage.verify(&run)?;
    stage.verify_writes(&run, issue)?;
    told(&stage, str::is_empty).await?;
    stage.program.stop()
}

/// Waits until the doctor tells this of the server's trouble.
async fn told(stage: &Stage, is_it: impl Fn(&str) -> bool) -> Result<()> {
    let begun = Instant::now();
    while !is_it(&trouble(stage)?) {
        ensure!(
            begun.elapsed() < HOPELESS,
            "{:?}\n{}",
            trouble(stage)?,
            stage.log()
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

/// Takes a disk away when dropped, so that its directory can go too.
struct Mounted<'a>(&'a Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _gone_with_the_test = Command::new("umount").arg("--lazy").arg(self.0).status();
    }
}

/// Pauses and resumes until the pages that the tables have are full, and one more is refused.
fn fill_pages(stage: &Stage, run: &str) -> Result<conductor_it::Said> {
    for n in 0..400 {
        let ask = if n % 2 == 0 { "pause" } else { "resume" };
        let said = stage.program.say(&["run", ask, run])?;
        if said.code != 0 {
            return Ok(said);
        }
    }
    anyhow::bail!("four hundred records found room on a full disk\n{}", stage.log())
}
