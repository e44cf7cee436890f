//! The log proves itself: what somebody changed is named, and what was decided can be decided again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use conductor_domain::DECIDER_VERSION;
use conductor_domain::fault::Fault;
use conductor_domain::id::{OperatorName, RunId};
use conductor_domain::input::{Action, Input};
use conductor_domain::instance::Instance;
use conductor_domain::time::{Millis, Timestamp};
use conductor_engine::audit::{self, AuditReport, Kept, Problem, Unanchored};
use conductor_engine::replay::{self, Difference};
use conductor_engine::{Engine, Options, chain, rebuild, record};
use conductor_port::inbox::{Inbox as _, Seen, Submission};
use conductor_port::lease::Leases as _;
use conductor_port::ledger::{
    Batch, EffectRow, ForgeWrite, IssueClaim, Ledger, Projection, Projections, Record, RunRow, StreamId,
};
use conductor_port::views::{RunFilter, StreamHead, Views};
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
    audit_after_tampering_with(StreamId::Run(r1()), tampering).await
}

async fn audit_after_tampering_with(
    target: StreamId,
    tampering: impl Fn(&mut Vec<Record>) + Send + Sync + 'static,
) -> AuditReport {
    let stage = Box::pin(played()).await;
    let tampered = TamperedLedger::new(stage.memory.clone(), move |stream, records| {
        if *stream == target {
            tampering(records);
        }
    });
    audit_of(&stage, &tampered).await
}

/// Audits what somebody tampered with, beside the honest bytes and tool logs.
async fn audit_of<L: Ledger + Views>(stage: &Stage, ledger: &L) -> AuditReport {
    let kept = Kept {
        views: ledger,
        ledger,
        tool_log: stage.memory.as_ref(),
        blobs: stage.memory.as_ref(),
    };
    audit::verify(kept).await.expect("a readable ledger")
}

async fn show(memory: &impl Ledger, row: RunRow) {
    let all = Projections {
        rows: vec![Projection::Run(Box::new(row))],
        ..Projections::default()
    };
    memory.replace_projections(all).await.expect("calm weather");
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

/// SEC-8: the runs' facts anchor the instance's chain, as the instance anchors theirs.
#[tokio::test(start_paused = true)]
async fn a_truncated_rewritten_or_removed_instance_stream_is_named() {
    let instance = || StreamId::Instance.as_key();
    let report = audit_after_tampering_with(StreamId::Instance, |records| records.truncate(3)).await;
    assert_eq!(
        report.problems,
        [Problem::Truncated {
            stream: instance(),
            last: 3,
            known: 4
        }]
    );
    let report = audit_after_tampering_with(StreamId::Instance, Vec::clear).await;
    assert_eq!(
        report.problems,
        [Problem::Removed {
            stream: instance(),
            from: 1,
            to: 4
        }]
    );
    let report = audit_after_tampering_with(StreamId::Instance, |records| {
        let mut before = chain::genesis(&StreamId::Instance);
        for record in records {
            record.at.0 += 1;
            record.hash = chain::link(&before, record);
            before.clone_from(&record.hash);
        }
    })
    .await;
    assert_eq!(
        report.problems,
        [Problem::Rewritten {
            stream: instance(),
            seq: 4
        }]
    );
}

/// SEC-8: the anchors that end the instance's stream are covered by no fact of a run. Whoever removes them is caught by
/// what readers saw of the stream's end; whoever makes that fit leaves the runs unanchored.
#[tokio::test(start_paused = true)]
async fn anchors_removed_from_the_end_are_missed() {
    let stage = played().await;
    let end = stage.memory.instance().await.expect("calm weather").1.seq;
    let cut = |stream: &StreamId, records: &mut Vec<Record>| {
        if *stream == StreamId::Instance {
            records.truncate(records.len() - 2);
        }
    };
    let hasty = TamperedLedger::new(stage.memory.clone(), cut).hastily();
    let report = audit_of(&stage, &hasty).await;
    let truncated = Problem::Truncated {
        stream: StreamId::Instance.as_key(),
        last: end - 2,
        known: end,
    };
    assert_eq!(report.problems, std::slice::from_ref(&truncated));
    assert_eq!(audit::verify_instance(&hasty, &hasty).await, Ok(vec![truncated]));

    let thorough = TamperedLedger::new(stage.memory.clone(), cut);
    let report = audit_of(&stage, &thorough).await;
    let runs: Vec<&str> = report.unanchored.iter().map(|end| end.run.as_str()).collect();
    assert_eq!(
        (report.problems.as_slice(), runs.as_slice()),
        (&[][..], &["r1", "r2"][..])
    );
}

/// SEC-8: whatever readers see of the instance was told by records, even when no fact came after them.
#[tokio::test(start_paused = true)]
async fn an_instance_that_shows_more_than_its_stream_tells_is_named() {
    let rig = Rig::start_story().await;
    let stage = rig.end().await;
    let tampered = TamperedLedger::new(stage.memory.clone(), |_stream, records| records.truncate(2));
    let report = audit_of(&stage, &tampered).await;
    assert_eq!(
        report.problems,
        [Problem::Truncated {
            stream: StreamId::Instance.as_key(),
            last: 2,
            known: 3
        }]
    );
}

/// SEC-8, OWN-5a: one anchor that cannot be read does not end the anchoring.
#[tokio::test(start_paused = true)]
async fn an_unreadable_anchor_is_passed_over() {
    let rig = Rig::start_story().await;
    let run = rig.start_run(1).await;
    rig.until(&run, |run| run.phase.gate().is_some()).await;
    let memory = rig.stage.memory.clone();
    let (instance, head) = memory.instance().await.expect("calm weather");
    let mut record = memory
        .read(&StreamId::Instance, head.seq - 1, 1)
        .await
        .expect("calm weather")
        .pop()
        .expect("the repository was registered");
    record.seq += 1;
    record.event_id = record::event_id(&StreamId::Instance, record.seq);
    record.kind = "heads_anchored".into();
    record.payload = "{\"event\":\"heads_anchored\",\"heads\":7}".into();
    record.payload_hash = record::payload_hash(&record.payload);
    record.hash = chain::link(&head.hash, &record);
    let hash = record.hash.clone();
    let batch = Batch {
        stream: StreamId::Instance,
        expected_seq: head.seq,
        records: vec![record],
        effects: vec![],
        effect_changes: vec![],
        settles: None,
        dedupe: None,
        projection: Projection::Instance {
            state: serde_json::to_string(&instance).expect("JSON"),
            seq: head.seq + 1,
            head: hash,
        },
        writes: vec![],
        frees_slot: false,
        issue: IssueClaim::Unchanged,
    };
    memory.append(batch).await.expect("calm weather");
    let stage = rig.end().await;
    let report = audit_of(&stage, stage.memory.as_ref()).await;
    assert_eq!((report.problems, report.unanchored), (vec![], vec![]));
}

/// RUN-2: every column that readers see follows from the events.
#[tokio::test(start_paused = true)]
async fn a_replay_compares_the_whole_row() {
    let stage = Box::pin(played()).await;
    let memory = stage.memory.clone();
    let honest = memory.run(&r1()).await.expect("calm").expect("it is there");
    let edits: [fn(&mut RunRow); 10] = [
        |row| row.phase = "executing".into(),
        |row| row.terminal = true,
        |row| row.needs_human = !row.needs_human,
        |row| row.held = !row.held,
        |row| row.deadline = Some(Timestamp(7)),
        |row| row.title.push('x'),
        |row| row.pull_request = Some(7),
        |row| row.seq += 1,
        |row| row.seq -= 1,
        |row| row.state = row.state.replace("\"cleaned_up\":false", "\"cleaned_up\":true"),
    ];
    for (n, edit) in edits.into_iter().enumerate() {
        let mut row = honest.clone();
        edit(&mut row);
        show(memory.as_ref(), row).await;
        let replayed = replay::replay(memory.as_ref(), memory.as_ref(), &r1())
            .await
            .expect("readable");
        assert_eq!(replayed.differences, [Difference::State], "edit {n}");
    }
}

/// What readers see of a run that moves on after every look at it.
#[derive(Debug)]
struct Moving {
    engine: Arc<Engine>,
    memory: Arc<dyn Views>,
    by: OperatorName,
    is_paused: AtomicBool,
    /// How many looks at the row come too early to see it.
    early: AtomicU32,
    /// What somebody did to the row.
    edit: fn(&mut RunRow),
}

impl Moving {
    fn new(rig: &Rig) -> Self {
        Self {
            engine: rig.engine.clone(),
            memory: rig.stage.memory.clone(),
            by: rig.stage.specs[0].started_by.clone(),
            is_paused: AtomicBool::new(false),
            early: AtomicU32::new(0),
            edit: |_row| {},
        }
    }

    async fn move_on(&self, run: &RunId) {
        let action = if self.is_paused.fetch_not(Ordering::Relaxed) {
            Action::Resume
        } else {
            Action::Pause
        };
        let input = Input::Operate {
            by: self.by.clone(),
            action,
        };
        let submission = Submission {
            run: run.clone(),
            input,
            dedupe: None,
            cause: String::new(),
            seen: Seen::Anything,
        };
        let submitted = self.engine.submit(submission).await;
        submitted.expect("it can be paused and resumed");
    }
}

#[async_trait]
impl Views for Moving {
    async fn run(&self, run: &RunId) -> Result<Option<RunRow>, Fault> {
        let is_early = |left: u32| left.checked_sub(1);
        if self
            .early
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_early)
            .is_ok()
        {
            return Ok(None);
        }
        let mut row = self.memory.run(run).await?;
        self.move_on(run).await;
        row.iter_mut().for_each(self.edit);
        Ok(row)
    }

    async fn effects(&self, run: &RunId) -> Result<Vec<EffectRow>, Fault> {
        let effects = self.memory.effects(run).await?;
        self.move_on(run).await;
        Ok(effects)
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, Fault> {
        self.memory.runs(filter).await
    }

    async fn count(&self, filter: &RunFilter) -> Result<u32, Fault> {
        self.memory.count(filter).await
    }

    async fn instance(&self) -> Result<(Instance, StreamHead), Fault> {
        self.memory.instance().await
    }

    async fn writes(&self, run: &RunId) -> Result<Vec<ForgeWrite>, Fault> {
        self.memory.writes(run).await
    }

    async fn heads(&self) -> Result<Vec<StreamHead>, Fault> {
        self.memory.heads().await
    }
}

/// RUN-2: a run that moves while it is replayed is compared as it stood at one moment; nothing is made up, and what is
/// wrong is found all the same.
#[tokio::test(start_paused = true)]
async fn a_replay_of_a_run_that_moves_finds_nothing_but_what_was_changed() {
    let rig = Rig::start_story().await;
    let run = rig.start_run(1).await;
    rig.until(&run, |run| run.phase.gate().is_some()).await;
    let memory = rig.stage.memory.as_ref();
    let mut moving = Moving::new(&rig);
    let replayed = async |moving: &Moving| replay::replay(memory, moving, &run).await.expect("readable");
    let honest = replayed(&moving).await;
    assert!(honest.is_equal(), "{:?}", honest.differences);
    assert!(
        honest.facts > 5 && honest.events > honest.facts && honest.effects > 5,
        "{honest:?}"
    );

    // It began between two looks.
    moving.early = AtomicU32::new(1);
    let began = replayed(&moving).await;
    assert!(began.is_equal() && began.facts > honest.facts, "{began:?}");

    moving.edit = |row| row.title.push('x');
    assert_eq!(replayed(&moving).await.differences, [Difference::State]);
}

/// LAW-3: a state that breaks a law is noticed at the next commit, whoever brought it about.
#[tokio::test(start_paused = true)]
#[cfg(debug_assertions)]
#[should_panic(expected = "LAW-3")]
async fn a_broken_law_is_noticed_at_the_commit() {
    let rig = Rig::start_story().await;
    let run = rig.start_run(1).await;
    rig.until(&run, |run| run.phase.gate().is_some()).await;
    let memory = rig.stage.memory.clone();
    let mut row = memory.run(&run).await.expect("calm").expect("it is there");
    row.state = row.state.replace("\"cleaned_up\":false", "\"cleaned_up\":true");
    show(memory.as_ref(), row).await;
    let _panics_before = rig.operate(&run, Action::Pause).await;
}

/// OWN-5a, SEC-8: chains are anchored while time passes, so that a process that dies without a word leaves nothing behind
/// whose loss could not be named.
#[tokio::test(start_paused = true)]
async fn time_anchors_what_a_process_that_dies_leaves() {
    let rig = Rig::start_story().await;
    let run = rig.start_run(1).await;
    rig.until(&run, |run| run.phase.gate().is_some()).await;
    let early = audit_of(&rig.stage, rig.stage.memory.as_ref()).await;
    assert_eq!(early.unanchored.len(), 1, "nothing is anchored yet");
    // Longer than from one anchor to the next but one; the run waits for a person and grows no more.
    tokio::time::sleep(Duration::from_mins(3)).await;
    let stage = rig.die().await;
    let report = audit_of(&stage, stage.memory.as_ref()).await;
    assert_eq!((report.problems, report.unanchored), (vec![], vec![]));
}

/// OWN-5a: many events are anchored at once, however little time has passed.
#[tokio::test(start_paused = true)]
async fn many_events_are_anchored_before_their_time() {
    let tune = |options: &mut Options| {
        options.anchor_every_events = 5;
        options.anchor_every = Millis::hours(1000);
    };
    let rig = Rig::start_with(|stage| stage.ports(stage.agents()), tune).await;
    let mut commits = rig.engine.committed();
    let run = rig.start_run(1).await;
    let anchored = async {
        loop {
            let commit = commits
                .recv()
                .await
                .expect("the engine is there and nobody is slow");
            if commit.kinds.iter().any(|kind| kind == "heads_anchored") {
                return commit.stream;
            }
        }
    };
    let anchored = tokio::time::timeout(Duration::from_mins(10), anchored).await;
    assert_eq!(anchored, Ok(StreamId::Instance), "nothing was anchored");
    let report = audit_of(&rig.stage, rig.stage.memory.as_ref()).await;
    let after: Vec<u64> = report.unanchored.iter().map(|end| end.after).collect();
    assert!(
        after.iter().all(|after| *after > 0),
        "{run} is not among the anchored: {:?}",
        report.unanchored
    );
}

/// GH-6: a branch that goes with its run is a write like any other, told by the records and told anew from them; where no
/// branch goes, nothing is written.
#[tokio::test(start_paused = true)]
async fn a_branch_that_is_deleted_stands_among_the_writes() {
    let rig = Rig::start_story().await;
    let memory = rig.stage.memory.clone();
    let deletions = async |run: &RunId| -> Vec<(String, String, String)> {
        let writes = memory.writes(run).await.expect("calm weather").into_iter();
        let deletions = writes.filter(|write| write.kind == "clean_up");
        deletions
            .map(|write| (write.target, write.actor_type, write.result))
            .collect()
    };
    let run = rig.start_run(1).await;
    rig.approve(&run).await;
    // It is pushed, which asks git alone, and never proposed.
    rig.stage.forge.set_down(true);
    let is_pushed = |run: &conductor_domain::Run| {
        let workspace = run.workspace.as_ref();
        workspace.is_some_and(|workspace| workspace.pushed.is_some())
    };
    rig.until(&run, is_pushed).await;
    rig.operate(&run, Action::Cancel { comment: None })
        .await
        .expect("can be cancelled");
    rig.stage.forge.set_down(false);
    rig.until(&run, |run| run.cleaned_up).await;
    let deleted = "delete conductor/run-r1".to_owned();
    assert!(rig.stage.forge.archive().writes.contains(&deleted));
    let expected = (
        "acme/thing conductor/run-r1".to_owned(),
        "system".to_owned(),
        "done".to_owned(),
    );
    assert_eq!(deletions(&run).await, std::slice::from_ref(&expected));

    let other = rig.start_run(2).await;
    rig.until(&other, |run| run.phase.gate().is_some()).await;
    rig.operate(&other, Action::Cancel { comment: None })
        .await
        .expect("can be cancelled");
    rig.until(&other, |run| run.cleaned_up).await;
    assert!(deletions(&other).await.is_empty());

    let stage = rig.end().await;
    let report = audit_of(&stage, memory.as_ref()).await;
    assert_eq!(report.problems, []);
    rebuild::rebuild(memory.as_ref(), memory.as_ref())
        .await
        .expect("calm weather");
    assert_eq!(deletions(&run).await, [expected]);
}

/// ENV-3: a branch that may not be deleted stays, and keeps nothing else of its run.
#[tokio::test(start_paused = true)]
async fn a_branch_that_may_not_be_deleted_stays_and_the_rest_is_given_back() {
    let rig = Rig::start_story().await;
    rig.stage.forge.archive().keeps_branches = true;
    let run = rig.start_run(1).await;
    rig.approve(&run).await;
    rig.stage.forge.set_down(true);
    let is_pushed = |run: &conductor_domain::Run| {
        let workspace = run.workspace.as_ref();
        workspace.is_some_and(|workspace| workspace.pushed.is_some())
    };
    rig.until(&run, is_pushed).await;
    rig.operate(&run, Action::Cancel { comment: None })
        .await
        .expect("can be cancelled");
    rig.stage.forge.set_down(false);
    let ended = rig.until(&run, |run| run.cleaned_up || run.needs_human()).await;
    assert!(ended.cleaned_up, "{:?}", ended.clean_up_failed);
    assert!(rig.stage.workspace.disk().repos.is_empty());
    let held = rig.stage.memory.held(Some(&run)).await.expect("calm weather");
    assert_eq!(held, []);
    let stays = "conductor/run-r1 stays at the forge";
    let records = rig.records(&run).await;
    assert!(records.iter().any(|record| record.payload.contains(stays)));
}

/// SEC-8: what no anchor covers is said, not hidden.
#[tokio::test(start_paused = true)]
async fn what_came_after_the_last_anchor_is_reported_as_unanchored() {
    let rig = Rig::start_story().await;
    let run = rig.start_run(1).await;
    rig.until(&run, |run| run.phase.gate().is_some()).await;
    let memory = rig.stage.memory.clone();
    let report = audit_of(&rig.stage, memory.as_ref()).await;
    let last = rig.records(&run).await.len() as u64;
    assert_eq!(report.unanchored, [Unanchored { run, after: 0, last }]);
    assert!(report.is_sound());
}

/// RUN-2: the same inputs make the same events and effects, byte for byte; anything else is found.
#[tokio::test(start_paused = true)]
async fn a_replay_finds_nothing_but_what_was_changed() {
    let stage = Box::pin(played()).await;
    let honest = replay::replay(stage.memory.as_ref(), stage.memory.as_ref(), &r1())
        .await
        .expect("readable");
    assert!(honest.is_equal(), "{:?}", honest.differences);
    assert!(
        honest.facts > 5 && honest.events > honest.facts && honest.effects > 5,
        "{honest:?}"
    );

    // What other rules decided is counted, not compared, and its effects are not missed.
    let older = Arc::new(TamperedLedger::new(stage.memory.clone(), |stream, records| {
        if *stream == StreamId::Run(r1()) {
            let current = format!("\"decider\":{DECIDER_VERSION}");
            for record in records {
                record.payload = record.payload.replace(&current, "\"decider\":0");
            }
        }
    }));
    let replayed = replay::replay(older.as_ref(), older.as_ref(), &r1())
        .await
        .expect("readable");
    assert!(replayed.is_equal(), "{:?}", replayed.differences);
    assert_eq!(
        (replayed.facts, replayed.effects, replayed.other_rules),
        (0, 0, honest.facts)
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
