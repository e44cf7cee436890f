//! A team of servers on one PostgreSQL database, and people who speak to whichever of them lives.
//!
//! This module does not know what is played.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use conductor_it::program::HOPELESS;
use conductor_it::stage::Play;
use conductor_it::{Program, Stage};
use serde_json::{Value, json};
use sqlx::Row as _;
use sqlx::postgres::PgConnection;

use crate::PROGRAM;
use crate::postgres::{database, raw};

/// How long a lease of a team holds; short, because stories wait for it to end.
pub(crate) const LEASE: Duration = Duration::from_secs(3);

/// Several servers, one database, one storage, one forge.
pub(crate) struct Team {
    pub(crate) stage: Stage,
    /// All servers but the first, which is the stage's own.
    others: Vec<Program>,
    pub(crate) conn: PgConnection,
    http: reqwest::Client,
}

/// A run as its row says.
pub(crate) struct Seen {
    pub(crate) run: String,
    pub(crate) repo: String,
    pub(crate) phase: String,
    pub(crate) pull_request: Option<u64>,
    pub(crate) needs_human: bool,
    pub(crate) has_ended: bool,
}

impl Team {
    /// Sets the stage for this many servers and starts them; the machine of each further one is an hour ahead of the one
    /// before it, which must not matter.
    pub(crate) async fn gather(play: Play, servers: usize, limits: &str) -> Result<Self> {
        let address = database().await;
        let play = Play {
            settings: format!("[limits]\n{limits}"),
            database_url: Some(address.clone()),
            ..play
        };
        let mut stage = Stage::set_without_server(PROGRAM, &play).await?;
        let storage = stage.shared_dir();
        let lease = LEASE.as_millis().to_string();
        stage.program.also("--storage", &storage);
        stage.program.also("--lease-ms", &lease);
        stage.program.start(None)?;
        stage.register(&play)?;
        let mut others = vec![];
        for n in 1..servers {
            let mut other = stage.beside(&format!("data-{n}"))?;
            let ahead = (n * 3_600_000).to_string();
            other.also("--clock-ahead-ms", &ahead);
            other.start(None)?;
            others.push(other);
        }
        Ok(Self {
            conn: raw(&address).await,
            stage,
            others,
            http: reqwest::Client::new(),
        })
    }

    pub(crate) fn len(&self) -> usize {
        1 + self.others.len()
    }

    pub(crate) fn server(&mut self, n: usize) -> &mut Program {
        match n {
            0 => &mut self.stage.program,
            n => &mut self.others[n - 1],
        }
    }

    fn servers(&self) -> impl Iterator<Item = &Program> {
        std::iter::once(&self.stage.program).chain(&self.others)
    }

    /// Everything that all servers logged.
    pub(crate) fn log(&self) -> String {
        self.servers().map(Program::log).collect()
    }

    /// The last words of every server, for a story that went wrong.
    pub(crate) fn last_words(&self) -> String {
        let tail = |server: &Program| {
            let log = server.log();
            let lines: Vec<&str> = log.lines().collect();
            lines[lines.len().saturating_sub(25)..].join("\n")
        };
        self.servers()
            .map(tail)
            .collect::<Vec<_>>()
            .join("\n-- next server --\n")
    }

    /// How many repeated comments the servers say they removed.
    pub(crate) fn repeats_removed(&self) -> u64 {
        let log = self.log();
        let told = log
            .lines()
            .filter(|line| line.contains(conductor_engine::telemetry::REPEATS_REMOVED));
        told.filter_map(|line| {
            let (_, after) = line.split_once("removed=")?;
            let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<u64>().ok()
        })
        .sum()
    }

    /// Asks a server over its door.
    pub(crate) async fn ask(&self, server: usize, path: &str, body: Option<Value>) -> Result<Value> {
        let program = self.servers().nth(server).context("a server")?;
        let text = std::fs::read_to_string(program.data_dir().join("server.json"))?;
        let file: Value = serde_json::from_str(&text)?;
        let url = format!("{}/api/v1{path}", file["url"].as_str().context("an address")?);
        let request = match &body {
            Some(body) => self.http.post(url).json(body),
            None => self.http.get(url),
        };
        let answer = request
            .bearer_auth(file["token"].as_str().context("a token")?)
            .timeout(Duration::from_secs(20))
            .send()
            .await?;
        let (is_success, text) = (answer.status().is_success(), answer.text().await?);
        ensure!(is_success, "{path}: {text}");
        Ok(serde_json::from_str(&text)?)
    }

    /// Starts a run from a new issue, through one of the servers.
    pub(crate) async fn start_run(&self, server: usize, repo: &str, title: &str) -> Result<String> {
        let issue = self.stage.person.open_issue(repo, title, "Please.")?;
        let said = self
            .ask(server, "/runs", Some(json!({ "repo": repo, "issue": issue })))
            .await?;
        Ok(said["run"].as_str().context("a run")?.to_owned())
    }

    /// Approves or rejects whatever gate of a run is open.
    pub(crate) async fn answer(&self, server: usize, run: &str, is_approved: bool) -> Result<()> {
        let shown = self.ask(server, &format!("/runs/{run}"), None).await?;
        let subject = shown["gate"]["subject"].as_str().context("an open gate")?;
        let action = if is_approved { "approve" } else { "reject" };
        let body = json!({ "action": action, "subject": subject });
        self.ask(server, &format!("/runs/{run}/actions"), Some(body))
            .await?;
        Ok(())
    }

    /// All runs, as their rows say.
    pub(crate) async fn runs(&mut self) -> Result<Vec<Seen>> {
        let sql = "SELECT run, repo_name, phase, pull_request, needs_human, terminal FROM runs ORDER BY run";
        let rows = sqlx::query(sql).fetch_all(&mut self.conn).await?;
        rows.iter()
            .map(|row| {
                Ok(Seen {
                    run: row.try_get(0)?,
                    repo: row.try_get(1)?,
                    phase: row.try_get(2)?,
                    pull_request: row
                        .try_get::<Option<i64>, _>(3)?
                        .and_then(|number| u64::try_from(number).ok()),
                    needs_human: row.try_get::<i16, _>(4)? != 0,
                    has_ended: row.try_get::<i16, _>(5)? != 0,
                })
            })
            .collect()
    }

    /// One number that the database tells.
    pub(crate) async fn count(&mut self, sql: &'static str) -> Result<i64> {
        Ok(sqlx::query(sql).fetch_one(&mut self.conn).await?.try_get(0)?)
    }

    /// Waits until the database tells what is wanted.
    pub(crate) async fn until(
        &mut self,
        what: &str,
        sql: &'static str,
        wanted: impl Fn(i64) -> bool,
    ) -> Result<()> {
        let begun = Instant::now();
        loop {
            let seen = self.count(sql).await?;
            if wanted(seen) {
                return Ok(());
            }
            if begun.elapsed() > HOPELESS {
                bail!("{what} never came, it stands at {seen}\n{}", self.last_words());
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    }

    /// Insists that at the forge stands at most one of each write of these runs, and that every chain verifies and every
    /// decision is recomputed alike.
    pub(crate) async fn verify(&mut self, repos: &[String]) -> Result<()> {
        for repo in repos {
            let pulls = self.stage.forge.pulls(repo)?;
            let mut branches: Vec<&str> = pulls.iter().map(|pull| pull.head_branch.as_str()).collect();
            let all = branches.len();
            branches.sort_unstable();
            branches.dedup();
            ensure!(branches.len() == all, "two pull requests of one branch in {repo}");
            let numbers: Vec<u64> = self.issues_of(repo).await?;
            for number in numbers.into_iter().chain(pulls.iter().map(|pull| pull.number)) {
                let comments = self.stage.forge.comments(repo, number)?;
                let mut markers: Vec<&str> = comments
                    .iter()
                    .filter_map(|comment| {
                        let mut lines = comment.body.lines().rev();
                        lines.find(|line| line.starts_with("<!-- conductor:write"))
                    })
                    .collect();
                let all = markers.len();
                markers.sort_unstable();
                markers.dedup();
                ensure!(markers.len() == all, "a comment stands twice on {repo}#{number}");
            }
        }
        self.stage
            .program
            .say(&["audit", "verify"])?
            .done()
            .context("the audit")?;
        for seen in self.runs().await? {
            let replay = self.ask(0, &format!("/runs/{}/replay", seen.run), None).await?;
            ensure!(replay["same"] == true, "{}: {replay}", seen.run);
        }
        Ok(())
    }

    async fn issues_of(&mut self, repo: &str) -> Result<Vec<u64>> {
        let rows = sqlx::query("SELECT issue FROM runs WHERE repo_name = $1")
            .bind(repo)
            .fetch_all(&mut self.conn)
            .await?;
        rows.iter()
            .map(|row| Ok(u64::try_from(row.try_get::<i64, _>(0)?)?))
            .collect()
    }
}
