//! `conductor run list`: one line per run, newest first.
//!
//! It does not know where runs are kept.

use conductor_domain::id::RunId;
use conductor_domain::phase::PhaseName;

use crate::clock::machine_now;
use crate::command::kill_switch;
use crate::exit::{Exit, Failure};
use crate::out::Out;
use crate::session::Session;
use crate::show::{state, table::Table, time, words};
use crate::source::Wanted;

/// Lists runs, newest first
#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    /// Only of this project
    #[arg(long)]
    project: Option<String>,
    /// Only of this repository (owner/name)
    #[arg(long)]
    repo: Option<String>,
    /// Only in this phase
    #[arg(long, value_parser = PhaseName::ALL.map(PhaseName::as_str))]
    phase: Option<String>,
    /// Only those with this text in their title, repository, id or `#issue`
    #[arg(long)]
    text: Option<String>,
    /// Only those that have not ended
    #[arg(long)]
    open: bool,
    /// Only those that wait for a person
    #[arg(long)]
    needs_human: bool,
    /// Only runs listed after this one
    #[arg(long, value_name = "RUN")]
    after: Option<RunId>,
    /// At most so many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
}

/// Runs the command.
pub(crate) async fn list(session: &Session, args: ListArgs) -> Result<Exit, Failure> {
    let wanted = Wanted {
        project: args.project,
        repo: args.repo,
        phase: args.phase,
        text: args.text,
        open: args.open,
        needs_human: args.needs_human,
        after: args.after,
        limit: args.limit,
    };
    let none = if wanted
        == (Wanted {
            limit: wanted.limit,
            ..Wanted::default()
        }) {
        "no runs; `conductor run start owner/name <issue>` starts one"
    } else {
        "no run fits; `conductor run list` shows all"
    };
    let source = session.source().await?;
    let runs = source.runs(wanted).await?;
    let now = machine_now();
    session.out.data(&runs, |list| {
        let mut table = Table::new(["RUN", "STATE", "ISSUE", "PR", "CHANGED", "TITLE"]);
        for run in &list.runs {
            let pull_request = run
                .pull_request
                .map(|number| format!("#{number}"))
                .unwrap_or_default();
            table.row([
                run.id.to_string(),
                state::state(run),
                format!("{}#{}", run.repo, run.issue),
                pull_request,
                time::ago(run.updated_at, now),
                words::title(&run.title),
            ]);
        }
        table.render_within(Out::columns(), none)
    })?;
    if let Some((run, damage)) = runs
        .runs
        .iter()
        .find_map(|run| Some((run, run.damaged.as_ref()?)))
    {
        session
            .out
            .talk(&format!("run {} is damaged; hint: {}", run.id, damage.hint));
    }
    if let (Some(next), false) = (&runs.next, session.out.is_json()) {
        session.out.talk(&format!("hint: more with --after {next}"));
    }
    kill_switch::mention(session, &source).await?;
    Ok(Exit::Ok)
}
