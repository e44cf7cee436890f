//! `conductor approvals`: the inbox of everything that waits for a person's word; merges wait at the forge and are counted.
//!
//! It does not know how an approval is given.

use std::fmt::Write as _;

use conductor_domain::phase::PhaseName;
use conductor_web::words::text::count;

use crate::clock::machine_now;
use crate::command::kill_switch;
use crate::exit::{Exit, Failure};
use crate::out::Shown;
use crate::session::Session;
use crate::show::{state, time, words};
use crate::source::Wanted;

/// Runs the command.
pub(crate) async fn approvals(session: &Session) -> Result<Exit, Failure> {
    let source = session.source().await?;
    let approvals = source.approvals().await?;
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
                time::ago(waiting.asked_at.unwrap_or(run.updated_at), now),
                state::waits(run, &waiting.waits_for)
            );
            for finding in waiting.gate.iter().flat_map(|gate| &gate.findings) {
                let _string = writeln!(text, "  ! {}", conductor_web::visible::line(finding));
            }
            for step in &waiting.next {
                let _string = writeln!(text, "    {}", session.typed(&step.command));
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
        Shown::or(text, "nothing waits for your word")
    })?;
    if !session.out.is_json() {
        let wanted = Wanted {
            phase: Some(PhaseName::AwaitingMerge.as_str().to_owned()),
            limit: 500,
            ..Wanted::default()
        };
        let merges = source.runs(wanted).await?.runs.len();
        if merges > 0 {
            let merges = count(merges, "pull request");
            let list = session.typed("conductor run list --phase awaiting_merge");
            session
                .out
                .talk(&format!("at the forge, {merges} can be merged: `{list}`"));
        }
    }
    kill_switch::mention(session, &source).await?;
    Ok(Exit::Ok)
}
