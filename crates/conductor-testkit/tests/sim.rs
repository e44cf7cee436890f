//! Plays stories by the hundred; each ends the same, whatever the weather and wherever Conductor dies.

use std::collections::BTreeSet;

use conductor_domain::phase::PhaseName;
use conductor_engine::Engine;
use conductor_testkit::sim::{Deaths, Ending, Story, Twist, play};
use conductor_testkit::world::Climate;

fn check(seed: u64, story: &Story) -> Ending {
    play(seed, story).unwrap_or_else(|wrong| panic!("{wrong}\n{story:?}"))
}

/// RUN-5 to RUN-10.
#[test]
fn a_run_goes_from_issue_to_merged_pull_request() {
    let ending = check(0, &Story::plain());
    assert_eq!((ending.died_at, ending.faults, ending.retries), (vec![], 0, 0));
}

/// RUN-2: one seed, one story, to the last record.
#[test]
fn the_same_seed_plays_the_same_story() {
    let story = Story {
        runs: 2,
        climate: Climate::ROUGH,
        deaths: Deaths::Anywhere { times: 2, apart: 200 },
        ..Story::plain()
    };
    assert_eq!(check(7, &story), check(7, &story));
}

/// Dies once at a point, at each time that it is reached; the ending is always the same.
fn die_at(point: &'static str) {
    let times = check(1, &Story::plain())
        .reached
        .get(point)
        .copied()
        .unwrap_or_default();
    assert!(times > 0, "{point} is never reached");
    for n in 1..=times {
        // Every other time it is alone on its ledger and does not wait for its own leases.
        let twists: &[Twist] = if n % 2 == 0 { &[Twist::OwnsName] } else { &[] };
        let story = Story {
            deaths: Deaths::At { point, n },
            twists,
            ..Story::plain()
        };
        assert_eq!(check(1, &story).died_at, [point]);
    }
}

/// One test per crash point, and one that there is a test for each.
macro_rules! deaths {
    ($($test:ident => $point:literal),* $(,)?) => {
        $(
            /// RUN-4, RUN-12a: one pull request, one of each comment.
            #[test]
            fn $test() {
                die_at($point);
            }
        )*

        #[test]
        fn every_crash_point_has_its_test() {
            let tested: BTreeSet<&str> = [$($point),*].into();
            assert_eq!(tested, Engine::crash_points().iter().copied().collect());
        }
    };
}

deaths! {
    dying_before_any_commit_changes_nothing_in_the_end => "commit.before",
    dying_after_any_commit_changes_nothing_in_the_end => "commit.after",
    dying_before_any_lease_changes_nothing_in_the_end => "lease.before",
    dying_after_any_lease_changes_nothing_in_the_end => "lease.after",
    dying_before_any_performance_changes_nothing_in_the_end => "perform.before",
    dying_after_any_performance_changes_nothing_in_the_end => "perform.after",
    dying_before_any_report_changes_nothing_in_the_end => "report.before",
    dying_after_any_report_changes_nothing_in_the_end => "report.after",
    dying_before_any_tool_call_changes_nothing_in_the_end => "tool.before",
    dying_after_any_tool_call_changes_nothing_in_the_end => "tool.after",
}

/// RUN-4: without the look for an earlier comment there are two; the simulation sees it.
#[test]
fn a_comment_that_is_not_looked_for_is_there_twice() {
    let ending = |n| {
        let deaths = Deaths::At {
            point: "perform.after",
            n,
        };
        play(
            1,
            &Story {
                deaths,
                twists: &[Twist::ForgetfulForge],
                ..Story::plain()
            },
        )
    };
    let doubled = (1..40)
        .filter_map(|n| ending(n).err())
        .find(|wrong| wrong.contains("is there 2 times"));
    assert!(doubled.is_some(), "nobody noticed");
}

/// The process really dies, at the place and the time it is told (stories kill the real server this way).
#[test]
#[allow(clippy::disallowed_methods, reason = "this test is about the process itself")]
fn a_test_build_dies_where_it_is_told() {
    use std::os::unix::process::ExitStatusExt as _;
    let status = |at: &str| {
        std::process::Command::new(std::env::current_exe().expect("a test binary"))
            .args(["--exact", "a_run_goes_from_issue_to_merged_pull_request"])
            .env("CONDUCTOR_CRASH_AT", at)
            .stdout(std::process::Stdio::null())
            .status()
            .expect("the binary starts")
    };
    assert_eq!(status("report.after:3").signal(), Some(9));
    assert!(status("report.after:100000").success());
}

/// RUN-12, invariant 5: faults before and after the deed, every few calls.
#[test]
fn rough_weather_changes_nothing_in_the_end() {
    for seed in 0..20 {
        let ending = check(
            seed,
            &Story {
                climate: Climate::ROUGH,
                twists: if seed % 2 == 0 { &[Twist::Question] } else { &[] },
                ..Story::plain()
            },
        );
        assert!(ending.faults > 0, "seed {seed} had calm weather");
    }
}

/// RUN-13: more runs than slots, in rough weather, with a dying Conductor.
#[test]
fn many_runs_share_the_slots_and_all_end_well() {
    for seed in 100..112 {
        let story = Story {
            runs: 5,
            slots: 2,
            climate: Climate::ROUGH,
            deaths: Deaths::Anywhere { times: 2, apart: 800 },
            twists: &[Twist::Question],
            ..Story::plain()
        };
        check(seed, &story);
    }
}

/// SEC-6: the kill switch stops agents and loses nothing, even when Conductor dies while it is being turned.
#[test]
fn the_kill_switch_loses_nothing() {
    for seed in 200..212 {
        let story = Story {
            runs: 3,
            slots: 3,
            twists: &[Twist::KillSwitch],
            climate: if seed % 2 == 0 {
                Climate::CALM
            } else {
                Climate::ROUGH
            },
            deaths: Deaths::Anywhere { times: 1, apart: 400 },
            ..Story::plain()
        };
        check(seed, &story);
    }
}

/// RUN-11: a cancelled run leaves no open pull request, no process and no directory, wherever it stood.
#[test]
fn cancelling_at_any_time_leaves_nothing_behind() {
    let mut cancelled = 0;
    for seed in 300..324 {
        let story = Story {
            runs: 2,
            slots: 2,
            twists: &[Twist::Cancel],
            climate: if seed % 3 == 0 {
                Climate::ROUGH
            } else {
                Climate::CALM
            },
            deaths: if seed % 2 == 0 {
                Deaths::None
            } else {
                Deaths::Anywhere { times: 1, apart: 300 }
            },
            ..Story::plain()
        };
        let phases = check(seed, &story).phases;
        cancelled += phases
            .values()
            .filter(|phase| **phase == PhaseName::Cancelled)
            .count();
    }
    assert!(cancelled >= 12, "only {cancelled} of 24 were cancelled in time");
}

/// DEP-3: two processes share one ledger.
#[test]
fn two_processes_share_the_work() {
    for seed in 400..408 {
        let story = Story {
            runs: 4,
            slots: 4,
            processes: 2,
            climate: if seed % 2 == 0 {
                Climate::CALM
            } else {
                Climate::ROUGH
            },
            ..Story::plain()
        };
        check(seed, &story);
    }
}
