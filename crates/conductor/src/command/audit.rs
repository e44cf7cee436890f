//! `conductor audit`: proves that nothing in the log was changed, removed, reordered or cut off (SEC-8), and finds who did
//! what from where.
//!
//! It does not know how chains are made, nor how records are found.

use std::io::Write as _;

use conductor_web::{Format, RecordQuery};
use futures_util::StreamExt as _;

use crate::clock::machine_now;
use crate::exit::{Exit, Failure};
use crate::out::Out;
use crate::session::Session;
use crate::show::words::count;
use crate::show::{table::Table, time};

/// Proves that nothing was tampered with, and finds records
#[derive(Debug, clap::Subcommand)]
pub(crate) enum AuditCommand {
    /// Checks every stream against its chain and the recorded heads
    Verify,
    /// Finds records of all runs and of what concerns more than one, newest first
    Search(SearchArgs),
    /// Writes everything that is found to standard output
    Export(ExportArgs),
}

/// Which records to find
#[derive(Debug, clap::Args)]
pub(crate) struct Wanted {
    /// Words that a record must have, all of them; `plan*` stands for all words that begin so
    words: Vec<String>,
    /// Only of this run; `instance` for what concerns more than one
    #[arg(long)]
    run: Option<String>,
    /// Only of runs of this project
    #[arg(long)]
    project: Option<String>,
    /// Only of runs of this repository (owner/name)
    #[arg(long)]
    repo: Option<String>,
    /// Only by this operator, role or part
    #[arg(long)]
    actor: Option<String>,
    /// Only by this type of actor
    #[arg(long, value_parser = ["agent", "operator", "system"])]
    actor_type: Option<String>,
    /// Only of this kind, the name of an input or an event
    #[arg(long)]
    kind: Option<String>,
    /// Only of this class
    #[arg(long, value_parser = ["fact", "decision"])]
    class: Option<String>,
    /// Only from this day or time on, in UTC (2026-01-31, 2026-01-31T09:05)
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Only until the end of this day, or before this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
}

/// Finds records
#[derive(Debug, clap::Args)]
pub(crate) struct SearchArgs {
    #[command(flatten)]
    wanted: Wanted,
    /// Only records that were kept before this one, a number that the last answer named
    #[arg(long, value_name = "PLACE")]
    before: Option<u64>,
    /// At most so many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
}

/// Writes records
#[derive(Debug, clap::Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    wanted: Wanted,
    /// As a table or as whole records with the links of their chain [default: csv, or json with --json]
    #[arg(long, value_parser = Format::ALL.map(Format::as_str))]
    format: Option<String>,
}

impl Wanted {
    fn query(self) -> RecordQuery {
        RecordQuery {
            words: self.words.join(" "),
            run: self.run.unwrap_or_default(),
            project: self.project.unwrap_or_default(),
            repo: self.repo.unwrap_or_default(),
            actor: self.actor.unwrap_or_default(),
            actor_type: self.actor_type.unwrap_or_default(),
            kind: self.kind.unwrap_or_default(),
            class: self.class.unwrap_or_default(),
            from: self.from.unwrap_or_default(),
            until: self.until.unwrap_or_default(),
            before: None,
            limit: None,
        }
    }
}

/// Runs the command; a finding of an audit is a failure.
pub(crate) async fn audit(session: &Session, command: AuditCommand) -> Result<Exit, Failure> {
    match command {
        AuditCommand::Verify => verify(session).await,
        AuditCommand::Search(args) => search(session, args).await,
        AuditCommand::Export(args) => export(session, args).await,
    }
}

async fn search(session: &Session, args: SearchArgs) -> Result<Exit, Failure> {
    let query = RecordQuery {
        before: args.before,
        limit: Some(args.limit),
        ..args.wanted.query()
    };
    let list = session.source().await?.records(&query).await?;
    let now = machine_now();
    session.out.data(&list, |list| {
        let mut table = Table::new(["WHEN", "RECORD", "KIND", "ACTOR", "FROM"]);
        for record in &list.records {
            table.row([
                time::ago(record.at, now),
                record.event_id.clone(),
                record.kind.clone(),
                format!("{} {}", record.actor_type, record.actor),
                record.cause.clone(),
            ]);
        }
        table.render_within(Out::columns(), "no record has all of that")
    })?;
    if let (Some(next), false) = (list.next, session.out.is_json()) {
        session.out.talk(&format!("hint: more with --before {next}"));
    }
    Ok(Exit::Ok)
}

async fn export(session: &Session, args: ExportArgs) -> Result<Exit, Failure> {
    let named = Format::ALL
        .into_iter()
        .find(|format| Some(format.as_str()) == args.format.as_deref());
    let format = named.unwrap_or(if session.out.is_json() {
        Format::Json
    } else {
        Format::Csv
    });
    let query = args.wanted.query();
    let mut file = session.source().await?.export(&query, format).await?;
    while let Some(piece) = file.next().await {
        let piece = piece?;
        match std::io::stdout().lock().write_all(&piece) {
            Ok(()) => {}
            // Whoever read has seen enough.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(Exit::Ok),
            Err(error) => return Err(Failure::because("writing to stdout", &error)),
        }
    }
    Ok(Exit::Ok)
}

async fn verify(session: &Session) -> Result<Exit, Failure> {
    let audit = session.source().await?.verify().await?;
    session.out.data(&audit, |audit| {
        let mut text = format!(
            "{} {} in {}, {}\n",
            if audit.holds { "✔" } else { "✘" },
            count(audit.records, "record"),
            count(audit.streams, "stream"),
            count(audit.findings.len(), "finding")
        );
        for finding in &audit.findings {
            text.push_str(&format!("  {}\n", conductor_web::visible::line(&finding.what)));
        }
        if audit.unanchored > 0 {
            text.push_str(&format!(
                "  the newest {} not anchored yet (a running server does it every minute); a cut there would not show\n",
                match audit.unanchored {
                    1 => "record is".to_owned(),
                    many => format!("{many} records are"),
                }
            ));
        }
        text
    })?;
    if audit.holds {
        return Ok(Exit::Ok);
    }
    session.out.talk(
        "hint: something outside Conductor wrote to the database; keep it as evidence, and bring back a copy",
    );
    Ok(Exit::Failed)
}
