//! Plays the run: follows it live, lets a person decide where one is asked, and merges at the end.
//!
//! Without a terminal, or with `--yes`, nobody is asked and nothing waits. This module does not know how the stage was
//! built.

use std::time::Duration;

use conductor_domain::id::RunId;
use conductor_web::api::{AcceptedView, ActionRequest, GateView, RunDetail};
use futures_util::StreamExt as _;

use crate::client::Message;
use crate::command::run::is_for_a_person;
use crate::demo::stage::Stage;
use crate::exit::{Exit, Failure};
use crate::out::Out;
use crate::show;
use crate::show::progress::Progress;

/// A run that says nothing for so long has got stuck.
const SILENCE: Duration = Duration::from_mins(5);

/// How the person decides.
struct Person {
    out: Out,
    is_asked: bool,
}

/// What was played.
#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) run: RunId,
    /// Why the run stands still, where it does before its end.
    pub(crate) stuck: Option<Failure>,
}

/// Plays the run to its end.
pub(crate) async fn play(out: Out, stage: &Stage, yes: bool) -> Result<Played, Failure> {
    let started = stage.start_run().await?;
    let person = Person {
        out,
        is_asked: !yes && out.can_ask(),
    };
    let mut progress = Progress::new(out);
    let ended = follow(stage, &person, &started.run, &mut progress).await;
    progress.finish();
    let stuck = match ended {
        Ok(()) => None,
        Err(failure) if failure.exit == Exit::NeedsHuman => Some(failure),
        Err(failure) => return Err(failure),
    };
    Ok(Played {
        run: started.run,
        stuck,
    })
}

async fn follow(stage: &Stage, person: &Person, run: &RunId, progress: &mut Progress) -> Result<(), Failure> {
    let mut messages = stage.client.follow(run.as_str(), 0).await?;
    let mut acted_on = String::new();
    loop {
        let message = tokio::time::timeout(SILENCE, messages.next())
            .await
            .map_err(|_| {
                let what = format!("run {run} has said nothing for {} s", SILENCE.as_secs());
                Failure::coded(
                    "CDR0416",
                    what,
                    "the log on the stage says more; please report it",
                )
            })?;
        let Some(message) = message else {
            return Err(Failure::new(format!(
                "the stream of run {run} ended before the run did"
            )));
        };
        match message {
            Message::Record(record) => progress.record(&record),
            Message::Talk(talk) => progress.talk(&talk),
            Message::Problem(problem) => return Err(problem.into()),
            Message::State(now) => {
                progress.state(&now);
                if now.run.ended && now.cleaned_up {
                    return Ok(());
                }
                // The same question is put once, however often the run says that it waits; after other work, anew.
                let question = format!("{} {} {}", now.run.phase, now.run.needs_human, now.waits_for);
                if !is_for_a_person(&now) {
                    acted_on.clear();
                } else if question != acted_on {
                    acted_on = question;
                    progress.pause();
                    respond(stage, person, &now.run.id).await?;
                    progress.go_on();
                }
            }
        }
    }
}

async fn respond(stage: &Stage, person: &Person, run: &RunId) -> Result<(), Failure> {
    let detail: RunDetail = stage.client.get(&format!("/runs/{run}")).await?;
    if let Some(action) = person.answer(&detail).await? {
        let posted = stage.client.post(&format!("/runs/{run}/actions"), &action).await;
        if let Err(refused) = posted.map(|_: AcceptedView| ()) {
            let now: RunDetail = stage.client.get(&format!("/runs/{run}")).await?;
            if asks(&now) == asks(&detail) {
                return Err(refused);
            }
            person.out.talk("somebody else decided meanwhile");
        }
    } else if let (Some(pull_request), "awaiting_merge") = (&detail.pull_request, detail.run.phase.as_str()) {
        let question = format!(
            "merge pull request #{} as {}?",
            pull_request.number,
            stage.person()
        );
        if !person.agrees(&question).await {
            return Err(nothing_decided());
        }
        stage.merge(pull_request.number).await?;
    } else if detail.run.ended {
        let what = format!("run {run} waits for {}", detail.waits_for);
        let hint = "the log on the stage says more; please report it";
        return Err(Failure::coded("CDR0417", what, hint).exiting(Exit::NeedsHuman));
    } else if !detail.holds.is_empty() {
        let what = format!("run {run} is {}", detail.waits_for);
        let hint = if detail.tests.is_empty() {
            format!("the scenario led here; `run show {run}` there shows how")
        } else {
            format!("the scenario led here; `run show {run} --tests` there shows what the tests said")
        };
        return Err(Failure::coded("CDR0417", what, hint).exiting(Exit::NeedsHuman));
    }
    Ok(())
}

/// What a run asks of a person: at a gate, or by a question.
fn asks(detail: &RunDetail) -> (Option<String>, Option<String>) {
    let gate = detail.gate.as_ref().map(|gate| gate.subject.to_string());
    let question = detail.holds.iter().find_map(|hold| hold.question.as_ref());
    (gate, question.map(ToString::to_string))
}

impl Person {
    /// Decides at a gate or answers a question; nothing where neither is open.
    async fn answer(&self, detail: &RunDetail) -> Result<Option<ActionRequest>, Failure> {
        if let Some(gate) = &detail.gate {
            self.out.talk(&show::run::gate(gate, Out::columns_of_talk()));
            return self.decide(gate).await.map(Some);
        }
        let mut holds = detail.holds.iter();
        let Some((hold, question)) = holds.find_map(|hold| Some((hold, hold.question.as_ref()?))) else {
            return Ok(None);
        };
        self.out.talk(&conductor_web::visible::text(&hold.text).text);
        let text = if self.is_asked {
            Out::ask("your answer: ").await.unwrap_or_default()
        } else {
            "Go on as you think best.".to_owned()
        };
        Ok(Some(ActionRequest::Answer {
            question: question.clone(),
            text,
        }))
    }

    /// Approves, or says what else should become of the run.
    async fn decide(&self, gate: &GateView) -> Result<ActionRequest, Failure> {
        let (kind, subject) = (Some(gate.kind), gate.subject.clone());
        if self.agrees(&format!("approve this {}?", gate.kind)).await {
            return Ok(ActionRequest::Approve {
                gate: kind,
                subject,
                comment: None,
            });
        }
        match self.otherwise().await {
            Otherwise::Revise => {
                let comment = Out::ask("what must be different? ").await.unwrap_or_default();
                Ok(ActionRequest::Revise {
                    gate: kind,
                    subject,
                    comment,
                })
            }
            Otherwise::Reject => Ok(ActionRequest::Reject {
                gate: kind,
                subject,
                comment: None,
            }),
            Otherwise::Abort => Err(nothing_decided()),
        }
    }

    async fn otherwise(&self) -> Otherwise {
        loop {
            let question =
                "then [r]evise it (if the scenario has another), re[j]ect it, or [a]bort the demo? ";
            let Some(said) = Out::ask(question).await else {
                return Otherwise::Abort;
            };
            if let Some(understood) = Otherwise::parse(&said) {
                return understood;
            }
            self.out.talk("say `r`, `j` or `a`");
        }
    }

    async fn agrees(&self, question: &str) -> bool {
        if !self.is_asked {
            self.out.talk(&format!("{question} yes"));
            return true;
        }
        let said = Out::ask(&format!("{question} [Y/n] "))
            .await
            .unwrap_or_else(|| "n".to_owned());
        matches!(said.to_ascii_lowercase().as_str(), "" | "y" | "yes")
    }
}

/// What should become of a run whose plan or change was not approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Otherwise {
    Revise,
    Reject,
    Abort,
}

impl Otherwise {
    /// Understands a clear answer.
    fn parse(said: &str) -> Option<Self> {
        match said.to_ascii_lowercase().as_str() {
            "r" | "revise" => Some(Self::Revise),
            "j" | "reject" => Some(Self::Reject),
            "a" | "abort" => Some(Self::Abort),
            _ => None,
        }
    }
}

fn nothing_decided() -> Failure {
    Failure::coded(
        "CDR0415",
        "nothing was decided; the demo ends and everything is taken down",
        "start the demo again and answer `y`",
    )
    .exiting(Exit::Refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_answer_decides_anything() {
        let understood = ["r", "Revise", "j", "reject", "a", "", "what?"].map(Otherwise::parse);
        assert_eq!(
            understood,
            [
                Some(Otherwise::Revise),
                Some(Otherwise::Revise),
                Some(Otherwise::Reject),
                Some(Otherwise::Reject),
                Some(Otherwise::Abort),
                None,
                None,
            ]
        );
    }
}
