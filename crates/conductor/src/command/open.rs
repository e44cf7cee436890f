//! `conductor open`: prints a link that signs one browser in, once (S-55).
//!
//! It does not know what is on the pages.

use conductor_domain::id::RunId;
use conductor_web::api::LinkView;

use crate::exit::{Exit, Failure};
use crate::session::Session;

/// Prints a link that signs one browser in, once, within ten minutes
#[derive(Debug, clap::Args)]
pub(crate) struct OpenArgs {
    /// Leads to the page of this run
    run: Option<RunId>,
}

/// Asks the running server for a link.
pub(crate) async fn link(session: &Session) -> Result<LinkView, Failure> {
    let client = session.client().await?;
    client.post("/links", &serde_json::json!({})).await
}

/// Runs the command.
pub(crate) async fn open(session: &Session, args: OpenArgs) -> Result<Exit, Failure> {
    let mut link = link(session).await?;
    if let Some(run) = args.run {
        link.url = format!("{}?run={run}", link.url);
    }
    session
        .out
        .talk("open this in a browser; it works once, within ten minutes");
    session.out.data(&link, |link| format!("{}\n", link.url))?;
    Ok(Exit::Ok)
}
