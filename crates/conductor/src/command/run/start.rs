//! `conductor run start`: asks the server for a run per issue, each by itself.
//!
//! It does not know what the server checks.

use std::path::PathBuf;

use conductor_web::api::{StartRun, Started};
use serde::Serialize;

use crate::client::Client;
use crate::command::policy::read_text;
use crate::exit::{Exit, Failure};
use crate::out::Out;
use crate::session::Session;
use crate::settings::read_scenario;

/// Starts a run for an issue
#[derive(Debug, clap::Args)]
pub(crate) struct StartArgs {
    /// The repository, as owner/name
    repo: String,
    /// The issues' numbers; each gets a run of its own
    #[arg(required = true, value_parser = number)]
    issues: Vec<u64>,
    /// Position in the queue, 1 (last) to 10 (first)
    #[arg(long, value_name = "N")]
    priority: Option<u8>,
    /// What scripted agents play in this run, instead of the server's scenario
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Policies of this run alone, over those of its repository and project; admins alone bring them along
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
}

/// Reads an issue's number, also as tables show it.
fn number(word: &str) -> Result<u64, String> {
    let digits = word.strip_prefix('#').unwrap_or(word);
    digits
        .parse()
        .map_err(|_| "write the number of an issue, such as 12".to_owned())
}

/// What came of the issues, where there are several.
#[derive(Debug, Serialize)]
struct StartedSeveral {
    /// One for each issue, in the order they were given.
    results: Vec<IssueResult>,
}

/// What came of one issue.
#[derive(Debug, Serialize)]
struct IssueResult {
    /// The issue's number.
    issue: u64,
    #[serde(flatten)]
    outcome: Outcome,
}

/// Either a run, or why there is none.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Outcome {
    Started(Started),
    Not { code: Option<String>, why: String },
}

/// Runs the command. Every issue is tried, whatever became of those before it.
pub(crate) async fn start(session: &Session, args: StartArgs) -> Result<Exit, Failure> {
    let scenario = args.scenario.as_deref().map(read_scenario).transpose()?;
    let policy = args.policy.as_deref().map(read_text).transpose()?;
    let client = session.client().await?;
    let wish = |issue| StartRun {
        repo: args.repo.clone(),
        issue,
        priority: args.priority,
        scenario: scenario.clone(),
        policy: policy.clone(),
    };
    if let [issue] = args.issues[..] {
        let started = ask(session, &client, &wish(issue)).await?;
        session.out.data(&started, id)?;
        return Ok(Exit::Ok);
    }
    let mut worst = Exit::Ok;
    let mut results = Vec::new();
    for issue in args.issues {
        let outcome = match ask(session, &client, &wish(issue)).await {
            Ok(started) => {
                // Programs get one document at the end; people, and pipes of words, each run as it starts.
                if !session.out.is_json() {
                    session.out.data(&started, id)?;
                }
                Outcome::Started(started)
            }
            Err(failure) => {
                worst = worst.worse(failure.exit);
                let told = Failure {
                    what: format!("{}#{issue}: {}", args.repo, failure.what),
                    ..failure.clone()
                };
                Out::failure(&told);
                Outcome::Not {
                    code: failure.code,
                    why: failure.what,
                }
            }
        };
        results.push(IssueResult { issue, outcome });
    }
    session
        .out
        .data(&StartedSeveral { results }, |_told_already| String::new())?;
    Ok(worst)
}

async fn ask(session: &Session, client: &Client, wish: &StartRun) -> Result<Started, Failure> {
    let started: Started = client.post("/runs", wish).await?;
    session.out.talk(&format!(
        "✔ run {} started for {}#{}",
        started.run, wish.repo, wish.issue
    ));
    let follow = session.typed(&format!("conductor run watch {}", started.run));
    session.out.talk(&format!("hint: `{follow}` follows it"));
    Ok(started)
}

fn id(started: &Started) -> String {
    format!("{}\n", started.run)
}
