//! What one of several processes does for all (DEP-3).
//!
//! It does not know what a duty is about.

use conductor_domain::time::Timestamp;
use conductor_port::duty::{Duty, DutyWish, Holder};
use tokio::task::JoinSet;

use crate::Subject;

fn wish(worker: &str, now: i64, until: i64) -> DutyWish {
    DutyWish {
        duty: Duty::Deadlines,
        worker: worker.to_owned(),
        now: Timestamp(now),
        until: Timestamp(until),
    }
}

async fn hold(subject: &Subject, wish: DutyWish) -> Holder {
    subject.duties.hold(&wish).await.expect("the store answers")
}

/// DEP-3.
pub(crate) async fn of_many_workers_one_has_the_duty(subject: &Subject) {
    let mut workers = JoinSet::new();
    for n in 0..16 {
        let duties = subject.duties.clone();
        workers.spawn(async move {
            let wish = wish(&format!("worker-{n}"), 10, 20);
            duties.hold(&wish).await.expect("the store answers")
        });
    }
    let holders = workers.join_all().await;
    assert_eq!(holders.iter().filter(|holder| **holder == Holder::Us).count(), 1);
}

/// DEP-3.
pub(crate) async fn a_duty_is_taken_over_after_its_time_and_not_before(subject: &Subject) {
    assert_eq!(hold(subject, wish("a", 10, 20)).await, Holder::Us);
    assert_eq!(hold(subject, wish("b", 20, 30)).await, Holder::Another);
    assert_eq!(hold(subject, wish("a", 20, 40)).await, Holder::Us);
    assert_eq!(hold(subject, wish("b", 40, 50)).await, Holder::Another);
    assert_eq!(hold(subject, wish("b", 41, 60)).await, Holder::Us);
    assert_eq!(hold(subject, wish("a", 42, 60)).await, Holder::Another);
}

pub(crate) async fn a_duty_that_is_laid_down_is_free_at_once(subject: &Subject) {
    assert_eq!(hold(subject, wish("a", 10, 1000)).await, Holder::Us);
    for worker in ["b", "a", "a"] {
        let laid = subject.duties.lay_down(Duty::Deadlines, worker).await;
        laid.expect("the store answers");
        let expected = if worker == "b" {
            Holder::Another
        } else {
            Holder::Us
        };
        assert_eq!(hold(subject, wish("c", 11, 12)).await, expected);
    }
}

pub(crate) async fn duties_are_apart(subject: &Subject) {
    assert_eq!(hold(subject, wish("a", 10, 1000)).await, Holder::Us);
    let anchors = DutyWish {
        duty: Duty::Anchors,
        ..wish("b", 10, 1000)
    };
    assert_eq!(hold(subject, anchors).await, Holder::Us);
}
