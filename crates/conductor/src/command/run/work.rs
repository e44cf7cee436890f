//! `conductor run calls|writes|diff`: what a run's agents did, and what was written at the forge for it.
//!
//! It does not know what a tool does.

use std::fmt::Write as _;

use conductor_domain::id::RunId;
use conductor_web::CallsWanted;
use conductor_web::visible;

use crate::clock::machine_now;
use crate::exit::{Exit, Failure};
use crate::session::Session;
use crate::show::table::Table;
use crate::show::time;

/// Lists the calls of tools, newest first, with what policy decided
#[derive(Debug, clap::Args)]
pub(crate) struct CallsArgs {
    /// The run's id, as in `conductor run list`
    run: RunId,
    /// Only those that were denied or wait for an approval
    #[arg(long)]
    stopped: bool,
    /// Only older ones than this: `next` of the answer before
    #[arg(long, value_name = "CALL")]
    after: Option<String>,
    /// At most so many
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
}

/// Shows what the newest commit changes
#[derive(Debug, clap::Args)]
pub(crate) struct DiffArgs {
    /// The run's id, as in `conductor run list`
    run: RunId,
    /// Only the names of the files, with how many lines were added and removed
    #[arg(long)]
    stat: bool,
}

/// Lists calls.
pub(crate) async fn calls(session: &Session, args: CallsArgs) -> Result<Exit, Failure> {
    let wanted = CallsWanted {
        stopped: args.stopped,
        after: args.after,
        limit: args.limit,
    };
    let list = session.source().await?.calls(&args.run, &wanted).await?;
    let now = machine_now();
    session.out.data(&list, |list| {
        let mut table = Table::new([
            "WHEN", "WHO", "TOOL", "TARGET", "DECISION", "POLICY", "WHY", "RESULT",
        ]);
        for call in &list.calls {
            table.row([
                time::ago(call.at, now),
                call.role.map(|role| role.to_string()).unwrap_or_default(),
                call.tool.clone(),
                visible::line(&call.target),
                call.decision.clone(),
                visible::line(&call.policy),
                visible::line(&call.reason),
                visible::line(&call.result),
            ]);
        }
        table.render("no calls")
    })?;
    if let Some(next) = &list.next {
        session.out.talk(&format!("older ones: --after {next}"));
    }
    Ok(Exit::Ok)
}

/// Lists writes.
pub(crate) async fn writes(session: &Session, run: &RunId) -> Result<Exit, Failure> {
    let list = session.source().await?.writes(run).await?;
    let now = machine_now();
    session.out.data(&list, |list| {
        let mut table = Table::new(["WHEN", "WHAT", "WHERE", "DECISION", "WHY", "RESULT"]);
        for write in &list.writes {
            table.row([
                time::ago(write.at, now),
                write.kind.clone(),
                visible::line(&write.target),
                write.decision.clone(),
                visible::line(&write.reason),
                visible::line(&write.result),
            ]);
        }
        table.render("nothing was written")
    })?;
    Ok(Exit::Ok)
}

/// Shows the change.
pub(crate) async fn diff(session: &Session, args: DiffArgs) -> Result<Exit, Failure> {
    let mut change = session.source().await?.change(&args.run).await?;
    if args.stat {
        for file in &mut change.files {
            file.text = None;
        }
    }
    session.out.data(&change, |change| {
        let mut text = String::new();
        for file in &change.files {
            if args.stat {
                let says = visible::line(&file.says);
                let _string = writeln!(text, "+{} -{}\t{says}", file.added, file.removed);
            } else {
                text.push_str(&visible::text(file.text.as_deref().unwrap_or_default()).text);
            }
        }
        text
    })?;
    if change.truncated {
        session.out.talk("! this change was cut when it was kept");
    }
    Ok(Exit::Ok)
}
