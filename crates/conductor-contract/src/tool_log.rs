//! The log of tool calls (TOOL-4).
//!
//! It does not know what a tool does.

use conductor_domain::effect::EffectKind;
use conductor_domain::id::EffectId;
use conductor_domain::time::Timestamp;
use conductor_port::blobs::{CallPage, ToolCall};
use conductor_port::ledger::{Batch, Settlement};

use crate::Subject;
use crate::given::{asked, batch, effect_id, kept, leased, run_id, wish};

fn call(invocation: &EffectId, n: u64) -> ToolCall {
    ToolCall {
        invocation: invocation.clone(),
        run: run_id("r-1"),
        n,
        tool: "bash".to_owned(),
        target: "cargo test".to_owned(),
        payload_hash: "sha256:0".to_owned(),
        decision: "allow".to_owned(),
        reason: "default".to_owned(),
        result: "ok".to_owned(),
        at: Timestamp(5),
        hash: format!("hash-{n}"),
    }
}

async fn append(subject: &Subject, calls: &[ToolCall]) {
    let kept = subject.tool_log.append(None, calls).await;
    kept.expect("the calls are kept");
}

/// TOOL-4.
pub(crate) async fn calls_come_back_in_order(subject: &Subject) {
    let invocation = effect_id("r-1", 1);
    let calls: Vec<ToolCall> = (1..=12).map(|n| call(&invocation, n)).collect();
    append(subject, &[]).await;
    append(subject, &calls[..5]).await;
    append(subject, &calls[5..]).await;
    assert_eq!(subject.tool_log.read(&invocation).await, Ok(calls));
}

pub(crate) async fn a_repeated_call_is_left_as_it_is(subject: &Subject) {
    let invocation = effect_id("r-1", 1);
    append(subject, &[call(&invocation, 1)]).await;
    let forged = ToolCall {
        decision: "deny".to_owned(),
        ..call(&invocation, 1)
    };
    append(subject, &[forged, call(&invocation, 2)]).await;
    assert_eq!(
        subject.tool_log.read(&invocation).await,
        Ok(vec![call(&invocation, 1), call(&invocation, 2)])
    );
}

/// TOOL-4: what a process says too late stands in no log: whoever took its invocation over has told where the log ends.
pub(crate) async fn who_lost_its_lease_writes_no_more(subject: &Subject) {
    let invocation = asked(subject, "r-1", EffectKind::Invoke).await;
    let write = async |lease: &Settlement, n: u64| {
        let calls = [call(&invocation, n)];
        subject.tool_log.append(Some(lease), &calls).await
    };
    let first = leased(subject, wish(&invocation, 10, 20)).await;
    assert_eq!(write(&first, 1).await, Ok(()));
    let second = leased(subject, wish(&invocation, 30, 40)).await;
    let late = write(&first, 2).await.expect_err("the lease is lost");
    assert!(late.what.contains("lease"), "{late}");
    assert_eq!(
        subject.tool_log.read(&invocation).await,
        Ok(vec![call(&invocation, 1)])
    );
    assert_eq!(write(&second, 2).await, Ok(()));
    kept(
        subject,
        Batch {
            settles: Some(second.clone()),
            ..batch("r-1", 1, 1)
        },
    )
    .await;
    assert!(write(&second, 3).await.is_err());
    assert_eq!(
        subject.tool_log.read(&invocation).await,
        Ok(vec![call(&invocation, 1), call(&invocation, 2)])
    );
}

pub(crate) async fn logs_of_invocations_are_apart(subject: &Subject) {
    let (here, there) = (effect_id("r-1", 1), effect_id("r-1", 11));
    append(subject, &[call(&here, 1), call(&there, 1)]).await;
    assert_eq!(subject.tool_log.read(&here).await, Ok(vec![call(&here, 1)]));
    assert_eq!(subject.tool_log.read(&effect_id("r-1", 2)).await, Ok(vec![]));
}

/// TOOL-4, UI-1: a reader of thousands of calls gets them in parts, the newest first, or only those that were stopped.
pub(crate) async fn calls_are_read_in_parts(subject: &Subject) {
    let (here, there) = (effect_id("r-1", 1), effect_id("r-1", 11));
    let calls: Vec<ToolCall> = (1..=9)
        .map(|n| ToolCall {
            decision: ["allow", "deny", "require_approval"][usize::try_from(n % 3).expect("small")]
                .to_owned(),
            ..call(&here, n)
        })
        .collect();
    append(subject, &calls).await;
    append(subject, &[call(&there, 1)]).await;
    let numbers = async |before: Option<u64>, stopped: bool, limit: u32| {
        let part = CallPage {
            before,
            stopped,
            limit,
        };
        let read = subject
            .tool_log
            .page(&here, &part)
            .await
            .expect("the calls are read");
        for call in &read {
            assert_eq!(calls.iter().find(|kept| kept.n == call.n), Some(call));
        }
        read.iter().map(|call| call.n).collect::<Vec<u64>>()
    };
    assert_eq!(numbers(None, false, 4).await, [9, 8, 7, 6]);
    assert_eq!(numbers(Some(6), false, 4).await, [5, 4, 3, 2]);
    assert_eq!(numbers(Some(2), false, 4).await, [1]);
    assert_eq!(numbers(Some(1), false, 4).await, Vec::<u64>::new());
    assert_eq!(numbers(None, true, 3).await, [8, 7, 5]);
    assert_eq!(numbers(Some(5), true, 3).await, [4, 2, 1]);
}
