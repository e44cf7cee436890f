//! What is final stays so beside what is not.

use conductor_domain::id::OperatorName;
use conductor_domain::relief::{Relief, ReliefScope};
use conductor_domain::role::Role;
use conductor_domain::time::Timestamp;
use conductor_policy::authority::{Authority, Layer, Request, Ruling};

/// SEC-1: of two policies that say no, the final one is the reason, so that lifting the other lifts nothing.
#[test]
fn of_two_that_say_no_the_final_one_is_the_reason() {
    let text = r#"
        @id("a-soft") @reason("soft")
        forbid (principal is Agent, action == Action::"bash", resource is Worktree);
        @id("z-hard") @reason("hard") @final("true")
        forbid (principal is Agent, action == Action::"bash", resource is Worktree);
    "#;
    let authority = Authority::new(&[(Layer::Project, text)]).expect("valid");
    let bash = Request::of_tool(Role::Implementer, "bash", "").expect("a tool");
    let (verdict, consulted) = authority.explain(&bash);
    assert_eq!(
        (verdict.ruling, verdict.policy.as_str()),
        (Ruling::Deny, "z-hard")
    );
    let consulted: Vec<&str> = consulted.iter().map(|rule| rule.id.as_str()).collect();
    assert_eq!(consulted, ["z-hard", "a-soft"]);
    let scope = |policy: &str| ReliefScope {
        policy: policy.into(),
        role: Role::Implementer,
        tool: "bash".into(),
        target: "worktree".into(),
    };
    for policy in ["a-soft", "z-hard"] {
        assert!(authority.may_lift(&scope(policy)).is_err(), "{policy}");
        let relief = Relief {
            number: 1,
            scope: scope(policy),
            by: OperatorName::parse("ada").expect("a name"),
            justification: "because I want to".into(),
            until: Timestamp(100),
            revoked_by: None,
        };
        let lifted = authority.judge_with(&bash, &[relief], Timestamp(1));
        assert_eq!(lifted.ruling, Ruling::Deny, "{policy}");
    }
}
