//! The stage of a story: a forge with a repository, an issue and a person; a server that is pointed at it.
//!
//! This module does not know how the story goes.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use conductor_forge::state::Role;
use conductor_forge::{Forge, Human, MergeMethod, Options, Webhook};
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{BETWEEN_LOOKS, HOPELESS, Program};

/// The repository of every story.
pub const REPO: &str = "acme/thing";
const SECRET: &str = "a secret for webhooks in tests";

/// What is played.
#[derive(Debug, Clone)]
pub struct Play {
    /// The files of the repository.
    pub repo: PathBuf,
    /// The scenario's text.
    pub scenario: String,
    /// The test command.
    pub test: String,
    /// Settings of the server beside the usual ones, as TOML.
    pub settings: String,
    /// How many runs may work at once.
    pub slots: u32,
    /// Where commands run.
    pub executor: Executor,
    /// The database on a server that keeps the records; a file in the data directory where absent.
    pub database_url: Option<String>,
}

/// Requests per hour: three times what an installation begins with, because a story packs a team's hours into minutes. With
/// the usual limit a hundred runs wait for the hour to end, as they should.
const HOURLY_LIMIT: u32 = 15_000;

/// Where the commands of a story run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Executor {
    /// In the local sandbox, as for everybody.
    Local,
    /// In a container each, of the image that everybody gets by default; the tests' own stands in for it.
    Docker,
    /// Without one: for stories that start hundreds of servers or measure the engine alone, and say nothing of sandboxes.
    UnsafePlain,
}

impl Executor {
    fn flags(self) -> Vec<String> {
        let flags: &[&str] = match self {
            Self::Local => &["--executor", "local"],
            Self::Docker => &["--executor", "docker"],
            Self::UnsafePlain => &["--executor", "unsafe-plain", "--i-know-this-is-unsafe-demo"],
        };
        flags.iter().map(|&flag| flag.to_owned()).collect()
    }
}

impl Play {
    /// A small repository whose test command is a shell script, for stories that are not about a language.
    pub fn shell(scenario: &str) -> Self {
        Self {
            repo: Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/shell"),
            scenario: scenario.to_owned(),
            test: "sh test.sh".to_owned(),
            settings: String::new(),
            slots: 2,
            executor: Executor::Local,
            database_url: None,
        }
    }
}

/// The stage, set.
pub struct Stage {
    /// The forge.
    pub forge: Forge,
    /// A person who may write.
    pub person: Human,
    /// The program under test.
    pub program: Program,
    dir: TempDir,
}

impl std::fmt::Debug for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stage")
            .field("dir", &self.dir.path())
            .finish_non_exhaustive()
    }
}

impl Stage {
    /// Sets the stage and starts the server.
    pub async fn set(binary: &str, play: &Play) -> Result<Self> {
        let mut stage = Self::set_without_server(binary, play).await?;
        stage.program.start(None)?;
        stage.register(play)?;
        Ok(stage)
    }

    /// Sets the stage; the server is not started.
    pub async fn set_without_server(binary: &str, play: &Play) -> Result<Self> {
        let dir = tempfile::Builder::new()
            .prefix("conductor-it-")
            .tempdir()
            .context("making a directory")?;
        let forge = Forge::start(Options {
            hourly_limit: HOURLY_LIMIT,
            ..Options::in_dir(dir.path().join("forge"))
        });
        let forge = forge.await.context("starting the forge")?;
        let (owner, name) = REPO.split_once('/').context("owner/name")?;
        forge
            .import_repository(owner, name, &play.repo)
            .await
            .context("importing the repository")?;
        let person = forge.create_user("dana").context("adding a person")?;
        forge
            .grant(REPO, "dana", Role::Write)
            .context("letting the person in")?;

        let write = |name: &str, text: &str| -> Result<String> {
            let path = dir.path().join(name);
            std::fs::write(&path, text).with_context(|| format!("writing {name}"))?;
            Ok(path.display().to_string())
        };
        let data_dir = dir.path().join("data");
        std::fs::create_dir(&data_dir).context("making the data directory")?;
        let database = play.database_url.as_ref();
        let database = database.map_or_else(String::new, |url| format!("database-url = \"{url}\"\n"));
        let settings = format!("{database}{}\n{}", play.settings, sandbox_settings());
        std::fs::write(data_dir.join("conductor.toml"), settings).context("writing the settings")?;
        let port = free_port()?;
        let mut serve = vec![
            "--listen".to_owned(),
            format!("127.0.0.1:{port}"),
            "--forge-url".to_owned(),
            forge.base_url(),
            "--app-id".to_owned(),
            forge.app_id().to_string(),
            "--private-key-file".to_owned(),
            write("app.pem", forge.app_key_pem())?,
            "--webhook-secret-file".to_owned(),
            write("webhook.secret", SECRET)?,
            "--agents".to_owned(),
            "scripted".to_owned(),
            "--scenario".to_owned(),
            write("scenario.toml", &play.scenario)?,
        ];
        serve.extend(play.executor.flags());
        let url = format!("http://127.0.0.1:{port}/webhooks/github");
        forge
            .set_webhook(Some(Webhook {
                url,
                secret: SECRET.to_owned(),
            }))
            .context("pointing webhooks at the server")?;
        Ok(Self {
            forge,
            person,
            program: Program::new(binary, data_dir, serve),
            dir,
        })
    }

    /// Another server beside the first, with the same settings and a data directory of its own; not started.
    pub fn beside(&self, name: &str) -> Result<Program> {
        let data_dir = self.dir.path().join(name);
        std::fs::create_dir(&data_dir).context("making a data directory")?;
        std::fs::copy(
            self.program.data_dir().join("conductor.toml"),
            data_dir.join("conductor.toml"),
        )
        .context("copying the settings")?;
        Ok(self.program.beside(data_dir, free_port()?))
    }

    /// Starts the server anew with another scenario; runs that are under way keep theirs.
    pub fn play_from_now_on(&mut self, scenario: &str) -> Result<()> {
        self.program.stop()?;
        std::fs::write(self.dir.path().join("scenario.toml"), scenario).context("writing the scenario")?;
        self.program.start(None)
    }

    /// A directory that servers can share.
    pub fn shared_dir(&self) -> String {
        self.dir.path().join("storage").display().to_string()
    }

    /// Makes the project and registers the repository.
    pub fn register(&self, play: &Play) -> Result<()> {
        self.program.say(&["project", "add", "acme"])?.done()?;
        let slots = play.slots.to_string();
        self.program
            .say(&[
                "repo",
                "add",
                REPO,
                "--project",
                "acme",
                "--test",
                &play.test,
                "--slots",
                &slots,
            ])?
            .done()?;
        Ok(())
    }

    /// Adds one more repository with its own issue, and registers it; returns its name and the issue's number.
    pub async fn add_repo(&self, play: &Play, name: &str) -> Result<(String, u64)> {
        let repo = format!("acme/{name}");
        self.forge
            .import_repository("acme", name, &play.repo)
            .await
            .context("importing a repository")?;
        self.forge
            .grant(&repo, "dana", Role::Write)
            .context("letting the person in")?;
        let issue = self
            .person
            .open_issue(&repo, "Greet people", "Please.")
            .context("opening an issue")?;
        self.program
            .say(&["repo", "add", &repo, "--project", "acme", "--test", &play.test])?
            .done()?;
        Ok((repo, issue))
    }

    /// Opens an issue and starts a run from it.
    pub fn start_run(&self, title: &str) -> Result<String> {
        let issue = self
            .person
            .open_issue(REPO, title, "Please.")
            .context("opening an issue")?;
        self.start_run_for(issue)
    }

    /// Starts a run from an issue.
    pub fn start_run_for(&self, issue: u64) -> Result<String> {
        let issue = issue.to_string();
        let said = self.program.say(&["run", "start", REPO, &issue])?.done()?;
        let id = said.data["run"].as_str();
        id.map(str::to_owned)
            .with_context(|| format!("no run id in {}", said.stdout))
    }

    /// The last lines of the server's log, for a story that went wrong.
    pub fn log(&self) -> String {
        let text = self.program.log();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(60)..].join("\n")
    }

    /// Shows a run.
    pub fn show(&self, run: &str) -> Result<Value> {
        Ok(self.program.say(&["run", "show", run])?.done()?.data)
    }

    /// Waits until a run satisfies a condition; says where it stood when waiting became hopeless.
    pub fn wait(&self, run: &str, for_what: &str, condition: impl Fn(&Value) -> bool) -> Result<Value> {
        let begun = Instant::now();
        loop {
            let seen = self.program.say(&["run", "show", run])?;
            if seen.code == 0 && condition(&seen.data) {
                return Ok(seen.data);
            }
            if begun.elapsed() > HOPELESS {
                bail!(
                    "{run} never came to {for_what}: {}{}\n{}",
                    seen.stdout,
                    seen.stderr,
                    self.log()
                );
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }

    /// Waits until a run is in a phase.
    pub fn wait_for_phase(&self, run: &str, phase: &str) -> Result<Value> {
        self.wait(run, phase, |run| run["run"]["phase"] == phase)
    }

    /// Approves whatever gate is open, exactly as shown.
    pub fn approve(&self, run: &str) -> Result<()> {
        let shown = self.show(run)?;
        let subject = shown["gate"]["subject"]
            .as_str()
            .with_context(|| format!("no gate in {shown}"))?;
        self.program
            .say(&["run", "approve", run, "--subject", subject])?
            .done()?;
        Ok(())
    }

    /// Merges the run's pull request as the person.
    pub async fn merge(&self, run: &str) -> Result<()> {
        let shown = self.wait_for_phase(run, "awaiting_merge")?;
        let number = shown["run"]["pull_request"]
            .as_u64()
            .with_context(|| format!("no pull request in {shown}"))?;
        self.person
            .merge(REPO, number, MergeMethod::Merge)
            .await
            .context("merging")?;
        Ok(())
    }

    /// Plays the people's part of the happy way: approve, merge, wait for the clean-up.
    pub async fn carry_through(&self, run: &str) -> Result<Value> {
        self.wait_for_phase(run, "awaiting_plan_approval")?;
        self.approve(run)?;
        self.merge(run).await?;
        self.wait_for_clean_up(run)
    }

    /// Waits until a run has ended and given everything back.
    pub fn wait_for_clean_up(&self, run: &str) -> Result<Value> {
        let seen = self.wait(run, "its clean-up", |run| run["cleaned_up"] == true)?;
        let worktree = self
            .program
            .data_dir()
            .join("worktrees")
            .join(format!("run-{run}"));
        ensure!(!worktree.exists(), "{} is still there", worktree.display());
        Ok(seen)
    }

    /// The repository's address with which the person's own git may fetch and push.
    pub fn url_of_person(&self, repo: &str) -> Result<String> {
        let token = self.forge.personal_token("dana").context("minting a token")?;
        let with_token = format!("http://dana:{token}@");
        Ok(self.forge.clone_url(repo).replacen("http://", &with_token, 1))
    }

    /// Insists that the whole log verifies, that a run's decisions are recomputed without a difference, and that
    /// nothing panicked on the way.
    pub fn verify(&self, run: &str) -> Result<()> {
        ensure!(!self.program.log().contains("panicked"), "{}", self.log());
        self.program
            .say(&["audit", "verify"])?
            .done()
            .context("the audit")?;
        self.program
            .say(&["run", "replay", run])?
            .done()
            .context("the replay")?;
        Ok(())
    }

    /// Insists that at the forge stands exactly what one run leaves: one pull request, and no comment twice.
    pub fn verify_forge(&self, run: &str, issue: u64) -> Result<()> {
        self.verify_writes(run, issue)?;
        let comments = self.forge.comments(REPO, issue).context("reading comments")?;
        let mut headlines: Vec<&str> = comments
            .iter()
            .filter_map(|comment| comment.body.lines().next())
            .collect();
        let all = headlines.len();
        headlines.sort_unstable();
        headlines.dedup();
        ensure!(headlines.len() == all, "something was said twice: {headlines:#?}");
        Ok(())
    }

    /// The same for a run whose people did something more than once, which is then told more than once: no write stands
    /// twice.
    pub fn verify_writes(&self, run: &str, issue: u64) -> Result<()> {
        let branch = format!("conductor/run-{run}");
        let pulls = self.forge.pulls(REPO).context("reading pull requests")?;
        let ours: Vec<_> = pulls.iter().filter(|pull| pull.head_branch == branch).collect();
        ensure!(ours.len() == 1, "{} pull requests of {branch}", ours.len());
        let comments = self.forge.comments(REPO, issue).context("reading comments")?;
        let mut markers: Vec<&str> = comments
            .iter()
            .filter_map(|comment| {
                comment
                    .body
                    .lines()
                    .rev()
                    .find(|line| line.starts_with("<!-- conductor:write"))
            })
            .collect();
        let all = markers.len();
        markers.sort_unstable();
        markers.dedup();
        ensure!(
            markers.len() == all,
            "a comment stands twice: {all} comments, {} markers",
            markers.len()
        );
        Ok(())
    }
}

/// Finds a port below those that the kernel gives to connections, which could take it before the server listens there; each
/// process of tests begins to look elsewhere.
fn free_port() -> Result<u16> {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    const FIRST: u16 = 20_000;
    const COUNT: u16 = 12_000;
    let begin = std::process::id().wrapping_mul(61) % u32::from(COUNT);
    let begin = u16::try_from(begin).context("a place to begin")?;
    (0..COUNT)
        .map(|_| FIRST + (begin + TAKEN.fetch_add(1, Ordering::Relaxed) % COUNT) % COUNT)
        .find(|port| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .context("no port is free")
}

/// Only root can make cgroups everywhere; anybody else says which limits are missing, as an operator would.
fn sandbox_settings() -> &'static str {
    if nix::unistd::geteuid().is_root() {
        ""
    } else {
        "[sandbox]\nmay-miss = [\"memory\", \"processes\", \"cpu\"]\n"
    }
}
