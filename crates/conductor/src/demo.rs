//! The demo: builds a stage (forge, server, repository, issue), plays a run on it, proves what happened, tears it down.
//!
//! Speaks to the server through its own door like any other client. This module does not know how a run works.

mod story;
mod stage;
mod act;
mod summary;

use conductor_domain::spec::ExecutorName;
use conductor_executor::local::{Limits, MayMiss, Protection};
use conductor_executor::{Consent, Reason, choice};

use crate::clock::Stopwatch;
use crate::command::demo::DemoArgs;
use crate::environment;
use crate::executors::{Containers, Named};
use crate::exit::{Exit, Failure};
use crate::session::Session;
use crate::settings::{DatabaseUrl, ToldSandbox};
use crate::signals;
use crate::wire;

use act::Played;
use stage::Stage;
use story::Story;
use summary::{After, Summary};

/// What a demo leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    /// Nothing.
    Nothing,
    /// What went wrong, to be looked at.
    Everything,
}

/// Plays the demo. Its records lie in its own directory, or in a schema of their own in the database that was named; both
/// go with it unless something went wrong.
pub(crate) async fn play(session: &Session, args: DemoArgs) -> Result<Exit, Failure> {
    let scratch = match &args.database_url {
        Some(url) => Some(wire::scratch(url).await?),
        None => None,
    };
    let mut left = Left::Nothing;
    let url = scratch.as_ref().map(wire::address);
    let played = play_there(session, args, url, &mut left).await;
    match (scratch, left) {
        (Some(scratch), Left::Nothing) => scratch.remove().await.map_err(wire::cannot_open)?,
        (Some(scratch), Left::Everything) => session.out.talk(&format!(
            "its records are left in schema {} of the database",
            scratch.name()
        )),
        (None, _) => {}
    }
    played
}

async fn play_there(
    session: &Session,
    args: DemoArgs,
    url: Option<DatabaseUrl>,
    left: &mut Left,
) -> Result<Exit, Failure> {
    let out = session.out;
    let story = Story::choose(&args)?;
    let executor = executor(args.executor.as_deref(), args.image.as_deref())?;
    let watch = Stopwatch::start();
    out.talk(&format!("Conductor demo: {}", story.about));
    // The stage is taken down whichever of them comes.
    let mut signals = signals::listen()?;
    let mut stage = tokio::select! {
        stage = Stage::build(&story, executor, url) => stage?,
        () = signals.told() => return Err(interrupted()),
    };
    let set_up_ms = watch.millis();
    out.talk(&format!(
        "✔ forge at {}, server at {}",
        stage.forge_url(),
        stage.url()
    ));
    let played = tokio::select! {
        played = act::play(out, &stage, args.yes) => played,
        () = signals.told() => Err(interrupted()),
    };
    let ended = match played {
        Ok(Played { run, stuck }) => {
            let summary = Summary::of(&stage, run, set_up_ms, watch.millis()).await;
            match (summary, stuck) {
                (Ok(summary), None) => Ok(summary),
                (Ok(summary), Some(failure)) => Err((Some(summary), failure)),
                (Err(failure), _) => Err((None, failure)),
            }
        }
        Err(failure) => Err((None, failure)),
    };
    let summary = match ended {
        Ok(summary) => summary,
        Err((_none, failure)) if failure.exit == Exit::Refused || failure == interrupted() => {
            stage.tear_down().await?;
            return Err(failure);
        }
        Err((summary, failure)) => {
            // A program that asked for JSON is told how far it came; people have seen it.
            if let Some(summary) = summary.filter(|_| out.is_json()) {
                out.data(&summary, |summary| summary.people(After::Stays))?;
            }
            *left = Left::Everything;
            let kept = stage.leave_behind().await;
            out.talk(&format!(
                "the stage is left for you to look at: conductor --data-dir {0}/data run list\n\
                 nothing runs there any more; remove {0} when you have seen enough",
                kept.display()
            ));
            return Err(failure);
        }
    };
    let after = if args.keep { After::Stays } else { After::Goes };
    out.data(&summary, |summary| summary.people(after))?;
    if args.keep {
        out.talk(&format!(
            "still running; look around with\n  {}\nCtrl-C ends it",
            stage.look_around()
        ));
        signals.told().await;
    } else {
        out.talk("everything is taken down again; `--keep` leaves it running to look around");
    }
    let is_well = summary.is_well();
    stage.tear_down().await?;
    Ok(if is_well { Exit::Ok } else { Exit::Failed })
}

/// The local sandbox, unless another was named. The story is ours word for word, so where nobody may write a cgroup its
/// commands run without those limits; everything else of the sandbox stays.
fn executor(named: Option<&str>, image: Option<&str>) -> Result<Named, Failure> {
    let consent = Consent::to_run_commands_without_a_sandbox(Reason::Demo);
    let named = named.unwrap_or(ExecutorName::Local.as_str());
    let chosen = choice::choose(Some(named), Some(&consent)).map_err(|refused| {
        Failure::coded("CDR0405", refused.to_string(), "leave --executor out").exiting(Exit::Refused)
    })?;
    let may_miss = if nix::unistd::geteuid().is_root() {
        MayMiss::default()
    } else {
        MayMiss::these(Protection::ALL)
    };
    Ok(match chosen {
        ExecutorName::UnsafePlain => Named::UnsafePlain(consent),
        ExecutorName::Docker => {
            let containers = ToldSandbox::default().containers();
            Named::Docker(Containers {
                may_miss,
                image: image.map_or(containers.image, ToOwned::to_owned),
                ..containers
            })
        }
        ExecutorName::Local => Named::Local {
            limits: Limits::default(),
            may_miss,
            guest: environment::guest(),
        },
    })
}

fn interrupted() -> Failure {
    Failure::new("the demo was interrupted")
}
