//! `conductor token`: what programs carry to work with this instance for an operator (SEC-7).
//!
//! A token's secret is printed once and kept nowhere. It does not know who sends it.

use conductor_domain::id::{OperatorName, ProjectId, TokenId};
use conductor_domain::staff::Rank;
use conductor_web::api::{AcceptedView, IssueToken, IssuedToken, TokenList};
use conductor_web::words::time;

use crate::exit::{Exit, Failure};
use crate::session::Session;
use crate::show::table::Table;

/// What somebody may do, as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum RankWord {
    /// Looks at everything
    Viewer,
    /// Starts runs, answers them, stops them
    Operator,
    /// Decides what there is to work on, what it may reach, and who works here
    Admin,
}

impl From<RankWord> for Rank {
    fn from(word: RankWord) -> Self {
        match word {
            RankWord::Viewer => Self::Viewer,
            RankWord::Operator => Self::Operator,
            RankWord::Admin => Self::Admin,
        }
    }
}

/// Issues and revokes API tokens
#[derive(Debug, clap::Subcommand)]
pub(crate) enum TokenCommand {
    /// Issues a token and prints its secret, once
    Issue {
        /// The token's name
        id: TokenId,
        /// For which operator
        #[arg(long)]
        operator: OperatorName,
        /// The most that it may do; never more than its operator
        #[arg(long)]
        rank: RankWord,
        /// For how many days, at most 365
        #[arg(long, default_value_t = 30)]
        days: u32,
        /// The one project whose runs it may see and steer; all, and whatever its rank may, when absent
        #[arg(long)]
        project: Option<ProjectId>,
    },
    /// Makes a token worth nothing
    Revoke {
        /// The token's name
        id: TokenId,
    },
    /// Lists the tokens
    List,
}

/// Runs the command.
pub(crate) async fn token(session: &Session, command: TokenCommand) -> Result<Exit, Failure> {
    match command {
        TokenCommand::Issue {
            id,
            operator,
            rank,
            days,
            project,
        } => {
            let wish = IssueToken {
                id,
                rank: rank.into(),
                days: Some(days),
                operator: Some(operator),
                project,
            };
            let issued: IssuedToken = session.client().await?.post("/tokens", &wish).await?;
            session
                .out
                .talk("✔ issued; send it as `Authorization: Bearer <secret>`; it is shown this once:");
            session
                .out
                .data(&issued, |issued| format!("{}\n", issued.secret))?;
        }
        TokenCommand::Revoke { id } => {
            let path = format!("/tokens/{id}/revoke");
            let nothing = serde_json::json!({});
            let accepted: AcceptedView = session.client().await?.post(&path, &nothing).await?;
            session.out.talk(&format!("✔ {id} is worth nothing any more"));
            session.out.data(&accepted, |_| String::new())?;
        }
        TokenCommand::List => {
            let list: TokenList = session.client().await?.get("/tokens").await?;
            session.out.data(&list, |list| {
                let mut table = Table::new(["NAME", "WHOSE", "MAY", "IN", "UNTIL"]);
                for known in &list.tokens {
                    table.row([
                        known.id.to_string(),
                        known.operator.to_string(),
                        known.rank.to_string(),
                        known
                            .project
                            .as_ref()
                            .map_or_else(|| "all".to_owned(), ToString::to_string),
                        time::exact(known.expires_at),
                    ]);
                }
                table.render("none")
            })?;
        }
    }
    Ok(Exit::Ok)
}
