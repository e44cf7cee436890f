//! Metrics: what runs took over some days, as charts with the table behind each.
//!
//! Charts are drawn here, as shapes without words, so that they can be as wide as the page; their words stand beside them.
//! This module does not know how figures are counted.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Html;
use conductor_domain::time::Millis;

use crate::actor::Actor;
use crate::api::{DayFigures, MetricsView, PhaseFigures, SpreadView};
use crate::door::Door;
use crate::extract::Asked;
use crate::metrics::MetricsQuery;
use crate::page::frame::{Frame, Section, page};
use crate::page::trouble::Trouble;
use crate::words::text::count;
use crate::words::time;

/// What the page offers to count.
const SPANS: [u32; 3] = [7, 30, 90];
/// The height of a chart, and the width that one day has in it.
const HEIGHT: u64 = 100;
const STEP: u64 = 10;

#[derive(Template)]
#[template(path = "figures.html")]
struct FiguresPage {
    frame: Frame,
    query: MetricsQuery,
    spans: Vec<Choice>,
    projects: Vec<String>,
    repos: Vec<String>,
    metrics: MetricsView,
    is_empty: bool,
    /// In words.
    uncounted: String,
    ended: String,
    tiles: Vec<Tile>,
    width: u64,
    bars: Vec<Bar>,
    /// What the highest bar stands for.
    top: u64,
    phases: Vec<PhaseLine>,
}

struct Choice {
    days: u32,
    is_chosen: bool,
    address: String,
}

/// A figure in one word.
struct Tile {
    name: &'static str,
    value: String,
    says: String,
}

/// One day in the chart: what ended, from the ground up, and a mark for what began.
struct Bar {
    x: u64,
    says: String,
    parts: Vec<Part>,
    started: Option<u64>,
}

struct Part {
    class: &'static str,
    y: u64,
    height: u64,
}

struct PhaseLine {
    name: String,
    median: String,
    p90: String,
    most: String,
    runs: u64,
    /// Of a hundred.
    median_width: u64,
    p90_width: u64,
}

/// Shows the figures.
pub(crate) async fn show(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Asked(query): Asked<MetricsQuery>,
) -> Result<Html<String>, Trouble> {
    let metrics = door.reader.metrics(&query, door.settings.clock.now()).await?;
    let instance = door.reader.instance().await?;
    let mut repos: Vec<String> = instance.repos.into_iter().map(|known| known.repo).collect();
    repos.sort();
    let top = metrics.days.iter().map(tallest).max().unwrap_or(0);
    let shown = query.days.unwrap_or(30);
    Ok(page(&FiguresPage {
        frame: Frame::of(&door, &actor, Section::Metrics, "Metrics").await?,
        spans: SPANS
            .into_iter()
            .map(|days| Choice {
                days,
                is_chosen: days == shown,
                address: address(&query, days),
            })
            .collect(),
        projects: instance.projects.iter().map(ToString::to_string).collect(),
        repos,
        is_empty: metrics.started == 0 && metrics.duration_ms.runs == 0,
        uncounted: count(metrics.uncounted, "run"),
        ended: count(metrics.duration_ms.runs, "run"),
        tiles: tiles(&metrics),
        width: STEP * metrics.days.len() as u64,
        bars: (0..)
            .zip(&metrics.days)
            .map(|(n, day)| bar(n, day, top))
            .collect(),
        top,
        phases: lines(&metrics.phases),
        query: MetricsQuery {
            days: Some(shown),
            ..query
        },
        metrics,
    }))
}

fn address(query: &MetricsQuery, days: u32) -> String {
    let asked = MetricsQuery {
        days: Some(days),
        ..query.clone()
    };
    serde_urlencoded::to_string(&asked).unwrap_or_default()
}

fn length(ms: Option<u64>) -> String {
    ms.map_or_else(|| "–".to_owned(), |ms| time::length(Millis(ms)))
}

fn number(number: Option<u64>) -> String {
    number.map_or_else(|| "–".to_owned(), |number| number.to_string())
}

fn tiles(metrics: &MetricsView) -> Vec<Tile> {
    let nine_of_ten = |spread: &SpreadView| format!("nine of ten within {}", length(spread.p90));
    vec![
        Tile {
            name: "Completed",
            value: metrics
                .success_percent
                .map_or_else(|| "–".to_owned(), |percent| format!("{percent} %")),
            says: format!(
                "{} of {} that were not cancelled",
                metrics.completed,
                metrics.completed + metrics.failed
            ),
        },
        Tile {
            name: "From start to end",
            value: length(metrics.duration_ms.median),
            says: nine_of_ten(&metrics.duration_ms),
        },
        Tile {
            name: "Waiting for people",
            value: length(metrics.waited_ms.median),
            says: nine_of_ten(&metrics.waited_ms),
        },
        Tile {
            name: "Attempts per run",
            value: number(metrics.attempts.median),
            says: format!("at most {}", number(metrics.attempts.most)),
        },
        Tile {
            name: "Repeats per run",
            value: number(metrics.retries.median),
            says: format!("{} in all", metrics.retries.total),
        },
    ]
}

/// What the chart must have room for on a day.
fn tallest(day: &DayFigures) -> u64 {
    day.started.max(day.completed + day.failed + day.cancelled)
}

fn bar(n: u64, day: &DayFigures, top: u64) -> Bar {
    // What is there is seen, however small it is beside the rest.
    let high = |count: u64| match (count, top) {
        (0, _) | (_, 0) => 0,
        (count, top) => (count * HEIGHT / top).max(1),
    };
    let mut y = HEIGHT;
    let counts = [
        ("completed", day.completed),
        ("failed", day.failed),
        ("cancelled", day.cancelled),
    ];
    let parts = counts.into_iter().filter(|(_, count)| *count > 0);
    let parts = parts
        .map(|(class, count)| {
            let height = high(count).min(y);
            y -= height;
            Part { class, y, height }
        })
        .collect();
    Bar {
        x: n * STEP,
        says: format!(
            "{}: {} started, {} completed, {} failed, {} cancelled",
            day.day, day.started, day.completed, day.failed, day.cancelled
        ),
        parts,
        started: (day.started > 0).then(|| HEIGHT - high(day.started)),
    }
}

fn lines(phases: &[PhaseFigures]) -> Vec<PhaseLine> {
    let longest = phases.iter().filter_map(|phase| phase.ms.p90).max().unwrap_or(0);
    let wide = |ms: Option<u64>| match (ms.unwrap_or(0), longest) {
        (0, _) | (_, 0) => 0,
        (ms, longest) => (ms.saturating_mul(100) / longest).max(1),
    };
    phases
        .iter()
        .map(|phase| PhaseLine {
            name: phase.phase.replace('_', " "),
            median: length(phase.ms.median),
            p90: length(phase.ms.p90),
            most: length(phase.ms.most),
            runs: phase.ms.runs,
            median_width: wide(phase.ms.median),
            p90_width: wide(phase.ms.p90),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_stand_on_the_ground_and_stay_within_the_chart() {
        let day = DayFigures {
            day: "1970-01-01".to_owned(),
            started: 1,
            completed: 997,
            failed: 2,
            cancelled: 1,
        };
        let drawn = bar(3, &day, tallest(&day));
        let heights: Vec<_> = drawn
            .parts
            .iter()
            .map(|part| (part.class, part.y, part.height))
            .collect();
        assert_eq!(
            heights,
            [("completed", 1, 99), ("failed", 0, 1), ("cancelled", 0, 0)]
        );
        assert_eq!((drawn.x, drawn.started), (30, Some(99)));
        let none = bar(0, &DayFigures::default(), 0);
        assert_eq!((none.parts.len(), none.started), (0, None));
    }

    #[test]
    fn a_phase_that_no_run_was_in_says_so() {
        let none = lines(&[PhaseFigures {
            phase: "awaiting_merge".to_owned(),
            ms: SpreadView::default(),
        }]);
        assert_eq!(
            (none[0].name.as_str(), none[0].median.as_str(), none[0].p90_width),
            ("awaiting merge", "–", 0)
        );
    }
}
