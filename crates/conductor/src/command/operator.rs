//! `conductor operator`: who works with this instance from afar, and what they may do (SEC-7).
//!
//! Whoever has the data directory needs no entry here. A password is read from standard input or made up and printed once,
//! and never stands on a command line. It does not know sessions.

use std::io::Read as _;

use conductor_domain::id::OperatorName;
use conductor_web::api::{AcceptedView, AddOperator, ChangeRank, OperatorList, SetPassword, SignOut};

use crate::clock::mint_secret;
use crate::command::token::RankWord;
use crate::exit::{Exit, Failure};
use crate::out::Out;
use crate::session::Session;
use crate::show::table::Table;

/// Manages people who sign in remotely
#[derive(Debug, clap::Subcommand)]
pub(crate) enum OperatorCommand {
    /// Adds an operator; makes up a password and prints it, unless one comes on standard input
    Add {
        /// The name
        name: OperatorName,
        /// What they may do
        #[arg(long)]
        rank: RankWord,
        /// Reads the password from standard input
        #[arg(long)]
        password_stdin: bool,
    },
    /// Changes what an operator may do
    Rank {
        /// The name
        name: OperatorName,
        /// What they may do from now on
        rank: RankWord,
    },
    /// Sets an operator's password and ends their sessions; makes one up unless it comes on standard input
    Password {
        /// The name
        name: OperatorName,
        /// Reads the password from standard input
        #[arg(long)]
        password_stdin: bool,
    },
    /// Ends all sessions and links of an operator in browsers, or of whoever owns the data directory
    SignOut {
        /// The name; your own as the owner when absent
        name: Option<OperatorName>,
    },
    /// Removes an operator, with tokens and sessions
    Remove {
        /// The name
        name: OperatorName,
    },
    /// Lists the operators
    List,
}

/// A password, and whether somebody must be told.
enum Password {
    Given(String),
    MadeUp(String),
}

impl Password {
    fn get(is_given: bool) -> Result<Self, Failure> {
        if !is_given {
            // Half of a secret's 256 bits are more than anybody guesses, and less to type.
            return Ok(Self::MadeUp(mint_secret().chars().take(32).collect()));
        }
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(|error| Failure::because("reading the password from standard input", &error))?;
        Ok(Self::Given(text.trim_end_matches(['\r', '\n']).to_owned()))
    }

    fn word(&self) -> String {
        match self {
            Self::Given(word) | Self::MadeUp(word) => word.clone(),
        }
    }
}

/// Runs the command.
pub(crate) async fn operator(session: &Session, command: OperatorCommand) -> Result<Exit, Failure> {
    match command {
        OperatorCommand::Add {
            name,
            rank,
            password_stdin,
        } => {
            let password = Password::get(password_stdin)?;
            let wish = AddOperator {
                name: name.clone(),
                rank: rank.into(),
                password: password.word(),
            };
            let client = session.client().await?;
            let accepted: AcceptedView = client.post("/operators", &wish).await?;
            session.out.talk(&format!("✔ {name} works here as {}", wish.rank));
            told(session, &accepted, &password)?;
        }
        OperatorCommand::Rank { name, rank } => {
            let wish = ChangeRank { rank: rank.into() };
            let path = format!("/operators/{name}/rank");
            let accepted: AcceptedView = session.client().await?.post(&path, &wish).await?;
            session.out.talk(&format!("✔ {name} is {} now", wish.rank));
            session.out.data(&accepted, |_| String::new())?;
        }
        OperatorCommand::Password { name, password_stdin } => {
            let password = Password::get(password_stdin)?;
            let wish = SetPassword {
                password: password.word(),
            };
            let path = format!("/operators/{name}/password");
            let accepted: AcceptedView = session.client().await?.post(&path, &wish).await?;
            session
                .out
                .talk(&format!("✔ {name} has a new password and is signed out"));
            told(session, &accepted, &password)?;
        }
        OperatorCommand::SignOut { name } => {
            let whose = name.as_ref().map_or("you are", |_| "they are");
            let said = format!("✔ {whose} signed out of every browser; tokens go on");
            let wish = SignOut { operator: name };
            let accepted: AcceptedView = session.client().await?.post("/sign-out", &wish).await?;
            session.out.talk(&said);
            session.out.data(&accepted, |_| String::new())?;
        }
        OperatorCommand::Remove { name } => {
            let path = format!("/operators/{name}/remove");
            let nothing = serde_json::json!({});
            let accepted: AcceptedView = session.client().await?.post(&path, &nothing).await?;
            session.out.talk(&format!("✔ {name} does not work here any more"));
            session.out.data(&accepted, |_| String::new())?;
        }
        OperatorCommand::List => {
            let list: OperatorList = session.client().await?.get("/operators").await?;
            session.out.data(&list, |list| {
                let mut table = Table::new(["NAME", "RANK"]);
                for known in &list.operators {
                    table.row([known.name.to_string(), known.rank.to_string()]);
                }
                table.render("nobody; whoever has the data directory comes in with `conductor open`")
            })?;
        }
    }
    Ok(Exit::Ok)
}

/// Prints a password that was made up, once.
fn told(session: &Session, accepted: &AcceptedView, password: &Password) -> Result<(), Failure> {
    match password {
        Password::Given(_) => session.out.data(accepted, |_| String::new()),
        Password::MadeUp(word) if session.out.is_json() => {
            Out::text(&format!("{}\n", serde_json::json!({ "password": word })))
        }
        Password::MadeUp(word) => {
            session.out.talk("the password, shown this once:");
            Out::text(&format!("{word}\n"))
        }
    }
}
