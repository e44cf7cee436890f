//! An override lifts the policy that it names, and what the others say without it is the answer.

use conductor_domain::id::OperatorName;
use conductor_domain::relief::{Relief, ReliefScope};
use conductor_domain::role::Role;
use conductor_domain::time::Timestamp;
use conductor_policy::authority::{Authority, Layer, Request, Ruling, Verdict};

const NO_A: &str = r#"@id("a-x") @reason("a") forbid (principal, action == Action::"bash", resource);"#;
const NO_B: &str = r#"@id("b-y") @reason("b") forbid (principal, action == Action::"bash", resource);"#;
const ASK_A: &str = r#"@id("ask-a") @reason("ask a") @decision("require_approval")
    permit (principal is Agent, action == Action::"bash", resource);"#;
const ASK_B: &str = r#"@id("ask-b") @reason("ask b") @decision("require_approval")
    permit (principal is Agent, action == Action::"bash", resource);"#;
const ASK_FINALLY: &str = r#"@id("z-ask") @reason("always asked") @final("true") @decision("require_approval")
    permit (principal is Agent, action == Action::"bash", resource);"#;

fn scope(policy: &str, role: Role) -> ReliefScope {
    ReliefScope {
        policy: policy.into(),
        role,
        tool: "bash".into(),
        target: "command:make".into(),
    }
}

/// Asks for `make` under these policies, with overrides of the named ones in force.
fn ask(texts: &[&str], role: Role, lifted: &[&str]) -> Verdict {
    let text = texts.concat();
    let authority = Authority::new(&[(Layer::Project, text.as_str())]).expect("valid");
    let numbered = (1..).zip(lifted);
    let reliefs = numbered.map(|(number, policy)| Relief {
        number,
        scope: scope(policy, role),
        by: OperatorName::parse("ada").expect("a name"),
        justification: "the owner asked".into(),
        until: Timestamp(100),
        revoked_by: None,
    });
    let request = Request::of_tool(role, "bash", "make").expect("a tool");
    authority.judge_with(&request, &reliefs.collect::<Vec<_>>(), Timestamp(1))
}

fn check(texts: &[&str], role: Role, lifted: &[&str], ruling: Ruling, policy: &str) {
    let verdict = ask(texts, role, lifted);
    assert_eq!(
        (verdict.ruling, verdict.policy.as_str()),
        (ruling, policy),
        "{texts:?} {lifted:?}: {verdict:?}"
    );
}

/// SEC-1: hostile: what others forbid, ask, or do not permit stays when the policy that said no first is lifted.
#[test]
fn an_override_lifts_no_policy_but_the_one_it_names() {
    let implementer = Role::Implementer;
    check(&[NO_A, NO_B], implementer, &["a-x"], Ruling::Deny, "b-y");
    check(&[NO_A, NO_B], implementer, &["b-y"], Ruling::Deny, "a-x");
    check(
        &[NO_A, ASK_FINALLY],
        implementer,
        &["a-x"],
        Ruling::RequireApproval,
        "z-ask",
    );
    check(
        &[NO_A, ASK_FINALLY],
        implementer,
        &["a-x", "z-ask"],
        Ruling::RequireApproval,
        "z-ask",
    );
    check(
        &[NO_A, ASK_A],
        implementer,
        &["a-x"],
        Ruling::RequireApproval,
        "ask-a",
    );
    check(
        &[ASK_A, ASK_B],
        implementer,
        &["ask-a"],
        Ruling::RequireApproval,
        "ask-b",
    );
    // Nobody permits commands to a Planner.
    check(&[NO_A], Role::Planner, &["a-x"], Ruling::Deny, "deny-by-default");
    // A question is lifted, and what it asks about is not forbidden to anybody by that.
    check(&[ASK_A, NO_A], implementer, &["ask-a"], Ruling::Deny, "a-x");
    check(
        &[ASK_A],
        implementer,
        &["deny-by-default"],
        Ruling::RequireApproval,
        "ask-a",
    );
}

/// SEC-1: several overrides lift as many policies, and all of them are the reason.
#[test]
fn overrides_of_everything_that_says_no_let_a_call_through() {
    let implementer = Role::Implementer;
    check(&[NO_A], implementer, &["a-x"], Ruling::Allow, "a-x");
    check(&[ASK_A], implementer, &["ask-a"], Ruling::Allow, "ask-a");
    check(
        &[ASK_A, ASK_B],
        implementer,
        &["ask-b", "ask-a"],
        Ruling::Allow,
        "ask-a",
    );
    // The question of the only policy that permits is lifted, and it permits still.
    check(&[ASK_A], Role::Planner, &["ask-a"], Ruling::Allow, "ask-a");
    check(
        &[NO_A],
        Role::Planner,
        &["a-x", "deny-by-default"],
        Ruling::Allow,
        "a-x",
    );
    assert_eq!(
        ask(&[NO_A, NO_B, ASK_A], implementer, &["ask-a", "b-y", "a-x"]),
        Verdict {
            ruling: Ruling::Allow,
            reason: "override 3 by ada: the owner asked; override 2 by ada: the owner asked; \
                     override 1 by ada: the owner asked"
                .into(),
            policy: "a-x".into(),
        }
    );
}

/// SEC-1: whatever stands in the way can be lifted, in any order, unless something final stands there, too.
#[test]
fn an_override_can_be_granted_for_each_policy_in_the_way() {
    let may = |texts: &[&str], policy: &str| {
        let text = texts.concat();
        let authority = Authority::new(&[(Layer::Project, text.as_str())]).expect("valid");
        authority.may_lift(&scope(policy, Role::Implementer))
    };
    for policy in ["a-x", "b-y", "ask-a"] {
        assert_eq!(may(&[NO_A, NO_B, ASK_A], policy), Ok(()), "{policy}");
    }
    assert_eq!(
        may(&[NO_A, ASK_FINALLY], "z-ask"),
        Err("`z-ask` is final; nobody lifts it".to_owned())
    );
    for other in [
        "ask-a",
        "forge-settings",
        "deny-by-default",
        "implementer-runs-commands",
    ] {
        assert_eq!(
            may(&[NO_A, NO_B], other),
            Err(format!("it is not `{other}` that decides but `a-x` (a)")),
            "{other}"
        );
    }
    // What is lifted in vain is not granted.
    assert!(may(&[ASK_A, ASK_FINALLY], "ask-a").is_err());
}
