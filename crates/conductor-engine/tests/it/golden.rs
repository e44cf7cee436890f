//! Records are for ever: what was written once is read back and written the same.
//!
//! `testdata/record/v1` holds the payload of every kind of record, with variants after a dot. A file may be added;
//! one that has to be changed means a new form beside the old one.

use std::collections::BTreeSet;
use std::path::Path;

use conductor_domain::Event;
use conductor_domain::input::Input;
use conductor_domain::instance::{InstanceEvent, InstanceInput};
use conductor_domain::time::Timestamp;
use conductor_engine::chain;
use conductor_engine::record::{self, Arrives, Decided, Fact, SCHEMA_VERSION};
use conductor_port::ledger::{Record, StreamId};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Lists kinds by matching on every variant, so that a new one cannot be left without a file.
macro_rules! kinds {
    ($type:ident { $($variant:ident => $name:literal),* $(,)? }) => {{
        #[allow(dead_code, reason = "only the compiler reads it")]
        fn every_variant(value: &$type) -> &'static str {
            match value { $($type::$variant { .. } => $name,)* }
        }
        BTreeSet::from([$($name),*])
    }};
}

fn inputs() -> BTreeSet<&'static str> {
    kinds!(Input {
        StartRun => "start_run", Operate => "operate", KillSwitchTurned => "kill_switch_turned",
        Performed => "performed", Faulted => "faulted", RequestComment => "request_comment", RequestFields => "request_fields",
        EgressDenied => "egress_denied",
        ForgeNoticed => "forge_noticed", DeadlinePassed => "deadline_passed",
    })
}

fn events() -> BTreeSet<&'static str> {
    kinds!(Event {
        RunStarted => "run_started", IssueSnapshotted => "issue_snapshotted",
        WorkspacePrepared => "workspace_prepared", PlanningBegan => "planning_began",
        PlanDrafted => "plan_drafted", PlanReviewed => "plan_reviewed", PlanSentBack => "plan_sent_back",
        PlanProposed => "plan_proposed", GateApproved => "gate_approved", GateRevised => "gate_revised",
        GateRejected => "gate_rejected", GateReopened => "gate_reopened", ExecutionBegan => "execution_began",
        ReworkBegan => "rework_began", ImplementationFinished => "implementation_finished",
        WorkCommitted => "work_committed", RebaseBegan => "rebase_began", WorkRebased => "work_rebased",
        TestingBegan => "testing_began", TestsRan => "tests_ran", RedFirstBegan => "red_first_began",
        RedFirstChecked => "red_first_checked", TestsInterpreted => "tests_interpreted",
        ImplementationReviewBegan => "implementation_review_began",
        ImplementationReviewed => "implementation_reviewed", AttemptFailed => "attempt_failed",
        ProposalBegan => "proposal_began", DiffInspected => "diff_inspected",
        DiffGateOpened => "diff_gate_opened", DiffCleared => "diff_cleared", CallGateOpened => "call_gate_opened", Pushed => "pushed",
        PullRequestOpened => "pull_request_opened", MergeAwaited => "merge_awaited",
        MergeBegan => "merge_began", MergeEnded => "merge_ended",
        ChangesRequested => "changes_requested", ReviewSetAside => "review_set_aside", ChecksFailed => "checks_failed", BaseMoved => "base_moved",
        BaseAnnounced => "base_announced",
        PullRequestMerged => "pull_request_merged", PullRequestClosed => "pull_request_closed",
        RunCompleted => "run_completed", RunCancelled => "run_cancelled", RunFailed => "run_failed",
        CleanedUp => "cleaned_up", CleanUpFailed => "clean_up_failed", HoldPlaced => "hold_placed", HoldReleased => "hold_released",
        QuestionAnswered => "question_answered", PhaseRetried => "phase_retried",
        Reprioritized => "reprioritized", ReliefGranted => "relief_granted", ReliefRevoked => "relief_revoked",
        InvocationEnded => "invocation_ended", AgentFailed => "agent_failed",
        Interrupted => "interrupted", EffectRequested => "effect_requested", EffectSettled => "effect_settled",
        EffectRetryScheduled => "effect_retry_scheduled", EffectStopRequested => "effect_stop_requested",
        EnvironmentRecreated => "environment_recreated", MessageSent => "message_sent",
        MessageDeferred => "message_deferred", MessagesFlushed => "messages_flushed",
        CommentDenied => "comment_denied", CheckNoted => "check_noted", FieldsWanted => "fields_wanted", EgressDenied => "egress_denied", Reminded => "reminded", PullRequestSeen => "pull_request_seen",
        Noted => "noted",
    })
}

fn instance_inputs() -> BTreeSet<&'static str> {
    kinds!(InstanceInput {
        AddProject => "add_project", RegisterRepo => "register_repo", TurnKillSwitch => "turn_kill_switch",
        GrantEgress => "grant_egress", RevokeEgress => "revoke_egress", SetPolicy => "set_policy",
        ChangeStaff => "change_staff",
        ProviderLimited => "provider_limited", HeadsCollected => "heads_collected",
    })
}

fn instance_events() -> BTreeSet<&'static str> {
    kinds!(InstanceEvent {
        ProjectAdded => "project_added", RepoRegistered => "repo_registered",
        EgressGranted => "egress_granted", EgressRevoked => "egress_revoked", PolicySet => "policy_set",
        StaffChanged => "staff_changed",
        KillSwitchTurned => "kill_switch_turned", ProviderSuspended => "provider_suspended",
        HeadsAnchored => "heads_anchored",
    })
}

/// Reads every file of one class, checks each, and that every kind has one.
fn check<T>(class: &str, kinds: &BTreeSet<&'static str>, name: fn(&T) -> &'static str)
where
    T: Serialize + DeserializeOwned + PartialEq,
{
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/record/v1");
    let mut seen = BTreeSet::new();
    for entry in std::fs::read_dir(dir).expect("testdata is there") {
        let file = entry
            .expect("a readable directory")
            .file_name()
            .into_string()
            .expect("a plain name");
        let Some(kind) = file.strip_prefix(class).and_then(|rest| rest.strip_prefix('-')) else {
            continue;
        };
        let kind = kind.split('.').next().unwrap_or_default();
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("testdata/record/v1")
            .join(&file);
        let golden = std::fs::read_to_string(path).expect("a readable file");
        let payload = golden.strip_suffix('\n').expect("one line");
        let value: T = record::decode(&wrap(payload)).unwrap_or_else(|fault| panic!("{file}: {fault}"));
        assert_eq!(name(&value), kind, "{file}");
        assert_eq!(record::encode(kind, &value).as_deref(), Ok(payload), "{file}");
        seen.extend(kinds.get(kind).copied());
    }
    let missing: Vec<_> = kinds.difference(&seen).collect();
    assert!(missing.is_empty(), "no file for {class} of {missing:?}");
}

fn wrap(payload: &str) -> Record {
    Record {
        stream: "run/r1".into(),
        seq: 1,
        event_id: "run/r1#1".into(),
        schema_version: SCHEMA_VERSION,
        class: record::FACT.into(),
        kind: "golden".into(),
        payload: payload.into(),
        payload_hash: record::payload_hash(payload),
        actor_type: "operator".into(),
        actor: "ada".into(),
        cause: "a person".into(),
        at: Timestamp(1_767_225_600_000_000),
        hash: String::new(),
    }
}

/// RUN-3, RUN-2: formats.
#[test]
fn every_fact_of_a_run_is_read_and_written_as_it_ever_was() {
    check::<Fact<Input>>("run-fact", &inputs(), |fact| fact.input.name());
}

/// RUN-3, RUN-2: formats.
#[test]
fn every_decision_of_a_run_is_read_and_written_as_it_ever_was() {
    check::<Event>("run-decision", &events(), Decided::name);
}

/// OWN-5a: formats.
#[test]
fn every_fact_of_the_instance_is_read_and_written_as_it_ever_was() {
    check::<Fact<InstanceInput>>("instance-fact", &instance_inputs(), |fact| fact.input.name());
}

/// OWN-5a: formats.
#[test]
fn every_decision_of_the_instance_is_read_and_written_as_it_ever_was() {
    check::<InstanceEvent>("instance-decision", &instance_events(), Decided::name);
}

/// SEC-8: chains that were written once must verify for ever.
#[test]
fn the_chain_is_computed_as_it_ever_was() {
    let run = conductor_domain::id::RunId::parse("r1").expect("a slug");
    let genesis = chain::genesis(&StreamId::Run(run));
    assert_eq!(
        (genesis.as_str(), chain::link(&genesis, &wrap("{}")).as_str()),
        (
            "sha256:c2dfb7dbdfb090bff423487463921ad112b03e8dbd787d520bb040b2a8d25287",
            "sha256:1d52cee89859a0973056e76f3dc78ebb349c218c479916e91a7ca6ae3d13f0da"
        )
    );
}
