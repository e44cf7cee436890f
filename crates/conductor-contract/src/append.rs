//! What the ledger keeps of a batch: all of it, once, at its place, or nothing.
//!
//! It does not know leases.

use conductor_domain::effect::EffectKind;
use conductor_domain::time::Timestamp;
use conductor_port::ledger::{AppendError, Batch, EffectChange, ForgeWrite, Projection, Record, StreamId};
use tokio::task::JoinSet;

use crate::Subject;
use crate::given::{
    asked, assert_permanent, batch, dispatchable, effect, effect_id, instance_batch, kept, record, row,
    run_id, stream,
};

async fn all(subject: &Subject, stream: &StreamId) -> Vec<Record> {
    subject
        .ledger
        .read(stream, 0, 1_000)
        .await
        .expect("the ledger answers")
}

/// RUN-3.
pub(crate) async fn kept_records_are_read_back_whole_and_in_order(subject: &Subject) {
    kept(subject, batch("r-1", 0, 3)).await;
    kept(subject, batch("r-1", 3, 9)).await;
    let expected: Vec<Record> = (1..=12).map(|seq| record(&stream("r-1"), seq)).collect();
    assert_eq!(all(subject, &stream("r-1")).await, expected);
}

pub(crate) async fn reading_is_cut_by_after_and_limit(subject: &Subject) {
    kept(subject, batch("r-1", 0, 5)).await;
    for (after, limit, expected) in [
        (0, 2, vec![1, 2]),
        (3, 9, vec![4, 5]),
        (5, 9, vec![]),
        (1, 0, vec![]),
    ] {
        let records = subject
            .ledger
            .read(&stream("r-1"), after, limit)
            .await
            .expect("the ledger answers");
        let seqs: Vec<u64> = records.iter().map(|record| record.seq).collect();
        assert_eq!(seqs, expected, "after {after}, at most {limit}");
    }
}

pub(crate) async fn of_many_who_saw_the_same_end_one_is_kept(subject: &Subject) {
    for round in 0..5 {
        let mut racers = JoinSet::new();
        for racer in 0..16 {
            let ledger = subject.ledger.clone();
            let mut batch = batch("r-1", round, 1);
            batch.records[0].event_id = format!("{round}-{racer}");
            racers.spawn(async move { ledger.append(batch).await });
        }
        let outcomes = racers.join_all().await;
        let (won, lost): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
        assert_eq!(won.len(), 1);
        assert!(
            lost.iter()
                .all(|outcome| *outcome == Err(AppendError::Moved { actual: round + 1 })),
            "{lost:?}"
        );
    }
    let seqs: Vec<u64> = all(subject, &stream("r-1"))
        .await
        .iter()
        .map(|record| record.seq)
        .collect();
    assert_eq!(seqs, [1, 2, 3, 4, 5]);
}

pub(crate) async fn streams_do_not_disturb_each_other(subject: &Subject) {
    let mut writers = JoinSet::new();
    for writer in 0..8 {
        let ledger = subject.ledger.clone();
        writers.spawn(async move {
            for seq in 0..10 {
                ledger
                    .append(batch(&format!("r-{writer}"), seq, 1))
                    .await
                    .expect("nobody else writes this stream");
            }
        });
    }
    writers.join_all().await;
    kept(subject, instance_batch(0, 1, "{}")).await;
    for writer in 0..8 {
        let stream = stream(&format!("r-{writer}"));
        let expected: Vec<Record> = (1..=10).map(|seq| record(&stream, seq)).collect();
        assert_eq!(all(subject, &stream).await, expected);
    }
    assert_eq!(
        all(subject, &StreamId::Instance).await,
        [record(&StreamId::Instance, 1)]
    );
}

pub(crate) async fn a_stale_batch_is_told_where_the_stream_ends(subject: &Subject) {
    kept(subject, batch("r-1", 0, 4)).await;
    for (expected_seq, count) in [(0, 1), (2, 2), (5, 1)] {
        let outcome = subject.ledger.append(batch("r-1", expected_seq, count)).await;
        assert_eq!(outcome, Err(AppendError::Moved { actual: 4 }));
    }
    assert_eq!(all(subject, &stream("r-1")).await.len(), 4);
}

/// GH-2, S-52.
pub(crate) async fn a_repeated_key_is_refused_even_when_the_stream_moved_on(subject: &Subject) {
    let keyed = |expected| Batch {
        dedupe: Some("delivery-1".to_owned()),
        ..batch("r-1", expected, 1)
    };
    kept(subject, keyed(0)).await;
    assert_eq!(subject.ledger.append(keyed(0)).await, Err(AppendError::Duplicate));
    assert_eq!(subject.ledger.append(keyed(1)).await, Err(AppendError::Duplicate));
    let elsewhere = Batch {
        dedupe: Some("delivery-1".to_owned()),
        ..batch("r-2", 0, 1)
    };
    assert_eq!(
        subject.ledger.append(elsewhere).await,
        Err(AppendError::Duplicate)
    );
    kept(
        subject,
        Batch {
            dedupe: Some("delivery-2".to_owned()),
            ..batch("r-1", 1, 1)
        },
    )
    .await;
}

pub(crate) async fn of_many_with_one_key_one_is_kept(subject: &Subject) {
    let mut racers = JoinSet::new();
    for racer in 0..16 {
        let ledger = subject.ledger.clone();
        let batch = Batch {
            dedupe: Some("delivery-1".to_owned()),
            ..batch(&format!("r-{racer}"), 0, 1)
        };
        racers.spawn(async move { ledger.append(batch).await });
    }
    let outcomes = racers.join_all().await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    assert_eq!(
        outcomes
            .iter()
            .filter(|outcome| **outcome == Err(AppendError::Duplicate))
            .count(),
        15
    );
    assert_eq!(subject.views.heads().await.expect("the views answer").len(), 1);
}

/// A batch that touches everything, refused because the stream has moved on.
pub(crate) async fn a_refused_batch_leaves_nothing_behind(subject: &Subject) {
    let pending = asked(subject, "r-1", EffectKind::Invoke).await;
    let before = look(subject).await;
    let stale = Batch {
        expected_seq: 0,
        records: vec![record(&stream("r-1"), 1)],
        ..heavy(&pending)
    };
    assert_eq!(
        subject.ledger.append(stale).await,
        Err(AppendError::Moved { actual: 1 })
    );
    assert_eq!(look(subject).await, before);
    // The key of the refused batch is still free.
    kept(subject, heavy(&pending)).await;
}

/// A batch that touches everything, refused at the very end of its way.
pub(crate) async fn a_batch_that_fails_in_its_last_part_leaves_nothing_behind(subject: &Subject) {
    let pending = asked(subject, "r-1", EffectKind::Invoke).await;
    let before = look(subject).await;
    let twice = Batch {
        effects: vec![
            effect("r-1", 5, EffectKind::Push),
            effect("r-1", 0, EffectKind::Push),
        ],
        ..heavy(&pending)
    };
    assert_permanent(subject.ledger.append(twice).await);
    assert_eq!(look(subject).await, before);
    kept(subject, heavy(&pending)).await;
}

fn heavy(pending: &conductor_domain::id::EffectId) -> Batch {
    let write = ForgeWrite {
        effect: effect_id("r-1", 1),
        run: run_id("r-1"),
        kind: "push".to_owned(),
        actor_type: "system".to_owned(),
        target: "octo/hello".to_owned(),
        payload_hash: "sha256:0".to_owned(),
        decision: "allow".to_owned(),
        reason: "default".to_owned(),
        result: "pending".to_owned(),
        at: Timestamp(5),
    };
    let mut changed = row("r-1", 2);
    "executing".clone_into(&mut changed.phase);
    Batch {
        effects: vec![effect("r-1", 1, EffectKind::Push)],
        effect_changes: vec![EffectChange::Stop { id: pending.clone() }],
        dedupe: Some("delivery-1".to_owned()),
        projection: Projection::Run(Box::new(changed)),
        writes: vec![write],
        ..batch("r-1", 1, 1)
    }
}

/// Everything that can be seen of run `r-1`.
async fn look(subject: &Subject) -> String {
    let run = run_id("r-1");
    format!(
        "{:?} {:?} {:?} {:?} {:?}",
        all(subject, &stream("r-1")).await,
        subject.views.run(&run).await,
        subject.views.effects(&run).await,
        subject.views.writes(&run).await,
        dispatchable(subject, 10).await,
    )
}

pub(crate) async fn an_event_id_is_taken_once_over_all_streams(subject: &Subject) {
    kept(subject, batch("r-1", 0, 1)).await;
    let mut twice = batch("r-2", 0, 1);
    twice.records[0].event_id = record(&stream("r-1"), 1).event_id;
    assert_permanent(subject.ledger.append(twice).await);
    assert_eq!(all(subject, &stream("r-2")).await, []);
}

/// RUN-4.
pub(crate) async fn an_effect_id_is_taken_once(subject: &Subject) {
    asked(subject, "r-1", EffectKind::Invoke).await;
    let twice = Batch {
        effects: vec![effect("r-1", 0, EffectKind::Push)],
        ..batch("r-1", 1, 1)
    };
    assert_permanent(subject.ledger.append(twice).await);
    assert_eq!(all(subject, &stream("r-1")).await.len(), 1);
}

pub(crate) async fn a_batch_that_does_not_hang_together_is_refused(subject: &Subject) {
    let gap = Batch {
        records: vec![record(&stream("r-1"), 2)],
        ..batch("r-1", 0, 1)
    };
    let foreign = Batch {
        records: vec![record(&stream("r-2"), 1)],
        ..batch("r-1", 0, 1)
    };
    let projected = Batch {
        projection: Projection::Run(Box::new(row("r-2", 1))),
        ..batch("r-1", 0, 1)
    };
    let kind = Batch {
        projection: Projection::Instance {
            state: "{}".to_owned(),
            seq: 1,
            head: "hash".to_owned(),
        },
        ..batch("r-1", 0, 1)
    };
    let slot = Batch {
        frees_slot: true,
        ..instance_batch(0, 1, "{}")
    };
    let mut twin = batch("r-1", 0, 2);
    "run/r-1#1".clone_into(&mut twin.records[1].event_id);
    for broken in [gap, foreign, projected, kind, slot, twin] {
        assert_permanent(subject.ledger.append(broken).await);
    }
    assert_eq!(subject.views.heads().await.expect("the views answer"), []);
}

/// SEC-2.
pub(crate) async fn hostile_text_is_kept_byte_for_byte(subject: &Subject) {
    let mut hostile = batch("r-1", 0, 1);
    for text in [
        "'; DROP TABLE records; --",
        "$1 ?1 :a @b",
        "\u{202e}\u{1}\n\r\t\"\\",
        "👩‍🚀 e\u{301}",
        "a\0b \u{10FFFF}0",
        "",
    ] {
        text.clone_into(&mut hostile.records[0].payload);
        text.clone_into(&mut hostile.records[0].actor);
        subject
            .ledger
            .append(hostile.clone())
            .await
            .expect("any text may be kept");
        let last = all(subject, &hostile.stream)
            .await
            .pop()
            .expect("the record is kept");
        assert_eq!(last, hostile.records[0]);
        hostile.expected_seq = last.seq;
        hostile.records[0].seq = last.seq + 1;
        hostile.records[0].event_id = format!("e-{}", last.seq + 1);
    }
}
