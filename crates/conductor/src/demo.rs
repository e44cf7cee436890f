//! The demo: builds a stage (forge, server, repository, issue), plays a run on it, proves what happened, tears it down.
//!
//! Speaks to the server through its own door like any other client. This module does not know how a run works.

mod story;
mod stage;
mod act;
mod summary;

use tokio::signal::unix::{SignalKind, signal};

use crate::clock::Stopwatch;
use crate::command::demo::DemoArgs;
use crate::exit::{Exit, Failure};
use crate::session::Session;

use stage::Stage;
use story::Story;
use summary::Summary;

/// Plays the demo.
pub(crate) async fn play(session: &Session, args: DemoArgs) -> Result<Exit, Failure> {
    let out = session.out;
    let story = Story::choose(&args)?;
    let watch = Stopwatch::start();
    out.talk(&format!("Conductor demo: {}", story.about));
    let mut stage = tokio::select! {
        stage = Stage::build(&story) => stage?,
        () = told_to_end() => return Err(interrupted()),
    };
    let set_up_ms = watch.millis();
    out.talk(&format!(
        "✔ forge at {}, server at {}",
        stage.forge_url(),
        stage.url()
    ));
    let played = tokio::select! {
        played = act::play(out, &stage, args.yes) => played,
        () = told_to_end() => Err(interrupted()),
    };
    let summary = match played {
        Ok(run) => Summary::of(&stage, run, set_up_ms, watch.millis()).await,
        Err(failure) => Err(failure),
    };
    let summary = match summary {
        Ok(summary) => summary,
        Err(failure) if failure.exit == Exit::Refused || failure == interrupted() => {
            stage.tear_down().await?;
            return Err(failure);
        }
        Err(failure) => {
            let kept = stage.leave_behind().await;
            out.talk(&format!(
                "the stage is left for you to look at in {}",
                kept.display()
            ));
            return Err(failure);
        }
    };
    out.data(&summary, Summary::people)?;
    if args.keep {
        out.talk(&format!(
            "still running; look around with\n  {}\nCtrl-C ends it",
            stage.look_around()
        ));
        told_to_end().await;
    }
    let is_well = summary.is_well();
    stage.tear_down().await?;
    Ok(if is_well { Exit::Ok } else { Exit::Failed })
}

/// Waits for Ctrl-C or a polite kill; the stage is taken down either way.
async fn told_to_end() {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}

fn interrupted() -> Failure {
    Failure::new("the demo was interrupted")
}
