//! What readers find: runs by filter and page, effects and writes in order, the ends of streams.
//!
//! It does not know who reads.

use conductor_domain::effect::EffectKind;
use conductor_domain::id::{EffectId, RepoId};
use conductor_domain::time::Timestamp;
use conductor_port::ledger::{
    Batch, ForgeWrite, NewEffect, Projection, Projections, RunRow, StreamId, WritesAfter,
};
use conductor_port::views::{RunFilter, StreamHead};

use crate::Subject;
use crate::given::{batch, effect, instance_batch, kept, row, run_id, stream};

async fn listed(subject: &Subject, filter: RunFilter) -> Vec<String> {
    let rows = subject.views.runs(&filter).await.expect("the views answer");
    rows.into_iter().map(|row| row.run.to_string()).collect()
}

async fn with_row(subject: &Subject, row: RunRow) {
    let run = row.run.to_string();
    kept(
        subject,
        Batch {
            projection: Projection::Run(Box::new(row)),
            ..batch(&run, 0, 1)
        },
    )
    .await;
}

fn some() -> RunFilter {
    RunFilter {
        limit: 100,
        ..RunFilter::default()
    }
}

pub(crate) async fn runs_are_listed_newest_first(subject: &Subject) {
    for (run, at) in [("r-b", 20), ("r-c", 10), ("r-a", 20), ("r-d", 30)] {
        with_row(
            subject,
            RunRow {
                created_at: Timestamp(at),
                ..row(run, 1)
            },
        )
        .await;
    }
    assert_eq!(listed(subject, some()).await, ["r-d", "r-b", "r-a", "r-c"]);
    assert_eq!(
        listed(subject, RunFilter { limit: 2, ..some() }).await,
        ["r-d", "r-b"]
    );
    assert!(listed(subject, RunFilter { limit: 0, ..some() }).await.is_empty());
}

/// UI-1: what is searched for is text, never a pattern; the three stores fold the same letters.
pub(crate) async fn text_is_found_in_either_case_and_as_it_is_written(subject: &Subject) {
    for (run, issue, title) in [
        ("r-a", 17, "Fix the PARSER"),
        ("r-b", 7, "100% of it!"),
        ("r-c", 2, "100 of it"),
        ("r-d", 3, "snake_case \\ 'quoted'"),
        ("r-e", 4, "Ärger"),
    ] {
        let row = RunRow {
            issue,
            title: title.to_owned(),
            ..row(run, 1)
        };
        with_row(subject, row).await;
    }
    for (text, expected) in [
        ("the parser", vec!["r-a"]),
        ("FIX", vec!["r-a"]),
        ("100%", vec!["r-b"]),
        ("it!", vec!["r-b"]),
        ("e_c", vec!["r-d"]),
        ("\\ 'q", vec!["r-d"]),
        ("#7", vec!["r-b"]),
        ("R-C", vec!["r-c"]),
        ("octo/HELLO r-e", vec!["r-e"]),
        ("Ärger", vec!["r-e"]),
        ("ärger", vec![]),
        ("%", vec!["r-b"]),
        ("nowhere", vec![]),
    ] {
        let filter = RunFilter {
            text: Some(text.to_owned()),
            ..some()
        };
        assert_eq!(listed(subject, filter).await, expected, "{text}");
    }
}

pub(crate) async fn every_filter_filters(subject: &Subject) {
    with_row(subject, row("plain", 1)).await;
    with_row(
        subject,
        RunRow {
            project: "other".to_owned(),
            ..row("project", 1)
        },
    )
    .await;
    with_row(
        subject,
        RunRow {
            repo: RepoId(8),
            ..row("repo", 1)
        },
    )
    .await;
    with_row(
        subject,
        RunRow {
            phase: "executing".to_owned(),
            ..row("phase", 1)
        },
    )
    .await;
    with_row(
        subject,
        RunRow {
            needs_human: true,
            ..row("human", 1)
        },
    )
    .await;
    with_row(
        subject,
        RunRow {
            terminal: true,
            ..row("over", 1)
        },
    )
    .await;
    with_row(
        subject,
        RunRow {
            pull_request: Some(5),
            ..row("pull", 1)
        },
    )
    .await;
    with_row(
        subject,
        RunRow {
            issue: 9,
            ..row("issue", 1)
        },
    )
    .await;
    for (filter, expected) in [
        (
            RunFilter {
                project: Some("other".to_owned()),
                ..some()
            },
            vec!["project"],
        ),
        (
            RunFilter {
                repo: Some(RepoId(8)),
                ..some()
            },
            vec!["repo"],
        ),
        (
            RunFilter {
                phase: Some("executing".to_owned()),
                ..some()
            },
            vec!["phase"],
        ),
        (
            RunFilter {
                needs_human: true,
                ..some()
            },
            vec!["human"],
        ),
        (
            RunFilter { open: true, ..some() },
            vec!["repo", "pull", "project", "plain", "phase", "issue", "human"],
        ),
        (
            RunFilter {
                pull_request: Some(5),
                ..some()
            },
            vec!["pull"],
        ),
        (
            RunFilter {
                issue: Some(9),
                ..some()
            },
            vec!["issue"],
        ),
        (
            RunFilter {
                issue: Some(9),
                pull_request: Some(5),
                ..some()
            },
            vec![],
        ),
        (
            RunFilter {
                project: Some("' OR 1=1 --".to_owned()),
                ..some()
            },
            vec![],
        ),
    ] {
        assert_eq!(listed(subject, filter.clone()).await, expected, "{filter:?}");
    }
}

/// UI-1: any filters at once leave what each of them leaves, in a list, in what comes after a run, and in a count.
pub(crate) async fn any_filters_hold_together(subject: &Subject) {
    let is = |n: i64, bit: i64| n >> bit & 1 == 1;
    let mut rows = Vec::new();
    for n in 0..64 {
        let row = RunRow {
            project: if is(n, 0) { "other" } else { "demo" }.to_owned(),
            repo: RepoId(if is(n, 1) { 8 } else { 7 }),
            phase: if is(n, 2) { "executing" } else { "planning" }.to_owned(),
            needs_human: is(n, 3),
            terminal: is(n, 4),
            cleaned_up: is(n, 5),
            created_at: Timestamp(n / 3),
            ..row(&format!("r-{n:02}"), 1)
        };
        with_row(subject, row.clone()).await;
        rows.push(row);
    }
    rows.reverse();
    for asked in 0..128 {
        let filter = RunFilter {
            project: is(asked, 0).then(|| "other".to_owned()),
            repo: is(asked, 1).then_some(RepoId(8)),
            phase: is(asked, 2).then(|| "executing".to_owned()),
            needs_human: is(asked, 3),
            needs_nobody: is(asked, 6),
            open: is(asked, 4),
            unfinished: is(asked, 5),
            ..some()
        };
        let is_wanted = |row: &&RunRow| {
            (filter.project.is_none() || row.project == "other")
                && (filter.repo.is_none() || row.repo == RepoId(8))
                && (filter.phase.is_none() || row.phase == "executing")
                && (!filter.needs_human || row.needs_human)
                && (!filter.needs_nobody || !row.needs_human)
                && (!filter.open || !row.terminal)
                && (!filter.unfinished || !row.cleaned_up)
        };
        for after in [None, Some("r-31")] {
            let wanted = rows.iter().filter(is_wanted).map(|row| row.run.to_string());
            let wanted: Vec<String> = wanted
                .filter(|run| after.is_none_or(|after| run.as_str() < after))
                .collect();
            let filter = RunFilter {
                after: after.map(run_id),
                ..filter.clone()
            };
            let counted = subject.views.count(&filter).await;
            assert_eq!(
                counted,
                Ok(u32::try_from(wanted.len()).expect("few")),
                "{filter:?}"
            );
            assert_eq!(listed(subject, filter.clone()).await, wanted, "{filter:?}");
        }
    }
}

pub(crate) async fn runs_are_counted_up_to_the_limit(subject: &Subject) {
    for run in ["r-a", "r-b", "r-c"] {
        let row = RunRow {
            needs_human: true,
            ..row(run, 1)
        };
        with_row(subject, row).await;
    }
    for (limit, expected) in [(0, 0), (2, 2), (3, 3), (4, 3)] {
        let waiting = RunFilter {
            needs_human: true,
            open: true,
            limit,
            ..RunFilter::default()
        };
        assert_eq!(subject.views.count(&waiting).await, Ok(expected), "{limit}");
    }
    let of_text = RunFilter {
        text: Some("R-B".to_owned()),
        ..some()
    };
    assert_eq!(subject.views.count(&of_text).await, Ok(1));
    let after_nobody = RunFilter {
        after: Some(run_id("unknown")),
        ..some()
    };
    assert_eq!(subject.views.count(&after_nobody).await, Ok(0));
}

pub(crate) async fn pages_join_without_gap_or_repeat(subject: &Subject) {
    for n in 0..10 {
        with_row(
            subject,
            RunRow {
                created_at: Timestamp(n / 3),
                ..row(&format!("r-{n}"), 1)
            },
        )
        .await;
    }
    let whole = listed(subject, some()).await;
    let mut joined: Vec<String> = Vec::new();
    loop {
        let after = joined.last().map(|run| run_id(run));
        let page = listed(
            subject,
            RunFilter {
                after,
                limit: 4,
                ..some()
            },
        )
        .await;
        if page.is_empty() {
            break;
        }
        joined.extend(page);
    }
    assert_eq!((joined.len(), &joined), (10, &whole));
    assert!(
        listed(
            subject,
            RunFilter {
                after: Some(run_id("unknown")),
                ..some()
            }
        )
        .await
        .is_empty()
    );
}

pub(crate) async fn effects_of_a_run_are_listed_in_the_order_asked(subject: &Subject) {
    let mut expected = Vec::new();
    for seq in 0..12 {
        let ids: Vec<EffectId> = (0..3)
            .map(|ordinal| EffectId::derive(&run_id("r-1"), seq, ordinal))
            .collect();
        let ask = |id: &EffectId| NewEffect {
            id: id.clone(),
            ..effect("r-1", seq, EffectKind::PostComment)
        };
        kept(
            subject,
            Batch {
                effects: ids.iter().map(ask).collect(),
                ..batch("r-1", seq, 1)
            },
        )
        .await;
        expected.extend(ids);
    }
    let effects = subject
        .views
        .effects(&run_id("r-1"))
        .await
        .expect("the views answer");
    assert_eq!(
        effects.iter().map(|row| row.id.clone()).collect::<Vec<_>>(),
        expected
    );
    assert_eq!(effects[3].created_at, crate::given::time(2));
    assert_eq!(subject.views.effects(&run_id("r-2")).await, Ok(vec![]));
}

/// GH-6.
pub(crate) async fn a_later_forge_write_replaces_the_earlier_in_its_place(subject: &Subject) {
    let write = |seq: u64, result: &str, at: i64| ForgeWrite {
        effect: EffectId::derive(&run_id("r-1"), seq, 0),
        run: run_id("r-1"),
        kind: "post_comment".to_owned(),
        actor_type: "system".to_owned(),
        target: "octo/hello#1".to_owned(),
        payload_hash: "sha256:0".to_owned(),
        decision: "allow".to_owned(),
        reason: "default".to_owned(),
        result: result.to_owned(),
        at: Timestamp(at),
    };
    kept(
        subject,
        Batch {
            writes: vec![write(9, "pending", 1), write(10, "pending", 1)],
            ..batch("r-1", 0, 1)
        },
    )
    .await;
    kept(
        subject,
        Batch {
            writes: vec![write(2, "pending", 2)],
            ..batch("r-1", 1, 1)
        },
    )
    .await;
    kept(
        subject,
        Batch {
            writes: vec![write(9, "done", 3)],
            ..batch("r-1", 2, 1)
        },
    )
    .await;
    let expected = vec![
        write(9, "done", 3),
        write(10, "pending", 1),
        write(2, "pending", 2),
    ];
    assert_eq!(subject.views.writes(&run_id("r-1")).await, Ok(expected));
    assert_eq!(subject.views.writes(&run_id("r-2")).await, Ok(vec![]));
}

/// GH-6, RUN-3: replaced writes stand where the batches that brought them put them.
pub(crate) async fn forge_writes_are_replaced_in_their_places(subject: &Subject) {
    let write = |seq: u64, result: &str| ForgeWrite {
        effect: EffectId::derive(&run_id("r-1"), seq, 0),
        run: run_id("r-1"),
        kind: "post_comment".to_owned(),
        actor_type: "system".to_owned(),
        target: "octo/hello#1".to_owned(),
        payload_hash: "sha256:0".to_owned(),
        decision: "allow".to_owned(),
        reason: "default".to_owned(),
        result: result.to_owned(),
        at: Timestamp(1),
    };
    let forged = Batch {
        writes: vec![write(7, "forged")],
        ..batch("r-1", 0, 1)
    };
    kept(subject, forged).await;
    let after = |seq, writes| WritesAfter { seq, writes };
    let writes = vec![
        after(4, vec![write(5, "pending"), write(6, "pending")]),
        after(2, vec![write(9, "pending")]),
        after(8, vec![write(5, "done")]),
    ];
    let all = Projections {
        writes,
        ..Projections::default()
    };
    subject
        .ledger
        .replace_projections(all)
        .await
        .expect("projections are replaced");
    let expected = vec![write(9, "pending"), write(5, "done"), write(6, "pending")];
    assert_eq!(subject.views.writes(&run_id("r-1")).await, Ok(expected));
}

/// SEC-8.
pub(crate) async fn heads_come_from_the_records(subject: &Subject) {
    kept(subject, batch("r-2", 0, 2)).await;
    kept(subject, batch("r-10", 0, 11)).await;
    kept(subject, instance_batch(0, 3, "{}")).await;
    subject
        .ledger
        .replace_projections(Projections::default())
        .await
        .expect("projections are replaced");
    let head = |stream: StreamId, seq: u64| StreamHead {
        hash: format!("hash-{stream}-{seq}"),
        stream,
        seq,
    };
    let expected = vec![
        head(StreamId::Instance, 3),
        head(stream("r-10"), 11),
        head(stream("r-2"), 2),
    ];
    assert_eq!(subject.views.heads().await, Ok(expected));
}
