//! Who works here from afar, and what a token is worth.

use conductor_domain::digest::Digest;
use conductor_domain::id::{ProjectId, TokenId};
use conductor_domain::instance::{Instance, InstanceEvent, InstanceInput, decide_instance, evolve_instance};
use conductor_domain::staff::{Holder, Rank, StaffChange, Token};
use conductor_domain::time::Timestamp;

use crate::world::operator;

const NOW: Timestamp = Timestamp(1_000);

fn token_id(name: &str) -> TokenId {
    TokenId::parse(name).expect("a name")
}

fn add(name: &str, rank: Rank) -> StaffChange {
    StaffChange::Add {
        operator: operator(name),
        rank,
    }
}

fn issue(id: &str, whose: &str, rank: Rank) -> StaffChange {
    StaffChange::Issue {
        id: token_id(id),
        token: Token {
            operator: operator(whose),
            rank,
            hash: Digest::of(id.as_bytes()),
            expires_at: Timestamp(2_000),
            project: None,
        },
    }
}

/// SEC-7: a token may be for one project alone, which must be there.
#[test]
fn a_token_for_a_project_says_so() {
    let mut instance = Instance::default();
    let project = ProjectId::parse("core").expect("a name");
    assert_eq!(change(&mut instance, add("bob", Rank::Operator)), Ok(()));
    let mut narrow = issue("ci", "bob", Rank::Operator);
    let StaffChange::Issue { token, .. } = &mut narrow else {
        unreachable!("made so above")
    };
    token.project = Some(project.clone());
    assert_eq!(change(&mut instance, narrow.clone()), Err("CDR0202"));
    let added = InstanceInput::AddProject {
        by: operator("root"),
        project: project.clone(),
    };
    let events = decide_instance(&instance, &added).expect("a new project");
    instance = events.iter().fold(instance, evolve_instance);
    assert_eq!(change(&mut instance, narrow), Ok(()));
    assert_eq!(change(&mut instance, issue("all", "bob", Rank::Operator)), Ok(()));
    let bearer = |id: &str| {
        let bearer = instance.staff.bearer(&Digest::of(id.as_bytes()), NOW);
        bearer.expect("it counts").project.cloned()
    };
    assert_eq!((bearer("ci"), bearer("all")), (Some(project), None));
}

/// Makes a change; `Err` is the code of its refusal.
fn change(instance: &mut Instance, change: StaffChange) -> Result<(), &'static str> {
    let input = InstanceInput::ChangeStaff {
        by: operator("root"),
        change,
    };
    let events = decide_instance(instance, &input).map_err(|refusal| refusal.code())?;
    *instance = events.iter().fold(instance.clone(), evolve_instance);
    Ok(())
}

/// SEC-7: nobody is there twice, nobody who is not there changes, and no token outlives its operator, its time or its end.
#[test]
fn a_token_is_worth_what_its_operator_may_and_no_longer() {
    let mut instance = Instance::default();
    let worth = |instance: &Instance, id: &str, now: Timestamp| {
        let bearer = instance.staff.bearer(&Digest::of(id.as_bytes()), now);
        bearer.map(|bearer| (bearer.operator.to_string(), bearer.rank))
    };
    assert_eq!(
        change(&mut instance, issue("ci", "bob", Rank::Viewer)),
        Err("CDR0221")
    );
    assert_eq!(change(&mut instance, add("bob", Rank::Operator)), Ok(()));
    assert_eq!(change(&mut instance, add("bob", Rank::Admin)), Err("CDR0220"));
    assert_eq!(change(&mut instance, issue("ci", "bob", Rank::Admin)), Ok(()));
    assert_eq!(
        change(&mut instance, issue("ci", "bob", Rank::Admin)),
        Err("CDR0222")
    );
    let bob = |rank| Some(("bob".to_owned(), rank));
    assert_eq!(
        worth(&instance, "ci", NOW),
        bob(Rank::Operator),
        "never more than bob"
    );
    assert_eq!(worth(&instance, "ci", Timestamp(2_000)), None, "its time is over");
    assert_eq!(worth(&instance, "cd", NOW), None);
    let demoted = StaffChange::Rank {
        operator: operator("bob"),
        rank: Rank::Viewer,
    };
    assert_eq!(change(&mut instance, demoted), Ok(()));
    assert_eq!(worth(&instance, "ci", NOW), bob(Rank::Viewer));
    let gone = StaffChange::Remove {
        operator: operator("bob"),
    };
    assert_eq!(change(&mut instance, gone.clone()), Ok(()));
    assert_eq!(worth(&instance, "ci", NOW), None);
    assert_eq!(change(&mut instance, gone), Err("CDR0221"));
    assert_eq!(change(&mut instance, add("bob", Rank::Admin)), Ok(()));
    assert_eq!(
        worth(&instance, "ci", NOW),
        None,
        "who comes back has no old token"
    );
    let revoke = StaffChange::Revoke { id: token_id("ci") };
    assert_eq!(change(&mut instance, revoke.clone()), Err("CDR0223"));
    assert_eq!(change(&mut instance, issue("ci", "bob", Rank::Viewer)), Ok(()));
    assert_eq!(
        worth(&instance, "ci", NOW),
        bob(Rank::Viewer),
        "never more than its own"
    );
    assert_eq!(change(&mut instance, revoke), Ok(()));
    assert_eq!(worth(&instance, "ci", NOW), None);
}

/// RUN-3: a change that changes nothing is not kept, and every refusal says what to do.
#[test]
fn the_same_rank_again_is_nothing() {
    let mut instance = Instance::default();
    assert_eq!(change(&mut instance, add("bob", Rank::Viewer)), Ok(()));
    let again = InstanceInput::ChangeStaff {
        by: operator("root"),
        change: StaffChange::Rank {
            operator: operator("bob"),
            rank: Rank::Viewer,
        },
    };
    assert_eq!(decide_instance(&instance, &again), Ok(vec![]));
    let unknown = InstanceInput::ChangeStaff {
        by: operator("root"),
        change: StaffChange::Password {
            operator: operator("eve"),
        },
    };
    let refusal = decide_instance(&instance, &unknown).expect_err("nobody has that name");
    assert_eq!(refusal.to_string(), "there is no operator `eve`");
    assert!(refusal.hint().contains("conductor operator list"));
    assert_eq!(Rank::ALL.map(Rank::as_str), ["viewer", "operator", "admin"]);
    for name in ["", "CI", "a b", "../x", &"a".repeat(65)] {
        assert!(TokenId::parse(name).is_err(), "{name}");
    }
}

/// SEC-7: every step over the threshold is kept and changes nothing; the owner is always known, others while they work here.
#[test]
fn who_comes_and_goes_is_kept_and_changes_nothing() {
    let mut instance = Instance::default();
    assert_eq!(change(&mut instance, add("bob", Rank::Viewer)), Ok(()));
    assert_eq!(change(&mut instance, issue("ci", "bob", Rank::Viewer)), Ok(()));
    let steps: [fn(Holder) -> StaffChange; 4] = [
        |holder| StaffChange::Link { holder },
        |holder| StaffChange::Enter { holder },
        |holder| StaffChange::Leave { holder },
        |holder| StaffChange::SignOut { holder },
    ];
    for step in steps {
        for holder in [Holder::Owner(operator("ann")), Holder::Operator(operator("bob"))] {
            assert!(["ann", "bob"].contains(&holder.name().as_str()));
            let by = holder.name().clone();
            let change = step(holder);
            let input = InstanceInput::ChangeStaff {
                by: by.clone(),
                change: change.clone(),
            };
            let kept = InstanceEvent::StaffChanged { by, change };
            assert_eq!(decide_instance(&instance, &input), Ok(vec![kept.clone()]));
            assert_eq!(evolve_instance(instance.clone(), &kept), instance);
        }
        let stranger = step(Holder::Operator(operator("eve")));
        assert_eq!(change(&mut instance, stranger), Err("CDR0221"));
    }
}

/// SEC-7: the owner is one person under every name, and no operator, whatever they are called.
#[test]
fn an_owner_is_one_person_and_no_operator() {
    let owner = |name: &str| Holder::Owner(operator(name));
    let staff = |name: &str| Holder::Operator(operator(name));
    assert!(owner("ann").is_same(&owner("root")));
    assert!(staff("ann").is_same(&staff("ann")));
    assert!(!staff("ann").is_same(&staff("bob")));
    assert!(!owner("ann").is_same(&staff("ann")));
    assert!(!staff("ann").is_same(&owner("ann")));
}
