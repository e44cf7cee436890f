//! Runs are told of with what they took, when they began or ended in a span.
//!
//! It does not know what is counted.

use conductor_domain::figures::Figures;
use conductor_domain::id::RepoId;
use conductor_domain::time::{Millis, Timestamp};
use conductor_port::ledger::{Batch, Projection, RunRow};
use conductor_port::tally::{Span, Took};

use crate::Subject;
use crate::given::{batch, kept, row};

fn figures(ended_at: Option<i64>, waited: u64) -> Figures {
    Figures {
        waited: Millis(waited),
        ended_at: ended_at.map(Timestamp),
        ..Figures::default()
    }
}

async fn run(subject: &Subject, name: &str, created_at: i64, figures: Option<Figures>) -> RunRow {
    let row = RunRow {
        created_at: Timestamp(created_at),
        ended_at: figures.as_ref().and_then(|figures| figures.ended_at),
        figures: figures.map_or_else(String::new, |figures| {
            serde_json::to_string(&figures).expect("figures are plain data")
        }),
        ..row(name, 1)
    };
    kept(
        subject,
        Batch {
            projection: Projection::Run(Box::new(row.clone())),
            ..batch(name, 0, 1)
        },
    )
    .await;
    row
}

async fn waited(subject: &Subject, span: Span) -> Vec<Option<u64>> {
    let took = subject.tally.took(&span).await.expect("the tally answers");
    let waited = |took: &Took| took.figures.as_ref().map(|figures| figures.waited.0);
    let mut all: Vec<_> = took.iter().map(waited).collect();
    all.sort_unstable();
    all
}

fn span(from: i64, until: i64) -> Span {
    Span {
        from: Timestamp(from),
        until: Timestamp(until),
        project: None,
        repo: None,
    }
}

/// UI-1: which runs are counted, and what of them.
pub(crate) async fn runs_are_told_of_when_they_began_or_ended_in_a_span(subject: &Subject) {
    assert_eq!(waited(subject, span(i64::MIN, i64::MAX)).await, []);
    let one = run(subject, "r-1", 10, Some(figures(Some(20), 1))).await;
    run(subject, "r-2", 15, Some(figures(None, 2))).await;
    run(subject, "r-3", 5, Some(figures(Some(30), 3))).await;
    run(subject, "r-4", 12, None).await;
    for (from, until, expected) in [
        (10, 11, vec![Some(1)]),
        (11, 15, vec![None]),
        (15, 20, vec![Some(2)]),
        (20, 21, vec![Some(1)]),
        (0, 100, vec![None, Some(1), Some(2), Some(3)]),
        (16, 20, vec![]),
        (30, 31, vec![Some(3)]),
        (31, 10, vec![]),
    ] {
        assert_eq!(
            waited(subject, span(from, until)).await,
            expected,
            "{from} {until}"
        );
    }
    let took = subject.tally.took(&span(10, 11)).await.expect("an answer");
    let expected = Took {
        started_at: Timestamp(10),
        phase: one.phase,
        figures: Some(figures(Some(20), 1)),
    };
    assert_eq!(took, [expected]);
}

/// UI-1: by project and by repository.
pub(crate) async fn runs_are_told_of_by_project_and_repository(subject: &Subject) {
    let own = run(subject, "r-1", 10, Some(figures(None, 1))).await;
    let other = RunRow {
        project: "other".to_owned(),
        repo: RepoId(8),
        ..run(subject, "r-2", 10, Some(figures(None, 2))).await
    };
    kept(
        subject,
        Batch {
            projection: Projection::Run(Box::new(other)),
            ..batch("r-2", 1, 1)
        },
    )
    .await;
    let project = |name: &str| Span {
        project: Some(name.to_owned()),
        ..span(0, 100)
    };
    let repo = |id| Span {
        repo: Some(RepoId(id)),
        ..span(0, 100)
    };
    assert_eq!(waited(subject, project(&own.project)).await, [Some(1)]);
    assert_eq!(waited(subject, project("other")).await, [Some(2)]);
    assert_eq!(waited(subject, project("none")).await, []);
    assert_eq!(waited(subject, repo(7)).await, [Some(1)]);
    assert_eq!(waited(subject, repo(8)).await, [Some(2)]);
}
