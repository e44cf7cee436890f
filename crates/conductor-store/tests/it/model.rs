//! Memory, SQLite and PostgreSQL give the same answers to the same random calls (ARCHITECTURE invariant 7).

use conductor_domain::effect::EffectKind;
use conductor_domain::id::{EffectId, RepoId};
use conductor_domain::time::Timestamp;
use conductor_port::ledger::{
    Batch, Candidates, EffectChange, LeaseWish, Leased, Ledger, NewEffect, Projection, RunRow, Settlement,
    StreamId,
};
use conductor_port::views::{RunFilter, Views};
use conductor_store::{Database, Memory, Settings};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::given::{batch, open, row, run_id};
use crate::postgres;

const RUNS: [&str; 3] = ["r-1", "r-2", "r-10"];
const KINDS: [EffectKind; 3] = [
    EffectKind::PrepareWorkspace,
    EffectKind::Invoke,
    EffectKind::PostComment,
];

#[derive(Debug, Clone)]
enum Call {
    Append(Box<Draft>),
    Lease {
        effect: Index,
        now: i64,
        length: i64,
        slots: Option<u32>,
    },
    Renew {
        lease: Index,
        until: i64,
    },
    Dispatchable {
        now: i64,
    },
    Due {
        now: i64,
    },
}

/// A batch whose references are chosen among what exists when it is made.
#[derive(Debug, Clone)]
struct Draft {
    run: usize,
    is_stale: bool,
    asks: Vec<(usize, u8, i64)>,
    changes: Vec<Change>,
    settles: Option<Index>,
    retries_settled: Option<i64>,
    key: Option<u8>,
    held: bool,
    deadline: Option<i64>,
    frees_slot: bool,
}

#[derive(Debug, Clone)]
enum Change {
    Retry(Index, i64),
    Stop(Index),
    Reprioritize(u8),
}

fn time() -> impl Strategy<Value = i64> {
    0..60_i64
}

fn call() -> impl Strategy<Value = Call> {
    let change = prop_oneof![
        (any::<Index>(), time()).prop_map(|(effect, at)| Change::Retry(effect, at)),
        any::<Index>().prop_map(Change::Stop),
        (0..4_u8).prop_map(Change::Reprioritize),
    ];
    let references = (
        prop::collection::vec((0..KINDS.len(), 0..4_u8, time()), 0..3),
        prop::collection::vec(change, 0..2),
        prop::option::weighted(0.6, any::<Index>()),
        prop::option::weighted(0.3, time()),
    );
    let plain = (
        0..RUNS.len(),
        prop::bool::weighted(0.1),
        prop::option::weighted(0.2, 0..6_u8),
        prop::bool::weighted(0.2),
        prop::option::of(time()),
        prop::bool::weighted(0.1),
    );
    let append = (references, plain).prop_map(|((asks, changes, settles, retries_settled), plain)| {
        let (run, is_stale, key, held, deadline, frees_slot) = plain;
        let draft = Draft {
            run,
            is_stale,
            asks,
            changes,
            settles,
            retries_settled,
            key,
            held,
            deadline,
            frees_slot,
        };
        Call::Append(Box::new(draft))
    });
    let slots = prop::option::of(0..3_u32);
    prop_oneof![
        5 => append,
        4 => (any::<Index>(), time(), 0..20_i64, slots)
            .prop_map(|(effect, now, length, slots)| Call::Lease { effect, now, length, slots }),
        1 => (any::<Index>(), time()).prop_map(|(lease, until)| Call::Renew { lease, until }),
        1 => time().prop_map(|now| Call::Dispatchable { now }),
        1 => time().prop_map(|now| Call::Due { now }),
    ]
}

/// What the calls so far have made, as the reference answered.
#[derive(Default)]
struct Known {
    seqs: [u64; RUNS.len()],
    effects: Vec<EffectId>,
    leases: Vec<Settlement>,
}

impl Known {
    fn effect(&self, index: Index) -> EffectId {
        // Now and then one that does not exist.
        let choice = index.index(self.effects.len() + 1);
        self.effects
            .get(choice)
            .cloned()
            .unwrap_or_else(|| EffectId::parse("r-1.999.0").unwrap())
    }

    fn lease(&self, index: Index) -> Option<Settlement> {
        (!self.leases.is_empty()).then(|| self.leases[index.index(self.leases.len())].clone())
    }

    fn batch(&self, draft: &Draft) -> Batch {
        let run = RUNS[draft.run];
        let seq = self.seqs[draft.run];
        let expected = if draft.is_stale { seq + 1 } else { seq };
        let settles = draft.settles.and_then(|index| self.lease(index));
        let mut effect_changes: Vec<EffectChange> = draft
            .changes
            .iter()
            .map(|change| match change {
                Change::Retry(index, at) => EffectChange::Retry {
                    id: self.effect(*index),
                    not_before: Timestamp(*at),
                },
                Change::Stop(index) => EffectChange::Stop {
                    id: self.effect(*index),
                },
                Change::Reprioritize(priority) => EffectChange::Reprioritize { priority: *priority },
            })
            .collect();
        if let (Some(at), Some(settlement)) = (draft.retries_settled, &settles) {
            effect_changes.push(EffectChange::Retry {
                id: settlement.id.clone(),
                not_before: Timestamp(at),
            });
        }
        let effects = draft
            .asks
            .iter()
            .enumerate()
            .map(|(ordinal, (kind, priority, not_before))| NewEffect {
                id: EffectId::derive(&run_id(run), expected, ordinal),
                run: run_id(run),
                repo: RepoId(7),
                kind: KINDS[*kind],
                payload: "{}".to_owned(),
                priority: *priority,
                not_before: Timestamp(*not_before),
            });
        let (held, deadline) = (draft.held, draft.deadline.map(Timestamp));
        Batch {
            effects: effects.collect(),
            effect_changes,
            settles,
            dedupe: draft.key.map(|key| format!("key-{key}")),
            projection: Projection::Run(Box::new(RunRow {
                held,
                deadline,
                ..row(run, expected + 1)
            })),
            frees_slot: draft.frees_slot,
            ..batch(run, expected, "{}")
        }
    }
}

/// The outcome in words, a lease that was granted, and whether a batch was kept.
async fn perform(store: &dyn Ledger, call: &Call, known: &Known) -> (String, Option<Settlement>, bool) {
    match call {
        Call::Append(draft) => {
            let outcome = store.append(known.batch(draft)).await;
            (format!("{outcome:?}"), None, outcome.is_ok())
        }
        Call::Lease {
            effect,
            now,
            length,
            slots,
        } => {
            let id = known.effect(*effect);
            let wish = LeaseWish {
                id: id.clone(),
                worker: "worker".to_owned(),
                now: Timestamp(*now),
                until: Timestamp(now + length),
                slot: slots.map(|limit| (RepoId(7), limit)),
            };
            let leased = store.lease(wish).await.unwrap();
            let token = match leased {
                Leased::Granted { token, .. } => Some(Settlement { id, token }),
                Leased::Gone | Leased::NoSlot => None,
            };
            (format!("{leased:?}"), token, false)
        }
        Call::Renew { lease, until } => match known.lease(*lease) {
            Some(lease) => (
                format!("{:?}", store.renew(&lease, Timestamp(*until)).await),
                None,
                false,
            ),
            None => (String::new(), None, false),
        },
        Call::Dispatchable { now } => (
            format!("{:?}", store.dispatchable(&candidates(*now, 5)).await),
            None,
            false,
        ),
        Call::Due { now } => (format!("{:?}", store.due(Timestamp(*now), 2).await), None, false),
    }
}

fn candidates(now: i64, limit: u32) -> Candidates {
    Candidates {
        now: Timestamp(now),
        after: None,
        limit,
    }
}

async fn everything<S: Ledger + Views>(store: &S) -> String {
    let mut seen = format!(
        "{:?}\n{:?}\n",
        store.heads().await,
        store.dispatchable(&candidates(1_000, 1_000)).await
    );
    seen += &format!(
        "{:?}\n",
        store
            .runs(&RunFilter {
                limit: 9,
                ..RunFilter::default()
            })
            .await
    );
    for run in RUNS.map(run_id) {
        seen += &format!(
            "{:?}\n",
            Ledger::read(store, &StreamId::Run(run.clone()), 0, 1_000).await
        );
        seen += &format!("{:?}\n", store.effects(&run).await);
    }
    seen
}

async fn check(database: &Database, calls: &[Call]) {
    let memory = Memory::new();
    let mut known = Known::default();
    for call in calls {
        let expected = perform(&memory, call, &known).await;
        assert_eq!(perform(database, call, &known).await, expected, "{call:?}");
        let (_, lease, is_kept) = expected;
        known.leases.extend(lease);
        if let (Call::Append(draft), true) = (call, is_kept) {
            let batch = known.batch(draft);
            known
                .effects
                .extend(batch.effects.into_iter().map(|effect| effect.id));
            known.seqs[draft.run] += 1;
        }
    }
    assert_eq!(everything(database).await, everything(&memory).await);
    database.close().await;
}

fn run(check: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(check);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sqlite_cannot_be_told_from_memory(calls in prop::collection::vec(call(), 1..80)) {
        run(async {
            let dir = tempfile::tempdir().unwrap();
            check(&open(&dir.path().join("c.sqlite")).await, &calls).await;
        });
    }

    #[test]
    fn postgres_cannot_be_told_from_memory(calls in prop::collection::vec(call(), 1..80)) {
        run(async {
            let address = postgres::database().await;
            check(&Database::connect(&address, &Settings::default()).await.unwrap(), &calls).await;
        });
    }
}
