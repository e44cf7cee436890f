//! `conductor run show`: everything that a person needs to judge a run, and the next command.
//!
//! It does not know where runs are kept.

use std::fmt::Write as _;

use conductor_domain::id::RunId;
use conductor_web::api::RunDetail;
use conductor_web::visible;
use serde::Serialize;

use crate::clock::machine_now;
use crate::exit::{Exit, Failure};
use crate::out::Out;
use crate::session::Session;
use crate::show;
use crate::show::table::Table;
use crate::show::time;
use crate::source::Source;

/// Shows a run: where it stands, what it waits for, and the next command
#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// The run's id, as in `conductor run list`
    run: RunId,
    /// Lists its records instead
    #[arg(long, conflicts_with = "tests")]
    events: bool,
    /// Shows what the test command printed instead
    #[arg(long)]
    tests: bool,
}

/// Runs the command.
pub(crate) async fn show(session: &Session, args: ShowArgs) -> Result<Exit, Failure> {
    let source = session.source().await?;
    if args.events {
        return events(session, &source, &args.run).await;
    }
    let detail = source.run(&args.run).await?;
    if args.tests {
        return tests(session, &source, &detail).await;
    }
    session.out.data(&detail, |detail| {
        show::run::detail(detail, machine_now(), Out::columns(), |command| {
            session.typed(command)
        })
    })?;
    Ok(Exit::Ok)
}

async fn events(session: &Session, source: &Source, run: &RunId) -> Result<Exit, Failure> {
    let mut all = source.events(run, 0).await?;
    while let Some(last) = all.events.last().map(|event| event.seq) {
        let more = source.events(run, last).await?.events;
        if more.is_empty() {
            break;
        }
        all.events.extend(more);
    }
    let now = machine_now();
    session.out.data(&all, |list| {
        let mut table = Table::new(["SEQ", "WHEN", "CLASS", "KIND", "ACTOR"]);
        for event in &list.events {
            let actor = format!("{} {}", event.actor_type, event.actor);
            let when = time::ago(event.at, now);
            table.row([
                event.seq.to_string(),
                when,
                event.class.clone(),
                event.kind.clone(),
                actor,
            ]);
        }
        table.render("no records")
    })?;
    Ok(Exit::Ok)
}

/// One run of the test command with all that it printed.
#[derive(Debug, Serialize)]
struct TestOutput {
    said: String,
    passed: bool,
    output: String,
}

async fn tests(session: &Session, source: &Source, detail: &RunDetail) -> Result<Exit, Failure> {
    let mut outputs = Vec::new();
    for test in &detail.tests {
        let bytes = source.artifact(&test.output).await?;
        let output = String::from_utf8_lossy(&bytes).into_owned();
        outputs.push(TestOutput {
            said: test.said.clone(),
            passed: test.passed,
            output,
        });
    }
    session.out.data(&outputs, |outputs| {
        let mut text = String::new();
        for test in outputs {
            let symbol = if test.passed { "✔" } else { "✘" };
            let _string = writeln!(text, "{symbol} {}", visible::line(&test.said));
            for line in visible::text(&test.output).text.lines() {
                let _string = writeln!(text, "│ {line}");
            }
        }
        if text.is_empty() {
            "tests were not run\n".to_owned()
        } else {
            text
        }
    })?;
    Ok(Exit::Ok)
}
