//! What opens the door to people (SEC-7, S-55).
//!
//! It does not know what a key opens.

use conductor_domain::digest::Digest;
use conductor_domain::id::OperatorName;
use conductor_domain::time::Timestamp;
use conductor_port::key::{Holder, Key, KeyKind};
use tokio::task::JoinSet;

use crate::Subject;

fn name(name: &str) -> OperatorName {
    OperatorName::parse(name).expect("a name")
}

fn key(kind: KeyKind, secret: &str, ends_at: i64) -> Key {
    Key {
        kind,
        hash: Digest::of(secret.as_bytes()),
        holder: Holder::Operator(name("ann")),
        since: Timestamp(7),
        ends_at: Timestamp(ends_at),
    }
}

async fn keep(subject: &Subject, key: &Key, now: i64) {
    let kept = subject.keys.keep(key, Timestamp(now)).await;
    kept.expect("the store answers");
}

async fn lengthen(subject: &Subject, key: &Key, ends_at: i64) -> bool {
    let ends_at = Timestamp(ends_at);
    let lengthened = subject.keys.lengthen(key.kind, &key.hash, ends_at).await;
    lengthened.expect("the store answers")
}

async fn find(subject: &Subject, key: &Key, now: i64) -> Option<Key> {
    let found = subject.keys.find(key.kind, &key.hash, Timestamp(now)).await;
    found.expect("the store answers")
}

async fn take(subject: &Subject, key: &Key, now: i64) -> Option<Key> {
    let taken = subject.keys.take(key.kind, &key.hash, Timestamp(now)).await;
    taken.expect("the store answers")
}

/// SEC-7.
pub(crate) async fn a_key_is_found_until_its_time_is_over(subject: &Subject) {
    let session = key(KeyKind::Session, "a", 20);
    assert_eq!(find(subject, &session, 10).await, None);
    keep(subject, &session, 10).await;
    assert_eq!(find(subject, &session, 19).await, Some(session.clone()));
    assert_eq!(find(subject, &session, 20).await, None);
    let longer = key(KeyKind::Session, "a", 40);
    let renewed = Key {
        since: Timestamp(11),
        ..longer.clone()
    };
    keep(subject, &renewed, 11).await;
    keep(subject, &session, 12).await;
    assert_eq!(
        find(subject, &session, 39).await,
        Some(longer.clone()),
        "the later time, and since when it was kept first"
    );
    keep(subject, &key(KeyKind::Session, "b", 90), 40).await;
    assert_eq!(
        find(subject, &longer, 39).await,
        None,
        "it was forgotten when it was over"
    );
}

/// S-55.
pub(crate) async fn of_many_who_take_a_key_one_has_it(subject: &Subject) {
    let link = key(KeyKind::Link, "a", 20);
    keep(subject, &link, 10).await;
    let mut takers = JoinSet::new();
    for _ in 0..16 {
        let (keys, link) = (subject.keys.clone(), link.clone());
        takers.spawn(async move {
            let taken = keys.take(link.kind, &link.hash, Timestamp(11)).await;
            taken.expect("the store answers")
        });
    }
    let taken: Vec<Key> = takers.join_all().await.into_iter().flatten().collect();
    assert_eq!(taken.as_slice(), std::slice::from_ref(&link));
    keep(subject, &link, 12).await;
    assert_eq!(take(subject, &link, 20).await, None, "its time was over");
    assert_eq!(take(subject, &link, 12).await, None, "and it is gone");
}

/// SEC-7: who found a session before it was ended cannot bring it back.
pub(crate) async fn a_key_that_was_taken_away_is_not_lengthened(subject: &Subject) {
    let session = key(KeyKind::Session, "a", 20);
    assert!(!lengthen(subject, &session, 40).await, "it was never there");
    assert_eq!(find(subject, &session, 10).await, None);
    keep(subject, &session, 10).await;
    assert!(lengthen(subject, &session, 40).await);
    assert!(lengthen(subject, &session, 40).await, "it lasts so long already");
    assert!(lengthen(subject, &session, 30).await, "and longer");
    let longer = key(KeyKind::Session, "a", 40);
    assert_eq!(find(subject, &session, 39).await, Some(longer), "the later time");
    let as_link = key(KeyKind::Link, "a", 20);
    assert!(!lengthen(subject, &as_link, 60).await, "it is of another kind");
    assert_eq!(find(subject, &session, 40).await, None);
    take(subject, &session, 11).await.expect("it is there");
    assert!(!lengthen(subject, &session, 60).await, "it was ended");
    assert_eq!(find(subject, &session, 11).await, None);
    keep(subject, &session, 10).await;
    let taken = subject.keys.take_all(&session.holder).await;
    taken.expect("the store answers");
    assert!(!lengthen(subject, &session, 60).await, "all of theirs were");
    assert_eq!(find(subject, &session, 11).await, None);
}

/// S-55.
pub(crate) async fn a_key_is_good_for_its_kind_alone(subject: &Subject) {
    let link = key(KeyKind::Link, "a", 20);
    keep(subject, &link, 10).await;
    let as_session = Key {
        kind: KeyKind::Session,
        ..link.clone()
    };
    assert_eq!(find(subject, &as_session, 11).await, None);
    assert_eq!(take(subject, &as_session, 11).await, None);
    assert_eq!(take(subject, &link, 11).await, Some(link));
}

/// SEC-7.
pub(crate) async fn an_operators_keys_go_together_and_nobody_elses(subject: &Subject) {
    let of = |holder: Holder, secret: &str| Key {
        holder,
        ..key(KeyKind::Session, secret, 20)
    };
    let theirs = [
        of(Holder::Operator(name("ann")), "a"),
        of(Holder::Operator(name("ann")), "b"),
    ];
    let others = [
        of(Holder::Operator(name("bob")), "c"),
        of(Holder::Owner(name("ann")), "d"),
        of(Holder::Owner(name("root")), "e"),
    ];
    for key in theirs.iter().chain(&others) {
        keep(subject, key, 10).await;
    }
    for _ in 0..2 {
        let taken = subject.keys.take_all(&theirs[0].holder).await;
        taken.expect("the store answers");
    }
    for key in &theirs {
        assert_eq!(find(subject, key, 11).await, None);
    }
    for key in &others {
        assert_eq!(find(subject, key, 11).await.as_ref(), Some(key));
    }
    let [colleague, owner, same] = &others;
    let taken = subject.keys.take_all(&owner.holder).await;
    taken.expect("the store answers");
    for key in [owner, same] {
        assert_eq!(
            find(subject, key, 11).await,
            None,
            "an owner's go, under every name"
        );
    }
    assert_eq!(find(subject, colleague, 11).await.as_ref(), Some(colleague));
}

/// SEC-7.
pub(crate) async fn the_last_password_counts(subject: &Subject) {
    let set = async |who: &str, hash: Option<&str>| {
        let set = subject.keys.set_password(&name(who), hash).await;
        set.expect("the store answers");
    };
    let password = async |who: &str| {
        let found = subject.keys.password(&name(who)).await;
        found.expect("the store answers")
    };
    assert_eq!(password("ann").await, None);
    set("ann", Some("one")).await;
    set("bob", Some("other")).await;
    set("ann", Some("two")).await;
    assert_eq!(password("ann").await.as_deref(), Some("two"));
    set("ann", None).await;
    set("ann", None).await;
    assert_eq!(password("ann").await, None);
    assert_eq!(password("bob").await.as_deref(), Some("other"));
}
