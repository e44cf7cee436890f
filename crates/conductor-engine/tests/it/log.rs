//! The log proves itself: what somebody changed is named, and what was decided can be decided again.

use std::sync::Arc;

use conductor_domain::id::RunId;
use conductor_engine::audit::{self, AuditReport, Problem, Unanchored};
use conductor_engine::replay::{self, Difference};
use conductor_engine::{chain, record};
use conductor_port::ledger::{Record, StreamId};
use conductor_testkit::ledger::TamperedLedger;
use conductor_testkit::rig::Rig;
use conductor_testkit::sim::Stage;

fn r1() -> RunId {
    RunId::parse("r1").expect("a slug")
}

/// Two runs up to their first gate, anchored at shutdown.
async fn played() -> Stage {
    let rig = Rig::start_story().await;
    for n in [1, 2] {
        let run = rig.start_run(n).await;
        rig.until(&run, |run| run.phase.gate().is_some()).await;
    }
    rig.end().await
}

async fn audit_after(tampering: impl Fn(&mut Vec<Record>) + Send + Sync + 'static) -> AuditReport {
    let stage = Box::pin(played()).await;
    let tampered = TamperedLedger::new(stage.memory.clone(), move |stream, records| {
        if *stream == StreamId::Run(r1()) {
            tampering(records);
        }
    });
    audit::verify(&tampered, &tampered)
        .await
        .expect("a readable ledger")
}

fn stream() -> String {
    StreamId::Run(r1()).as_key()
}

fn at(records: &mut [Record], seq: u64) -> &mut Record {
    records
        .iter_mut()
        .find(|record| record.seq == seq)
        .expect("there are so many records")
}

/// SEC-8, OWN-5a.
#[tokio::test(start_paused = true)]
async fn an_honest_log_is_sound_and_wholly_anchored() {
    let report = audit_after(|_records| {}).await;
    assert_eq!(
        (report.problems, report.unanchored, report.streams),
        (vec![], vec![], 3)
    );
    assert!(report.records > 60);
}

/// SEC-8.
#[tokio::test(start_paused = true)]
async fn a_changed_record_is_named() {
    let edits: [fn(&mut Record); 4] = [
        |record| record.payload = record.payload.replace("r1", "r2"),
        |record| {
            record.payload.push(' ');
            record.payload_hash = record::payload_hash(&record.payload);
        },
        |record| record.actor = "mallory".into(),
        |record| record.at.0 += 1,
    ];
    for (n, edit) in edits.into_iter().enumerate() {
        let report = audit_after(move |records| edit(at(records, 5))).await;
        assert_eq!(
            report.problems,
            [Problem::Changed {
                stream: stream(),
                seq: 5
            }],
            "edit {n}"
        );
    }
}

/// SEC-8: whoever computes the hashes anew is caught by the anchor.
#[tokio::test(start_paused = true)]
async fn a_chain_that_was_written_anew_is_named() {
    let report = audit_after(|records| {
        let edited = at(records, 5);
        edited.payload.push(' ');
        edited.payload_hash = record::payload_hash(&edited.payload);
        let mut before = chain::genesis(&StreamId::Run(r1()));
        for record in records {
            record.hash = chain::link(&before, record);
            before.clone_from(&record.hash);
        }
    })
    .await;
    assert!(
        matches!(report.problems.as_slice(), [Problem::Rewritten { .. }]),
        "{:?}",
        report.problems
    );
}

/// SEC-8.
#[tokio::test(start_paused = true)]
async fn removed_records_are_named() {
    let report = audit_after(|records| records.retain(|record| !(7..=8).contains(&record.seq))).await;
    assert_eq!(
        report.problems,
        [Problem::Removed {
            stream: stream(),
            from: 7,
            to: 8
        }]
    );
    let report = audit_after(|records| records.retain(|record| record.seq != 1)).await;
    assert_eq!(
        report.problems,
        [Problem::Removed {
            stream: stream(),
            from: 1,
            to: 1
        }]
    );
}

/// SEC-8.
#[tokio::test(start_paused = true)]
async fn reordered_records_are_named() {
    let report = audit_after(|records| {
        at(records, 6).seq = 1000;
        at(records, 7).seq = 6;
        at(records, 1000).seq = 7;
        records.sort_by_key(|record| record.seq);
    })
    .await;
    let reordered: Vec<u64> = report
        .problems
        .iter()
        .filter_map(|problem| {
            if let Problem::Reordered { seq, .. } = problem {
                Some(*seq)
            } else {
                None
            }
        })
        .collect();
    assert_eq!(reordered, [6, 7]);
}

/// SEC-8.
#[tokio::test(start_paused = true)]
async fn a_truncated_stream_and_a_removed_run_are_named() {
    let report = audit_after(|records| records.truncate(10)).await;
    assert!(
        matches!(&report.problems[..], [Problem::Truncated { last: 10, known, .. }] if *known > 30),
        "{:?}",
        report.problems
    );
    let report = audit_after(Vec::clear).await;
    assert_eq!(report.problems, [Problem::RunRemoved { run: r1() }]);
}

/// SEC-8: what no anchor covers is said, not hidden.
#[tokio::test(start_paused = true)]
async fn what_came_after_the_last_anchor_is_reported_as_unanchored() {
    let rig = Rig::start_story().await;
    let run = rig.start_run(1).await;
    rig.until(&run, |run| run.phase.gate().is_some()).await;
    let memory = rig.stage.memory.clone();
    let report = audit::verify(memory.as_ref(), memory.as_ref())
        .await
        .expect("a readable ledger");
    let last = rig.records(&run).await.len() as u64;
    assert_eq!(report.unanchored, [Unanchored { run, after: 0, last }]);
    assert!(report.is_sound());
}

/// RUN-2: the same inputs make the same events and effects, byte for byte; anything else is found.
#[tokio::test(start_paused = true)]
async fn a_replay_finds_nothing_but_what_was_changed() {
    let stage = played().await;
    let honest = replay::replay(stage.memory.as_ref(), stage.memory.as_ref(), &r1())
        .await
        .expect("readable");
    assert!(honest.is_equal(), "{:?}", honest.differences);
    assert!(
        honest.facts > 5 && honest.events > honest.facts && honest.effects > 5,
        "{honest:?}"
    );

    let tampered = Arc::new(TamperedLedger::new(stage.memory.clone(), |stream, records| {
        if *stream == StreamId::Run(r1()) {
            let record = records
                .iter_mut()
                .find(|record| record.kind == "workspace_prepared");
            let record = record.expect("a workspace was prepared");
            record.payload = record.payload.replace(char::is_numeric, "0");
        }
    }));
    let replayed = replay::replay(tampered.as_ref(), tampered.as_ref(), &r1())
        .await
        .expect("readable");
    assert!(
        matches!(replayed.differences.first(), Some(Difference::Event { .. })),
        "{:?}",
        replayed.differences
    );
}
