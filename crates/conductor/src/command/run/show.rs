//! `conductor run show`: everything that a person needs to judge a run, and the next command.
//!
//! It does not know where runs are kept.

use conductor_domain::id::RunId;

use crate::clock::machine_now;
use crate::exit::{Exit, Failure};
use crate::session::Session;
use crate::show;
use crate::show::table::Table;
use crate::show::time;

/// Shows a run: where it stands, what it waits for, and the next command
#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// The run's id, as in `conductor run list`
    run: RunId,
    /// Lists its records instead
    #[arg(long)]
    events: bool,
}

/// Runs the command.
pub(crate) async fn show(session: &Session, args: ShowArgs) -> Result<Exit, Failure> {
    let source = session.source().await?;
    let now = machine_now();
    if !args.events {
        let detail = source.run(&args.run).await?;
        session
            .out
            .data(&detail, |detail| show::run::detail(detail, now))?;
        return Ok(Exit::Ok);
    }
    let mut all = source.events(&args.run, 0).await?;
    while let Some(last) = all.events.last().map(|event| event.seq) {
        let more = source.events(&args.run, last).await?.events;
        if more.is_empty() {
            break;
        }
        all.events.extend(more);
    }
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
