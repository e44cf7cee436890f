//! Counts runs: how many began and ended on each day, how long they were where, how often they tried, what people let wait.
//!
//! Of the runs that ended in a span of days everything is counted, also what happened before. A median is a run's own
//! figure, never one between two. This module does not know how figures are drawn.

use std::collections::BTreeMap;

use conductor_domain::figures::Figures;
use conductor_domain::phase::PhaseName;
use conductor_domain::time::{Millis, Timestamp};
use conductor_port::tally::{Span, Took};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{DayFigures, MetricsView, PhaseFigures, SpreadView};
use crate::error::Error;
use crate::reader::Reader;
use crate::words::time;

const DAY: i64 = 86_400_000_000;
/// The most days that are counted at once.
const MOST: u32 = 366;

/// The phases that an open run can be in, in the order of its life.
pub(crate) fn open_phases() -> impl Iterator<Item = PhaseName> {
    PhaseName::ALL.into_iter().filter(|phase| !phase.is_terminal())
}

/// Which runs to count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MetricsQuery {
    /// Over so many days up to and with today, in UTC, up to 366; 30 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub days: Option<u32>,
    /// Only of this project.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub project: String,
    /// Only of this repository, `owner/name`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub repo: String,
}

impl Reader {
    /// Counts the runs of the last days.
    pub async fn metrics(&self, query: &MetricsQuery, now: Timestamp) -> Result<MetricsView, Error> {
        let days = query.days.unwrap_or(30);
        if days == 0 || days > MOST {
            return Err(Error::Invalid {
                what: format!("1 to {MOST} days can be counted, not {days}"),
            });
        }
        let until = Timestamp((now.0.div_euclid(DAY) + 1).saturating_mul(DAY));
        let from = Timestamp(until.0.saturating_sub(i64::from(days).saturating_mul(DAY)));
        let repo = match query.repo.as_str() {
            "" => None,
            name => match self.registration(name).await? {
                Some(registration) => Some(registration.repo.id),
                None => return Ok(tally(&[], from, until)),
            },
        };
        let span = Span {
            from,
            until,
            project: (!query.project.is_empty()).then(|| query.project.clone()),
            repo,
        };
        Ok(tally(&self.tally.took(&span).await?, from, until))
    }
}

/// Counts runs over the days from one time until before another.
pub(crate) fn tally(runs: &[Took], from: Timestamp, until: Timestamp) -> MetricsView {
    let is_within = |at: Timestamp| from <= at && at < until;
    let mut days = BTreeMap::new();
    let mut day = from.0;
    while day < until.0 {
        days.insert(
            day,
            DayFigures {
                day: time::day(Timestamp(day)),
                ..DayFigures::default()
            },
        );
        day = day.saturating_add(DAY);
    }
    let day_of = |at: Timestamp| at.0.div_euclid(DAY) * DAY;
    let mut ended = Vec::new();
    let mut uncounted = 0;
    for run in runs {
        if is_within(run.started_at)
            && let Some(day) = days.get_mut(&day_of(run.started_at))
        {
            day.started += 1;
        }
        let Some(figures) = &run.figures else {
            uncounted += 1;
            continue;
        };
        let Some(at) = figures.ended_at.filter(|at| is_within(*at)) else {
            continue;
        };
        ended.push((figures, run.started_at, at));
        let Some(day) = days.get_mut(&day_of(at)) else {
            continue;
        };
        match run.phase.as_str() {
            "completed" => day.completed += 1,
            "cancelled" => day.cancelled += 1,
            _ => day.failed += 1,
        }
    }
    let days: Vec<DayFigures> = days.into_values().collect();
    let sum = |count: fn(&DayFigures) -> u64| days.iter().map(count).sum::<u64>();
    let (completed, failed) = (sum(|day| day.completed), sum(|day| day.failed));
    let of_ended = |figure: fn(&Figures) -> u64| spread(ended.iter().map(|(figures, ..)| figure(figures)));
    MetricsView {
        from,
        until,
        started: sum(|day| day.started),
        completed,
        failed,
        cancelled: sum(|day| day.cancelled),
        success_percent: (completed * 100).checked_div(completed + failed),
        duration_ms: spread(ended.iter().map(|(_, started, at)| at.since(*started).0)),
        waited_ms: of_ended(|figures| figures.waited.0),
        attempts: of_ended(|figures| u64::from(figures.attempts)),
        retries: of_ended(|figures| u64::from(figures.retries)),
        phases: open_phases()
            .map(|phase| PhaseFigures {
                phase: phase.as_str().to_owned(),
                ms: spread(
                    ended
                        .iter()
                        .filter_map(|(figures, ..)| figures.phases.get(&phase).map(|Millis(ms)| *ms)),
                ),
            })
            .collect(),
        days,
        uncounted,
    }
}

/// The middle of figures, what nine of ten stay within, and the greatest.
fn spread(figures: impl Iterator<Item = u64>) -> SpreadView {
    let mut figures: Vec<u64> = figures.collect();
    figures.sort_unstable();
    // The smallest figure that at least so many in a hundred do not exceed.
    let rank = |percent: usize| {
        let index = (figures.len() * percent).div_ceil(100).saturating_sub(1);
        figures.get(index).copied()
    };
    SpreadView {
        runs: figures.len() as u64,
        median: rank(50),
        p90: rank(90),
        most: figures.last().copied(),
        total: figures.iter().sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn took(started: i64, ended: Option<i64>, phase: &str, executing: u64) -> Took {
        let figures = Figures {
            counted_to: Timestamp(0),
            phases: BTreeMap::from([(PhaseName::Executing, Millis(executing))]),
            waited: Millis(executing / 2),
            attempts: 1,
            retries: 2,
            ended_at: ended.map(Timestamp),
        };
        Took {
            started_at: Timestamp(started),
            phase: phase.to_owned(),
            figures: Some(figures),
        }
    }

    fn three_days(runs: &[Took]) -> MetricsView {
        tally(runs, Timestamp(10 * DAY), Timestamp(13 * DAY))
    }

    #[test]
    fn the_middle_and_the_tenth_are_figures_that_a_run_has() {
        for (figures, median, p90) in [
            (vec![], None, None),
            (vec![7], Some(7), Some(7)),
            (vec![2, 1], Some(1), Some(2)),
            ((1..=10).collect(), Some(5), Some(9)),
            ((1..=100).rev().collect(), Some(50), Some(90)),
        ] {
            let found = spread(figures.clone().into_iter());
            assert_eq!((found.median, found.p90), (median, p90), "{figures:?}");
            assert_eq!(found.runs, figures.len() as u64);
        }
    }

    #[test]
    fn a_run_counts_on_the_day_it_began_and_on_the_day_it_ended() {
        let runs = [
            took(10 * DAY, Some(10 * DAY + 1), "completed", 10),
            took(10 * DAY + 5, Some(13 * DAY - 1), "completed", 30),
            took(2 * DAY, Some(11 * DAY), "failed", 20),
            took(11 * DAY, Some(12 * DAY), "cancelled", 40),
            took(12 * DAY, None, "executing", 99),
            took(2 * DAY, Some(13 * DAY), "completed", 77),
            Took {
                figures: None,
                ..took(12 * DAY, None, "completed", 0)
            },
        ];
        let view = three_days(&runs);
        let days: Vec<_> = view
            .days
            .iter()
            .map(|day| {
                (
                    day.day.as_str(),
                    day.started,
                    day.completed,
                    day.failed,
                    day.cancelled,
                )
            })
            .collect();
        assert_eq!(
            days,
            [
                ("1970-01-11", 2, 1, 0, 0),
                ("1970-01-12", 1, 0, 1, 0),
                ("1970-01-13", 2, 1, 0, 1),
            ]
        );
        assert_eq!(
            (view.started, view.completed, view.failed, view.cancelled),
            (5, 2, 1, 1)
        );
        assert_eq!((view.success_percent, view.uncounted), (Some(66), 1));
        let executing = &view.phases[3];
        assert_eq!(executing.phase, "executing");
        assert_eq!(
            (executing.ms.runs, executing.ms.median, executing.ms.p90),
            (4, Some(20), Some(40))
        );
        assert_eq!(
            (view.waited_ms.median, view.attempts.median, view.retries.total),
            (Some(10), Some(1), 8)
        );
        assert_eq!(view.phases[0].ms.median, None, "no run was there");
    }

    #[test]
    fn where_nothing_happened_nothing_is_claimed() {
        let view = three_days(&[]);
        assert_eq!(
            (view.days.len(), view.success_percent, view.duration_ms.median),
            (3, None, None)
        );
    }
}
