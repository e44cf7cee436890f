//! What was decided on an old look at a run is refused where it is decided, so that nothing comes in between.

use conductor_domain::input::{Action, Input};
use conductor_domain::phase::PhaseName;
use conductor_port::inbox::{Inbox as _, Seen, Submission, SubmitError};
use conductor_testkit::rig::Rig;

/// RUN-11: an action for another phase, or for the run as it stood before its last record, changes nothing.
#[tokio::test(start_paused = true)]
async fn what_was_meant_for_another_state_is_refused() {
    let rig = Rig::start_story().await;
    let run = rig.start_run(1).await;
    rig.until(&run, |run| run.gate().is_some()).await;
    let by = rig.stage.specs[0].started_by.clone();
    let ask = async |seen: Seen| {
        let input = Input::Operate {
            by: by.clone(),
            action: Action::Pause,
        };
        let submission = Submission {
            run: run.clone(),
            input,
            dedupe: None,
            cause: String::new(),
            seen,
        };
        rig.engine.submit(submission).await
    };
    let now = PhaseName::AwaitingPlanApproval;
    let last = rig.records(&run).await.len() as u64;
    for seen in [
        Seen::Phase(PhaseName::Planning),
        Seen::Record(last - 1),
        Seen::Record(last + 1),
    ] {
        assert_eq!(ask(seen).await, Err(SubmitError::Stale { seen, now }));
    }
    assert_eq!(
        rig.records(&run).await.len() as u64,
        last,
        "a refusal leaves no trace"
    );
    assert!(ask(Seen::Record(last)).await.is_ok());
    assert!(matches!(
        ask(Seen::Record(last)).await,
        Err(SubmitError::Stale { .. })
    ));
    rig.end().await;
}
