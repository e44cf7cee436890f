//! Records are found by their words and by what stands beside them, the same on every store.
//!
//! It does not know how words are kept.

use conductor_domain::id::RepoId;
use conductor_domain::time::Timestamp;
use conductor_port::ledger::{Batch, Projection, Projections, Record, RunRow, StreamId};
use conductor_port::search::RecordFilter;

use crate::Subject;
use crate::given::{batch, instance_batch, kept, record, row, stream};

const DAY: i64 = 86_400_000_000;

fn all() -> RecordFilter {
    RecordFilter {
        limit: 100,
        ..RecordFilter::default()
    }
}

fn words(words: &str) -> RecordFilter {
    RecordFilter {
        words: words.to_owned(),
        ..all()
    }
}

async fn found(subject: &Subject, filter: &RecordFilter) -> Vec<String> {
    let found = subject.search.records(filter).await.expect("the search answers");
    assert!(
        found.windows(2).all(|two| two[0].place > two[1].place),
        "{found:?}"
    );
    found.into_iter().map(|found| found.record.event_id).collect()
}

fn told(stream: &StreamId, seq: u64, payload: &str) -> Record {
    Record {
        payload: payload.to_owned(),
        ..record(stream, seq)
    }
}

/// Keeps one record of a run.
async fn say(subject: &Subject, run: &str, seq: u64, payload: &str) {
    let said = Batch {
        records: vec![told(&stream(run), seq, payload)],
        ..batch(run, seq - 1, 1)
    };
    kept(subject, said).await;
}

/// UI-1, SEC-7: what is found is the whole record, the last one that was kept first.
pub(crate) async fn records_are_found_whole_and_newest_first(subject: &Subject) {
    assert_eq!(found(subject, &all()).await, [""; 0]);
    let operated = Record {
        kind: "operate".to_owned(),
        actor: "ann".to_owned(),
        cause: "page from 192.0.2.7".to_owned(),
        ..told(&stream("r-1"), 2, r#"{"input":{"action":"approve"},"n":41}"#)
    };
    kept(subject, batch("r-1", 0, 1)).await;
    kept(subject, instance_batch(0, 1, "{}")).await;
    let second = Batch {
        records: vec![operated.clone()],
        ..batch("r-1", 1, 1)
    };
    kept(subject, second).await;
    assert_eq!(
        found(subject, &all()).await,
        ["run/r-1#2", "instance#1", "run/r-1#1"]
    );
    for asked in [
        "approve",
        "APPROVE 41",
        "192.0.2.7",
        "ann operate",
        "r-1 approve",
        "page from",
    ] {
        let found = subject.search.records(&words(asked)).await.expect("an answer");
        let found: Vec<Record> = found.into_iter().map(|found| found.record).collect();
        assert_eq!(found, std::slice::from_ref(&operated), "{asked}");
    }
}

/// One meaning of a word for all stores; what a query language knows is nothing here.
pub(crate) async fn a_word_means_the_same_everywhere(subject: &Subject) {
    let texts = [
        r#"{"path":"crates/x/src/main.rs","why":"don't"}"#,
        r#"{"path":"main/readme.md","said":"Überprüfung der Straße ﬁne 数据库"}"#,
        r#"{"said":"line one\nline two\ttabbed \"quoted\" NOT x OR y AND z","at":1763343845000000}"#,
        r#"{"field":{"nested":[{"deep":"planning approved"}]},"off":false,"none":null,"less":-7}"#,
        "not json at all: half{",
    ];
    for (seq, text) in (1..).zip(texts) {
        say(subject, "r-1", seq, text).await;
    }
    for (asked, expected) in [
        ("main.rs", vec![1]),
        ("main", vec![2, 1]),
        ("rs main", vec![1]),
        ("src/main", vec![1]),
        ("x.main", vec![]),
        ("don't", vec![1]),
        ("überprüfung", vec![2]),
        ("ÜBERPRÜFUNG", vec![2]),
        ("uberprufung", vec![]),
        ("straße", vec![2]),
        ("数据库", vec![2]),
        ("fine", vec![]),
        ("ﬁne", vec![2]),
        ("one", vec![3]),
        ("nline", vec![]),
        ("line two", vec![3]),
        ("quoted", vec![3]),
        ("NOT x", vec![3]),
        ("x OR planning", vec![]),
        ("planning NOT", vec![]),
        ("1763343845000000", vec![]),
        ("nested", vec![]),
        ("deep", vec![]),
        ("false", vec![]),
        ("7", vec![]),
        ("half", vec![5]),
        ("plan*", vec![4]),
        ("appro* plan*", vec![4]),
        ("src/ma*", vec![1]),
        ("ma*", vec![]),
        ("*", vec![]),
        ("!!!", vec![]),
        ("\" OR 1=1", vec![]),
        ("words:x", vec![]),
        ("x)", vec![3, 1]),
        ("'x' & !y", vec![3]),
        ("x\u{0}", vec![3, 1]),
        ("kind=run_started", vec![]),
        ("day0=0", vec![]),
        (" ", vec![]),
    ] {
        let expected: Vec<String> = expected.into_iter().map(|seq| format!("run/r-1#{seq}")).collect();
        assert_eq!(found(subject, &words(asked)).await, expected, "{asked}");
    }
}

/// UI-1: every filter filters, by exact names, alone and together with words.
pub(crate) async fn every_filter_of_records_filters(subject: &Subject) {
    let other = RunRow {
        project: "Other Project".to_owned(),
        repo: RepoId(70),
        ..row("r-2", 1)
    };
    let by_agent = Record {
        actor: "Planner".to_owned(),
        actor_type: "agent".to_owned(),
        kind: "request_comment".to_owned(),
        at: Timestamp(3 * DAY),
        ..told(&stream("r-2"), 1, r#"{"text":"hello"}"#)
    };
    kept(subject, batch("r-1", 0, 2)).await;
    let second = Batch {
        records: vec![by_agent],
        projection: Projection::Run(Box::new(other)),
        ..batch("r-2", 0, 1)
    };
    kept(subject, second).await;
    kept(subject, instance_batch(0, 1, "{}")).await;
    let (one, two, three, four) = ("run/r-1#1", "run/r-1#2", "run/r-2#1", "instance#1");
    let text = |text: &str| Some(text.to_owned());
    let cases = [
        (all(), vec![four, three, two, one]),
        (
            RecordFilter {
                stream: Some(stream("r-1")),
                ..all()
            },
            vec![two, one],
        ),
        (
            RecordFilter {
                stream: Some(StreamId::Instance),
                ..all()
            },
            vec![four],
        ),
        (
            RecordFilter {
                stream: Some(stream("r")),
                ..all()
            },
            vec![],
        ),
        (
            RecordFilter {
                project: text("Other Project"),
                ..all()
            },
            vec![three],
        ),
        (
            RecordFilter {
                project: text("other project"),
                ..all()
            },
            vec![],
        ),
        (
            RecordFilter {
                project: text("demo"),
                ..all()
            },
            vec![two, one],
        ),
        (
            RecordFilter {
                repo: Some(RepoId(7)),
                ..all()
            },
            vec![two, one],
        ),
        (
            RecordFilter {
                repo: Some(RepoId(70)),
                ..all()
            },
            vec![three],
        ),
        (
            RecordFilter {
                actor: text("alice"),
                ..all()
            },
            vec![four, two, one],
        ),
        (
            RecordFilter {
                actor: text("Planner"),
                ..all()
            },
            vec![three],
        ),
        (
            RecordFilter {
                actor: text("plan*"),
                ..all()
            },
            vec![],
        ),
        (
            RecordFilter {
                actor_type: text("agent"),
                ..all()
            },
            vec![three],
        ),
        (
            RecordFilter {
                kind: text("request_comment"),
                ..all()
            },
            vec![three],
        ),
        (
            RecordFilter {
                class: text("decision"),
                ..all()
            },
            vec![two],
        ),
        (
            RecordFilter {
                hidden: vec!["request_comment", "else"],
                ..all()
            },
            vec![four, two, one],
        ),
        (
            RecordFilter {
                hidden: vec!["run_started"],
                ..all()
            },
            vec![three],
        ),
        (
            RecordFilter {
                class: text("fact"),
                actor: text("alice"),
                ..words("run_started")
            },
            vec![four, one],
        ),
        (
            RecordFilter {
                class: text("fact"),
                ..words("hello")
            },
            vec![three],
        ),
        (
            RecordFilter {
                class: text("decision"),
                ..words("hello")
            },
            vec![],
        ),
        (RecordFilter { limit: 0, ..all() }, vec![]),
        (
            RecordFilter {
                limit: 1,
                ..words("run_started")
            },
            vec![four],
        ),
    ];
    for (filter, expected) in cases {
        assert_eq!(found(subject, &filter).await, expected, "{filter:?}");
    }
}

/// UI-1: from the very microsecond on, and until before the other, over days and years.
pub(crate) async fn times_cut_exactly(subject: &Subject) {
    let times = [
        0,
        1,
        DAY - 1,
        DAY,
        40 * DAY + 5,
        20_000 * DAY + 7,
        20_000 * DAY + 8,
        21_500 * DAY,
    ];
    for (seq, at) in (1..).zip(times) {
        let said = Batch {
            records: vec![Record {
                at: Timestamp(at),
                ..record(&stream("r-1"), seq)
            }],
            ..batch("r-1", seq - 1, 1)
        };
        kept(subject, said).await;
    }
    for (from, until, (first, last)) in [
        (None, None, (1, 8)),
        (Some(1), None, (2, 8)),
        (None, Some(1), (1, 1)),
        (Some(DAY - 1), Some(DAY), (3, 3)),
        (Some(DAY), Some(20_000 * DAY + 8), (4, 6)),
        (Some(20_000 * DAY + 8), Some(30_000 * DAY), (7, 8)),
        (Some(21_500 * DAY), None, (8, 8)),
        (Some(21_501 * DAY), None, (9, 8)),
        (Some(5), Some(3), (9, 8)),
        (Some(i64::MIN), Some(i64::MAX), (1, 8)),
    ] {
        let filter = RecordFilter {
            from: from.map(Timestamp),
            until: until.map(Timestamp),
            ..all()
        };
        let expected: Vec<String> = (first..=last).rev().map(|seq| format!("run/r-1#{seq}")).collect();
        assert_eq!(found(subject, &filter).await, expected, "{from:?} {until:?}");
    }
}

/// UI-1: pages by their cursor, with words and without; what comes meanwhile is newer than every page that follows.
pub(crate) async fn pages_of_records_join_without_gap_or_repeat(subject: &Subject) {
    let text = |seq: u64| {
        if seq.is_multiple_of(3) {
            r#"["third"]"#
        } else {
            "[]"
        }
    };
    for seq in 1..=9 {
        say(subject, "r-1", seq, text(seq)).await;
    }
    let mut newest = 9;
    for (asked, expected) in [("third", vec![9, 6, 3]), ("", (1..=10).rev().collect())] {
        let mut filter = RecordFilter {
            limit: 2,
            ..words(asked)
        };
        let mut seen: Vec<u64> = Vec::new();
        loop {
            let page = subject.search.records(&filter).await.expect("an answer");
            seen.extend(page.iter().map(|found| found.record.seq));
            if page.len() < 2 {
                break;
            }
            filter.before = page.last().map(|found| found.place);
            newest += 1;
            say(subject, "r-1", newest, r#"["third"]"#).await;
        }
        assert_eq!(seen, expected, "{asked}");
    }
}

/// RUN-3: what was not kept is not found, and what is rebuilt is found as before, by the time of each record.
pub(crate) async fn only_what_is_kept_is_found_and_again_after_a_rebuild(subject: &Subject) {
    say(subject, "r-1", 1, r#"["kept"]"#).await;
    say(subject, "r-2", 1, r#"["kept"]"#).await;
    say(subject, "r-1", 2, r#"["kept","twice"]"#).await;
    let refused = Batch {
        records: vec![told(&stream("r-1"), 2, r#"["refused"]"#)],
        ..batch("r-1", 1, 1)
    };
    subject
        .ledger
        .append(refused)
        .await
        .expect_err("the stream moved on");
    assert_eq!(found(subject, &words("refused")).await, [""; 0]);
    let of_demo = RecordFilter {
        project: Some("demo".to_owned()),
        ..words("kept")
    };
    let before = found(subject, &of_demo).await;
    assert_eq!(before, ["run/r-1#2", "run/r-2#1", "run/r-1#1"]);

    let rows = vec![
        Projection::Run(Box::new(row("r-1", 2))),
        Projection::Run(Box::new(row("r-2", 1))),
    ];
    let all = Projections {
        rows,
        ..Projections::default()
    };
    subject.ledger.replace_projections(all).await.expect("replaced");
    assert_eq!(found(subject, &of_demo).await, before);
    say(subject, "r-2", 2, r#"["kept"]"#).await;
    let after: Vec<String> = ["run/r-2#2".to_owned()].into_iter().chain(before).collect();
    assert_eq!(found(subject, &of_demo).await, after);
    assert_eq!(found(subject, &words("twice")).await, ["run/r-1#2"]);
}
