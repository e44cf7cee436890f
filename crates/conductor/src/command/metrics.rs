//! `conductor metrics`: what runs took over the last days.
//!
//! It does not know how figures are counted.

use conductor_domain::time::Millis;
use conductor_web::MetricsQuery;
use conductor_web::api::{MetricsView, SpreadView};

use crate::clock::machine_now;
use crate::exit::{Exit, Failure};
use crate::session::Session;
use crate::show::table::Table;
use crate::show::time;
use crate::show::words::count;

/// Shows run statistics: counts, durations, attempts
#[derive(Debug, clap::Args)]
pub(crate) struct MetricsArgs {
    /// Over so many days up to and with today, in UTC
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=366))]
    days: u32,
    /// Only of this project
    #[arg(long)]
    project: Option<String>,
    /// Only of this repository (owner/name)
    #[arg(long)]
    repo: Option<String>,
}

/// Runs the command.
pub(crate) async fn metrics(session: &Session, args: MetricsArgs) -> Result<Exit, Failure> {
    let query = MetricsQuery {
        days: Some(args.days),
        project: args.project.unwrap_or_default(),
        repo: args.repo.unwrap_or_default(),
    };
    let metrics = session.source().await?.metrics(&query, machine_now()).await?;
    session.out.data(&metrics, shown)?;
    if metrics.uncounted > 0 {
        session.out.talk(&format!(
            "hint: {} began before runs were counted; `conductor projections rebuild` counts them",
            count(metrics.uncounted, "run")
        ));
    }
    Ok(Exit::Ok)
}

fn shown(metrics: &MetricsView) -> String {
    let mut text = format!(
        "{} started, {} completed, {} failed, {} cancelled",
        count(metrics.started, "run"),
        metrics.completed,
        metrics.failed,
        metrics.cancelled
    );
    if let Some(percent) = metrics.success_percent {
        text.push_str(&format!("; {percent} % of those that were not cancelled"));
    }
    text.push_str("\n\n");
    let length = |ms: Option<u64>| ms.map_or_else(|| "-".to_owned(), |ms| time::length(Millis(ms)));
    let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
    let mut table = Table::new(["PER RUN THAT ENDED", "RUNS", "MEDIAN", "90 %", "MOST"]);
    let mut row = |name: &str, spread: &SpreadView, said: &dyn Fn(Option<u64>) -> String| {
        let figures = [spread.median, spread.p90, spread.most].map(said);
        let [median, p90, most] = figures;
        table.row([name.to_owned(), spread.runs.to_string(), median, p90, most]);
    };
    row("from start to end", &metrics.duration_ms, &length);
    row("waiting for people", &metrics.waited_ms, &length);
    for phase in &metrics.phases {
        row(
            &format!("in {}", phase.phase.replace('_', " ")),
            &phase.ms,
            &length,
        );
    }
    row("attempts", &metrics.attempts, &number);
    row("repeats", &metrics.retries, &number);
    text.push_str(&table.text(None));
    text.push('\n');
    let mut table = Table::new(["DAY", "STARTED", "COMPLETED", "FAILED", "CANCELLED"]);
    let something = |count: &u64| *count > 0;
    for day in metrics.days.iter().rev() {
        let counts = [day.started, day.completed, day.failed, day.cancelled];
        if counts.iter().any(something) {
            let [started, completed, failed, cancelled] = counts.map(|count| count.to_string());
            table.row([day.day.clone(), started, completed, failed, cancelled]);
        }
    }
    if table.is_empty() {
        text.push_str("no run began or ended in these days\n");
    } else {
        text.push_str(&table.text(None));
    }
    text
}
