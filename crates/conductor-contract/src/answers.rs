//! Answers to writes that named themselves (UI-4).
//!
//! It does not know what is written.

use conductor_domain::digest::Digest;
use conductor_domain::time::Timestamp;
use conductor_port::answer::{Begun, KeptAnswer, NamedWrite};
use tokio::task::JoinSet;

use crate::Subject;

fn write(name: &str, now: i64) -> NamedWrite {
    NamedWrite {
        name: Digest::of(name.as_bytes()),
        request: Digest::of(b"what is asked"),
        now: Timestamp(now),
        lost_before: Timestamp(now - 10),
        ends_at: Timestamp(now + 100),
        most: 100,
    }
}

fn answer(body: &[u8]) -> KeptAnswer {
    KeptAnswer {
        status: 201,
        kind: "application/json".to_owned(),
        body: body.to_vec(),
    }
}

async fn begin(subject: &Subject, write: &NamedWrite) -> Begun {
    subject.answers.begin(write).await.expect("the store answers")
}

async fn keep(subject: &Subject, write: &NamedWrite, answer: &KeptAnswer) {
    let kept = subject.answers.keep(&write.name, answer).await;
    kept.expect("the store answers");
}

async fn forget(subject: &Subject, write: &NamedWrite) {
    let forgotten = subject.answers.forget(&write.name).await;
    forgotten.expect("the store answers");
}

/// UI-4.
pub(crate) async fn a_repeated_write_gets_its_first_answer(subject: &Subject) {
    let first = write("a", 10);
    assert_eq!(begin(subject, &first).await, Begun::New);
    assert_eq!(begin(subject, &write("a", 11)).await, Begun::UnderWay);
    let said = answer(b"{\"a\":\"\\u0000 \xff\0\"}");
    keep(subject, &first, &said).await;
    assert_eq!(
        begin(subject, &write("a", 12)).await,
        Begun::Answered(said.clone())
    );
    assert_eq!(begin(subject, &write("a", 109)).await, Begun::Answered(said));
    assert_eq!(begin(subject, &write("b", 12)).await, Begun::New, "another name");
}

/// UI-4.
pub(crate) async fn a_name_is_for_one_request(subject: &Subject) {
    let first = write("a", 10);
    begin(subject, &first).await;
    let other = NamedWrite {
        request: Digest::of(b"something else"),
        ..write("a", 11)
    };
    assert_eq!(
        begin(subject, &other).await,
        Begun::Taken,
        "while it is under way"
    );
    keep(subject, &first, &answer(b"{}")).await;
    assert_eq!(begin(subject, &other).await, Begun::Taken, "and after it");
}

/// UI-4.
pub(crate) async fn of_many_who_send_a_write_one_does_it(subject: &Subject) {
    for name in ["new", "lost"] {
        let now = if name == "lost" {
            begin(subject, &write(name, 10)).await;
            30
        } else {
            10
        };
        let mut senders = JoinSet::new();
        for _ in 0..16 {
            let (answers, write) = (subject.answers.clone(), write(name, now));
            senders.spawn(async move { answers.begin(&write).await.expect("the store answers") });
        }
        let begun = senders.join_all().await;
        let new = begun.iter().filter(|begun| **begun == Begun::New).count();
        assert_eq!(new, 1, "{name}: {begun:?}");
    }
}

/// UI-4: whoever began and is gone keeps nobody from doing it, after a while.
pub(crate) async fn a_write_that_nobody_answers_can_be_begun_again(subject: &Subject) {
    assert_eq!(begin(subject, &write("a", 10)).await, Begun::New);
    assert_eq!(
        begin(subject, &write("a", 20)).await,
        Begun::UnderWay,
        "just so long"
    );
    assert_eq!(begin(subject, &write("a", 21)).await, Begun::New);
    assert_eq!(begin(subject, &write("a", 22)).await, Begun::UnderWay, "anew");
    forget(subject, &write("a", 22)).await;
    forget(subject, &write("a", 22)).await;
    assert_eq!(begin(subject, &write("a", 23)).await, Begun::New, "at once");
    let said = answer(b"");
    keep(subject, &write("a", 23), &said).await;
    forget(subject, &write("a", 24)).await;
    assert_eq!(
        begin(subject, &write("a", 99)).await,
        Begun::Answered(said),
        "an answer stays"
    );
}

/// UI-4.
pub(crate) async fn an_answer_is_kept_for_its_time_and_while_there_is_room(subject: &Subject) {
    let first = write("a", 10);
    begin(subject, &first).await;
    keep(subject, &first, &answer(b"1")).await;
    assert_eq!(
        begin(subject, &write("a", 110)).await,
        Begun::New,
        "its time was over"
    );
    forget(subject, &first).await;
    keep(subject, &first, &answer(b"2")).await;
    for (place, name) in ["b", "c", "d"].into_iter().enumerate() {
        let now = 200 + i64::try_from(place).expect("small");
        let write = NamedWrite {
            most: 2,
            ..write(name, now)
        };
        assert_eq!(begin(subject, &write).await, Begun::New, "{name}");
        keep(subject, &write, &answer(name.as_bytes())).await;
    }
    assert_eq!(
        begin(subject, &write("b", 210)).await,
        Begun::New,
        "the oldest made room"
    );
    assert_eq!(
        begin(subject, &write("d", 210)).await,
        Begun::Answered(answer(b"d"))
    );
}
