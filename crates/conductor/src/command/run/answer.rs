//! `conductor run answer`: a person's words, bound to exactly the question that person saw (BEY-4).
//!
//! The answer names a question: the one given with `--question`, or the one that was just shown. An agent that has another
//! one by the time the words arrive must not take them for it. This module does not know what the words mean.

use conductor_domain::id::{EffectId, RunId};
use conductor_domain::refusal::Refusal;
use conductor_web::api::{ActionRequest, HoldView, RunDetail};
use conductor_web::visible;

use super::act;
use crate::exit::{Exit, Failure};
use crate::out::Out;
use crate::session::Session;
use crate::show;

/// A run, and the answer to its question.
#[derive(Debug, clap::Args)]
pub(crate) struct AnswerArgs {
    /// The run's id, as in `conductor approvals`
    run: RunId,
    /// The answer
    text: String,
    /// Answers exactly this question; any other is refused
    #[arg(long, value_name = "ID", conflicts_with = "yes")]
    question: Option<EffectId>,
    /// Answers the question that is open now, without being asked
    #[arg(long, short = 'y')]
    yes: bool,
}

/// Runs the command.
pub(crate) async fn answer(session: &Session, args: AnswerArgs) -> Result<Exit, Failure> {
    let question = match args.question {
        Some(question) => question,
        None => look(session, &args.run, args.yes).await?,
    };
    let action = ActionRequest::Answer {
        question,
        text: args.text,
    };
    act::act(session, &args.run, &action, "has its answer").await
}

/// Shows the open question and asks; the answer then names what was shown.
async fn look(session: &Session, run: &RunId, yes: bool) -> Result<EffectId, Failure> {
    let client = session.client().await?;
    let detail: RunDetail = client.get(&format!("/runs/{run}")).await?;
    let Some((hold, question)) = open(&detail) else {
        return Err(conductor_web::Error::from(Refusal::NoSuchQuestion).into());
    };
    let shown = show::run::question(question, &hold.text, Out::columns_of_talk());
    if yes {
        session.out.talk(&shown);
        return Ok(question.clone());
    }
    if !session.out.can_ask() {
        let words = visible::line(&hold.text);
        let what = format!("nobody can be asked here whether to answer {question}: {words}");
        let hint = format!("give --question {question}, or --yes for whatever is asked now");
        return Err(Failure::coded("CDR0414", what, hint).exiting(Exit::Usage));
    }
    session.out.talk(&shown);
    let said = Out::ask("answer this question? [y/N] ").await.unwrap_or_default();
    if matches!(said.to_ascii_lowercase().as_str(), "y" | "yes") {
        Ok(question.clone())
    } else {
        Err(
            Failure::coded("CDR0415", "nothing was answered", "answer `y` to answer it")
                .exiting(Exit::Refused),
        )
    }
}

/// The open question, and the hold that shows it.
fn open(detail: &RunDetail) -> Option<(&HoldView, &EffectId)> {
    let mut holds = detail.holds.iter();
    holds.find_map(|hold| hold.question.as_ref().map(|question| (hold, question)))
}
