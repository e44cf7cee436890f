//! `conductor kill-switch`: stops all agent execution at once, lets it go on, or tells how it stands (SEC-6).
//!
//! It does not know what is stopped.

use conductor_web::api::{AcceptedView, KillSwitch};

use crate::exit::{Exit, Failure};
use crate::session::Session;
use crate::source::Source;

/// Stops all agent execution, lets it go on, or tells how the switch stands
#[derive(Debug, clap::Args)]
pub(crate) struct KillSwitchArgs {
    /// On stops everything; without it, tells how the switch stands
    #[arg(value_enum)]
    position: Option<Position>,
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
    let Some(position) = args.position else {
        let on = session.source().await?.instance().await?.kill_switch;
        session
            .out
            .data(&KillSwitch { on }, |switch| format!("{}\n", told(switch.on)))?;
        return Ok(Exit::Ok);
    };
    let on = position == Position::On;
    let client = session.client().await?;
    let accepted: AcceptedView = client.post("/kill-switch", &KillSwitch { on }).await?;
    session.out.talk(&format!("✔ {}", told(on)));
    session.out.data(&accepted, |_| String::new())?;
    Ok(Exit::Ok)
}

fn told(on: bool) -> &'static str {
    if on {
        "the kill switch is on: no agent executes"
    } else {
        "the kill switch is off"
    }
}

/// Says so where people look at runs, because it is why none of them moves.
pub(crate) async fn mention(session: &Session, source: &Source) -> Result<(), Failure> {
    if !session.out.is_json() && source.instance().await?.kill_switch {
        session.out.talk(&format!(
            "{}; `conductor kill-switch off` lets runs go on",
            told(true)
        ));
    }
    Ok(())
}
