//! What a run took, counted as its events happen.

use std::collections::BTreeMap;

use conductor_domain::Event;
use conductor_domain::figures::{Figures, fold};
use conductor_domain::hold::{Hold, HoldKind};
use conductor_domain::invocation::Purpose;
use conductor_domain::phase::{EndReason, PhaseName};
use conductor_domain::time::{Millis, Timestamp};

use crate::scenarios::way;
use crate::script::play;
use crate::world::{World, operator, spec};

fn at(seconds: i64) -> Timestamp {
    Timestamp(seconds * 1_000_000)
}

fn reason() -> EndReason {
    EndReason::PlanRejected { by: operator("ann") }
}

fn story() -> Vec<(i64, Event)> {
    let hold = Hold::Failure { reason: "r".into() };
    let kind = HoldKind::Failure;
    vec![
        (
            0,
            Event::RunStarted {
                spec: Box::new(spec()),
            },
        ),
        (10, Event::HoldPlaced { hold }),
        (25, Event::HoldReleased { kind }),
        (30, Event::PhaseRetried { by: operator("ann") }),
        (40, Event::RunCancelled { reason: reason() }),
        (90, Event::CleanedUp { saved: None }),
    ]
}

/// UI-1: time is counted where a run stood when it passed, and none after its end.
#[test]
fn time_is_counted_where_the_run_stood() {
    let told = story();
    let (_, figures) = told
        .iter()
        .fold((None, None), |(run, figures), (seconds, event)| {
            fold(run, figures, [event], at(*seconds))
        });
    let expected = Figures {
        counted_to: at(90),
        phases: BTreeMap::from([(PhaseName::Pending, Millis(40_000))]),
        waited: Millis(15_000),
        attempts: 0,
        retries: 1,
        ended_at: Some(at(40)),
    };
    assert_eq!(figures, Some(expected));
}

/// UI-1: what is not known from the beginning is not made up from the middle.
#[test]
fn a_run_without_figures_gets_none() {
    let told = story();
    let (run, _) = fold(None, None, [&told[0].1], at(0));
    assert_eq!(fold(run, None, [&told[1].1], at(10)).1, None);
}

/// UI-1: of a whole story the attempts and repeats are counted as they happened, from the moment that it began.
#[test]
fn attempts_and_repeats_of_a_whole_story_are_counted() {
    let mut world = World::new();
    for step in way("to testing") {
        play(&mut world, step).expect("a known step");
    }
    for step in ["tests exit 1", "tester reports failed", "implementer is done"] {
        play(&mut world, step);
    }
    let begun = at(100);
    let (mut run, mut figures, mut attempts, mut retries) = (None, None, 0, 0);
    for (_, _, decision) in &world.history {
        for event in &decision.events {
            attempts += u32::from(matches!(
                event,
                Event::InvocationEnded {
                    purpose: Purpose::Implement,
                    counts: true,
                    ..
                }
            ));
            retries += u32::from(matches!(event, Event::AttemptFailed { .. }));
            (run, figures) = fold(run, figures, [event], begun);
        }
    }
    let figures = figures.expect("known from the beginning");
    assert!(attempts >= 1, "nobody tried");
    assert_eq!((figures.attempts, figures.retries), (attempts, retries));
    assert_eq!(figures.counted_to, begun);
    assert!(
        figures.phases.values().all(|time| *time == Millis(0)),
        "{figures:?}"
    );
}
