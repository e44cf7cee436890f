//! The shipped policies as a truth table, and what operators can and cannot do to them.

use conductor_domain::id::OperatorName;
use conductor_domain::relief::{Relief, ReliefScope};
use conductor_domain::role::Role;
use conductor_domain::time::Timestamp;
use conductor_policy::authority::{
    Action, Actor, Authority, Change, LOW_TRUST, Layer, Level, Request, Ruling, SHIPPED, Standing, Target,
    Verdict, check, expect_all, read_question,
};

fn shipped() -> Authority {
    Authority::new(&[]).expect("the shipped policies are valid")
}

fn verdict(ruling: Ruling, reason: &str, policy: &str) -> Verdict {
    Verdict {
        ruling,
        reason: reason.into(),
        policy: policy.into(),
    }
}

fn targets() -> Vec<(String, Target)> {
    let mut targets = vec![
        ("worktree".to_owned(), Target::Worktree { path: String::new() }),
        (
            "source".to_owned(),
            Target::Worktree {
                path: "src/a.rs".into(),
            },
        ),
        (
            "git-dir".to_owned(),
            Target::Worktree {
                path: "sub/.GIT/config".into(),
            },
        ),
        (
            "workflow".to_owned(),
            Target::Worktree {
                path: ".GitHub/workflows/ci.yml".into(),
            },
        ),
        ("outcome".to_owned(), Target::Outcome),
        ("human".to_owned(), Target::Human),
        (
            "host".to_owned(),
            Target::Host {
                name: "example.com".into(),
            },
        ),
        (
            "repository".to_owned(),
            Target::Repository {
                name: "acme/app".into(),
                change: Some(Change {
                    class: "documentation".into(),
                    confidence: 100,
                }),
            },
        ),
    ];
    for is_own in [true, false] {
        let whose = if is_own { "own" } else { "other" };
        targets.extend([
            (format!("{whose} issue"), Target::Issue { is_own }),
            (format!("{whose} pull request"), Target::PullRequest { is_own }),
            (format!("{whose} check"), Target::CheckRun { is_own }),
            (format!("{whose} fields"), Target::ProjectFields { is_own }),
        ]);
    }
    targets
}

/// What every role may do; everything else of (role, tool, target) is denied.
const EVERYBODY: &[(&str, &[&str])] = &[
    ("view", &["worktree", "source", "git-dir", "workflow"]),
    ("list_files", &["worktree", "source", "git-dir", "workflow"]),
    ("search_files", &["worktree", "source", "git-dir", "workflow"]),
    ("git_status", &["worktree", "source", "git-dir", "workflow"]),
    ("git_diff", &["worktree", "source", "git-dir", "workflow"]),
    ("github_get_issue", &["own issue"]),
    ("github_list_comments", &["own issue"]),
    ("github_comment_issue", &["own issue"]),
    ("github_get_pull_request", &["own pull request"]),
    ("github_comment_pull_request", &["own pull request"]),
    ("github_review_comment", &["own pull request"]),
    ("github_update_check_run", &["own check"]),
    ("github_update_project_fields", &["own fields"]),
    ("ask_human", &["human"]),
];

fn own_tools(role: Role) -> &'static [(&'static str, &'static [&'static str])] {
    match role {
        Role::Planner => &[("submit_plan", &["outcome"])],
        Role::Reviewer => &[("submit_review", &["outcome"])],
        Role::Tester => &[("submit_test_report", &["outcome"])],
        Role::Implementer => &[
            ("create_file", &["worktree", "source"]),
            ("str_replace", &["worktree", "source"]),
            ("git_commit", &["worktree", "source", "git-dir", "workflow"]),
            ("bash", &["worktree", "source", "git-dir", "workflow"]),
        ],
    }
}

/// SEC-1, TOOL-3, RUN-14: every (role, tool, target) of the shipped policies, allowed and denied, with a reason.
#[test]
fn the_shipped_policies_allow_exactly_what_the_table_says() {
    let authority = shipped();
    let mut asked = 0;
    for role in Role::ALL {
        for action in Action::all() {
            for (name, target) in targets() {
                let verdict = authority.judge(&Request::new(Actor::Agent(role), action, target));
                let is_listed = EVERYBODY
                    .iter()
                    .chain(own_tools(role))
                    .any(|(tool, on)| *tool == action.name() && on.contains(&name.as_str()));
                let expected = if is_listed {
                    Ruling::Allow
                } else if action == Action::AddDependency && name == "repository" {
                    Ruling::RequireApproval
                } else {
                    Ruling::Deny
                };
                assert_eq!(
                    verdict.ruling,
                    expected,
                    "{role} {} {name}: {verdict:?}",
                    action.name()
                );
                assert!(!verdict.reason.is_empty() && !verdict.policy.is_empty());
                asked += 1;
            }
        }
    }
    assert_eq!(asked, 4 * 28 * 16);
}

/// SEC-1: the reason and the policy that decided.
#[test]
fn every_decision_names_its_reason_and_its_policy() {
    let authority = shipped();
    let agent = |role, action, target| authority.judge(&Request::new(Actor::Agent(role), action, target));
    let path = |path: &str| Target::Worktree { path: path.into() };
    assert_eq!(
        agent(Role::Implementer, Action::CreateFile, path("src/a.rs")),
        verdict(
            Ruling::Allow,
            "the Implementer may change files of its run's worktree",
            "implementer-edits"
        )
    );
    assert_eq!(
        agent(
            Role::Implementer,
            Action::CreateFile,
            path(".github/workflows/x.yml")
        ),
        verdict(
            Ruling::Deny,
            "workflows, owners and settings of the forge are changed by people",
            "forge-settings"
        )
    );
    assert_eq!(
        agent(Role::Planner, Action::Bash, path("")),
        verdict(Ruling::Deny, "no policy permits it", "deny-by-default")
    );
}

/// RUN-14: nobody merges by default; an instance can let Conductor merge named changes, never an agent.
#[test]
fn merging_is_denied_until_somebody_writes_that_policy() {
    let ask = |authority: &Authority, actor: Actor, class: &str, confidence: u8| {
        let target = Target::Repository {
            name: "acme/docs".into(),
            change: Some(Change {
                class: class.into(),
                confidence,
            }),
        };
        authority
            .judge(&Request::new(actor, Action::Merge, target))
            .ruling
    };
    assert_eq!(
        ask(&shipped(), Actor::Orchestrator, "documentation", 100),
        Ruling::Deny
    );
    let text = r#"
        @id("merge-docs") @reason("documentation merges itself when the reviewers are sure")
        permit (principal is Orchestrator, action == Action::"merge", resource == Repository::"acme/docs")
        when { context.changeClass == "documentation" && context.confidence >= 90 };
        @id("merge-by-agents") @reason("never works")
        permit (principal is Agent, action == Action::"merge", resource is Repository);
    "#;
    let authority = Authority::new(&[(Layer::Project, text)]).expect("valid");
    assert_eq!(
        ask(&authority, Actor::Orchestrator, "documentation", 95),
        Ruling::Allow
    );
    assert_eq!(
        ask(&authority, Actor::Orchestrator, "documentation", 89),
        Ruling::Deny
    );
    assert_eq!(ask(&authority, Actor::Orchestrator, "code", 95), Ruling::Deny);
    assert_eq!(
        ask(&authority, Actor::Agent(Role::Implementer), "documentation", 95),
        Ruling::Deny
    );
}

/// BEY-10: who may start runs and whose text is trusted; a bot earns nothing, whatever the forge calls it.
#[test]
fn bots_and_strangers_earn_no_trust_and_low_trust_asks_more() {
    let low = Authority::new(&[(Layer::Project, LOW_TRUST)]).expect("valid");
    let expectations = "
        operator:operator start_run repository:acme/app -> allow operators-start-runs
        operator:admin start_run repository:acme/app -> allow
        operator:viewer start_run repository:acme/app -> deny deny-by-default
        person:ada:owner start_run repository:acme/app -> allow people-start-runs
        person:ada:collaborator start_run repository:acme/app -> allow
        person:ada:contributor start_run repository:acme/app -> require_approval contributors-start-runs
        person:ada:none start_run repository:acme/app -> deny
        person:helper[bot]:owner start_run repository:acme/app -> deny deny-by-default
        person:helper[BOT]:member start_run repository:acme/app -> deny
        person:ada:member trust_text own-issue -> allow trusted-text
        person:ada:contributor trust_text own-issue -> deny
        person:helper[bot]:owner trust_text other-pull-request -> deny
    ";
    assert_eq!(expect_all(&shipped(), expectations), Ok(12));
    let expectations = "
        person:ada:owner start_run repository:acme/app -> allow people-start-runs
        person:ada:member start_run repository:acme/app -> deny
        person:ada:contributor start_run repository:acme/app -> deny contributors-start-runs
        person:ada:collaborator trust_text own-issue -> deny
        person:helper[bot]:owner trust_text own-issue -> deny
        implementer bash worktree -> require_approval implementer-runs-commands
        implementer create_file worktree:src/a.rs -> allow   # replaced policies only
    ";
    assert_eq!(expect_all(&low, expectations), Ok(7));
}

/// SEC-1: a lower layer replaces by id; a final policy stays; the strictest that applies decides.
#[test]
fn layers_replace_by_id_and_final_policies_stay() {
    let project = r#"@id("comment-on-the-issue") @reason("quiet") forbid (principal is Agent, action == Action::"github_comment_issue", resource is Issue);"#;
    let repo = r#"@id("comment-on-the-issue") @reason("ask") @decision("require_approval") permit (principal is Agent, action == Action::"github_comment_issue", resource is Issue);"#;
    let request = Request::new(
        Actor::Agent(Role::Planner),
        Action::GithubCommentIssue,
        Target::Issue { is_own: true },
    );
    let with = |layers: &[(Layer, &str)]| Authority::new(layers).expect("valid").judge(&request);
    assert_eq!(
        with(&[(Layer::Project, project)]),
        verdict(Ruling::Deny, "quiet", "comment-on-the-issue")
    );
    let both = [(Layer::Repository, repo), (Layer::Project, project)];
    assert_eq!(
        with(&both),
        verdict(Ruling::RequireApproval, "ask", "comment-on-the-issue")
    );
    let asks_too = r#"@id("slow") @reason("slow down") @decision("require_approval") permit (principal is Agent, action, resource);"#;
    let (answer, consulted) = Authority::new(&[(Layer::Run, asks_too)])
        .expect("valid")
        .explain(&request);
    assert_eq!(answer, verdict(Ruling::RequireApproval, "slow down", "slow"));
    let consulted: Vec<&str> = consulted.iter().map(|rule| rule.id.as_str()).collect();
    assert_eq!(consulted, ["slow", "comment-on-the-issue"]);
    let hijack = r#"@id("git-directory") @reason("let me") permit (principal is Agent, action == Action::"create_file", resource is Worktree);"#;
    let flaws = Authority::new(&[(Layer::Repository, hijack)]).expect_err("final");
    assert!(flaws[0].message.contains("`git-directory` is final"), "{flaws:?}");
    let all_denied = r#"@id("freeze") @reason("frozen") forbid (principal, action, resource);"#;
    assert_eq!(
        with(&[(Layer::Project, all_denied)]),
        verdict(Ruling::Deny, "frozen", "freeze")
    );
}

/// SEC-1: versions are content addresses.
#[test]
fn the_version_changes_with_the_text_and_only_with_it() {
    let text = r#"@id("a") @reason("b") forbid (principal, action, resource);"#;
    let version = |layers: &[(Layer, &str)]| Authority::new(layers).expect("valid").version().clone();
    assert_eq!(version(&[]), version(&[]));
    assert_ne!(version(&[]), version(&[(Layer::Run, text)]));
    assert_ne!(version(&[(Layer::Project, text)]), version(&[(Layer::Run, text)]));
}

/// SEC-1: what is wrong with a text is said with line and column before it is saved.
#[test]
fn flaws_are_found_before_saving_with_line_and_column() {
    let at = |text: &str| -> Vec<(usize, usize)> {
        check(Layer::Project, text)
            .iter()
            .map(|flaw| (flaw.line, flaw.column))
            .collect()
    };
    assert_eq!(check(Layer::Shipped, SHIPPED), []);
    assert_eq!(at("\n  permit (principal, action, resource"), [(2, 38)]);
    let unknown =
        "@id(\"a\")\n@reason(\"b\")\npermit (principal is Agent, action == Action::\"fly\", resource);";
    assert_eq!(at(unknown).first(), Some(&(3, 39)));
    let typo = "@id(\"a\") @reason(\"b\")\npermit (principal is Agent, action == Action::\"view\", resource is Worktree)\nwhen { resource.pth == \"x\" };";
    assert_eq!(at(typo).first().map(|(line, _)| *line), Some(3));
    let message = |text: &str| {
        check(Layer::Project, text)
            .first()
            .map(|flaw| flaw.message.clone())
    };
    assert_eq!(
        message("forbid (principal, action, resource);").as_deref(),
        Some("a policy has no @id(\"…\")")
    );
    assert_eq!(
        message("@id(\"a\") forbid (principal, action, resource);").as_deref(),
        Some("policy `a` has no @reason(\"…\")")
    );
    assert_eq!(
        message("@id(\"a\") @reason(\"b\") @decision(\"maybe\") permit (principal, action, resource);")
            .as_deref(),
        Some("policy `a`: a decision `maybe` does not fit its effect")
    );
    let twice = "@id(\"a\") @reason(\"b\") forbid (principal, action, resource);".repeat(2);
    assert_eq!(message(&twice).as_deref(), Some("two policies have the id `a`"));
}

#[test]
fn expectations_that_do_not_hold_are_named_by_line() {
    let wrong = expect_all(
        &shipped(),
        "# table\nplanner bash worktree -> allow\nplanner fly worktree -> deny\nnonsense",
    )
    .expect_err("three are wrong");
    let lines: Vec<String> = wrong.iter().map(ToString::to_string).collect();
    let actions: Vec<&str> = Action::all().map(Action::name).collect();
    assert_eq!(
        lines,
        [
            "line 2: expected allow, but it is deny by deny-by-default (no policy permits it)".to_owned(),
            format!("line 3: `fly` is no action; there are {}", actions.join(", ")),
            "line 4: expected `actor action target -> decision [policy]`".to_owned(),
        ]
    );
    let question = |text: &str| read_question(text).expect_err("no question");
    assert!(question("wizard bash worktree").starts_with("`wizard` is no actor; write planner, "));
    assert!(question("planner bash moon").starts_with("`moon` is no target; write worktree[:PATH], "));
    assert!(question("planner bash").ends_with("these are 2"));
}

/// SEC-1: an override is for one thing, for a while, can be taken back, and never lifts what is final.
#[test]
fn an_override_is_scoped_expires_and_never_lifts_what_is_final() {
    let authority = shipped();
    let at = |seconds: i64| Timestamp(seconds * 1_000_000);
    let by = OperatorName::parse("ada").expect("a name");
    let scope = |policy: &str, role, tool: &str, target: &str| ReliefScope {
        policy: policy.into(),
        role,
        tool: tool.into(),
        target: target.into(),
    };
    let relief = |scope: &ReliefScope| Relief {
        number: 1,
        scope: scope.clone(),
        by: by.clone(),
        justification: "the owner asked for this pipeline".into(),
        until: at(100),
        revoked_by: None,
    };
    let create = |role, path: &str| Request::of_tool(role, "create_file", path).expect("a tool");
    let workflow = scope(
        "forge-settings",
        Role::Implementer,
        "create_file",
        "worktree:./.github/workflows/ci.yml",
    );
    assert_eq!(authority.may_lift(&workflow), Ok(()));
    let granted = [relief(&workflow)];
    let ask = |request: &Request, now| authority.judge_with(request, &granted, at(now));
    let path = ".github//workflows/ci.yml";
    assert_eq!(
        ask(&create(Role::Implementer, path), 99),
        verdict(
            Ruling::Allow,
            "override 1 by ada: the owner asked for this pipeline",
            "forge-settings"
        )
    );
    let denied = |request: &Request, now, why| assert_eq!(ask(request, now).ruling, Ruling::Deny, "{why}");
    denied(&create(Role::Implementer, path), 100, "expired");
    denied(&create(Role::Implementer, "CODEOWNERS"), 1, "another target");
    denied(&create(Role::Planner, path), 1, "another role");
    let replace = Request::of_tool(Role::Implementer, "str_replace", path).expect("a tool");
    denied(&replace, 1, "another tool");
    let revoked = Relief {
        revoked_by: Some(by.clone()),
        ..relief(&workflow)
    };
    let create_it = create(Role::Implementer, path);
    assert_eq!(
        authority.judge_with(&create_it, &[revoked], at(1)).ruling,
        Ruling::Deny
    );
    // A denial by another policy than the one that was lifted stays.
    let other = relief(&scope(
        "git-directory",
        Role::Implementer,
        "create_file",
        "worktree:.github/workflows/ci.yml",
    ));
    assert_eq!(
        authority.judge_with(&create_it, &[other], at(1)).ruling,
        Ruling::Deny
    );
    // Even if one was recorded somehow, nothing final is lifted.
    let git = scope(
        "git-directory",
        Role::Implementer,
        "create_file",
        "worktree:.git/config",
    );
    let config = create(Role::Implementer, ".git/config");
    assert_eq!(
        authority.judge_with(&config, &[relief(&git)], at(1)).ruling,
        Ruling::Deny
    );
    let refused = |scope: &ReliefScope| authority.may_lift(scope).expect_err("nothing to lift");
    assert_eq!(refused(&git), "`git-directory` is final; nobody lifts it");
    let allowed = scope(
        "implementer-edits",
        Role::Implementer,
        "create_file",
        "worktree:src/a.rs",
    );
    assert_eq!(refused(&allowed), "it is allowed already, by `implementer-edits`");
    let wrong = scope(
        "git-directory",
        Role::Implementer,
        "create_file",
        "worktree:CODEOWNERS",
    );
    assert!(refused(&wrong).starts_with("it is not `git-directory` that decides but `forge-settings`"));
    for (tool, target) in [
        ("merge", "repository:a/b"),
        ("fly", "worktree"),
        ("bash", "moon"),
        ("bash", "human"),
    ] {
        refused(&scope("deny-by-default", Role::Implementer, tool, target));
    }
    let others = scope(
        "deny-by-default",
        Role::Planner,
        "github_comment_issue",
        "other-issue",
    );
    assert_eq!(authority.may_lift(&others), Ok(()));
}

#[test]
fn an_operator_is_known_by_level_and_not_by_name() {
    let ask = |name: &str, level| {
        let actor = Actor::Operator {
            name: name.into(),
            level,
        };
        let target = Target::Repository {
            name: "a/b".into(),
            change: None,
        };
        shipped()
            .judge(&Request::new(actor, Action::StartRun, target))
            .ruling
    };
    assert_eq!(ask("admin", Level::Viewer), Ruling::Deny);
    assert_eq!(ask("x\"y", Level::Admin), Ruling::Allow);
    let hostile = Actor::Person {
        login: "owner\" || true || \"".into(),
        standing: Standing::None,
    };
    let target = Target::Issue { is_own: true };
    assert_eq!(
        shipped()
            .judge(&Request::new(hostile, Action::TrustText, target))
            .ruling,
        Ruling::Deny
    );
}
