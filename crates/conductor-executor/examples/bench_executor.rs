//! Measures what a sandbox costs, beside what the same costs without one, and judges each ratio by its bar.
//!
//! `cargo xtask bench executor` prints medians of interleaved rounds, their ratio, and whether the bar of the issue that
//! asked for it holds. A bar that is missed, or could not be measured, ends it with 1. Run it as root on an idle machine,
//! with an engine and its image (`cargo xtask setup docker`); `bench_executor 10` makes fewer rounds.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "measures with the clock, plays the host, and prints"
)]

use std::error::Error;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command as Raw, ExitCode, Stdio};
use std::time::{Duration, Instant};

use conductor_domain::id::{EffectId, RunId};
use conductor_domain::testing::Ending;
use conductor_domain::time::Millis;
use conductor_executor::local::{Limits, MayMiss};
use conductor_executor::{Docker, Local, Toolchain, docker, local};
use conductor_port::executor::{Command, CommandResult, Executor as _, Profile, Sandbox, SandboxSpec};

type Outcome<T> = Result<T, Box<dyn Error>>;

const ROUNDS: usize = 200;
const STREAM: u64 = 500 * 1024 * 1024;
/// By how much either end of a stream may grow while it carries one, however long it is.
const BOUNDED: u64 = 64 * 1024 * 1024;

#[tokio::main]
async fn main() -> Outcome<ExitCode> {
    let rounds = std::env::args().nth(1).map(|rounds| rounds.parse()).transpose()?;
    let rounds = rounds.unwrap_or(ROUNDS);
    let base = tempfile::tempdir()?;
    let work = base.path().join("work");
    std::fs::create_dir(&work)?;
    std::fs::write(work.join("8k"), vec![b'x'; 8 * 1024])?;
    let local = Local::new(local::Settings {
        root: base.path().join("executor"),
        guest: None,
        toolchain: Toolchain::system(),
        limits: Limits::default(),
        may_miss: MayMiss::default(),
    })?;
    let sandbox = local.open(spec(&work)?).await?;
    let container = container(base.path(), &work).await;

    let beside = container.as_ref().map(AsRef::as_ref);
    let mut rows = commands(rounds, sandbox.as_ref(), beside).await?;
    rows.push(views(rounds, sandbox.as_ref()).await?);
    rows.push(readiness(rounds / 4, &local, &work).await?);
    rows.extend(streams(sandbox.as_ref()).await?);
    sandbox.close().await?;
    if let Ok(container) = container {
        container.close().await?;
    }

    for row in &rows {
        println!("{}", row.said());
    }
    let missed = rows.iter().filter(|row| !row.holds()).count();
    println!("{} of {} bars hold", rows.len() - missed, rows.len());
    Ok(if missed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Opens a container, or says why there is none.
async fn container(base: &Path, work: &Path) -> Result<Box<dyn Sandbox>, String> {
    let docker = Docker::new(docker::Settings {
        root: base.join("docker"),
        guest: None,
        program: "docker".into(),
        environment: Vec::new(),
        image: docker::BASE_IMAGE.to_owned(),
        path: None,
        limits: Limits::default(),
        may_be_old: docker::MayBeOld::No,
    });
    let docker = docker.await.map_err(|error| error.to_string())?;
    let spec = spec(work).map_err(|error| error.to_string())?;
    docker.open(spec).await.map_err(|fault| fault.to_string())
}

/// `bash -c true` raw, in the local sandbox, and in a container, in turns.
async fn commands(
    rounds: usize,
    sandbox: &dyn Sandbox,
    container: Result<&dyn Sandbox, &String>,
) -> Outcome<Vec<Row>> {
    let (mut raws, mut locals, mut dockers) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        raws.push(raw(Raw::new("bash").args(["-c", "true"]).env_clear())?);
        locals.push(run(sandbox, &["bash", "-c", "true"]).await?);
        if let Ok(container) = container {
            dockers.push(run(container, &["bash", "-c", "true"]).await?);
        }
    }
    let local = median(locals);
    let docker = match container {
        Ok(_) => Row::timed(
            "docker: bash -c true",
            median(dockers),
            "local: bash -c true",
            local,
            2.0,
        ),
        Err(why) => Row::NotRun {
            what: "docker: bash -c true",
            why: why.clone(),
        },
    };
    Ok(vec![
        Row::timed(
            "local: bash -c true",
            local,
            "raw bash -c true",
            median(raws),
            1.5,
        ),
        docker,
    ])
}

async fn views(rounds: usize, sandbox: &dyn Sandbox) -> Outcome<Row> {
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    let mut echo = Echo::start()?;
    for _ in 0..rounds {
        let begun = Instant::now();
        sandbox.view("8k").await??;
        inside.push(begun.elapsed());
        outside.push(echo.round_trip()?);
    }
    let (inside, outside) = (median(inside), median(outside));
    Ok(Row::timed(
        "view of 8 KiB",
        inside,
        "pipe round trip",
        outside,
        4.0,
    ))
}

async fn readiness(rounds: usize, local: &Local, work: &Path) -> Outcome<Row> {
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    for _ in 0..rounds.max(1) {
        let begun = Instant::now();
        let fresh = local.open(spec(work)?).await?;
        inside.push(begun.elapsed());
        fresh.close().await?;
        let arguments = ["--unshare-all", "--ro-bind", "/", "/", "true"];
        outside.push(raw(Raw::new("bwrap").args(arguments))?);
    }
    let (inside, outside) = (median(inside), median(outside));
    Ok(Row::timed(
        "sandbox ready",
        inside,
        "raw bwrap --unshare-all true",
        outside,
        3.0,
    ))
}

/// 500 MB of output: as fast as half of `cat | cat`, and without either end growing with it.
async fn streams(sandbox: &dyn Sandbox) -> Outcome<Vec<Row>> {
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    let bytes = STREAM.to_string();
    // What this process held so far is not the stream's.
    std::fs::write("/proc/self/clear_refs", "5")?;
    let before = (
        memory("VmRSS", "/proc/self/status")?,
        guest_memory(sandbox).await?,
    );
    for _ in 0..5 {
        inside.push(run(sandbox, &["head", "-c", &bytes, "/dev/zero"]).await?);
        let script = format!("head -c {STREAM} /dev/zero | cat | cat > /dev/null");
        outside.push(raw(Raw::new("bash").args(["-c", &script]))?);
    }
    let after = (
        memory("VmHWM", "/proc/self/status")?,
        guest_memory(sandbox).await?,
    );
    let (inside, outside) = (median(inside), median(outside));
    Ok(vec![
        Row::rated("500 MB of output", inside, "cat | cat", outside, 0.5),
        Row::Grown {
            what: "host while streaming",
            peak: after.0,
            by: after.0.saturating_sub(before.0),
        },
        Row::Grown {
            what: "guest while streaming",
            peak: after.1,
            by: after.1.saturating_sub(before.1),
        },
    ])
}

fn memory(field: &str, status: &str) -> Outcome<u64> {
    kibibytes(field, &std::fs::read_to_string(status)?)
}

fn kibibytes(field: &str, status: &str) -> Outcome<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let number = line.and_then(|line| line.trim_start_matches(':').split_whitespace().next());
    Ok(number.ok_or("the kernel tells no such figure")?.parse::<u64>()? * 1024)
}

/// The most that the guest has held so far.
async fn guest_memory(sandbox: &dyn Sandbox) -> Outcome<u64> {
    let result = ran(sandbox, &["cat", "/proc/1/status"]).await?;
    kibibytes("VmHWM", &String::from_utf8_lossy(&result.output))
}

fn spec(work: &Path) -> Outcome<SandboxSpec> {
    let (effect, run) = (EffectId::parse("r1.1.0")?, RunId::parse("r1")?);
    Ok(SandboxSpec::new(effect, run, Profile::Tool, work.to_owned()))
}

async fn run(sandbox: &dyn Sandbox, words: &[&str]) -> Outcome<Duration> {
    let begun = Instant::now();
    ran(sandbox, words).await?;
    Ok(begun.elapsed())
}

async fn ran(sandbox: &dyn Sandbox, words: &[&str]) -> Outcome<CommandResult> {
    let command = Command {
        argv: words.iter().map(|&word| word.to_owned()).collect(),
        environment: vec![],
        time: Millis::seconds(60),
        output: 64 * 1024,
        listener: None,
    };
    let result = sandbox.bash(command).await?;
    if result.ending != (Ending::Exited { code: 0 }) {
        return Err(format!("{words:?} ended with {:?}", result.ending).into());
    }
    Ok(result)
}

fn raw(command: &mut Raw) -> Outcome<Duration> {
    let begun = Instant::now();
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    let took = begun.elapsed();
    if !status.success() {
        return Err(format!("{command:?} ended with {status}").into());
    }
    Ok(took)
}

/// A process that answers a byte with a byte.
struct Echo(Child);

impl Echo {
    fn start() -> Outcome<Self> {
        let echo = Raw::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        Ok(Self(echo))
    }

    fn round_trip(&mut self) -> Outcome<Duration> {
        let begun = Instant::now();
        self.0.stdin.as_mut().ok_or("piped")?.write_all(b"x")?;
        self.0.stdout.as_mut().ok_or("piped")?.read_exact(&mut [0])?;
        Ok(begun.elapsed())
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// One figure and its bar.
enum Row {
    /// So long beside so long.
    Timed(Ratio),
    /// So fast beside so fast.
    Rated(Ratio),
    /// So much more memory.
    Grown { what: &'static str, peak: u64, by: u64 },
    /// It could not be measured, which is no success.
    NotRun { what: &'static str, why: String },
}

struct Ratio {
    what: &'static str,
    inside: Duration,
    beside: &'static str,
    outside: Duration,
    bar: f64,
}

impl Row {
    fn timed(
        what: &'static str,
        inside: Duration,
        beside: &'static str,
        outside: Duration,
        bar: f64,
    ) -> Self {
        Self::Timed(Ratio {
            what,
            inside,
            beside,
            outside,
            bar,
        })
    }

    fn rated(
        what: &'static str,
        inside: Duration,
        beside: &'static str,
        outside: Duration,
        bar: f64,
    ) -> Self {
        Self::Rated(Ratio {
            what,
            inside,
            beside,
            outside,
            bar,
        })
    }

    fn holds(&self) -> bool {
        match self {
            Self::Timed(ratio) => ratio.times() <= ratio.bar,
            Self::Rated(ratio) => 1.0 / ratio.times() >= ratio.bar,
            Self::Grown { by, .. } => *by <= BOUNDED,
            Self::NotRun { .. } => false,
        }
    }

    fn said(&self) -> String {
        let verdict = if self.holds() { "holds" } else { "MISSED" };
        match self {
            Self::Timed(ratio) => ratio.said("≤", ratio.times(), verdict),
            Self::Rated(ratio) => ratio.said("≥", 1.0 / ratio.times(), verdict),
            Self::Grown { what, peak, by } => format!(
                "{what:22} {:>10} KiB more, {} KiB at its peak   bar ≤ {} KiB   {verdict}",
                by / 1024,
                peak / 1024,
                BOUNDED / 1024
            ),
            Self::NotRun { what, why } => format!("{what:22} NOT RUN: {why}   {verdict}"),
        }
    }
}

impl Ratio {
    fn times(&self) -> f64 {
        self.inside.as_secs_f64() / self.outside.as_secs_f64()
    }

    fn said(&self, sign: &str, ratio: f64, verdict: &str) -> String {
        format!(
            "{:22} {:>10.3} ms   {:30} {:>10.3} ms   ratio {ratio:>6.2}   bar {sign} {}   {verdict}",
            self.what,
            self.inside.as_secs_f64() * 1e3,
            self.beside,
            self.outside.as_secs_f64() * 1e3,
            self.bar,
        )
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
