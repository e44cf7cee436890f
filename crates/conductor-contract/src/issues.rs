//! One issue has one open run (RUN-5), whoever is faster.
//!
//! It does not know what a run does with its issue.

use conductor_port::ledger::{AppendError, Batch, IssueClaim, StreamId};
use tokio::task::JoinSet;

use crate::Subject;
use crate::given::{REPO, batch, kept, run_id};

fn starting(run: &str, number: u64) -> Batch {
    Batch {
        issue: IssueClaim::Taken { repo: REPO, number },
        ..batch(run, 0, 1)
    }
}

/// RUN-5.
pub(crate) async fn of_many_runs_one_gets_the_issue(subject: &Subject) {
    let mut starts = JoinSet::new();
    for n in 0..8 {
        let ledger = subject.ledger.clone();
        starts.spawn(async move { ledger.append(starting(&format!("r-{n}"), 1)).await });
    }
    let outcomes = starts.join_all().await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    let heads = subject.views.heads().await.expect("the views answer");
    let [winner] = heads.as_slice() else {
        panic!("a refused start left something behind: {heads:?}")
    };
    let StreamId::Run(run) = winner.stream.clone() else {
        panic!("a run was started, not {winner:?}")
    };
    for refused in outcomes.into_iter().filter_map(Result::err) {
        assert_eq!(refused, AppendError::IssueTaken { run: run.clone() });
    }
}

/// RUN-5.
pub(crate) async fn an_issue_that_was_given_back_is_taken_by_the_next(subject: &Subject) {
    kept(subject, starting("r-1", 1)).await;
    kept(subject, starting("r-2", 2)).await;
    let taken = AppendError::IssueTaken { run: run_id("r-1") };
    assert_eq!(
        subject.ledger.append(starting("r-3", 1)).await,
        Err(taken.clone())
    );
    kept(subject, batch("r-1", 1, 1)).await;
    assert_eq!(subject.ledger.append(starting("r-3", 1)).await, Err(taken));
    for seq in [2, 3] {
        let over = Batch {
            issue: IssueClaim::GivenBack,
            ..batch("r-1", seq, 1)
        };
        kept(subject, over).await;
    }
    kept(subject, starting("r-3", 1)).await;
    let again = AppendError::IssueTaken { run: run_id("r-3") };
    assert_eq!(subject.ledger.append(starting("r-4", 1)).await, Err(again));
}
