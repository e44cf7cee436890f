//! What readers see of a stream: kept with its records, replaced at will, asked for deadlines.
//!
//! It does not know how a projection is computed.

use std::collections::BTreeMap;

use conductor_domain::effect::EffectKind;
use conductor_domain::id::ProjectId;
use conductor_domain::instance::Instance;
use conductor_domain::staff::Staff;
use conductor_domain::time::Timestamp;
use conductor_port::ledger::{Batch, Projection, Projections, RunRow, StreamId};
use conductor_port::views::{RunFilter, StreamHead};

use crate::Subject;
use crate::given::{asked, batch, dispatchable, instance_batch, kept, row, run_id, stream};

/// OWN-5a.
pub(crate) async fn the_newest_projection_is_seen(subject: &Subject) {
    assert_eq!(subject.views.run(&run_id("r-1")).await, Ok(None));
    kept(subject, batch("r-1", 0, 1)).await;
    assert_eq!(subject.views.run(&run_id("r-1")).await, Ok(Some(row("r-1", 1))));
    let full = RunRow {
        run: run_id("r-1"),
        project: "other".to_owned(),
        repo: conductor_domain::id::RepoId(8),
        repo_name: "octo/moved".to_owned(),
        issue: 2,
        title: "Ein Titel mit Ümläuten".to_owned(),
        phase: "executing".to_owned(),
        held: true,
        needs_human: true,
        terminal: true,
        cleaned_up: true,
        priority: 255,
        pull_request: Some(12),
        deadline: Some(Timestamp(-5)),
        state: r#"{"phase":"executing"}"#.to_owned(),
        figures: r#"{"counted_to":9}"#.to_owned(),
        ended_at: Some(Timestamp(-7)),
        seq: 3,
        head: "hash".to_owned(),
        created_at: Timestamp(i64::MIN),
        updated_at: Timestamp(i64::MAX),
    };
    let next = Batch {
        projection: Projection::Run(Box::new(full.clone())),
        ..batch("r-1", 1, 2)
    };
    kept(subject, next).await;
    assert_eq!(subject.views.run(&run_id("r-1")).await, Ok(Some(full)));
}

fn instance(projects: &[&str]) -> (Instance, String) {
    let projects = projects
        .iter()
        .map(|name| ProjectId::parse(*name).expect("a slug"))
        .collect();
    let instance = Instance {
        projects,
        repos: BTreeMap::new(),
        kill_switch: true,
        suspensions: BTreeMap::new(),
        egress: BTreeMap::new(),
        policies: vec![],
        staff: Staff::default(),
    };
    let json = serde_json::to_string(&instance).expect("an instance is plain data");
    (instance, json)
}

/// OWN-5a.
pub(crate) async fn the_instance_is_seen_with_the_end_of_its_stream(subject: &Subject) {
    for (seq, projects) in [(1, &["a"][..]), (2, &["a", "b"])] {
        let (instance, json) = instance(projects);
        kept(subject, instance_batch(seq - 1, 1, &json)).await;
        let head = StreamHead {
            stream: StreamId::Instance,
            seq,
            hash: format!("hash-instance-{seq}"),
        };
        assert_eq!(subject.views.instance().await, Ok((instance, head)));
    }
}

pub(crate) async fn an_empty_store_has_an_empty_instance(subject: &Subject) {
    let head = StreamHead {
        stream: StreamId::Instance,
        seq: 0,
        hash: String::new(),
    };
    assert_eq!(subject.views.instance().await, Ok((Instance::default(), head)));
    assert_eq!(subject.views.heads().await, Ok(vec![]));
    assert_eq!(
        subject
            .views
            .runs(&RunFilter {
                limit: 9,
                ..RunFilter::default()
            })
            .await,
        Ok(vec![])
    );
    assert_eq!(dispatchable(subject, i64::MAX).await, []);
}

/// RUN-3.
pub(crate) async fn replaced_projections_leave_records_alone(subject: &Subject) {
    let id = asked(subject, "r-1", EffectKind::Invoke).await;
    asked(subject, "r-2", EffectKind::Invoke).await;
    let (old, json) = instance(&["old"]);
    kept(subject, instance_batch(0, 1, &json)).await;
    assert_eq!(subject.views.instance().await.expect("the views answer").0, old);

    let (new, json) = instance(&["new"]);
    let rebuilt = RunRow {
        title: "rebuilt".to_owned(),
        held: true,
        ..row("r-2", 1)
    };
    let rows = vec![
        Projection::Run(Box::new(rebuilt.clone())),
        Projection::Instance {
            state: json,
            seq: 1,
            head: "hash-instance-1".to_owned(),
        },
    ];
    subject
        .ledger
        .replace_projections(Projections {
            rows,
            ..Projections::default()
        })
        .await
        .expect("projections are replaced");

    assert_eq!(
        subject.views.run(&run_id("r-1")).await,
        Ok(None),
        "what is not rebuilt is gone"
    );
    assert_eq!(subject.views.run(&run_id("r-2")).await, Ok(Some(rebuilt)));
    assert_eq!(subject.views.instance().await.expect("the views answer").0, new);
    assert_eq!(
        subject
            .ledger
            .read(&stream("r-1"), 0, 9)
            .await
            .expect("the ledger answers")
            .len(),
        1
    );
    assert_eq!(
        dispatchable(subject, 10).await,
        [id],
        "holds of the rebuilt rows count"
    );
}

pub(crate) async fn deadlines_come_due_in_order(subject: &Subject) {
    for (run, deadline) in [
        ("r-1", Some(30)),
        ("r-2", None),
        ("r-3", Some(10)),
        ("r-4", Some(31)),
        ("r-5", Some(10)),
    ] {
        let due = RunRow {
            deadline: deadline.map(Timestamp),
            ..row(run, 1)
        };
        kept(
            subject,
            Batch {
                projection: Projection::Run(Box::new(due)),
                ..batch(run, 0, 1)
            },
        )
        .await;
    }
    for (now, limit, expected) in [
        (9, 9, vec![]),
        (10, 9, vec!["r-3", "r-5"]),
        (30, 9, vec!["r-3", "r-5", "r-1"]),
        (99, 1, vec!["r-3"]),
    ] {
        let due = subject
            .ledger
            .due(Timestamp(now), limit)
            .await
            .expect("the ledger answers");
        assert_eq!(
            due,
            expected.into_iter().map(run_id).collect::<Vec<_>>(),
            "at {now}"
        );
    }
    kept(subject, batch("r-3", 1, 1)).await;
    assert_eq!(
        subject.ledger.due(Timestamp(10), 9).await,
        Ok(vec![run_id("r-5")]),
        "a deadline can go away"
    );
}
