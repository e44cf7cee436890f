//! `conductor kill-switch`: stops all agent execution at once, or lets it go on (SEC-6).
//!
//! It does not know what is stopped.

use conductor_web::api::{AcceptedView, KillSwitch};

use crate::exit::{Exit, Failure};
use crate::session::Session;

/// Stops all agent execution, or lets it go on
#[derive(Debug, clap::Args)]
pub(crate) struct KillSwitchArgs {
    /// On stops everything
    #[arg(value_enum)]
    position: Position,
}

/// How the switch stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Position {
    /// Nothing executes
    On,
    /// Runs go on
    Off,
}

/// Runs the command.
pub(crate) async fn kill_switch(session: &Session, args: KillSwitchArgs) -> Result<Exit, Failure> {
    let on = args.position == Position::On;
    let client = session.client().await?;
    let accepted: AcceptedView = client.post("/kill-switch", &KillSwitch { on }).await?;
    session.out.talk(if on {
        "✔ the kill switch is on: no agent executes"
    } else {
        "✔ the kill switch is off"
    });
    session.out.data(&accepted, |_| String::new())?;
    Ok(Exit::Ok)
}
