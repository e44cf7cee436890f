//! `conductor run approve|revise|reject`: a person's answer, bound to exactly what that person saw (BEY-1).
//!
//! The answer names a digest: the one given with `--subject`, or the one of what was just shown. It does not know what
//! the digest covers.

use conductor_domain::digest::Digest;
use conductor_domain::gate::GateKind;
use conductor_domain::id::RunId;
use conductor_web::api::{AcceptedView, ActionRequest, RunDetail};

use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::out::Out;
use crate::session::Session;
use crate::show;

/// Answers at a gate.
#[derive(Debug, clap::Args)]
pub(crate) struct DecideArgs {
    /// The run's id, as in `conductor approvals`
    run: RunId,
    /// Answers exactly this digest; anything newer is refused
    #[arg(long, value_name = "DIGEST", conflicts_with = "yes")]
    subject: Option<Digest>,
    /// Answers what stands there now, without being asked
    #[arg(long, short = 'y')]
    yes: bool,
    /// What to say with it; `revise` needs one
    #[arg(long, short = 'm', value_name = "TEXT")]
    comment: Option<String>,
}

/// What a person says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Go on.
    Approve,
    /// Do it again.
    Revise,
    /// Stop.
    Reject,
}

impl Answer {
    fn verb(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Revise => "revise",
            Self::Reject => "reject",
        }
    }

    fn past(self) -> &'static str {
        match self {
            Self::Approve => "approved",
            Self::Revise => "sent back",
            Self::Reject => "rejected",
        }
    }
}

/// Runs the command.
pub(crate) async fn decide(session: &Session, answer: Answer, args: DecideArgs) -> Result<Exit, Failure> {
    if answer == Answer::Revise && args.comment.as_deref().unwrap_or_default().trim().is_empty() {
        let hint = "say what should change with --comment";
        return Err(Failure::coded("CDR0110", "a comment is required", hint).exiting(Exit::Usage));
    }
    let client = session.client().await?;
    let (gate, subject) = if let Some(subject) = args.subject {
        (None, subject)
    } else {
        let (gate, subject) = look(session, &client, answer, &args.run, args.yes).await?;
        (Some(gate), subject)
    };
    let accepted = submit(&client, answer, &args.run, gate, &subject, args.comment).await?;
    session
        .out
        .talk(&format!("✔ {} {}", answer.past(), subject.short()));
    session.out.data(&accepted, |_| String::new())?;
    Ok(Exit::Ok)
}

/// Submits an answer.
pub(crate) async fn submit(
    client: &Client,
    answer: Answer,
    run: &RunId,
    gate: Option<GateKind>,
    subject: &Digest,
    comment: Option<String>,
) -> Result<AcceptedView, Failure> {
    let subject = subject.clone();
    let action = match answer {
        Answer::Approve => ActionRequest::Approve {
            gate,
            subject,
            comment,
        },
        Answer::Revise => ActionRequest::Revise {
            gate,
            subject,
            comment: comment.unwrap_or_default(),
        },
        Answer::Reject => ActionRequest::Reject {
            gate,
            subject,
            comment,
        },
    };
    client.post(&format!("/runs/{run}/actions"), &action).await
}

/// Shows what stands at the gate and asks; the answer then names what was shown.
async fn look(
    session: &Session,
    client: &Client,
    answer: Answer,
    run: &RunId,
    yes: bool,
) -> Result<(GateKind, Digest), Failure> {
    let detail: RunDetail = client.get(&format!("/runs/{run}")).await?;
    let Some(gate) = &detail.gate else {
        let what = format!(
            "run {run} asks for no approval; it waits for {}",
            detail.waits_for
        );
        return Err(Failure::coded(
            "CDR0413",
            what,
            format!(
                "`{}` shows where it stands",
                session.typed(&format!("conductor run show {run}"))
            ),
        )
        .exiting(Exit::Refused));
    };
    let shown = (gate.kind, gate.subject.clone());
    if yes {
        return Ok(shown);
    }
    if !session.out.can_ask() {
        let what = format!(
            "nobody can be asked here whether to {} {} {}",
            answer.verb(),
            gate.kind,
            gate.subject
        );
        let hint = format!(
            "give --subject {}, or --yes for whatever stands there",
            gate.subject
        );
        return Err(Failure::coded("CDR0414", what, hint).exiting(Exit::Usage));
    }
    session.out.talk(&show::run::gate(gate, Out::columns_of_talk()));
    let question = format!("{} this {}? [y/N] ", answer.verb(), gate.kind);
    let said = Out::ask(&question).await.unwrap_or_default();
    if matches!(said.to_ascii_lowercase().as_str(), "y" | "yes") {
        Ok(shown)
    } else {
        Err(Failure::coded("CDR0415", "nothing was decided", "answer `y` to decide").exiting(Exit::Refused))
    }
}
