//! `conductor approvals`: the inbox of everything that waits for a person.
//!
//! It does not know how an approval is given.

use std::fmt::Write as _;

use crate::clock::machine_now;
use crate::exit::{Exit, Failure};
use crate::session::Session;
use crate::show::{state, time, words};

/// Runs the command.
pub(crate) async fn approvals(session: &Session) -> Result<Exit, Failure> {
    let approvals = session.source().await?.approvals().await?;
    let now = machine_now();
    session.out.data(&approvals, |approvals| {
        let mut text = String::new();
        for waiting in &approvals.waiting {
            let run = &waiting.run;
            let title = words::title(&run.title);
            let _string = writeln!(
                text,
                "{}  {}  {}#{} {title}",
                run.id,
                state::state(run),
                run.repo,
                run.issue
            );
            let _string = writeln!(
                text,
                "  since {}, {}",
                time::ago(run.updated_at, now),
                state::waits(run, &waiting.waits_for)
            );
            for finding in waiting.gate.iter().flat_map(|gate| &gate.findings) {
                let _string = writeln!(text, "  ! {}", conductor_web::visible::line(finding));
            }
            for step in &waiting.next {
                let _string = writeln!(text, "    {}", step.command);
            }
            text.push('\n');
        }
        for run in &approvals.damaged {
            let _string = writeln!(
                text,
                "{}  {}  {}#{}\n",
                run.id,
                state::state(run),
                run.repo,
                run.issue
            );
        }
        if text.is_empty() {
            "nothing waits for you\n".to_owned()
        } else {
            text
        }
    })?;
    Ok(Exit::Ok)
}
