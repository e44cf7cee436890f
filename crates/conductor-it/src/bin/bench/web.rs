//! What pages cost: with ten thousand runs and a million records against a hundred runs, asked in turn, so that both
//! servers meet the same minute; the bytes of a first visit; how soon two hundred watchers hear of a commit; and the memory
//! of a server at rest.
//!
//! A few runs are played for real; the rest are copies of their rows under other names. A bar that is missed fails the
//! figure.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use conductor_it::Stage;
use conductor_it::program::Program;
use conductor_it::stage::{Executor, Play};
use reqwest::header::{COOKIE, SET_COOKIE};
use serde_json::{Value, json};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Row as _};
use tokio::sync::mpsc;

use super::{ZERO_THINK, median, millis, program};

/// Runs of the small server, and of those how many wait for a person on either.
const FEW: usize = 100;
const WAITING: usize = 50;
/// A page with many runs against the same page with few, at the most; and its median, as aimed at.
const PAGES: f64 = 1.5;
const PAGE: Duration = Duration::from_millis(20);
const REQUESTS: usize = 60;
/// A page that looks at everything there is, at the most; what is slower makes people wait.
const SLOW: Duration = Duration::from_millis(200);
/// A first visit's bytes, at the most.
const FIRST_VISIT: usize = 60_000;
/// How many watch, and how late the last of them may hear of a commit.
const WATCHERS: usize = 200;
const LIVE: Duration = Duration::from_millis(100);
const COMMITS: usize = 20;
/// What a server at rest may keep in memory, in kilobytes.
const AT_REST: usize = 60_000;

/// Prints all figures with this many runs.
pub(crate) async fn figures(many: usize) -> Result<()> {
    let play = Play {
        executor: Executor::UnsafePlain,
        ..Play::shell(ZERO_THINK)
    };
    let mut stage = Stage::set(&program()?, &play).await?;
    let done = stage.start_run("Over and done")?;
    stage.carry_through(&done).await?;
    let waiting = stage.start_run("Waits for somebody")?;
    stage.wait_for_phase(&waiting, "awaiting_plan_approval")?;
    stage.program.stop()?;

    let mut crowded = stage.beside("crowded")?;
    let (from, to) = (database(&stage.program), database(&crowded));
    std::fs::copy(&from, &to).context("copying the database")?;
    for (path, runs) in [(&from, FEW), (&to, many)] {
        let mut database = open(path).await?;
        multiply(&mut database, &waiting, WAITING).await?;
        multiply(&mut database, &done, runs.saturating_sub(WAITING)).await?;
        find_copies(&mut database).await?;
        let count = |sql: &'static str| sqlx::query_scalar::<_, i64>(sql);
        let runs = count("SELECT COUNT(*) FROM runs")
            .fetch_one(&mut database)
            .await?;
        let records = count("SELECT COUNT(*) FROM records")
            .fetch_one(&mut database)
            .await?;
        println!("{runs} runs, {records} records");
    }
    stage.program.start(None)?;
    crowded.start(None)?;

    let mut missed = Vec::new();
    let at_rest = resident(&crowded)?;
    println!("at rest: {} MB (bar {} MB)", at_rest / 1000, AT_REST / 1000);
    if at_rest > AT_REST {
        missed.push("at rest".to_owned());
    }
    let (small, large) = (Visitor::of(&stage.program).await?, Visitor::of(&crowded).await?);
    let of_run = format!("/runs/{done}");
    for path in ["/", "/runs", "/runs?view=list", &of_run] {
        let (many, ratio) = page(&small, &large, path).await?;
        let word = if many <= PAGE { "met" } else { "missed" };
        println!(
            "  ratio {ratio:.2} (bar {PAGES}); the aim of {} ms is {word}",
            PAGE.as_millis()
        );
        if ratio > PAGES {
            missed.push(path.to_owned());
        }
    }
    for path in [
        "/audit",
        "/audit?words=greeting",
        "/audit?kind=run_completed",
        "/audit?words=nowhere",
        "/figures",
    ] {
        let (many, ratio) = page(&small, &large, path).await?;
        println!("  ratio {ratio:.2}; at most {} ms", SLOW.as_millis());
        if many > SLOW {
            missed.push(path.to_owned());
        }
    }
    let bytes = large.first_visit().await?;
    println!("first visit: {bytes} bytes, not compressed (bar {FIRST_VISIT})");
    if bytes > FIRST_VISIT {
        missed.push("first visit".to_owned());
    }
    let late = live(&large, &waiting).await?;
    println!(
        "live: the last of {WATCHERS} watchers hears of a commit {:.0} ms after it was asked for (bar {} ms)",
        millis(late),
        LIVE.as_millis()
    );
    if late > LIVE {
        missed.push("live".to_owned());
    }
    ensure!(missed.is_empty(), "bars that were missed: {}", missed.join(", "));
    Ok(())
}

fn database(program: &Program) -> std::path::PathBuf {
    program.data_dir().join("conductor.db")
}

async fn open(path: &Path) -> Result<SqliteConnection> {
    let options = SqliteConnectOptions::new().filename(path);
    Ok(options.connect().await?)
}

/// Adds copies of a run under other names, with all that is kept of it; an issue has one run.
async fn multiply(database: &mut SqliteConnection, run: &str, copies: usize) -> Result<()> {
    for table in [
        "runs",
        "records",
        "effects",
        "forge_writes",
        "tool_calls",
        "open_issues",
    ] {
        let columns = sqlx::query("SELECT name, type FROM pragma_table_info(?)")
            .bind(table)
            .fetch_all(&mut *database)
            .await?;
        let (mut names, mut values) = (Vec::new(), Vec::new());
        for column in columns {
            let (name, kind): (String, String) = (column.try_get(0)?, column.try_get(1)?);
            values.push(match (name.as_str(), kind.as_str()) {
                ("issue" | "created_at", _) => format!("t.{name} + copy.n * 100"),
                (_, "TEXT") => {
                    format!("replace(t.{name}, '{run}', printf('copy-%d-of-%s', copy.n, '{run}'))")
                }
                _ => format!("t.{name}"),
            });
            names.push(name);
        }
        let mine = if table == "records" {
            format!("t.stream = 'run/{run}'")
        } else {
            format!("t.run = '{run}'")
        };
        let sql = format!(
            "WITH RECURSIVE copy(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copy WHERE n < {copies}) \
             INSERT INTO {table} ({}) SELECT {} FROM copy, {table} t WHERE {mine}",
            names.join(", "),
            values.join(", ")
        );
        sqlx::raw_sql(AssertSqlSafe(sql))
            .execute(&mut *database)
            .await
            .with_context(|| format!("copying {table}"))?;
    }
    Ok(())
}

/// Lets the copied records be found by what they say, as they would be had they been written one by one.
async fn find_copies(database: &mut SqliteConnection) -> Result<()> {
    let sql = "INSERT INTO record_places (place, stream, seq, at) \
               SELECT (SELECT MAX(place) FROM record_places) + row_number() OVER (ORDER BY stream, seq), stream, seq, at \
               FROM records WHERE stream LIKE 'run/copy-%'; \
               INSERT INTO record_words (rowid, words) \
               SELECT p.place, 'kind=' || replace(r.kind, '_', '=5f=') || ' ' || lower(r.payload) FROM record_places p \
               JOIN records r ON r.stream = p.stream AND r.seq = p.seq WHERE p.stream LIKE 'run/copy-%'";
    sqlx::raw_sql(sql)
        .execute(&mut *database)
        .await
        .context("letting copies be found")?;
    Ok(())
}

/// What a process keeps in memory, in kilobytes.
fn resident(program: &Program) -> Result<usize> {
    let pid = program.pid().context("a server")?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .context("VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// Somebody with a browser, and a program with the same server's token.
struct Visitor {
    client: reqwest::Client,
    base: String,
    cookie: String,
    token: String,
}

impl Visitor {
    async fn of(program: &Program) -> Result<Self> {
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        let said = program.say(&["open"])?.done()?;
        let link = said.data["url"].as_str().context("a link")?;
        let (base, _) = link.split_once("/enter/").context("a link to enter")?;
        let entered = client.get(link).send().await?;
        let cookie = entered.headers().get(SET_COOKIE).context("a cookie")?.to_str()?;
        let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        let server: Value = serde_json::from_slice(&std::fs::read(program.data_dir().join("server.json"))?)?;
        Ok(Self {
            base: base.to_owned(),
            client,
            cookie,
            token: server["token"].as_str().context("a token")?.to_owned(),
        })
    }

    async fn get(&self, path: &str) -> Result<reqwest::Response> {
        let url = format!("{}{path}", self.base);
        let answer = self.client.get(url).header(COOKIE, &self.cookie).send().await?;
        Ok(answer.error_for_status()?)
    }

    async fn timed(&self, path: &str) -> Result<Duration> {
        let begun = Instant::now();
        let text = self.get(path).await?.text().await?;
        let took = begun.elapsed();
        ensure!(text.contains("</html>"), "{path} is no page");
        Ok(took)
    }

    /// The bytes of Home with everything that it names.
    async fn first_visit(&self) -> Result<usize> {
        let home = self.get("/").await?.text().await?;
        let mut bytes = home.len();
        let named = home.split('"').filter(|part| part.starts_with("/static/"));
        for path in named {
            bytes += self.get(path).await?.bytes().await?.len();
        }
        Ok(bytes)
    }

    async fn act(&self, run: &str, action: &str) -> Result<()> {
        let answer = self
            .client
            .post(format!("{}/api/v1/runs/{run}/actions", self.base))
            .bearer_auth(&self.token)
            .json(&json!({ "action": action }))
            .send()
            .await?;
        let status = answer.status();
        ensure!(status.is_success(), "{action}: {status} {}", answer.text().await?);
        Ok(())
    }
}

/// Asks both for a page, in turn: what it takes with many runs, and how much more that is than with few.
async fn page(small: &Visitor, large: &Visitor, path: &str) -> Result<(Duration, f64)> {
    let (mut few, mut many) = (vec![], vec![]);
    for round in 0..REQUESTS + REQUESTS / 10 {
        let (a, b) = (small.timed(path).await?, large.timed(path).await?);
        if round >= REQUESTS / 10 {
            few.push(a);
            many.push(b);
        }
    }
    let (few, many) = (median(few), median(many));
    println!(
        "page {path}: {:.1} ms, with {FEW} runs {:.1} ms",
        millis(many),
        millis(few)
    );
    Ok((many, many.as_secs_f64() / few.as_secs_f64()))
}

/// Lets many watch while commits are asked for, one after the other; the median of how late the last one heard.
async fn live(visitor: &Visitor, run: &str) -> Result<Duration> {
    let (heard, mut hearing) = mpsc::unbounded_channel();
    let mut watching = Vec::with_capacity(WATCHERS);
    for watcher in 0..WATCHERS {
        let mut stream = visitor.get("/live").await?;
        let heard = heard.clone();
        watching.push(tokio::spawn(async move {
            while let Ok(Some(chunk)) = stream.chunk().await {
                if chunk.windows(7).any(|word| word == b"changed")
                    && heard.send((watcher, Instant::now())).is_err()
                {
                    return;
                }
            }
        }));
    }
    let mut latest = Vec::new();
    for commit in 0..COMMITS {
        // What followed from the last commit has been heard when nobody hears anything for a while.
        while tokio::time::timeout(Duration::from_millis(300), hearing.recv())
            .await
            .is_ok()
        {}
        let asked = Instant::now();
        visitor
            .act(run, if commit % 2 == 0 { "pause" } else { "resume" })
            .await?;
        let mut have_not = [true; WATCHERS];
        let mut last = asked;
        while have_not.contains(&true) {
            let next = tokio::time::timeout(Duration::from_secs(30), hearing.recv());
            let (watcher, at) = next.await.context("somebody never heard")?.context("watchers")?;
            if std::mem::take(&mut have_not[watcher]) {
                last = last.max(at);
            }
        }
        latest.push(last - asked);
    }
    for watcher in watching {
        watcher.abort();
    }
    Ok(median(latest))
}
