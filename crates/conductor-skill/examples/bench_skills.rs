//! Measures installing skills: `cargo run --release -p conductor-skill --example bench_skills`.
//!
//! Every figure stands beside a baseline of the same run, in interleaved rounds, by their medians; a bar that is missed fails
//! the whole. A container needs the image that `cargo xtask setup docker` provides; the command line and the two other
//! installers are what `cargo xtask bench skills` builds and installs before.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::cast_precision_loss,
    reason = "a program for people at a terminal"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use conductor_domain::fault::Fault;
use conductor_domain::id::CommitId;
use conductor_port::target::{Changed, Mode, Placement, TargetAdapter as _};
use conductor_port::upstream::Upstream;
use conductor_skill::config::Config;
use conductor_skill::docker::{Docker, DockerAdapter};
use conductor_skill::environment::ContainerName;
use conductor_skill::lock::Lock;
use conductor_skill::resolve::Freshness;
use conductor_skill::targets::Surroundings;
use conductor_skill::work::{Scope, Work};

const ROUNDS: usize = 7;
/// How long an apply that has nothing to do may take, as aimed at.
const AT_REST: Duration = Duration::from_millis(100);

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Outcome {
    let dir = tempfile::tempdir()?;
    let bars = [
        many_places(dir.path()).await?,
        nothing_to_do(dir.path()).await?,
        container(dir.path()).await?,
        by_command_line(dir.path())?,
    ];
    let missed: Vec<&str> = bars.into_iter().filter_map(Bar::missed).collect();
    if missed.is_empty() {
        Ok(())
    } else {
        Err(format!("bars that were missed: {}", missed.join(", ")).into())
    }
}

/// Whether a figure is as it must be.
enum Bar {
    Met,
    Missed(&'static str),
}

impl Bar {
    fn of(name: &'static str, is_met: bool) -> Self {
        if is_met { Self::Met } else { Self::Missed(name) }
    }

    fn missed(self) -> Option<&'static str> {
        match self {
            Self::Met => None,
            Self::Missed(name) => Some(name),
        }
    }
}

/// 50 skills into 4 directories of this machine, against `cp -r` of the same.
async fn many_places(dir: &Path) -> Outcome<Bar> {
    let source = dir.join("fifty");
    skills(&source, 50)?;
    let mut ours = Vec::new();
    let mut copies = Vec::new();
    for round in 0..ROUNDS {
        let here = dir.join(format!("places-{round}"));
        let start = Instant::now();
        for place in 0..4 {
            let to = here.join(format!("cp-{place}"));
            fs::create_dir_all(&to)?;
            run(
                "cp",
                &[
                    "-r",
                    &format!("{}/.", source.display()),
                    &to.display().to_string(),
                ],
            )?;
        }
        copies.push(start.elapsed());
        let mut work = work(&source, &here, 50, 4, "copy")?;
        let start = Instant::now();
        let plan = work.plan(&scope()).await;
        let report = work.apply(plan, Changed::Keep, Arc::new(|_| {})).await?;
        ours.push(start.elapsed());
        assert_eq!((report.items.len(), report.failures.len()), (200, 0));
    }
    let (ours, copies) = (median(&mut ours), median(&mut copies));
    println!(
        "places: 50 skills x 4 directories {:.0} ms, cp -r {:.0} ms, ratio {:.2} (bar 1.5)",
        ms(ours),
        ms(copies),
        ms(ours) / ms(copies)
    );
    Ok(Bar::of("places", ms(ours) <= 1.5 * ms(copies)))
}

/// Applying 200 skills that are all in place; an aim, not a bar, unless it takes many times as long.
async fn nothing_to_do(dir: &Path) -> Outcome<Bar> {
    let source = dir.join("two-hundred");
    skills(&source, 200)?;
    let mut slowest = Duration::ZERO;
    for mode in ["symlink", "copy"] {
        let mut work = work(&source, &dir.join(format!("still-{mode}")), 200, 1, mode)?;
        let plan = work.plan(&scope()).await;
        work.apply(plan, Changed::Keep, Arc::new(|_| {})).await?;
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let start = Instant::now();
            let plan = work.plan(&scope()).await;
            work.apply(plan, Changed::Keep, Arc::new(|_| {})).await?;
            times.push(start.elapsed());
        }
        let took = median(&mut times);
        slowest = slowest.max(took);
        let said = if took <= AT_REST { "met" } else { "missed" };
        println!(
            "rest: apply of 200 skills in place by {mode} {:.0} ms, the aim of {:.0} ms is {said}",
            ms(took),
            ms(AT_REST)
        );
    }
    Ok(Bar::of("rest", slowest <= 5 * AT_REST))
}

/// A skill of 1 000 files into a container, against `docker cp` of the same tree and five `docker exec true`.
async fn container(dir: &Path) -> Outcome<Bar> {
    let source = dir.join("thousand");
    for number in 0..1000 {
        let path = source.join(format!("part-{}/file-{number}.md", number % 20));
        fs::create_dir_all(path.parent().unwrap_or(&source))?;
        fs::write(path, format!("file {number}\n").repeat(80))?;
    }
    fs::write(
        source.join("SKILL.md"),
        "---\nname: thousand\ndescription: d\n---\n",
    )?;
    let name = format!("conductor-skill-bench-{}", std::process::id());
    run(
        "docker",
        &[
            "run",
            "--detach",
            "--rm",
            "--network=none",
            "--init",
            "--name",
            &name,
            "debian:12",
            "sleep",
            "infinity",
        ],
    )?;
    let _guard = Guard(name.clone());
    let environment: Vec<_> = std::env::vars_os().collect();
    let docker = Docker::find(&environment)?;
    let adapter = DockerAdapter::new(docker, ContainerName::parse(&name)?);
    let (mut ours, mut copies, mut execs) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let start = Instant::now();
        run(
            "docker",
            &[
                "cp",
                &source.display().to_string(),
                &format!("{name}:/srv/cp-{round}"),
            ],
        )?;
        copies.push(start.elapsed());
        let start = Instant::now();
        for _ in 0..5 {
            run("docker", &["exec", &name, "true"])?;
        }
        execs.push(start.elapsed());
        let place = Placement::new(format!("/srv/ours-{round}"), "thousand")?;
        let start = Instant::now();
        adapter
            .install(&source, &place, Mode::Copy, Changed::Keep)
            .await?;
        ours.push(start.elapsed());
    }
    let (ours, copies, execs) = (median(&mut ours), median(&mut copies), median(&mut execs));
    println!(
        "container: 1000 files {:.0} ms, docker cp {:.0} ms + 5 docker exec {:.0} ms, ratio {:.2} (bar 1.0)",
        ms(ours),
        ms(copies),
        ms(execs),
        ms(ours) / (ms(copies) + ms(execs))
    );
    Ok(Bar::of("container", ours <= copies + execs))
}

/// The same local install by three programs as a person starts them: ours, npm's `skills`, and `eden-skills`.
fn by_command_line(dir: &Path) -> Outcome<Bar> {
    let source = dir.join("fifty");
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let ours = std::env::current_exe()?.with_file_name("../conductor");
    let node = target.join("tools/node22/bin/node");
    let skills = target.join("tools/skills-npm/node_modules/skills/bin/cli.mjs");
    let eden = target.join("tools/eden-skills/bin/eden-skills");
    for program in [&ours, &node, &skills, &eden] {
        if !program.exists() {
            return Err(format!(
                "{} is not there; use `cargo xtask bench skills`",
                program.display()
            )
            .into());
        }
    }
    let mut is_fastest = true;
    for mode in [Mode::Copy, Mode::Symlink] {
        let copy: &[&str] = match mode {
            Mode::Copy => &["--copy"],
            Mode::Symlink => &[],
        };
        let mut times = [const { Vec::new() }; 3];
        for round in 0..ROUNDS {
            let home = |name: &str| dir.join(format!("home-{name}-{}-{round}", mode.word()));
            let (one, two, three) = (home("ours"), home("npm"), home("eden"));
            times[0].push(install(
                Command::new(&ours)
                    .args(["skills", "install"])
                    .arg(&source)
                    .args(["--all", "--yes"])
                    .args(copy),
                &one,
            )?);
            times[1].push(install(
                Command::new(&node)
                    .arg(&skills)
                    .arg("add")
                    .arg(&source)
                    .args(["--skill", "*", "--agent", "claude-code", "--global", "--yes"])
                    .args(copy)
                    .envs([("DISABLE_TELEMETRY", "1"), ("DO_NOT_TRACK", "1")]),
                &two,
            )?);
            times[2].push(install(
                Command::new(&eden)
                    .arg("install")
                    .arg(&source)
                    .args(["--all", "--yes", "--target", "claude-code"])
                    .args(copy),
                &three,
            )?);
        }
        let [ours, npm, eden] = times.map(|mut times| median(&mut times));
        is_fastest &= ours < npm && ours < eden;
        println!(
            "install by {}: 50 skills {:.0} ms, npm skills {:.0} ms ({:.1} times), eden-skills {:.0} ms ({:.1} times)",
            mode.word(),
            ms(ours),
            ms(npm),
            ms(npm) / ms(ours),
            ms(eden),
            ms(eden) / ms(ours)
        );
    }
    Ok(Bar::of("install", is_fastest))
}

/// Installs into a new home, times it, and makes sure that the skills are there.
fn install(command: &mut Command, home: &Path) -> Outcome<Duration> {
    let installed: PathBuf = home.join(".claude/skills");
    // An agent that is there is found; one that is not is no installer's fault.
    fs::create_dir_all(&installed)?;
    command
        .env_remove("CONDUCTOR_DATA_DIR")
        .env("HOME", home)
        .env("XDG_CONFIG_HOME", home.join(".config"))
        .env("CI", "1")
        .current_dir(home)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let start = Instant::now();
    let ended = command.output()?;
    let took = start.elapsed();
    let arrived = fs::read_dir(&installed)?
        .flatten()
        .filter(|entry| entry.path().join("docs/6.md").is_file())
        .count();
    if !ended.status.success() || arrived != 50 {
        return Err(format!(
            "{command:?} ended with {} and {arrived} skills: {}{}",
            ended.status,
            String::from_utf8_lossy(&ended.stdout),
            String::from_utf8_lossy(&ended.stderr)
        )
        .into());
    }
    Ok(took)
}

fn skills(at: &Path, number: usize) -> Outcome {
    for skill in 0..number {
        let directory = at.join(format!("skill-{skill}"));
        fs::create_dir_all(directory.join("docs"))?;
        fs::write(
            directory.join("SKILL.md"),
            format!(
                "---\nname: skill-{skill}\ndescription: d\nlicense: MIT\n---\n{}",
                "text\n".repeat(400)
            ),
        )?;
        for file in 0..7 {
            fs::write(
                directory.join(format!("docs/{file}.md")),
                format!("{skill} {file}\n").repeat(300),
            )?;
        }
    }
    Ok(())
}

fn work(source: &Path, here: &Path, skills: usize, places: usize, mode: &str) -> Outcome<Work> {
    let mut text = "version = 1\n".to_owned();
    for skill in 0..skills {
        text.push_str(&format!(
            "[[skills]]\nid = \"skill-{skill}\"\nsource = {{ path = \"{}/skill-{skill}\" }}\ninstall = {{ mode = \"{mode}\" }}\n",
            source.display()
        ));
        for place in 0..places {
            text.push_str(&format!(
                "[[skills.targets]]\npath = \"{}/to-{place}\"\n",
                here.display()
            ));
        }
    }
    let config = Config::parse(&text, &here.join("skills.toml"), None)?;
    let around = Surroundings {
        home: None,
        store: config.storage.clone(),
        environment: Vec::new(),
    };
    Ok(Work {
        config,
        lock: Lock::default(),
        around,
        upstream: Arc::new(Nowhere),
    })
}

fn scope() -> Scope {
    Scope {
        skills: Vec::new(),
        environments: Vec::new(),
        changed: Changed::Keep,
        freshness: Freshness::Locked,
    }
}

/// Nothing comes from git here.
#[derive(Debug)]
struct Nowhere;

#[async_trait]
impl Upstream for Nowhere {
    async fn resolve(&self, url: &str, _: Option<&str>) -> Result<CommitId, Fault> {
        Err(Fault::permanent(url))
    }

    async fn export(&self, url: &str, _: &CommitId, _: &Path) -> Result<(), Fault> {
        Err(Fault::permanent(url))
    }
}

struct Guard(String);

impl Drop for Guard {
    fn drop(&mut self) {
        let _best_effort = run("docker", &["rm", "--force", &self.0]);
    }
}

fn run(program: &str, arguments: &[&str]) -> Outcome {
    let status = Command::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{program} {arguments:?} ended with {status}").into())
    }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
